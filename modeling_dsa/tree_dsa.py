"""Gumbel Tree-LSTM: a pooling that composes a sentence's tokens two by two, in an order that it learns."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .compatibility_dsa import init
from .config_fields_dsa import DSAConfigFields
from .packing_dsa import Packing
from .pooled_dsa import Pooled, at_least_float32
from .systems_dsa import Pooling

State = tuple[Tensor, Tensor]  # h and c


class GumbelTreeLSTM(Pooling):
    """Choi, Yoo and Lee, "Learning to Compose Task-Specific Tree Structures" (2018).

    A leaf LSTM gives each token a state (h, c). Then, until one node is left, every pair of neighbours is composed by
    a binary Tree-LSTM, a query scores the candidates, q . h, and one of them takes the place of its children: in
    training a sample by the straight-through Gumbel-softmax, at prediction the best. The vector is the root's h.
    """

    description = "the root of a tree over its words, whose shape the model chooses (Gumbel Tree-LSTM)"
    own_fields = frozenset({"tree_size", "gumbel_temperature"})
    has_heads = has_attention = False
    is_unrolled = True

    def __init__(self, config: DSAConfigFields, in_size: int) -> None:
        super().__init__(config, in_size)
        size = config.tree_size
        self.leaf = nn.LSTMCell(in_size, size)
        self.composition = nn.Linear(2 * size, 5 * size)  # i, f_l, f_r, u, o of [h_l; h_r]
        self.query = nn.Parameter(torch.zeros(size))  # q
        self.temperature = config.gumbel_temperature

    def init_own_weights(self) -> None:
        """The query."""
        init.normal_(self.query, std=0.01)

    @classmethod
    def output_size(cls, config: DSAConfigFields, in_size: int) -> int:
        """D_h"""
        return config.tree_size

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (1, U, D_h); there are no weights."""
        vectors = tokens.new_zeros(packing.lengths.shape[0], self.query.shape[0])  # (U, D_h)
        rectangles = packing.rectangles()
        if not rectangles:  # a batch of empty sentences, in which every weight still needs its gradient of 0
            rectangles = [(packing.lengths.new_zeros(0, 2), packing.lengths.new_zeros(0, 2, dtype=torch.bool))]
        for index, inside in rectangles:  # (sentences, tokens)
            if index.shape[1] == 1:  # a composition that nothing uses gives every weight its gradient of 0
                index = index.expand(-1, 2)
            roots = self._root(self._leaves(tokens[index]), inside.sum(1))  # (sentences, D_h)
            if packing.has_padding_segment:
                sentences = torch.arange(index.shape[0], device=index.device)
            else:
                sentences = packing.sentence_of_token[index[:, 0]]
            vectors = vectors.index_copy(0, sentences, roots.to(vectors.dtype))
        return Pooled(vectors.masked_fill(packing.lengths[:, None] == 0, 0.0)[None], [], packing)

    def _leaves(self, words: Tensor) -> State:
        """(sentences, tokens, d_c) -> h and c, each (sentences, tokens, D_h)"""
        h = c = words.new_zeros(words.shape[0], self.query.shape[0])
        states = []
        for word in words.unbind(1):
            h, c = self.leaf(word, (h, c))
            states.append((h, c))
        hs, cs = (torch.stack(part, dim=1) for part in zip(*states, strict=True))
        return hs, cs

    def _root(self, state: State, lengths: Tensor) -> Tensor:
        """The h of the last node of each sentence. (sentences, tokens, D_h) twice, (sentences,) -> (sentences, D_h)"""
        for _left in range(state[0].shape[1] - 1, 0, -1):  # candidates of the longest sentence
            lengths = lengths - 1  # of each sentence
            candidates = self._compose(state)  # (sentences, left, D_h) twice
            chosen = self._choose(candidates[0], lengths)  # (sentences, left, 1)
            passed = chosen.cumsum(1)  # 1 from the chosen candidate on
            stay, move = 1 - passed, passed - chosen  # nodes before it stay, those behind it move up
            is_open = (lengths > 0)[:, None, None]
            merged = (
                torch.where(is_open, chosen * new + stay * old[:, :-1] + move * old[:, 1:], old[:, :-1])
                for new, old in zip(candidates, state, strict=True)
            )
            state = (next(merged), next(merged))
        return state[0][:, 0]

    def _compose(self, state: State) -> State:
        """Every node with its right neighbour. (sentences, nodes, D_h) -> (sentences, nodes - 1, D_h)"""
        h, c = state
        gates = self.composition(torch.cat([h[:, :-1], h[:, 1:]], dim=2))
        entry, forget_left, forget_right, update, output = gates.chunk(5, dim=2)
        # The forget gates start open, as in the released code.
        kept = (forget_left + 1).sigmoid() * c[:, :-1] + (forget_right + 1).sigmoid() * c[:, 1:]
        composed = kept + entry.sigmoid() * update.tanh()
        return output.sigmoid() * composed.tanh(), composed

    def _choose(self, candidates: Tensor, counts: Tensor) -> Tensor:
        """1 for one of the first `counts` candidates of each sentence, 0 for the others.

        (sentences, left, D_h), (sentences,) -> (sentences, left, 1)
        """
        scores = at_least_float32(candidates @ self.query)  # (sentences, left)
        position = torch.arange(scores.shape[1], device=scores.device)
        # A sentence whose tree is done has no candidate; what is chosen there is not used.
        scores = scores.masked_fill(position >= counts[:, None].clamp(min=1), -torch.inf)
        if self.training:
            chosen = F.gumbel_softmax(scores, tau=self.temperature, hard=True)
        else:
            chosen = F.one_hot(scores.argmax(1), scores.shape[1])
        return chosen.to(candidates.dtype)[..., None]
