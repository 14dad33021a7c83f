"""The vectors that a teacher gives sentences, computed once: float16 shards in a folder, each whole or not there.

Millions of sentences shall not be as many files, and a stop shall cost little: a shard is made of small parts, files of
their own until it is whole.
"""

import hashlib
import itertools
import json
import logging
import re
import signal
from collections.abc import Iterator, Set
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from tqdm.auto import tqdm

from modeling_dsa.command.launchers import Process
from modeling_dsa.encoding.teacher import teacher_sha256
from modeling_dsa.encoding.vector_files import write_npy
from modeling_dsa.files.replacing import replaced_file, write_json
from run_glue_style.training.half_precision import computes_in_bf16
from run_glue_style.training.interruption import handled_stops

from .sentences import Sentences
from .teacher_vectors import TeacherVectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
KEYS = "sentence-keys.bin"  # of all sentences, 8 bytes each: they tell whether others are the first of these
SHARD_ROWS = 8192  # sentences: sorting them by length leaves little padding
PART_ROWS = 512  # sentences that a stop costs at most: whole batches, so that parts change none of them
_CPU_BATCH, _GPU_BATCH = 32, 256


@dataclass(frozen=True)
class _Folder:
    """Where the vectors of certain sentences are or will be.

    Attributes:
        path: Of the folder.
        sha256: Hash of the teacher and the sentences.
        count: How many sentences they are.
    """

    path: Path
    sha256: str
    count: int

    @property
    def shards(self) -> list[Path]:
        return [self.path / f"vectors-{n:06}.npy" for n in range(-(-self.count // SHARD_ROWS))]

    @property
    def is_finished(self) -> bool:
        return all(map(self.is_whole, range(len(self.shards))))

    def is_whole(self, number: int) -> bool:
        """Whether a shard is there, and neither cut nor of other rows."""
        try:
            rows = len(np.load(self.shards[number], mmap_mode="r"))
        except (OSError, EOFError, ValueError):
            return False
        return rows == min(SHARD_ROWS, self.count - number * SHARD_ROWS)


class TeacherCache:
    """The folder of one teacher's vectors of certain sentences, or of a longer text that begins with them.

    Attributes:
        folder: It.
        sha256: Hash of the teacher and of all sentences whose vectors it holds.
    """

    def __init__(self, root: Path, name: str, teacher: "SentenceTransformer", sentences: Sentences) -> None:
        """Find the folder; nothing is written.

        Args:
            root: Of all such folders. Another teacher or other sentences have another one in it; the first sentences of
                a text have none where the whole text's is finished.
            name: The teacher's, for people.
            teacher: It.
            sentences: What it is given.
        """
        self._teacher, self._sentences = teacher, sentences
        content: dict[str, Any] = {
            "teacher": {"sha256": teacher_sha256(teacher)},
            "sentences": {"sha256": sentences.sha256, "count": len(sentences)},
            "shard_rows": SHARD_ROWS,
        }
        sha256 = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        self._manifest = content | {
            "sha256": sha256,
            "teacher": {"name": name, **content["teacher"]},
            "sentences": {"name": sentences.name, **content["sentences"]},
        }
        slug = re.sub(r"[^\w.-]+", "-", Path(name).name)
        own = _Folder(root / f"{slug}-{sha256[:16]}", sha256, len(sentences))
        longer = None if own.is_finished else self._find_longer(root)  # a run that resumes keeps to what it began with
        self._found = longer or own
        self.folder, self.sha256 = self._found.path, self._found.sha256
        self._is_longer = longer is not None

    def compute(self, process: Process) -> None:
        """Compute the shards that are not there, where several processes share them those of this one.

        Raises:
            KeyboardInterrupt: The process was asked to stop; finished shards and parts stay.
        """
        if self._is_longer:
            logger.info(f"{self.folder} holds the teacher's vectors of more sentences, which begin with these.")
            return
        own = range(process.rank, len(self._found.shards), process.count)
        missing = [number for number in own if not self._found.is_whole(number)]
        self._remove_parts(set(own).difference(missing))  # a process may have been killed before it did so
        if not missing:
            return
        with replaced_file(self.folder / KEYS) as beside:
            self._sentences.sentence_keys.tofile(beside)
        write_json(self._manifest, self.folder / MANIFEST)
        rows = sum(min(SHARD_ROWS, len(self._sentences) - number * SHARD_ROWS) for number in missing)
        logger.info(f"The teacher's vectors are kept in {self.folder}; a stop loses {PART_ROWS} sentences at most.")
        with (
            handled_stops(signal.default_int_handler),
            tqdm(total=rows, desc="teacher", unit=" sentences", disable=process.rank > 0) as bar,
        ):
            for number, sentences in self._shards(set(missing)):
                vectors = self._shard(number, sentences, bar)
                with write_npy(self._found.shards[number], "float16", vectors.shape[1]) as append:
                    append(vectors)
                self._remove_parts({number})

    def open(self) -> TeacherVectors:
        """The vectors, once all processes have computed theirs.

        Raises:
            ValueError: Another process's shards are not there.
        """
        if missing := [path for path in self._found.shards if not path.is_file()]:
            raise ValueError(
                f"{missing[0]} is not there, as another process has another folder: give a --cache_dir that all "
                "machines share."
            )
        return TeacherVectors(self._found.shards, self.sha256)

    def _find_longer(self, root: Path) -> _Folder | None:
        """The shortest finished folder of the same teacher whose sentences begin with these, or are these.

        The shortest, as it stays that: a later run on fewer sentences makes none.
        """
        keys, found = self._sentences.sentence_keys.ravel(), []
        for path in root.glob(f"*/{MANIFEST}"):
            with suppress(OSError, ValueError, LookupError, TypeError):  # of an earlier version, or broken
                manifest = json.loads(path.read_text(encoding="utf-8"))
                folder = _Folder(path.parent, manifest["sha256"], manifest["sentences"]["count"])
                if (
                    manifest["teacher"]["sha256"] == self._manifest["teacher"]["sha256"]
                    and manifest["shard_rows"] == SHARD_ROWS
                    and np.array_equal(np.fromfile(path.with_name(KEYS), np.uint64, len(keys)), keys)
                    and folder.is_finished
                ):
                    found.append(folder)
        return min(found, key=lambda folder: (folder.count, folder.path), default=None)

    def _shards(self, numbers: set[int]) -> Iterator[tuple[int, list[str]]]:
        sentences = iter(self._sentences)
        for number in range(max(numbers) + 1):
            shard = itertools.islice(sentences, SHARD_ROWS)
            if number in numbers:
                yield number, list(shard)
            else:
                for _ in shard:
                    pass

    def _shard(self, number: int, sentences: list[str], bar: "tqdm[Any]") -> NDArray[np.float16]:
        """The vectors of a shard, from its parts: those that are there and those that are computed. (rows, width)"""
        longest_first = np.argsort([-len(sentence) for sentence in sentences], kind="stable")  # (rows,)
        parts = []
        for start in range(0, len(sentences), PART_ROWS):
            rows = longest_first[start : start + PART_ROWS]
            parts.append(self._part(number, start, [sentences[row] for row in rows]))
            bar.update(len(rows))
        vectors = np.empty((len(sentences), parts[0].shape[1]), np.float16)
        vectors[longest_first] = np.concatenate(parts)
        return vectors

    def _part(self, number: int, start: int, sentences: list[str]) -> NDArray[np.float16]:
        """(sentences, width)"""
        path = self.folder / f"part-{number:06}-{start:06}-{len(sentences):06}.npy"
        vectors: NDArray[np.float16]
        try:
            vectors = np.load(path)
        except (OSError, EOFError, ValueError):  # there is none, or it is broken
            vectors = self._encode(sentences)
            with write_npy(path, "float16", vectors.shape[1]) as append:
                append(vectors)
        return vectors

    def _remove_parts(self, numbers: Set[int]) -> None:
        for path in self.folder.glob("part-*.npy"):
            if int(path.name.split("-")[1]) in numbers:
                path.unlink(missing_ok=True)  # another run may have the same texts

    def _encode(self, sentences: list[str]) -> NDArray[np.float16]:
        """(sentences, width), of length 1"""
        device = self._teacher.device
        is_gpu = device.type != "cpu"
        with torch.inference_mode(), _autocast(device):
            vectors = self._teacher.encode(
                sentences,
                batch_size=_GPU_BATCH if is_gpu else _CPU_BATCH,
                convert_to_tensor=True,
                show_progress_bar=False,
            )
        found: NDArray[np.float16] = F.normalize(vectors.float(), dim=-1).half().cpu().numpy()
        return found


def _autocast(device: torch.device) -> Any:
    """bf16 where the hardware computes with it; its vectors have a cosine of 0.99998 with those of float32."""
    return torch.autocast(device.type, torch.bfloat16) if computes_in_bf16(device) else nullcontext()
