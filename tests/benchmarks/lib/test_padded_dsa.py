from dataclasses import replace
from typing import Any

import pytest
import torch
from lib.batches import make_batches, prepare_pairs
from lib.operations import count_operations, count_training_operations
from lib.padded_dsa import PaddedDSA, check_equal
from lib.shipped import Pairs
from torch.utils.flop_counter import FlopCounterMode

from modeling_dsa import DSAConfig, DSAForNLI


def test_operations_are_those_that_torch_counts() -> None:
    tokens = 2000  # the windows over a sentence's ends, which are not counted, are few
    settings: dict[str, Any] = {"vocab_size": 50, "sentences_per_example": 2, "num_labels": 3}
    config = DSAConfig(**settings)
    padded = PaddedDSA(DSAForNLI(config))
    side = torch.randint(3, 50, (1, tokens)), torch.ones(1, tokens)
    lengths = torch.tensor([tokens])
    with FlopCounterMode(display=False) as forward:
        vectors = padded.encode(*side)
    assert forward.get_total_flops() == pytest.approx(count_operations(lengths, config), rel=0.005)
    with FlopCounterMode(display=False) as backward:
        vectors.sum().backward()
    # autograd computes the gradient of all that the compression reads, the frozen words too; it need not
    needless = 2 * tokens * config.embedding_size * config.hidden_size
    counted = count_training_operations(lengths, config) + needless
    assert forward.get_total_flops() + backward.get_total_flops() == pytest.approx(counted, rel=0.005)


def test_a_padded_model_that_differs_is_refused() -> None:
    pairs: Pairs = {
        "premise": ["a man sleeps", "two dogs run in the snow"],
        "hypothesis": ["nobody is awake", "dogs"],
        "label": [0, 1],
    }
    config, tokenizer = prepare_pairs(pairs, 10)
    ours = DSAForNLI(config)
    padded, batch = PaddedDSA(ours), make_batches(pairs, 2, config, tokenizer)[0]
    assert check_equal(ours, padded, batch) < 1e-5
    first, (ids, mask) = batch.padded
    with pytest.raises(RuntimeError, match="logits differ"):
        check_equal(ours, padded, replace(batch, padded=(first, (ids.flip(0), mask.flip(0)))))
    padded.projection.requires_grad_(False)
    with pytest.raises(RuntimeError, match="make them equal"):
        check_equal(ours, padded, batch)
