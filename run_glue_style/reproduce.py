"""Make a paper's table again: train each of its systems with several seeds and write ours beside the published figures.

    python -m run_glue_style.reproduce --table snli --recipe modern --seeds 3
    python -m run_glue_style.reproduce --table sst --data_dir trees --vectors glove.840B.300d.zip

All other options (--recipe, --mixed_precision, --num_train_epochs ...) go to the script that trains: run_nli.py,
run_sst.py or run_stance.py. The table is in OUTPUT_DIR/table.md, table.json and plot.png, and grows with each run.
A run is OUTPUT_DIR/SETTING/seed-N.json, its model is in the folder OUTPUT_DIR/SETTING/seed-N. The same command goes on
where it was stopped; what is finished is not done again.
"""

import argparse
import json
import logging
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from modeling_dsa.files.replacing import write_json
from modeling_dsa.shipped.settings import suggestion

from .reporting.comparison import Comparison, without_options
from .reporting.published import PublishedTable, read_published
from .reporting.tabulate import read_rows, write_comparison

logger = logging.getLogger(__name__)

# Options of the scripts that this command sets, and what to do instead of giving them.
_SET_HERE = {
    "--setting": "give --row",
    "--seed": "give --seeds",
    "--overwrite_output_dir": "give another --output_dir, or delete the runs that are to be made again",
}


@dataclass(frozen=True)
class PlannedRun:
    """A run of the table.

    Attributes:
        folder: Its output_dir; its results are copied beside it.
        words: The script's command line without --output_dir.
    """

    folder: Path
    words: list[str]

    @property
    def record(self) -> Path:
        """The copy of its all_results.json that the table is made from."""
        return self.folder.with_suffix(".json")


def plan_runs(
    table: PublishedTable,
    rows: Sequence[str],
    seeds: int,
    quick: bool,
    output_dir: Path,
    data_dir: Path | None,
    options: Sequence[str],
) -> list[PlannedRun]:
    """All runs of a table, one seed of every system before the next, so that an early table has all rows.

    Args:
        table: The paper's table.
        rows: Systems or settings; empty for all.
        seeds: Each setting runs with the seeds 0 to seeds - 1.
        quick: Train for a few updates only.
        output_dir: Folder of runs and table.
        data_dir: Folder of the data; None for those of the package.
        options: More words for the script's command line.

    Raises:
        ValueError: There is no such row, or data or vectors are missing.
        FileNotFoundError: A file of the data is missing.
    """
    settings = _settings(table, rows)
    common = [*_data_options(table, data_dir, options), *(_words(table.quick) if quick else []), *options]
    return [
        PlannedRun(
            output_dir / setting / f"seed-{seed}",
            ["--setting", setting, "--seed", str(seed), *_words(part), *common],
        )
        for seed in range(seeds)
        for setting, part in settings.items()
    ]


def reproduce(table: PublishedTable, runs: Sequence[PlannedRun], output_dir: Path, quick: bool) -> Comparison:
    """Make the runs that are not there yet, and the table after each.

    Raises:
        ValueError: A finished run was made with other options, or does not fit into the table.
        ChildProcessError: A run failed.
        KeyboardInterrupt: It was stopped (Ctrl-C or SIGTERM); a run in training has written a checkpoint.
    """
    for run in runs:  # mistakes are told before hours of training
        _refuse_other_options(run)
    if any(output_dir.glob("*/*.json")):
        Comparison(table, read_rows(output_dir), quick)
    for number, run in enumerate(runs, 1):
        name = f"{number} of {len(runs)}: {run.folder.parent.name}, {run.folder.name}"
        if run.record.is_file():
            logger.info(f"Run {name} is finished.")
            continue
        finished = run.folder / "all_results.json"
        if not finished.is_file():
            logger.info(f"Run {name} starts.")
            script = ["-m", f"{__package__}.{table.script}", *run.words, "--output_dir", str(run.folder)]
            code = run_to_end([sys.executable, *script])
            if code:
                raise ChildProcessError(f"Run {name} failed with exit code {code}; its own words stand above.")
        write_json(_read(finished), run.record)
        write_comparison(Comparison(table, read_rows(output_dir), quick), output_dir)
    comparison = Comparison(table, read_rows(output_dir), quick)
    write_comparison(comparison, output_dir)  # also where every run was finished
    return comparison


def run_to_end(command: Sequence[str]) -> int:
    """Exit code of a command. A request to stop goes on to it once, whoever sent it, and counts when it has ended.

    Raises:
        KeyboardInterrupt: This process (Ctrl-C or SIGTERM) or the command was asked to stop.
    """
    asked: list[int] = []
    children: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        for child in children:
            child.terminate()

    previous = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        # In a process group of its own: a terminal's Ctrl-C would reach it beside ours, and a second one is a kill.
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0) as child:
            children.append(child)
            code = child.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if asked or code == 130:
        raise KeyboardInterrupt
    return code


def _settings(table: PublishedTable, rows: Sequence[str]) -> dict[str, Mapping[str, str | int]]:
    """Settings to run and their part's options."""
    parts = table.parts_of_settings()
    known = {system: [f"{system}-{part}" for part in table.parts] for system in table.systems}
    known |= {setting: [setting] for setting in parts}
    for row in rows:
        if row not in known:
            raise ValueError(f"The table '{table.name}' has no row '{row}'. {suggestion(row, known)}")
    chosen = {setting for row in rows or table.systems for setting in known[row]}
    return {setting: table.parts[part] for setting, part in parts.items() if setting in chosen}


def _data_options(table: PublishedTable, data_dir: Path | None, options: Sequence[str]) -> list[str]:
    names = ", ".join(table.files.values())
    if data_dir is None:
        if not table.data_ship:
            raise ValueError(f"The table '{table.name}' needs data: give --data_dir, a folder with {names}.")
        return []
    if "--vectors" not in options:
        raise ValueError(f"The data in {data_dir} need word vectors: give --vectors, such as glove.840B.300d.zip.")
    paths = {option: data_dir / file for option, file in table.files.items()}
    for path in paths.values():
        if not path.is_file():
            raise FileNotFoundError(f"There is no {path}: --data_dir must have {names}.")
    return _words({option: str(path) for option, path in paths.items()})


def _refuse_other_options(run: PlannedRun) -> None:
    for path in (run.record, run.folder / "all_results.json"):
        if path.is_file():
            made_with = without_options(_read(path).get("command", ["", "unknown"])[1:], {"output_dir"})
            if made_with != run.words:
                raise ValueError(
                    f"{path} is a run with other options: it was made with '{' '.join(made_with)}', and asked for is "
                    f"'{' '.join(run.words)}'. Give the same options in the same order, another --output_dir, or "
                    f"delete {run.folder} and {run.record}."
                )


def _read(path: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def _words(options: Mapping[str, str | int]) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def _parse(argv: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--table", required=True, help="Table of a paper: snli, sst or fnc1.")
    parser.add_argument(
        "--row", nargs="+", default=[], help="Only these systems (dsa-single) or settings (dsa-single-sst2)."
    )
    parser.add_argument("--seeds", type=int, default=1, help="Train each with the seeds 0 to SEEDS - 1; default: 1.")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="Only a trial: a few updates on few rows. It has a folder of its own, OUTPUT_DIR-quick.",
    )
    parser.add_argument("--output_dir", type=Path, help="Folder of runs and table; default: runs/reproduce-TABLE.")
    parser.add_argument(
        "--data_dir",
        type=Path,
        help="Folder with the data under their original names: train.txt, dev.txt and test.txt with trees for sst, the "
        "four .csv for fnc1; for snli the three .jsonl, or nothing for the pairs of the package.",
    )
    parser.add_argument(
        "--vectors", type=Path, help="Word vectors; needed wherever the data are not those of the package."
    )
    arguments, options = parser.parse_known_args(argv)
    return arguments, options


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and make the table.

    Returns:
        The exit code: 2 after a mistake or a failed run, 130 after an interrupt.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    arguments, options = _parse(argv)
    try:
        for option in options:
            if (name := option.split("=")[0]) in _SET_HERE:
                raise ValueError(f"Leave out {name}, which this command sets: {_SET_HERE[name]}.")
        if arguments.seeds < 1:
            raise ValueError(f"--seeds must be at least 1, got {arguments.seeds}.")
        table = read_published(arguments.table)
        output_dir = arguments.output_dir or Path("runs") / f"reproduce-{table.name}"
        if arguments.quick:
            output_dir = output_dir.with_name(f"{output_dir.name}-quick")
        if arguments.vectors is not None:
            options = ["--vectors", str(arguments.vectors), *options]
        runs = plan_runs(
            table, arguments.row, arguments.seeds, arguments.quick, output_dir, arguments.data_dir, options
        )
        comparison = reproduce(table, runs, output_dir, arguments.quick)
    except KeyboardInterrupt:
        logger.warning("Stopped. The same command goes on from here.")
        return 130
    except (ValueError, OSError) as error:
        logger.error(f"error: {error}")
        return 2
    logger.info(f"The table is {output_dir / 'table.md'}, its picture {output_dir / 'plot.png'}.")
    print(comparison.as_markdown())  # noqa: T201  (this is the command's answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
