"""What a distillation is given fits together, from outside: a trial on the first texts, vectors, similarity files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from small_runs import SMALL_SIZES, logged_error, pairs, read_results, run_main
from small_teachers import save_teacher

from run_glue_style.run_distillation import main

pytestmark = pytest.mark.usefixtures("datasets_cache")
TEXTS = list(dict.fromkeys(row["premise"] for row in pairs("train")))[:80]
TRIAL: dict[str, Any] = {"max_train_samples": 20}


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Those of a run on all texts, but for its folders."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    return {
        **{name: size for name, size in SMALL_SIZES.items() if name != "classifier_hidden_sizes"},
        "texts": folder / "texts.txt",
        "teacher": save_teacher(folder / "means", 24),
        "setting": "dsa-small",
        "embedding_size": 24,
        "projection_size": 8,
        "validation_sentences": 10,
        "max_train_steps": 1,
        "report_to": "none",
        "cpu": True,
    }


def run(options: dict[str, Any]) -> int:
    return run_main(main, "run_distillation.py", options)


def test_a_trial_on_the_first_texts_asks_the_teacher_nothing_that_it_told_before(
    options: dict[str, Any], tmp_path: Path
) -> None:
    own = options | {"cache_dir": tmp_path / "cache"}
    assert run(own | {"output_dir": tmp_path / "whole"}) == 0
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")}
    assert run(own | TRIAL | {"output_dir": tmp_path / "trial"}) == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*")} == kept
    whole, trial = (read_results(tmp_path / name) for name in ("whole", "trial"))
    assert trial["teacher"] == whole["teacher"]
    assert (trial["data"]["train"]["examples"], whole["data"]["train"]["examples"]) == (20, 70)


def test_vectors_of_other_texts_are_refused_in_a_trial_too(
    options: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vectors = SentenceTransformer(str(options["teacher"])).encode(TEXTS)
    own = {name: value for name, value in options.items() if name != "teacher"}
    own |= TRIAL | {"teacher_vectors": tmp_path / "v.npy", "vectors": f"teacher:{options['teacher']}"}
    own |= {"cache_dir": tmp_path / "cache", "output_dir": tmp_path / "run"}
    for count in (10, 40, 100):
        np.save(tmp_path / "v.npy", np.resize(vectors, (count, 24)))
        assert run(own) == 2
        assert f"v.npy holds {count} vectors, and {options['texts']} 80 sentences: give the" in logged_error(caplog)
        caplog.clear()
    assert not (tmp_path / "run").exists()
    for count in (30, 80):  # those of the sentences that are read, and those of all: a later mistake comes to light
        np.save(tmp_path / "v.npy", vectors[:count])
        assert run(own | {"projection_size": 25}) == 2
        assert "The student's vectors have 25 numbers and the teacher's 24" in logged_error(caplog)
        caplog.clear()


def test_a_similarity_file_with_other_columns_is_told_what_to_call_them(
    options: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for content in ("left,right,how\na,b,1\nc,d,2\n", "text,score\na,1\nb,2\n"):
        (tmp_path / "sts.csv").write_text(content)
        assert run(options | {"similarity_file": tmp_path / "sts.csv", "output_dir": tmp_path / "run"}) == 2
        message = logged_error(caplog)
        assert "sts.csv: of the columns" in message
        assert "call these sentence1, sentence2 and score" in message
        assert "_column" not in message
        caplog.clear()
