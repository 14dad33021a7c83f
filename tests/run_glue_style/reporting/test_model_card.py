"""Model cards from outside: what a reader and the Hub see, whether the snippets run and where each number is from."""

import copy
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import ModelCard
from jinja2 import Environment, meta
from small_runs import SMALL_SIZES, logged_error, pairs, read_results, run_main, small_tokenizer

from modeling_dsa import DSAConfig, DSAForNLI, DSAForSequenceClassification, DSAModel
from modeling_dsa.shipped.files import CARD_TEMPLATE
from modeling_dsa.shipped.nli import NLI_CLASS_NAMES
from modeling_dsa.text.tokenization import build_tokenizer
from run_glue_style import run_nli
from run_glue_style.reporting import model_card as cards
from run_glue_style.reporting.card.known_data import JOINED_PAIRS, KNOWN_DATA
from run_glue_style.reporting.card.widget import WidgetExample, widget_examples
from run_glue_style.reporting.model_card import model_card, write_card
from run_glue_style.reporting.published import read_published
from run_glue_style.sample import SAMPLE_FILES, SAMPLE_VECTORS
from run_glue_style.tasks.labelled_examples import load_files
from run_glue_style.tasks.nli import NLI
from run_glue_style.tasks.sst import SST, Classes, load_sst_files
from run_glue_style.training.results import read_results as read_record

pytestmark = pytest.mark.usefixtures("datasets_cache")
ROOT = Path(__file__).parents[3]
TREES = ROOT.parent / "shared" / "data" / "sst"
RUNS = sorted(ROOT.glob("results/*/*/seed-0.json.gz"))
FIRST_OF_STUDY = {path.parents[1]: path for path in reversed(RUNS)}  # the others have other figures and few other words
FINISHED = [
    line
    for block in re.findall(
        r"<!-- command: cards -->\n```bash\n(.*?)```", (ROOT / "model_cards" / "README.md").read_text("utf-8"), re.S
    )
    for line in block.splitlines()
]
ID = "org/small-nli"


@pytest.fixture(scope="module", autouse=True)
def _template_compiled_once() -> Iterator[None]:
    """huggingface_hub compiles it for each card anew, which takes longer than all that a card is made of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Environment, "compile", cache(Environment.compile))
        yield


def saved(path: str) -> dict[str, Any]:
    return read_record(ROOT / "results" / path / "seed-0.json.gz")


def card_of(results: Mapping[str, Any], **changes: Any) -> ModelCard:
    settings = {"model_id": ID, "config": DSAConfig.from_dict(dict(results["model"]))}
    card: ModelCard = model_card(results, **(settings | changes))
    return card


def round_trip(card: ModelCard, folder: Path) -> ModelCard:
    card.save(folder / "README.md")
    loaded: ModelCard = ModelCard.load(folder / "README.md")
    return loaded


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def prose_of(card: ModelCard) -> str:
    """The text, with a word in the place of each block of code."""
    return re.sub(r"^(`{3,}).*?^\1$", "CODE", card.text, flags=re.M | re.S)


def metadata(card: ModelCard) -> dict[str, Any]:
    data: dict[str, Any] = card.data.to_dict()
    return data


def names_in(sources: Any) -> set[str]:
    """Texts that hold a digit beside something else."""
    return {leaf for leaf in leaves(sources) if isinstance(leaf, str) and re.search(r"\d\D|\D\d", leaf)}


def figures_of(sources: Any) -> set[str]:
    """All ways in which a card may write the numbers."""
    return {
        figure
        for leaf in leaves(sources)
        if isinstance(leaf, int | float)
        for figure in (
            f"{leaf:,}",
            f"{leaf:g}",
            f"{100 * leaf:.1f}",
            f"{100 * leaf:.2f}",
            f"{leaf:.2f}",
            f"{leaf:.3f}",
        )
    }


@cache
def published_names_and_figures() -> tuple[set[str], set[str]]:
    """Of the papers' tables, which stay the same for all runs."""
    published = [asdict(read_published(known.table)) for known in KNOWN_DATA]
    figures = figures_of([[table["systems"] for table in published], asdict(JOINED_PAIRS)])
    figures |= {f"{table['published_with']['train_examples'] or 0:,}" for table in published}
    return names_in(published) | {"CC BY-SA 4.0", "PDDL 1.0"}, figures


def unexplained(card: ModelCard, results: Mapping[str, Any], config: DSAConfig) -> set[str]:
    """Numbers in a card's text that stand neither in the results nor in the config nor in the paper's table."""
    sources: list[Any] = [{**results, "history": None}, config.to_dict(), config.sentence_embedding_size]
    names, figures = published_names_and_figures()
    text = prose_of(card)
    text = re.sub(r"\]\([^)]*\)", "]", text).replace("\\", "")
    for name in sorted(names | names_in(sources), key=len, reverse=True):
        if name in text:
            text = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w|\.\d)", "", text)  # and not "0.0" out of "0.001"
    known = figures | figures_of(sources)
    if results:
        known.add(f"{results['train_seconds'] / 60:.1f}")
    return set(re.findall(r"(?<![\w.,-])\d+(?:,\d{3})*(?:\.\d+)*(?!\w)", text)) - known


def assert_reads_well(card: ModelCard) -> None:
    """Nothing is empty, left over or broken across."""
    prose = re.sub(r"`[^`\n]+`", "CODE", prose_of(card))
    assert not re.search(r"\bNone\b|\bnan\b|Undefined|\{\{|\{%", prose)
    assert not re.search(r"\n{4,}| ,| \.(?:\s|$)|,\.|\.\.(?!\.)|\(\)|\*\*\*\*|\[\]", prose)
    assert not re.search(r"^[-*|] *$|[ \t]+$", prose, flags=re.M)
    assert not re.search(r"^##.*\n+(?=## |\Z)", prose, flags=re.M)  # a section without text
    for table in re.findall(r"(?:^\|.*\n)+", prose, flags=re.M):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id="/".join(path.parts[-3:-1]),
            marks=[pytest.mark.slow] if path not in FIRST_OF_STUDY.values() else [],
        )
        for path in RUNS
    ],
)
def test_every_run_has_a_card(path: Path, tmp_path: Path) -> None:
    results = read_record(path)
    config = DSAConfig.from_dict(dict(results["model"]))
    card = card_of(results)
    loaded = round_trip(card, tmp_path)
    assert loaded.text == card.text
    assert metadata(loaded) == metadata(card)
    assert not unexplained(card, results, config)
    assert_reads_well(card)
    if results["task"] == "distillation":
        assert f"**{results['metrics']['validation']['cosine']:.3f}**" in card.text
        return
    for scores in results["metrics"].values():
        for name in ("accuracy", "macro_f1", "majority_accuracy"):
            assert f"{100 * scores[name]:.1f} %" in card.text
    for label, scores in results["metrics"]["test"]["per_class"].items():
        assert f"| F1 of *{label}* | {100 * scores['f1']:.1f} % |" in card.text


def test_a_card_shows_all_seeds_and_says_which_one_ships() -> None:
    folder = ROOT / "results" / "fnc1" / "static-multiple-fnc1"
    shipped, *others = (read_record(folder / f"seed-{seed}.json.gz") for seed in (2, 0, 1))
    card = card_of(shipped, other_seeds=others)
    scores = [100 * run["metrics"]["test"]["fnc_relative"] for run in (shipped, *others)]
    spread = f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}"
    assert f"FNC score {spread}. This model is that of seed 2." in card.text
    assert "Over the seeds 0, 1, 2, in percent:" in card.text

    assert "3,040 of the 4,721 are unrelated pairs that were made" in card.text
    assert_reads_well(card)
    with pytest.raises(ValueError, match="differ in their recipe, so they have no mean"):
        card_of(shipped, other_seeds=[others[0] | {"recipe": {}}])
    with pytest.raises(ValueError, match="have the seed 2: leave one out"):
        card_of(shipped, other_seeds=[shipped])


@pytest.mark.parametrize("path", ["snli-balanced/dsa-multiple-snli", "sst/dsa-single-sst2", "fnc1/vsam-fnc1"])
def test_the_search_for_numbers_finds_strange_ones(path: str) -> None:
    results = saved(path)
    config = DSAConfig.from_dict(dict(results["model"]))
    changed = copy.deepcopy(results)
    changed["metrics"]["test"]["accuracy"] = 0.98765
    assert unexplained(card_of(changed), results, config) == {"98.8", "98.77"}


def test_figures_in_the_metadata_are_the_results() -> None:
    results = saved("fnc1/vsam-fnc1")
    (index,) = metadata(card_of(results))["model-index"]
    assert index["name"] == "small-nli"
    found = {
        (entry["dataset"]["split"], metric["name"]): metric["value"]
        for entry in index["results"]
        for metric in entry["metrics"]
    }
    assert found == {
        (split, name): scores[key]
        for split, scores in results["metrics"].items()
        for key, name in (
            ("accuracy", "Accuracy"),
            ("macro_f1", "Macro F1"),
            ("fnc_relative", "FNC score, relative to its maximum"),
        )
    }


@pytest.mark.parametrize(
    ("path", "datasets", "tag"),
    [
        ("snli-balanced/dsa-multiple-snli", ["stanfordnlp/snli"], "natural-language-inference"),
        ("sst/dsa-single-sst5", ["stanfordnlp/sst"], "sentiment-analysis"),
        ("fnc1/static-multiple-fnc1", None, "stance-detection"),
    ],
)
def test_metadata_say_what_it_is(path: str, datasets: list[str] | None, tag: str) -> None:
    data = metadata(card_of(saved(path)))
    assert (data["license"], data["language"], data["library_name"]) == ("apache-2.0", "en", "transformers")
    assert data["pipeline_tag"] == "text-classification"
    assert data["metrics"] == ["accuracy", "f1"]
    assert data.get("datasets") == datasets
    assert {"dsa", "sentence-transformers", "custom_code", tag} <= set(data["tags"])
    assert not {"base_model", "widget"} & set(data)


@pytest.mark.parametrize("path", ["nli-dynamic/base", "sst-distilled/base"])  # of further files, of another model
def test_no_licence_is_claimed_for_weights_that_learnt_from_other_data(path: str) -> None:
    card = card_of(saved(path))
    assert "license" not in metadata(card)
    assert "Code: Apache-2.0. Weights: they have learnt from other data, too" in card.text


def test_nothing_is_said_of_public_data_that_a_model_was_only_tested_on() -> None:
    results = saved("snli-balanced/dsa-multiple-snli")
    results["data"] = results["data"] | {"train": {"examples": 300, "sha256": "other"}}
    card = card_of(results)
    assert not {"license", "language", "datasets"} & metadata(card).keys()
    assert "Code: Apache-2.0. Weights: what their maker says" in card.text
    results["data"]["train"]["examples"] = 549_367
    assert metadata(card_of(results))["license"] == "apache-2.0"


def test_a_data_set_of_the_hub_is_named() -> None:
    results = saved("snli-balanced/dsa-multiple-snli") | {"source": "nyu-mll/multi_nli"}
    results["data"] = {
        name: {"examples": part["examples"], "sha256": "other"} for name, part in results["data"].items()
    }
    card = card_of(results)
    assert metadata(card)["datasets"] == ["nyu-mll/multi_nli"]
    assert "SNLI" not in card.text
    assert "Beside the published figures" not in card.text


def test_a_model_that_went_on_from_another() -> None:
    changes = {"setting": None, "recipe_name": "/home/me/mine.yaml", "vectors": None, "start": "/home/me/models/first"}
    results = saved("sst/dsa-single-sst2") | changes
    card = card_of(results)
    assert "The weights of first." in card.text
    assert "Setting none, recipe mine.yaml" in card.text
    assert "Those of that model, 100 numbers a word" in card.text
    # No row of the paper's table is its own, so all of them stand beside it.
    row = next(line for line in card.text.splitlines() if line.startswith("| SST-2 accuracy, in percent |"))
    assert row.split("|")[3:-1] == [" 87.5 ", " 87.2 ", " 88.2 ", " 88.3 ", " 88.5 "]
    assert "/home/me" not in str(card)
    assert "base_model" not in metadata(card)
    assert_reads_well(card)
    assert metadata(card_of(results | {"start": "org/first"}))["base_model"] == "org/first"


def test_data_of_ones_own_are_not_taken_for_public_ones() -> None:
    results = saved("sst/dsa-single-sst2") | {"source": "a.csv, b.csv", "vectors": "mine.vec", "task": "classification"}
    results["data"] = {
        name: {"examples": part["examples"], "sha256": "other"} for name, part in results["data"].items()
    }
    results["model"] = results["model"] | {"id2label": {"0": "spam", "1": "mail"}, "label2id": {"spam": 0, "mail": 1}}
    card = card_of(results)
    assert not {"datasets", "language", "license"} & set(metadata(card))
    assert "Given a text, it names a class: *spam*, *mail*." in card.text
    assert "ask their owner for their licence" in card.text
    assert "sentiment-analysis" not in metadata(card)["tags"]
    assert_reads_well(card)


def test_a_model_that_learned_nothing_says_so() -> None:
    results = saved("sst/dsa-single-sst2")
    warning = "no better than always giving the most frequent class"
    assert warning not in card_of(results).text
    test = results["metrics"]["test"]
    test["accuracy"] = test["majority_accuracy"]
    assert warning in card_of(results).text


def test_the_published_figures_stand_beside_ours() -> None:
    text = card_of(saved("fnc1/vsam-fnc1")).text
    assert "| disagree recall, in percent | 1.87 | 10.43 |" in text
    assert "| training rows | 41,346 | 49,972 |" in text
    assert "@misc{zhang2018variational" in text
    text = card_of(saved("sst/kim-cnn-sst2")).text
    assert "| SST-2 accuracy, in percent |" in text
    assert "SST-5 accuracy" not in text
    assert "@inproceedings{kim2014convolutional" in text
    assert "Beside the published figures" not in card_of(saved("fnc1/static-multiple-fnc1")).text


HOSTILE = "a|b {{ 7*7 }} {% if %} `x` ``` <b> [l](http://x) \n---\n# *not* a: title"


def test_strange_names_break_nothing(tmp_path: Path) -> None:
    results = saved("sst/dsa-single-sst2")
    results["metrics"]["test"]["per_class"] = {
        HOSTILE if name == "positive" else name: scores
        for name, scores in results["metrics"]["test"]["per_class"].items()
    }
    results |= {"source": HOSTILE, "vectors": HOSTILE, "recipe_name": HOSTILE, "start": HOSTILE}
    results["command"] = ["run_sst.py", "--train_file", HOSTILE, "--vectors=teacher:/home/me/~`````.txt"]
    results["recipe"]["metric_for_best_model"] = HOSTILE
    results["model"]["id2label"] = {"0": HOSTILE, "1": "b"}
    results["model"]["label2id"] = {HOSTILE: 0, "b": 1}
    examples = [WidgetExample(HOSTILE, {HOSTILE: 0.75, "b": 0.25})]
    card = card_of(results, examples=examples)
    loaded = round_trip(card, tmp_path)
    assert metadata(loaded) == metadata(card)
    assert metadata(loaded)["widget"] == [
        {"text": HOSTILE, "output": [{"label": HOSTILE, "score": 0.75}, {"label": "b", "score": 0.25}]}
    ]
    assert metadata(loaded)["model-index"][0]["results"][0]["dataset"]["name"] == "SST-2"
    prose = prose_of(card)
    headings = re.findall(r"^#+ .*", prose, flags=re.M)
    assert headings == re.findall(r"^#+ .*", prose_of(card_of(saved("sst/dsa-single-sst2"))), flags=re.M)
    assert r"a\|b \{\{ 7\*7 \}\} \{% if %\}" in prose
    for table in re.findall(r"(?:^\|.*\n)+", prose, flags=re.M):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    (fence,) = re.findall(r"^(`{4,})bash\n(.*?)\n\1$", card.text, flags=re.M | re.S)
    words = shlex.split(fence[1].replace("\\\n", " "))
    assert words[-3:] == ["--train_file", HOSTILE, "--vectors=teacher:~`````.txt"]


def test_known_data_are_what_they_are_called() -> None:
    found = {}
    for known, path in zip(
        KNOWN_DATA,
        ("snli-balanced/dsa-multiple-snli", "sst/dsa-single-sst2", "sst/dsa-single-sst5", "fnc1/vsam-fnc1"),
        strict=True,
    ):
        found[known.name] = {part["sha256"] for name, part in saved(path)["data"].items() if name != "train"}
        assert known.sha256 <= found[known.name]
    files = {name: path for name, path in SAMPLE_FILES.items() if name != "train"}
    assert {NLI.fingerprint(split) for split in load_files(files, NLI).values()} == KNOWN_DATA[0].sha256


@pytest.mark.skipif(not TREES.is_dir(), reason="the treebank is not here")
def test_the_treebank_is_known() -> None:
    sizes: tuple[Classes, ...] = (2, 5)
    for known, classes in zip(KNOWN_DATA[1:3], sizes, strict=True):
        splits = load_sst_files({"validation": TREES / "dev.txt", "test": TREES / "test.txt"}, classes)
        assert {SST[classes].fingerprint(split) for split in splits.values()} == known.sha256


@pytest.mark.parametrize("line", FINISHED, ids=lambda line: line.split("/")[-1])
def test_finished_cards_are_what_their_commands_give(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    *words, output = shlex.split(line)
    assert words[:3] == ["python", "-m", "run_glue_style.reporting.model_card"]
    monkeypatch.setattr(sys, "argv", [*words[2:], str(tmp_path / "card.md")])
    cards.main()
    assert (tmp_path / "card.md").read_text("utf-8") == (ROOT / output).read_text("utf-8")


def test_every_finished_card_has_a_command() -> None:
    made = {shlex.split(line)[-1] for line in FINISHED}
    assert made == {path.relative_to(ROOT).as_posix() for path in ROOT.glob("model_cards/cards/*")}


def test_the_template_names_only_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(ModelCard, "from_template", lambda _card_data, **facts: given.update(facts))
    results = saved("snli-balanced/dsa-multiple-snli")
    model_card(results, model_id=ID, config=DSAConfig.from_dict(dict(results["model"])))
    named = meta.find_undeclared_variables(Environment().parse(CARD_TEMPLATE.read_text("utf-8")))
    assert named - {"card_data"} == set(given) - {"template_path"}


def run_command(*words: object) -> int:
    return run_main(cards.main, "model_card", {}, *map(str, words))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"metrics": {}}, "There is no 'metrics' in "),
        ({"model": {"pooling": "nonsense"}}, "the config cannot be loaded ("),
        ({"model": {"embedding_size": "x"}}, "the config cannot be loaded ("),
    ],
)
def test_a_broken_record_gets_one_sentence(
    changes: dict[str, Any], said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    results = dict(saved("snli-balanced/dsa-multiple-snli"))
    results |= {name: (results[name] | value if value else value) for name, value in changes.items()}
    (tmp_path / "results.json").write_text(json.dumps(results), encoding="utf-8")
    assert run_command(tmp_path / "results.json", "--model_id", ID, "--output", tmp_path / "card.md") == 2
    assert said in caplog.messages[-1]
    assert not (tmp_path / "card.md").exists()


def test_a_card_does_not_replace_its_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record = tmp_path / "results.json"
    record.write_text(json.dumps(saved("snli-balanced/dsa-multiple-snli")), encoding="utf-8")
    before = record.read_bytes()
    assert run_command(record, "--model_id", ID, "--output", record) == 2
    assert "is an input, and would be replaced: give another --output" in caplog.messages[-1]
    assert record.read_bytes() == before


# From here on: a real model of a real run.


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `org/small-nli` is the folder of a trained model, beside its data."""
    folder = tmp_path_factory.mktemp("home")
    options: dict[str, Any] = {"setting": "dsa-single-snli", "recipe": "modern", **SMALL_SIZES}
    options |= {"max_train_steps": 4, "per_device_train_batch_size": 16, "report_to": "none"}
    for split in ("train", "validation", "test"):
        rows = [{**row, "label": NLI_CLASS_NAMES[row["label"]]} for row in pairs(split)[:40]]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        options[f"{split}_file"] = folder / f"{split}.jsonl"
    (folder / SAMPLE_VECTORS.name).symlink_to(SAMPLE_VECTORS)
    options |= {"vectors": folder / SAMPLE_VECTORS.name, "output_dir": folder / ID}
    assert run_main(run_nli.main, "run_nli.py", options, "--cpu") == 0
    return folder


@pytest.fixture(scope="module")
def trained(home: Path) -> ModelCard:
    assert run_command(home / ID, "--model_id", ID) == 0
    card: ModelCard = ModelCard.load(home / ID / "README.md")
    return card


def test_card_of_a_trained_folder(trained: ModelCard, home: Path) -> None:
    results = read_results(home / ID)
    config = DSAConfig.from_pretrained(home / ID)
    assert not unexplained(trained, results, config)
    assert_reads_well(trained)
    assert "](attention.png)" in trained.text
    assert str(home) not in str(trained)
    assert not list((home / ID).glob(".*README*"))


def test_examples_are_what_the_model_says(trained: ModelCard, home: Path) -> None:
    model = DSAForNLI.from_pretrained(home / ID)
    tokenizer = small_tokenizer().from_pretrained(home / ID)
    widget = metadata(trained)["widget"]
    assert len(widget) == 3
    for example in widget:
        first, second = example["text"].split(" [SEP] ")
        with torch.no_grad():
            scores = model(**tokenizer(first, second, return_tensors="pt")).logits[0].softmax(-1).tolist()
        named = dict(zip(NLI_CLASS_NAMES, scores, strict=True))
        assert [entry["label"] for entry in example["output"]] == sorted(named, key=lambda name: -named[name])
        assert {entry["label"]: entry["score"] for entry in example["output"]} == pytest.approx(named, abs=1e-4)


def test_a_pair_says_what_its_joined_text_says(home: Path) -> None:
    model = DSAForSequenceClassification.from_pretrained(home / ID)
    tokenizer = small_tokenizer().from_pretrained(home / ID)
    (pair,) = widget_examples(model, tokenizer, [("A man sings.", "A man is asleep.")])
    (joined,) = widget_examples(model, tokenizer, ["A man sings. [SEP] A man is asleep."])
    assert pair == joined
    assert sum(pair.output.values()) == pytest.approx(1)
    assert list(pair.output.values()) == sorted(pair.output.values(), reverse=True)


BLOCKS = (
    'pipeline("text-classification"',
    'pipeline("zero-shot-classification"',
    'pipeline("sentence-embedding"',
    "SentenceTransformer(",
    "output_attentions=True",
    "import modeling_dsa",
)


def python_blocks(card: ModelCard) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", card.text, flags=re.M | re.S)


END = "--- end of the block ---"
# Each block runs in a fork of its own, which no other block's imports and registered classes reach.
RUN_BLOCKS = f"""
import json, os, sys
import sentence_transformers, torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline
for block in json.loads(sys.argv[1]):
    if not os.fork():
        exec(block, {{"__name__": "__main__"}})
        sys.exit()
    if os.wait()[1]:
        sys.exit(block)
    print("{END}", flush=True)
"""


def run_in(folder: Path, *command: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "cache")}
    environment |= {"ACCELERATE_USE_CPU": "true", "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_there_is_a_block_for_each_way_of_use(trained: ModelCard) -> None:
    blocks = python_blocks(trained)
    assert len(blocks) == len(BLOCKS)
    assert all(key in block for key, block in zip(BLOCKS, blocks, strict=True))


@pytest.fixture(scope="module")
def printed_by_blocks(trained: ModelCard, home: Path) -> list[list[str]]:
    """The lines that each block prints. What takes long to import is imported once."""
    written = run_in(home, sys.executable, "-c", RUN_BLOCKS, json.dumps(python_blocks(trained)))
    return [lines.splitlines() for lines in written.split(f"{END}\n")[:-1]]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=BLOCKS)
def test_every_block_runs_and_prints_what_its_comments_say(
    number: int, trained: ModelCard, printed_by_blocks: list[list[str]]
) -> None:
    block, printed = python_blocks(trained)[number], printed_by_blocks[number]
    promised = re.findall(r"^print\(.*\)  # (.*)$", block, flags=re.M)
    assert printed[: len(promised)] == promised
    if "text-classification" in block:
        assert printed[0] == printed[1].strip("[]")
        assert any(name in printed[0] for name in NLI_CLASS_NAMES)


@pytest.mark.slow
def test_the_command_in_the_card_makes_the_model_again(trained: ModelCard, home: Path, tmp_path: Path) -> None:
    (command,) = re.findall(r"^```bash\n(.*?)^```$", trained.text, flags=re.M | re.S)
    for name in ("train.jsonl", "validation.jsonl", "test.jsonl", SAMPLE_VECTORS.name):
        (tmp_path / name).symlink_to(home / name)
    run_in(tmp_path, "bash", "-euc", command)
    again, first = (read_results(folder)["metrics"] for folder in (tmp_path / "small-nli", home / ID))
    for split in first:  # another process may round a sum otherwise
        assert again[split].pop("loss") == pytest.approx(first[split].pop("loss"), rel=1e-6)
    assert again == first


@pytest.mark.parametrize("model_class", [DSAModel, DSAForNLI])
def test_nothing_is_claimed_where_nothing_was_measured(model_class: Any, tmp_path: Path) -> None:
    names = dict(enumerate(NLI_CLASS_NAMES))
    config = DSAConfig(vocab_size=len(small_tokenizer()), sentences_per_example=2, id2label=names, **SMALL_SIZES)
    model_class(config).save_pretrained(tmp_path)
    small_tokenizer().save_pretrained(tmp_path)
    assert write_card(tmp_path, ID) == tmp_path / "README.md"
    card = ModelCard.load(tmp_path / "README.md")
    is_encoder = model_class is DSAModel
    assert "nothing was measured" in card.text
    assert not unexplained(card, {}, config)
    assert_reads_well(card)
    data = metadata(card)
    assert not {"model-index", "metrics", "datasets", "language", "base_vectors"} & set(data)
    assert data["pipeline_tag"] == ("feature-extraction" if is_encoder else "text-classification")
    assert ("widget" in data) is not is_encoder
    assert ('pipeline("text-classification"' in card.text) is not is_encoder
    assert 'pipeline("sentence-embedding"' in card.text


def test_the_snippet_shows_the_weights_of_whole_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = build_tokenizer(["a", "man", "is"], lowercase=True, pieces=["play", "##ing", "gu", "##it", "##ar"])
    DSAModel(DSAConfig(vocab_size=len(tokenizer), **SMALL_SIZES)).save_pretrained(tmp_path / ID)
    tokenizer.save_pretrained(tmp_path / ID)
    (block,) = (text for text in python_blocks(ModelCard.load(write_card(tmp_path / ID, ID))) if "attentions" in text)
    monkeypatch.chdir(tmp_path)
    exec(block.replace(", trust_remote_code=True", ""), {})
    _, *lines = capsys.readouterr().out.splitlines()
    words, weights = zip(*(line.split("\t") for line in lines), strict=True)
    assert words == ("A", "man", "is", "playing", "a", "guitar", ".")
    assert sum(map(float, weights)) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("files", "model_id", "complaint"),
    [
        ({}, ID, "has no config.json"),
        ({"config.json": '{"model_type": "bert"}'}, ID, "a model of type 'bert'"),
        ({"config.json": '{"model_type": "dsa"}', "all_results.json": "{"}, ID, "is no JSON"),
        ({"config.json": '{"model_type": "dsa"}', "all_results.json": "[]"}, ID, "holds no object"),
        ({"config.json": '{"model_type": "dsa"}', "all_results.json": '{"eval_loss": 1}'}, ID, "no 'metrics' in"),
        ({"config.json": '{"model_type": "dsa"}'}, "a/b/c", "a/b/c"),
        ({"config.json": '{"model_type": "dsa"}'}, 'x"); bad("', "x"),
    ],
)
def test_mistakes_get_one_sentence(
    files: dict[str, str],
    model_id: str,
    complaint: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "README.md").write_text("the old card", encoding="utf-8")
    assert run_command(tmp_path, "--model_id", model_id) == 2
    assert complaint in logged_error(caplog)
    assert (tmp_path / "README.md").read_text("utf-8") == "the old card"


@pytest.mark.parametrize(("part", "name"), [("model", "model.safetensors"), ("tokenizer", "tokenizer.json")])
def test_a_broken_model_gets_one_sentence(
    part: str, name: str, home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for path in (home / ID).glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).write_bytes(b"neither")
    assert run_command(tmp_path, "--model_id", ID) == 2
    assert f"the {part} cannot be loaded" in logged_error(caplog)
    assert not (tmp_path / "README.md").exists()


@pytest.mark.parametrize("words", [[RUNS[0], "--model_id", ID], [ROOT, "--model_id", ID, "--output", "x.md"], [ROOT]])
def test_contradicting_options_are_refused(words: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["model_card", *map(str, words)])
    with pytest.raises(SystemExit, match="2"):
        cards.main()
