"""modeling_dsa.files.tokenizer_patterns: this package's regular expressions are known, a stranger's are refused."""

import json
from pathlib import Path

import pytest
from small_repositories import save_system
from tokenizers import Regex, Tokenizer, pre_tokenizers

from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.files.loading import load_model_and_tokenizer
from modeling_dsa.files.tokenizer_patterns import find_patterns, refuse_unknown_patterns
from modeling_dsa.text.tokenization import build_tokenizer

SHIPPED = sorted((Path(__file__).parents[3] / "model_cards").glob("*/tokenizer.json"))


def test_tokenizers_of_this_package_are_known() -> None:
    made = [build_tokenizer(["a"], lowercase=True), build_tokenizer(["a"], lowercase=False, pieces=["##b"])]
    for tokenizer in (*(one.backend_tokenizer for one in made), *map(Tokenizer.from_file, map(str, SHIPPED))):
        assert len(list(find_patterns(tokenizer))) > 5
        refuse_unknown_patterns("here", tokenizer)


def test_a_pattern_of_a_stranger_is_refused_before_it_reads_a_text(tmp_path: Path) -> None:
    folder = save_system(tmp_path, "nli").folder
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    evil = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex("(a+)+$"), "isolated"), pre_tokenizers.Whitespace()])
    content["pre_tokenizer"] = json.loads(evil.__getstate__())  # type: ignore[attr-defined]
    path.write_text(json.dumps(content), "utf-8")
    for load in (load_model_and_tokenizer, SentenceEncoder.from_pretrained):
        with pytest.raises(ValueError, match=r"regular expression that is not this package's \('\(a\+\)\+\$'\)"):
            load(folder)
