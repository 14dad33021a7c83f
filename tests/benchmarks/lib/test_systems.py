import lib.systems
import pytest
from lib.systems import single_dsa

from modeling_dsa.text.tokenization import build_tokenizer


def test_forms_of_a_model_that_differ_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = build_tokenizer(["a", "man", "is", "asleep"], lowercase=True)
    forms = single_dsa(tokenizer, ["a man", "asleep"], 1, with_onnx=False)
    assert [form.encode(["a man"]).shape for form in forms] == [(1, 600), (1, 600)]
    monkeypatch.setattr(lib.systems, "TOLERANCE", -1.0)
    with pytest.raises(RuntimeError, match="The vectors of single DSA differ"):
        single_dsa(tokenizer, ["a man", "asleep"], 1, with_onnx=False)
