"""The entropy of attention over training.

    python -m run_glue_style.reporting.entropy_history RUN RUN ... --output PATH

Each RUN is an all_results.json of a run with --record_attention true, or a study's seed-N.json.gz. The picture is
PATH.png and PATH.svg: a panel for each routing iteration, a line for each run.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from modeling_dsa.command.command_line import make_parser
from modeling_dsa.command.exit_codes import exit_code_of
from modeling_dsa.files.outputs import require_folder
from modeling_dsa.files.pictures import EXTENSIONS, look, save_png_and_svg
from modeling_dsa.files.replacing import filled_folder
from run_glue_style.training.progress import ENTROPY_KEY
from run_glue_style.training.results import read_results


def draw_entropy_history(runs: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw it as a PNG and as an SVG.

    Args:
        runs: Results by the name of their line.
        path: Where, without an extension.

    Raises:
        ValueError: A run did not record its attention.
    """
    curves = {
        name: [(one["step"], one[ENTROPY_KEY]) for one in run.get("history", []) if one.get(ENTROPY_KEY)]
        for name, run in runs.items()
    }
    for name, points in curves.items():
        if not points:
            raise ValueError(f"{name} did not record its attention: train it with --record_attention true.")
    iterations = max(len(points[0][1]) for points in curves.values())
    figure = Figure(figsize=(1 + 4 * iterations, 3.8), layout="constrained")
    panels = figure.subplots(1, iterations, sharey=True, squeeze=False)[0]
    for iteration, panel in enumerate(panels):
        for number, (name, points) in enumerate(curves.items()):
            if iteration < len(points[0][1]):
                steps, shares = zip(*((step, 100 * shares[iteration]) for step, shares in points), strict=True)
                panel.plot(steps, shares, label=name, markersize=4, **look(number))
        panel.set_title(f"iteration {iteration + 1}", fontsize=10)
        panel.set_xlabel("update")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("entropy of the attention,\npercent of that of equal weights")
    panels[0].legend(fontsize=8)  # every run has a first iteration
    save_png_and_svg(figure, path)


def draw_files(paths: Sequence[Path], output: Path) -> None:
    """Draw the runs of these files, each called by its file and the folder that it is in.

    Args:
        paths: Of an all_results.json, or of a study's seed-N.json.gz.
        output: Where, without an extension.

    Raises:
        ValueError: The picture has an extension or no name or is a URL, two runs have one name, one is something else
            or damaged, or its run did not record its attention.
        OSError: One cannot be read, or the picture not written.
    """
    if output.name in ("", "..") or output.suffix.lower() in EXTENSIONS:
        raise ValueError(f"{output} names no picture: give a path without an extension, such as plots/entropy.")
    require_folder(output.parent, "--output")
    runs = {_name(path): read_results(path) for path in paths}
    if len(runs) < len(paths):
        raise ValueError("Two of the runs have one name, by their folders and files: draw them apart.")
    with filled_folder(output.parent) as beside:
        draw_entropy_history(runs, beside / output.name)


def _name(path: Path) -> str:
    """What a run is called: its file and the folder that it is in."""
    return "/".join(path.parts[-2:]).removesuffix(".gz").removesuffix(".json")


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and draw; the exit code is that of `exit_code_of`."""
    parser = make_parser(__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="all_results.json, or seed-N.json.gz.")
    parser.add_argument("--output", type=Path, required=True, help="The picture, without an extension.")
    arguments = parser.parse_args(argv)
    return exit_code_of(partial(draw_files, arguments.runs, arguments.output), argv)


if __name__ == "__main__":
    sys.exit(main())
