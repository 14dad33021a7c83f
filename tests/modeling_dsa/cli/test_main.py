"""modeling_dsa.cli.main: the command from outside, the folders and pictures it writes, and every mistake it refuses."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest
from safetensors.torch import load_file
from small_models import small_config
from transformers import AutoTokenizer

from modeling_dsa import DSAConfig
from modeling_dsa.cli.main import NLI_LABELS, main
from modeling_dsa.repository_dsa import automatic_classes
from modeling_dsa.shipped.settings import setting_folder
from modeling_dsa.text.tokenization import WordTokenizer
from run_glue_style.tasks.nli import LABEL_NAMES

DSA = Path(sysconfig.get_path("scripts")) / "dsa"
ENVIRONMENT = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
VECTORS = {
    "the": [0.5, -1.0, 0.25],
    ".": [0.125, 2.0, -3.0],
    "a": [1.5, 1.0, 0.75],
    "man": [0.25, 0.5, -0.5],
    "sleeps": [-1.0, -2.0, -0.25],
    "unused": [9.0, 9.0, 9.0],
}
WEIGHTS_AND_TOKENIZER = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


class Inputs(NamedTuple):
    vectors: str
    texts: str
    config: str


class Made(NamedTuple):
    folder: Path
    said: list[str]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    folder = tmp_path_factory.mktemp("inputs")
    rows = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in VECTORS.items())
    (folder / "vectors.txt").write_text(rows)
    (folder / "texts.txt").write_text("A man sleeps.\nThe zqxv sleeps.\n")
    small_config(num_labels=2, hidden_size=7).save_pretrained(folder / "small")
    return Inputs(*(str(folder / name) for name in ("vectors.txt", "texts.txt", "small")))


@pytest.fixture(scope="module")
def made(inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made") / "new" / "model"
    words = ["--vectors", inputs.vectors, "--texts", inputs.texts, "--config", inputs.config, "--head", "nli"]
    done = command("init", folder, *words, "--seed", "3")
    assert done.returncode == 0, done.stderr
    return Made(folder, done.stderr.splitlines())


@pytest.fixture(autouse=True)
def _logging_stays(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    level = logging.getLogger("modeling_dsa").level
    yield
    logging.getLogger("modeling_dsa").setLevel(level)


def command(*words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([DSA, *map(str, words)], env=ENVIRONMENT, capture_output=True, text=True, timeout=240)


def python(script: str, *words: object) -> "subprocess.CompletedProcess[str]":
    call = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.run(call, env=ENVIRONMENT, capture_output=True, text=True, timeout=240)


def init(output: Path, inputs: Inputs, *words: object, texts: bool = True) -> int:
    vocabulary = ["--texts", inputs.texts] if texts else []
    small = [] if "--config" in words else ["--config", inputs.config]
    return main(["init", str(output), "--vectors", inputs.vectors, *vocabulary, *small, *map(str, words)])


def config_of(folder: Path) -> DSAConfig:
    config: DSAConfig = DSAConfig.from_pretrained(folder)
    return config


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_init_says_what_it_did_and_writes_one_folder(made: Made) -> None:
    written = {path.name for path in made.folder.iterdir()}
    assert written >= WEIGHTS_AND_TOKENIZER | {"modeling_dsa.py", "modules.json", "handler.py"}
    assert list(made.folder.parent.iterdir()) == [made.folder]  # nothing half-written beside it
    said = [line for line in made.said if line and "Reading" not in line]  # without the progress bar
    assert said[:2] == ["Texts are lower-cased.", "5 of 6 words have a vector."]
    assert said[2].startswith(f"{made.folder} holds a DSAForNLI with fresh weights")
    assert said[-1].startswith("import modeling_dsa; ")


def test_fresh_process_loads_the_folder_and_runs_the_closing_line(made: Made) -> None:
    script = """
import sys, json, torch, modeling_dsa
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
found = {}
for auto in (AutoModel, AutoModelForSequenceClassification):
    model = auto.from_pretrained(sys.argv[1])
    table = model.get_input_embeddings().weight
    row = lambda word: table[tokenizer.convert_tokens_to_ids(word)].tolist()
    batch = tokenizer(["The zqxv sleeps.", "unheard-of"], ["A man", "gnarl"], padding=True, return_tensors="pt")
    with torch.no_grad():
        values = model(**batch)[-1 if auto is AutoModel else "logits"]
    found[auto.__name__] = {
        "class": type(model).__name__, "the": row("the"), "zqxv": row("zqxv"), "pad": row("[PAD]"),
        "trainable": table.requires_grad, "shape": list(values.shape), "finite": bool(values.isfinite().all()),
        "ids": tokenizer("The zqxv gnarl")["input_ids"],
    }
print(json.dumps(found))
exec(sys.argv[2])
"""
    done = python(script, made.folder, made.said[-1])
    assert done.returncode == 0, done.stderr
    facts, line = done.stdout.splitlines()
    for name, found in json.loads(facts).items():
        assert found["class"] == {"AutoModel": "DSAModel"}.get(name, "DSAForNLI")
        assert found["the"] == VECTORS["the"]
        assert found["pad"] == [0.0, 0.0, 0.0]
        assert all(0 < abs(number) <= 1.0 for number in found["zqxv"])  # of U(-1, 1), as the config says
        assert found["trainable"] is False
        assert found["shape"] == [2, 4 if name == "AutoModel" else 3]
        assert found["finite"]
        assert found["ids"][1] > 2  # a word of the texts has its own row, even without a vector
        assert found["ids"][2] == 1  # [UNK]
    assert re.fullmatch(r"\[?{'label': '(entailment|neutral|contradiction)', 'score': 0\.\d+}\]?", line)


def test_draw_writes_a_picture(made: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "new" / "a.svg"
    assert main(["draw", str(made.folder), "A man sleeps.", "The zqxv", "--output", str(path)]) == 0
    assert caplog.messages == [f"The picture is in {path}."]
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", path.read_text())
    assert {"A", "man", "sleeps", "The", "zqxv", "first sentence"} <= set(texts)
    assert any(re.fullmatch(r"second sentence: (entailment|neutral|contradiction) \d+%", text) for text in texts)


def test_draw_reads_an_encoder_too(inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert init(tmp_path / "model", inputs) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["draw", "model", "A man"]) == 0
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("head", "architecture", "labels"),
    [
        ("model", "DSAModel", ["LABEL_0", "LABEL_1"]),
        ("sequence-classification", "DSAForSequenceClassification", ["LABEL_0", "LABEL_1"]),
        ("nli", "DSAForNLI", list(NLI_LABELS)),
    ],
)
def test_each_head_has_its_config_and_a_line_that_runs(
    inputs: Inputs,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    head: str,
    architecture: str,
    labels: list[str],
) -> None:
    assert init(tmp_path / "it's", inputs, "--head", head) == 0
    config = config_of(tmp_path / "it's")
    assert config.architectures == [architecture]
    assert config.id2label == dict(enumerate(labels))
    assert config.label2id == {name: number for number, name in enumerate(labels)}
    assert config.sentences_per_row == (2 if head == "nli" else 1)
    assert (config.vocab_size, config.embedding_size, config.hidden_size) == (9, 3, 7)
    capsys.readouterr()
    exec(caplog.messages[-1])
    assert re.match(r"torch\.Size\(\[1, 4\]\)" if head == "model" else r"\[?{'label': '", capsys.readouterr().out)


def test_names_of_nli_labels_are_those_of_the_training_script() -> None:
    assert NLI_LABELS == LABEL_NAMES


def test_config_comes_from_a_setting_a_folder_a_file_or_the_defaults(inputs: Inputs, tmp_path: Path) -> None:
    file = Path(inputs.config) / "config.json"
    assert init(tmp_path / "file", inputs, "--config", file) == 0
    assert config_of(tmp_path / "file").hidden_size == 7
    assert init(tmp_path / "setting", inputs, "--config", "dsa-multiple-snli", "--head", "nli") == 0
    expected = config_of(setting_folder("dsa-multiple-snli"))
    expected.vocab_size, expected.embedding_size, expected.dtype = 9, 3, "float32"
    assert config_of(tmp_path / "setting").to_dict() == expected.to_dict() | automatic_classes("DSAForNLI")
    words = ["--vectors", inputs.vectors, "--most_frequent", "2"]
    assert main(["init", str(tmp_path / "default"), *words]) == 0
    assert config_of(tmp_path / "default").hidden_size == DSAConfig().hidden_size


def test_same_seed_same_files_other_seed_other_weights(inputs: Inputs, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert init(tmp_path / name, inputs, "--seed", seed) == 0
    first, again, other = (contents(tmp_path / name) for name in "abc")
    assert first == again
    assert {name for name in first if first[name] != other[name]} == {"model.safetensors"}


def test_most_frequent_words_are_the_first_of_the_file(inputs: Inputs, tmp_path: Path) -> None:
    assert init(tmp_path / "a", inputs, "--most_frequent", 3, texts=False) == 0
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "a")
    assert tokenizer("The man . A")["input_ids"] == [3, 1, 4, 5]
    table = load_file(tmp_path / "a" / "model.safetensors")["embed_tokens.weight"]
    assert table[3:].tolist() == [VECTORS[word] for word in ("the", ".", "a")]


def test_folder_in_use_is_only_overwritten_when_asked(
    inputs: Inputs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "a"
    output.mkdir()  # an empty folder is fine
    assert init(output, inputs) == 0
    (output / "notes.txt").write_text("mine")
    before = contents(output)
    (output / "onnx").mkdir()
    for name in ("onnx/model.onnx", "README.md", "all_results.json"):
        (output / name).write_text("of the old model")
    in_use = contents(output)
    assert init(output, inputs, "--seed", 5) == 2
    assert "is not empty: give --overwrite" in caplog.messages[-1]
    assert contents(output) == in_use
    assert init(output, inputs, "--seed", 5, "--overwrite") == 0
    after = contents(output)
    assert set(after) == set(before)
    assert after["notes.txt"] == b"mine"
    assert after["model.safetensors"] != before["model.safetensors"]


@pytest.mark.parametrize("in_use", [False, True])
@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (OSError("No space left on device"), 2)])
def test_what_fails_while_saving_leaves_nothing(
    inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, in_use: bool
) -> None:
    if in_use:
        assert init(tmp_path / "a", inputs) == 0
    before = contents(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(WordTokenizer, "save_pretrained", fail)  # the weights are written by then
    assert init(tmp_path / "a", inputs, "--seed", 9, "--overwrite") == code
    assert contents(tmp_path) == before
    assert list(tmp_path.iterdir()) == ([tmp_path / "a"] if in_use else [])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes, to know when the command reads")
def test_interrupt_ends_the_command_with_130_and_leaves_nothing(inputs: Inputs, tmp_path: Path) -> None:
    pipe = tmp_path / "texts.txt"
    os.mkfifo(pipe)
    words = ["init", str(tmp_path / "a"), "--vectors", inputs.vectors, "--texts", str(pipe), "--config", inputs.config]
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # tests in the background of a shell ignore interrupts
    with subprocess.Popen(
        [DSA, *words], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    ) as process:
        try:
            writer = _open_once_read(pipe, process)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
            os.close(writer)
        finally:
            process.kill()
    assert (process.returncode, said) == (130, "Stopped; nothing was written.\n")
    assert list(tmp_path.iterdir()) == [pipe]


def _open_once_read(pipe: Path, process: "subprocess.Popen[str]") -> int:
    """Wait until a process has opened a named pipe, and open its other end."""
    end = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < end:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            time.sleep(0.05)
    raise AssertionError(f"The command ended with {process.returncode} before it read the texts.")


def test_works_without_the_train_extra(inputs: Inputs, tmp_path: Path, made: Made) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.jsonl").write_text('{"text": "two the"}\n')
    (tmp_path / "c.csv").write_text("text\nthree\n")
    (tmp_path / "d.tsv").write_text("text\nfour\n")
    (tmp_path / "e.parquet").write_text("")
    script = """
import sys, json
for name in ("accelerate", "datasets", "evaluate", "matplotlib", "pandas", "pyarrow", "sklearn", "tensorboard"):
    sys.modules[name] = None
from modeling_dsa.cli.main import main
assert "run_glue_style" not in sys.modules
print([main(words) for words in json.loads(sys.argv[1])])
"""
    files = [str(path) for path in sorted(tmp_path.iterdir())]
    start = ["init", str(tmp_path / "out"), "--vectors", inputs.vectors, "--text_columns", "text"]
    start += ["--config", "static-cnn-snli", "--texts"]
    runs = [[*start, *files], [*start, *files[:-1]], ["draw", str(made.folder), "A man", "a man"]]
    done = python(script, json.dumps(runs))
    assert done.stdout == "[2, 0, 2]\n", done.stderr
    assert f'error: Reading {files[-1]} needs pyarrow: pip install "dsa-transformers[train]".\n' in done.stderr
    assert 'error: Drawing needs matplotlib: pip install "dsa-transformers[train]".\n' in done.stderr
    assert {"one", "two", "three", "four"} <= set(AutoTokenizer.from_pretrained(tmp_path / "out").get_vocab())


def test_mistake_is_one_sentence_without_a_traceback(tmp_path: Path) -> None:
    done = command("init", tmp_path / "a", "--vectors", tmp_path / "none.txt", "--most_frequent", 5)
    message = f"error: There is no file {tmp_path / 'none.txt'}: give the path of a file of word vectors.\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
    assert list(tmp_path.iterdir()) == []


def test_mistakes_of_init_are_clear(inputs: Inputs, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    output = tmp_path / "a"
    bert, wrong, csv = tmp_path / "bert", tmp_path / "wrong.json", tmp_path / "t.csv"
    bert.mkdir()
    (bert / "config.json").write_text('{"model_type": "bert"}')
    wrong.write_text('{"model_type": "dsa", "kernel_sizes": [2]}')
    csv.write_text("id,text\n1,a\n")
    mistakes: list[tuple[Sequence[object], str]] = [
        (["--config", "dsa-singel-snli"], "There is no setting 'dsa-singel-snli'. Did you mean 'dsa-single-snli'?"),
        (["--config", bert], f"{bert} is a model of type 'bert': give one of type 'dsa'."),
        (["--config", wrong], "cannot be loaded (kernel_sizes must be one or more odd numbers, got [2]): give a"),
        (["--config", tmp_path], "the config cannot be loaded ("),
        (["--texts", tmp_path / "no.txt"], f"There is no file {tmp_path / 'no.txt'}: give files of texts."),
        (["--texts", csv], f"{csv} has the columns id, text: say with --text_columns which hold the texts."),
        (["--texts", csv, "--text_columns", "txt"], f"{csv} has no column 'txt': it has id, text."),
    ]
    for words, message in mistakes:
        assert init(output, inputs, *words) == 2
        assert message in caplog.messages[-1]
        assert "\n" not in caplog.messages[-1]
    output.write_text("")
    assert init(output, inputs) == 2
    assert caplog.messages[-1] == f"error: {output} is a file: give the path of a folder to write."
    assert set(tmp_path.iterdir()) == {bert, wrong, csv, output}


def test_mistakes_of_draw_are_clear(made: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = {}
    for missing in ("tokenizer.json", "model.safetensors", "config.json"):
        broken[missing] = tmp_path / missing.partition(".")[0]
        broken[missing].mkdir()
        for name in WEIGHTS_AND_TOKENIZER - {missing, "tokenizer_config.json" if missing == "tokenizer.json" else ""}:
            (broken[missing] / name).symlink_to(made.folder / name)
    cut = tmp_path / "cut"
    cut.mkdir()
    for name, content in contents(made.folder).items():
        (cut / name).write_bytes(content[: len(content) // 2] if name == "model.safetensors" else content)
    picture = tmp_path / "a.png"
    mistakes: list[tuple[Sequence[object], str]] = [
        ([made.folder, ""], "There is no word in the sentence ''"),
        ([made.folder, "A man"], "This model classifies pairs of sentences, but one was given"),
        ([broken["tokenizer.json"], "A", "b"], ": the tokenizer cannot be loaded ("),
        ([broken["model.safetensors"], "A", "b"], ": the model cannot be loaded ("),
        ([broken["config.json"], "A", "b"], ": the config cannot be loaded ("),
        ([cut, "A", "b"], ": the model cannot be loaded ("),
        ([tmp_path / "nowhere", "A", "b"], "nowhere: the config cannot be loaded ("),
    ]
    for words, message in mistakes:
        assert main(["draw", *map(str, words), "--output", str(picture)]) == 2
        assert message in caplog.messages[-1]
        assert "\n" not in caplog.messages[-1]
        assert not picture.exists()
    assert main(["draw", str(made.folder), "A", "b", "--output", str(tmp_path / "a.gif")]) == 2
    assert "a.gif: pictures are written as .png, .svg, .pdf, not .gif" in caplog.messages[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["init", "a", "--vectors", "v"], "one of the arguments --texts --most_frequent is required"),
        (["init", "a", "--most_frequent", "5"], "the following arguments are required: --vectors"),
        (["init", "a", "--vectors", "v", "--texts", "t", "--most_frequent", "5"], "not allowed with argument"),
        (["init", "a", "--vectors", "v", "--most_frequent", "0"], "--most_frequent: '0' is no whole number from 1"),
        (
            ["init", "a", "--vectors", "v", "--texts", "t", "--seed", "-1"],
            "--seed: '-1' is no whole number from 0 to",
        ),
        (["init", "a", "--vectors", "v", "--texts", "t", "--head", "lm"], "argument --head: invalid choice: 'lm'"),
        (["draw", "a"], "the following arguments are required: TEXT"),
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
    assert re.fullmatch(r"See dsa( init| draw)? --help\.", second)


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--version"], ["init", "--help"]):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert not stopped.value.code
    said = capsys.readouterr().out
    assert said.startswith(f"dsa-transformers {version('dsa-transformers')}\n")
    assert "\nvocabulary:\n" in said
    assert "\nmodel:\n" in said
