"""Vectors in files: any rows of any shards, and their principal components."""

from pathlib import Path

import numpy as np
import pytest

from run_glue_style.distillation.teacher_vectors import TeacherVectors, open_vectors, principal_components


@pytest.fixture
def shards(tmp_path: Path) -> tuple[Path, np.ndarray]:
    vectors = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float16)
    folder = tmp_path / "vectors"
    folder.mkdir()
    for name, part in (("a", vectors[:20]), ("b", vectors[20:21]), ("c", vectors[21:])):
        np.save(folder / f"{name}.npy", part)
    return folder, vectors


def test_rows_come_from_all_shards_in_any_order_and_shape(shards: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    folder, vectors = shards
    found = open_vectors(folder)
    rows = np.random.default_rng(1).integers(0, 50, (12, 2))
    assert (len(found), found.width) == (50, 6)
    assert np.array_equal(found.take(rows), vectors[rows].astype(np.float32))
    np.save(tmp_path / "one.npy", vectors)
    assert np.array_equal(open_vectors(tmp_path / "one.npy").take(rows), found.take(rows))


def test_principal_components_keep_the_cosines_of_vectors_that_lie_in_few_directions(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    vectors = (generator.normal(size=(300, 3)) @ generator.normal(size=(3, 8)) + 0.5).astype(np.float32)
    np.save(tmp_path / "v.npy", vectors)
    opened = open_vectors(tmp_path / "v.npy")
    components = principal_components(opened, 4, tmp_path / "kept")
    reduced = vectors @ components

    def cosines(of: np.ndarray) -> np.ndarray:
        units = of / np.linalg.norm(of, axis=1, keepdims=True)
        return np.asarray(units @ units.T)

    assert components.shape == (8, 4)
    assert cosines(reduced) == pytest.approx(cosines(vectors), abs=1e-4)
    assert (np.diff(np.square(reduced / np.linalg.norm(vectors, axis=1, keepdims=True)).sum(0)) <= 0).all()
    written = (tmp_path / "kept" / "pca-4.npy").stat().st_mtime_ns
    assert np.array_equal(principal_components(opened, 4, tmp_path / "kept"), components)
    assert (tmp_path / "kept" / "pca-4.npy").stat().st_mtime_ns == written


def test_broken_principal_components_are_made_again(shards: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    vectors, kept = open_vectors(shards[0]), tmp_path / "pca-2.npy"
    expected = principal_components(vectors, 2, tmp_path)
    whole = kept.read_bytes()
    for broken in (b"", whole[:-1]):
        kept.write_bytes(broken)
        assert np.array_equal(principal_components(vectors, 2, tmp_path), expected)
        assert kept.read_bytes() == whole


def test_what_holds_no_vectors_is_refused(shards: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    folder, vectors = shards
    np.save(folder / "d.npy", vectors[:, :4])
    with pytest.raises(ValueError, match=r"d.npy holds vectors of 4 numbers, and .*a.npy of 6"):
        open_vectors(folder)
    np.save(folder / "d.npy", np.arange(3))
    with pytest.raises(ValueError, match=r"d.npy holds an array of int64 with the shape \(3,\)"):
        open_vectors(folder)
    (folder / "d.npy").write_bytes((folder / "a.npy").read_bytes()[:200])
    with pytest.raises(ValueError, match=r"d.npy is no .npy file of vectors"):
        open_vectors(folder)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        open_vectors(tmp_path / "missing.npy")


def test_vectors_that_are_not_finite_or_in_a_doubtful_order_are_refused(tmp_path: Path) -> None:
    for name, rows in (("a1", 2), ("a2", 3), ("a10", 4)):
        np.save(tmp_path / f"{name}.npy", np.ones((rows, 2), np.float32))
    with pytest.raises(ValueError, match=r"such as a10\.npy before a2\.npy: give all numbers as many digits"):
        open_vectors(tmp_path)
    (tmp_path / "a10.npy").unlink()
    np.save(tmp_path / "a2.npy", np.array([[1, 2], [3, np.nan]], np.float32))
    with pytest.raises(ValueError, match=r"a2\.npy, row 2 is not finite"):  # before a training that may not meet it
        open_vectors(tmp_path)
    vectors = TeacherVectors([tmp_path / "a1.npy", tmp_path / "a2.npy"], "made here")
    assert vectors.take(np.array([0, 2])).shape == (2, 2)
    with pytest.raises(ValueError, match=r"a2\.npy, row 2 is not finite"):
        vectors.take(np.array([0, 3]))
