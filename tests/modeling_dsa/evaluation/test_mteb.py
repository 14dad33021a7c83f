"""A model runs in mteb unchanged, through sentence-transformers: one small local task."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from sentence_transformers import SentenceTransformer

from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.evaluation.similarity import SimilarityPairs, evaluate_similarity

SHIPPED = Path(__file__).parents[3] / "model_cards" / "dsa-mini-en"
SCORED = [
    ("A man is playing a guitar.", "Somebody plays the guitar.", 4.5),
    ("A man is playing a guitar.", "A dog runs in the snow.", 0.2),
    ("Two children are outside.", "Two kids play in the garden.", 3.6),
    ("A woman cooks dinner.", "A woman is preparing a meal.", 4.4),
    ("A woman cooks dinner.", "The train is late.", 0.0),
    ("Two dogs are running.", "Three cats are sleeping.", 1.3),
    ("People sit in a bus.", "Nobody is in the bus.", 2.1),
    ("A boy jumps into the water.", "A boy is swimming.", 3.1),
]


@pytest.mark.slow
def test_mteb_gives_the_correlations_of_dsa_evaluate() -> None:
    mteb = pytest.importorskip("mteb", reason="mteb is not installed")
    from mteb.abstasks import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    class LocalPairs(AbsTaskSTS):  # type: ignore[misc]  # mteb may be absent
        metadata = TaskMetadata(
            name="LocalPairs",
            description="Pairs that this test holds.",
            dataset={"path": "local", "revision": "1"},
            type="STS",
            category="t2t",
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="cosine_spearman",
        )

        def load_data(self, **_: Any) -> None:
            rows = [dict(zip(("sentence1", "sentence2", "score"), row, strict=True)) for row in SCORED]
            self.dataset = {"test": Dataset.from_list(rows)}
            self.data_loaded = True

    model = SentenceTransformer(str(SHIPPED), device="cpu")
    found = mteb.evaluate(model, LocalPairs(), cache=None, show_progress_bar=False)
    scores = found.task_results[0].scores["test"][0]
    first, second, human = zip(*SCORED, strict=True)
    ours = evaluate_similarity(
        SentenceEncoder.from_pretrained(SHIPPED, device="cpu").encode,
        SimilarityPairs(list(first), list(second), np.array(human)),
    )
    assert scores["cosine_spearman"] == pytest.approx(ours.spearman, abs=1e-6)
    assert scores["cosine_pearson"] == pytest.approx(ours.pearson, abs=1e-5)
