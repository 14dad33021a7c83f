"""Weight vectors in the plane as a picture, and as a page of its own in which each vector says whose it is."""

import itertools
import json
from collections import Counter
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modeling_dsa.files.replacing import replaced_file

from .weight_vectors import Projection

EXTENSIONS = (".html", ".png", ".svg", ".pdf")
# Of Okabe and Ito, which stay apart for every kind of colour vision; the marks tell them apart without colour.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#A59B00", "#888888")
_MARKS = ("o", "s", "^", "D", "v", "_", "|", ".")
_MOST_GROUPS = len(_COLOURS)
_LAYERS = 20
_TEMPLATE = "projection.html"


def write_projection(projection: Projection, model: str, path: Path) -> None:
    """Write weight vectors in the plane, coloured by label, iteration and head, where there are several.

    Args:
        projection: What `project` gives.
        model: What the model is called.
        path: Its extension says what: `.html`, a page that needs nothing else, or `.png`, `.svg` or `.pdf`, a picture.
    """
    title = f"Weight vectors of {len(projection.points):,} sentences, {model}"
    with replaced_file(path) as beside:
        if path.suffix.lower() == ".html":
            beside.write_text(_page(projection, title), encoding="utf-8", newline="")
        else:
            _picture(projection, title).savefig(beside, dpi=120)


def groupings(projection: Projection) -> dict[str, tuple[list[str], np.ndarray]]:
    """The ways to colour the points: the names of the groups, and the group of each point.

    Beyond eight labels the rarest are one group, `other`.

    Returns:
        By `label`, `iteration` and `head`, those that have several groups: names, and (sentences, iterations, heads).
    """
    shape = projection.points.shape[:3]
    iteration, head = np.indices(shape)[1:]
    found: dict[str, tuple[list[str], np.ndarray]] = {}
    if projection.sentences.labels:
        names = [name for name, _ in Counter(projection.sentences.labels).most_common()]
        if len(names) > _MOST_GROUPS:
            names = [*names[: _MOST_GROUPS - 1], "other"]
        groups = [names.index(label) if label in names else len(names) - 1 for label in projection.sentences.labels]
        found["label"] = (names, np.broadcast_to(np.array(groups)[:, None, None], shape))
    found["iteration"] = ([f"iteration {number + 1}" for number in range(shape[1])], iteration)
    found["head"] = ([f"head {number + 1}" for number in range(shape[2])], head)
    return {by: (names, groups) for by, (names, groups) in found.items() if len(names) > 1}


def _picture(projection: Projection, title: str) -> Figure:
    ways = groupings(projection) or {"": ([""], np.zeros(projection.points.shape[:3], int))}
    figure = Figure(figsize=(1 + 4.6 * len(ways), 5), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(ways), sharex=True, sharey=True))
    for panel, (by, (names, groups)) in zip(panels, ways.items(), strict=True):
        _scatter(panel, projection.points, names, groups)
        panel.set_title(f"by {by}" if by else "", fontsize=10)
        panel.set_xlabel(projection.axes[0], fontsize=9)
    panels[0].set_ylabel(projection.axes[1], fontsize=9)
    figure.suptitle(title, fontsize=11, wrap=True, parse_math=False)
    return figure


def _scatter(panel: Axes, points: np.ndarray, names: list[str], groups: np.ndarray) -> None:
    layers = np.array_split(np.arange(len(points)), min(_LAYERS, len(points)))  # so that no group hides another
    for layer, (sentences, number) in enumerate(itertools.product(layers, range(len(names)))):
        chosen = points[sentences][groups[sentences] == number]  # (vectors, 2)
        panel.scatter(
            chosen[:, 0],
            chosen[:, 1],
            s=9,
            color=_COLOURS[number % _MOST_GROUPS],
            marker=_MARKS[number % _MOST_GROUPS],
            alpha=0.6,
            label=names[number] if layer < len(names) else None,
        )
    panel.tick_params(labelsize=8)
    if len(names) > 1:
        legend = panel.legend(
            fontsize=8, markerscale=2, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=min(4, len(names))
        )
        for text in legend.get_texts():
            text.set_parse_math(False)


def _page(projection: Projection, title: str) -> str:
    ways = groupings(projection)
    sentence, iteration, head = np.indices(projection.points.shape[:3])
    points = [
        [round(float(x), 4), round(float(y), 4), *map(int, of)]
        for (x, y), *of in zip(
            projection.points.reshape(-1, 2), sentence.ravel(), iteration.ravel(), head.ravel(), strict=True
        )
    ]
    data = {
        "axes": projection.axes,
        "groupings": {by: names for by, (names, _) in ways.items()} or {"nothing": ["all"]},
        "label_of": ways["label"][1][:, 0, 0].tolist() if "label" in ways else [],
        "labels": projection.sentences.labels,
        "sentences": projection.sentences.texts,
        "points": points,
    }
    script = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    page = (files(__package__) / _TEMPLATE).read_text(encoding="utf-8")
    return page.replace("TITLE", escape(title)).replace("DATA", script)
