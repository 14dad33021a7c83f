"""The floating point operations of single DSA and its like, as the benchmarks count them.

The operations of an encoding are counted on real tokens, 2 for each multiply-add. For d_0 = 300, in thousands of
multiply-adds a token:

    first layers    2 branches, d_0 * 150                   90
    kernel 3        (150 + 225 + 300 + 375) * 75 * 3       236
    kernel 5        (150 + 225 + 300 + 375) * 75 * 5       394
    compression     (2 * 450 + d_0) * 300                  360
    projection      300 * 600                              180
    routing         600 for each of 2 weighted sums and
                    the 1 agreement that is read             2

less the products with the zeros that a window meets beyond a sentence's ends. Padding, the gaps between sentences,
copies, dropout, activations and normalisation count as nothing. It is the paper's model that is counted, folded or not:
folding shows as a gain.

A training step counts three times that: forward, the gradient of the weights and the gradient of the inputs take one
product each for every product of the forward pass. The gradient of the word vectors, which are frozen, is left out: 180
of 1,262 thousand. The classifier, about 3 % of a step, and the optimiser count as nothing.
"""

from torch import Tensor

from modeling_dsa import DSAConfig


def count_operations(lengths: Tensor, config: DSAConfig) -> int:
    """Floating point operations of encoding sentences with these lengths, (sentences,)."""
    branches, first, growth = len(config.kernel_sizes), config.first_layer_size, config.growth_size
    inputs = [
        first + layer * growth for layer in range(config.num_hidden_layers + 1)
    ]  # of each layer and of what follows
    token = branches * config.embedding_size * first
    token += (branches * inputs[-1] + config.embedding_size) * config.hidden_size
    token += config.hidden_size * config.attention_head_size
    token += config.attention_head_size * (2 * config.routing_iterations - 1)
    multiply_adds = token * int(lengths.sum())
    for kernel_size in config.kernel_sizes:
        shifts = range(-(kernel_size // 2), kernel_size // 2 + 1)
        windows_on_tokens = sum(int((lengths - abs(shift)).clamp(min=0).sum()) for shift in shifts)
        multiply_adds += sum(inputs[:-1]) * growth * windows_on_tokens
    return 2 * multiply_adds


def count_training_operations(lengths: Tensor, config: DSAConfig) -> int:
    """Floating point operations of forward and backward passes, where the word vectors are frozen. (sentences,)"""
    to_word_vectors = config.embedding_size * (len(config.kernel_sizes) * config.first_layer_size + config.hidden_size)
    return 3 * count_operations(lengths, config) - 2 * to_word_vectors * int(lengths.sum())
