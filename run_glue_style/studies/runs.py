"""The runs of a study: made one after the other, each once, with a record of each."""

import contextlib
import gzip
import importlib
import io
import json
import logging
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modeling_dsa import DSAConfig
from modeling_dsa.files.model_replacing import EXAMPLE_SCORES, RESULTS
from modeling_dsa.files.outputs import require_folder
from modeling_dsa.files.replacing import json_text, replaced_file, write_json
from run_glue_style.training.arguments import option_values, without_options
from run_glue_style.training.entry import CheckedRun
from run_glue_style.training.results import read_run
from run_glue_style.training.unread_options import why_unread

from .process import run_to_end

logger = logging.getLogger(__name__)

# What a record leaves out: it is long, and no table needs it.
_DETAILS = ("history", "environment", "texts")
_TEXTS_OF_THE_DATA = "shown_examples"  # for the card of a folder with its model; the data may not be ours to pass on


# Where a run is made and what it leaves on its way, and nothing of what is trained.
_OF_NO_RESULT = frozenset({"output_dir", "cpu", "checkpointing_steps", "cache_dir", "report_to"})


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study.

    Attributes:
        script: Module of `run_glue_style` that trains it.
        folder: Its output_dir; its record is written beside it.
        arguments: The script's command line without --output_dir.
    """

    script: str
    folder: Path
    arguments: list[str]

    @property
    def record(self) -> Path:
        """Its results without history and environment, which tables are made from."""
        return self.folder.with_suffix(".json")

    @property
    def all_results(self) -> Path:
        """The whole of its results but for texts of the data, compressed."""
        return self.folder.with_suffix(".json.gz")

    @property
    def example_scores(self) -> Path:
        """The scores of its single examples, where it saved them."""
        return self.folder.with_suffix(".npz")


def make_runs(runs: Sequence[PlannedRun], write_table: Callable[[], None]) -> None:
    """Make the runs that are not there yet, and the table after each.

    Raises:
        ValueError: The folder is a file, or a finished run was made with other options.
        ChildProcessError: A run failed.
        KeyboardInterrupt: It was asked to stop; a run in training has written a checkpoint.
    """
    for run in runs:  # mistakes are told before hours of training
        require_folder(run.folder, "--output_dir")
        refuse_other_options(run)
    for number, run in enumerate(runs, 1):
        name = f"{number} of {len(runs)}: {run.folder.parent.name}, {run.folder.name}"
        if run.record.is_file():
            logger.info(f"Run {name} is finished.")
            continue
        if not (run.folder / RESULTS).is_file():
            logger.info(f"Run {name} starts.")
            script = ["-m", f"run_glue_style.{run.script}", *run.arguments, "--output_dir", str(run.folder)]
            code = run_to_end([sys.executable, *script])
            if code:
                raise ChildProcessError(f"Run {name} failed with exit code {code}; its own error stands above.")
        _write_record(run)
        write_table()
    write_table()  # also where every run was finished


def check_run(run: PlannedRun) -> CheckedRun:
    """Read a run's command line as its script will.

    Raises:
        ValueError: The script would refuse it.
    """
    script = importlib.import_module(f"run_glue_style.{run.script}")
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
            checked: CheckedRun = script.read([*run.arguments, "--output_dir", str(run.folder)]).check()
            return checked
    except SystemExit as error:
        mistake = told.getvalue().partition("\n")[0].removeprefix("error: ")
        raise ValueError(mistake or "it asks for help, and trains nothing.") from error


def refuse_other_options(run: PlannedRun) -> None:
    """Refuse a finished run that was made otherwise than planned.

    Raises:
        ValueError: Its command line was another, or a record is damaged.
    """
    for path in (run.record, run.folder / RESULTS):
        if path.is_file():
            results = read_run(path)
            made_with = results["command"][1:]
            if _trained_by(made_with, results) != _trained_by(run.arguments, results):
                raise ValueError(
                    f"{path} is a run with other options: it was made with "
                    f"'{' '.join(without_options(made_with, {'output_dir'}))}', and asked for is "
                    f"'{' '.join(run.arguments)}'. Give the same options, another --output_dir, or delete {run.folder} "
                    f"and {run.record}."
                )


def _trained_by(arguments: Sequence[str], results: Mapping[str, Any]) -> dict[str, list[str]]:
    """The options of a command line that say what is trained, where it was a model with these results."""
    config = DSAConfig.from_dict(results["model"])
    return {
        name: values
        for name, values in option_values(arguments).items()
        if name not in _OF_NO_RESULT and why_unread(config, name) is None
    }


def as_arguments(options: Mapping[str, str | int | list[str]]) -> list[str]:
    """Options as a command line."""
    return [
        argument
        for name, value in options.items()
        for argument in (f"--{name}", *(value if isinstance(value, list) else [str(value)]))
    ]


def _write_record(run: PlannedRun) -> None:
    """Write the files beside the folder of a finished run; the record last, which tells that they are there."""
    results = json.loads((run.folder / RESULTS).read_bytes())
    results.pop(_TEXTS_OF_THE_DATA, None)
    with replaced_file(run.all_results) as beside:
        beside.write_bytes(gzip.compress(json_text(results).encode(), mtime=0))  # the same results give the same bytes
    if (scores := run.folder / EXAMPLE_SCORES).is_file():
        with replaced_file(run.example_scores) as beside:
            shutil.copyfile(scores, beside)
    write_json({name: value for name, value in results.items() if name not in _DETAILS}, run.record)
