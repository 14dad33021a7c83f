"""Weight vectors in the plane as a picture, and as a page of its own in which each vector says whose it is."""

import itertools
import json
import re
from collections import Counter
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modeling_dsa.files.pictures import COLOURS, legend_columns, look, save_with_fonts, wrapped
from modeling_dsa.files.replacing import replaced_file

from .weight_vectors import Projection

_MOST_LABELS = 8
_LAYERS = 20
_PANEL = 4.6  # inches
_LONGEST_NAME = 100
_TEMPLATE = "projection.html"


def write_projection(projection: Projection, model: str, path: Path) -> None:
    """Write vectors in the plane, coloured by label, iteration and head, where there are several.

    Args:
        projection: What `project` gives.
        model: What the model is called.
        path: Its extension says what: `.html`, a page that needs nothing else, or `.png`, `.svg` or `.pdf`, a picture.
    """
    title = f"Vectors of {len(projection.points):,} sentences, {model}"
    with replaced_file(path) as beside:
        if path.suffix.lower() == ".html":
            beside.write_text(_page(projection, title), encoding="utf-8", newline="")
        else:
            save_with_fonts(_picture(projection, title), beside)


def groupings(projection: Projection) -> dict[str, tuple[list[str], np.ndarray]]:
    """The ways to colour the points: the names of the groups, and the group of each point.

    Beyond eight labels the rarest are one group.

    Returns:
        By `label`, `iteration` and `head`, those that have several groups: names, and (sentences, iterations, heads).
    """
    shape = projection.points.shape[:3]
    iteration, head = np.indices(shape)[1:]
    found: dict[str, tuple[list[str], np.ndarray]] = {}
    if projection.sentences.labels:
        names = [name for name, _ in Counter(projection.sentences.labels).most_common()]
        if len(names) > _MOST_LABELS:
            names = [*names[: _MOST_LABELS - 1], f"{len(names) - _MOST_LABELS + 1:,} other labels"]
        groups = [names.index(label) if label in names else len(names) - 1 for label in projection.sentences.labels]
        found["label"] = (names, np.broadcast_to(np.array(groups)[:, None, None], shape))
    found["iteration"] = ([f"iteration {number + 1}" for number in range(shape[1])], iteration)
    found["head"] = ([f"head {number + 1}" for number in range(shape[2])], head)
    return {by: (names, groups) for by, (names, groups) in found.items() if len(names) > 1}


def _picture(projection: Projection, title: str) -> Figure:
    ways = groupings(projection) or {"": ([""], np.zeros(projection.points.shape[:3], int))}
    named = {by: [wrapped(_shortened(name), _PANEL - 0.6, 8) for name in names] for by, (names, _) in ways.items()}
    columns = {by: min(4, legend_columns(names, _PANEL, 8)) for by, names in named.items()}
    lines = max(sum(name.count("\n") + 1 for name in names) / columns[by] for by, names in named.items())
    # The panels keep their height whatever stands below them.
    below = 0.2 + 0.19 * lines
    figure = Figure(figsize=(1 + _PANEL * len(ways), 4.8 + below), layout="constrained")
    above, legends = np.asarray(figure.subfigures(2, 1, height_ratios=(4.8, below)))
    panels = np.atleast_1d(above.subplots(1, len(ways), sharex=True, sharey=True))
    for column, (panel, (by, (_, groups))) in enumerate(zip(panels, ways.items(), strict=True)):
        _scatter(panel, projection.points, named[by], groups)
        panel.set_title(f"by {by}" if by else "", fontsize=10)
        panel.set_xlabel(projection.axes[0], fontsize=9)
        if len(named[by]) > 1:
            legend = panel.get_legend_handles_labels()
            x = (column + 0.5) / len(ways)
            legends.legend(
                *legend, fontsize=8, markerscale=2, loc="upper center", bbox_to_anchor=(x, 1), ncols=columns[by]
            )
    panels[0].set_ylabel(projection.axes[1], fontsize=9)
    above.suptitle(wrapped(title, figure.get_figwidth(), 11), fontsize=11)
    return figure


def _scatter(panel: Axes, points: np.ndarray, names: list[str], groups: np.ndarray) -> None:
    layers = np.array_split(np.arange(len(points)), min(_LAYERS, len(points)))  # so that no group hides another
    for layer, (sentences, number) in enumerate(itertools.product(layers, range(len(names)))):
        chosen = points[sentences][groups[sentences] == number]  # (vectors, 2)
        label = names[number] if layer < len(names) else None
        panel.scatter(chosen[:, 0], chosen[:, 1], s=16, edgecolor="white", linewidth=0.3, label=label, **look(number))
    panel.tick_params(labelsize=8)


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
        "colours": COLOURS,
    }
    script = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    page = (files(__package__) / _TEMPLATE).read_text(encoding="utf-8")
    filled = {"TITLE": escape(title), "DATA": script}
    return re.sub("TITLE|DATA", lambda name: filled[name[0]], page)  # at once: a title may hold the other's name


def _shortened(name: str) -> str:
    """The start and the end of a long one, for either may be what tells it from the others."""
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]} … {name[-half:]}"
