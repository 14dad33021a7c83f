"""Reinforced self-attention (ReSA): hard attention chooses tokens, and soft self-attention runs between those.

Shen, Zhou, Long, Jiang, Wang and Zhang, "Reinforced Self-Attention Network: a Hybrid of Hard and Soft Attention for
Sequence Modeling" (2018). What it chooses has no gradient; REINFORCE teaches it, by the loss of the classifier.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .compatibility_dsa import init
from .config_fields_dsa import DSAConfigFields
from .directional_dsa import DirectionalSelfAttention
from .layers_dsa import DropoutLinear
from .packing_dsa import Packing
from .pooled_dsa import at_least_float32, equal_weights, sum_tokens


@dataclass(frozen=True)
class Choice:
    """Which tokens are chosen.

    Attributes:
        chosen: (N,), bool.
        log_probability: Of choosing just these of each sentence. (U,)
        share: Of each sentence's tokens. (U,)
    """

    chosen: Tensor
    log_probability: Tensor
    share: Tensor


class SequenceSampler(nn.Module):
    """Reinforced sequence sampling (RSS): every token is chosen or not, by itself.

    p_i = sigmoid(w^T ELU(W [x_i; m; x_i * m] + b) + c), where m is the mean of the sentence's tokens.
    """

    def __init__(self, config: DSAConfigFields, in_size: int) -> None:
        super().__init__()
        self.hidden = DropoutLinear(config, 3 * in_size, config.attention_hidden_size)  # W and b
        self.score = DropoutLinear(config, config.attention_hidden_size, 1)  # w and c

    def forward(self, tokens: Tensor, packing: Packing, draws: bool, takes_all: Tensor) -> Choice:
        """Draw by p_i or, where nothing is drawn, choose where p_i is at least a half; or choose all. (N, in_size)"""
        mean = sum_tokens(equal_weights(tokens, packing), tokens, packing)  # (U, in_size)
        mean = mean.index_select(0, packing.sentence_of_token)  # (N, in_size)
        scores = self.score(F.elu(self.hidden(torch.cat([tokens, mean, tokens * mean], dim=1))))
        logits = at_least_float32(scores).squeeze(1)  # (N,)
        chosen = (torch.rand_like(logits) < logits.sigmoid()) if draws else (logits >= 0)
        chosen = chosen | takes_all
        log_probabilities = F.logsigmoid(torch.where(chosen, logits, -logits)).masked_fill(takes_all, 0.0)  # (N,)
        per_token = torch.stack([log_probabilities, chosen.to(logits.dtype)], dim=1)  # (N, 2)
        totals = sum_tokens(torch.ones_like(logits)[None], per_token, packing)  # (U, 2)
        return Choice(chosen, totals[:, 0], totals[:, 1].detach() / packing.lengths.clamp(min=1))


class ChosenSelfAttention(DirectionalSelfAttention):
    """One direction of ReSA: DiSAN's attention between chosen tokens.

    A chosen head attends to the chosen dependents on its side; any other token gets the mean of all others in its
    sentence.
    """

    def forward(self, tokens: Tensor, packing: Packing, heads: Tensor, dependents: Tensor) -> Tensor:  # type: ignore[override]
        """(N, in_size), and which tokens are chosen, each (N,) -> (N, size)"""
        tokens = F.elu(self.projection(tokens))  # (N, size)
        contexts = torch.where(
            heads[:, None], self.contexts(tokens, packing, dependents), _mean_of_others(tokens, packing)
        )
        fused: Tensor = self.fusion(tokens, contexts)
        return fused


def _mean_of_others(tokens: Tensor, packing: Packing) -> Tensor:
    """Of each token: the mean of all others in its sentence, 0 where there are none. (N, size) -> (N, size)"""
    exact = at_least_float32(tokens)
    (sums,) = packing.weighted_sum(exact.new_ones(1, exact.shape[0]), exact)  # (U, size)
    counts = (packing.lengths - 1).clamp(min=1)[:, None]  # (U, 1)
    of_token = packing.sentence_of_token
    mean: Tensor = (sums.index_select(0, of_token) - exact) / counts.index_select(0, of_token)
    return mean.to(tokens.dtype)


class ReinforcedSelfAttention(nn.Module):
    """Two samplers, of heads and of dependents, and both directions of attention between what they choose.

    In the first `config.soft_attention_steps` training batches everything is chosen, so that the soft attention is
    worth something when it begins to reward the hard one.
    """

    step: Tensor

    def __init__(self, config: DSAConfigFields, in_size: int, out_size: int) -> None:
        super().__init__()
        self.heads, self.dependents = SequenceSampler(config, in_size), SequenceSampler(config, in_size)
        self.forwards = ChosenSelfAttention(config, in_size, out_size // 2, backwards=False)
        self.backwards = ChosenSelfAttention(config, in_size, out_size // 2, backwards=True)
        self.soft_attention_steps = config.soft_attention_steps
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))  # training batches so far

    def init_own_weights(self) -> None:
        """No batch has been seen."""
        init.zeros_(self.step)

    def forward(self, tokens: Tensor, packing: Packing, draws: bool) -> tuple[Tensor, Tensor, Tensor]:
        """The tokens, and by sentence the log-probability of all choices and the share of pairs that they leave.

        (N, in_size) -> (N, out_size), (U,), (U,)
        """
        takes_all = self.step < self.soft_attention_steps
        if draws:
            self.step += 1
        seen = tokens.detach()  # nothing but the samplers learns from their reward
        heads = self.heads(seen, packing, draws, takes_all)
        dependents = self.dependents(seen, packing, draws, takes_all)
        sides = [side(tokens, packing, heads.chosen, dependents.chosen) for side in (self.forwards, self.backwards)]
        log_probability = heads.log_probability + dependents.log_probability
        return torch.cat(sides, dim=1), log_probability, heads.share * dependents.share


def policy_loss(logits: Tensor, labels: Tensor, log_probability: Tensor, share: Tensor, penalty: float) -> Tensor:
    """What teaches the samplers: its value is 0, its gradient that of REINFORCE without a baseline.

    A choice costs the cross-entropy of its example and `penalty` for the share of pairs that it leaves.

    Args:
        logits: (batch, classes)
        labels: Classes; an example of the label -100 is left out, as in cross-entropy. (batch,)
        log_probability: Of each sentence's choices. (batch, 1 or 2)
        share: Of the pairs of its tokens, heads and dependents, those that they leave. (batch, 1 or 2)
        penalty: lambda.

    Returns:
        ()
    """
    costs = F.cross_entropy(at_least_float32(logits.detach()), labels, reduction="none")[:, None] + penalty * share
    is_labelled = labels != -100  # (batch,)
    expected = ((costs * log_probability).sum(1) * is_labelled).sum() / is_labelled.sum()
    return expected - expected.detach()


__all__ = ["ReinforcedSelfAttention", "policy_loss"]
