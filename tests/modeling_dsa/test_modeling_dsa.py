"""modeling_dsa.modeling_dsa: the model against explicit loops, and its promises on padding, loading, freezing."""

import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import reference
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import (
    EXAMPLE_PAIRS,
    FIRST_TOKEN,
    PAD,
    PROJECTION_CASES,
    SEP,
    SYSTEM_CASES,
    VOCABULARY,
    WITHOUT_WEIGHTS,
    join_pair,
    pad_rows,
    randomize,
    small_config,
)
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, Trainer, TrainingArguments
from transformers.utils import logging

from modeling_dsa import DSAConfig, DSAForNLI, DSAForSequenceClassification, DSAModel, DSAPreTrainedModel
from modeling_dsa.classifier_dsa import ClassifierLayer
from modeling_dsa.layers_dsa import ConvLayer, DropoutLinear
from modeling_dsa.variational_dsa import INITIAL_LOG_STD

SHIPPED = Path(__file__).parents[2] / "configuration"

TOKENS = st.lists(st.integers(FIRST_TOKEN, FIRST_TOKEN + 4), max_size=6)
PAIRS = st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=4)

CASES: dict[str, dict[str, Any]] = {
    **{f"r={r} m={m}": {"routing_iterations": r, "num_attention_heads": m} for r in range(1, 6) for m in (1, 3)},
    "static": {"pooling": "static"},
    "routing_scale 2.5": {"routing_scale": 2.5, "routing_iterations": 3},
    "token_norm 3": {"token_norm": 3.0, "num_attention_heads": 2},
    "static, token_norm 3": {"token_norm": 3.0, "pooling": "static"},
    "not normalised": {"normalize_tokens": False},
    "other slopes and kernels": {"negative_slope": 0.3, "kernel_sizes": [1, 7, 3], "batch_norm_eps": 0.1},
    "static, two heads": {"pooling": "static", "num_attention_heads": 2},
    "cosine": {"pair_features": ["difference", "product", "cosine"]},
    "cosines of three heads": {"pair_features": ["cosine", "first", "second"], "num_attention_heads": 3},
    "overlap": {"pair_features": ["overlap", "product"], "max_sentence_tokens": 4},
    "no hidden layer": {"classifier_hidden_sizes": []},
    "gated": {"pair_features": ["gated", "signed_difference"], "gated_size": 3, "num_attention_heads": 2},
    "no batch normalisation": {"classifier_batch_norm": False},
    "highway": {"classifier_highway": True},
    **SYSTEM_CASES,
    **PROJECTION_CASES,
    "cosine of a projection": {**PROJECTION_CASES["projection"], "pair_features": ["cosine", "first"]},
    "bilstm, structured": {**SYSTEM_CASES["bilstm"], "pooling": "structured", "num_attention_heads": 2},
    "kim_cnn, max": {**SYSTEM_CASES["kim_cnn"], "pooling": "max", "normalize_tokens": False},
    "bilstm, last, not normalised": {**SYSTEM_CASES["last"], "normalize_tokens": False},
    "no encoder, variational": {"encoder": "none", "pooling": "variational"},
    "three tokens, dynamic": {"max_sentence_tokens": 3},
    "three tokens, variational by position": {**SYSTEM_CASES["variational by position"], "max_sentence_tokens": 3},
}
POOLINGS: dict[str, dict[str, Any]] = {
    **{
        f"r={r} m={m}": {"routing_iterations": r, "num_attention_heads": m}
        for r, m in [(1, 1), (2, 1), (2, 8), (5, 8)]  # CASES compares more of them with the paper
    },
    **SYSTEM_CASES,
    **PROJECTION_CASES,
}
# One of each encoder, each pooling and what may follow it.
SYSTEMS: dict[str, dict[str, Any]] = {"dynamic": {}, **SYSTEM_CASES, **PROJECTION_CASES}


@cache
def model_of(pooling: str, sentences_per_example: int = 1, deduplicate: bool = True) -> DSAModel:
    """One encoder for each pooling; its copies for pairs or without deduplication have the same weights."""
    config = small_config(
        **POOLINGS[pooling], sentences_per_example=sentences_per_example, deduplicate_sentences=deduplicate
    )
    model = randomize(DSAModel(config)).double()  # float64 shows a leak of any size; float32 has its own test
    model.eval()
    return model


def batch_of_pairs(pairs: Sequence[tuple[list[int], list[int]]], **padding: Any) -> dict[str, Tensor]:
    """`input_ids` and `attention_mask` of `premise [SEP] hypothesis` rows."""
    ids, mask = pad_rows([join_pair(*pair) for pair in pairs], **padding)
    return {"input_ids": ids, "attention_mask": mask}


def types_of_pairs(input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """`token_type_ids` as the tokenizer gives them: 0 up to the separator, 1 behind it."""
    return ((input_ids == SEP).cumsum(1) > 0).long() * attention_mask * (input_ids != SEP)


def watch_rows(layer: nn.Module) -> list[int]:
    """The number of rows of each call of a layer from now on."""
    seen: list[int] = []
    layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].shape[0]))
    return seen


# The model is the paper's


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES.keys())
def test_the_model_equals_the_paper_token_by_token(changes: dict[str, Any]) -> None:
    config = small_config(sentences_per_example=2, **changes)
    model = randomize(DSAForNLI(config)).double().eval()
    batch = batch_of_pairs(EXAMPLE_PAIRS, left=[0, 3, 1, 2, 0, 4], right=1)
    outputs = model(**batch, output_attentions=True, output_hidden_states=True)
    encoded = model.dsa(**batch)
    assert torch.equal(encoded.last_hidden_state, outputs.hidden_states[-1])

    weights = reference.read_weights(model)
    table = weights["embed_tokens.weight"]
    for row, pair in enumerate(EXAMPLE_PAIRS):
        vectors, penalties = [], []
        for slot, tokens in enumerate(pair):
            expected = reference.encode(weights, config, [table[token] for token in tokens])
            vectors.append(expected.vector)
            vector = encoded.second_pooler_output if slot else encoded.pooler_output
            torch.testing.assert_close(vector[row], expected.vector, rtol=0, atol=1e-10)
            separator = (batch["input_ids"][row] == SEP).nonzero().item()
            start = separator + 1 if slot else separator - len(tokens)
            if config.pooling == "structured":
                penalties.append(reference.structured_penalty(expected.attentions[0]))
            if not tokens:
                continue
            tokens = tokens[: config.max_sentence_tokens]
            span = slice(int(start), int(start) + len(tokens))
            layers = [*expected.between, expected.encoded]
            for hidden, layer in zip(outputs.hidden_states[1:], layers, strict=True):
                torch.testing.assert_close(hidden[row, span], torch.stack(layer), rtol=0, atol=1e-10)
            torch.testing.assert_close(outputs.hidden_states[0][row, span], table[tokens], rtol=0, atol=0)
            for attention, heads in zip(outputs.attentions, expected.attentions, strict=True):
                rows = torch.stack([torch.stack(head) for head in heads])
                tolerance = 1e-7 if config.pooling == "max" else 1e-10  # max's shares are float32
                torch.testing.assert_close(attention[row, :, span].double(), rows, rtol=0, atol=tolerance)
            if config.word_shortcut:
                a = torch.stack(reference.softmax([weights["shortcut.score"] @ table[token] for token in tokens]))
                torch.testing.assert_close(outputs.shortcut_attention[row, span], a, rtol=0, atol=1e-10)
        if penalties:
            torch.testing.assert_close(outputs.attention_penalty[row], sum(penalties), rtol=0, atol=1e-10)
        logits = reference.classify(weights, config, *vectors, ids=pair)
        torch.testing.assert_close(outputs.logits[row], logits, rtol=0, atol=1e-10)


@pytest.mark.parametrize("changes", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_the_classifier_of_sentences_equals_the_paper(changes: dict[str, Any]) -> None:
    config = small_config(classifier_hidden_sizes=[6], **changes)
    model = randomize(DSAForSequenceClassification(config)).double().eval()
    rows = [[5, 6, 7], [8], [], [9, 10, 11, 12]]
    logits = model(*pad_rows(rows)).logits
    weights = reference.read_weights(model)
    for row, tokens in enumerate(rows):
        vector = reference.encode(weights, config, [weights["embed_tokens.weight"][token] for token in tokens]).vector
        torch.testing.assert_close(logits[row], reference.classify(weights, config, vector), rtol=0, atol=1e-10)


@pytest.mark.parametrize("changes", [{"routing_iterations": 3}, *SYSTEMS.values()], ids=["r=3", *SYSTEMS])
def test_gradcheck_from_word_vectors_to_logits(changes: dict[str, Any]) -> None:
    model = randomize(DSAForNLI(small_config(sentences_per_example=2, **changes))).double().eval()
    types = torch.tensor([[0, 0, 1], [0, 1, 1]])
    mask = torch.tensor([[1, 1, 1], [0, 1, 1]])
    tokens = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)

    def classify(tokens: Tensor) -> Tensor:
        logits: Tensor = model(inputs_embeds=tokens, attention_mask=mask, token_type_ids=types).logits
        return logits

    # One random direction, a tenth of the time: so near that an error in few of the numbers shows in it.
    assert torch.autograd.gradcheck(classify, tokens, fast_mode=True, atol=1e-9, rtol=1e-7)


PAPER_COUNTS = {"dsa-single-snli": 2_078_703, "dsa-multiple-snli": 7_003_731, "static-cnn-snli": 2_439_303}
# Of other papers' systems; docs/pages/papers.md says how they compare with what was published.
OTHER_COUNTS = {
    "bilstm-inner-attention-snli": 2_766_403,
    "disan-snli": 2_344_203,
    "distance-san-snli": 4_689_003,
    "gumbel-treelstm-snli": 10_329_299,
    "resan-snli": 3_066_005,
    "lin-snli": 95_155_303,
    "bilstm-max-snli": 46_893_059,
    "residual-stacked-snli": 28_992_803,
}


@pytest.mark.parametrize(("name", "count"), (PAPER_COUNTS | OTHER_COUNTS).items())
def test_the_shipped_configs_have_the_papers_number_of_parameters(name: str, count: int) -> None:
    config = DSAConfig.from_pretrained(SHIPPED / name, vocab_size=9)
    assert config.architectures == ["DSAForNLI"]
    with torch.device("meta"):
        model = DSAForNLI(config)
    weights = dict(model.named_parameters())
    del weights["dsa.embed_tokens.weight"]
    assert sum(weight.numel() for weight in weights.values()) == count


# Padding changes nothing and costs nothing


@pytest.mark.parametrize("pooling", POOLINGS)
@settings(max_examples=10)
@given(pairs=PAIRS, data=st.data(), masked=st.booleans(), deduplicate=st.booleans())
def test_a_sentence_has_one_vector_alone_in_any_batch_and_in_either_slot(
    pooling: str, pairs: list[tuple[list[int], list[int]]], data: st.DataObject, masked: bool, deduplicate: bool
) -> None:
    lefts = data.draw(st.lists(st.integers(0, 4), min_size=len(pairs), max_size=len(pairs)))
    batch = batch_of_pairs(pairs, left=lefts, right=data.draw(st.integers(0, 4)))
    if not masked:
        del batch["attention_mask"]
    with torch.no_grad():
        together = model_of(pooling, sentences_per_example=2, deduplicate=deduplicate)(**batch)
        single = model_of(pooling)
        for row, pair in enumerate(pairs):
            for vectors, tokens in zip((together.pooler_output, together.second_pooler_output), pair, strict=True):
                alone = single(torch.tensor([tokens or [PAD]])).pooler_output[0]
                torch.testing.assert_close(vectors[row], alone, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_sentence_has_one_vector_in_float32_at_the_papers_size(pooling: str) -> None:
    """Within 1e-6, where a small model's few channels would blow up the rounding of a short vector."""
    settings: dict[str, Any] = {"vocab_size": VOCABULARY, "unknown_init_range": 0.5, "sentences_per_example": 2}
    settings |= {name: value for name, value in POOLINGS[pooling].items() if name != "hidden_size"}
    if settings.get("num_attention_heads") == 8:
        settings["attention_head_size"] = 300
    model = DSAModel(DSAConfig(**settings)).eval()
    with torch.no_grad():
        for deduplicate, left in ((True, 0), (True, [0, 3, 1, 2, 0, 40]), (False, 5)):
            model.config.deduplicate_sentences = deduplicate
            together = model(**batch_of_pairs(EXAMPLE_PAIRS, left=left, right=2))
            for row, pair in enumerate(EXAMPLE_PAIRS):
                for vectors, tokens in zip((together.pooler_output, together.second_pooler_output), pair, strict=True):
                    alone = model(torch.tensor([tokens or [PAD]])).pooler_output[0]
                    torch.testing.assert_close(vectors[row], alone, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHER_COUNTS)
def test_a_sentence_has_one_vector_in_float32_in_each_row_of_table_1(name: str) -> None:
    """Within 2e-6 of the vector's largest number, alone and among enough others that other kernels compute it."""
    torch.manual_seed(0)
    model = DSAModel(DSAConfig.from_pretrained(SHIPPED / name, vocab_size=500, unknown_init_range=0.5)).eval()
    lengths = torch.randint(1, 40, (32,))
    ids = torch.randint(5, 500, (32, 40)) * (torch.arange(40) < lengths[:, None])
    with torch.no_grad():
        together = model(ids, attention_mask=(ids > 0).long()).pooler_output
        for vector, row, length in zip(together, ids, lengths, strict=True):
            alone = model(row[None, :length]).pooler_output[0]
            largest = max(1.0, alone.abs().max().item())
            torch.testing.assert_close(vector, alone, rtol=0, atol=2e-6 * largest)


@pytest.mark.parametrize(("left", "right"), [(0, 50), (50, 0), (50, 50)])
def test_wide_padding_on_either_side_changes_nothing(left: int, right: int) -> None:
    pairs = batch_of_pairs(EXAMPLE_PAIRS)
    padded = batch_of_pairs(EXAMPLE_PAIRS, left=left, right=right)
    model = model_of("r=5 m=8", sentences_per_example=2)
    plain, wide = model(**pairs), model(**padded)
    torch.testing.assert_close(wide.pooler_output, plain.pooler_output, rtol=0, atol=1e-12)
    torch.testing.assert_close(wide.second_pooler_output, plain.second_pooler_output, rtol=0, atol=1e-12)


@pytest.mark.parametrize("fill", [PAD, 9, SEP])
def test_ids_below_the_mask_are_never_read(fill: int) -> None:
    model = model_of("r=2 m=1", sentences_per_example=2)
    clean = model(**batch_of_pairs(EXAMPLE_PAIRS, left=2, right=2))
    noisy = model(**batch_of_pairs(EXAMPLE_PAIRS, left=2, right=2, fill=fill))
    torch.testing.assert_close(noisy.pooler_output, clean.pooler_output, rtol=0, atol=1e-12)
    torch.testing.assert_close(noisy.second_pooler_output, clean.second_pooler_output, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention_mask": torch.ones(1, 4)}, r"attention_mask must have the shape (2, 4) of its batch, got (1, 4)."),
        ({"token_type_ids": torch.ones(2, 3)}, r"token_type_ids must have the shape (2, 4) of its batch, got (2, 3)."),
        (
            {"attention_mask": torch.tensor([[0, 0, 0, -1e9]] * 2)},
            "attention_mask must be 1 for tokens and 0 for",
        ),
        ({"input_ids": torch.ones(4, dtype=torch.long)}, "input_ids must have the shape (batch, tokens), got (4,)."),
        (
            {"input_ids": None, "inputs_embeds": torch.ones(2, 4, 3)},
            "inputs_embeds must have the shape (batch, ",
        ),
    ],
)
def test_inputs_that_would_be_read_for_others_are_refused(changes: dict[str, Tensor | None], message: str) -> None:
    inputs = {"input_ids": torch.full((2, 4), 9), "attention_mask": torch.ones(2, 4)}
    with pytest.raises(ValueError, match=re.escape(message)):
        model_of("r=2 m=1")(**(inputs | changes))


def test_a_mask_of_another_shape_gives_no_vectors_of_sentences() -> None:
    with pytest.raises(ValueError, match=r"attention_mask must have the shape \(2, 4\) of its batch, got \(1, 4\)"):
        model_of("r=2 m=1").sentence_vectors(torch.full((2, 4), 9), torch.ones(1, 4))


def test_padding_stays_zero_in_every_output() -> None:
    batch = batch_of_pairs(EXAMPLE_PAIRS, left=2, right=2)
    outputs = model_of("r=2 m=8", sentences_per_example=2)(**batch, output_attentions=True, output_hidden_states=True)
    outside = (batch["attention_mask"] == 0) | (batch["input_ids"] == SEP)
    for hidden in (*outputs.hidden_states, *(attention.transpose(1, 2) for attention in outputs.attentions)):
        assert torch.all(hidden[outside] == 0)
        assert torch.all(hidden[~outside].abs().sum(1) > 0)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("deduplicate", [True, False])
def test_the_encoder_sees_the_tokens_of_distinct_sentences(deduplicate: bool, training: bool) -> None:
    model = DSAModel(small_config(sentences_per_example=2, deduplicate_sentences=deduplicate)).train(training)
    first = watch_rows(model.encoder.branches[0].first)
    last = watch_rows(model.encoder.compression)
    pooled = watch_rows(model.pooling.projection)
    sentences = [sentence for pair in EXAMPLE_PAIRS for sentence in pair]
    if deduplicate:
        sentences = [sentence for number, sentence in enumerate(sentences) if sentence not in sentences[:number]]
        assert len(sentences) == 8
    tokens, gaps = sum(map(len, sentences)), 0 if training else 2 * (len(sentences) - 1)
    for padding in (0, 40):
        model(**batch_of_pairs(EXAMPLE_PAIRS, left=padding, right=padding))
    assert pooled == [tokens] * 2
    assert first == last
    assert tokens + gaps <= first[0] == first[1] <= tokens + gaps + 15  # rows may be rounded up to 16


def test_a_sentence_that_fills_the_batch_is_encoded_once() -> None:
    model = DSAModel(small_config(sentences_per_example=2)).train()
    tokens = watch_rows(model.pooling.projection)
    outputs = model(**batch_of_pairs([([5, 6, 7], [5, 6, 7])] * 50))
    assert tokens == [3]
    vectors = torch.cat([outputs.pooler_output, outputs.second_pooler_output])
    assert torch.equal(vectors, vectors[:1].expand(100, -1))


@pytest.mark.parametrize("deduplicate", [True, False])
def test_copies_of_a_sentence_share_a_dropout_mask_only_when_deduplicated(deduplicate: bool) -> None:
    model = DSAModel(small_config(deduplicate_sentences=deduplicate, embedding_dropout=0.5)).train()
    vectors = model(torch.tensor([[5, 6, 7, 8, 9, 10]] * 4)).pooler_output
    shared = [torch.equal(vectors[0], other) for other in vectors[1:]]
    assert shared == [deduplicate] * 3


@pytest.mark.parametrize("pooling", POOLINGS)
def test_deduplication_changes_no_vector_and_no_gradient(pooling: str) -> None:
    gradients = []
    for deduplicate in (True, False):
        model = randomize(DSAForNLI(small_config(**POOLINGS[pooling], sentences_per_example=2))).double().eval()
        model.config.deduplicate_sentences = deduplicate
        loss = model(**batch_of_pairs(EXAMPLE_PAIRS), labels=torch.tensor([0, 1, 2, 0, 1, 2])).loss
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        # At prediction VSAM's posterior is not read, and what is chosen has no gradient: of a tree, by hard attention.
        unread = model.config.pooling in ("variational", "gumbel_tree", "reinforced")
        gradients.append([loss, *torch.autograd.grad(loss, weights, materialize_grads=unread)])
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0, atol=1e-10)


@settings(max_examples=50)
@given(PAIRS.filter(lambda pairs: any(map(any, pairs))), st.data())
def test_a_sentence_does_not_feel_its_neighbours(pairs: list[tuple[list[int], list[int]]], data: st.DataObject) -> None:
    """With every other sentence replaced by one of the same length, the kept sentence's vector stays."""
    row = data.draw(st.integers(0, len(pairs) - 1))
    slot = data.draw(st.integers(0, 1))
    others = [([token + 20 for token in first], [token + 20 for token in second]) for first, second in pairs]
    others[row] = (others[row][0], pairs[row][1]) if slot else (pairs[row][0], others[row][1])
    model = model_of("r=2 m=1", sentences_per_example=2)
    outputs = [model(**batch_of_pairs(batch)) for batch in (pairs, others)]
    before, after = (o.second_pooler_output[row] if slot else o.pooler_output[row] for o in outputs)
    torch.testing.assert_close(before, after, rtol=0, atol=1e-12)


# What a row holds


def test_a_separator_splits_like_token_types() -> None:
    batch = batch_of_pairs(EXAMPLE_PAIRS, left=[0, 1, 2, 0, 1, 2])
    model = model_of("r=2 m=1", sentences_per_example=2)
    split = model(**batch)
    typed = model(**batch, token_type_ids=types_of_pairs(**batch))
    assert torch.equal(split.pooler_output, typed.pooler_output)
    assert torch.equal(split.second_pooler_output, typed.second_pooler_output)


@pytest.mark.parametrize(
    ("ids", "mask", "types"),
    [
        ([[5, 9, 6, 10, 7]], None, [[0, 1, 0, 1, 0]]),  # interleaved
        ([[5, PAD, 6, 10, 7, PAD, 9, 10]], [[1, 0, 1, 0, 1, 0, 1, 1]], [[0, 0, 0, 0, 0, 0, 1, 1]]),  # holes
        ([[PAD, PAD, 9, 10, 5, 6, 7]], None, [[0, 0, 1, 1, 0, 0, 0]]),  # the second sentence stands first
        ([[5, 6, 7, SEP, 9, 10, SEP]], None, None),  # a separator at the end
        ([[5, SEP, 6, 7, SEP, 9, 10]], None, [[0, 0, 0, 0, 0, 1, 1]]),  # a separator inside a sentence is no token
    ],
)
def test_rows_of_any_layout_hold_the_same_pair(
    ids: list[list[int]], mask: list[list[int]] | None, types: list[list[int]] | None
) -> None:
    model = model_of("r=5 m=8", sentences_per_example=2)
    optional = [None if value is None else torch.tensor(value) for value in (mask, types)]
    plain, other = model(torch.tensor([[5, 6, 7, SEP, 9, 10]])), model(torch.tensor(ids), *optional)
    torch.testing.assert_close(other.pooler_output, plain.pooler_output, rtol=0, atol=1e-12)
    torch.testing.assert_close(other.second_pooler_output, plain.second_pooler_output, rtol=0, atol=1e-12)


def test_token_types_do_not_matter_where_a_row_is_one_sentence() -> None:
    ids = torch.tensor([[5, 6, 7]])
    model = model_of("r=2 m=1")
    assert torch.equal(model(ids, token_type_ids=ids.new_tensor([[0, 0, 1]])).pooler_output, model(ids).pooler_output)


TINY = {
    "empty first sentence": torch.tensor([[SEP, 7], [5, 6]]),
    "a row of padding": torch.tensor([[5, 6, SEP, 7], [PAD, PAD, PAD, PAD]]),
    "one token": torch.tensor([[5], [6]]),
    "batch of one": torch.tensor([[5, 6, SEP, 7]]),
    "one token, batch of one": torch.tensor([[5]]),
}
WORDLESS = {
    "all padding": torch.full((2, 3), PAD),
    "one row": torch.full((1, 3), PAD),
    "separators only": torch.tensor([[SEP, SEP], [SEP, PAD]]),
    "no columns": torch.zeros(2, 0, dtype=torch.long),  # what the tokenizer makes of empty texts
    "no columns, one row": torch.zeros(1, 0, dtype=torch.long),
    "no rows": torch.zeros(0, 5, dtype=torch.long),
}


def vectors_of(model: DSAModel, ids: Tensor) -> Tensor:
    """The sentence vectors of both slots, (sentences, width)."""
    outputs = model(ids, output_attentions=True, output_hidden_states=True)
    return torch.cat([v for v in (outputs.pooler_output, outputs.second_pooler_output) if v is not None])


@pytest.mark.parametrize(
    ("training", "per_row"),
    [(False, 1), (True, 2), *(pytest.param(*other, marks=pytest.mark.slow) for other in ((False, 2), (True, 1)))],
)
@pytest.mark.parametrize("system", SYSTEMS)
def test_empty_sentences_and_single_tokens_stay_finite(system: str, per_row: int, training: bool) -> None:
    config = small_config(**SYSTEMS[system], sentences_per_example=per_row, freeze_embeddings=False)
    model = randomize(DSAModel(config)).train(training)
    noise = torch.get_rng_state()
    for case, ids in TINY.items():
        model.zero_grad()
        torch.set_rng_state(noise)  # whatever batch came before
        vectors = vectors_of(model, ids)
        assert vectors.shape == (len(ids) * per_row, config.sentence_embedding_size), case
        assert torch.isfinite(vectors).all(), case
        torch.autograd.backward(vectors.sum())
        gradients = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
        assert all(torch.isfinite(gradient).all() for gradient in gradients.values()), case
        assert torch.any(gradients["embed_tokens.weight"] != 0), case
        if config.pooling in ("dynamic", "static"):
            assert torch.any(gradients["pooling.projection.weight"] != 0), case


@pytest.mark.parametrize("per_row", [1, 2])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_batch_without_tokens_gives_zeros(system: str, per_row: int) -> None:
    model = DSAModel(small_config(**SYSTEMS[system], sentences_per_example=per_row)).eval()
    for case, ids in WORDLESS.items():
        expected = torch.zeros(len(ids) * per_row, model.config.sentence_embedding_size)
        assert torch.equal(vectors_of(model, ids), expected), case


@pytest.mark.parametrize("changes", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_a_batch_without_tokens_can_be_trained_on(changes: dict[str, Any]) -> None:
    """As one process of several may have to: its gradients are 0."""
    model = DSAModel(small_config(**changes, freeze_embeddings=False)).train()
    torch.autograd.backward(model(WORDLESS["all padding"]).pooler_output.sum())
    assert all(weight.grad is None or torch.all(weight.grad == 0) for weight in model.parameters())


@pytest.mark.parametrize("changes", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_a_classifier_of_a_batch_without_tokens_gives_every_weight_a_gradient(changes: dict[str, Any]) -> None:
    """Processes that train together wait for each other's gradients of all weights."""
    model = DSAForSequenceClassification(small_config(**changes, freeze_embeddings=False)).train()
    model(WORDLESS["all padding"], labels=torch.tensor([0, 1])).loss.backward()
    assert not [name for name, weight in model.named_parameters() if weight.grad is None]


@pytest.mark.parametrize(
    "ids", [WORDLESS["all padding"], TINY["a row of padding"]], ids=["all padding", "a row of padding"]
)
@pytest.mark.parametrize("changes", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_a_classifier_trains_on_a_batch_with_empty_rows(changes: dict[str, Any], ids: Tensor) -> None:
    model = DSAForNLI(small_config(**changes, sentences_per_example=2)).train()
    outputs = model(ids, labels=torch.tensor([0, 1]))
    outputs.loss.backward()
    assert torch.isfinite(outputs.loss)
    assert all(weight.grad is None or torch.isfinite(weight.grad).all() for weight in model.parameters())


@pytest.mark.parametrize("given", [{}, {"input_ids": torch.tensor([[5]]), "inputs_embeds": torch.zeros(1, 1, 6)}])
def test_ids_or_vectors_and_not_both(given: dict[str, Tensor]) -> None:
    for model in (model_of("r=2 m=1"), DSAForSequenceClassification(small_config()).eval()):
        with pytest.raises(ValueError, match="Give either input_ids or inputs_embeds, and not both"):
            model(**given)


def test_word_vectors_give_what_their_ids_give() -> None:
    model = DSAForNLI(small_config(sentences_per_example=2)).eval()
    batch = batch_of_pairs(EXAMPLE_PAIRS, left=1, right=2)
    types = types_of_pairs(**batch)
    mask = batch["attention_mask"] * (batch["input_ids"] != SEP)
    embedded = model.get_input_embeddings()(batch["input_ids"])
    by_ids = model(**batch, output_hidden_states=True)
    by_vectors = model(inputs_embeds=embedded, attention_mask=mask, token_type_ids=types, output_hidden_states=True)
    torch.testing.assert_close(by_vectors.logits, by_ids.logits, rtol=0, atol=1e-6)
    torch.testing.assert_close(by_vectors.hidden_states, by_ids.hidden_states, rtol=0, atol=1e-6)
    with pytest.raises(AssertionError):  # the tokens do matter
        torch.testing.assert_close(model(inputs_embeds=embedded + 1, attention_mask=mask).logits, by_ids.logits)


# The first tokens of a sentence


@pytest.mark.parametrize("system", ["dynamic", "max", "last", "structured", "pairwise encoder", "variational"])
@settings(max_examples=15)
@given(pairs=PAIRS, limit=st.integers(1, 4), data=st.data())
def test_a_model_that_reads_some_tokens_gives_what_it_gives_for_sentences_of_these(
    system: str, pairs: list[tuple[list[int], list[int]]], limit: int, data: st.DataObject
) -> None:
    torch.manual_seed(0)
    model = DSAForNLI(small_config(**SYSTEMS[system], sentences_per_example=2)).double().eval()
    lefts = data.draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)))
    whole = batch_of_pairs(pairs, left=lefts, right=1)
    cut = batch_of_pairs([(first[:limit], second[:limit]) for first, second in pairs])
    with torch.no_grad():
        expected = model(**cut).logits
        model.config.max_sentence_tokens = limit
        torch.testing.assert_close(model(**whole).logits, expected, rtol=0, atol=1e-12)
        by_types = model(**whole, token_type_ids=types_of_pairs(**whole)).logits
        torch.testing.assert_close(by_types, expected, rtol=0, atol=1e-12)
        vectors, limited = model.dsa.get_input_embeddings()(whole["input_ids"]), whole["attention_mask"].bool()
        by_vectors = model(
            inputs_embeds=vectors,
            attention_mask=limited & (whole["input_ids"] != SEP),
            token_type_ids=types_of_pairs(**whole),
        ).logits
        torch.testing.assert_close(by_vectors, expected, rtol=0, atol=1e-12)


def test_all_tokens_are_read_without_a_limit_and_none_behind_it() -> None:
    ids = torch.arange(FIRST_TOKEN, FIRST_TOKEN + 30)[None]
    changed = ids.clone()
    changed[0, 12] = 39
    for limit, equal in ((None, False), (13, False), (12, True)):
        config = small_config(pooling="max", encoder="none", normalize_tokens=False, max_sentence_tokens=limit)
        model = randomize(DSAModel(config)).eval()
        with torch.no_grad():
            model.get_parameter("embed_tokens.weight")[39] = 100.0
        before, after = model(ids), model(changed)
        assert before.pooler_output.max().item() < 100
        assert (after.pooler_output.max().item() == 100) != equal
        assert torch.all(before.last_hidden_state[0, limit or 30 :] == 0)


class LargestTensor(TorchDispatchMode):
    """Remembers the largest number of elements that an operation made memory for."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        outputs = func(*args, **(kwargs or {}))
        for value in tree_leaves(outputs):
            if isinstance(value, Tensor):
                self.elements = max(self.elements, value.untyped_storage().nbytes() // value.element_size())
        return outputs


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("changes", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_a_head_makes_nothing_as_large_as_the_padded_batch(changes: dict[str, Any], training: bool) -> None:
    """One long sentence among many short ones, of which the model reads 8 tokens each."""
    model = DSAForNLI(small_config(**(changes | {"max_sentence_tokens": 8}), sentences_per_example=2)).train(training)
    batch = batch_of_pairs([([5, 6, 7], [8])] * 30 + [([9] * 4000, [10])])
    rows, padded = batch["input_ids"].shape
    with LargestTensor() as largest:
        model(**batch, labels=torch.zeros(rows, dtype=torch.long)).loss.backward()
    assert rows * padded <= largest.elements <= 2 * rows * padded  # masks and ids, but no vector for padding
    with LargestTensor() as largest:
        model.dsa(**batch)  # which lays the tokens out as in the batch
    assert largest.elements >= rows * padded * model.config.encoded_size


def test_a_sentence_of_very_many_tokens_stays_exact() -> None:
    """The sums run over 100,000 tokens one after another."""
    settings: dict[str, Any] = {"encoder": "none", "normalize_tokens": False, "pooling": "structured"}
    model = randomize(DSAModel(small_config(**settings))).eval()
    ids = torch.randint(FIRST_TOKEN, VOCABULARY, (1, 100_000))
    exact = model.double()(ids).pooler_output
    rough = model.float()(ids, output_attentions=True)
    torch.testing.assert_close(rough.pooler_output.double(), exact, rtol=0, atol=1e-4)
    assert rough.attentions[0].sum().item() == pytest.approx(1, abs=1e-3)


# Outputs


@pytest.mark.parametrize(
    "changes", [*SYSTEMS.values(), CASES["three tokens, dynamic"]], ids=[*SYSTEMS, "three tokens, dynamic"]
)
def test_attentions_are_weights_over_each_sentence(changes: dict[str, Any]) -> None:
    config = small_config(sentences_per_example=2, **changes)
    batch = batch_of_pairs(EXAMPLE_PAIRS, left=[0, 3, 1, 2, 0, 4])
    attentions = DSAModel(config).eval()(**batch, output_attentions=True).attentions
    maps = 0 if config.pooling in WITHOUT_WEIGHTS else 1
    assert len(attentions) == {"dynamic": config.routing_iterations}.get(config.pooling, maps)
    second = types_of_pairs(**batch).bool()
    first = batch["attention_mask"].bool() & (batch["input_ids"] != SEP) & ~second
    if config.max_sentence_tokens is not None:
        first, second = (part & (part.cumsum(1) <= config.max_sentence_tokens) for part in (first, second))
    for attention in attentions:
        assert attention.shape == (len(EXAMPLE_PAIRS), config.num_attention_heads, batch["input_ids"].shape[1])
        assert torch.all(attention >= 0)
        for sentence in (first, second):
            sums = (attention * sentence[:, None]).sum(2)  # (batch, heads)
            torch.testing.assert_close(sums, sentence.any(1).float()[:, None].expand_as(sums))
        assert torch.all(attention.masked_select(~(first | second)[:, None]) == 0)


def test_hidden_states_run_from_the_word_vectors_to_the_encoded_tokens() -> None:
    model = DSAModel(small_config(kernel_sizes=[3, 5, 7], num_hidden_layers=2)).eval()
    ids, mask = pad_rows([[5, 6, 7], [8]])
    outputs = model(ids, mask, output_hidden_states=True)
    assert [tuple(hidden.shape) for hidden in outputs.hidden_states] == [(2, 3, 6), *[(2, 3, 4 + 2 * 3)] * 3, (2, 3, 5)]
    assert torch.equal(outputs.hidden_states[0], model.get_input_embeddings()(ids) * mask[..., None])
    assert torch.equal(outputs.hidden_states[-1], outputs.last_hidden_state)


@pytest.mark.parametrize("kind", [DSAModel, DSAForSequenceClassification])
@pytest.mark.parametrize("flag", ["output_attentions", "output_hidden_states"])
def test_output_flags_come_from_the_call_or_the_config(kind: type[DSAPreTrainedModel], flag: str) -> None:
    field = flag.removeprefix("output_")
    ids = torch.tensor([[5, 6]])
    plain, asked = kind(small_config()).eval(), kind(small_config(**{flag: True})).eval()
    assert plain(ids)[field] is None if field in plain(ids) else field not in plain(ids)
    assert len(plain(ids, **{flag: True})[field]) == len(asked(ids)[field]) > 0
    assert field not in asked(ids, **{flag: False})
    assert ({"attentions", "hidden_states"} - {field}).isdisjoint(asked(ids).keys())


def test_outputs_as_a_tuple() -> None:
    ids = torch.tensor([[5, 6, SEP, 7]])
    model = DSAForNLI(small_config(sentences_per_example=2)).eval()
    named = model.dsa(ids, output_attentions=True)
    plain = model.dsa(ids, output_attentions=True, return_dict=False)
    assert isinstance(plain, tuple)
    expected = (named.last_hidden_state, named.pooler_output, named.second_pooler_output, named.attentions)
    torch.testing.assert_close(plain, expected, rtol=0, atol=0)
    loss, logits = model(ids, labels=torch.tensor([1]), return_dict=False)
    assert loss.shape == ()
    assert torch.equal(logits, model(ids).logits)
    by_config = DSAModel(small_config(return_dict=False)).eval()(ids)
    assert isinstance(by_config, tuple)
    assert [value.shape for value in by_config] == [(1, 4, 5), (1, 4)]


LOSSES: dict[str, tuple[dict[str, Any], Tensor, Callable[[Tensor, Tensor], Tensor]]] = {
    "single_label_classification": ({"num_labels": 3}, torch.tensor([0, 2, 1, 1, 0, 2]), F.cross_entropy),
    "multi_label_classification": (
        {"num_labels": 3},
        torch.tensor([[0.0, 1.0, 1.0]] * 6),
        F.binary_cross_entropy_with_logits,
    ),
    "regression": (
        {"num_labels": 1},
        torch.arange(6.0),
        lambda logits, labels: F.mse_loss(logits.squeeze(), labels),
    ),
}


@pytest.mark.parametrize(("per_row", "named"), [(1, True), (2, False)])
@pytest.mark.parametrize("problem", LOSSES)
def test_the_loss_follows_the_problem_type(problem: str, per_row: int, named: bool) -> None:
    """Named in the config, or found from the labels as transformers finds it."""
    changes, labels, loss = LOSSES[problem]
    kind = DSAForNLI if per_row == 2 else DSAForSequenceClassification
    model = kind(small_config(sentences_per_example=per_row, problem_type=problem if named else None, **changes)).eval()
    outputs = model(**batch_of_pairs(EXAMPLE_PAIRS), labels=labels)
    torch.testing.assert_close(outputs.loss, loss(outputs.logits, labels))
    outputs.loss.backward()
    assert model.dsa.pooling.projection.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(("coefficient", "training"), [(0.0, True), (0.3, False), (2.0, True)])
def test_the_penalty_enters_the_loss_with_its_coefficient(coefficient: float, training: bool) -> None:
    config = small_config(pooling="structured", num_attention_heads=3, attention_penalty=coefficient)
    model = DSAForSequenceClassification(config).train(training)
    ids, mask = pad_rows([[5, 6, 7], [8], [5, 6, 7], [9, 10, 11, 12]])
    labels = torch.tensor([0, 1, 2, 0])
    outputs = model(ids, mask, labels=labels)
    assert outputs.attention_penalty.shape == (4,)
    assert torch.all(outputs.attention_penalty > 0)
    torch.testing.assert_close(outputs.reconstruction_loss, F.cross_entropy(outputs.logits, labels))
    expected = outputs.reconstruction_loss + coefficient * outputs.attention_penalty.mean()
    torch.testing.assert_close(outputs.loss, expected)
    assert model(ids, mask).loss is None


HEADS = {
    **SYSTEMS,
    "variational, samples": {"pooling": "variational", "num_prediction_samples": 4, "num_training_samples": 3},
}


def trainer_of(model: DSAForSequenceClassification, folder: Path) -> Trainer:
    arguments = TrainingArguments(output_dir=str(folder), report_to=[], use_cpu=True, disable_tqdm=True)
    return Trainer(model, arguments)


@pytest.mark.parametrize("changes", HEADS.values(), ids=HEADS.keys())
def test_transformers_trainer_predicts_logits_and_nothing_else(changes: dict[str, Any], tmp_path: Path) -> None:
    model = DSAForNLI(small_config(**changes, sentences_per_example=2)).eval()
    trainer = trainer_of(model, tmp_path)
    inputs = {**batch_of_pairs(EXAMPLE_PAIRS), "labels": torch.tensor([0, 1, 2, 0, 1, 2])}
    torch.manual_seed(0)
    with torch.no_grad():  # as it predicts; on some processors an LSTM rounds otherwise with gradients
        expected = model(**inputs)
    torch.manual_seed(0)
    loss, logits, labels = trainer.prediction_step(model, dict(inputs), prediction_loss_only=False)
    assert isinstance(logits, Tensor)
    torch.testing.assert_close(logits, expected.logits, rtol=0, atol=0)
    torch.testing.assert_close(loss, expected.loss)
    torch.testing.assert_close(labels, inputs["labels"])


@pytest.mark.parametrize("changes", HEADS.values(), ids=HEADS.keys())
def test_transformers_trainer_trains_with_the_models_own_loss(changes: dict[str, Any], tmp_path: Path) -> None:
    """It may hand the loss the number of rows of several batches, which is not that of the samples."""
    model = DSAForNLI(small_config(**changes, sentences_per_example=2)).train()
    trainer = trainer_of(model, tmp_path)
    inputs = {**batch_of_pairs(EXAMPLE_PAIRS), "labels": torch.tensor([0, 1, 2, 0, 1, 2])}
    torch.manual_seed(0)
    expected = model(**inputs).loss
    torch.manual_seed(0)
    loss = trainer.compute_loss(model, dict(inputs), num_items_in_batch=torch.tensor(6))
    torch.testing.assert_close(loss, expected)


def test_a_pair_without_a_second_text_gets_a_hint(caplog: pytest.LogCaptureFixture) -> None:
    model = randomize(DSAForNLI(small_config(sentences_per_example=2))).eval()
    logging.get_logger().warning_once.cache_clear()  # type: ignore[attr-defined]  # it is said once a process
    pair = torch.tensor([[FIRST_TOKEN, SEP, FIRST_TOKEN]])
    model(pair)
    # To delete the words of a text is no mistake.
    model(pair, attention_mask=torch.tensor([[1, 1, 0]]), token_type_ids=torch.tensor([[0, 0, 1]]))
    assert not caplog.messages
    model(torch.tensor([[FIRST_TOKEN, FIRST_TOKEN, FIRST_TOKEN]]))
    assert caplog.messages[0].startswith("This model reads pairs, and an example has no second text")
    single = DSAForSequenceClassification(small_config(sentences_per_example=1))
    single(pair, token_type_ids=torch.tensor([[0, 0, 0]]))
    assert len(caplog.messages) == 1
    single(pair, token_type_ids=torch.tensor([[0, 0, 1]]))
    assert caplog.messages[1].startswith("This model reads single texts, and an example is a pair")


@pytest.mark.parametrize("count", [1, 2])
def test_a_head_is_one_of_as_many_sentences_as_it_was_made_with(count: Any) -> None:
    model = DSAForSequenceClassification(small_config(sentences_per_example=count))
    model.config.sentences_per_example = 3 - count
    with pytest.raises(ValueError, match="sentences_per_example was changed after the model was made: give it to from"):
        model(torch.tensor([[3, 2, 4]]))


def test_nli_needs_pairs() -> None:
    with pytest.raises(ValueError, match="DSAForNLI reads pairs: set sentences_per_example=2, got 1"):
        DSAForNLI(small_config(sentences_per_example=1))


@pytest.mark.parametrize("changes", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_bfloat16_autocast_stays_close(changes: dict[str, Any]) -> None:
    model = DSAForNLI(small_config(**changes, sentences_per_example=2)).eval()
    batch = batch_of_pairs(EXAMPLE_PAIRS)
    exact = model(**batch, output_attentions=True)
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(**batch, output_attentions=True, labels=torch.zeros(6, dtype=torch.long))
    assert rough.logits.dtype == torch.bfloat16
    torch.testing.assert_close(rough.logits.float(), exact.logits, rtol=0, atol=0.03)
    torch.testing.assert_close(rough.attentions, exact.attentions, rtol=0, atol=0.03)
    rough.loss.backward()
    # At prediction: VSAM's, and what chooses, which has no gradient: a tree's query, the samplers of hard attention.
    choosers = {"gumbel_tree": ["query"], "reinforced": ["attention.heads", "attention.dependents"]}
    unread = ("log_std", "posterior", "class_vectors", *choosers.get(model.config.pooling, ()))
    for name, weight in model.named_parameters():
        if weight.requires_grad and not any(part in name for part in unread):
            assert torch.isfinite(weight.grad).all(), name


def test_words_and_classifier_inputs_are_dropped_at_their_rates_in_training() -> None:
    config = small_config(embedding_dropout=0.4, hidden_dropout=0.0, classifier_dropout=0.25, embedding_size=50)
    model = DSAForSequenceClassification(config)
    ids = torch.randint(FIRST_TOKEN, VOCABULARY, (200, 10))
    tokens = model.train()(ids, output_hidden_states=True).hidden_states[0]
    table = model.get_input_embeddings()(ids)
    torch.testing.assert_close(tokens[tokens != 0], table[tokens != 0] / 0.6, rtol=2e-4, atol=0)
    assert (tokens == 0).double().mean().item() == pytest.approx(0.4, abs=0.01)
    layer = ClassifierLayer(config, 50, 50).train()
    nn.init.eye_(layer.weight)  # so that a dropped feature is a 0 in the output
    nn.init.zeros_(layer.bias)
    assert (layer(torch.randn(200, 50)) == 0).double().mean().item() == pytest.approx(0.25, abs=0.02)
    assert not isinstance(model.classifier[-1], ClassifierLayer)  # nothing is dropped before the last layer

    assert torch.equal(model.eval()(ids, output_hidden_states=True).hidden_states[0], table)
    assert not (layer.eval()(torch.randn(200, 50)) == 0).any()


def test_token_dropout_leaves_tokens_of_the_vocabulary_out_of_a_training_batch() -> None:
    """A token is left out wherever it stands, as if it had never been there."""
    model = DSAModel(
        small_config(token_dropout=0.4, embedding_dropout=0.0, hidden_dropout=0.0, encoder="kim_cnn", hidden_size=6)
    )
    ids = torch.arange(FIRST_TOKEN, VOCABULARY).repeat(2, 1).flip(0)
    kept_share = []
    for seed in range(40):
        torch.manual_seed(seed)
        kept = model.train()(ids, output_hidden_states=True).hidden_states[0].any(-1)  # (batch, tokens)
        assert torch.equal(kept[0], kept[1])
        kept_share.append(kept.double().mean().item())
        torch.manual_seed(seed)
        vector = model(ids).pooler_output[0]
        torch.testing.assert_close(vector, model.eval()(ids[:1, kept[0]]).pooler_output[0])
    assert sum(kept_share) / 40 == pytest.approx(0.6, abs=0.03)
    model.config.max_sentence_tokens = 5  # no later token takes the place of one that is left out
    assert not model.train()(ids, output_hidden_states=True).hidden_states[0][:, 5:].any()
    model.config.max_sentence_tokens = None
    assert model.eval()(ids, output_hidden_states=True).hidden_states[0].any(-1).all()


# Initialisation and loading


@pytest.mark.parametrize(
    ("scaling", "pooling"),
    [("keep_prob", "dynamic"), ("keep_prob", "static"), ("dropout_rate", "static"), ("none", "dynamic")],
)
def test_every_layer_has_the_he_initialisation_of_its_dropout(scaling: str, pooling: str) -> None:
    settings: dict[str, Any] = {"pooling": pooling, "initializer_scaling": scaling}
    config = DSAConfig(vocab_size=9, sentences_per_example=2, **settings)
    model = DSAForNLI(config)
    seen = 0
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear | nn.Conv1d | ClassifierLayer):
            rate = 0.2 if isinstance(layer, ConvLayer) else 0.3 if isinstance(layer, ClassifierLayer) else None
            factor = 1 if rate is None else {"keep_prob": 1 - rate, "dropout_rate": rate, "none": 1}[scaling]
            expected = math.sqrt(2 / (1 + config.negative_slope**2) / layer.weight[0].numel() * factor)
            weight = layer.weight.double()
            tolerance = 5 / math.sqrt(2 * weight.numel())
            assert weight.std().item() == pytest.approx(expected, rel=tolerance), name
            assert abs(weight.mean().item()) < 5 * expected / math.sqrt(weight.numel()), name
            assert layer.bias is None or torch.all(layer.bias == 0), name
            seen += 1
    assert seen == 2 * 5 + 1 + (3 if pooling == "static" else 1) + 3


LAYERS: dict[str, tuple[dict[str, Any], int]] = {
    "none, mean": ({"encoder": "none", "pooling": "mean"}, 0),
    "kim_cnn, max": ({"encoder": "kim_cnn", "kernel_sizes": [3, 4, 5], "pooling": "max"}, 3),
    "pairwise, structured": (
        {"encoder": "pairwise", "num_hidden_layers": 2, "pooling": "structured", "num_attention_heads": 30},
        2 * 2 + 2,
    ),
    "none, pairwise": ({"encoder": "none", "pooling": "pairwise", "num_attention_heads": 30}, 4),
    "none, variational": ({"encoder": "none", "pooling": "variational", "num_attention_heads": 4}, 8),
    "directional, multi_dimensional": (
        {"encoder": "directional", "num_hidden_layers": 1, "pooling": "multi_dimensional"},
        2 * 5 + 2,
    ),
}


@pytest.mark.parametrize(("changes", "layers"), LAYERS.values(), ids=LAYERS.keys())
def test_every_layer_of_the_other_systems_has_the_he_initialisation_of_its_dropout(
    changes: dict[str, Any], layers: int
) -> None:
    settings: dict[str, Any] = {"vocab_size": 9, "num_labels": 3}
    model = DSAModel(DSAConfig(**settings, **changes))
    gaussians = ("log_std", "posterior_mean")  # of VSAM's prior and posterior
    seen = 0
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear | nn.Conv1d) and not (
            model.config.pooling == "variational" and name.endswith(gaussians)
        ):
            keep = 0.8 if isinstance(layer, ConvLayer | DropoutLinear) else 1
            expected = math.sqrt(2 / (1 + 0.01**2) / layer.weight[0].numel() * keep)
            weight = layer.weight.double()
            assert weight.std().item() == pytest.approx(expected, rel=5 / math.sqrt(2 * weight.numel())), name
            assert layer.bias is None or torch.all(layer.bias == 0), name
            seen += 1
    assert seen == layers


def test_a_bilstm_starts_as_in_torch() -> None:
    """Uniform in 1 / sqrt(u) to both sides, weights and biases."""
    config = DSAConfig(vocab_size=9, encoder="bilstm", hidden_size=128, num_hidden_layers=2, pooling="max")
    lstms = [layer for layer in DSAModel(config).modules() if isinstance(layer, nn.LSTM)]
    assert len(lstms) == 4
    for weight in (weight for layer in lstms for weight in layer.parameters()):
        assert weight.abs().max() <= 1 / 8
        assert weight.std().item() == pytest.approx(1 / 8 / math.sqrt(3), rel=0.1)


@pytest.mark.parametrize("bound", [0.005, 0.05])
def test_words_start_within_the_papers_range_and_padding_at_zero(bound: float) -> None:
    table = DSAModel(small_config(vocab_size=500, unknown_init_range=bound)).get_parameter("embed_tokens.weight")
    assert torch.all(table[PAD] == 0)
    tokens = table[PAD + 1 :]
    assert 0.98 * bound < tokens.abs().max() <= bound
    assert tokens.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    assert torch.all(tokens.abs().sum(1) > 0)


@pytest.mark.parametrize("changes", [{"num_attention_heads": 3}, *SYSTEMS.values()], ids=["m=3", *SYSTEMS])
def test_a_saved_model_comes_back_bit_for_bit(changes: dict[str, Any], tmp_path: Path) -> None:
    model = randomize(DSAForNLI(small_config(sentences_per_example=2, **changes))).eval()
    model.save_pretrained(tmp_path)
    batch = batch_of_pairs(EXAMPLE_PAIRS)
    loaded, info = DSAForNLI.from_pretrained(tmp_path, output_loading_info=True)
    assert not loaded.training
    assert not any(info.values())
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name
    assert torch.equal(loaded(**batch).logits, model(**batch).logits)
    auto = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert torch.equal(auto(**batch).logits, model(**batch).logits)
    base, info = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values())  # the head is no surprise
    assert torch.equal(base(**batch).pooler_output, model.dsa(**batch).pooler_output)


@pytest.mark.parametrize("changes", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_the_model_is_built_on_the_meta_device(changes: dict[str, Any]) -> None:
    with torch.device("meta"):
        model = DSAForNLI(small_config(**changes, sentences_per_example=2))
    assert all(value.is_meta for value in model.state_dict().values())


@pytest.mark.parametrize("changes", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_what_a_checkpoint_lacks_is_initialised_as_in_a_new_model(changes: dict[str, Any], tmp_path: Path) -> None:
    """Loading happens on the meta device: a parameter that `_init_weights` forgets would hold garbage."""
    config = small_config(**changes, sentences_per_example=2, unknown_init_range=0.01)
    whole = DSAForNLI(config)
    kept = "dsa.encoder.compression.bias" if config.encoder == "dense_cnn" else "classifier.2.bias"
    whole.save_pretrained(tmp_path, state_dict={kept: whole.state_dict()[kept]})
    loaded, info = DSAForNLI.from_pretrained(tmp_path, output_loading_info=True)
    weights = loaded.state_dict()
    zeros: tuple[str, ...] = ("bias", "running_mean", "num_batches_tracked", ".step", "shortcut.score")
    if config.pooling == "variational":
        zeros += ("posterior_mean.weight", "log_std.weight")
    if config.word_shortcut:  # a new model's vectors are the means of its word vectors
        zeros += ("dsa.projection.weight",)
        torch.testing.assert_close(weights["dsa.shortcut.projection.weight"], torch.eye(5, 6))
    persistent = {name for name, value in weights.items() if value.is_floating_point()}
    assert persistent - {kept} <= set(info["missing_keys"])
    for name, value in weights.items():
        if name.endswith(("norm.weight", "running_var")):
            assert torch.all(value == 1), name
        elif name.endswith("pooling.log_std.bias"):
            assert torch.all(value == INITIAL_LOG_STD), name
        elif name.endswith(zeros):
            assert torch.all(value == 0), name
        else:
            assert torch.isfinite(value).all(), name
            assert 0 < value.std() < 2, name
    table = weights["dsa.embed_tokens.weight"]
    assert torch.all(table[PAD] == 0)
    assert 0 < table.abs().max() <= 0.01


@pytest.mark.parametrize("changes", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_an_encoder_can_be_given_a_head(changes: dict[str, Any], tmp_path: Path) -> None:
    encoder = randomize(DSAModel(small_config(**changes, sentences_per_example=2)))
    encoder.save_pretrained(tmp_path)
    model, info = DSAForNLI.from_pretrained(tmp_path, output_loading_info=True)
    assert info["missing_keys"]
    assert all(name.startswith("classifier.") for name in info["missing_keys"])
    for name, value in encoder.state_dict().items():
        assert torch.equal(model.dsa.state_dict()[name], value), name


def test_the_auto_classes_know_the_family(tmp_path: Path) -> None:
    assert type(AutoConfig.for_model("dsa")) is DSAConfig
    config = small_config(sentences_per_example=2)
    assert type(AutoModel.from_config(config)) is DSAModel
    assert type(AutoModelForSequenceClassification.from_config(config)) is DSAForSequenceClassification
    DSAForNLI(config).save_pretrained(tmp_path)
    assert type(AutoConfig.from_pretrained(tmp_path)) is DSAConfig
    assert type(AutoModel.from_pretrained(tmp_path)) is DSAModel
    assert type(AutoModelForSequenceClassification.from_pretrained(tmp_path)) is DSAForNLI


# The frozen word table


def _resized(model: DSAPreTrainedModel, _: Path) -> DSAPreTrainedModel:
    model.resize_token_embeddings(VOCABULARY + 8)
    assert model.config.vocab_size == VOCABULARY + 8
    return model


def _with_another_table(model: DSAPreTrainedModel, _: Path) -> DSAPreTrainedModel:
    table = nn.Embedding(VOCABULARY + 2, 6)
    model.set_input_embeddings(table)
    assert model.get_input_embeddings() is table
    assert model.config.vocab_size == VOCABULARY + 2
    return model


def _saved_twice(model: DSAPreTrainedModel, folder: Path) -> DSAPreTrainedModel:
    DSAForNLI.from_pretrained(folder).save_pretrained(folder / "again")
    return DSAForNLI.from_pretrained(folder / "again")  # type: ignore[no-any-return]


WAYS: dict[str, Callable[[DSAPreTrainedModel, Path], DSAPreTrainedModel]] = {
    "init": lambda model, _: model,
    "from_config": lambda model, _: AutoModel.from_config(model.config),
    "from_pretrained": lambda _, folder: DSAForNLI.from_pretrained(folder),
    "base from_pretrained": lambda _, folder: DSAModel.from_pretrained(folder),
    "AutoModel": lambda _, folder: AutoModel.from_pretrained(folder),
    "AutoModelForSequenceClassification": lambda _, folder: AutoModelForSequenceClassification.from_pretrained(folder),
    "output_loading_info": lambda _, folder: DSAForNLI.from_pretrained(folder, output_loading_info=True)[0],
    "other labels": lambda _, folder: DSAForNLI.from_pretrained(folder, num_labels=7, ignore_mismatched_sizes=True),
    "resize_token_embeddings": _resized,
    "set_input_embeddings": _with_another_table,
    "saved twice": _saved_twice,
}


@pytest.mark.parametrize("freeze", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_the_word_table_is_frozen_as_the_config_says(way: str, freeze: bool, tmp_path: Path) -> None:
    model = DSAForNLI(small_config(sentences_per_example=2, freeze_embeddings=freeze))
    model.save_pretrained(tmp_path)
    got = WAYS[way](model, tmp_path)
    table = got.get_input_embeddings().weight
    assert table.requires_grad is not freeze
    others = [name for name, weight in got.named_parameters() if weight is not table and not weight.requires_grad]
    assert not others
    if way == "other labels":
        assert got(torch.tensor([[5]])).logits.shape == (1, 7)


@pytest.mark.parametrize("trained", [True, False])
def test_a_new_word_table_is_trained_if_the_old_one_was(trained: bool) -> None:
    model = DSAModel(small_config(freeze_embeddings=trained))
    model.get_input_embeddings().requires_grad_(trained)
    for change in (_resized, _with_another_table):
        assert change(model, Path()).get_input_embeddings().weight.requires_grad is trained


@pytest.mark.parametrize(
    ("freeze", "reload"),
    [
        (True, True),
        (False, False),
        *(pytest.param(*other, marks=pytest.mark.slow) for other in ((True, False), (False, True))),
    ],
)
@pytest.mark.parametrize("changes", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_training_moves_all_but_a_frozen_table(
    changes: dict[str, Any], freeze: bool, reload: bool, tmp_path: Path
) -> None:
    model = DSAForNLI(small_config(**changes, sentences_per_example=2, freeze_embeddings=freeze, hidden_dropout=0.0))
    if reload:
        model.save_pretrained(tmp_path)
        model = DSAForNLI.from_pretrained(tmp_path)
    before = {name: value.clone() for name, value in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    model.train()
    for _ in range(3):
        optimizer.zero_grad()
        model(**batch_of_pairs(EXAMPLE_PAIRS), labels=torch.tensor([0, 1, 2, 0, 1, 2])).loss.backward()
        optimizer.step()
    still = {name for name, value in model.named_parameters() if torch.equal(value, before[name])}
    assert still == ({"dsa.embed_tokens.weight"} if freeze else set())


@pytest.mark.parametrize("feature", ["product", "idf_overlap"])
def test_a_resized_table_keeps_its_tokens(feature: str, tmp_path: Path) -> None:
    model = DSAForNLI(small_config(sentences_per_example=2, pair_features=["first", feature])).eval()
    if feature == "idf_overlap":
        model.pair_features.overlap.count_documents(torch.arange(VOCABULARY), VOCABULARY)
    batch = batch_of_pairs(EXAMPLE_PAIRS)
    logits = model(**batch).logits
    model.resize_token_embeddings(VOCABULARY + 8)
    assert torch.equal(model(**batch).logits, logits)
    assert torch.isfinite(model(torch.tensor([[VOCABULARY + 7]])).logits).all()
    model.save_pretrained(tmp_path)
    assert torch.equal(DSAForNLI.from_pretrained(tmp_path).eval()(**batch).logits, logits)


@pytest.mark.parametrize("encoder", ["none", "dense_cnn"])
def test_a_hook_keeps_what_the_encoder_gave(encoder: str) -> None:
    model = randomize(DSAModel(small_config(encoder=encoder, token_norm=2.0))).eval()
    kept: list[tuple[Tensor, Tensor]] = []
    model.encoder.register_forward_hook(lambda module, inputs, output: kept.append((output[0], output[0].clone())))
    with torch.no_grad():
        model(torch.tensor([[5, 6, 7]]))
    ((held, given),) = kept
    assert torch.equal(held, given)
