from pathlib import Path

import pytest

from modeling_dsa.encoding.teacher import load_teacher


def test_a_folder_without_a_teacher_is_one_sentence(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ValueError, match=r"^\S+ cannot be loaded by sentence-transformers \([^\n]+\): give"):
            load_teacher(str(folder))
