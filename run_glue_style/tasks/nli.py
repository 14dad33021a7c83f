"""Natural language inference: pairs of a premise and a hypothesis, in the formats of SNLI and MultiNLI."""

from modeling_dsa.shipped.nli import NLI_LABELS

from .labelled_examples import ExampleFormat
from .labels import KnownClasses

LABEL_NAMES = NLI_LABELS
NLI = ExampleFormat(
    texts={"premise": ("sentence1", "premise"), "hypothesis": ("sentence2", "hypothesis")},
    label_columns=("gold_label", "label"),
    labels=KnownClasses(LABEL_NAMES),
)
