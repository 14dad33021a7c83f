"""modeling_dsa.cli.main: what all verbs share."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from small_init import write_inputs
from small_repositories import save_system
from transformers import AutoTokenizer

from modeling_dsa.cli.main import main

WITHOUT_EXTRAS = """
import json, sys
from modeling_dsa.cli.main import main
for words in (["--help"], ["encode", "--help"]):
    try:
        main(words)
    except SystemExit as stopped:
        assert stopped.code == 0
assert not {"torch", "transformers"} & set(sys.modules), "help must come at once"
for name in ("accelerate", "datasets", "evaluate", "matplotlib", "pandas", "pyarrow", "sklearn", "tensorboard"):
    sys.modules[name] = None
codes = [main(words) for words in json.loads(sys.argv[1])]
assert "run_glue_style.training" not in sys.modules
print(codes)
"""


@pytest.mark.slow
def test_help_needs_no_torch_and_the_rest_no_extra(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text\none\n")
    (tmp_path / "b.jsonl").write_text('{"text": "two the"}\n')
    (tmp_path / "c.csv").write_text("text\nthree\n")
    (tmp_path / "d.tsv").write_text("text\nfour\n")
    (tmp_path / "e.parquet").write_text("")
    files = [str(path) for path in sorted(tmp_path.iterdir())]
    model = save_system(tmp_path, "nli").folder
    start = ["init", str(tmp_path / "out"), "--vectors", write_inputs(tmp_path).vectors, "--text_column", "text"]
    start += ["--config", "static-cnn-snli", "--texts"]
    runs = [
        [*start, *files],
        [*start, *files[:-1]],
        ["explain", str(model), "A man", "a man", "--output", str(tmp_path / "a.html"), str(tmp_path / "a.png")],
    ]
    runs += [["predict", str(model), "A man", "a man"]]
    call = [sys.executable, "-c", WITHOUT_EXTRAS, json.dumps(runs)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=240)
    assert done.stdout.splitlines()[-1] == "[2, 0, 2, 0]", done.stderr
    assert "usage: dsa encode" in done.stdout
    assert json.loads(done.stdout.splitlines()[-2])["text_pair"] == "a man"
    install = 'pip install ".[evaluation]" in a clone of dsa-transformers.\n'
    assert f"error: Reading {files[-1]} needs pyarrow: {install}" in done.stderr
    assert f"error: Drawing needs matplotlib: {install}" in done.stderr
    assert not (tmp_path / "a.html").exists()
    assert {"one", "two", "three", "four"} <= set(AutoTokenizer.from_pretrained(tmp_path / "out").get_vocab())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["init", "a", "--vectors", "v"], "one of the arguments --texts --word_list --most_frequent is required"),
        (["init", "a", "--most_frequent", "5"], "the following arguments are required: --vectors"),
        (["init", "a", "--vectors", "v", "--texts", "t", "--most_frequent", "5"], "not allowed with argument"),
        (["init", "a", "--vectors", "v", "--most_frequent", "0"], "--most_frequent: '0' is no whole number from 1"),
        (
            ["init", "a", "--vectors", "v", "--texts", "t", "--seed", "-1"],
            "--seed: '-1' is no whole number from 0 to",
        ),
        (["init", "a", "--vectors", "v", "--texts", "t", "--head", "lm"], "argument --head: invalid choice: 'lm'"),
        (["encode", "a", "b", "c", "--model", "m"], "'c' is one argument too many: dsa encode takes INPUT OUTPUT."),
        (["encode", "a", "b", "--model", "m", "--model", "n"], "error: --model is given twice: give it once."),
        (["predict", "m", "a", "--labels", "b", "--labels", "c"], "--labels is given twice: give all its values behi"),
        (["explain"], "the following arguments are required: MODEL"),
        (["evaluate", "m", "--sim", "a.csv", "--bogus"], "there is no option '--sim'. Did you mean '--similarity'?"),
    ],
)
def test_mistakes_of_the_command_line_are_clear(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert second == f"See {' '.join(['dsa', *words[:1]])} --help."


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--version"], ["init", "--help"]):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert not stopped.value.code
    said = capsys.readouterr().out
    assert said.startswith(f"dsa-transformers {version('dsa-transformers')}\n")
    assert "\nvocabulary:\n" in said
    assert "\nmodel:\n" in said


def test_a_verb_that_cannot_be_imported_leaves_the_others(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = save_system(tmp_path, "nli").folder
    installed = tmp_path / "other-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: other\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[modeling_dsa.verbs]\ngone = not_there.verb\nhalf = half_verb\n")
    (tmp_path / "half_verb.py").write_text("raise RuntimeError('two\\nlines')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["predict", str(model), "A man", "a man"]) == 0
    assert json.loads(capsys.readouterr().out)["text_pair"] == "a man"
    assert [record.getMessage() for record in caplog.records if record.name == "modeling_dsa.cli.main"] == [
        f"There is no 'dsa {name}', as the entry point {value} cannot be imported ({reason}): "
        "install its package again."
        for name, value, reason in (
            ("gone", "not_there.verb", "ModuleNotFoundError: No module named 'not_there'"),
            ("half", "half_verb", "RuntimeError: two lines"),
        )
    ]
