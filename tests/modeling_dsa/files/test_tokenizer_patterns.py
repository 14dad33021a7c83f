"""modeling_dsa.files.tokenizer_patterns: this package's regular expressions are known, a stranger's are refused."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from small_repositories import save_system

from modeling_dsa.cli.main import main
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.evaluation.models import open_model
from modeling_dsa.files.loading import load_model_and_tokenizer
from modeling_dsa.files.tokenizer_patterns import find_patterns, refuse_unknown_patterns
from modeling_dsa.text.tokenization import build_tokenizer

SHIPPED = sorted((Path(__file__).parents[3] / "model_cards").glob("*/tokenizer.json"))


def test_tokenizers_of_this_package_are_known(tmp_path: Path) -> None:
    made = [build_tokenizer(["a"], lowercase=True), build_tokenizer(["a"], lowercase=False, pieces=["##b"])]
    paths = [tmp_path / "words.json", tmp_path / "pieces.json"]
    for tokenizer, path in zip(made, paths, strict=True):
        tokenizer.backend_tokenizer.save(str(path))
    for path in (*paths, *SHIPPED):
        assert len(find_patterns(path.read_bytes())) > 5
        refuse_unknown_patterns(path)


def test_a_pattern_of_a_stranger_is_refused_before_it_is_compiled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = save_system(tmp_path, "nli").folder
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    content["normalizer"]["normalizers"][2]["pattern"]["Regex"] = f"(?i:{'a' * 70_000})"  # takes hours to compile
    path.write_text(json.dumps(content), "utf-8")
    message = f"{path} has a regular expression that is not this package's ('(?i:aaa"
    loaders: list[Callable[[str], object]] = [load_model_and_tokenizer, SentenceEncoder.from_pretrained, open_model]
    for load in loaders:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            load(str(folder))
    (tmp_path / "a.txt").write_text("a\n")
    assert main(["encode", str(tmp_path / "a.txt"), str(tmp_path / "a.npy"), "--model", str(folder)]) == 2
    assert caplog.messages[-1].startswith(f"error: {message}")


def test_another_file_than_the_one_that_was_looked_into_is_refused(tmp_path: Path) -> None:
    folder = save_system(tmp_path, "nli").folder
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"fast_tokenizer_files": ["tokenizer.4.0.0.json"]}))
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"names other files than tokenizer\.json \(fast_tokenizer_files\): take th"
        ):
            load_model_and_tokenizer(str(folder))
        (folder / "tokenizer.json").unlink(missing_ok=True)
