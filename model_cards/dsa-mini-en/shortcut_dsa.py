"""The way past encoder and pooling: what the words of a sentence add to its vector by themselves."""

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

    def __init__(self, in_size: int, out_size: int) -> None:
        """A shortcut from word vectors of width `in_size` [d_0] to sentence vectors of width `out_size`."""
        super().__init__()
        # Not a layer: transformers initialises no module that has neither parameters nor buffers of its own.
        self.score = nn.Parameter(torch.zeros(in_size))  # v
        self.projection = nn.Linear(in_size, out_size, bias=False)  # S
        self.folded: FoldedShortcut | None = None

    def init_own_weights(self) -> None:
        """At first the plain mean of the word vectors, as they are."""
        init.zeros_(self.score)
        init.eye_(self.projection.weight)

    def forward(self, tokens: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """Word vectors (N, d_0) -> what is added, (U, out_size), 0 to an empty sentence, and the weights a, (1, N)."""
        weights = packing.softmax(at_least_float32(tokens @ self.score)[None])  # (1, N)
        return self.projection(sum_tokens(weights, tokens, packing)), weights


class FoldedShortcut(nn.Module):
    """[`WordShortcut`] over a fixed word table: score and image of each word, for prediction."""

    scores: Tensor
    images: Tensor

    @torch.no_grad()
    def __init__(self, shortcut: WordShortcut, table: Tensor) -> None:
        """Fold a shortcut over the word table (V, d_0)."""
        super().__init__()
        self.register_buffer("scores", at_least_float32(table @ shortcut.score), persistent=False)  # (V,)
        self.register_buffer("images", shortcut.projection(table), persistent=False)  # (V, out_size)

    def forward(self, ids: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """Ids of packed tokens (N,) -> what is added, (U, out_size), and the weights, (1, N)."""
        weights = packing.softmax(self.scores.index_select(0, ids)[None])  # (1, N)
        of_images = weights[0].to(self.images.dtype)  # (N,)
        return F.embedding_bag(ids, self.images, packing.offsets, mode="sum", per_sample_weights=of_images), weights
