from pathlib import Path

import numpy as np
import pytest
import retrieval
from benchmark_runs import run_quick
from lib.shipped import SHIPPED_MODEL, draw_sentences
from sklearn.neighbors import NearestNeighbors

from modeling_dsa.encoding.encoder import SentenceEncoder


def test_recall_is_that_of_another_search(tmp_path: Path) -> None:
    sentences = draw_sentences(300)
    (tmp_path / "texts.txt").write_text("\n".join(sentences))
    student = SentenceEncoder.from_pretrained(SHIPPED_MODEL, device="cpu").encode(sentences)
    teacher = student + np.random.default_rng(0).normal(0, 0.3 * student.std(), student.shape).astype(np.float32)
    np.save(tmp_path / "teacher.npy", teacher)
    options = ["--texts", str(tmp_path / "texts.txt"), "--teacher", "unread", "--model", str(SHIPPED_MODEL)]
    options += ["--teacher_vectors", str(tmp_path / "teacher.npy"), "--queries_among", "100"]
    (result,) = run_quick(retrieval.main, tmp_path / "results" / "retrieval.json", *options).results
    queries = np.random.default_rng(0).permutation(100)[:20]
    expected, found = (
        NearestNeighbors(n_neighbors=11, metric="cosine").fit(vectors).kneighbors(teacher[queries])[1]
        for vectors in (teacher, student)
    )
    shares = [
        len((set(one.tolist()) - {own}) & set([index for index in other.tolist() if index != own][:10])) / 10
        for own, one, other in zip(queries.tolist(), expected, found, strict=True)
    ]
    assert 0.1 < result["recall_at_10"] < 1
    assert result["recall_at_10"] == pytest.approx(np.mean(shares))
