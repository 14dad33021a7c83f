"""modeling_dsa.overlap_dsa: against sets of tokens, and blind to padding and to the other pairs of a batch."""

import math

import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from small_models import EXAMPLE_PAIRS, SEP, join_pair, pad_rows, randomize, small_config
from torch import Tensor

from modeling_dsa import DSAForNLI

TOKENS = st.lists(st.integers(3, 7), max_size=9)
PAIRS = st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=5)
CHANGES = {"pair_features": ["overlap"], "max_sentence_tokens": 7, "sentences_per_example": 2}


def overlap_of(model: DSAForNLI, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
    """What the classifier sees of pairs: the overlap is their one feature. (batch, 5)"""
    assert model.pair_features is not None
    found: list[Tensor] = []
    hook = model.pair_features.register_forward_hook(lambda _layer, _inputs, output: found.append(output))
    with torch.no_grad():
        model(ids, mask, types)
    hook.remove()
    return found[0]


@settings(max_examples=60)
@given(
    pairs=PAIRS, left=st.integers(0, 3), right=st.integers(0, 3), feature=st.sampled_from(["overlap", "idf_overlap"])
)
def test_overlap_is_that_of_the_tokens_that_are_read(
    pairs: list[tuple[list[int], list[int]]], left: int, right: int, feature: str
) -> None:
    model = randomize(DSAForNLI(small_config(**CHANGES | {"pair_features": [feature]}))).double().eval()
    if feature == "idf_overlap":
        model.pair_features.overlap.count_documents(torch.arange(model.config.vocab_size), model.config.vocab_size)
    ids, mask = pad_rows([join_pair(*pair) for pair in pairs], left=left, right=right)
    found = overlap_of(model, ids, mask)
    weights = reference.read_weights(model)
    expected = [reference.overlap(weights, first[:7], second[:7]) for first, second in pairs]
    torch.testing.assert_close(found, torch.stack(expected).double(), rtol=0, atol=1e-6)


def test_ids_of_32_bits_are_no_other_ids() -> None:
    model = DSAForNLI(small_config(**CHANGES, vocab_size=60_000)).eval()
    ids, mask = pad_rows([join_pair([5, 6, 7], [5, 6, 7]), join_pair([35_800, 59_999, 4], [59_999, 4])])
    assert torch.equal(overlap_of(model, ids.int(), mask), overlap_of(model, ids, mask))


def test_weights_of_words_are_learnt() -> None:
    model = DSAForNLI(small_config(**CHANGES)).train()
    ids, mask = pad_rows([join_pair([5, 6, 7, 8], [5, 9])] * 2)
    model(ids, mask, labels=torch.tensor([0, 1])).loss.backward()
    overlap = model.pair_features.overlap
    assert overlap.score.grad.abs().sum() > 0
    assert overlap.score.abs().sum() == 0  # at first all tokens weigh the same
    share = overlap_of(model, ids, mask)[0, :2]
    assert share.tolist() == pytest.approx([1 / 4, 1 / 2])


def test_tokens_of_few_documents_weigh_more_as_in_scikit_learn() -> None:
    model = DSAForNLI(small_config(**CHANGES | {"pair_features": ["idf_overlap"]})).eval()
    documents = ["a b", "a b c", "a"]
    words = TfidfVectorizer(token_pattern=r"\w").fit(documents)
    frequencies = torch.zeros(model.config.vocab_size)
    frequencies[5:8] = torch.tensor([3.0, 2.0, 1.0])
    model.pair_features.overlap.count_documents(frequencies, len(documents))
    assert model.pair_features.overlap.idf[5:8].tolist() == pytest.approx(words.idf_.tolist())
    ids, mask = pad_rows([join_pair([5, 6, 7], [7])])
    assert float(overlap_of(model, ids, mask)[0, 0]) == pytest.approx(words.idf_[2] / words.idf_.sum())


def test_a_training_without_counts_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    model = DSAForNLI(small_config(**CHANGES | {"pair_features": ["idf_overlap"]}))
    ids, mask = pad_rows([join_pair([5, 6, 7], [7])])
    for _ in range(2):
        model.train()(ids, mask)
    assert [message.split(":")[0] for message in caplog.messages] == [
        "pair_features name idf_overlap, and no documents were counted, so that all tokens weigh the same"
    ]
    counted = DSAForNLI(model.config).train()
    counted.pair_features.overlap.count_documents(torch.arange(model.config.vocab_size), 90)
    counted(ids, mask)
    assert len(caplog.messages) == 1


def test_counts_are_exact_in_half_precision() -> None:
    model = DSAForNLI(small_config(**CHANGES | {"pair_features": ["idf_overlap"]})).half()
    model.pair_features.overlap.count_documents(torch.full([model.config.vocab_size], 70_000), 90_000)
    assert model.pair_features.overlap.idf.unique().tolist() == pytest.approx([1 + math.log(90_001 / 70_001)], rel=1e-3)


def test_tokens_added_without_their_counts_are_refused() -> None:
    model = DSAForNLI(small_config(**CHANGES | {"pair_features": ["idf_overlap"]})).eval()
    rows = model.config.vocab_size + 3
    model.base_model.resize_token_embeddings(rows)
    ids, mask = pad_rows([join_pair([5, 6, 7], [rows - 1])])
    with pytest.raises(ValueError, match=f"has {rows} rows and the overlap counts {rows - 3}: add tokens by the class"):
        model(ids, mask)


def test_word_vectors_without_tokens_are_refused() -> None:
    model = DSAForNLI(small_config(**CHANGES)).eval()
    with pytest.raises(
        ValueError, match="An overlap in pair_features compares tokens: give input_ids, and not inputs_embeds"
    ):
        model(inputs_embeds=torch.zeros(1, 3, 6), token_type_ids=torch.tensor([[0, 0, 1]]))


def test_a_marked_pair_is_the_separated_one() -> None:
    model = randomize(DSAForNLI(small_config(**CHANGES))).eval()
    ids, mask = pad_rows([join_pair(*pair) for pair in [*EXAMPLE_PAIRS, ([5, 6, 9], [6, 9, 5])]])
    types = ((ids == SEP).cumsum(1) > 0).long() * mask
    assert torch.equal(overlap_of(model, ids, mask, types), overlap_of(model, ids, mask))
