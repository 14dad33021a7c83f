"""How much the hops of a structured self-attention overlap, as a table and as a picture."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modeling_dsa.files.markdown import markdown_table
from modeling_dsa.files.replacing import filled_folder, write_json

from .grid.plot import draw_grid
from .rows import OVERLAP
from .units import mean_and_spread

_METRIC = "cosine of two hops"


def write_overlap(content: Mapping[str, Any], folder: Path) -> None:
    """Write overlap.json and what is made from it: table.md, plot.png and plot.svg."""
    with filled_folder(folder) as beside:
        write_json(content, beside / OVERLAP)
        (beside / "table.md").write_text(overlap_table(content), encoding="utf-8")
        values = {row: [found["overlaps"]] for row, found in content["rows"].items()}
        draw_grid("Structured self-attention: overlap of the hops", [_METRIC], values, beside / "plot")


def overlap_table(content: Mapping[str, Any]) -> str:
    """The contents of an overlap.json as Markdown, in percent."""
    rows = [
        [row, str(found["hops"]), str(len(found["overlaps"])), mean_and_spread(found["overlaps"], _METRIC)]
        for row, found in content["rows"].items()
    ]
    notes = (
        f"Percent, mean over all pairs of a sentence's hops and over {content['sentences']['count']:,} premises of "
        "SNLI's dev split; 100: all hops look at the same words. ±: standard deviation over the models, one a seed."
    )
    return f"{markdown_table(['row', 'hops', 'models', _METRIC], rows)}\n\n{notes}\n"
