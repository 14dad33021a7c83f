"""modeling_dsa.explanation.head_profiles: the same figures by hand."""

import numpy as np
import pytest
from scipy.stats import entropy
from small_models import randomize, small_config

from modeling_dsa import DSAModel
from modeling_dsa.explanation.head_profiles import BINS, head_profiles
from modeling_dsa.text.tokenization import build_tokenizer

WORDS = ["a", "man", "is", "asleep", "two", "dogs", "run"]
SENTENCES = ["A man is asleep", "two dogs run", "a dog", "is a man a man", "run run run", "man"]


def test_profiles_are_those_of_the_models_attention() -> None:
    tokenizer = build_tokenizer(WORDS, lowercase=True)
    model = randomize(DSAModel(small_config(vocab_size=len(tokenizer), num_attention_heads=2))).eval()
    found = head_profiles(model, tokenizer, SENTENCES)
    assert found.sentences == 5  # one word alone says nothing
    texts = [sentence.lower().split() for sentence in SENTENCES[:5]]
    weights = []  # (iterations, heads, words) each
    for text in SENTENCES[:5]:
        outputs = model(**tokenizer(text, return_tensors="pt"), output_attentions=True)
        weights.append(np.stack([attention[0].detach().double().numpy() for attention in outputs.attentions]))
    expected = np.mean([entropy(of, axis=-1) / np.log(of.shape[-1]) for of in weights], axis=0)
    np.testing.assert_allclose(found.entropy, expected, atol=1e-6)
    np.testing.assert_allclose(found.entropy[0], 1, atol=1e-6)  # the first iteration weighs all words alike
    middles = [(of[-1, 0] + of[-1, 1]) / 2 for of in weights]
    divergence = [
        (entropy(of[-1, 0], middle, base=2) + entropy(of[-1, 1], middle, base=2)) / 2
        for of, middle in zip(weights, middles, strict=True)
    ]
    np.testing.assert_allclose(found.divergence, np.mean(divergence) * (1 - np.eye(2)), atol=1e-6)
    for head, words in enumerate(found.words):
        assert {word for word, *_ in words} == {"a", "man", "run"}  # three times or more
        emphasis = [
            of[-1, head, index] * len(text)
            for of, text in zip(weights, texts, strict=True)
            for index, word in enumerate(text)
            if word == "man"
        ]
        ((mean, count),) = [one[1:] for one in words if one[0] == "man"]
        assert count == 3
        assert mean == pytest.approx(np.mean(emphasis))
        assert [mean for _, mean, _ in words] == sorted((mean for _, mean, _ in words), reverse=True)
    last = [of[-1, :, -1] * of.shape[-1] for of in weights if of.shape[-1] == 5]  # the only last word in its bin
    np.testing.assert_allclose(found.positions[:, 8], last[0], rtol=1e-5)
    assert np.isnan(found.positions[:, BINS - 1]).all()


def test_word_classes_are_profiled_where_a_tagger_says_them() -> None:
    tokenizer = build_tokenizer(WORDS, lowercase=True)
    model = randomize(DSAModel(small_config(vocab_size=len(tokenizer), num_attention_heads=2))).eval()
    found = head_profiles(
        model, tokenizer, SENTENCES, lambda words: ["DET" if word.lower() == "a" else "X" for word in words]
    )
    for classes, words in zip(found.word_classes, found.words, strict=True):
        (determiners,) = [one[1:] for one in classes if one[0] == "DET"]
        assert determiners == next(one[1:] for one in words if one[0] == "a")
        assert sum(count for *_, count in classes) == sum(len(sentence.split()) for sentence in SENTENCES[:5])
    assert head_profiles(model, tokenizer, SENTENCES).word_classes == []


def test_what_has_nothing_to_sum_up_is_refused() -> None:
    tokenizer = build_tokenizer(WORDS, lowercase=True)
    model = DSAModel(small_config(vocab_size=len(tokenizer))).eval()
    with pytest.raises(ValueError, match="No sentence has two words"):
        head_profiles(model, tokenizer, ["man"])
    last = {"pooling": "last", "encoder": "bilstm", "hidden_size": 6, "num_hidden_layers": 1}
    with pytest.raises(ValueError, match="Pooling 'last' has no attention"):
        head_profiles(DSAModel(small_config(**last)), tokenizer, SENTENCES)
