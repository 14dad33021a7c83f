"""`dsa evaluate` from outside: its figures by other code, its files, and the card that it adds to."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score
from small_repositories import NLI_LABELS, save_system
from small_runs import pairs
from tokenizers import Tokenizer
from transformers import pipeline

from modeling_dsa.cli.main import main
from modeling_dsa.evaluation import models, probes
from modeling_dsa.evaluation.models import open_model

PAIRS = pairs("train")[:40]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of pairs (`nli`), and files to evaluate it on."""
    folder = tmp_path_factory.mktemp("evaluation")
    save_system(folder, "nli")
    rows = [
        {"sentence1": row["premise"], "sentence2": row["hypothesis"], "gold_label": NLI_LABELS[row["label"]]}
        for row in PAIRS
    ]
    (folder / "nli.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    scores = ["sentence1\tsentence2\tscore"] + [
        f"{row['sentence1']}\t{row['sentence2']}\t{index % 6}" for index, row in enumerate(rows)
    ]
    (folder / "scores.tsv").write_text("\n".join(scores), encoding="utf-8")
    return folder


def evaluate(*arguments: object) -> int:
    return main(["evaluate", *map(str, arguments)])


def similarity_by_sentence_transformers(model: Path) -> float:
    first, second = (
        SentenceTransformer(str(model), device="cpu", trust_remote_code=False).encode([row[side] for row in PAIRS])
        for side in ("premise", "hypothesis")
    )
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return float(spearmanr(cosines, [index % 6 for index in range(len(PAIRS))]).statistic)


def test_figures_are_those_of_other_libraries(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, scores, nli = folder / "nli", folder / "scores.tsv", folder / "nli.jsonl"
    assert evaluate(model, "--similarity", scores, "--labelled", nli, "--output", tmp_path / "new") == 0
    table = capsys.readouterr().out
    content = json.loads((tmp_path / "new" / "evaluation.json").read_text(encoding="utf-8"))
    similarity, classification = content["results"]
    expected = similarity_by_sentence_transformers(model)
    assert similarity["metrics"]["spearman"] == pytest.approx(expected, abs=1e-6)
    assert f"| scores.tsv | similarity | 40 | {100 * expected:.1f} |" in table
    answers = pipeline("text-classification", model=str(model), device="cpu")(
        [{"text": row["premise"], "text_pair": row["hypothesis"]} for row in PAIRS]
    )
    predicted = [answer["label"] for answer in answers]
    gold = [NLI_LABELS[row["label"]] for row in PAIRS]
    names = list(NLI_LABELS.values())
    assert classification["metrics"] == pytest.approx(
        {
            "accuracy": accuracy_score(gold, predicted),
            "macro_f1": f1_score(gold, predicted, average="macro", labels=names, zero_division=0),
        }
    )
    assert classification["details"]["confusion_matrix"] == confusion_matrix(gold, predicted, labels=names).tolist()
    # Elsewhere this machine's folders mean nothing.
    assert content["command"] == "dsa evaluate nli --similarity scores.tsv --labelled nli.jsonl --output new"
    assert content["model"] == "nli"
    assert list(content["files"]) == ["model.safetensors", "config.json", "tokenizer.json"]
    assert (tmp_path / "new" / "evaluation.md").read_text(encoding="utf-8") == table
    assert (tmp_path / "new" / "evaluation.png").read_bytes().startswith(b"\x89PNG")


def test_a_model_computes_where_every_model_does(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "default_device", lambda: "meta")  # the other device that every machine has
    model = open_model(str(folder / "nli"))
    with pytest.raises(RuntimeError, match="meta"):
        model.encode(["a dog"])


def test_any_sentence_transformers_model_is_compared_by_the_same_code(folder: Path, tmp_path: Path) -> None:
    """A model of another family, whose config.json says nothing of ours."""
    embedding = StaticEmbedding(Tokenizer.from_file(str(folder / "nli" / "tokenizer.json")), embedding_dim=4)
    SentenceTransformer(modules=[embedding], device="cpu").save_pretrained(str(tmp_path / "static"))
    assert evaluate(tmp_path / "static", "--similarity", folder / "scores.tsv", "--output", tmp_path) == 0
    content = json.loads((tmp_path / "evaluation.json").read_text(encoding="utf-8"))
    assert content["library"] == "sentence-transformers"
    found = content["results"][0]["metrics"]["spearman"]
    assert found == pytest.approx(similarity_by_sentence_transformers(tmp_path / "static"), abs=1e-6)


def test_weights_that_change_meanwhile_are_not_those_that_were_measured(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = shutil.copytree(folder / "nli", tmp_path / "model")

    def open_and_train(source: str) -> models.EvaluatedModel:
        opened = open_model(source)
        weights = model / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-4] + b"more")
        return opened

    monkeypatch.setattr(models, "open_model", open_and_train)
    assert evaluate(model, "--similarity", folder / "scores.tsv", "--output", tmp_path / "new") == 2
    assert "changed while it was measured: do it again." in caplog.messages[-1]
    assert not (tmp_path / "new").exists()


def test_a_file_that_changes_meanwhile_is_not_the_one_that_was_measured(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scores = Path(shutil.copy(folder / "scores.tsv", tmp_path))

    def open_and_change(source: str) -> models.EvaluatedModel:
        scores.write_text(scores.read_text("utf-8").replace("1", "2"), "utf-8")
        return open_model(source)

    monkeypatch.setattr(models, "open_model", open_and_change)
    assert evaluate(folder / "nli", "--similarity", scores, "--output", tmp_path / "new") == 2
    assert f"{scores} has changed while it was read" in caplog.messages[-1]
    assert not (tmp_path / "new").exists()


def test_a_broken_model_of_the_family_is_not_taken_for_another(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = shutil.copytree(folder / "nli", tmp_path / "model")
    (model / "model.safetensors.index.json").write_text('{"weight_map": {"dsa.encoder.weight": "../a.safetensors"}}')
    assert evaluate(model, "--similarity", folder / "scores.tsv") == 2
    assert "names the file '../a.safetensors', which is outside the model's folder." in caplog.messages[-1]


def test_texts_of_which_the_model_knows_no_word_or_reads_a_part_are_told(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = shutil.copytree(folder / "nli", tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"max_sentence_tokens": 1}))
    scores, labelled = tmp_path / "scores.csv", tmp_path / "labelled.csv"
    scores.write_text("text1,text2,score\na man,一二,1\na dog,a man,2\n", encoding="utf-8")
    labelled.write_text("premise,hypothesis,label\n一二,a man,neutral\na man,a dog,-\n", encoding="utf-8")
    caplog.set_level("INFO")
    assert evaluate(model, "--similarity", scores, "--labelled", labelled, "--output", tmp_path / "new") == 0
    assert f"Rows of {labelled} without a label, which are left out: 1." in caplog.messages
    told = [message for message in caplog.messages if ": the model " in message]
    assert told == [
        f"{path}: the model {message}"
        for path, count, text in ((labelled, 1, "('一二', 'a man')"), (scores, 2, "('a man', '一二')"))
        for message in (
            f"knows no word of 1 of {count} texts, such as {text}: figures of them say nothing.",
            f"reads the first 1 tokens of a text: {count} of {count} texts are longer, such as {text}.",
        )
    ]


def test_one_file_for_two_tasks_is_two_entries_of_the_card(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "FOLDS", 2)  # ten take seconds
    model = shutil.copytree(folder / "nli", tmp_path / "model")
    shutil.copyfile(Path("model_cards/cards/dsa-multiple-snli.md"), model / "README.md")
    nli = folder / "nli.jsonl"
    assert evaluate(model, "--probe", nli, "--labelled", nli, "--card") == 0
    entries = ModelCard.load(model / "README.md").data.to_dict()["model-index"][0]["results"][-2:]
    assert [entry["task"]["name"] for entry in entries] == ["Linear probe on frozen vectors", "Text classification"]


def test_card_keeps_what_it_holds(folder: Path, tmp_path: Path) -> None:
    model = shutil.copytree(folder / "nli", tmp_path / "model")
    shutil.copyfile(Path("model_cards/cards/dsa-multiple-snli.md"), model / "README.md")
    before = ModelCard.load(model / "README.md")
    old_text, old_figures = before.text, before.data.eval_results
    written = (model / "README.md").read_text(encoding="utf-8")
    by_hand = "# mine\nlanguage: en\nmodel_version: 1.10\nempty:\n"
    (model / "README.md").write_text(written.replace("language: en\n", by_hand), encoding="utf-8")
    other = shutil.copyfile(folder / "scores.tsv", tmp_path / "other.tsv")
    for _ in range(2):  # the second replaces what the first wrote
        assert evaluate(model, "--similarity", folder / "scores.tsv", other, "--card") == 0
    after = ModelCard.load(model / "README.md")
    assert after.text.startswith(old_text.rstrip())
    assert after.text.count("scores.tsv") == after.text.count("(evaluation.png)") == 1
    spearman, pearson, *of_other = after.data.eval_results[-4:]
    assert [result.dataset_name for result in (spearman, *of_other)] == ["scores.tsv", "other.tsv", "other.tsv"]
    assert after.data.eval_results[:-4] == old_figures
    assert (spearman.task_type, spearman.metric_type, pearson.metric_type) == (
        "sentence-similarity",
        "spearmanr",
        "pearsonr",
    )
    written = json.loads((model / "evaluation.json").read_text(encoding="utf-8"))["results"][0]
    assert spearman.metric_value == written["metrics"]["spearman"]
    left, right = (card.data.to_dict() for card in (before, after))
    del left["model-index"], right["model-index"]
    assert left | {"model_version": 1.1} == right
    assert by_hand in (model / "README.md").read_text(encoding="utf-8")


def test_what_is_no_evaluation_is_not_replaced(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [json.loads(line) for line in (folder / "nli.jsonl").read_text(encoding="utf-8").splitlines()]
    Path("evaluation.json").write_text(json.dumps(rows), encoding="utf-8")
    before = Path("evaluation.json").read_bytes()
    for labelled, told in (
        ("evaluation.json", "is an input, and would be"),
        (folder / "nli.jsonl", "no file of this command"),
    ):
        assert evaluate(folder / "nli", "--labelled", labelled) == 2
        assert told in caplog.messages[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["evaluation.json"]
    assert Path("evaluation.json").read_bytes() == before
    Path("evaluation.json").rename("evaluation.md")
    Path("own").mkdir()
    Path("own", "evaluation.png").mkdir()
    for output, told in (".", "evaluation.md is there, and no file of"), ("own", "evaluation.png is a folder: give"):
        assert evaluate(folder / "nli", "--labelled", folder / "nli.jsonl", "--output", output) == 2
        assert told in caplog.messages[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "There is nothing to evaluate: give files with --similarity, --probe or --labelled."),
        (["--probe", "a", "b", "c", "d"], "--probe takes up to three files"),
        (["--probe", "a.csv", "./a.csv"], "--probe has a.csv twice"),
        (["--similarity", "no.csv"], "There is no file no.csv"),
        (["--similarity", "no.csv", "--label_column", "a"], "--label_column names a column of --probe or --labelled"),
        (["--probe", "no.csv", "--score_column", "a"], "--score_column names a column of --similarity"),
        (["--similarity", "scores.tsv", "--card"], "has no README.md"),
        (["--labelled", "scores.tsv"], "the label '3' is unknown; it must be one of entailment"),
    ],
)
def test_mistake_is_one_sentence(
    folder: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(folder)
    assert evaluate("nli", *arguments) == 2
    assert message in caplog.text
    assert not (folder / "evaluation.json").exists()
