"""The tasks of GLUE (https://gluebenchmark.com): their columns, labels and metrics.

The names are those of its data set on the Hub; the columns of the benchmark's own files are known too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import evaluate
from sklearn.metrics import f1_score, matthews_corrcoef

from modeling_dsa.shipped.nli import NLI_CLASS_NAMES, NLI_PAIRS

from .labelled_examples import ExampleFormat
from .labels import KnownClasses, Numbers
from .metrics import ClassificationMetric, RegressionMetric, SklearnMetric
from .sst import SST_SENTENCES

TaskName: TypeAlias = Literal["cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte", "wnli"]

DATASET = "nyu-mll/glue"
_LABEL_COLUMNS = ("label", "gold_label", "score", "is_duplicate", "Quality")
_ENTAILMENT = ("entailment", "not_entailment")


@dataclass(frozen=True)
class GlueTask:
    """A task of GLUE.

    Attributes:
        texts: Its one or two columns of texts on the Hub.
        class_names: Its classes, by index; empty for a regression.
        example: Texts to show how a model of it is used.
        file_columns: What the columns of texts are called in its own files, where that differs.
        metric_for_best_model: The metric by which GLUE ranks models.
    """

    texts: tuple[str, ...]
    class_names: tuple[str, ...]
    example: tuple[str, ...]
    file_columns: tuple[str, ...] = ()
    metric_for_best_model: str = "accuracy"

    @property
    def form(self) -> ExampleFormat:
        """What its examples are."""
        names = zip(self.texts, self.file_columns or self.texts, strict=True)
        return ExampleFormat(
            texts={text: tuple(dict.fromkeys((text, in_file))) for text, in_file in names},
            label_columns=_LABEL_COLUMNS,
            labels=KnownClasses(self.class_names) if self.class_names else Numbers(unlabelled=-1),
        )

    @property
    def metrics(self) -> tuple[evaluate.Metric, ...]:
        """What an evaluation reports."""
        if not self.class_names:
            return (RegressionMetric(),)
        added: dict[str, Callable[..., float]] = {
            "f1": partial(f1_score, zero_division=0.0),  # of class 1
            "matthews_correlation": matthews_corrcoef,
        }
        ranked_by = self.metric_for_best_model
        own = [SklearnMetric(ranked_by, added[ranked_by])] if ranked_by in added else []
        return (ClassificationMetric(self.class_names), *own)


GLUE: dict[TaskName, GlueTask] = {
    "cola": GlueTask(
        ("sentence",),
        ("unacceptable", "acceptable"),
        ("They drank the pub dry.",),
        metric_for_best_model="matthews_correlation",
    ),
    "sst2": GlueTask(("sentence",), ("negative", "positive"), SST_SENTENCES[:1]),
    "mrpc": GlueTask(
        ("sentence1", "sentence2"),
        ("not_equivalent", "equivalent"),
        ("The shares fell by two percent.", "The stock lost two percent."),
        ("#1 String", "#2 String"),
        metric_for_best_model="f1",
    ),
    "qqp": GlueTask(
        ("question1", "question2"),
        ("not_duplicate", "duplicate"),
        ("How do I learn to play the guitar?", "What is the best way to learn the guitar?"),
        metric_for_best_model="f1",
    ),
    "stsb": GlueTask(
        ("sentence1", "sentence2"),
        (),
        ("A man is playing a guitar.", "Somebody plays the guitar."),
        metric_for_best_model="spearman",
    ),
    "mnli": GlueTask(("premise", "hypothesis"), NLI_CLASS_NAMES, NLI_PAIRS[0], ("sentence1", "sentence2")),
    "qnli": GlueTask(
        ("question", "sentence"), _ENTAILMENT, ("When did the war end?", "The war ended in the spring of 1945.")
    ),
    "rte": GlueTask(
        ("sentence1", "sentence2"), _ENTAILMENT, ("The cat sat on the mat all day.", "There was a cat on the mat.")
    ),
    "wnli": GlueTask(
        ("sentence1", "sentence2"),
        ("not_entailment", "entailment"),
        ("The cup did not fit into the box because it was too big.", "The cup was too big."),
    ),
}
