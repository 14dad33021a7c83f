import numpy as np
import pytest
from lib.stance_pairs import QUICK, WAYS, Size, StancePairs, body_lengths, synthetic_pairs
from small_models import small_config

from modeling_dsa.packing_dsa import pack, sentence_masks
from run_glue_style.training.training_batches import PaddingCollator


def test_synthetic_texts_have_the_counts_and_lengths_of_the_challenge() -> None:
    lengths = body_lengths(Size())
    assert (len(lengths), lengths.max()) == (1683, 5650)
    assert np.median(lengths) == pytest.approx(365, rel=0.01)
    assert lengths.mean() == pytest.approx(443, rel=0.01)
    assert np.quantile(lengths, 0.99) == pytest.approx(1790, rel=0.01)

    pairs = synthetic_pairs(QUICK)
    assert len(pairs) == QUICK.pairs
    assert len(set(pairs["headline"])) == QUICK.headlines
    assert len(set(pairs["body"])) == QUICK.bodies
    assert sorted(len(text.split()) for text in set(pairs["body"])) == sorted(body_lengths(QUICK))


@pytest.fixture(scope="module")
def pairs() -> StancePairs:
    return StancePairs(synthetic_pairs(QUICK))


@pytest.mark.parametrize("limit", [None, 9])
def test_the_tokens_of_an_epoch_are_those_that_the_model_packs(pairs: StancePairs, limit: int | None) -> None:
    epoch = pairs.epoch(0, batch_size=64, sample=3, limit=limit)
    config = small_config(sentences_per_example=2, max_sentence_tokens=limit)

    def packed(way: str) -> int:
        tokens = 0
        for batch in epoch[way].measured:
            padded = PaddingCollator(0)(epoch[way].examples.__getitems__(batch.tolist()))
            masks = sentence_masks(config, padded["input_ids"], padded["attention_mask"], padded["token_type_ids"])
            indices, _ = pack(padded["input_ids"], masks, deduplicate=way != "every pair")
            tokens += len(indices)
        return tokens

    assert {way: packed(way) for way in WAYS} == {way: epoch[way].measured_tokens for way in WAYS}
    assert epoch["texts once"].tokens == int(pairs.lengths.clip(max=limit or 10**9).sum())
    assert epoch["texts once"].tokens < epoch["grouped"].tokens < epoch["random"].tokens < epoch["every pair"].tokens
    assert len(epoch["grouped"].measured) == epoch["grouped"].batches == 10
    assert [len(epoch[way].measured) for way in ("random", "every pair")] == [3, 3]


def test_texts_are_encoded_once_in_batches_of_as_many_tokens_as_grouped_ones(pairs: StancePairs) -> None:
    epoch = pairs.epoch(1, batch_size=64, sample=3, limit=None)
    once = epoch["texts once"]
    indices = np.concatenate(once.measured)
    texts = np.concatenate([column[indices] for column in once.examples.texts])
    assert sorted(texts) == list(range(100))
    mean = epoch["grouped"].tokens / epoch["grouped"].batches
    assert once.batches == pytest.approx(once.tokens / mean, abs=1)
