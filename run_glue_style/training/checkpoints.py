"""A run's checkpoints and its best weights: the files of its folder `checkpoints`."""

import json
import logging
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from modeling_dsa.command.messages import one_line
from modeling_dsa.files.hashing import file_hash
from modeling_dsa.files.replacing import replaced_file, write_json

from .integrity import find_damage, write_hashes
from .results import flat

logger = logging.getLogger(__name__)

KEPT = 2
_OWN = re.compile(r"\.?step-\d+|best\.safetensors|nonfinite-step-\d+\.json|\.unfinished-.+")
_IDENTITY = "identity.json"


class Checkpoints:
    """Folders `step-N`, of which the last two are kept, and `best.safetensors`, which belongs to the last one.

    All processes of a run must call each method, but for `delete` and `load_best`, which the main one may call alone;
    it writes what is not each one's own.
    """

    def __init__(self, accelerator: Accelerator, folder: Path, identity: Mapping[str, Any], again: str) -> None:
        """Set up a folder; nothing is written.

        Args:
            accelerator: Its registered objects, model and optimizer are a checkpoint's state.
            folder: Of the files.
            identity: What must be equal for a checkpoint to be this run's, as JSON.
            again: What resumes from a checkpoint, as a message says it.
        """
        self.folder, self.best, self._again = folder, folder / "best.safetensors", again
        self._accelerator, self._identity = accelerator, dict(identity)
        self._best_hash: str | None = None  # known to the main process

    def resume(self) -> Path | None:
        """Restore the last checkpoint that is whole, its best weights among it, and clear what a killed run left.

        Returns:
            The checkpoint's folder; None where there is none.

        Raises:
            ValueError: It is another run's, or all are damaged.
        """
        last = self._last_whole()
        if last is not None:
            self._refuse_other_run(last)
            self._accelerator.load_state(str(last))
        if self._accelerator.is_main_process:
            for path in (*self.folder.glob(".*"), *self._after(last)):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            self.best.unlink(missing_ok=True)  # a killed run may have found new best weights after its checkpoint
            if last is not None and (last / self.best.name).is_file():
                with replaced_file(self.best) as beside:
                    shutil.copyfile(last / self.best.name, beside)
                self._best_hash = file_hash(self.best)
        self._accelerator.wait_for_everyone()
        return last

    def save(self, step: int) -> None:
        """Write the checkpoint of this step, unless it is there, and delete old ones.

        Raises:
            ValueError: The file of the best weights is damaged.
            OSError: It cannot be written, such as to a full disk.
        """
        if (self.folder / f"step-{step}").is_dir():
            return
        # Every process writes files of its own into the one folder, whose name must not be a process's.
        beside = self.folder / f".step-{step}"
        checkpoint = f"The checkpoint of step {step} cannot be written to {self.folder}"
        with self._writing(checkpoint):
            self._accelerator.save_state(str(beside))
        self._accelerator.wait_for_everyone()
        if self._accelerator.is_main_process:
            with self._writing(checkpoint):
                self._finish(beside, step)

    def save_best(self, tensors: Mapping[str, Tensor]) -> None:
        """Write the best weights so far.

        Raises:
            OSError: They cannot be written, such as to a full disk.
        """
        if self._accelerator.is_main_process:
            cannot = f"The best weights cannot be written to {self.best}"
            with self._writing(cannot), replaced_file(self.best) as beside:
                save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, beside)
                self._best_hash = file_hash(beside)
        self._accelerator.wait_for_everyone()

    def load_best(self) -> dict[str, Tensor]:
        """The best weights so far, on the CPU.

        Raises:
            ValueError: Their file is damaged.
        """
        if self._accelerator.is_main_process:
            self._check_best()
        return load_file(self.best)

    def delete(self) -> None:
        """Delete all of it: the run is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _finish(self, beside: Path, step: int) -> None:
        """Add the best weights and all files' hashes to a state, give it its name, and delete old checkpoints."""
        if self._best_hash is not None:
            self._check_best()
            shutil.copyfile(self.best, beside / self.best.name)
        write_json(self._identity, beside / _IDENTITY)
        write_hashes(beside)
        beside.replace(self.folder / f"step-{step}")
        for old in self._complete()[:-KEPT]:
            shutil.rmtree(old)

    def _complete(self) -> list[Path]:
        """Complete checkpoints, oldest first."""
        return sorted(self.folder.glob("step-*"), key=_step)

    def _after(self, last: Path | None) -> list[Path]:
        """The damaged checkpoints, which are after the last whole one."""
        return [path for path in self._complete() if last is not None and _step(path) > _step(last)]

    def _last_whole(self) -> Path | None:
        """The last checkpoint whose files are those that were written."""
        found: list[Path | None] = [None]
        if self._accelerator.is_main_process:
            complete = self._complete()
            for path in reversed(complete):
                damage = find_damage(path)
                if damage is None:
                    found[0] = path
                    break
                logger.warning(f"The checkpoint {path} is damaged ({damage}): the one before it is used.")
            if complete and found[0] is None:
                raise ValueError(f"All checkpoints in {self.folder} are damaged: give --overwrite_output_dir.")
        broadcast_object_list(found)
        return found[0]

    def _check_best(self) -> None:
        if not self.best.is_file() or file_hash(self.best) != self._best_hash:
            raise ValueError(
                f"{self.best} is damaged: {self._again} resumes from the last checkpoint, which has its own copy."
            )

    def _refuse_other_run(self, checkpoint: Path) -> None:
        theirs = flat(json.loads((checkpoint / _IDENTITY).read_text(encoding="utf-8")))
        ours = flat(json.loads(json.dumps(self._identity)))
        for name in sorted(theirs.keys() | ours.keys()):
            if theirs.get(name) != ours.get(name):
                raise ValueError(
                    f"{checkpoint} is a checkpoint of another run: its {name} is {theirs.get(name)}, not "
                    f"{ours.get(name)}. Give the same options to resume it, --overwrite_output_dir to start anew, or "
                    f"another --output_dir; or delete {self.folder.parent}."
                )

    @contextmanager
    def _writing(self, cannot: str) -> Iterator[None]:
        """Tell what the block cannot write, and that the run is not lost."""
        try:
            yield
        except (OSError, RuntimeError, SafetensorError) as error:  # torch has no OSError for a full disk
            raise OSError(
                f"{cannot} ({one_line(error)}): free some space there, and {self._again} resumes from the checkpoint "
                "before."
            ) from error


def refuse_foreign_checkpoints(folder: Path) -> None:
    """Refuse a folder of checkpoints that holds anything else, which a run would delete.

    Raises:
        ValueError: It does.
    """
    foreign = sorted(path.name for path in folder.glob("*") if not _OWN.fullmatch(path.name))
    if foreign:
        raise ValueError(
            f"{folder} holds {foreign[0]}, which is no run's, and a run deletes this folder at its end: give another "
            "--output_dir."
        )


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))
