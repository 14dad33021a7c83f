"""What transformers, accelerate and torch do to a model as a whole: loading, offloading, precision, shards, checkpoints
of the backward pass. Each works here as for any other model, or is refused with a reason.
"""

import copy
import json
import logging
import os
import pickle
from collections.abc import Callable, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import accelerate
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from small_models import (
    EXAMPLE_PAIRS,
    PROJECTION_CASES,
    SYSTEM_CASES,
    join_pair,
    pad_rows,
    randomize,
    small_config,
)
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForSequenceClassification
from transformers.modeling_layers import GradientCheckpointingLayer

from modeling_dsa import DSAConfig, DSAForNLI, DSAForSequenceClassification, DSAModel, batching_dsa
from modeling_dsa.modeling_dsa import DSAPreTrainedModel
from modeling_dsa.repository_dsa import write_repository_files
from modeling_dsa.vectors_dsa import batch_vectors

Batch = dict[str, Tensor]

SYSTEMS: dict[str, dict[str, Any]] = {
    "dynamic": {},
    **SYSTEM_CASES,
    **PROJECTION_CASES,
    "variational, samples": {"pooling": "variational", "num_prediction_samples": 4, "num_training_samples": 3},
    "overlap and cosine": {"pair_features": ["first", "idf_overlap", "cosine"]},
}
all_systems = pytest.mark.parametrize("changes", SYSTEMS.values(), ids=SYSTEMS.keys())


def systems_with(name: str, choices: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Every system with one of the choices, in turn: what a choice does is the loader's and alike for all systems."""
    paired = zip(SYSTEMS.items(), cycle(choices.items()))  # one of them ends
    cases = [pytest.param(changes, choice, id=f"{key}, {system}") for (system, changes), (key, choice) in paired]
    return pytest.mark.parametrize(("changes", name), cases)


def model_of(changes: dict[str, Any], **more: Any) -> DSAForNLI:
    model: DSAForNLI = randomize(DSAForNLI(small_config(**changes, **more, sentences_per_example=2))).eval()
    return model


def batch_of_pairs() -> Batch:
    ids, mask = pad_rows([join_pair(*pair) for pair in EXAMPLE_PAIRS], left=[0, 3, 1, 2, 0, 4], right=1)
    return {"input_ids": ids, "attention_mask": mask}


def labelled_batch() -> Batch:
    return {**batch_of_pairs(), "labels": torch.tensor([0, 1, 2, 0, 1, 2])}


def run(model: nn.Module, **inputs: Any) -> Any:
    """The outputs on the batch; the same noise every time."""
    torch.manual_seed(0)
    return model(**batch_of_pairs(), **inputs)


def assert_same(model: nn.Module, other: nn.Module) -> None:
    """Logits, attentions and hidden states are equal, bit for bit."""
    asked = {"output_attentions": True, "output_hidden_states": True}
    with torch.no_grad():
        expected, found = run(model, **asked), run(other, **asked)
    assert expected.keys() == found.keys()
    torch.testing.assert_close(dict(found), dict(expected), rtol=0, atol=0)


def gradients(model: nn.Module) -> dict[str, Tensor | None]:
    """Of one step's loss, whose noise is the same every time."""
    model.zero_grad()
    torch.manual_seed(0)
    model(**labelled_batch()).loss.backward()
    return {name: weight.grad for name, weight in model.named_parameters()}


def count_calls(layers: list[nn.Module]) -> list[nn.Module]:
    """The layers that are called from now on, in order."""
    called: list[nn.Module] = []
    for layer in layers:
        layer.register_forward_pre_hook(lambda module, _: called.append(module))
    return called


def layers_of(part: nn.Module) -> list[nn.Module]:
    """The layers with weights of their own."""
    return [module for module in part.modules() if [*module.parameters(recurse=False)]]


# Gradient checkpointing


@systems_with("kwargs", {"reentrant": {"use_reentrant": True}, "not reentrant": {"use_reentrant": False}})
def test_gradient_checkpointing_computes_layers_twice_and_gives_the_same_gradients(
    changes: dict[str, Any], kwargs: dict[str, bool]
) -> None:
    """With dropout, whose masks have to be the same both times."""
    model = model_of(changes).double().train()  # reentrant checkpoints add gradients up in another order
    expected = gradients(model)
    parts = [part for part in model.dsa.encoder.modules() if isinstance(part, GradientCheckpointingLayer)]
    called = count_calls([layer for part in parts for layer in layers_of(part)])
    gradients(model)
    once = called.copy()
    called.clear()
    model.activation_checkpointing_enable(kwargs)
    found = gradients(model)
    assert len(called) == 2 * len(once)
    assert set(called) == set(once)
    assert bool(once) is (model.config.encoder != "none")
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_gradient_checkpointing_keeps_less() -> None:
    def kept(model: nn.Module) -> int:
        """Bytes that the forward pass keeps for the backward pass, the weights apart."""
        weights = {weight.data_ptr() for weight in model.parameters()}
        sizes: dict[int, int] = {}

        def pack(tensor: Tensor) -> Tensor:
            if tensor.untyped_storage().data_ptr() not in weights:
                sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            model(**labelled_batch())
        return sum(sizes.values())

    model = model_of({"num_hidden_layers": 4}).train()
    plain = kept(model)
    model.activation_checkpointing_enable()
    assert kept(model) < 0.6 * plain


def test_gradient_checkpointing_is_for_training_alone() -> None:
    model = model_of({})
    model.activation_checkpointing_enable()
    called = count_calls(layers_of(model.dsa.encoder))
    gradients(model)
    assert len(called) == len(set(called))


# Devices


@pytest.fixture(scope="module")
def saved_systems() -> dict[str, tuple[DSAForNLI, Path]]:
    """The models of `saved` so far, and their folders."""
    return {}


@pytest.fixture
def saved(
    changes: dict[str, Any],
    saved_systems: dict[str, tuple[DSAForNLI, Path]],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[DSAForNLI, Path]:
    """A model of the test's own and the folder of its like, which no test changes."""
    system = json.dumps(changes)
    if system not in saved_systems:
        saved_systems[system] = model_of(changes), tmp_path_factory.mktemp("saved")
        saved_systems[system][0].save_pretrained(saved_systems[system][1])
    model, folder = saved_systems[system]
    return copy.deepcopy(model), folder


@all_systems
def test_device_map_auto(saved: tuple[DSAForNLI, Path]) -> None:
    model, folder = saved
    assert_same(model, DSAForNLI.from_pretrained(folder, device_map="auto"))
    assert_same(model, AutoModelForSequenceClassification.from_pretrained(folder, device_map="auto"))


DEVICE_MAPS: dict[str, dict[str, str]] = {
    "all on disk": {"": "disk"},
    "all but the words on disk": {
        "dsa.embed_tokens": "cpu",
        "dsa.encoder": "disk",
        "dsa.pooling": "disk",
        "dsa.projection": "disk",
        "dsa.shortcut": "disk",
        "pair_features": "disk",
        "classifier": "disk",
    },
    "the words on disk": {
        "dsa.embed_tokens": "disk",
        "dsa.encoder": "cpu",
        "dsa.pooling": "cpu",
        "dsa.projection": "cpu",
        "dsa.shortcut": "cpu",
        "pair_features": "cpu",
        "classifier": "cpu",
    },
    "the encoder on disk": {"dsa": "disk", "pair_features": "cpu", "classifier": "cpu"},
}


@systems_with("device_map", DEVICE_MAPS)
def test_a_model_on_disk(saved: tuple[DSAForNLI, Path], device_map: dict[str, str], tmp_path: Path) -> None:
    model, folder = saved
    loaded = DSAForNLI.from_pretrained(folder, device_map=device_map, offload_folder=tmp_path / "offloaded")
    for name, weight in loaded.named_parameters():
        expected = next(device for part, device in device_map.items() if name.startswith(part))
        assert weight.device.type == {"disk": "meta", "cpu": "cpu"}[expected], name
    assert_same(model, loaded)
    ids = np.array([[3, 4, 5]])
    batch = batching_dsa.Batch(np.array([0]), 1, ids, np.ones_like(ids), np.zeros_like(ids))
    np.testing.assert_allclose(batch_vectors(loaded.dsa, batch), batch_vectors(model.dsa, batch), rtol=1e-5)


def test_a_folded_model_on_disk_is_loaded_without_its_tables(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    model = randomize(DSAForNLI(small_config(sentences_per_example=2))).eval()
    model.fold_embeddings()
    model.save_pretrained(tmp_path / "model")
    device_map = DEVICE_MAPS["the encoder on disk"]
    loaded = DSAForNLI.from_pretrained(tmp_path / "model", device_map=device_map, offload_folder=tmp_path / "offloaded")
    assert "is not folded, as it is offloaded" in caplog.text
    model.unfold_embeddings()
    assert_same(model, loaded)
    with pytest.raises(ValueError, match="offloaded or lies on several devices cannot be folded"):
        loaded.fold_embeddings()


@all_systems
def test_an_automatic_map_splits_no_encoder_and_no_pooling(saved: tuple[DSAForNLI, Path], tmp_path: Path) -> None:
    """Too little memory for the whole model."""
    model, folder = saved
    size = sum(value.nbytes for value in model.state_dict().values())
    loaded = DSAForNLI.from_pretrained(
        folder, device_map="auto", max_memory={"cpu": size // 2}, offload_folder=tmp_path / "offloaded"
    )
    assert "disk" in loaded.hf_device_map.values()
    for part in ("dsa.encoder.", "dsa.pooling.", "dsa.shortcut.", "classifier.0.", "classifier.1."):
        assert not any(module.startswith(part) for module in loaded.hf_device_map)
    assert_same(model, loaded)


OFFLOADS: dict[str, Callable[[nn.Module, Path], nn.Module]] = {
    "cpu_offload": lambda model, _: accelerate.cpu_offload(model, execution_device="cpu", offload_buffers=True),
    "disk_offload": lambda model, folder: accelerate.disk_offload(model, folder, execution_device="cpu"),
    "dispatch_model": lambda model, folder: accelerate.dispatch_model(
        model, {"dsa": "disk", "pair_features": "cpu", "classifier": "cpu"}, main_device="cpu", offload_dir=folder
    ),
}


@systems_with("offload", OFFLOADS)
def test_accelerate_moves_the_weights_away(
    changes: dict[str, Any], offload: Callable[[nn.Module, Path], nn.Module], tmp_path: Path
) -> None:
    model = model_of(changes)
    offloaded = offload(copy.deepcopy(model), tmp_path)
    assert {weight.device.type for weight in offloaded.get_submodule("dsa").parameters()} == {"meta"}
    assert_same(model, offloaded)


@all_systems
def test_what_is_on_disk_takes_part_in_training_and_learns_nothing(saved: tuple[DSAForNLI, Path]) -> None:
    """accelerate hands no gradients back."""
    model, folder = saved
    expected = gradients(model.train())
    loaded = DSAForNLI.from_pretrained(
        folder, device_map={"dsa": "disk", "pair_features": "cpu", "classifier": "cpu"}
    ).train()
    found = gradients(loaded)
    for name in expected:
        torch.testing.assert_close(found[name], None if name.startswith("dsa.") else expected[name])


# Precision


WAYS: list[tuple[Any, dict[str, str]]] = [
    (kind, options) for kind in (DSAForNLI, AutoModelForSequenceClassification) for options in ({}, {"dtype": "auto"})
]


@systems_with("dtype", {"bfloat16": torch.bfloat16, "float16": torch.float16})
def test_half_precision_is_loaded_saved_and_close(
    saved: tuple[DSAForNLI, Path], changes: dict[str, Any], dtype: torch.dtype, tmp_path: Path
) -> None:
    model, folder = saved
    loaded = DSAForNLI.from_pretrained(folder, dtype=dtype)
    assert {weight.dtype for weight in loaded.parameters()} == {dtype}
    found, expected = (run(one, output_attentions=True, output_hidden_states=True) for one in (loaded, model))
    assert found.logits.dtype == dtype
    assert all(attention.dtype == torch.float32 for attention in found.attentions)
    assert all(hidden.dtype == dtype for hidden in found.hidden_states)
    if model.config.num_prediction_samples == 0:  # the noise of a dtype is its own
        scale = expected.logits.abs().max()
        assert (found.logits - expected.logits).abs().max() < 8 * torch.finfo(dtype).eps * scale

    loaded.save_pretrained(tmp_path / "half")
    assert json.loads((tmp_path / "half" / "config.json").read_text("utf-8"))["dtype"] == str(dtype).split(".")[1]
    for kind, options in WAYS[:1] if changes else WAYS:  # all ways for one system: they are the loader's
        again = kind.from_pretrained(tmp_path / "half", **options)
        assert again.dtype == dtype
        assert_same(loaded, again)
    whole = DSAForNLI.from_pretrained(tmp_path / "half", dtype=torch.float32)
    assert whole.dtype == torch.float32
    torch.testing.assert_close(run(whole).logits, run(loaded.float()).logits, rtol=0, atol=0)


def test_a_word_table_may_be_stored_in_half_precision(tmp_path: Path) -> None:
    """The config says that the model computes in float32."""
    model = randomize(DSAForNLI(small_config(sentences_per_example=2))).eval()
    weights, name = model.state_dict(), "dsa.embed_tokens.weight"
    weights[name] = weights[name].half()
    model.save_pretrained(tmp_path, state_dict=dict(weights))
    assert load_file(tmp_path / "model.safetensors")[name].dtype == torch.float16
    model.load_state_dict(weights)
    for options in ({}, {"dtype": "auto"}):
        loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path, **options)
        assert {weight.dtype for weight in loaded.parameters()} == {torch.float32}
        assert_same(model, loaded)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
def test_a_new_model_has_the_dtype_that_is_asked_for(dtype: torch.dtype) -> None:
    config = small_config(sentences_per_example=2)
    model = AutoModelForSequenceClassification.from_config(config, dtype=dtype)
    assert {weight.dtype for weight in model.parameters()} == {dtype}
    assert run(model.eval()).logits.isfinite().all()


@all_systems
def test_a_model_can_be_turned_into_half_precision(changes: dict[str, Any]) -> None:
    model = model_of(changes)
    half = copy.deepcopy(model).half()
    assert run(half).logits.dtype == torch.float16
    if model.config.num_prediction_samples == 0:
        torch.testing.assert_close(run(half).logits.float(), run(model).logits, rtol=0.02, atol=0.02)


# Copies and shards


@all_systems
def test_copies_are_the_model(changes: dict[str, Any]) -> None:
    model = model_of(changes)
    copies = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    other: Any
    for other in copies:
        assert_same(model, other)
        assert not other.get_input_embeddings().weight.requires_grad
        with torch.no_grad():
            other.classifier[-1].bias.add_(1.0)  # which is the copy's own
        assert not torch.equal(run(other).logits, run(model).logits)


@pytest.mark.parametrize("kind", [DSAForNLI, DSAForSequenceClassification, DSAModel])
def test_shards_make_a_complete_folder(kind: type[nn.Module], tmp_path: Path) -> None:
    model: Any = randomize(kind(small_config(sentences_per_example=2))).eval()
    model.save_pretrained(tmp_path, max_shard_size="2KB")
    shards = {path.name for path in tmp_path.glob("*.safetensors")}
    assert len(shards) > 1
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text("utf-8"))
    assert set(index["weight_map"].values()) == shards
    modes = {(tmp_path / name).stat().st_mode for name in shards}
    assert modes == {(tmp_path / "config.json").stat().st_mode}  # who may read the config may load the model
    assert index["weight_map"].keys() == model.state_dict().keys()
    (tmp_path / "more").mkdir()
    write_repository_files(tmp_path / "more")
    for path in (tmp_path / "more").iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()

    loaded, info = kind.from_pretrained(tmp_path, output_loading_info=True)  # type: ignore[attr-defined]
    assert not any(info.values())
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name


def test_a_save_in_another_form_leaves_nothing_of_the_old_one(tmp_path: Path) -> None:
    for seed, size in enumerate(("1GB", "2KB", "1GB")):
        model = randomize(DSAModel(small_config()), seed).eval()
        model.save_pretrained(tmp_path, max_shard_size=size)
        assert_same(model, DSAModel.from_pretrained(tmp_path))
        assert (tmp_path / "model.safetensors").exists() is not (tmp_path / "model.safetensors.index.json").exists()


# Other classes


@all_systems
def test_other_classes_get_new_weights_and_the_rest_is_loaded(
    saved: tuple[DSAForNLI, Path], changes: dict[str, Any]
) -> None:
    model, folder = saved
    by_class = {"classifier.2.weight", "classifier.2.bias"}
    if changes.get("pooling") == "variational":
        by_class.add("dsa.pooling.class_vectors.weight")
    loaded, info = DSAForNLI.from_pretrained(
        folder, num_labels=5, ignore_mismatched_sizes=True, output_loading_info=True
    )
    assert {name for name, *_ in info["mismatched_keys"]} == by_class
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    for name, value in loaded.state_dict().items():
        if name in by_class:
            assert value.isfinite().all(), name
            assert torch.all(value == 0) if name.endswith("bias") else 0 < value.std() < 2, name
        else:
            assert torch.equal(value, model.state_dict()[name]), name
    assert loaded.config.num_labels == len(loaded.config.id2label) == 5
    assert loaded(**batch_of_pairs()).logits.shape == (len(EXAMPLE_PAIRS), 5)
    loaded.train()(**{**batch_of_pairs(), "labels": torch.tensor([0, 1, 2, 3, 4, 4])}).loss.backward()
    assert all(weight.grad.isfinite().all() for weight in loaded.parameters() if weight.requires_grad)


@pytest.mark.parametrize("changes", [{}, {"pooling": "variational"}], ids=["dynamic", "variational"])
def test_other_classes_are_refused_where_nobody_asked_to_ignore_them(
    saved: tuple[DSAForNLI, Path], caplog: pytest.LogCaptureFixture
) -> None:
    transformers_log = logging.getLogger("transformers")
    transformers_log.addHandler(caplog.handler)  # which transformers does not hand on
    try:
        with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
            DSAForNLI.from_pretrained(saved[1], num_labels=5)
    finally:
        transformers_log.removeHandler(caplog.handler)
    assert "classifier.2.weight" in caplog.text
    assert "torch.Size([3, 5]) vs model:torch.Size([5, 5])" in caplog.text


class Tagger(DSAPreTrainedModel):
    """A user's own head."""

    def __init__(self, config: DSAConfig) -> None:
        super().__init__(config)
        self.dsa = DSAModel(config)
        self.tagger = nn.Linear(config.encoded_size, 4)
        self.post_init()


def test_a_head_of_ones_own_starts_from_an_encoder_and_not_from_a_part_of_one(tmp_path: Path) -> None:
    encoder = randomize(DSAModel(small_config()))
    encoder.save_pretrained(tmp_path)
    tagger, info = Tagger.from_pretrained(tmp_path, output_loading_info=True)
    assert info["missing_keys"] == {"tagger.weight", "tagger.bias"}
    tagger = Tagger.from_pretrained(tmp_path)
    torch.testing.assert_close(run(tagger.dsa).pooler_output, run(encoder.eval()).pooler_output, rtol=0, atol=0)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["encoder.compression.bias"]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"lacks dsa\.encoder\.compression\.bias: leave out options"):
        Tagger.from_pretrained(tmp_path)


def test_a_head_of_ones_own_starts_from_a_classifier_too(tmp_path: Path) -> None:
    model = model_of({})
    model.save_pretrained(tmp_path)
    assert_same(Tagger.from_pretrained(tmp_path).dsa, model.dsa)
    deeper = DSAForNLI.from_pretrained(tmp_path, classifier_hidden_sizes=[6], ignore_mismatched_sizes=True)
    assert_same(deeper.dsa, model.dsa)
    Tagger.from_pretrained(tmp_path).save_pretrained(tmp_path)
    assert not DSAConfig.from_pretrained(tmp_path).is_classifier


class Subclass(DSAForNLI):
    """Not in the code that travels along."""


def test_a_subclass_is_saved_as_the_class_that_travels_along(tmp_path: Path) -> None:
    Subclass(small_config(sentences_per_example=2)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["auto_map"]["AutoModelForSequenceClassification"] == "modeling_dsa.DSAForNLI"
    assert config["architectures"] == ["DSAForNLI"]
    weights = load_file(tmp_path / "model.safetensors")
    del weights["classifier.0.weight"]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"lacks classifier\.0\.weight"):
        DSAForNLI.from_pretrained(tmp_path)


def test_other_weights_than_the_models_own_are_not_pushed(tmp_path: Path) -> None:
    model = DSAModel(small_config())
    for options in ({"state_dict": model.half().state_dict()}, {"variant": "fp16"}):
        with pytest.raises(ValueError, match="push_to_hub sends the model's own weights"):
            model.save_pretrained(tmp_path / "model", push_to_hub=True, **options)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"embedding_dropout": -0.5}, "embedding_dropout must lie in"),
        ({"sentences_per_example": 2, "pair_features": ["first", "typo"]}, "pair_features must be some of"),
        ({"sentences_per_example": 2, "pair_features": ["gated"], "projection_size": 3}, "which a projection mixes"),
        ({"classifier_hidden_sizes": [], "classifier_highway": True}, "there is none"),
    ],
)
def test_fields_that_loading_sets_are_checked_before_a_model_is_made(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    DSAModel(small_config()).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=message):
        AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=3, **change)


def test_half_precision_compares_with_an_empty_text() -> None:
    model = model_of({"pair_features": ["cosine", "product"], "num_attention_heads": 2}).half()
    ids, mask = pad_rows([join_pair([5, 6], []), join_pair([], [])])
    with torch.no_grad():
        assert model(ids, attention_mask=mask).logits.isfinite().all()


def test_a_system_that_does_not_tell_its_memory_can_make_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sysconf")  # Windows
    DSAModel(small_config(n_train_tokens=3 * 10**9))  # a user's own note in the config, which no model reads


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel_sizes": [3, 1_000_000_001]}, "kernel_sizes is 1,000,000,001 in the config: 10,000 is the most"),
        ({"kernel_sizes": [3] * 1001}, "kernel_sizes has 1,001 entries"),
        ({"kernel_sizes": [3, 5], "num_hidden_layers": 501}, "1,002 layers"),
        ({"projection_size": 10**7}, "projection_size is 10,000,000 in the config: its weights need more memory"),
        ({"classifier_hidden_sizes": [4, 10**7]}, "classifier_hidden_sizes is 10,000,000 .* need more memory"),
        (
            {"pooling": "pairwise", "latent": "sentence", "max_sentence_tokens": 2**31 - 1, "latent_size": 1000},
            "max_sentence_tokens is 2,147,483,647 .* need more memory",
        ),
    ],
)
def test_sizes_that_no_machine_holds_are_refused_before_a_model_is_made(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DSAModel(small_config(**change))


def test_a_longest_length_of_which_no_weight_is_made_may_be_any() -> None:
    DSAModel(small_config(max_sentence_tokens=2**31 - 1))


@pytest.mark.parametrize("pooling", ["variational", "reinforced"])
def test_labels_of_a_pooling_that_learns_from_them_are_classes(pooling: str) -> None:
    model = model_of({"pooling": pooling, "encoder": "none"}).train()
    batch = labelled_batch()
    losses = []
    for labels in (batch["labels"], batch["labels"][:, None]):  # as a collator may lay them out
        torch.manual_seed(0)
        losses.append(model(**{**batch, "labels": labels}).loss)
    assert losses[0] == losses[1]
    with pytest.raises(ValueError, match=r"labels must be whole numbers, got torch\.float32"):
        model(**{**batch, "labels": torch.rand(6, 3)})


def test_an_encoder_does_not_mind_other_classes(tmp_path: Path) -> None:
    model = model_of({})
    model.save_pretrained(tmp_path)
    encoder, info = AutoModel.from_pretrained(tmp_path, num_labels=5, output_loading_info=True)
    assert not any(info.values())
    torch.testing.assert_close(run(encoder).pooler_output, run(model.dsa).pooler_output, rtol=0, atol=0)
