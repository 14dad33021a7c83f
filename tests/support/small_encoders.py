"""A small encoder with real words, and sentences for it, which the tests of encoding share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from small_models import randomize, small_config

from modeling_dsa import DSAModel
from modeling_dsa.batching_dsa import Vectors
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.text.tokenization import build_tokenizer

WORDS = ("a", "man", "woman", "dog", "is", "sleeping", "running", "not", ".", "in", "the", "rain")
SENTENCES = [
    "A man is sleeping.",
    "",
    "dog",
    "A woman is not running in the rain.",
    "zqxv unheard-of",
    "A man is sleeping.",
    " ".join(WORDS * 5),
    "a man IS sleeping .",
    "The dog [SEP] the man",
    "\ud800 rain",
    "   ",
]


def small_encoder(pieces: Sequence[str] = (), **changes: Any) -> SentenceEncoder:
    tokenizer = build_tokenizer(WORDS, lowercase=True, pieces=pieces)
    model = DSAModel(small_config(vocab_size=len(tokenizer), **changes))
    return SentenceEncoder(randomize(model).eval(), tokenizer)


def save_encoder(folder: Path, **changes: Any) -> Path:
    encoder = small_encoder(**changes)
    encoder.model.save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    return folder


def many_sentences(count: int) -> list[str]:
    """Sentences of 0 to 11 words, many of them equal."""
    return [" ".join(WORDS[(row + index) % len(WORDS)] for index in range(row * row % 12)) for row in range(count)]


@torch.no_grad()
def vectors_one_by_one(encoder: SentenceEncoder, sentences: list[str]) -> Vectors:
    """`pooler_output` of each sentence as transformers' own calls give it, alone; a separator splits none.

    (sentences, width)
    """
    rows = []
    for sentence in sentences:
        plain = sentence.replace("\ud800", "\ufffd").replace("[SEP]", " ")
        batch = encoder.tokenizer([plain], return_tensors="pt")
        batch = {name: tensor.long() for name, tensor in batch.items()}  # an empty row is one of floats
        rows.append(encoder.model(**batch).pooler_output[0])
    return torch.stack(rows).numpy()
