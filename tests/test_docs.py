"""The README and the site tell the truth: their snippets run, their tables are the files', they leave nothing out."""

import ast
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from accelerate.commands.launch import launch_command_parser
from accelerate.state import AcceleratorState, GradientState
from huggingface_hub import constants
from loopback_hub import LoopbackHub
from pages import BLOCKS, COMMANDS, PAGES, ROOT, SITE, SNIPPETS, Block
from small_runs import pairs
from small_stances import write_stances

from modeling_dsa.cli.main import main as dsa
from modeling_dsa.encoders_dsa import ENCODERS
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.shipped.nli import NLI_CLASS_NAMES
from modeling_dsa.shipped.settings import setting_names
from run_glue_style.reporting.tabulate import table_and_writer
from run_glue_style.sample import SAMPLE_VECTORS

README = (ROOT / "README.md").read_text(encoding="utf-8")
ROOMS = ("benchmarks", "docs/pages", "model_cards", "results", "run_glue_style")
SENTIMENT = ("awful", "dull", "plain", "good", "superb")
TABLES = [
    found
    for page in (*PAGES, *ROOT.glob("results/*/README.md"))
    for found in re.findall(
        r"<!-- table: (\S+) -->\n(.*?)<!-- end of table -->", page.read_text(encoding="utf-8"), flags=re.S
    )
]
# What the shell's snippets leave behind.
LEAVES = {
    "shell": ("vectors.npy", "attention.png"),
    "init": ("my-model/model.safetensors", "my-model/tokenizer.json"),
    "encode": ("vectors.npy", "vectors/vectors-000000.parquet"),
    "search-vectors": ("vectors.npy", "small.npy"),
    "onnx": ("my-model/onnx/model.onnx", "my-model/onnx/model_quantized.onnx"),
    "explain": ("attention.png", "attention.html"),
    "vectors": ("vectors.png", "vectors.svg", "vectors.html"),
    "figure-3": ("figure-3.png", "figure-3.svg"),
    "heads": ("heads.json", "heads.png"),
    "faithfulness": ("faithfulness.json", "faithfulness.png"),
    "train-sample": ("runs/dsa-single-snli/all_results.json", "runs/dsa-single-snli/attention.png"),
    "own-pairs": ("runs/mine/all_results.json",),
    "own": ("runs/reviews/all_results.json", "predictions.jsonl"),
    "predict": ("predictions.csv",),
    "own-scores": ("runs/pairs/all_results.json",),
    "other-tasks": ("runs/dsa-single-sst5/all_results.json", "runs/vsam-fnc1/all_results.json"),
    "reproduce": ("runs/reproduce-sst-quick/table.md",),
    "grid": ("runs/snli-dynamic/table.md", "runs/snli-dynamic/plot.svg"),
    "two-processes": ("runs/two/all_results.json",),
    "encode-processes": ("vectors/vectors-000000.parquet", "vectors/vectors-000001.parquet"),
}
# What makes a trial of the training scripts.
TRIAL = "--max_train_steps 2 --max_train_samples 512 --per_device_train_batch_size 16 --report_to none"
OWN_PAIRS = "--train_file train.jsonl --validation_file dev.jsonl --test_file test.jsonl"
TRIALS = {
    "run_stance": f"{TRIAL} --validation_share 0.3",
    "run_grid": f"{TRIAL} {OWN_PAIRS} --vectors glove.6B.zip:glove.6B.100d.txt --row base static --seeds 0",
    "reproduce": "--row kim-cnn-sst2 --quick",
}
ON_THE_HUB = ("push", "hub", "stranger")
ON_ENGINES = ("ray", "spark", "map")  # tests of ColumnEncoder run them


def _prose(page: str) -> str:
    """What stands outside of blocks of code."""
    return re.sub(r"^```.*?^```", "", page, flags=re.S | re.M)


def trains(block: Block) -> bool:
    """Whether a shell snippet has more than lines of `dsa`."""
    return block.language == "bash" and not all(line.startswith("dsa ") for line in block.lines)


RUN = {name: block for name, block in SNIPPETS.items() if name not in (*ON_THE_HUB, *ON_ENGINES)}
SLOW_PAGES = ("attention", "onnx", "search")
QUICK = {name: block for name, block in RUN.items() if not trains(block)}
LONG = {name: block for name, block in RUN.items() if trains(block)}


@pytest.mark.parametrize(("path", "table"), TABLES)
def test_tables_are_those_of_the_results(path: str, table: str) -> None:
    assert table == (ROOT / path).read_text(encoding="utf-8")
    assert table == table_and_writer((ROOT / path).parent)[0]


def _page(name: str) -> str:
    return (SITE / name).read_text(encoding="utf-8")


def test_the_readme_is_short_and_has_one_table() -> None:
    assert len(README.split()) <= 900
    assert README.count("<!-- table: ") == 1


def test_the_baseline_that_a_run_shows_is_a_result() -> None:
    baseline = json.loads((SAMPLE_VECTORS.parent / "baseline.json").read_text(encoding="utf-8"))
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / baseline["results"]).glob("*.json")]
    accuracies = [run["metrics"]["validation"]["accuracy"] for run in runs]
    assert baseline["validation_accuracy"] == pytest.approx(sum(accuracies) / len(accuracies))
    assert {run["setting"] for run in runs} == {baseline["setting"]}


def test_links_lead_somewhere() -> None:
    """Where a reader of the repository is; the site, which rewrites them, checks its own when it is built."""
    found = [*ROOT.glob("*.md"), *(path for room in ROOMS for path in (ROOT / room).rglob("*.md"))]
    pages = [path for path in found if "node_modules" not in path.parts]
    links = [
        (page.relative_to(ROOT), link)
        for page in pages
        for link in re.findall(r"\]\((?!\w+:)([^)#]+)", _prose(page.read_text(encoding="utf-8")))
    ]
    assert len(links) > 100
    assert not [(page, link) for page, link in links if not (ROOT / page.parent / link).exists()]


def test_commands_name_what_exists() -> None:
    assert {"main", "tests", "site", "slow-tests"} <= set(COMMANDS)
    for command in COMMANDS.values():
        files = re.findall(r"\S+\.(?:py|yaml|yml|txt)\b", command.text)
        assert files
        assert all((ROOT / file).is_file() for file in files)


def test_every_block_that_a_reader_would_copy_is_run() -> None:
    assert not [block.text for block in BLOCKS if block.language in ("bash", "python") and not block.kind]
    snippets = {(block.name, block.text) for block in BLOCKS if block.kind == "snippet"}
    assert len(snippets) == len(SNIPPETS)  # what has one name is the same on every page


def test_the_site_lists_every_setting_encoder_pooling_and_grid() -> None:
    settings, encoders, poolings = re.findall(
        r"^\| (?:setting|`encoder`|`pooling`) \|.*\n\|[-|]+\n((?:\|.*\n)+)",
        _page("settings.md"),
        flags=re.M,
    )
    for table, names in ((settings, setting_names()), (encoders, ENCODERS), (poolings, POOLINGS)):
        first_cells = " ".join(re.findall(r"^\|([^|]*)\|", table, flags=re.M))
        assert set(re.findall(r"`([^`]+)`", first_cells)) == set(names)
    told = re.search(r"Those that ship are in `configuration/grids`:(.*?)\n\n", _page("guides/grids.md"), flags=re.S)
    assert told is not None
    assert set(re.findall(r"`([^`]+)`", told[1])) == {path.stem for path in (ROOT / "configuration/grids").iterdir()}


def test_the_reference_leaves_no_module_out() -> None:
    shown = {
        name
        for page in (SITE / "reference").glob("*.md")
        for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), flags=re.M)
    }
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in ("modeling_dsa", "run_glue_style")
        for path in (ROOT / package).rglob("*.py")
        if not path.stem.startswith("__")
    }
    # Names of transformers 5 under transformers 4, and what made the sample.
    modules -= {"modeling_dsa.compatibility_dsa", "run_glue_style.sample.make_sample"}
    assert not {name for name in modules if not any(f"{name}.".startswith(f"{room}.") for room in shown)}


def test_every_study_is_a_page_of_the_site() -> None:
    navigation = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    studies = {f"results/{path.parent.name}/README.md" for path in (ROOT / "results").glob("*/README.md")}
    assert studies <= set(re.findall(r"- (results/\S+)", navigation))


def test_notebooks_hold_no_outputs_and_are_pages_of_the_site() -> None:
    """The site runs them when it is built."""
    notebooks = sorted((SITE / "tutorials").iterdir())
    navigation = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    assert {path.stem for path in notebooks} == set(re.findall(r"- tutorials/(\w+)\.md", navigation))
    for path in notebooks:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert code
        assert not [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's vectors in an archive of several files, as GloVe's own is."""
    path = tmp_path_factory.mktemp("vectors") / "glove.6B.zip"
    with zipfile.ZipFile(SAMPLE_VECTORS) as sample, zipfile.ZipFile(path, "w") as archive:
        archive.writestr("glove.6B.50d.txt", "word" + " 0" * 50 + "\n")
        archive.writestr("glove.6B.100d.txt", sample.read(sample.namelist()[0]))
    return path


@pytest.fixture
def home(vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with what the snippets name: the repository's, and files of the reader's own."""
    for name in ("run_glue_style", "configuration", "model_cards"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / vectors.name).symlink_to(vectors)
    (tmp_path / "sentences.txt").write_text("A man is asleep.\n\nNobody sings.\n", encoding="utf-8")
    for name, split in (("train", "train"), ("dev", "validation"), ("test", "test")):
        examples = [
            {
                "sentence1": pair["premise"],
                "sentence2": pair["hypothesis"],
                "gold_label": NLI_CLASS_NAMES[pair["label"]],
            }
            for pair in pairs(split)[:40]
        ]
        lines = "".join(json.dumps(example) + "\n" for example in examples)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    reviews = [f"{'bad' if pair['label'] else 'good'}\t{pair['premise']}" for pair in pairs("train")[:60]]
    (tmp_path / "reviews.tsv").write_text("sentiment\treview\n" + "\n".join(reviews) + "\n", encoding="utf-8")
    scored = [f"{pair['premise']}\t{pair['hypothesis']}\t{pair['label'] + 0.5}" for pair in pairs("train")[:200]]
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + "\n".join(scored) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def home_with_tasks(home: Path) -> Path:
    """Also trees and the files of the Fake News Challenge."""
    (home / "trees").mkdir()
    for name in ("train", "dev", "test"):
        trees = [f"({label} (2 {name}) ({label} ({label} {word}) (2 film)))" for label, word in enumerate(SENTIMENT)]
        (home / "trees" / f"{name}.txt").write_text("\n".join(trees * 4) + "\n", encoding="utf-8")
    (home / "fnc-1").mkdir()
    write_stances(home / "fnc-1")
    return home


def run_in(folder: Path, command: list[str], environment: Mapping[str, str] | None = None) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**(environment or os.environ | {"HF_HUB_OFFLINE": "1"}), "PATH": path, "ACCELERATE_USE_CPU": "true"}
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def run_python(block: Block) -> None:
    """Run a snippet, each of whose prints has a comment that says what it prints; a colon ends that."""
    printed: list[tuple[int, str]] = []

    def note(*values: object) -> None:
        printed.append((sys._getframe(1).f_lineno, " ".join(map(str, values))))

    exec(compile(ast.parse(block.text), block.name, "exec"), {"print": note})
    assert printed
    for number, text in printed:
        comment = block.text.splitlines()[number - 1].partition("  # ")[2]
        assert re.sub(r"^torch\.Size\(\[(.*)\]\)$", r"(\1)", text) == comment.partition(":")[0]


def trial(block: Block) -> list[str]:
    """The lines of a shell snippet with training cut short."""
    lines = []
    for line in block.lines:
        script = re.search(r"(run_[a-z]+|reproduce)(?:\.py)?(?: [a-z]+-[a-z]+)? --", line)
        options = TRIALS.get(script[1], TRIAL) if script else ""
        lines.append(f"{line.replace('--seeds 3', '--seeds 1')} {options}")
    return lines


def run_here(line: str) -> int:
    """A line's exit code, run inside this process: torch alone takes a process of its own ten seconds to import.

    What `accelerate launch` starts as one process is run by its path and as `__main__`, as Python runs it.
    """
    words = shlex.split(line)
    if words[0] == "dsa":
        return dsa(words[1:])
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    run: Callable[[], object]
    with pytest.MonkeyPatch.context() as patch:
        if words[:2] == ["accelerate", "launch"]:
            given = launch_command_parser().parse_args(words[2:])
            patch.setattr(sys, "argv", [given.training_script, *given.training_script_args])
            patch.setattr(sys, "path", [str(Path(given.training_script).parent), *sys.path])
            run = partial(runpy.run_path, given.training_script, run_name="__main__")
        else:
            assert words[:2] == ["python", "-m"]
            patch.setattr(sys, "argv", words[2:])
            run = partial(runpy.run_module, words[2], run_name="__main__", alter_sys=True)
        with pytest.raises(SystemExit) as ended:
            run()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    "page",
    [
        # The export takes long, and so do pictures and indexes.
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if page.stem in SLOW_PAGES else [])
        for page in sorted({block.page for block in QUICK.values()})
    ],
)
def test_the_snippets_of_a_page_run_one_after_another(page: Path, home: Path) -> None:
    for block in QUICK.values():
        if block.page != page:
            continue
        if block.language == "python":
            run_python(block)
        else:
            assert [run_here(line) for line in block.lines] == [0] * len(block.lines)
            assert not [name for name in LEAVES[block.name] if not (home / name).is_file()]


@pytest.mark.slow
@pytest.mark.usefixtures("datasets_cache")
@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")  # other tests import what is run here
@pytest.mark.parametrize("name", LONG)
def test_a_snippet_that_trains_or_starts_processes_runs(
    name: str, home_with_tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = trial(LONG[name])
    if "--config_file" in LONG[name].text:  # the launch file of several processes
        run_in(home_with_tasks, ["bash", "-euc", "\n".join(lines)])
    else:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # of the processes of a grid and of a table
        monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
        assert [run_here(line) for line in lines] == [0] * len(lines)
    assert not [path for path in LEAVES[name] if not (home_with_tasks / path).is_file()]


@pytest.mark.slow
@pytest.mark.usefixtures("datasets_cache")
def test_the_way_to_the_hub_and_back(home: Path, hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    hub.add_user("ada", "hf_token", orgs=("org",))
    with hub.connected("hf_token"):
        assert [run_here(line) for line in SNIPPETS["push"].lines] == [0]
        assert hub.commits("org/dsa-snli")[0] == "Upload the model"
        assert [run_here(line) for line in trial(SNIPPETS["hub"])] == [0, 0]
    assert hub.commits("org/dsa-snli")[0] == "End of training"
    assert hub.commits("org/dsa-small", revision="v1")[0] == "Upload the model"
    stranger = f"import sys; sys.modules['modeling_dsa'] = None\n{SNIPPETS['stranger'].text}"
    environment = hub.environment(home / "hf", "hf_token")
    labels, vectors = run_in(home, [sys.executable, "-c", stranger], environment).splitlines()[-2:]
    assert sorted(json.loads(labels.replace("'", '"'))) == ["cooking", "sports"]
    assert vectors == "600 (1, 600)"
