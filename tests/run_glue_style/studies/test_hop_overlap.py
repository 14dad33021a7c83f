"""How much hops overlap, against cosines pair by pair, and the command over the models of a grid."""

import itertools
import json
from pathlib import Path

import pytest
import torch

from modeling_dsa import DSAConfig, DSAModel
from modeling_dsa.text.building import build_model, vocabulary_from_vectors
from run_glue_style.sample import SAMPLE_VECTORS
from run_glue_style.studies.hop_overlap import main, mean_overlaps


def test_the_overlap_is_the_mean_cosine_of_two_hops() -> None:
    attention = torch.rand(3, 4, 7, generator=torch.Generator().manual_seed(0)).softmax(-1)
    pairs = list(itertools.combinations(range(4), 2))
    expected = [sum(torch.cosine_similarity(of[a], of[b], dim=0) for a, b in pairs) / len(pairs) for of in attention]
    assert mean_overlaps(attention).tolist() == pytest.approx([float(one) for one in expected], abs=1e-6)
    assert mean_overlaps(torch.eye(3)[None]).tolist() == [0]


@pytest.mark.slow
def test_the_command_reads_the_models_of_a_grid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer, vectors = vocabulary_from_vectors(SAMPLE_VECTORS, progress=False)
    for row, hops in (("a-row", 2), ("base", 3), ("one-hop", 1)):
        config = DSAConfig(embedding_size=100, encoder="none", pooling="structured", attention_hidden_size=8)
        config.num_attention_heads = hops
        for seed in range(2):
            folder = tmp_path / "grid" / row / f"seed-{seed}"
            model = build_model(DSAModel, config, tokenizer, vectors, seed)
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    assert main([str(tmp_path / "grid")]) == 0
    made = tmp_path / "grid" / "hops"
    assert capsys.readouterr().out.removesuffix("\n") == (made / "table.md").read_text("utf-8")
    content = json.loads((made / "overlap.json").read_text("utf-8"))
    assert [(row, of["hops"], len(of["overlaps"])) for row, of in content["rows"].items()] == [
        ("base", 3, 2),
        ("a-row", 2, 2),
    ]
    assert all(0 < overlap < 1 for of in content["rows"].values() for overlap in of["overlaps"])
    assert {path.name for path in made.iterdir()} == {"overlap.json", "plot.png", "plot.svg", "table.md"}


def test_a_folder_without_such_models_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert main([str(tmp_path)]) == 2
    assert f"{tmp_path} has no model ROW/seed-N with 'structured' pooling" in caplog.text
    assert not list(tmp_path.iterdir())
