from functools import partial

import numpy as np
import pytest
import torch
from lib.operations import count_training_operations
from lib.shipped import read_pairs
from lib.snli_like_pairs import HYPOTHESES_BY_TOKENS, PREMISES_BY_TOKENS, Epoch, Loader, make_pairs
from torch.nn.utils.rnn import pad_sequence

from modeling_dsa import DSAConfig
from modeling_dsa.packing_dsa import pack, sentence_masks
from modeling_dsa.text.tokenization import build_tokenizer


@pytest.mark.slow
def test_lengths_of_synthetic_pairs_are_those_of_the_sample() -> None:
    sample = read_pairs("train")
    tokenizer = build_tokenizer([], lowercase=True).backend_tokenizer
    for side, counts in (("premise", PREMISES_BY_TOKENS), ("hypothesis", HYPOTHESES_BY_TOKENS)):
        encodings = tokenizer.encode_batch_fast(sample[side])  # a third of the time
        assert np.bincount([len(encoding.ids) for encoding in encodings]).tolist() == list(counts)


def test_synthetic_pairs_are_like_those_of_snli() -> None:
    config = DSAConfig(vocab_size=36_003)
    pairs = make_pairs(30_000, config)
    assert len(pairs.labels) == len(pairs.lengths) == 30_000
    assert len(pairs.ids) == pairs.lengths.sum()
    for lengths, counts in (
        (pairs.premise_tokens[::3], PREMISES_BY_TOKENS),
        (pairs.hypothesis_tokens, HYPOTHESES_BY_TOKENS),
    ):
        shares = np.bincount(lengths, minlength=len(counts)) / len(lengths)
        np.testing.assert_allclose(shares, np.array(counts) / sum(counts), atol=0.01)
    ids = np.split(pairs.ids, pairs.starts[1:])
    split = [np.split(pair, [length]) for pair, length in zip(ids, pairs.premise_tokens, strict=True)]
    assert {int(second[0]) for _, second in split} == {config.sep_token_id}
    assert all(np.array_equal(split[index][0], split[index - index % 3][0]) for index in range(3000))
    assert len({first.tobytes() for first, _ in split}) == pytest.approx(10_000, rel=0.02)
    tokens = np.concatenate([first for first, _ in split[::3]] + [second[1:] for _, second in split])
    assert (tokens.min(), tokens.max() < 36_003) == (3, True)
    one, two, four = np.bincount(tokens)[[3, 4, 6]]  # Zipf's law
    assert (one / two, one / four) == (pytest.approx(2, rel=0.05), pytest.approx(4, rel=0.05))
    assert np.bincount(pairs.labels).tolist() == [pytest.approx(10_000, rel=0.03)] * 3
    assert np.array_equal(make_pairs(30_000, config).ids, pairs.ids)


@pytest.mark.parametrize(("count", "batches"), [(500, 16), (481, 15)])
def test_batches_made_on_the_device_are_the_padded_pairs(count: int, batches: int) -> None:
    config = DSAConfig(vocab_size=300, sentences_per_example=2)
    assert config.pad_token_id is not None
    pad = partial(pad_sequence, batch_first=True)
    pairs = make_pairs(count, config)
    load, epoch = Loader(pairs, torch.device("cpu"), config), Epoch(pairs, 32, 5, config)
    assert len(set(epoch.order.tolist())) == len(epoch.order) == (500 if count == 500 else 480)
    assert len(epoch.cuts) == batches
    ids, tokens, operations = np.split(pairs.ids, pairs.starts[1:]), 0, 0
    for cut in epoch.cuts:
        order = epoch.order[cut.start : cut.end]
        rows = [torch.from_numpy(ids[index]).long() for index in order]
        parts = [torch.arange(len(ids[index])) > pairs.premise_tokens[index] for index in order]
        expected = {
            "input_ids": pad(rows, padding_value=config.pad_token_id),
            "attention_mask": pad([torch.ones_like(row) for row in rows]),
            "token_type_ids": pad(parts).long(),
            "labels": torch.from_numpy(pairs.labels[order]),
        }
        batch = load(torch.from_numpy(order), cut.width)
        assert batch.keys() == expected.keys()
        longest = expected["input_ids"].shape[1]
        assert cut.width % 32 == 0
        assert longest <= cut.width < longest + 32
        for name, value in batch.items():
            kept = value if name == "labels" else value[:, :longest]
            torch.testing.assert_close(kept, expected[name])
            assert name == "labels" or not value[:, longest:].any()
        input_ids, mask, types = (batch[name] for name in ("input_ids", "attention_mask", "token_type_ids"))
        masks = sentence_masks(config, input_ids, mask, types)  # (batch, 2, tokens)
        tokens += int(masks.sum())
        premises = pack(input_ids, masks[:, :1], deduplicate=True)[1].lengths
        hypotheses = pack(input_ids, masks[:, 1:], deduplicate=False)[1].lengths
        operations += count_training_operations(torch.cat([premises, hypotheses]), config)
    assert epoch.tokens == tokens
    assert epoch.training_operations == pytest.approx(operations, rel=1e-3)  # premises of a few tokens may be equal
    shapes = {(cut.end - cut.start, cut.width) for cut in epoch.cuts}
    assert sorted(shapes) == sorted((cut.end - cut.start, cut.width) for cut in epoch.shapes())
