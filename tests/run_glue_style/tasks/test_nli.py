"""run_glue_style.tasks.nli on the original files of SNLI."""

from collections import Counter
from pathlib import Path

import datasets
import pytest

from modeling_dsa.shipped.nli import NLI_CLASS_NAMES
from run_glue_style.tasks.labelled_examples import load_files
from run_glue_style.tasks.nli import NLI

SNLI = Path(__file__).parents[4] / "shared" / "data" / "snli"


@pytest.mark.slow
@pytest.mark.skipif(not SNLI.is_dir(), reason="needs the SNLI files of the shared folder")
def test_real_snli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    splits = load_files(
        {
            "train": SNLI / "train_57k.parquet",
            "validation": SNLI / "snli_1.0_dev.jsonl",
            "test": SNLI / "snli_1.0_test.jsonl",
        },
        NLI,
    )
    counts = {
        name: {NLI_CLASS_NAMES[label]: count for label, count in Counter(split["label"]).items()}
        for name, split in splits.items()
    }
    assert counts == {
        "train": {"contradiction": 24_048, "entailment": 23_142, "neutral": 10_650},
        "validation": {"entailment": 3_329, "contradiction": 3_278, "neutral": 3_235},
        "test": {"entailment": 3_368, "contradiction": 3_237, "neutral": 3_219},
    }
