"""What two texts of a pair have in common word by word, which vectors of whole sentences do not keep."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.utils import logging

from .compatibility_dsa import init
from .pooled_dsa import at_least_float32

logger = logging.get_logger(__name__)


class _Distinct(NamedTuple):
    """The distinct keys of all texts, each text's next to each other; shapes depend on the number of keys alone.

    Attributes:
        first: 1 where a key stands for the first time in its text, else 0. (keys,)
        shared: The same where the pair's other text has it too. (keys,)
        text: Which text each key is of. (keys,)
        key: The key without its text. (keys,)
    """

    first: Tensor
    shared: Tensor
    text: Tensor
    key: Tensor

    def sums(self, marks: Tensor, weights: Tensor, texts: int) -> Tensor:
        """Of each text the sum of the weights (keys,) of what is marked (keys,). (texts,)"""
        return weights.new_zeros(texts + 1).scatter_add(0, self.text, weights * marks)[:texts]


class TokenOverlap(nn.Module):
    """How much of each of two texts stands in the other.

    With A and B the sets of tokens of a pair's first and second text, and the weight w_t = softplus(v . e_t + c) of
    token t from its word vector e_t, these are five numbers: the shares w(A & B) / w(A) and w(A & B) / w(B), the cosine
    w^2(A & B) / sqrt(w^2(A) w^2(B)), and of the distinct pairs of neighbouring tokens of A the share that B has, and
    the reverse. An empty text gives 0. At first all tokens weigh the same, or as much as their inverse document
    frequency in the training texts, by which w_t is multiplied.
    """

    size = 5

    def __init__(self, in_size: int, vocab_size: int | None = None) -> None:
        """Of tokens with word vectors of width `in_size` [d_0], and of a table of `vocab_size` rows whose documents
        were counted, or None.
        """
        super().__init__()
        # Not a layer: transformers initialises no module that has neither parameters nor buffers of its own.
        self.score = nn.Parameter(torch.zeros(in_size))  # v
        self.bias = nn.Parameter(torch.zeros(1))  # c
        self.idf: Tensor | None
        self.register_buffer("idf", None if vocab_size is None else torch.ones(vocab_size))
        self._was_trained = False

    def init_own_weights(self) -> None:
        """At first all tokens weigh the same."""
        init.zeros_(self.score)
        init.zeros_(self.bias)
        if self.idf is not None:
            init.ones_(self.idf)

    def count_documents(self, frequencies: Tensor, documents: int) -> None:
        """Weigh tokens by idf_t = 1 + ln((1 + n) / (1 + f_t)), as scikit-learn does.

        Args:
            frequencies: In how many documents each token of the table stands [f_t]. (vocab_size,)
            documents: How many there are [n].
        """
        assert self.idf is not None
        self.idf.copy_(1 + ((1 + documents) / (1 + frequencies.float())).log())  # counts are beyond float16

    def resize(self, vocab_size: int) -> None:
        """Follow the word table to `vocab_size` rows; a new token is as rare as the rarest."""
        if self.idf is not None:
            new = self.idf.max().expand(max(0, vocab_size - len(self.idf)))
            self.idf = torch.cat([self.idf[:vocab_size], new])

    def forward(
        self, input_ids: Tensor, first: Tensor, second: Tensor, words: Callable[[Tensor], Tensor], vocab_size: int
    ) -> Tensor:
        """Compare the texts of each pair. Only real tokens cost, and a pair does not see the others.

        Args:
            input_ids: (batch, tokens)
            first: Tokens of the first text. (batch, tokens)
            second: Tokens of the second. (batch, tokens)
            words: The word table, from ids to vectors of width d_0. (keys,) -> (keys, d_0)
            vocab_size: Its rows.

        Returns:
            (batch, 5)

        Raises:
            ValueError: The word table has rows whose documents were not counted.
        """
        if self.idf is not None and len(self.idf) != vocab_size:
            raise ValueError(
                f"The word table has {vocab_size:,} rows and the overlap counts {len(self.idf):,}: add tokens by the "
                "classifier's own resize_token_embeddings."
            )
        self._hint_at_counts()
        batch, texts = input_ids.shape[0], 2 * input_ids.shape[0]
        row = torch.arange(batch, device=input_ids.device)[:, None]
        text = torch.where(first, 2 * row, torch.where(second, 2 * row + 1, texts)).flatten()
        # Each text's tokens next to each other, in their order; what is no token comes last.
        place = torch.arange(text.shape[0], device=text.device)
        order = (text * text.shape[0] + place).sort().indices
        text, ids = text[order], input_ids.flatten()[order].long()  # (batch * tokens,), whose pairs are beyond 32 bits
        if not torch.compiler.is_compiling():
            count = int((text < texts).sum())
            text, ids, place = text[:count], ids[:count], place[:count]
        tokens = _distinct(text, ids, vocab_size)
        weights = self._weights(tokens.key, words)  # (keys,)
        squares = weights * weights
        total, common = (tokens.sums(marks, weights, texts) for marks in (tokens.first, tokens.shared))
        square_total, square_common = (tokens.sums(marks, squares, texts) for marks in (tokens.first, tokens.shared))
        # Neighbours within a text; its last token, whose neighbour is another's, has none, nor has the last of all.
        is_inside = (text == text.roll(-1)) & (place < text.shape[0] - 1)
        neighbours = _distinct(torch.where(is_inside, text, texts), ids * vocab_size + ids.roll(-1), vocab_size**2)
        ones = torch.ones_like(neighbours.key, dtype=weights.dtype)
        counts, common_counts = (neighbours.sums(marks, ones, texts) for marks in (neighbours.first, neighbours.shared))
        norms = (square_total[0::2] * square_total[1::2]).clamp(min=1e-12).sqrt()  # (batch,)
        return torch.cat(
            [
                (common / total.clamp(min=1e-6)).view(batch, 2),
                (square_common[0::2] / norms)[:, None],
                (common_counts / counts.clamp(min=1)).view(batch, 2),
            ],
            dim=1,
        )

    def _hint_at_counts(self) -> None:
        """Say in the first step of a training that nothing was counted, where the config asks for it."""
        if self.idf is None or self._was_trained or not self.training or torch.compiler.is_compiling():
            return
        self._was_trained = True  # once: a GPU is waited for
        if not self.idf.is_meta and bool((self.idf == 1).all()):
            logger.warning(
                "pair_features name idf_overlap, and no documents were counted, so that all tokens weigh the same: "
                "call model.pair_features.overlap.count_documents before the training, or name overlap."
            )

    def _weights(self, ids: Tensor, words: Callable[[Tensor], Tensor]) -> Tensor:
        """What tokens weigh, in float32 or more. (keys,) -> (keys,)"""
        if torch.compiler.is_compiling():
            return self._weigh(ids, words)
        distinct, index = ids.unique(return_inverse=True)
        return self._weigh(distinct, words)[index]

    def _weigh(self, ids: Tensor, words: Callable[[Tensor], Tensor]) -> Tensor:
        """(tokens,) -> (tokens,)"""
        learnt = F.softplus((at_least_float32(words(ids)) * self.score).sum(1) + self.bias)
        return learnt if self.idf is None else learnt * self.idf[ids]


def _distinct(text: Tensor, key: Tensor, keys: int) -> _Distinct:
    """Find the distinct keys of each text, and those that its pair's other text has too.

    Args:
        text: Of each key; texts 2 i and 2 i + 1 are a pair, and the last, an even one, stands for what is none. (keys,)
        key: From 0. (keys,)
        keys: How many different ones there could be.
    """
    found = ((text // 2 * keys + key) * 2 + text % 2).sort().values  # by pair, then key, then text (keys,)
    of_pair, side = found // 2, found % 2
    first = _changes(found)
    group = _changes(of_pair).long().cumsum(0) - 1  # of the keys that are equal in a pair
    has = found.new_zeros(2 * found.shape[0]).scatter_add(0, 2 * group + side, torch.ones_like(found))
    shared = first & (has[2 * group + 1 - side] > 0)
    return _Distinct(first, shared, of_pair // keys * 2 + side, of_pair % keys)


def _changes(values: Tensor) -> Tensor:
    """Where a value is another than the one before it. (keys,) -> (keys,)"""
    return torch.cat([torch.ones_like(values[:1], dtype=torch.bool), values[1:] != values[:-1]])
