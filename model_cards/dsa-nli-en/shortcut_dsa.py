"""The way past encoder and pooling: what the words of a sentence add to its vector by themselves."""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .compatibility_dsa import init
from .packing_dsa import Packing
from .pooled_dsa import at_least_float32, sum_tokens


class WordShortcut(nn.Module):
    """S sum_i a_i e_i with a = softmax_i(v . e_i): static attention over a sentence's word vectors e_i.

    Weight and image of a word depend on the word alone, so at prediction both can be looked up.
    """

    folded_scores: Tensor | None
    folded_table: Tensor | None

    def __init__(self, in_size: int, out_size: int) -> None:
        """A shortcut from word vectors of width `in_size` [d_0] to sentence vectors of width `out_size`."""
        super().__init__()
        # Not a layer: transformers initialises no module that has neither parameters nor buffers of its own.
        self.score = nn.Parameter(torch.zeros(in_size))  # v
        self.projection = nn.Linear(in_size, out_size, bias=False)  # S
        self.register_buffer("folded_scores", None, persistent=False)
        self.register_buffer("folded_table", None, persistent=False)

    def init_own_weights(self) -> None:
        """At first the plain mean of the word vectors, as they are."""
        init.zeros_(self.score)
        init.eye_(self.projection.weight)

    def forward(self, tokens: Tensor, packing: Packing) -> Tensor:
        """Word vectors (N, d_0) -> (U, out_size); an empty sentence gives 0."""
        weights = packing.softmax(at_least_float32(tokens @ self.score)[None])  # (1, N)
        added: Tensor = self.projection(sum_tokens(weights, tokens, packing))
        return added

    @torch.no_grad()
    def fold(self, table: Tensor) -> None:
        """For prediction: score and image of each word of the table (V, d_0)."""
        self.folded_scores = at_least_float32(table @ self.score)  # (V,)
        self.folded_table = self.projection(table)  # (V, out_size)

    def unfold(self) -> None:
        """Undo `fold`."""
        self.folded_scores = self.folded_table = None

    def look_up(self, ids: Tensor, packing: Packing) -> Tensor:
        """What `forward` gives for the words of the table. Ids of packed tokens (N,) -> (U, out_size)"""
        scores, table = cast(Tensor, self.folded_scores), cast(Tensor, self.folded_table)
        weights = packing.softmax(scores.index_select(0, ids)[None])[0]  # (N,)
        return F.embedding_bag(ids, table, packing.offsets, mode="sum", per_sample_weights=weights.to(table.dtype))
