"""What a classifier of pairs sees of two sentence vectors."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config_fields_dsa import OVERLAPS
from .configuration_dsa import DSAConfig
from .overlap_dsa import TokenOverlap
from .pooled_dsa import at_least_float32


class GatedEncoder(nn.Module):
    """F_r = F_h * F_p with F_h = batcheddot(M_h, W_fh) and F_p = batcheddot(M_p, W_fp): Lin et al. (2017), Appendix B.

    M_p and M_h are two sentences' matrices with a row for each head, and each row has a linear map of its own.
    """

    def __init__(self, heads: int, head_size: int, out_size: int) -> None:
        """Of vectors of `heads` parts, each of width `head_size` [2u], to `out_size` numbers a head."""
        super().__init__()
        sizes = (heads * head_size, heads * out_size)
        self.first = nn.Conv1d(*sizes, kernel_size=1, groups=heads, bias=False)  # W_fp
        self.second = nn.Conv1d(*sizes, kernel_size=1, groups=heads, bias=False)  # W_fh

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """(batch, heads * head_size) twice -> (batch, heads * out_size)"""
        factors: Tensor = self.first(first[:, :, None]) * self.second(second[:, :, None])
        return factors.flatten(1)


class PairFeatures(nn.Module):
    """Heuristic matching (Section 4.1) and what else `config.pair_features` names, in its order."""

    def __init__(self, config: DSAConfig) -> None:
        super().__init__()
        self.names = tuple(config.pair_features)
        self.compared_heads = config.compared_heads
        self.gates: GatedEncoder | None = None
        if "gated" in self.names:
            heads = config.num_attention_heads
            self.gates = GatedEncoder(heads, config.sentence_embedding_size // heads, config.gated_size)
        self.overlap: TokenOverlap | None = None
        if config.compares_tokens:
            counted = config.vocab_size if "idf_overlap" in self.names else None
            self.overlap = TokenOverlap(config.embedding_size, counted)

    def forward(self, first: Tensor, second: Tensor, overlap: Tensor | None) -> Tensor:
        """Lay the features side by side.

        Args:
            first: Vectors. (batch, width)
            second: Vectors. (batch, width)
            overlap: What `self.overlap` says of the texts, where it is one of the features. (batch, 5)

        Returns:
            (batch, config.classifier_input_size)
        """
        return torch.cat([self._feature(name, first, second, overlap) for name in self.names], dim=-1)

    def _feature(self, name: str, first: Tensor, second: Tensor, overlap: Tensor | None) -> Tensor:
        if name == "first":
            return first
        if name == "second":
            return second
        if name == "difference":
            return (first - second).abs()
        if name == "signed_difference":
            return first - second
        if name == "product":
            return first * second
        if self.gates is not None and name == "gated":
            factors: Tensor = self.gates(first, second)
            return factors
        if name in OVERLAPS:
            assert overlap is not None
            return overlap.to(first.dtype)
        # What keeps the cosine of an empty text from 0 / 0 is 0 in half precision.
        exact = at_least_float32(first), at_least_float32(second)
        cosines = [F.cosine_similarity(*exact)[:, None]]
        if self.compared_heads:
            of_first, of_second = (vectors.unflatten(1, (self.compared_heads, -1)) for vectors in exact)
            cosines.append(F.cosine_similarity(of_first, of_second, dim=-1))
        return torch.cat(cosines, dim=-1).to(first.dtype)
