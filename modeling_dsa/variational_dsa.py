"""Variational self-attention (VSAM) and its deterministic twin: poolings whose attention comes from a latent variable.

Zhang, Liang and Yilmaz, "Variational Self-attention Model for Sentence Representation" (2018). The paper leaves open
how one vector z gives weights for n tokens; `config.latent` has both interpretations.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .compatibility_dsa import init
from .config_fields_dsa import DSAConfigFields
from .packing_dsa import Packing
from .pairwise_dsa import PairwiseSelfAttention
from .pooled_dsa import Pooled, at_least_float32, equal_weights, sum_tokens
from .systems_dsa import Encoder, Pooling, refuse_other_labels

# Samples disturb a new model's scores by about a fifth. With sigma = 1 they would be noise through most of a short run.
INITIAL_LOG_STD = -2.0


class _Prediction(local):  # other threads may predict with samples; torch.compile cannot read a ContextVar
    samples: int | None = None  # in place of the model's own `num_prediction_samples`


_PREDICTION = _Prediction()


@contextmanager
def prediction_samples(count: int) -> Iterator[None]:
    """Inside the block this thread's predictions come from so many samples, whatever `num_prediction_samples` says.

    Args:
        count: 0 for the prior's mean.
    """
    before, _PREDICTION.samples = _PREDICTION.samples, count
    try:
        yield
    finally:
        _PREDICTION.samples = before


def kl_divergence(mean_q: Tensor, log_std_q: Tensor, mean_p: Tensor, log_std_p: Tensor) -> Tensor:
    """KL(q || p) of two diagonal Gaussians, in nats. Each (..., latent) -> (...)"""
    variance_ratio = (2 * (log_std_q - log_std_p)).exp()
    distance = ((mean_q - mean_p) * (-log_std_p).exp()).square()
    return (log_std_p - log_std_q + (variance_ratio + distance - 1) / 2).sum(-1)


class PairwisePooling(Pooling):
    """VSAM without its variational part, the paper's baseline: the same attention from the mean of z alone.

    pi = f(H) (Eq. 6), mu = l_1(pi) (Eq. 7), a = softmax(tanh(W^z mu)) over the tokens, s = H a. With m heads W^z has m
    rows for each token, and s is the concatenation.
    """

    description = (
        "a weighted sum of its words. Pairwise self-attention gives the weights: it compares all words with each other"
    )
    own_fields = frozenset({"hidden_dropout", "attention_hidden_size", "latent", "latent_size"})
    has_latent = True

    def __init__(self, config: DSAConfigFields, in_size: int) -> None:
        super().__init__(config, in_size)
        width = config.attention_hidden_size
        self.pairs = PairwiseSelfAttention(config, in_size, width)  # f_theta
        self.mean = nn.Linear(width, config.latent_size)  # l_1
        self.latent_of_tokens = config.latent == "token"
        positions = 1 if self.latent_of_tokens else cast(int, config.max_sentence_tokens)
        self.score = nn.Linear(config.latent_size, config.num_attention_heads * positions, bias=False)  # W^z
        self.heads = config.num_attention_heads

    @classmethod
    def validate(cls, config: DSAConfigFields, encoder: type[Encoder]) -> None:
        """A weight a position needs a number of positions."""
        super().validate(config, encoder)
        if config.latent == "sentence" and config.max_sentence_tokens is None:
            raise ValueError(
                "latent 'sentence' has one weight a position: set max_sentence_tokens, the longest length."
            )

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (1, U, m * d_c) and the weights, (m, N)."""
        latents = self.mean(self.features(self.pairs(tokens, packing), packing))
        weights = self.attention(latents[None], packing)[0]  # (m, N)
        return Pooled(sum_tokens(weights, tokens, packing)[None], [weights], packing)

    def features(self, pi: Tensor, packing: Packing) -> Tensor:
        """What has a latent variable of its own: each token or, as the mean of its tokens, each sentence.

        (N, width) -> (N or U, width)
        """
        if self.latent_of_tokens:
            return pi
        return sum_tokens(equal_weights(pi, packing), pi, packing)

    def attention(self, latents: Tensor, packing: Packing) -> Tensor:
        """a = softmax(tanh(W^z z)). (samples, N or U, latent) -> (samples, m, N)"""
        scores = at_least_float32(torch.tanh(self.score(latents)))
        if self.latent_of_tokens:
            scores = scores.transpose(1, 2)  # (samples, m, N)
        else:
            positions = scores.shape[2] // self.heads
            scores = scores.unflatten(2, (self.heads, positions))  # (samples, U, m, positions)
            position = packing.positions.clamp(max=positions - 1)  # a packing's rest may be longer
            scores = scores.permute(1, 3, 0, 2)[packing.sentence_of_token, position]  # (N, samples, m)
            scores = scores.permute(1, 2, 0)
        return packing.softmax(scores.flatten(0, 1)).view_as(scores)


class VariationalSelfAttention(PairwisePooling):
    """VSAM: attention from samples of z.

    The prior p(z|H) (Eq. 6 to 8) sees the tokens; in training the posterior q(z|H, y) (Eq. 9 and 10) sees the class of
    the example too. Samples are z = mu + sigma * epsilon, so that gradients reach both. What the posterior network
    gives, l_3 and l_4, is added to the prior's mu and log sigma: so the likelihood trains the prior as well, which
    alone predicts, and KL(q || p) starts at 0, where a long text would otherwise start a million nats from its label.
    """

    description = (
        "a weighted sum of its words. Variational self-attention (VSAM) gives the weights, from a latent variable"
    )
    own_fields = PairwisePooling.own_fields | {
        "kl_weight",
        "kl_warmup_steps",
        "num_training_samples",
        "num_prediction_samples",
    }
    has_samples = True
    learns_from_classes = True
    step: Tensor

    def __init__(self, config: DSAConfigFields, in_size: int) -> None:
        super().__init__(config, in_size)
        width = config.attention_hidden_size
        self.log_std = nn.Linear(width, config.latent_size)  # l_2
        self.posterior_pairs = PairwiseSelfAttention(config, in_size, width)  # f_phi over H
        self.posterior_joint = nn.Linear(width, width)  # g, with the class's vector
        self.class_vectors = nn.Linear(cast(int, config.num_labels), width, bias=False)
        self.posterior_mean = nn.Linear(width, config.latent_size)  # l_3
        self.posterior_log_std = nn.Linear(width, config.latent_size)  # l_4
        self.negative_slope = config.negative_slope
        self.training_samples, self.prediction_samples = config.num_training_samples, config.num_prediction_samples
        self.kl_weight, self.kl_warmup_steps = config.kl_weight, config.kl_warmup_steps
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))  # training batches so far

    def init_own_weights(self) -> None:
        """Weights start at 0 in l_2, so that sigma is the same everywhere, l_3 and l_4."""
        init.zeros_(self.step)
        for layer in (self.log_std, self.posterior_mean, self.posterior_log_std):
            init.zeros_(layer.weight)
        init.constant_(self.log_std.bias, INITIAL_LOG_STD)

    @classmethod
    def validate(cls, config: DSAConfigFields, encoder: type[Encoder]) -> None:
        """The posterior reads a class."""
        super().validate(config, encoder)
        refuse_other_labels(config, f"pooling '{config.pooling}' has a posterior that reads one class an example")

    def forward(self, tokens: Tensor, packing: Packing, classes: Tensor | None = None) -> Pooled:
        """(N, d_c) -> vectors (samples, V, m * d_c), the weights, (m, M), and in training the KL divergence.

        In training copies of a sentence in examples of different classes have posteriors of their own, so they become V
        sentences of M tokens.
        """
        features = self.features(self.pairs(tokens, packing), packing)
        mean, log_std = (at_least_float32(layer(features)) for layer in (self.mean, self.log_std))  # (N or U, latent)
        if not self.training or classes is None:
            samples = self.prediction_samples if _PREDICTION.samples is None else _PREDICTION.samples
            return self._pool(_sample(mean, log_std, samples) if samples else mean[None], tokens, packing)

        seen = self.posterior_joint(self.features(self.posterior_pairs(tokens, packing), packing))  # (N or U, width)
        classes, sentences, token_index, packing = packing.split_by_class(classes, self.class_vectors.in_features)
        one_hot = F.one_hot(classes, self.class_vectors.in_features).to(seen.dtype)  # (V, classes)
        class_vectors = self.class_vectors(one_hot)  # (V, width)
        if self.latent_of_tokens:
            units, class_vectors = token_index, class_vectors.index_select(0, packing.sentence_of_token)  # (M, width)
        else:
            units = sentences
        joint = F.leaky_relu(seen.index_select(0, units) + class_vectors, self.negative_slope)  # (M or V, width)
        mean, log_std = mean.index_select(0, units), log_std.index_select(0, units)  # (M or V, latent)
        mean_q = mean + self.posterior_mean(joint)
        log_std_q = log_std + self.posterior_log_std(joint)
        kl = kl_divergence(mean_q, log_std_q, mean, log_std)  # (M or V,)
        if self.latent_of_tokens:
            kl = kl.new_zeros(packing.lengths.shape[0]).index_add(0, packing.sentence_of_token, kl)  # (V,)
        pooled = self._pool(
            _sample(mean_q, log_std_q, self.training_samples), tokens.index_select(0, token_index), packing
        )
        pooled.kl, pooled.kl_weight = kl, self._next_kl_weight()
        return pooled

    def _pool(self, latents: Tensor, tokens: Tensor, packing: Packing) -> Pooled:
        weights = self.attention(latents.to(tokens.dtype), packing)  # (samples, m, N)
        vectors = sum_tokens(weights.flatten(0, 1), tokens, packing)  # (U, samples * m * d_c)
        samples = latents.shape[0]
        vectors = vectors.unflatten(1, (samples, vectors.shape[1] // samples)).transpose(0, 1)  # (samples, U, m * d_c)
        spread = weights.std(0) if samples > 1 else None
        return Pooled(vectors, [weights.mean(0)], packing, attentions_std=spread)

    def _next_kl_weight(self) -> Tensor:
        self.step += 1
        progress = (self.step / max(self.kl_warmup_steps, 1)).clamp(max=1.0)
        return self.kl_weight * progress


def _sample(mean: Tensor, log_std: Tensor, samples: int) -> Tensor:
    """z = mu + sigma * epsilon. (units, latent) -> (samples, units, latent)"""
    return mean + log_std.exp() * torch.randn(samples, *mean.shape, dtype=mean.dtype, device=mean.device)
