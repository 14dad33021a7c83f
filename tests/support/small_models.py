"""Small configs, models and batches that the tests of the model core share."""

from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from modeling_dsa import DSAConfig
from modeling_dsa.packing_dsa import Packing, pack

PAD, SEP = 0, 2
FIRST_TOKEN, VOCABULARY = 3, 40

Model = TypeVar("Model", bound=nn.Module)

# One way, or two, of each encoder and each pooling of the family beside the dense CNN with dynamic self-attention.
ENCODER_CASES: dict[str, dict[str, Any]] = {
    "no encoder": {"encoder": "none"},
    "kim_cnn": {"encoder": "kim_cnn", "kernel_sizes": [3, 2, 4], "hidden_size": 6},
    "bilstm": {"encoder": "bilstm", "hidden_size": 6},
    "residual_bilstm": {"encoder": "residual_bilstm", "hidden_size": 4},
    "pairwise encoder": {"encoder": "pairwise"},
    "directional": {"encoder": "directional", "hidden_size": 6},
    "distance": {
        "encoder": "distance",
        "hidden_size": 8,
        "encoder_attention_heads": 2,
        "distance_weight": 0.5,
        "feedforward_size": 7,
    },
}
POOLING_CASES: dict[str, dict[str, Any]] = {
    "mean": {"pooling": "mean"},
    "max": {"pooling": "max"},
    "last": {"pooling": "last", "encoder": "bilstm", "hidden_size": 6, "num_hidden_layers": 1},
    "static": {"pooling": "static"},
    "structured": {"pooling": "structured", "num_attention_heads": 3, "attention_penalty": 0.3},
    "inner": {"pooling": "inner", "num_attention_heads": 2},
    "multi_dimensional": {"pooling": "multi_dimensional"},
    "multi_dimensional_max": {"pooling": "multi_dimensional_max"},
    "reinforced": {"pooling": "reinforced"},
    "gumbel_tree": {"pooling": "gumbel_tree", "tree_size": 2},
    "pairwise": {"pooling": "pairwise", "num_attention_heads": 2},
    "pairwise by position": {"pooling": "pairwise", "latent": "sentence", "max_sentence_tokens": 8},
    "variational": {"pooling": "variational"},
    "variational by position": {
        "pooling": "variational",
        "latent": "sentence",
        "max_sentence_tokens": 8,
        "num_attention_heads": 2,
    },
}
# For tests of whole models, which take their time: the encoders and poolings of Table 1's other systems together, as in
# their papers.
_TOGETHER = {
    "residual": ("residual_bilstm", "inner"),
    "disan": ("directional", "multi_dimensional"),
    "distance-san": ("distance", "multi_dimensional_max"),
}
SYSTEM_CASES: dict[str, dict[str, Any]] = {
    **{
        name: changes
        for name, changes in (ENCODER_CASES | POOLING_CASES).items()
        if not any(name in pair for pair in _TOGETHER.values())
    },
    **{name: ENCODER_CASES[encoder] | POOLING_CASES[pooling] for name, (encoder, pooling) in _TOGETHER.items()},
}
# A tree, which takes as many steps as the longest sentence has tokens, is neither compiled nor exported.
GRAPH_CASES = {name: changes for name, changes in SYSTEM_CASES.items() if name != "gumbel_tree"}
WITHOUT_WEIGHTS = ("last", "gumbel_tree")  # poolings that do not say how much of each token they take
# What may follow the pooling.
PROJECTION_CASES: dict[str, dict[str, Any]] = {
    "projection": {"projection_size": 5, "num_attention_heads": 2},
    "shortcut": {"projection_size": 5, "word_shortcut": True, "num_attention_heads": 2},
    "shortcut, variational": {"projection_size": 5, "word_shortcut": True, "pooling": "variational"},
}

# Ids of pairs: copies of sentences, one sentence as premise and as hypothesis, sentences without tokens.
EXAMPLE_PAIRS: list[tuple[list[int], list[int]]] = [
    ([5, 6, 7, 8, 9], [10, 11]),
    ([12], [13]),
    ([5, 6, 7, 8, 9], [14, 15, 16, 17, 18, 19, 20]),
    ([], [21, 22]),
    ([23, 5, 5], []),
    ([10, 11], [5, 6, 7, 8, 9]),
]


def small_config(**changes: Any) -> DSAConfig:
    """A config of a few hundred weights whose word vectors are of ordinary size."""
    settings: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "pad_token_id": PAD,
        "sep_token_id": SEP,
        "embedding_size": 6,
        "unknown_init_range": 1.0,
        "hidden_size": 5,
        "first_layer_size": 4,
        "growth_size": 3,
        "num_hidden_layers": 2,
        "attention_head_size": 4,
        "attention_hidden_size": 7,
        "latent_size": 3,
        "classifier_hidden_sizes": [6, 5],
        "num_labels": 3,
    }
    return DSAConfig(**(settings | changes))


def randomize(model: Model, seed: int = 0) -> Model:
    """Give every weight and running statistic a random value, so that no term hides behind a bias of 0."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                value.normal_(0.0, 0.5, generator=generator)
                if name.endswith("running_var"):
                    value.abs_().add_(0.1)
    return model


def pad_rows(
    rows: Sequence[Sequence[int]], left: int | Sequence[int] = 0, right: int = 0, fill: int = PAD
) -> tuple[Tensor, Tensor]:
    """Rows of ids with `left` fillers before and at least `right` after: ids and attention mask, (batch, tokens)."""
    lefts = [left] * len(rows) if isinstance(left, int) else list(left)
    width = max(before + len(row) for before, row in zip(lefts, rows, strict=True)) + right
    ids = torch.full((len(rows), width), fill)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for number, (before, row) in enumerate(zip(lefts, rows, strict=True)):
        ids[number, before : before + len(row)] = torch.tensor(row, dtype=torch.long)
        mask[number, before : before + len(row)] = 1
    return ids, mask


def join_pair(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """`premise [SEP] hypothesis`"""
    return [*first, SEP, *second]


def packing_of(lengths: Sequence[int]) -> Packing:
    """The packing of sentences with these lengths, all different."""
    mask = torch.arange(max(lengths) + 1) < torch.tensor(lengths)[:, None]
    return pack(None, mask[:, None], deduplicate=False)[1]
