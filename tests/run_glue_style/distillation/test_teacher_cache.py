"""A teacher's vectors are computed once, whatever stops it, and never mixed with another's."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from small_repositories import save_system
from small_runs import pairs
from transformers import PreTrainedModel

from modeling_dsa.command.launchers import Process
from modeling_dsa.encoding.sources import open_sentences
from run_glue_style.distillation import teacher_cache
from run_glue_style.distillation.sentences import Sentences
from run_glue_style.distillation.teacher_cache import TeacherCache

TEXTS = [row["premise"] for row in pairs("train")[:21]]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformer:
    return SentenceTransformer(str(save_system(tmp_path_factory.mktemp("teacher"), "encoder").folder))


@pytest.fixture
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher_cache, "SHARD_ROWS", 8)


def sentences(folder: Path, texts: list[str]) -> Sentences:
    path = folder / "texts.txt"
    path.write_text("\n".join(texts) + "\n")
    return Sentences([open_sentences(str(path))])


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("vectors-*.npy")}


@pytest.mark.usefixtures("_small_shards")
def test_vectors_are_the_teachers_and_a_lost_shard_alone_is_computed_again(
    teacher: SentenceTransformer, tmp_path: Path
) -> None:
    cache = TeacherCache(tmp_path / "cache", "org/teacher", teacher, sentences(tmp_path, TEXTS))
    cache.compute(Process())
    vectors = cache.open()
    expected = teacher.encode(TEXTS, normalize_embeddings=True)
    found = vectors.take(np.arange(21))
    assert found == pytest.approx(expected, abs=0.01)  # bf16, and float16 in the file
    assert vectors.sha256 == cache.sha256
    assert json.loads((cache.folder / "manifest.json").read_text())["teacher"]["name"] == "org/teacher"
    before = times(cache.folder)
    assert len(before) == 3
    shard = cache.folder / "vectors-000001.npy"
    shard.write_bytes(shard.read_bytes()[:-10])  # as a full disk leaves it
    cache.compute(Process())
    after = times(cache.folder)
    assert {name for name in before if before[name] != after[name]} == {"vectors-000001.npy"}
    assert np.array_equal(cache.open().take(np.arange(21)), found)


def test_a_stop_costs_the_part_at_hand_alone(
    teacher: SentenceTransformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{row['premise']} {number}" for number, row in enumerate(pairs("train") * 3)]
    encode, encoded = teacher.encode, list[str]()

    def stopping(sentences: list[str], **options: Any) -> Any:
        if len(encoded) == 2 * teacher_cache.PART_ROWS:
            encoded.append("the stop")
            raise KeyboardInterrupt
        encoded.extend(sentences)
        return encode(sentences, **options)

    monkeypatch.setattr(teacher, "encode", stopping)
    cache = TeacherCache(tmp_path / "cache", "teacher", teacher, sentences(tmp_path, texts))
    with pytest.raises(KeyboardInterrupt):
        cache.compute(Process())
    first, second = sorted(cache.folder.glob("part-*.npy"))
    second.write_bytes(first.read_bytes()[:1000])  # a broken disk
    cache.compute(Process())
    assert len(encoded) == len(texts) + teacher_cache.PART_ROWS + 1
    assert [path.name for path in cache.folder.glob("*.npy")] == ["vectors-000000.npy"]
    monkeypatch.undo()
    some = np.arange(0, 1200, 50)
    expected = teacher.encode([texts[row] for row in some], normalize_embeddings=True)
    assert cache.open().take(some) == pytest.approx(expected, abs=0.01)  # bf16, and float16 in the file


@pytest.mark.usefixtures("_small_shards")
def test_processes_share_the_shards(teacher: SentenceTransformer, tmp_path: Path) -> None:
    cache = TeacherCache(tmp_path / "cache", "teacher", teacher, sentences(tmp_path, TEXTS))
    cache.compute(Process(1, 2))
    assert set(times(cache.folder)) == {"vectors-000001.npy"}
    with pytest.raises(ValueError, match=r"vectors-000000.npy is not there.* --cache_dir that all machines share"):
        cache.open()
    cache.compute(Process(0, 2))
    assert len(cache.open()) == 21


@pytest.mark.usefixtures("_small_shards")
def test_the_first_of_the_texts_have_the_vectors_of_the_whole_ones_once_these_are_finished(
    teacher: SentenceTransformer, tmp_path: Path
) -> None:
    def cache(texts: list[str], model: SentenceTransformer = teacher) -> TeacherCache:
        folder = tmp_path / str(len(texts))
        folder.mkdir(exist_ok=True)
        return TeacherCache(tmp_path / "cache", "teacher", model, sentences(folder, texts))

    whole, fewer = cache(TEXTS), cache(TEXTS[:5])
    fewer.compute(Process())
    whole.compute(Process(0, 2))
    assert cache(TEXTS[:10]).folder not in (whole.folder, fewer.folder)  # they are not finished, and too few
    whole.compute(Process())
    assert cache(TEXTS[:5]).folder == fewer.folder  # a run that began with them goes on
    written = times(whole.folder)
    for count in (3, 8, 10):
        found = cache(TEXTS[:count])
        found.compute(Process())
        vectors = found.open()
        assert found.folder == (fewer if count == 3 else whole).folder
        assert vectors.take(np.arange(count)) == pytest.approx(
            teacher.encode(TEXTS[:count], normalize_embeddings=True), abs=0.01
        )
        assert vectors.sha256 == found.sha256
    assert times(whole.folder) == written
    assert cache([*TEXTS[:9], "Another one."]).folder != whole.folder
    assert cache(TEXTS[:10], SentenceTransformer(modules=[*teacher, Normalize()])).folder != whole.folder
    (fewer.folder / "manifest.json").write_text("[]")
    assert cache(TEXTS[:3]).folder == whole.folder


def test_other_texts_and_other_weights_have_folders_of_their_own(teacher: SentenceTransformer, tmp_path: Path) -> None:
    other = copy.deepcopy(teacher)
    with torch.no_grad():
        next(other.parameters())[-1, -1] += 1e-3
    changed = copy.deepcopy(teacher)
    next(module for module in changed.modules() if isinstance(module, PreTrainedModel)).config.routing_scale = 4.0
    found = {
        TeacherCache(tmp_path, "teacher", model, sentences(tmp_path, texts)).folder
        for model in (teacher, other, changed)
        for texts in (TEXTS, TEXTS[::-1], TEXTS[:20])
    }
    assert len(found) == 9
    assert TeacherCache(tmp_path, "teacher", teacher, sentences(tmp_path, TEXTS)).folder in found
