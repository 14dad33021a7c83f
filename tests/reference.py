"""The whole DSA model word by word, as an oracle: loops over words and heads, no batch, no padding, no mask.

Written from the equations of Yoon, Lee and Lee (2018) alone; it shares no code with `modeling_dsa`, only the names and
layouts of the weights. Dropout is left out and batch normalisation uses its running statistics, as in evaluation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from modeling_dsa import DSAConfig

Weights = Mapping[str, Tensor]


@dataclass
class Sentence:
    """What the model computes for one sentence."""

    branches: list[list[Tensor]]  # Phi_k(X^0): [branch][word] -> (d_1 + L * d_l,)
    encoded: list[Tensor]  # X^c: [word] -> (d_c,)
    attentions: list[list[list[Tensor]]]  # a_ij: [iteration][head][word] -> ()
    vector: Tensor  # z: (m * d_o,)


def read_weights(model: nn.Module) -> Weights:
    """All weights of a model or of a head, by their names in the model, in float64."""
    return {name.removeprefix("dsa."): value.detach().double() for name, value in model.state_dict().items()}


def encode(weights: Weights, config: DSAConfig, words: Sequence[Tensor]) -> Sentence:
    """A sentence from its word vectors x_i^0, each (d_0,)."""
    branches, encoded = dense_cnn(weights, config, words)
    values = [project(weights, config, word) for word in encoded]  # [word] -> (m * d_o,)
    size = config.attention_head_size
    if config.pooling == "static":
        vector, attention = static_attention(weights, values)
        return Sentence(branches, encoded, [[attention]], vector)
    heads = []
    for j in range(config.num_attention_heads):
        head_values = [value[j * size : (j + 1) * size] for value in values]  # x_hat_{j|i}
        heads.append(dynamic_attention(head_values, config.routing_iterations, config.routing_scale, size))
    attentions = [[head[1][t] for head in heads] for t in range(config.routing_iterations)]
    return Sentence(branches, encoded, attentions, torch.cat([head[0] for head in heads]))  # Eq. 7


def dense_cnn(weights: Weights, config: DSAConfig, words: Sequence[Tensor]) -> tuple[list[list[Tensor]], list[Tensor]]:
    """Section 3.1: Phi_k of every branch and X^c."""
    slope = config.negative_slope
    branches = []
    for number in range(len(config.kernel_sizes)):
        name = f"encoder.branches.{number}"
        features = composite(weights, f"{name}.first", words, slope)  # Eq. 2
        for layer in range(config.num_hidden_layers):
            outputs = composite(weights, f"{name}.layers.{layer}", features, slope)  # Eq. 3
            features = [torch.cat([old, new]) for old, new in zip(features, outputs, strict=True)]
        branches.append(features)  # Eq. 4
    together = [torch.cat([*(branch[i] for branch in branches), words[i]]) for i in range(len(words))]
    encoded = composite(weights, "encoder.compression", together, slope)  # Eq. 5
    if config.normalize_words:
        encoded = [config.word_norm * word / word.square().sum().sqrt() for word in encoded]
    return branches, encoded


def composite(weights: Weights, name: str, words: Sequence[Tensor], slope: float) -> list[Tensor]:
    """h: a 1D convolution that sees zeros beyond the sentence's ends, then LeakyReLU."""
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]  # (out, in, kernel), (out,)
    kernel = weight.shape[2]
    outputs = []
    for i in range(len(words)):
        total = bias
        for k in range(kernel):
            neighbour = i + k - kernel // 2
            if 0 <= neighbour < len(words):
                total = total + weight[:, :, k] @ words[neighbour]
        outputs.append(leaky_relu(total, slope))
    return outputs


def leaky_relu(x: Tensor, slope: float) -> Tensor:
    return torch.where(x > 0, x, slope * x)


def project(weights: Weights, config: DSAConfig, word: Tensor) -> Tensor:
    """Eq. 6 for all heads: x_hat_{1|i}, ..., x_hat_{m|i}, one behind the other."""
    matrix, bias = weights["pooling.projection.weight"][:, :, 0], weights["pooling.projection.bias"]
    return leaky_relu(matrix @ word + bias, config.negative_slope)


def softmax(scores: Sequence[Tensor]) -> list[Tensor]:
    exponentials = [score.exp() for score in scores]
    return [exponential / torch.stack(exponentials).sum() for exponential in exponentials]


def weighted_sum(weights: Sequence[Tensor], values: Sequence[Tensor], size: int) -> Tensor:
    total = torch.zeros(size, dtype=torch.float64)
    for weight, value in zip(weights, values, strict=True):
        total = total + weight * value
    return total


def dynamic_attention(
    values: Sequence[Tensor], iterations: int, scale: float, size: int
) -> tuple[Tensor, list[list[Tensor]]]:
    """Algorithm 1 for one head: z_j and the weights a_ij of each iteration."""
    q = [torch.zeros((), dtype=torch.float64) for _ in values]
    attentions = []
    for _ in range(iterations):
        a = softmax(q)
        z = weighted_sum(a, values, size).tanh()
        q = [old + scale * (value @ z) for old, value in zip(q, values, strict=True)]
        attentions.append(a)
    return z, attentions


def static_attention(weights: Weights, values: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Eq. 1 over the projected words: the weighted sum and the weights."""
    matrix, v = weights["pooling.hidden.weight"][:, :, 0], weights["pooling.score.weight"][0]
    attention = softmax([v @ (matrix @ value).tanh() for value in values])
    return weighted_sum(attention, values, matrix.shape[1]), attention


def classify(weights: Weights, config: DSAConfig, *vectors: Tensor) -> Tensor:
    """Logits (labels,) of one sentence vector, or of a premise's and a hypothesis's by heuristic matching."""
    features = vectors[0]
    if len(vectors) == 2:
        p, h = vectors
        features = torch.cat([p, h, (p - h).abs(), p * h])
    count = len(config.classifier_hidden_sizes)
    for layer in range(count):
        norm, linear = f"classifier.{layer}.norm", f"classifier.{layer}"
        mean, variance = weights[f"{norm}.running_mean"], weights[f"{norm}.running_var"]
        normalised = (features - mean) / (variance + config.batch_norm_eps).sqrt()
        features = weights[f"{norm}.weight"] * normalised + weights[f"{norm}.bias"]
        features = weights[f"{linear}.weight"] @ features + weights[f"{linear}.bias"]
        features = leaky_relu(features, config.negative_slope)
    return weights[f"classifier.{count}.weight"] @ features + weights[f"classifier.{count}.bias"]
