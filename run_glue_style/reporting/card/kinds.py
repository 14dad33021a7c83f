"""What kinds of models there are for a reader: their tags on the Hub, and inputs that show what they do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from modeling_dsa import DSAConfig, DSAForNLI
from modeling_dsa.shipped.nli import NLI_PAIRS
from run_glue_style.tasks.sst import SST_SENTENCES
from run_glue_style.tasks.stance import STANCE_PAIRS

Input: TypeAlias = str | tuple[str, str]


@dataclass(frozen=True)
class Kind:
    """What a model is for.

    Attributes:
        name: By which the card's template tells the kinds apart.
        tags: Of its page on the Hub.
        inputs: Texts, or pairs of them, that every model of the kind understands.
    """

    name: str
    tags: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()


ENCODER, CLASSIFICATION, REGRESSION = Kind("encoder"), Kind("classification"), Kind("regression")
NLI = Kind("nli", ("natural-language-inference",), NLI_PAIRS)
SENTIMENT = Kind("sentiment", ("sentiment-analysis",), SST_SENTENCES)
STANCE = Kind("stance", ("stance-detection",), STANCE_PAIRS)
_OF_TASK = {"nli": NLI, "mnli": NLI, "sst2": SENTIMENT, "sst5": SENTIMENT, "stance": STANCE}


def kind_of(config: DSAConfig, results: Mapping[str, Any]) -> Kind:
    """The kind of a model, by the task of its run; without results by its head.

    Args:
        config: Its config.
        results: Its run's all_results.json, or nothing.
    """
    if not config.is_classifier:
        return ENCODER
    if config.problem_type == "regression":
        return REGRESSION
    if results:
        return _OF_TASK.get(results.get("task", ""), CLASSIFICATION)
    return NLI if DSAForNLI.__name__ in (config.architectures or ()) else CLASSIFICATION


def shown_inputs(kind: Kind, results: Mapping[str, Any]) -> Sequence[Input]:
    """Inputs that every model of the kind understands or, for labels of one's own, some of the run's examples."""
    own = [(texts[0], texts[1]) if len(texts) == 2 else texts[0] for texts in results.get("shown_examples", ())]
    return kind.inputs or own
