import pytest
from lib.systems import single_dsa

from modeling_dsa import DSAModel
from modeling_dsa.text.tokenization import build_tokenizer


def test_forms_of_a_model_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = build_tokenizer(["a", "man", "is", "asleep"], lowercase=True)
    forms = single_dsa(tokenizer, ["a man", "asleep"], 1, with_onnx=False)
    assert [form.encode(["a man"]).shape for form in forms] == [(1, 600), (1, 600)]

    def fold_another(model: DSAModel) -> None:
        next(model.parameters()).data[4:] *= 1.01  # behind [PAD], [UNK], [SEP] and one word
        fold(model)

    fold = DSAModel.fold_embeddings
    monkeypatch.setattr(DSAModel, "fold_embeddings", fold_another)
    with pytest.raises(RuntimeError, match="The vectors of single DSA, folded differ"):
        single_dsa(tokenizer, ["a man", "asleep"], 1, with_onnx=False)
