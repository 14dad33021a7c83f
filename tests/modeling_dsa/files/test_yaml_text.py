"""modeling_dsa.files.yaml_text: files that are no YAML; recipes and grids test the rest."""

from pathlib import Path

import pytest

from modeling_dsa.files.yaml_text import YamlText


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [1\nb: 2\n", ", line 2: this is not valid YAML: "),
        (b"a: 1\nb: \x00\n", " is not valid YAML: unacceptable character #x0000: "),
        (b"learning_rate: \xff\n", " is not valid YAML: it is not UTF-8."),
        (b"a: " + b"[" * 3000, " is nested too deeply, in more than 500 brackets: write fewer."),
        (b"- " * 3000, " is nested too deeply: it must have options."),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="mine") as caught:
        YamlText(path).read("options")
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)
