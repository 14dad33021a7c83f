"""All models of the family token by token, as an oracle: loops over tokens and heads, no batch, no padding, no mask.

Written from the equations of the papers alone: Yoon, Lee and Lee (2018) for dynamic self-attention, Zhang, Liang and
Yilmaz (2018) for variational self-attention, Lin et al. (2017) for structured self-attention, Kim (2014) for the CNN,
Liu et al. (2016) for inner-attention, Nie and Bansal (2017) for residual stacked encoders, Shen et al. (2017) for
directional and multi-dimensional self-attention, Im and Cho (2017) for distance-based self-attention, Choi, Yoo and Lee
(2018) for Gumbel Tree-LSTM, Shen et al. (2018) for reinforced self-attention.
It shares no code with `modeling_dsa`, only the names and layouts of the weights. Dropout is left out and batch
normalisation uses its running statistics, as in evaluation.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from modeling_dsa import DSAConfig

Weights = Mapping[str, Tensor]
Gaussian = tuple[Tensor, Tensor]  # mu and log sigma, each (latent,)


@dataclass
class Sentence:
    """What the model computes for one sentence."""

    between: list[list[Tensor]]  # what the encoder computes on the way, such as Phi_k(X^0): [layer][token] -> (width,)
    encoded: list[Tensor]  # X^c: [token] -> (d_c,)
    attentions: list[list[list[Tensor]]]  # a_ij: [iteration][head][token] -> ()
    vector: Tensor  # z: (heads * width,), or what the projection makes of it: (projection_size,)


def read_weights(model: nn.Module) -> Weights:
    """All weights of a model or of a head, by their names in the model, in float64."""
    return {name.removeprefix("dsa."): value.detach().double() for name, value in model.state_dict().items()}


def encode(weights: Weights, config: DSAConfig, tokens: Sequence[Tensor]) -> Sentence:
    """A sentence from its word vectors x_i^0, each (d_0,)."""
    tokens = tokens[: config.max_sentence_tokens]
    between, encoded = encode_tokens(weights, config, tokens)
    if config.normalize_tokens:
        encoded = [config.token_norm * token / token.square().sum().sqrt() for token in encoded]
    attentions, vector = pool(weights, config, encoded)
    return Sentence(between, encoded, attentions, project_vector(weights, config, vector, tokens))


def project_vector(weights: Weights, config: DSAConfig, vector: Tensor, tokens: Sequence[Tensor]) -> Tensor:
    """P z + S sum_i a_i x_i^0 with a = softmax_i(v . x_i^0), as far as the config asks for it."""
    if config.projection_size is None:
        return vector
    vector = weights["projection.weight"] @ vector
    if config.word_shortcut:
        a = softmax([weights["shortcut.score"] @ token for token in tokens])
        vector = vector + weights["shortcut.projection.weight"] @ weighted_sum(a, tokens, config.embedding_size)
    return vector


# Encoders


def encode_tokens(
    weights: Weights, config: DSAConfig, tokens: Sequence[Tensor]
) -> tuple[list[list[Tensor]], list[Tensor]]:
    """What the encoder computes on the way and the encoded tokens, before their normalisation."""
    if config.encoder == "dense_cnn":
        return dense_cnn(weights, config, tokens)
    if config.encoder == "kim_cnn":
        return [], kim_cnn(weights, config, tokens)
    layers = [list(tokens)]
    for number in range(config.num_hidden_layers if config.encoder != "none" else 0):
        if config.encoder == "bilstm":
            layers.append(bilstm(weights, f"encoder.{{}}.{number}", layers[-1]))
        elif config.encoder == "residual_bilstm":
            seen = [torch.cat([word, *residual_sum(below)]) for word, *below in zip(*layers, strict=True)]
            layers.append(bilstm(weights, f"encoder.{{}}.{number}", seen))
        elif config.encoder in ("directional", "distance"):
            sides = []
            for side in ("forwards", "backwards"):
                attend = directional_attention if config.encoder == "directional" else distance_attention
                sides.append(attend(weights, config, f"encoder.{side}.{number}", layers[-1]))
            layers.append([torch.cat(states) for states in zip(*sides, strict=True)])
        else:
            layers.append(pairwise_attention(weights, f"encoder.layers.{number}", layers[-1], config.negative_slope))
    return layers[1:-1], layers[-1]


def dense_cnn(weights: Weights, config: DSAConfig, tokens: Sequence[Tensor]) -> tuple[list[list[Tensor]], list[Tensor]]:
    """DSA, Section 3.1: Phi_k of every branch and X^c before its normalisation."""
    slope = config.negative_slope
    branches = []
    for number in range(len(config.kernel_sizes)):
        name = f"encoder.branches.{number}"
        features = composite(weights, f"{name}.first", tokens, slope)  # Eq. 2
        for layer in range(config.num_hidden_layers):
            outputs = composite(weights, f"{name}.layers.{layer}", features, slope)  # Eq. 3
            features = [torch.cat([old, new]) for old, new in zip(features, outputs, strict=True)]
        branches.append(features)  # Eq. 4
    together = [torch.cat([*(branch[i] for branch in branches), tokens[i]]) for i in range(len(tokens))]
    return branches, composite(weights, "encoder.compression", together, slope)  # Eq. 5


def kim_cnn(weights: Weights, config: DSAConfig, tokens: Sequence[Tensor]) -> list[Tensor]:
    """Kim's feature maps of every kernel size, one size behind the other."""
    sizes = range(len(config.kernel_sizes))
    maps = [composite(weights, f"encoder.convolutions.{n}", tokens, config.negative_slope) for n in sizes]
    return [torch.cat([one[i] for one in maps]) for i in range(len(tokens))]


def composite(weights: Weights, name: str, tokens: Sequence[Tensor], slope: float) -> list[Tensor]:
    """h: a 1D convolution that sees zeros beyond the sentence's ends, then LeakyReLU.

    An odd kernel k sees (k - 1) / 2 tokens to each side, an even one k / 2 before and k / 2 - 1 after.
    """
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]  # (out, in, kernel), (out,)
    kernel = weight.shape[2]
    outputs = []
    for i in range(len(tokens)):
        total = bias
        for k in range(kernel):
            neighbour = i + k - kernel // 2
            if 0 <= neighbour < len(tokens):
                total = total + weight[:, :, k] @ tokens[neighbour]
        outputs.append(leaky_relu(total, slope))
    return outputs


def bilstm(weights: Weights, name: str, tokens: Sequence[Tensor]) -> list[Tensor]:
    """One layer of a bidirectional LSTM: [h forwards; h backwards] of each token."""
    there = lstm(weights, name.format("forwards"), tokens)
    back = lstm(weights, name.format("backwards"), list(reversed(tokens)))
    return [torch.cat(states) for states in zip(there, reversed(back), strict=True)]


def residual_sum(states: Sequence[Tensor]) -> list[Tensor]:
    """Nie and Bansal: h^1 + ... + h^(i-1) of one token, which the first layer does not have."""
    return [sum(states[1:], states[0])] if states else []


def lstm(weights: Weights, name: str, tokens: Sequence[Tensor]) -> list[Tensor]:
    """Hochreiter and Schmidhuber's gates, with the forget gate of Gers et al.: the state h after each token."""
    inputs, input_bias = weights[f"{name}.weight_ih_l0"], weights[f"{name}.bias_ih_l0"]  # (4 * u, in), (4 * u,)
    recurrent, recurrent_bias = weights[f"{name}.weight_hh_l0"], weights[f"{name}.bias_hh_l0"]
    units = recurrent.shape[1]
    h = c = torch.zeros(units, dtype=torch.float64)
    states = []
    for token in tokens:
        sums = inputs @ token + input_bias + recurrent @ h + recurrent_bias
        input_gate, forget_gate = sums[:units].sigmoid(), sums[units : 2 * units].sigmoid()
        candidate, output_gate = sums[2 * units : 3 * units].tanh(), sums[3 * units :].sigmoid()
        c = forget_gate * c + input_gate * candidate
        h = output_gate * c.tanh()
        states.append(h)
    return states


def pairwise_attention(weights: Weights, name: str, tokens: Sequence[Tensor], slope: float) -> list[Tensor]:
    """VSAM, Section 1.2: a_ij = f(x_i, x_j), here softmax_j(q_i . k_j / sqrt(d)), and pi_i of [x_i; sum a_ij v_j]."""
    matrix = weights[f"{name}.projection.weight"][:, :, 0]
    size = matrix.shape[0] // 3
    queries, keys, values = ([matrix[p * size : (p + 1) * size] @ token for token in tokens] for p in range(3))
    outputs = []
    for i, token in enumerate(tokens):
        a = softmax([queries[i] @ key / math.sqrt(size) for key in keys])
        context = weighted_sum(a, values, size)
        joint = torch.cat([token, context])
        pi = weights[f"{name}.combination.weight"][:, :, 0] @ joint + weights[f"{name}.combination.bias"]
        outputs.append(leaky_relu(pi, slope))
    return outputs


def one_side(name: str, j: int, tokens: int) -> range:
    """The tokens before token j, or those after it."""
    return range(j) if "forwards" in name else range(j + 1, tokens)


def elu(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, x.exp() - 1)


def directional_attention(weights: Weights, config: DSAConfig, name: str, tokens: Sequence[Tensor]) -> list[Tensor]:
    """DiSAN, Eq. 13 to 21, in one direction: softmax_i(5 tanh((W^1 h_i + W^2 h_j + b^1) / 5)) for every channel."""
    h = [elu(conv_linear(weights, f"{name}.projection", token)) for token in tokens]
    contexts = [directional_context(weights, name, h, j, one_side(name, j, len(h))) for j in range(len(h))]
    return fuse(weights, name, h, contexts)


def directional_context(weights: Weights, name: str, h: Sequence[Tensor], j: int, seen: Sequence[int]) -> Tensor:
    """s_j over the tokens that are seen."""
    head = conv_linear(weights, f"{name}.head", h[j])
    scores = [5 * ((conv_linear(weights, f"{name}.dependent", h[i]) + head) / 5).tanh() for i in seen]
    return weighted_sum(softmax(scores), [h[i] for i in seen], len(h[j]))


def fuse(weights: Weights, name: str, h: Sequence[Tensor], contexts: Sequence[Tensor]) -> list[Tensor]:
    """The fusion gate."""
    outputs = []
    for token, s in zip(h, contexts, strict=True):
        of_context = conv_linear(weights, f"{name}.fusion.of_context", s)
        gate = (of_context + conv_linear(weights, f"{name}.fusion.of_token", token)).sigmoid()
        outputs.append(gate * token + (1 - gate) * s)
    return outputs


def chosen_tokens(weights: Weights, name: str, tokens: Sequence[Tensor]) -> list[bool]:
    """RSS of ReSAN at prediction: whether p_i is at least a half."""
    mean = sum(tokens, torch.zeros_like(tokens[0])) / len(tokens)
    chosen = []
    for token in tokens:
        hidden = elu(conv_linear(weights, f"{name}.hidden", torch.cat([token, mean, token * mean])))
        chosen.append(conv_linear(weights, f"{name}.score", hidden).sigmoid().item() >= 0.5)
    return chosen


def reinforced_attention(weights: Weights, tokens: Sequence[Tensor]) -> list[Tensor]:
    """ReSAN: chosen heads attend to chosen dependents on one side, the others to all other tokens alike."""
    heads, dependents = (
        chosen_tokens(weights, f"pooling.attention.{name}", tokens) for name in ("heads", "dependents")
    )
    sides = []
    for side in ("forwards", "backwards"):
        name = f"pooling.attention.{side}"
        h = [elu(conv_linear(weights, f"{name}.projection", token)) for token in tokens]
        contexts = []
        for j in range(len(h)):
            if heads[j]:
                seen = [i for i in one_side(name, j, len(h)) if dependents[i]]
                contexts.append(directional_context(weights, name, h, j, seen))
            else:
                others = [h[i] for i in range(len(h)) if i != j]
                contexts.append(sum(others, torch.zeros_like(h[j])) / max(len(others), 1))
        sides.append(fuse(weights, name, h, contexts))
    return [torch.cat(states) for states in zip(*sides, strict=True)]


def distance_attention(weights: Weights, config: DSAConfig, name: str, tokens: Sequence[Tensor]) -> list[Tensor]:
    """Im and Cho in one direction: heads whose scores fall by alpha |i - j|, a gate, a feed-forward network."""
    heads, outputs = config.encoder_attention_heads, []
    projected = [conv_linear(weights, f"{name}.projection", token).chunk(3) for token in tokens]
    for j, token in enumerate(tokens):
        seen, contexts = one_side(name, j, len(tokens)), []
        for head in range(heads):
            query = projected[j][0].chunk(heads)[head]
            keys, values = ([projected[i][part].chunk(heads)[head] for i in seen] for part in (1, 2))
            scores = [
                query @ key / math.sqrt(len(query)) - config.distance_weight * abs(i - j)
                for i, key in zip(seen, keys, strict=True)
            ]
            contexts.append(weighted_sum(softmax(scores), values, len(query)))
        s = conv_linear(weights, f"{name}.output", torch.cat(contexts))
        of_context = conv_linear(weights, f"{name}.gate.of_context", s)
        of_token = conv_linear(weights, f"{name}.gate.of_token", token)
        gate = (of_context + of_token + weights[f"{name}.gate.bias"]).sigmoid()
        u = layer_norm(weights, f"{name}.gate_norm", gate * of_context + (1 - gate) * of_token)
        expanded = conv_linear(weights, f"{name}.expansion", u).clamp(min=0)
        outputs.append(layer_norm(weights, f"{name}.norm", u + conv_linear(weights, f"{name}.reduction", expanded)))
    return outputs


def conv_linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    """A convolution with kernel 1, with or without a bias."""
    image = weights[f"{name}.weight"][:, :, 0] @ x
    return image + weights[f"{name}.bias"] if f"{name}.bias" in weights else image


def layer_norm(weights: Weights, name: str, x: Tensor) -> Tensor:
    normalised = (x - x.mean()) / ((x - x.mean()).square().mean() + 1e-5).sqrt()
    return weights[f"{name}.weight"] * normalised + weights[f"{name}.bias"]


# Poolings


def pool(weights: Weights, config: DSAConfig, tokens: Sequence[Tensor]) -> tuple[list[list[list[Tensor]]], Tensor]:
    """The attention weights, [iteration][head][token], and the vector of a sentence; VSAM's with the prior's mean."""
    width, heads = config.encoded_size, config.num_attention_heads
    if config.pooling in ("dynamic", "static"):
        size = config.attention_head_size
        values = [project(weights, config, token) for token in tokens]  # [token] -> (m * d_o,)
        by_head = [[value[j * size : (j + 1) * size] for value in values] for j in range(heads)]  # x_hat_{j|i}
        if config.pooling == "static":
            attention = static_attention(weights, values)
            return [attention], torch.cat([weighted_sum(*head, size) for head in zip(attention, by_head, strict=True)])
        routed = [dynamic_attention(head, config.routing_iterations, config.routing_scale, size) for head in by_head]
        attentions = [[head[1][t] for head in routed] for t in range(config.routing_iterations)]
        return attentions, torch.cat([head[0] for head in routed])  # Eq. 7
    if config.pooling == "last":
        zero = torch.zeros(width, dtype=torch.float64)
        first, last = (tokens[0], tokens[-1]) if tokens else (zero, zero)
        return [], torch.cat([last[: width // 2], first[width // 2 :]])
    if config.pooling == "max":
        return max_over_time(tokens, width)
    if config.pooling == "reinforced":
        attended = reinforced_attention(weights, tokens) if tokens else []
        return multi_dimensional(weights, config, attended, config.attention_head_size)
    if config.pooling == "gumbel_tree":
        return [], gumbel_tree(weights, config.tree_size, tokens)
    if config.pooling.startswith("multi_dimensional"):
        return multi_dimensional(weights, config, tokens, width)
    if config.pooling == "mean":
        attention_heads = [[torch.tensor(1 / len(tokens), dtype=torch.float64) for _ in tokens]]
    elif config.pooling == "structured":
        attention_heads = structured_attention(weights, tokens)
    elif config.pooling == "inner":
        attention_heads = inner_attention(weights, tokens, width)
    else:
        means = [mean for mean, _ in prior(weights, config, tokens)]
        attention_heads = latent_attention(weights, config, means, len(tokens))
    return [attention_heads], torch.cat([weighted_sum(head, tokens, width) for head in attention_heads])


def leaky_relu(x: Tensor, slope: float) -> Tensor:
    return torch.where(x > 0, x, slope * x)


def project(weights: Weights, config: DSAConfig, token: Tensor) -> Tensor:
    """Eq. 6 for all heads: x_hat_{1|i}, ..., x_hat_{m|i}, one behind the other."""
    matrix, bias = weights["pooling.projection.weight"][:, :, 0], weights["pooling.projection.bias"]
    return leaky_relu(matrix @ token + bias, config.negative_slope)


def softmax(scores: Sequence[Tensor]) -> list[Tensor]:
    """Over the tokens; of vectors, for every channel."""
    exponentials = [score.exp() for score in scores]
    return [exponential / torch.stack(exponentials).sum(0) for exponential in exponentials]


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


def static_attention(weights: Weights, values: Sequence[Tensor]) -> list[list[Tensor]]:
    """DSA, Eq. 1 over the projected tokens: the weights [head][token], each head with a vector v of its own."""
    matrix = weights["pooling.hidden.weight"][:, :, 0]
    return [softmax([v @ (matrix @ value).tanh() for value in values]) for v in weights["pooling.score.weight"]]


def max_over_time(tokens: Sequence[Tensor], width: int) -> tuple[list[list[list[Tensor]]], Tensor]:
    """The maximum of each channel, and the share of the channels that each token decides (ties are shared out)."""
    vector = torch.zeros(width, dtype=torch.float64)
    shares = [torch.zeros((), dtype=torch.float64) for _ in tokens]
    for channel in range(width if tokens else 0):
        vector[channel] = max(token[channel] for token in tokens)
        deciding = [i for i, token in enumerate(tokens) if token[channel] == vector[channel]]
        for i in deciding:
            shares[i] = shares[i] + 1 / (len(deciding) * width)
    return [[shares]], vector


def gumbel_tree(weights: Weights, size: int, tokens: Sequence[Tensor]) -> Tensor:
    """Choi et al. at prediction: of all pairs of neighbours the one that scores best is composed, until one is left."""
    if not tokens:
        return torch.zeros(size, dtype=torch.float64)
    leaf = {name: weights[f"pooling.leaf.{name}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    h = c = torch.zeros(size, dtype=torch.float64)
    nodes = []
    for token in tokens:
        sums = leaf["weight_ih"] @ token + leaf["bias_ih"] + leaf["weight_hh"] @ h + leaf["bias_hh"]
        i, f, g, o = sums.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        nodes.append((h, c))
    while len(nodes) > 1:
        candidates = [compose(weights, left, right) for left, right in itertools.pairwise(nodes)]
        scores = [(weights["pooling.query"] @ h).item() for h, _ in candidates]
        best = scores.index(max(scores))
        nodes[best : best + 2] = [candidates[best]]
    return nodes[0][0]


def compose(weights: Weights, left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """A binary Tree-LSTM's parent of two nodes (h, c)."""
    i, f_l, f_r, u, o = linear(weights, "pooling.composition", torch.cat([left[0], right[0]])).chunk(5)
    c = (f_l + 1).sigmoid() * left[1] + (f_r + 1).sigmoid() * right[1] + i.sigmoid() * u.tanh()
    return o.sigmoid() * c.tanh(), c


def multi_dimensional(
    weights: Weights, config: DSAConfig, tokens: Sequence[Tensor], width: int
) -> tuple[list[list[list[Tensor]]], Tensor]:
    """DiSAN, Eq. 9 and 12: a softmax over the tokens for every channel; and the maximum behind it where asked for."""
    hidden = [elu(conv_linear(weights, "pooling.hidden", token)) for token in tokens]
    a = softmax([conv_linear(weights, "pooling.score", one) for one in hidden])  # [token] -> (d_c,)
    vector = weighted_sum(a, tokens, width)
    if config.pooling == "multi_dimensional_max":
        vector = torch.cat([vector, max_over_time(tokens, width)[1]])
    return [[[of_token.mean() for of_token in a]]], vector


def structured_attention(weights: Weights, tokens: Sequence[Tensor]) -> list[list[Tensor]]:
    """Lin et al.: A = softmax(W_s2 tanh(W_s1 H^T)), [hop][token]."""
    hidden, score = weights["pooling.hidden.weight"][:, :, 0], weights["pooling.score.weight"]  # W_s1, W_s2
    scores = [score @ (hidden @ token).tanh() for token in tokens]  # [token] -> (r,)
    return [softmax([of_word[hop] for of_word in scores]) for hop in range(len(score))]


def inner_attention(weights: Weights, tokens: Sequence[Tensor], width: int) -> list[list[Tensor]]:
    """Liu et al.: alpha = softmax(w^T tanh(W^y y + W^h R_ave)), [head][token]."""
    mean = sum(tokens, torch.zeros(width, dtype=torch.float64)) / max(len(tokens), 1)
    asked = weights["pooling.query.weight"] @ mean  # W^h R_ave
    keys = [weights["pooling.hidden.weight"][:, :, 0] @ token for token in tokens]  # W^y y
    return [softmax([w @ (key + asked).tanh() for key in keys]) for w in weights["pooling.score.weight"]]


def structured_penalty(attention: Sequence[Sequence[Tensor]]) -> Tensor:
    """||A A^T - I||_F^2 of the weights [hop][token]."""
    total = torch.zeros((), dtype=torch.float64)
    for i, one in enumerate(attention):
        for j, other in enumerate(attention):
            overlap = sum((a * b for a, b in zip(one, other, strict=True)), torch.zeros((), dtype=torch.float64))
            total = total + (overlap - (1 if i == j else 0)) ** 2
    return total


# Variational self-attention


def linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


def latent_features(weights: Weights, config: DSAConfig, name: str, tokens: Sequence[Tensor]) -> list[Tensor]:
    """pi of each token or, as their mean, of the sentence: what has a latent variable of its own."""
    pi = pairwise_attention(weights, name, tokens, config.negative_slope)
    if config.latent == "token":
        return pi
    return [sum(pi, torch.zeros(config.attention_hidden_size, dtype=torch.float64)) / max(len(pi), 1)]


def prior(weights: Weights, config: DSAConfig, tokens: Sequence[Tensor]) -> list[Gaussian]:
    """p(z|H), Eq. 6 to 8; of the deterministic twin, which has no sigma, only mu."""
    features = latent_features(weights, config, "pooling.pairs", tokens)
    means = [linear(weights, "pooling.mean", pi) for pi in features]
    if config.pooling == "pairwise":
        return [(mean, torch.full_like(mean, -math.inf)) for mean in means]
    return [(mean, linear(weights, "pooling.log_std", pi)) for mean, pi in zip(means, features, strict=True)]


def posterior(weights: Weights, config: DSAConfig, tokens: Sequence[Tensor], label: int) -> list[Gaussian]:
    """q(z|H, y), Eq. 9 and 10, as its difference from the prior; g is a layer over f_phi(H) and the class's one-hot."""
    one_hot = torch.zeros(weights["pooling.class_vectors.weight"].shape[1], dtype=torch.float64)
    one_hot[label] = 1
    gaussians = []
    features = latent_features(weights, config, "pooling.posterior_pairs", tokens)
    for u, (mean, log_std) in zip(features, prior(weights, config, tokens), strict=True):
        v = weights["pooling.class_vectors.weight"] @ one_hot
        pi = leaky_relu(linear(weights, "pooling.posterior_joint", u) + v, config.negative_slope)
        mean = mean + linear(weights, "pooling.posterior_mean", pi)
        gaussians.append((mean, log_std + linear(weights, "pooling.posterior_log_std", pi)))
    return gaussians


def sample(gaussians: Sequence[Gaussian], noise: Sequence[Tensor]) -> list[Tensor]:
    """z = mu + sigma epsilon of each latent variable."""
    pairs = zip(gaussians, noise, strict=True)
    return [mean + log_std.exp() * epsilon for (mean, log_std), epsilon in pairs]


def kl_divergence(q: Sequence[Gaussian], p: Sequence[Gaussian]) -> Tensor:
    """KL(q || p) of all latent variables of a sentence, in nats, from the formula for one normal distribution."""
    total = torch.zeros((), dtype=torch.float64)
    for (mean_q, log_std_q), (mean_p, log_std_p) in zip(q, p, strict=True):
        variance_q, variance_p = (2 * log_std_q).exp(), (2 * log_std_p).exp()
        each = log_std_p - log_std_q + (variance_q + (mean_q - mean_p) ** 2) / (2 * variance_p) - 0.5
        total = total + each.sum()
    return total


def latent_attention(weights: Weights, config: DSAConfig, latents: Sequence[Tensor], tokens: int) -> list[list[Tensor]]:
    """a = softmax(tanh(W^z z)), [head][token].

    Each token's z gives a score for each head; in the other interpretation the sentence's z gives one for each head and
    position, the positions of a head one behind the other.
    """
    matrix = weights["pooling.score.weight"]  # (m, latent) or (m * positions, latent)
    scores = [(matrix @ z).tanh() for z in latents]
    if config.latent == "token":
        return [softmax([score[head] for score in scores]) for head in range(config.num_attention_heads)]
    starts = [head * len(matrix) // config.num_attention_heads for head in range(config.num_attention_heads)]
    return [softmax([scores[0][start + i] for i in range(tokens)]) for start in starts]


# Classifier


def classify(
    weights: Weights, config: DSAConfig, *vectors: Tensor, ids: tuple[Sequence[int], Sequence[int]] = ((), ())
) -> Tensor:
    """Logits (labels,) of one sentence vector, or of a premise's and a hypothesis's by the config's pair features.

    `ids` are the tokens of both.
    """
    features = vectors[0]
    if len(vectors) == 2:
        p, h = vectors
        heads = 1 if config.projection_size is not None else config.num_attention_heads  # it mixes their parts
        size = len(p) // heads
        starts = range(0, len(p), size) if heads > 1 else []
        cosines = [cosine(p, h), *(cosine(p[start : start + size], h[start : start + size]) for start in starts)]
        of_pair = {
            "first": p,
            "second": h,
            "difference": (p - h).abs(),
            "signed_difference": p - h,
            "product": p * h,
            "cosine": torch.stack(cosines),
        }
        if "gated" in config.pair_features:
            of_pair["gated"] = gated_encoder(weights, config.num_attention_heads, p, h)
        for name in {"overlap", "idf_overlap"}.intersection(config.pair_features):
            of_pair[name] = overlap(weights, *(side[: config.max_sentence_tokens] for side in ids)).to(p)
        features = torch.cat([of_pair[name] for name in config.pair_features])
    count = len(config.classifier_hidden_sizes)
    for layer in range(count):
        features = classifier_layer(weights, config, f"classifier.{layer}", features)
    if config.classifier_highway:
        gate = linear(weights, f"classifier.{count}.gate", features).sigmoid()
        features = gate * classifier_layer(weights, config, f"classifier.{count}", features) + (1 - gate) * features
        count += 1
    return linear(weights, f"classifier.{count}", features)


def classifier_layer(weights: Weights, config: DSAConfig, name: str, features: Tensor) -> Tensor:
    """Batch normalisation, where there is one, linear, LeakyReLU."""
    if config.classifier_batch_norm:
        mean, variance = weights[f"{name}.norm.running_mean"], weights[f"{name}.norm.running_var"]
        normalised = (features - mean) / (variance + config.batch_norm_eps).sqrt()
        features = weights[f"{name}.norm.weight"] * normalised + weights[f"{name}.norm.bias"]
    return leaky_relu(linear(weights, name, features), config.negative_slope)


def gated_encoder(weights: Weights, heads: int, p: Tensor, h: Tensor) -> Tensor:
    """Lin et al., Appendix B: of each head W_fp m_p * W_fh m_h, one behind the other."""
    first, second = (weights[f"pair_features.gates.{side}.weight"][:, :, 0] for side in ("first", "second"))
    width, out = len(p) // heads, len(first) // heads
    factors = []
    for head in range(heads):
        part, rows = slice(head * width, (head + 1) * width), slice(head * out, (head + 1) * out)
        factors.append((first[rows] @ p[part]) * (second[rows] @ h[part]))
    return torch.cat(factors)


def overlap(weights: Weights, first: Sequence[int], second: Sequence[int]) -> Tensor:
    """Shares of the weights of distinct tokens, their cosine, and shares of distinct neighbours. (5,)"""
    table, v, c = (
        weights[name] for name in ("embed_tokens.weight", "pair_features.overlap.score", "pair_features.overlap.bias")
    )
    idf = weights.get("pair_features.overlap.idf", torch.ones(len(table)))
    weigh = {
        token: float(idf[token]) * math.log1p(math.exp(float(table[token] @ v + c))) for token in {*first, *second}
    }
    a, b = set(first), set(second)
    pairs_a, pairs_b = set(itertools.pairwise(first)), set(itertools.pairwise(second))
    common, squares = (sum(weigh[token] ** power for token in a & b) for power in (1, 2))
    norms = math.sqrt(sum(weigh[token] ** 2 for token in a) * sum(weigh[token] ** 2 for token in b))
    shares = [common / sum(weigh[token] for token in side) if side else 0.0 for side in (a, b)]
    neighbours = [len(pairs_a & pairs_b) / len(side) if side else 0.0 for side in (pairs_a, pairs_b)]
    return torch.tensor([*shares, squares / norms if norms else 0.0, *neighbours])


def cosine(p: Tensor, h: Tensor) -> Tensor:
    """Of a sentence without tokens, whose vector is 0, it is 0."""
    norms = (p @ p).sqrt() * (h @ h).sqrt()
    return p @ h / norms if norms > 0 else norms
