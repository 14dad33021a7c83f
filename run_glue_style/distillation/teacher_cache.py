"""The vectors that a teacher gives sentences, computed once: float16 shards in a folder, each whole or not there."""

import hashlib
import itertools
import json
import logging
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from tqdm.auto import tqdm

from modeling_dsa.encoding.bulk import Process
from modeling_dsa.encoding.teacher import teacher_sha256
from modeling_dsa.encoding.vector_files import write_npy
from modeling_dsa.files.replacing import write_json
from run_glue_style.training.half_precision import computes_in_bf16
from run_glue_style.training.interruption import handled_stops

from .sentences import Sentences
from .teacher_vectors import TeacherVectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
SHARD_ROWS = 8192  # sentences: sorting them by length leaves little padding, and an interrupt costs a minute at most
_CPU_BATCH, _GPU_BATCH = 32, 256


class TeacherCache:
    """The folder of one teacher's vectors of certain sentences."""

    def __init__(self, root: Path, name: str, teacher: "SentenceTransformer", sentences: Sentences) -> None:
        """Find the folder; nothing is written.

        Args:
            root: Of all such folders. Another teacher or other sentences have another one in it.
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
        self.sha256 = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        self._manifest = content | {
            "teacher": {"name": name, **content["teacher"]},
            "sentences": {"name": sentences.name, **content["sentences"]},
        }
        slug = re.sub(r"[^\w.-]+", "-", Path(name).name)
        self.folder = root / f"{slug}-{self.sha256[:16]}"
        self._paths = [self.folder / f"vectors-{n:06}.npy" for n in range(-(-len(sentences) // SHARD_ROWS))]

    def compute(self, process: Process) -> None:
        """Compute the shards that are not there, where several processes share them those of this one.

        Raises:
            KeyboardInterrupt: The process was asked to stop; finished shards stay.
        """
        missing = [n for n, path in enumerate(self._paths) if not path.is_file() and n % process.count == process.rank]
        if not missing:
            return
        write_json(self._manifest, self.folder / MANIFEST)
        rows = min(len(missing) * SHARD_ROWS, len(self._sentences))
        logger.info(f"The teacher's vectors are kept in {self.folder}; a stop loses no finished shard.")
        with (
            handled_stops(_stop),
            tqdm(total=rows, desc="teacher", unit=" sentences", disable=process.rank > 0) as bar,
        ):
            for number, sentences in self._shards(set(missing)):
                vectors = self._encode(sentences)
                with write_npy(self._paths[number], "float16", vectors.shape[1]) as append:
                    append(vectors)
                bar.update(len(sentences))

    def open(self) -> TeacherVectors:
        """The vectors, once all processes have computed theirs.

        Raises:
            ValueError: Another process's shards are not there.
        """
        if missing := [path for path in self._paths if not path.is_file()]:
            raise ValueError(
                f"{missing[0]} is not there, as another process has another folder: give a --cache_dir that all "
                "machines share."
            )
        return TeacherVectors(self._paths, self.sha256)

    def _shards(self, numbers: set[int]) -> Iterator[tuple[int, list[str]]]:
        sentences = iter(self._sentences)
        for number in range(max(numbers) + 1):
            shard = itertools.islice(sentences, SHARD_ROWS)
            if number in numbers:
                yield number, list(shard)
            else:
                for _ in shard:
                    pass

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


def _stop(_number: int, _frame: FrameType | None) -> None:
    """End as Ctrl-C does, so that nothing is left half-written."""
    raise KeyboardInterrupt
