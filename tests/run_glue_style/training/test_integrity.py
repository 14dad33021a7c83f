"""run_glue_style.training.integrity: whatever happens to a folder's files is told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from run_glue_style.training.integrity import find_damage, write_hashes


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:3])


@pytest.mark.parametrize(
    ("damage", "name", "said"),
    [
        (shorten, "a/weights", "a/weights has 3 bytes instead of 7"),
        (lambda path: path.write_bytes(b"Weights"), "a/weights", "a/weights has other contents than were written"),
        (Path.unlink, "state", "state is missing"),
        (shorten, "manifest.json", "manifest.json cannot be read: JSONDecodeError"),
        (Path.unlink, "manifest.json", "manifest.json cannot be read: FileNotFoundError"),
    ],
)
def test_damage_is_told(tmp_path: Path, damage: Callable[[Path], object], name: str, said: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "weights").write_bytes(b"weights")
    (tmp_path / "state").write_bytes(b"")
    write_hashes(tmp_path)
    assert find_damage(tmp_path) is None
    damage(tmp_path / name)
    assert find_damage(tmp_path) == said
