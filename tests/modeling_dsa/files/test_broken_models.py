"""A model whose files are broken is refused in one sentence, whatever loads it; nothing gives vectors from it."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors.torch import load_file, save_file
from small_repositories import save_system
from transformers import AutoModel, AutoTokenizer

from modeling_dsa.cli.main import main
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.files.loading import load_model_and_tokenizer
from modeling_dsa.handler import EndpointHandler
from modeling_dsa.pipeline_dsa import SentenceEmbeddingPipeline

WEIGHT, TABLE = "encoder.compression.weight", "embed_tokens.weight"


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    weights = load_file(folder / "model.safetensors")
    weights = {name.removeprefix("dsa."): tensor for name, tensor in weights.items()}
    change(weights)
    weights = {name if name.startswith("classifier.") else f"dsa.{name}": tensor for name, tensor in weights.items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def add_token(folder: Path) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    content["model"]["vocab"]["oneMoreToken"] = 10**6
    path.write_text(json.dumps(content), "utf-8")


def change_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")


def pickle_weights(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def lead_outside(folder: Path) -> None:
    outside = folder.parent / "model.safetensors"
    (folder / "model.safetensors").replace(outside)
    index = {"metadata": {}, "weight_map": dict.fromkeys(load_file(outside), "../model.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def replace_by_pipe(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)


def replace_by_device(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing": (lambda folder: change_weights(folder, lambda weights: weights.pop(WEIGHT)), f"lacks .*{WEIGHT}"),
    "NaN": (
        lambda folder: change_weights(folder, lambda weights: weights[WEIGHT][0].fill_(torch.nan)),
        f"{WEIGHT} are not finite",
    ),
    "infinite word": (
        lambda folder: change_weights(folder, lambda weights: weights[TABLE][7, :1].fill_(-torch.inf)),
        f"{TABLE} are not finite",
    ),
    "other shape": (
        lambda folder: change_weights(folder, lambda weights: weights.update({WEIGHT: weights[WEIGHT][1:].clone()})),
        "weights have other shapes than its config says|ignore_mismatched_sizes",
    ),
    "more words than memory": (
        lambda folder: change_config(folder, vocab_size=10**10),
        "vocab_size is 10,000,000,000",
    ),
    "wider than memory": (lambda folder: change_config(folder, hidden_size=10**7), "hidden_size is 10,000,000"),
    "two classes of one name": (
        lambda folder: change_config(folder, id2label={"0": "a", "1": "a", "2": "b"}),
        "id2label must have a text of its own for every class",
    ),
    "endless layers": (lambda folder: change_config(folder, num_hidden_layers=10**7), "1,000 is the most"),
    "a pickle": (pickle_weights, "safetensors"),
    "weights are a pipe": (lambda folder: replace_by_pipe(folder, "model.safetensors"), "no file named model.safe"),
    "the tokenizer never ends": (
        lambda folder: replace_by_device(folder, "tokenizer.json"),
        "has no tokenizer.json that can be read|t instantiate the backend tokenizer",  # the second is transformers'
    ),
    "tokens beyond the table": (add_token, r"tokenizer has ids up to 1000000, but the model's word table \d+ rows"),
}
COMMANDS: dict[str, Callable[[Path, Path], list[str]]] = {
    "encode": lambda model, folder: ["encode", str(folder / "in.txt"), str(folder / "out.npy"), "--model", str(model)],
    "predict": lambda model, folder: ["predict", str(model), "A man sleeps.", "He is awake.", "--output", "out.jsonl"],
    "explain": lambda model, folder: ["explain", str(model), "A man sleeps.", "He is awake.", "--output", "out.png"],
    "onnx": lambda model, folder: ["onnx", str(model)],
}
LOADERS: dict[str, Callable[[Path], object]] = {
    "SentenceEncoder": SentenceEncoder.from_pretrained,
    "pipeline": lambda folder: SentenceEmbeddingPipeline(
        model=AutoModel.from_pretrained(folder), tokenizer=AutoTokenizer.from_pretrained(folder)
    ),
    "handler": lambda folder: EndpointHandler(str(folder)),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_system(tmp_path_factory.mktemp("whole"), "nli").folder


@pytest.fixture(params=DAMAGES)
def damaged(request: pytest.FixtureRequest, whole: Path, tmp_path: Path) -> tuple[Path, str]:
    """A broken model's folder, and what is said of it."""
    damage, message = DAMAGES[request.param]
    folder = tmp_path / "model"
    shutil.copytree(whole, folder)
    damage(folder)
    return folder, message


def test_every_command_refuses_a_broken_model(
    damaged: tuple[Path, str], tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, message = damaged
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("A man sleeps.\n")
    for name, arguments in COMMANDS.items():
        if name == "onnx" and "tokenizer" in message:  # an ONNX file has no tokenizer: `OnnxModel` compares
            continue
        caplog.clear()
        assert main(arguments(model, tmp_path)) == 2, name
        (error,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert error.startswith("error: "), name
        assert "\n" not in error
        assert re.search(message, error), name
    assert {path.name for path in tmp_path.iterdir()} == {"model", "in.txt"}


def test_weights_outside_the_folder_are_refused(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(whole, folder)
    lead_outside(folder)
    for load in (load_model_and_tokenizer, SentenceEncoder.from_pretrained):
        with pytest.raises(ValueError, match=r"names the file '../model.safetensors', which is outside the model's"):
            load(folder)


def test_every_loader_refuses_a_broken_model(damaged: tuple[Path, str]) -> None:
    folder, message = damaged
    for load in LOADERS.values():
        with pytest.raises((ValueError, RuntimeError, OSError, StrictDataclassError), match=message):
            load(folder)
