"""The entropy of attention, against a computation sentence by sentence."""

import json
import math
from pathlib import Path

import pytest
import torch

from modeling_dsa import DSAModel
from modeling_dsa.encoding.encoder import SentenceEncoder
from run_glue_style.studies.attention_entropy import entropies, main

SENTENCES = ["A man is playing a guitar.", "Dogs", "Two children run through the park ."]
MODEL = Path(__file__).parents[3] / "model_cards" / "dsa-snli"


def test_padding_and_batches_change_no_sentence_s_entropy() -> None:
    encoder = SentenceEncoder.from_pretrained(MODEL)
    model, tokenizer = DSAModel.from_pretrained(MODEL).eval(), encoder.tokenizer
    found, equal = entropies(model, tokenizer, SENTENCES)
    for index, sentence in enumerate(SENTENCES):
        tokens = tokenizer(sentence, return_tensors="pt")
        with torch.no_grad():
            attentions = model(**tokens, output_attentions=True).attentions
        by_hand = [
            sum(-weight * math.log(weight) for weight in weights[0].flatten().tolist()) / weights.shape[1]
            for weights in attentions
        ]
        assert found[:, index].tolist() == pytest.approx(by_hand, abs=1e-6)
        assert equal[index] == pytest.approx(math.log(tokens["input_ids"].shape[1]))


def test_the_command_tells_fresh_models_from_trained_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(MODEL), "--sentences", "20", "--seeds", "2", "--output_dir", str(tmp_path / "out")]) == 0
    table = capsys.readouterr().out
    assert table.removesuffix("\n") == (tmp_path / "out" / "table.md").read_text("utf-8")
    content = json.loads((tmp_path / "out" / "entropy.json").read_text("utf-8"))
    flat, sharp, trained = content["systems"]
    assert [len(system["models"]) for system in (flat, sharp, trained)] == [2, 2, 1]
    # The routing starts from equal weights, and a larger scale is sharper.
    assert flat["models"][0][0]["nats"] == pytest.approx(flat["equal_weights_nats"])
    assert flat["models"][0][1]["share"] > sharp["models"][0][1]["share"] > trained["models"][0][1]["share"]
    assert trained["name"] == "dsa-snli"
    assert str(tmp_path) not in json.dumps(content)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"entropy.json", "plot.png", "plot.svg", "table.md"}


def test_a_pooling_without_routing_has_no_scale_and_one_without_attention_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = ["--sentences", "20", "--seeds", "1", "--output_dir", str(tmp_path / "out"), "--setting"]
    assert main([*words, "mean-fnc1"]) == 0
    content = json.loads((tmp_path / "out" / "entropy.json").read_text("utf-8"))
    assert [system["name"] for system in content["systems"]] == ["mean-fnc1, fresh"]
    assert main([*words, "mean-fnc1", "--routing_scale", "2"]) == 2
    assert "pooling 'mean' of mean-fnc1 has no routing: leave it out" in caplog.messages[-1]
    assert main([*words, "bilstm-sst2"]) == 2
    assert "Pooling 'last' has no attention over the tokens" in caplog.messages[-1]


@pytest.mark.parametrize("options", [["--seeds", "0"], ["--sentences", "-5"], ["--routing_scale", "nan"]])
def test_a_number_that_measures_nothing_is_refused(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*options, "--output_dir", str(tmp_path / "out")])
    assert stopped.value.code == 2
    assert f"argument {options[0]}: '{options[1]}' is no" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
