"""A model's card, the README.md of its page on the Hub: the words of model_cards/template.md.jinja, a run's figures.

`python -m run_glue_style.reporting.model_card FOLDER --model_id org/name` writes it into a model's folder.
"""

import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from huggingface_hub import ModelCard

from modeling_dsa import DSAConfig, DSAForSequenceClassification
from modeling_dsa.command.command_line import make_parser
from modeling_dsa.encoders_dsa import ENCODERS
from modeling_dsa.files.card_sections import CARD, keep_own_words, read_card, save_card
from modeling_dsa.files.loading import load_config, load_model_and_tokenizer, load_tokenizer, loading_errors
from modeling_dsa.files.model_replacing import RESULTS
from modeling_dsa.files.outputs import refuse_input
from modeling_dsa.hub.publishing import check_repo_id
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.shipped.files import CARD_TEMPLATE
from modeling_dsa.text.tokenization import has_pieces
from run_glue_style.training.entry import run_script
from run_glue_style.training.results import check_seeds, read_results

from .card.kinds import NLI, SENTIMENT, Kind, kind_of, shown_inputs
from .card.known_data import has_other_data, known_data
from .card.measured import put_measured
from .card.metadata import card_metadata
from .card.run_facts import run_facts
from .card.text import percent, plain, quoted
from .card.widget import WidgetExample, widget_examples

logger = logging.getLogger(__name__)

PICTURE = "attention.png"

# What a card must read of an all_results.json; runs of earlier versions lack other entries.
_NEEDED = (
    *("metrics", "data", "model", "recipe", "source", "start", "seed", "mixed_precision", "processes", "steps"),
    *("trained_parameters", "train_seconds", "environment"),
)
_SHOWN_LABELS = 20


def model_card(
    results: Mapping[str, Any],
    *,
    model_id: str,
    config: DSAConfig,
    examples: Sequence[WidgetExample] = (),
    picture: str | None = None,
    open_vocabulary: bool = False,
    other_seeds: Sequence[Mapping[str, Any]] = (),
) -> ModelCard:
    """The card of a model.

    Args:
        results: Its run's all_results.json; empty where nothing was measured.
        model_id: Its name on the Hub, `organisation/name`; the code snippets load it from there.
        config: Its config.
        examples: What it said to some inputs.
        picture: File in its repository with a picture of its attention.
        open_vocabulary: Its tokenizer reads other words as pieces.
        other_seeds: The all_results.json of runs that differ from its own in their seed alone; the card shows the mean
            and the standard deviation over all of them.

    Raises:
        ValueError: `model_id` is no name on the Hub, `results` are not those of a run of this package, or the other
            runs differ in more than their seed.
    """
    check_repo_id(model_id)
    _check_results(results)
    if other_seeds and not results:
        raise ValueError("The model has no results, beside which those of other seeds could stand.")
    check_seeds("the model and the other seeds", [results, *other_seeds])
    kind = kind_of(config, results)
    facts = _facts(results, model_id, config, kind, other_seeds) | {
        "examples": examples,
        "picture": picture,
        "open_vocabulary": open_vocabulary,
    }
    card_data = card_metadata(results, facts, kind, examples)
    card: ModelCard = ModelCard.from_template(card_data, template_path=str(CARD_TEMPLATE), **facts)
    return card


def write_card(
    folder: Path, model_id: str, other_seeds: Sequence[Mapping[str, Any]] = (), earlier: Path | None = None
) -> Path:
    """Write the card of a model's folder, README.md, from its config.json and, if it has them, results and weights.

    What `dsa evaluate` and `dsa explain --faithfulness` wrote beside these weights goes in too. Of the card before it
    keeps language, licence and what stands between `<!-- own words -->` and `<!-- end of own words -->`.

    Args:
        folder: A saved model.
        model_id: As in `model_card`.
        other_seeds: As in `model_card`.
        earlier: The folder of the earlier card; default: the same.

    Returns:
        The card's file.

    Raises:
        FileNotFoundError: The folder holds no config.json.
        ValueError: As in `model_card`, or a file of the folder cannot be read.
    """
    check_repo_id(model_id)
    config = load_config(folder)
    path = folder / RESULTS
    results = _read_results(path) if path.is_file() else {}
    examples: Sequence[WidgetExample] = ()
    tokenizer = None
    inputs = shown_inputs(kind_of(config, results), results)
    if config.is_classifier and inputs and any(folder.glob("*.safetensors")):
        model, tokenizer = load_model_and_tokenizer(folder)
        examples = widget_examples(cast(DSAForSequenceClassification, model), tokenizer, inputs)
    elif (folder / "tokenizer.json").is_file():
        tokenizer = load_tokenizer(folder, config)
    picture = PICTURE if (folder / PICTURE).is_file() else None
    card = model_card(
        results,
        model_id=model_id,
        config=config,
        examples=examples,
        picture=picture,
        open_vocabulary=tokenizer is not None and has_pieces(tokenizer.backend_tokenizer),
        other_seeds=other_seeds,
    )
    if ((earlier or folder) / CARD).is_file():
        keep_own_words(card, read_card(earlier or folder))
    put_measured(card, folder)
    save_card(card, folder / CARD)
    return folder / CARD


def main() -> None:
    """Read the command line and write a card."""
    parser = make_parser("Write a model's card from its results.")
    parser.add_argument(
        "source", type=Path, help="A model's folder, or an all_results.json (or .json.gz) without its model."
    )
    parser.add_argument("--model_id", required=True, metavar="ORG/NAME", help="Name of the model on the Hub.")
    parser.add_argument("--output", type=Path, metavar="FILE", help="Card of an all_results.json.")
    parser.add_argument(
        "--other_seeds",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="The all_results.json of runs that differ in their seed alone: the card shows mean and spread over all.",
    )
    arguments = parser.parse_args()
    source: Path = arguments.source
    other_seeds = [_read_results(path) for path in arguments.other_seeds]
    if source.is_dir():
        if arguments.output is not None:
            parser.error("a model's card is the README.md of its folder: leave out --output")
        path = write_card(source, arguments.model_id, other_seeds)
    else:
        if arguments.output is None:
            parser.error("an all_results.json has no folder for its card: give --output")
        refuse_input(arguments.output, [source, *arguments.other_seeds], "--output")
        results = _read_results(source)
        with loading_errors(f"{source}: the config"):
            config = DSAConfig.from_dict(results["model"])
        card = model_card(results, model_id=arguments.model_id, config=config, other_seeds=other_seeds)
        path = arguments.output
        save_card(card, path)
    logger.info(f"The card is in {path}.")


def _facts(
    results: Mapping[str, Any], model_id: str, config: DSAConfig, kind: Kind, other_seeds: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """All that the template reads, beside the metadata, the examples and the picture."""
    vectors = str(results.get("vectors") or "")
    known = known_data(results)
    inputs = shown_inputs(kind, results) or (NLI if config.sentences_per_example == 2 else SENTIMENT).inputs
    first, second = (inputs[0], "") if isinstance(inputs[0], str) else inputs[0]
    facts: dict[str, Any] = {
        "model_id": model_id,
        "name": model_id.rpartition("/")[2],
        "kind": kind.name,
        "pair": config.sentences_per_example == 2,
        "labels": _shown_labels(config),
        "config": config,
        "encoder": ENCODERS[config.encoder],
        "pooling": POOLINGS[config.pooling],
        "results": results,
        "data_key": known.table if known else None,
        "other_data": has_other_data(results),
        "glove": "glove" in vectors.lower(),
        "first": first,
        "second": second,
        "text": plain,
        "quoted": quoted,
        "percent": percent,
    }
    return facts | (run_facts(results, known, other_seeds) if results else {})


def _shown_labels(config: DSAConfig) -> str:
    names = [f"*{plain(name)}*" for name in config.class_names]
    more = len(names) - _SHOWN_LABELS
    return ", ".join(names[:_SHOWN_LABELS]) + (f" and {more} more" if more > 0 else "")


def _check_results(results: Mapping[str, Any], name: str = "results") -> None:
    missing = [name for name in _NEEDED if results and name not in results]
    if results and not missing and not results["metrics"]:
        missing = ["metrics"]
    if missing:
        raise ValueError(
            f"There is no '{missing[0]}' in {name}, so no script of this package wrote it: take the file out of the "
            "folder for a card without figures."
        )


def _read_results(path: Path) -> dict[str, Any]:
    results = read_results(path)
    _check_results(results, str(path))
    return results


if __name__ == "__main__":
    sys.exit(run_script(main))
