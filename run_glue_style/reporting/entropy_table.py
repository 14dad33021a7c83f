"""The entropy of attention by iteration, as a table and as a picture."""

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from modeling_dsa.files.markdown import markdown_table
from modeling_dsa.files.pictures import look, save_png_and_svg
from modeling_dsa.files.replacing import filled_folder, write_json

from .rows import ENTROPY
from .units import error_bar


def write_entropy(content: Mapping[str, Any], folder: Path) -> None:
    """Write entropy.json and what is made from it: table.md, plot.png and plot.svg."""
    with filled_folder(folder) as beside:
        write_json(content, beside / ENTROPY)
        (beside / "table.md").write_text(entropy_table(content), encoding="utf-8")
        draw_entropy(content, beside / "plot")


def entropy_table(content: Mapping[str, Any]) -> str:
    """The contents of an entropy.json as Markdown: nats, and in brackets percent of the entropy of equal weights."""
    count = max(len(system["models"][0]) for system in content["systems"])
    headers = ["model", "models", *(f"iteration {number}" for number in range(1, count + 1)), "equal weights"]
    rows = []
    for system in content["systems"]:
        means = [
            f"{statistics.mean(of_model['nats'] for of_model in found):.3f} "
            f"({100 * statistics.mean(of_model['share'] for of_model in found):.1f} %)"
            for found in zip(*system["models"], strict=True)
        ]
        cells = [system["name"], str(len(system["models"])), *means, *["–"] * (count - len(means))]
        rows.append([*cells, f"{system['equal_weights_nats']:.3f}"])
    notes = (
        f"Nats, mean over heads, sentences and models; in brackets its share of log n for n tokens. "
        f"{content['sentences']['count']:,} sentences: {content['sentences']['name']}."
    )
    return f"{markdown_table(headers, rows)}\n\n{notes}\n"


def draw_entropy(content: Mapping[str, Any], path: Path) -> None:
    """Draw it as a PNG and as an SVG.

    Args:
        content: Of an entropy.json.
        path: Where, without an extension.
    """
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    panel = figure.add_subplot()
    for number, system in enumerate(content["systems"]):
        shares = [[100 * of_model["share"] for of_model in found] for found in zip(*system["models"], strict=True)]
        panel.errorbar(
            range(1, len(shares) + 1),
            [statistics.mean(found) for found in shares],
            yerr=[error_bar(found) for found in shares],
            capsize=4,
            label=system["name"],
            **look(number),
        )
    panel.set_xlabel("iteration of the routing")
    panel.set_ylabel("entropy of the attention,\npercent of that of equal weights")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)
    save_png_and_svg(figure, path)
