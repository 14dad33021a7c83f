"""Reading a text with a model of the DSA family: its classes, and the attention over its words.

All that this needs of a model is its repository, so it works where the package is not installed.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

import torch
from attention_html import ReadSentence
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

with contextlib.suppress(ImportError):  # where it is not installed, a model brings its own code
    import modeling_dsa  # noqa: F401

LONGEST_TEXT = 2_000  # characters of a sentence that are read: a page is not for documents


class CannotRead(ValueError):  # noqa: N818  (it is a sentence for whoever typed, not a fault)
    """What was typed is nothing that the model could judge; the message says what to do."""


@dataclass(frozen=True)
class Reading:
    """What a model made of a text.

    Attributes:
        classes: the probability of each class, or a regression's number.
        sentences: the sentence or the pair, with its attention.
        notes: what one must know about them, in sentences.
    """

    classes: dict[str, float] | float
    sentences: list[ReadSentence]
    notes: list[str]

    @property
    def iterations(self) -> int:
        """Attentions one after the other, 0 where there is none."""
        return len(self.sentences[0].weights)

    @property
    def heads(self) -> int:
        """Attentions side by side, 0 where there is none."""
        return int(self.sentences[0].weights.shape[1])


def find_models(folder: Path) -> list[Path]:
    """The folders in `folder` that hold a model of the DSA family, in the order of their names."""
    return [
        path.parent
        for path in sorted(folder.glob("*/config.json"))
        if json.loads(path.read_text("utf-8")).get("model_type") == "dsa"
    ]


@cache
def load_model(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a classifier and its tokenizer, once.

    Args:
        name: a folder, or an id of the Hub.

    Raises:
        OSError: it is not there, or not complete.
        ValueError: it is no trained classifier of the DSA family.
    """
    config = AutoConfig.from_pretrained(name, trust_remote_code=True)
    if config.model_type != "dsa":
        raise ValueError(f"It is a model of type '{config.model_type}', and this page shows type 'dsa'.")
    model, loading = AutoModelForSequenceClassification.from_pretrained(
        name, trust_remote_code=True, output_loading_info=True
    )
    if loading["missing_keys"]:
        raise ValueError("It is an encoder without a trained classifier.")
    return model.eval(), AutoTokenizer.from_pretrained(name, trust_remote_code=True)


def reads_pairs(model: PreTrainedModel) -> bool:
    """Whether a model judges a premise and a hypothesis, and not one sentence."""
    return bool(model.config.sentences_per_row == 2)


def read(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, first: str, second: str) -> Reading:
    """Classify a pair, or `first` alone where the model reads single sentences.

    Raises:
        CannotRead: a sentence is empty, or the model knows none of its words.
    """
    texts = {"Premise": first, "Hypothesis": second} if reads_pairs(model) else {"Sentence": first}
    notes = []
    for name, text in texts.items():
        if len(text) > LONGEST_TEXT:
            texts[name] = text[:LONGEST_TEXT].rsplit(maxsplit=1)[0]  # without the word that is cut in two
            notes.append(f"Only the first {LONGEST_TEXT:,} characters of the {name.lower()} are read.")
    batch = tokenizer(*texts.values(), return_offsets_mapping=True)
    ids, offsets, owners = batch["input_ids"], batch.pop("offset_mapping"), batch.sequence_ids(0)
    longest = model.config.max_sentence_words
    places = {}
    for number, name in enumerate(texts):
        words = [
            place
            for place, (token, owner) in enumerate(zip(ids, owners, strict=True))
            if owner == number and token != tokenizer.sep_token_id  # also where it is written in a text
        ]
        if longest is not None and len(words) > longest:
            notes.append(f"This model reads only the first {longest} words of the {name.lower()}.")
        places[name] = words[:longest]
    empty = [name.lower() for name, words in places.items() if not words]
    if empty:
        raise CannotRead(f"Type a {' and a '.join(empty)}, or choose an example.")
    known = [token not in (tokenizer.unk_token_id, tokenizer.pad_token_id) for token in ids]
    for name, words in places.items():
        if not any(known[place] for place in words):
            raise CannotRead(f"This model knows none of the words of the {name.lower()}: try other words.")

    with torch.no_grad():
        outputs = model(**batch.convert_to_tensors("pt", prepend_batch_axis=True), output_attentions=True)
    if outputs.attentions:
        weights = torch.stack([weights[0].float() for weights in outputs.attentions])  # (iterations, heads, words)
    else:
        weights = torch.zeros(0, 0, len(ids))
        notes.append(f"This model has no attention to show: pooling '{model.config.pooling}' does not weigh the words.")
    sentences = [
        ReadSentence(
            name,
            [texts[name][slice(*offsets[place])] for place in words],
            [known[place] for place in words],
            weights[..., words].numpy(),
        )
        for name, words in places.items()
    ]
    return Reading(_classes(model, outputs.logits[0].float()), sentences, notes)


def _classes(model: PreTrainedModel, logits: torch.Tensor) -> dict[str, float] | float:
    """What the logits (labels,) of one row say."""
    if model.config.num_labels == 1:
        return float(logits)
    several = model.config.problem_type == "multi_label_classification"
    shares = logits.sigmoid() if several else logits.softmax(-1)  # (labels,)
    names = cast(dict[int, str], model.config.id2label)  # a config turns the keys into numbers
    return {names[number]: share for number, share in enumerate(shares.tolist())}
