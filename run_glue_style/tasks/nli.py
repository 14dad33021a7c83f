"""Natural language inference: pairs of a premise and a hypothesis, in the formats of SNLI and MultiNLI."""

from modeling_dsa.shipped.nli import NLI_CLASS_NAMES

from .labelled_examples import ExampleFormat
from .labels import KnownClasses

NLI = ExampleFormat(
    texts={"premise": ("sentence1", "premise"), "hypothesis": ("sentence2", "hypothesis")},
    label_columns=("gold_label", "label"),
    labels=KnownClasses(NLI_CLASS_NAMES),
)
