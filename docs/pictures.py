"""Draw every picture of README, cards, docs, results and benchmarks again: `python docs/pictures.py`.

Given paths or folders, it draws only those: `python docs/pictures.py model_cards docs/pages/images/heads.png`. The
figures are those of the files that ship (records of runs and benchmarks, evaluation.json, faithfulness.json), and the
attention is that of the models that ship; nothing is measured anew. The pictures of demo and widget need a Chromium,
that of the widget npm too.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(ROOT),
    str(ROOT / "benchmarks"),
    str(ROOT / "tests" / "support"),
    str(ROOT / "model_cards" / "space"),
]

from browser import chromium, take_picture  # noqa: E402
from lib.records import Record, draw_record, read_record  # noqa: E402
from lib.space import running_space  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from widget_page import build_widget, served  # noqa: E402

from modeling_dsa.cli.main import main as dsa  # noqa: E402
from modeling_dsa.command.command_line import make_parser  # noqa: E402
from modeling_dsa.command.exit_codes import exit_code_of  # noqa: E402
from modeling_dsa.evaluation import report as evaluation  # noqa: E402
from modeling_dsa.explanation import faithfulness_report as faithfulness  # noqa: E402
from modeling_dsa.explanation.drawing import draw_attention, drawn_sentences  # noqa: E402
from modeling_dsa.explanation.explain import explain  # noqa: E402
from modeling_dsa.files.loading import load_model_and_tokenizer  # noqa: E402
from modeling_dsa.files.replacing import replaced_file  # noqa: E402
from modeling_dsa.hub.static_space import write_static_space  # noqa: E402
from run_glue_style.reporting import cost_plot, entropy_history, growth_plot, tabulate  # noqa: E402
from run_glue_style.reporting.paper_comparison import read_epochs  # noqa: E402
from run_glue_style.reporting.published import read_published  # noqa: E402
from run_glue_style.reporting.reporters import draw_attention_of_examples  # noqa: E402
from run_glue_style.reporting.rows import read_rows  # noqa: E402
from run_glue_style.training.run import FinishedRun  # noqa: E402

IMAGES = ROOT / "docs" / "pages" / "images"
CARDS = ROOT / "model_cards"
CLASSIFIER = "model_cards/dsa-snli"
HYPOTHESES = ("run_glue_style/sample/snli_validation.parquet", "--text_column", "hypothesis")
# What the runs of the shipped models drew: examples of their validation splits.
PAIRS = (
    (
        "Two women are embracing while holding to go packages.",
        "The sisters are hugging goodbye while holding to go packages after just eating lunch.",
    ),
    (
        "Two construction workers complete a task near the ground while a third worker looks on.",
        "Workers are on their way home.",
    ),
    ("A Latin American weaving fabric.", "The person is from Italy"),
)
SENTENCES = (
    ("Additionally, the negotiations involve a large number of other people working behind the scenes.",),
    (
        "The primate version of bipedalism is unusual because the back is close to upright "
        "(completely upright in humans).",
    ),
    ("His arm in Mr. Snyder’s grip felt limp.",),
)

Draw = Callable[[], object]


def pictures() -> dict[Path, Draw]:
    """Each picture of the repository, and what draws it; some are drawn together."""
    found: dict[Path, Draw] = {
        IMAGES / "attention.png": _readme,
        IMAGES / "space.png": _space,
        IMAGES / "widget.png": _widget,
        IMAGES / "explanation.png": partial(
            _explain, "explanation.png", "A man is playing a guitar.", "A man is asleep."
        ),
        IMAGES / "vectors.png": partial(_explain, "vectors.png", "--vectors", *HYPOTHESES, "--examples", "1000"),
        **dict.fromkeys((IMAGES / "figure-3.png", IMAGES / "figure-3.svg"), _figure_3),
        IMAGES / "heads.png": partial(_explain, "heads.png", "--heads", *HYPOTHESES, "--word_classes", "en"),
    }
    for config in sorted(CARDS.glob("*/config.json")):
        folder = config.parent
        found[folder / "attention.png"] = partial(_card, folder)
        files = (folder / name for name in (evaluation.FILE, faithfulness.FILE))
        measured = [path.with_suffix(".png") for path in files if path.is_file()]
        found |= dict.fromkeys(measured, partial(draw_measured, folder))
    for record in sorted((ROOT / "benchmarks").glob("*.json")):
        if hasattr(benchmark := import_module(record.stem), "draw"):
            found[record.with_suffix(".png")] = partial(_benchmark, benchmark.draw, record)
    for table in sorted((ROOT / "results").rglob("table.md")):
        folder = table.parent
        if any((folder / name).is_file() for name in ("table.json", "entropy.json", "overlap.json")):
            found |= dict.fromkeys((folder / "plot.png", folder / "plot.svg"), partial(_table, folder))
    attention = ROOT / "results" / "snli-attention"
    runs = sorted(attention.glob("*/seed-0.json.gz"))
    history = partial(entropy_history.draw_files, runs, attention / "entropy")
    found |= dict.fromkeys((attention / "entropy.png", attention / "entropy.svg"), history)
    snli = ROOT / "results" / "snli-table"
    epochs = read_epochs(ROOT / "benchmarks" / "table_epoch.json")
    costs = partial(cost_plot.draw_costs, read_published("snli"), read_rows(snli), snli / "costs", epochs)
    found |= dict.fromkeys((snli / "costs.png", snli / "costs.svg"), costs)
    metrics = [f"validation.{name}" for name in ("cosine", "spearman_stsb_dev", "spearman_sick_train")]
    for folder in (ROOT / "results" / "distillation-growth", ROOT / "results" / "distillation-growth-again"):
        growth = partial(growth_plot.draw_growth, read_rows(folder), metrics, folder / "growth")
        found |= dict.fromkeys((folder / "growth.png", folder / "growth.svg"), growth)
    return found


def draw_measured(folder: Path) -> None:
    """Draw what was measured of a model: evaluation.png and faithfulness.png beside their JSON files."""
    reports: dict[str, Callable[[Any], evaluation.Evaluation | faithfulness.FaithfulnessReport]] = {
        evaluation.FILE: evaluation.Evaluation.from_json,
        faithfulness.FILE: faithfulness.FaithfulnessReport.from_json,
    }
    for name, read in reports.items():
        path = folder / name
        if path.is_file():
            with replaced_file(path.with_suffix(".png")) as beside:
                read(json.loads(path.read_text(encoding="utf-8"))).draw(beside)


def _readme() -> None:
    """Pairs side by side, all heads together."""
    drawn = []
    for pair in PAIRS:
        explanation = explain(ROOT / CLASSIFIER, *pair)
        decision = explanation.scores.decision if explanation.scores else None
        for sentence in drawn_sentences(explanation.texts, decision=decision):
            drawn.append(replace(sentence, weights=sentence.weights[:1], names=sentence.names[:1]))
    draw_attention(drawn, IMAGES / "attention.png", columns=2)


def _space() -> None:
    with TemporaryDirectory() as folder, running_space(Path(folder) / "log") as url:
        take_picture(url, IMAGES / "space.png")


def _widget() -> None:
    with TemporaryDirectory() as scratch:
        model, page = Path(scratch, Path(CLASSIFIER).name), Path(scratch, "page")
        shutil.copytree(ROOT / CLASSIFIER, model)
        if dsa(["onnx", str(model), "--int8"]):
            raise RuntimeError("dsa onnx has written no file for the widget; it says above why.")
        write_static_space(model, page, bundle=build_widget() / "dist")
        with served(page) as url, chromium() as browser:
            shown = browser.new_page(viewport={"width": 1000, "height": 400})
            shown.goto(url)
            shown.locator("#answer").wait_for()
            shown.get_by_text("without a connection from now on").wait_for()  # then nothing writes there any more
            shown.locator("#facts").evaluate("facts => facts.remove()")  # it tells how long this machine took
            shown.wait_for_timeout(500)  # the bars grow
            shown.screenshot(path=IMAGES / "widget.png", full_page=True)


def _explain(name: str, *words: str) -> None:
    if dsa(["explain", CLASSIFIER, *words, "--output", str(IMAGES / name)]):
        raise RuntimeError(f"dsa explain has not drawn {name}; it says above why.")


def _figure_3() -> None:
    """That of DSA's paper: several heads over sentences of SNLI's kind."""
    sentences = ("A small brown dog runs across the grassy field.", "Two young girls are playing soccer on the beach.")
    for name in ("figure-3.png", "figure-3.svg"):
        _explain(name, *sentences)


def _card(folder: Path) -> None:
    model, tokenizer = load_model_and_tokenizer(str(folder))
    texts = PAIRS if model.config.sentences_per_example == 2 else SENTENCES
    draw_attention_of_examples(FinishedRun(model, tokenizer, texts, folder, folder.name))


def _table(folder: Path) -> None:
    _, write = tabulate.table_and_writer(folder)
    write()


def _benchmark(draw: Callable[[Record], Figure], record: Path) -> None:
    draw_record(read_record(record), draw, record)


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and draw; the exit code is that of `exit_code_of`."""
    parser = make_parser(__doc__)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="Pictures or folders; default: all.")
    return exit_code_of(partial(_draw, parser.parse_args(argv).paths), argv)


def _draw(paths: Sequence[Path]) -> None:
    asked = [path.resolve() for path in paths] or [ROOT]
    os.chdir(ROOT)  # pictures name the model's folder as it was given
    drawn = {path: draw for path, draw in pictures().items() if any(path.is_relative_to(one) for one in asked)}
    if not drawn:
        raise ValueError("There is no picture in these paths: give others.")
    for draw in dict.fromkeys(drawn.values()):
        draw()
    for path in drawn:
        print(path.relative_to(ROOT))  # noqa: T201  (this is the command's answer)


if __name__ == "__main__":
    sys.exit(main())
