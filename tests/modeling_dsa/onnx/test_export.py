"""modeling_dsa.onnx.export: files that are equal to the model at shapes that the exporter never saw, or no files."""

import copy
import itertools
import json
import shutil
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
import torch
from small_models import (
    GRAPH_CASES,
    PROJECTION_CASES,
    SEP,
    join_pair,
    pad_rows,
    randomize,
    small_config,
)
from small_repositories import Saved
from torch import Tensor, nn

from modeling_dsa import DSAConfig, DSAForNLI, DSAForSequenceClassification, DSAPreTrainedModel
from modeling_dsa.cli.main import main
from modeling_dsa.encoders_dsa import ENCODERS, NoEncoder
from modeling_dsa.onnx import quantization
from modeling_dsa.onnx.export import _batches, _check_close, export_onnx
from modeling_dsa.onnx.layers import ONNX_ENCODERS
from modeling_dsa.onnx.weights import weights_hash
from modeling_dsa.packing_dsa import Packing
from modeling_dsa.poolings_dsa import POOLINGS

# An export takes seconds: what does not meet in the model is one case.
TOGETHER = (("no encoder", "static"), ("kim_cnn", "max"), ("pairwise encoder", "structured"))
SYSTEMS: dict[str, dict[str, Any]] = {
    "three heads, three words": {
        "num_attention_heads": 3,
        "routing_iterations": 3,
        "pair_features": ["cosine", "product", "overlap"],
        "max_sentence_tokens": 3,
    },
    # The shortcut has the projection.
    "one iteration, shortcut": PROJECTION_CASES["shortcut"]
    | {"routing_iterations": 1, "pair_features": ["first", "idf_overlap"]},
    "last": GRAPH_CASES["last"] | {"num_hidden_layers": 2},
    **{f"{encoder}, {pooling}": GRAPH_CASES[encoder] | GRAPH_CASES[pooling] for encoder, pooling in TOGETHER},
    **{
        name: GRAPH_CASES[name]
        for name in GRAPH_CASES
        if name not in (*itertools.chain(*TOGETHER), "bilstm", "last")
        # Pairwise attention is there by position, variational attention below.
        and name not in ("pairwise", "variational", "variational by position")
    },
    "shortcut, variational": PROJECTION_CASES["shortcut, variational"],
}
PAIR_OUTPUTS = ["logits", "pooler_output", "second_pooler_output", "attention"]
ROWS = [
    ([5, 6, 7, 8, 9], [10, 6, 7]),
    ([12], [13]),
    ([], [21, 22]),
    ([23, 5, 5], []),
    ([5, 6, 7, 8, 9], [30] * 40),
    ([], []),
]


def model_of(*, per_row: int = 2, **changes: Any) -> DSAForSequenceClassification:
    kind = DSAForNLI if per_row == 2 else DSAForSequenceClassification
    model: DSAForSequenceClassification = kind(small_config(**changes, sentences_per_example=per_row))
    model.eval()
    return randomize(model)


def batches() -> list[dict[str, Tensor]]:
    """Padding left, right and on both sides, from one word to 60; pairs told by token types, or by the separator."""
    batches = []
    padded: list[tuple[slice, Any]] = [
        (slice(None), {"left": [0, 3, 1, 2, 0, 4]}),
        (slice(1), {}),
        (slice(1, 3), {"right": 60}),
        (slice(5, 6), {}),
    ]
    for part, padding in padded:
        ids, mask = pad_rows([join_pair(*row) for row in ROWS[part]], **padding)
        types = ((ids == SEP).cumsum(1) > 0).long() * mask
        batches += [{"input_ids": ids, "attention_mask": mask, "token_type_ids": kind} for kind in (types, types * 0)]
    return batches


def run(file: Path, batch: dict[str, Tensor]) -> dict[str, npt.NDArray[Any]]:
    session = onnxruntime.InferenceSession(file)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {name: value.numpy() for name, value in batch.items()}), strict=True))


@torch.no_grad()
def expected(model: DSAPreTrainedModel, batch: dict[str, Tensor]) -> dict[str, npt.NDArray[Any]]:
    outputs = dict(model.base_model(**batch, output_attentions=True))
    attentions = outputs.pop("attentions", None)
    if model.base_model is not model:
        outputs["logits"] = model(**batch).logits
    found = {name: value.numpy() for name, value in outputs.items()}
    return found | {"attention": by_sentence(model, batch, attentions[-1].numpy())} if attentions else found


def by_sentence(
    model: DSAPreTrainedModel, batch: dict[str, Tensor], weights: npt.NDArray[Any]
) -> npt.NDArray[np.float32]:
    """(batch, heads, tokens) -> (sentences, heads, tokens of the longest sentence)"""
    sentences = []
    for ids, mask, of_example in zip(
        batch["input_ids"].tolist(), batch["attention_mask"].tolist(), weights, strict=True
    ):
        tokens = [index for index, real in enumerate(mask) if real and ids[index] != SEP]
        if model.config.sentences_per_example == 2:
            separator = ids.index(SEP)
            parts = [[token for token in tokens if (token > separator) == second] for second in (False, True)]
        else:
            parts = [tokens]
        sentences += [of_example[:, part[: model.config.max_sentence_tokens]] for part in parts]
    longest = max(1, *(sentence.shape[1] for sentence in sentences))
    return np.stack([np.pad(sentence, ((0, 0), (0, longest - sentence.shape[1]))) for sentence in sentences])


def assert_equal(file: Path, model: DSAPreTrainedModel, names: list[str]) -> None:
    """At every shape all outputs are the model's."""
    for batch in batches():
        found, wanted = run(file, batch), expected(model, batch)
        assert list(found) == names
        for name, value in found.items():
            np.testing.assert_allclose(value, wanted[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_what_a_file_is_checked_with_shares_tokens() -> None:
    model = model_of(pair_features=["overlap"])
    batches = [{name: torch.from_numpy(value) for name, value in batch.items()} for batch in _batches(model)]
    shared = torch.cat([cast(Tensor, model.token_overlap(**batch)) for batch in batches])  # (pairs, 5)
    assert ((shared > 0).sum(0) > 5).all()


def test_a_file_is_equal_to_the_model(exported: Saved) -> None:
    folder = exported.folder / "onnx"
    assert sorted(path.name for path in folder.iterdir()) == ["model.onnx", "model_quantized.onnx"]
    assert_equal(folder / "model.onnx", exported.model, PAIR_OUTPUTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "per_row"),
    [
        *(pytest.param(changes, 2, id=f"{name}-2") for name, changes in SYSTEMS.items()),
        pytest.param({}, 1, id="dynamic-1"),  # for pairs it is in quick tests
        pytest.param(GRAPH_CASES["variational by position"], 1, id="variational by position-1"),
    ],
)
def test_every_system(changes: dict[str, Any], per_row: int, tmp_path: Path) -> None:
    model = model_of(**changes, per_row=per_row)
    second = ["second_pooler_output"] if per_row == 2 else []
    config = model.config
    encoder, pooling = ENCODERS[config.encoder], POOLINGS[config.pooling]
    in_rectangles = encoder.takes_rectangle_packing and pooling.takes_rectangle_packing
    has_attention = in_rectangles and not pooling.attention_is_extra
    before = copy.deepcopy(model.state_dict())
    (file,) = export_onnx(model, tmp_path)
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert_equal(file, model, ["logits", "pooler_output", *second, *(["attention"] if has_attention else [])])


def test_a_file_says_what_it_is_and_not_where_it_was_made(exported: Saved) -> None:
    for file in (exported.folder / "onnx").iterdir():
        onnx.checker.check_model(file)
        (entry,) = onnx.load(file).metadata_props
        about = json.loads(entry.value)
        with (exported.folder / "model.safetensors").open("rb") as weights:
            assert about.pop("weights_sha256") == weights_hash(weights)
        assert about.pop("vocab_size") == about.pop("config")["vocab_size"] == exported.model.config.vocab_size
        assert about.pop("defaults")["vocab_size"] == DSAConfig().vocab_size
        assert about == {"name": "nli", "labels": ["entailment", "neutral", "contradiction"], "scores": "softmax"}
        for folder in (Path(__file__).parents[3], Path(torch.__file__).parents[1], file.parent):
            assert str(folder).encode() not in file.read_bytes()


def test_int8_is_smaller_and_close(exported: Saved) -> None:
    exact, quantized = exported.folder / "onnx" / "model.onnx", exported.folder / "onnx" / "model_quantized.onnx"
    assert quantized.stat().st_size < exact.stat().st_size / 1.5
    stored = {value.name: value.data_type for value in onnx.load(quantized).graph.initializer}
    tables = [kind for name, kind in stored.items() if name.endswith("_table_quantized")]
    assert set(tables) == {onnx.TensorProto.UINT8}
    for batch in batches()[:2]:
        found, wanted = run(quantized, batch)["pooler_output"], expected(exported.model, batch)["pooler_output"]
        has_tokens = np.linalg.norm(wanted, axis=1) > 0
        norms = np.linalg.norm(found, axis=1) * np.linalg.norm(wanted, axis=1)
        assert ((found * wanted).sum(1)[has_tokens] / norms[has_tokens]).min() > 0.97


def test_in_int8_windows_gather_bytes_and_give_the_same(
    exported: Saved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, plain = exported.folder / "onnx" / "model_quantized.onnx", tmp_path / "plain.onnx"
    monkeypatch.setattr(quantization, "_move_bytes", lambda written: None)
    quantization.quantize(exported.model, exported.folder / "onnx" / "model.onnx", plain)

    def gathers_of_bytes(file: Path) -> int:
        graph = onnx.shape_inference.infer_shapes(onnx.load(file)).graph
        of_bytes = {info.name for info in graph.value_info if info.type.tensor_type.elem_type == onnx.TensorProto.UINT8}
        return sum(node.op_type == "Gather" and node.input[0] in of_bytes for node in graph.node)

    graph = onnx.load(quick).graph
    active = {output for node in graph.node if node.op_type == "LeakyRelu" for output in node.output}
    rounded = [node.input[0] for node in graph.node if node.op_type == "QuantizeLinear" and node.input[0] in active]
    assert len(rounded) == len(set(rounded)) > 0  # once for all that read it

    layers = sum(layer.kernel_size[0] > 1 for layer in exported.model.modules() if isinstance(layer, torch.nn.Conv1d))
    assert gathers_of_bytes(quick) >= layers > gathers_of_bytes(plain) == 0
    for batch in batches():
        for name, values in run(plain, batch).items():
            np.testing.assert_allclose(run(quick, batch)[name], values, rtol=0, atol=1e-6)


def test_sums_of_two_products_of_bytes_have_room_in_16_bits(exported: Saved) -> None:
    graph = onnx.load(exported.folder / "onnx" / "model_quantized.onnx").graph
    constants = {constant.name: onnx.numpy_helper.to_array(constant) for constant in graph.initializer}
    made = {node.output[0]: node for node in graph.node if node.op_type == "DequantizeLinear"}
    products = [node for node in graph.node if node.op_type in ("MatMul", "Gemm") and node.input[1] in made]
    assert products
    for node in products:
        weights = constants[made[node.input[1]].input[0]]
        assert weights.dtype == np.int8
        if any(attribute.name == "transB" and attribute.i for attribute in node.attribute):
            weights = weights.T
        weights = np.pad(weights.astype(int), ((0, len(weights) % 2), (0, 0)))  # (in, out)
        largest = np.maximum(np.abs(weights).max(axis=0), np.abs(weights[::2] + weights[1::2]).max(axis=0))  # (out,)
        assert 255 * largest.max() <= np.iinfo(np.int16).max
        assert largest.min() >= 126  # with no bit to spare


def test_in_int8_a_sentence_does_not_see_its_batch(exported: Saved) -> None:
    quantized = exported.folder / "onnx" / "model_quantized.onnx"
    batch = batches()[0]
    together = run(quantized, batch)["logits"]
    for row in range(len(ROWS)):
        alone = run(quantized, {name: value[row : row + 1] for name, value in batch.items()})["logits"]
        np.testing.assert_allclose(alone, together[row : row + 1], rtol=1e-4, atol=1e-5)


class NextWord(nn.Module):
    """A wrong encoder: each word is the next one."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()

    def forward(self, words: Tensor, packing: Packing, output_hidden_states: bool) -> tuple[Tensor, list[Tensor]]:
        return torch.cat([words[1:], words[:1]]), []


@pytest.mark.slow
def test_a_file_that_is_not_equal_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ONNX_ENCODERS, NoEncoder, NextWord)
    with pytest.raises(ValueError, match=r"not equal to the model: logits differs by .* for a batch of .* not kept"):
        export_onnx(model_of(encoder="none", pooling="mean"), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("output", "factor", "problem_type", "said"),
    [
        ("attention", np.nan, None, "attention has numbers that are not finite"),
        ("pooler_output", 0, None, r"pooler_output has a mean cosine of 0\.000 with its own; at least 0\.95 is asked"),
        ("second_pooler_output", -1, None, r"second_pooler_output has a mean cosine of -\d\.\d+ with its own"),
        ("logits", -1, None, r"logits give its own answer to \d+% of random examples; at least 80% is asked"),
        ("logits", -1, "multi_label_classification", "logits give its own answer to 0% of random examples"),
        ("logits", 2, "regression", r"logits give its own answer to \d+% of random examples"),
    ],
)
def test_an_int8_file_that_is_not_close_is_refused(
    output: str, factor: float, problem_type: str | None, said: str, exported: Saved, tmp_path: Path
) -> None:
    model = copy.deepcopy(exported.model)
    model.config.problem_type = problem_type
    written = onnx.load(exported.folder / "onnx" / "model_quantized.onnx")
    for node in written.graph.node:
        for names in (node.input, node.output):
            names[:] = ["right" if name == output else name for name in names]
    written.graph.initializer.append(onnx.numpy_helper.from_array(np.array(factor, np.float32), "factor"))
    written.graph.node.append(onnx.helper.make_node("Mul", ["right", "factor"], [output]))
    file = tmp_path / "model_quantized.onnx"
    _check_close(model, exported.folder / "onnx" / file.name)
    onnx.save(written, file)
    with pytest.raises(ValueError, match=rf"In int8 this model's {said}.*: leave int8 out, and the fp32"):
        _check_close(model, file)


def test_random_predictions_are_refused(tmp_path: Path) -> None:
    model = model_of(pooling="variational", num_prediction_samples=4)
    with pytest.raises(ValueError, match=r"draws 4 random samples for each prediction.* set num_prediction_samples=0"):
        export_onnx(model, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="An ONNX file cannot hold pooling 'gumbel_tree'"):
        export_onnx(model_of(pooling="gumbel_tree"), tmp_path)


@pytest.mark.slow
def test_all_files_that_were_written_are_told(tmp_path: Path) -> None:
    model = model_of(encoder="none", pooling="mean", output_attentions=True, return_dict=False)
    files = export_onnx(model, tmp_path, quantize=True, memory_mapped=True)
    assert files == sorted(tmp_path.iterdir())
    assert {"model.onnx", "model_quantized.onnx"} <= {path.name for path in files}


def test_what_is_there_is_not_replaced(exported: Saved, caplog: pytest.LogCaptureFixture) -> None:
    assert main(["onnx", str(exported.folder)]) == 2
    assert "onnx/model.onnx is there already: give --overwrite to replace it." in caplog.text


def test_tables_go_to_a_file_of_their_own(exported: Saved, memory_mapped: Saved) -> None:
    folder = memory_mapped.folder / "onnx"
    names = ["model.onnx", "model.onnx_data", "model_quantized.onnx", "model_quantized.onnx_data"]
    files = sorted(folder.iterdir())
    assert [path.name for path in files] == names
    assert len({path.stat().st_mode for path in files}) == 1
    for name in names[::2]:
        complete = exported.folder / "onnx" / name
        assert (folder / name).stat().st_size < 0.9 * complete.stat().st_size
        for batch in batches():
            for found, wanted in zip(run(folder / name, batch).values(), run(complete, batch).values(), strict=True):
                np.testing.assert_array_equal(found, wanted)


@pytest.mark.slow
def test_an_export_takes_the_place_of_one_with_tables_of_its_own(
    memory_mapped: Saved, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    again = shutil.copytree(memory_mapped.folder, tmp_path / "again")
    assert main(["onnx", str(again), "--overwrite"]) == 0
    assert "onnx/model_quantized.onnx, which was of the earlier export." in caplog.text
    assert [path.name for path in (again / "onnx").iterdir()] == ["model.onnx"]


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_what_is_not_installed_is_told(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in [name for name in sys.modules if name.startswith("modeling_dsa.onnx.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["onnx", str(tmp_path)]) == 2
    found = caplog.messages[-1]
    assert found == f'error: Writing ONNX files needs {missing}: pip install ".[onnx]" in a clone of dsa-transformers.'
