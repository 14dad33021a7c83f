"""training.attention_sharpness: the entropy of pairs, against that of their sentences one by one."""

import math

import pytest
import torch
from small_models import EXAMPLE_PAIRS, join_pair, pad_rows, randomize, small_config

from modeling_dsa import DSAForNLI
from run_glue_style.training.attention_sharpness import entropy_shares


def test_a_pair_s_entropy_is_that_of_its_sentences() -> None:
    head = randomize(DSAForNLI(small_config(num_attention_heads=2, routing_scale=4, sentences_per_example=2))).eval()
    ids, mask = pad_rows([join_pair(*pair) for pair in EXAMPLE_PAIRS])
    batches = [{"input_ids": ids[part], "attention_mask": mask[part]} for part in (slice(4), slice(4, None))]
    found = entropy_shares(head, batches)
    expected: list[list[float]] = [[], []]
    for pair in EXAMPLE_PAIRS:
        equal = sum(math.log(len(sentence)) for sentence in pair if sentence)
        if not equal:
            continue
        entropies = [0.0, 0.0]
        for sentence in filter(None, pair):
            with torch.no_grad():
                attentions = head.dsa(torch.tensor([sentence]), output_attentions=True).attentions
            for iteration, weights in enumerate(attentions):
                entropies[iteration] += -(weights[0].double() * weights[0].double().log()).sum(-1).mean().item()
        for iteration, entropy in enumerate(entropies):
            expected[iteration].append(entropy / equal)
    assert found == pytest.approx([sum(shares) / len(shares) for shares in expected], abs=1e-6)
    assert found[0] == pytest.approx(1)
    assert found[1] < 0.99


def test_a_pooling_without_attention_has_none() -> None:
    head = DSAForNLI(small_config(pooling="gumbel_tree", tree_size=2, sentences_per_example=2)).eval()
    assert entropy_shares(head, [{"input_ids": torch.tensor([join_pair([5, 6], [7])])}]) == []
