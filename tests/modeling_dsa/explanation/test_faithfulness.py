"""modeling_dsa.explanation.faithfulness and attribution: the same figures by other code, from edited texts."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from small_models import randomize, small_config
from transformers import PreTrainedTokenizerBase

from modeling_dsa import DSAConfig, DSAForNLI, DSAForSequenceClassification, DSAModel
from modeling_dsa.explanation.attribution import attribute, order_words
from modeling_dsa.explanation.faithfulness import RANDOM, SHARES, STEPS, check_model, estimate, faithfulness
from modeling_dsa.explanation.words import find_words
from modeling_dsa.text.tokenization import build_tokenizer

PAIRS = [
    ("a man is asleep and two dogs run on green grass", "dogs run"),
    ("two men", "a man is on the unmanning grass"),
    ("the grass is green", "two dogs"),
]
WORDS = sorted({word for pair in PAIRS for text in pair for word in text.split()} - {"unmanning"})
METHODS = ["attention", "gradient x input", "integrated gradients", RANDOM]


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, PreTrainedTokenizerBase]:
    """A classifier of pairs with two heads, and its tokenizer, which knows pieces of words."""
    tokenizer = build_tokenizer([*WORDS, "un"], lowercase=True, pieces=["##man", "##ning"])
    config = small_config(vocab_size=len(tokenizer), num_attention_heads=2, sentences_per_example=2)
    return randomize(DSAForNLI(config)).eval(), tokenizer


def probabilities(loaded: tuple[Any, PreTrainedTokenizerBase], first: list[str], second: list[str]) -> torch.Tensor:
    model, tokenizer = loaded
    batch = tokenizer(" ".join(first), " ".join(second), return_tensors="pt")
    with torch.no_grad():
        logits: torch.Tensor = model(**{name: tensor.long() for name, tensor in batch.items()}).logits[0]
    return logits.double().softmax(-1)


def attended(loaded: tuple[Any, PreTrainedTokenizerBase], pair: tuple[str, str]) -> list[list[int]]:
    """The words of each text in the order of the model's own attention, by hand."""
    model, tokenizer = loaded
    batch = tokenizer(*pair, return_tensors="pt")
    weights = model(**batch, output_attentions=True).attentions[-1][0].mean(0).tolist()
    orders, index = [], 0
    for text in pair:
        scores = []
        for word in text.split():
            count = len(tokenizer.tokenize(word))
            scores.append(sum(weights[index : index + count]))
            index += count
        index += 1  # the separator
        orders.append(sorted(range(len(scores)), key=lambda number: -scores[number]))
    return orders


def test_figures_of_attention_are_those_of_edited_texts(loaded: tuple[Any, PreTrainedTokenizerBase]) -> None:
    found = faithfulness(*loaded, PAIRS)
    assert list(found) == METHODS
    for number, pair in enumerate(PAIRS):
        texts, orders = [text.split() for text in pair], attended(loaded, pair)
        whole = probabilities(loaded, *texts)
        label = int(whole.argmax())

        def probability(counts: list[int], deleted: bool) -> float:
            kept = []
            for text, order, count in zip(texts, orders, counts, strict=True):  # noqa: B023
                first = set(order[:count])
                kept.append([word for index, word in enumerate(text) if (index in first) != deleted])
            return float(probabilities(loaded, *kept)[label])  # noqa: B023

        by_share = [[math.ceil(share * len(text)) for text in texts] for share in SHARES]
        without = np.mean([float(whole[label]) - probability(counts, True) for counts in by_share])
        alone = np.mean([float(whole[label]) - probability(counts, False) for counts in by_share])
        scores = found["attention"]
        assert scores.comprehensiveness[number] == pytest.approx(without, abs=1e-5)
        assert scores.sufficiency[number] == pytest.approx(alone, abs=1e-5)
        by_step = [[math.floor(step / STEPS * len(text) + 0.5) for text in texts] for step in range(STEPS + 1)]
        deletion = [probability(counts, True) for counts in by_step]
        insertion = [probability(counts, False) for counts in by_step]
        np.testing.assert_allclose(scores.deletion[number], deletion, atol=1e-5)
        np.testing.assert_allclose(scores.insertion[number], insertion, atol=1e-5)
        areas = {name: values[number] for name, values in scores.metrics().items()}
        assert areas["deletion_area"] == pytest.approx((sum(deletion) - (deletion[0] + deletion[-1]) / 2) / STEPS)


def test_all_orders_begin_and_end_alike(loaded: tuple[Any, PreTrainedTokenizerBase]) -> None:
    found = faithfulness(*loaded, [("", ""), *PAIRS])  # the first has no words
    for scores in found.values():
        assert len(scores.deletion) == len(PAIRS)
        np.testing.assert_allclose(scores.deletion[:, 0], found["attention"].insertion[:, -1], atol=1e-6)
        np.testing.assert_allclose(scores.deletion[:, -1], found["attention"].insertion[:, 0], atol=1e-6)
    assert not np.allclose(found["attention"].deletion, found[RANDOM].deletion)
    with pytest.raises(ValueError, match="Of the examples 1 have words that the model reads: give two or more such"):
        faithfulness(*loaded, [("", ""), PAIRS[0]])


def test_what_stands_behind_the_limit_does_not_move_up(loaded: tuple[Any, PreTrainedTokenizerBase]) -> None:
    model, tokenizer = loaded
    short = DSAForNLI(copy.deepcopy(model.config)).eval()
    short.load_state_dict(model.state_dict())
    short.config.max_sentence_tokens = 2
    cut = [(" ".join(first.split()[:2]), " ".join(second.split()[:2])) for first, second in PAIRS]
    found, expected = faithfulness(short, tokenizer, PAIRS), faithfulness(model, tokenizer, cut)
    for method, scores in found.items():
        np.testing.assert_allclose(scores.deletion, expected[method].deletion, atol=1e-5)
        np.testing.assert_allclose(scores.sufficiency, expected[method].sufficiency, atol=1e-5)


def test_attributions_are_those_of_autograd_and_complete(loaded: tuple[Any, PreTrainedTokenizerBase]) -> None:
    """Of the vectors' part of the decision: in a model that also compares words, these stay shared."""
    plain, tokenizer = loaded
    features = [*plain.config.pair_features, "overlap"]
    comparing = randomize(DSAForNLI(DSAConfig(**plain.config.to_dict() | {"pair_features": features}))).eval()
    for model in (plain, comparing):
        check_attributions(model, tokenizer)


def check_attributions(model: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    inputs, texts = find_words(model.config, tokenizer, *PAIRS[1])
    decision = attribute(model, inputs, texts)
    vectors = model.get_input_embeddings()(inputs["input_ids"]).detach().requires_grad_()
    mask = inputs["attention_mask"] * (inputs["input_ids"] != tokenizer.sep_token_id)

    encode = model.dsa.forward

    def logit(vectors: torch.Tensor) -> torch.Tensor:
        def encode_vectors(_ids: torch.Tensor, **options: Any) -> Any:
            return encode(**options | {"inputs_embeds": vectors})

        with pytest.MonkeyPatch.context() as patch:  # the ids stay, which say what the texts share
            patch.setattr(model.dsa, "forward", encode_vectors)
            outputs = model(inputs["input_ids"], attention_mask=mask, token_type_ids=inputs["token_type_ids"])
        chosen: torch.Tensor = outputs.logits[0, decision.label]
        return chosen

    (gradient,) = torch.autograd.grad(logit(vectors), vectors)
    product = (gradient * vectors).sum(-1)[0].detach()
    expected = [[float(product[word].sum()) for word in text.tokens] for text in texts]
    for found, numbers in zip(decision.attributions["gradient x input"], expected, strict=True):
        np.testing.assert_allclose(found, numbers, atol=1e-5)
    total = sum(scores.sum() for scores in decision.attributions["integrated gradients"])
    assert total == pytest.approx((logit(vectors) - logit(vectors * 0)).item(), abs=0.05)
    assert [order.tolist() for order in order_words(decision.attributions["attention"])] == attended(
        (model, tokenizer), PAIRS[1]
    )


def test_the_interval_covers_the_mean_of_other_samples() -> None:
    random = np.random.default_rng(1)
    covered = []
    for _ in range(40):
        found = estimate(random.normal(0.3, 1, 60))
        covered.append(found.low <= 0.3 <= found.high)
    assert 0.8 <= np.mean(covered) <= 1
    assert estimate(np.full(5, 0.25)).low == 0.25


def test_what_decides_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="gives no classes"):
        check_model(DSAModel(small_config()))
    last = {"pooling": "last", "encoder": "bilstm", "hidden_size": 6, "num_hidden_layers": 1}
    with pytest.raises(ValueError, match="Pooling 'last' has no attention"):
        check_model(DSAForSequenceClassification(small_config(**last)))
