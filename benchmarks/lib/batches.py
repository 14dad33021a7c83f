"""Batches of SNLI pairs, in the forms that this package's models and padded ones read."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modeling_dsa import DSAConfig, DSAForNLI
from modeling_dsa.packing_dsa import pack, sentence_masks
from modeling_dsa.text.tokenization import WordTokenizer, build_tokenizer, count_words

from .measuring import loss_of
from .operations import count_operations, count_training_operations
from .peers import Side
from .shipped import Pairs


@dataclass(frozen=True)
class Batch:
    """The same pairs in both forms, with their counts.

    Attributes:
        packed: Arguments of `DSAForNLI`: both sentences of a pair in one row, (pairs, tokens).
        padded: Ids and mask of each side, each (pairs, tokens).
        labels: (pairs,)
        tokens: Tokens of both sides, without padding.
        padded_tokens: With padding, in `padded`.
        operations: Floating point operations of encoding the pairs, as `operations.py` counts them.
        training_operations: Those of a training step.
    """

    packed: dict[str, Tensor]
    padded: tuple[Side, Side]
    labels: Tensor
    tokens: int
    padded_tokens: int
    operations: int
    training_operations: int

    def on_device(self, device: str) -> "Batch":
        """The same batch there."""
        first, second = ((ids.to(device), mask.to(device)) for ids, mask in self.padded)
        packed = {name: tensor.to(device) for name, tensor in self.packed.items()}
        return replace(self, packed=packed, padded=(first, second), labels=self.labels.to(device))


def prepare_pairs(pairs: Pairs, embedding_size: int = 300) -> tuple[DSAConfig, WordTokenizer]:
    """The config of single DSA for these pairs, and a tokenizer of their words."""
    words = count_words(pairs["premise"] + pairs["hypothesis"], lowercase=True)
    tokenizer = build_tokenizer(words, lowercase=True)
    options: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "embedding_size": embedding_size,
        "unknown_init_range": 0.5,  # vectors as long as GloVe's
        "sentences_per_example": 2,
        "num_labels": 3,
    }
    return DSAConfig(**options), tokenizer


def make_batches(pairs: Pairs, size: int, config: DSAConfig, tokenizer: WordTokenizer) -> list[Batch]:
    """Cut the pairs into batches of so many."""
    batches = []
    for start in range(0, len(pairs["label"]), size):
        part = {name: column[start : start + size] for name, column in pairs.items()}
        sides = part["premise"], part["hypothesis"]
        packed = dict(tokenizer(*sides, padding=True, return_tensors="pt"))
        first, second = (tokenizer(side, padding=True, return_tensors="pt") for side in sides)
        ids, mask, types = packed["input_ids"], packed["attention_mask"], packed["token_type_ids"]
        masks = sentence_masks(config, ids, mask, types)
        _, packing = pack(ids, masks, deduplicate=True)
        batches.append(
            Batch(
                packed=packed,
                padded=((first["input_ids"], first["attention_mask"]), (second["input_ids"], second["attention_mask"])),
                labels=torch.tensor(part["label"]),
                tokens=int(masks.sum()),
                padded_tokens=first["input_ids"].numel() + second["input_ids"].numel(),
                operations=count_operations(packing.lengths, config),
                training_operations=count_training_operations(packing.lengths, config),
            )
        )
    return batches


def padding_share(batches: list[Batch]) -> float:
    """The share of padding in the padded form."""
    return 1 - sum(batch.tokens for batch in batches) / sum(batch.padded_tokens for batch in batches)


def sort_pairs(pairs: Pairs) -> Pairs:
    """The pairs by their length, roughly: words between spaces."""
    lengths = [
        len(f"{first} {second}".split()) for first, second in zip(pairs["premise"], pairs["hypothesis"], strict=True)
    ]
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    return {name: [column[index] for index in order] for name, column in pairs.items()}


def batch_loss_of(model: nn.Module) -> Callable[[Batch], Tensor]:
    """The loss of a batch, in the form of it that the model reads."""
    if isinstance(model, DSAForNLI):
        ours = loss_of(model)
        return lambda batch: ours({**batch.packed, "labels": batch.labels})
    return lambda batch: F.cross_entropy(model(*batch.padded), batch.labels)
