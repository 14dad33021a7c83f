"""Small saved models, of several systems, that the tests of what a repository holds share."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopback_hub import CLIENT_VARIABLE
from small_models import randomize, small_config
from small_runs import small_tokenizer

from modeling_dsa import DSAForNLI, DSAForSequenceClassification, DSAModel
from modeling_dsa.modeling_dsa import DSAPreTrainedModel

NLI_LABELS = {0: "entailment", 1: "neutral", 2: "contradiction"}
NLI: dict[str, Any] = {
    "sentences_per_example": 2,
    "id2label": NLI_LABELS,
    "label2id": {label: number for number, label in NLI_LABELS.items()},
}
SYSTEMS: dict[str, tuple[type[DSAPreTrainedModel], dict[str, Any]]] = {
    "nli": (DSAForNLI, NLI),
    "vsam": (DSAForSequenceClassification, {"pooling": "variational"}),
    "bilstm": (DSAForSequenceClassification, {"encoder": "bilstm", "hidden_size": 6, "pooling": "last"}),
    "encoder": (
        DSAModel,
        {
            "pooling": "static",
            "num_attention_heads": 2,
            "freeze_embeddings": False,
            "projection_size": 7,
            "word_shortcut": True,
        },
    ),
}


@dataclass
class Saved:
    """A model and the folder that it was saved in, with its tokenizer."""

    folder: Path
    model: Any

    @property
    def base(self) -> Any:
        """The model without its head."""
        return getattr(self.model, "dsa", self.model)


def save_system(folder: Path, name: str, **sizes: int) -> Saved:
    """Save a system in a folder of its name."""
    kind, changes = SYSTEMS[name]
    model = randomize(kind(small_config(vocab_size=len(small_tokenizer()), **changes, **sizes)))
    model.save_pretrained(folder / name)
    tokenizer = small_tokenizer()
    tokenizer.backend_tokenizer.no_padding()  # a tokenizer is saved with the padding of its last call, in another test
    tokenizer.save_pretrained(folder / name)
    return Saved(folder / name, model.eval())


def offline_environment(home: Path) -> dict[str, str]:
    """All variables of a fresh process that must not ask any Hub."""
    own = {name: value for name, value in os.environ.items() if not CLIENT_VARIABLE.fullmatch(name)}
    return own | {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1"}
