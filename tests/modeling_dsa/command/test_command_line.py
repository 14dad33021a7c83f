"""modeling_dsa.command.command_line: a `~` that a shell left, in paths and in texts."""

from pathlib import Path

import pytest

from modeling_dsa.command.command_line import refuse_mistyped


@pytest.mark.parametrize(
    "word", ["~", "~/", "~/x.jsonl", "--output=~/x.jsonl", "--output-dir=~", "~/my runs/x", "~nobody-here/a.csv"]
)
def test_paths_in_a_home_folder_are_refused(word: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = word.rpartition("=")[2]
    whole = str(tmp_path) + path[1:] if path.startswith("~/") or path == "~" else "the whole path"
    with pytest.raises(ValueError, match="would be in a folder called ~") as refused:
        refuse_mistyped(["predict", word])
    assert str(refused.value).endswith(f": write {whole}.")


def test_texts_and_other_paths_are_not() -> None:
    refuse_mistyped(["~ 5 men", "~/ 5 men", "~5", "~men", "~/x is how shells write home", "./~/x", "a~/b", "--a=b~/c"])
