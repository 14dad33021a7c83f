"""The int8 form of an ONNX file: 8 bits a weight, and fixed scales of the activations."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    create_calibrator,
    quant_pre_process,
    quantize_static,
)
from onnxruntime.quantization.onnx_model import ONNXModel

from modeling_dsa.modeling_dsa import DSAPreTrainedModel

from .folding import fold_tables
from .session import INPUTS, Arrays

LARGEST_TABLES = 48 << 20  # numbers of one byte each, so that a file is served in less than 150 MB
QUANTIZED = ["MatMul", "Gemm", "Gather"]
_COPYING = ("Gather", "Reshape", "Concat")


class _RandomSentences(CalibrationDataReader):  # type: ignore[misc]  # has no types
    """The batches from which the scales of the activations come."""

    def __init__(self, model: DSAPreTrainedModel) -> None:
        config, draw = model.config, np.random.default_rng(1)
        batches = []
        for tokens in (1, 2, 4, 8, 12, 20, 30):
            ids = draw.integers(0, config.vocab_size, (16, 2 * tokens))
            types = np.zeros_like(ids)
            if config.sentences_per_example == 2:
                types[:, tokens:] = 1
                if config.compares_tokens:  # random ids alone share none
                    ids[::2, tokens : tokens + tokens // 2] = ids[::2, : tokens // 2]
            batches.append(dict(zip(INPUTS, (ids, np.ones_like(ids), types), strict=True)))
        self.batches = iter(batches)

    def get_next(self) -> Arrays | None:
        """The next batch."""
        return next(self.batches, None)


def quantize(model: DSAPreTrainedModel, file: Path, quantized: Path) -> None:
    """Write the int8 form of `file`, an ONNX file of `model`, to `quantized`.

    What depends on one token alone is looked up in tables. Each matrix has a scale for each of its channels, at which
    products of integers are exact on every processor. Activations have fixed scales, from random sentences of the
    model's own tokens, so that no sentence sees its batch; scales that are found while it runs would be those of a
    whole batch.
    """
    prepared = quantized.with_name("prepared.onnx")
    quant_pre_process(file, prepared, skip_symbolic_shape=True)
    with_tables = onnx.load(prepared)
    fold_tables(with_tables, LARGEST_TABLES)
    onnx.save(with_tables, prepared)
    graph = with_tables.graph
    constants = {constant.name for constant in graph.initializer if len(constant.dims) == 2}
    nodes = [node for node in graph.node if node.op_type in QUANTIZED and constants.intersection(node.input)]
    products = [node for node in nodes if node.op_type != "Gather"]
    ranges = _shared_ranges(model, prepared, graph, products) | _weight_ranges(graph, products)
    quantize_static(
        prepared,
        quantized,
        _RandomSentences(model),
        QuantFormat.QDQ,
        op_types_to_quantize=QUANTIZED,
        nodes_to_quantize=[node.name for node in nodes],
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        extra_options={
            "CalibMovingAverage": True,  # a scale for one rare token would be too coarse for all others
            "TensorQuantOverrides": ranges,
            "OpTypesToExcludeOutputQuantization": ["MatMul", "Gemm"],  # what follows them is done in float32
        },
    )
    prepared.unlink()
    written = onnx.load(quantized)
    _move_bytes(written)
    onnx.helper.set_model_props(written, {entry.key: entry.value for entry in onnx.load(file).metadata_props})
    onnx.checker.check_model(written)
    onnx.save(written, quantized)


def _shared_ranges(
    model: DSAPreTrainedModel, file: Path, graph: onnx.GraphProto, products: list[onnx.NodeProto]
) -> dict[str, list[dict[str, np.ndarray]]]:
    """One range for all that some products read of the same tokens, so that these are rounded once for all of them.

    Args:
        model: It gives the sentences.
        file: Its graph in float32.
        graph: What the file holds.
        products: Its products that are quantised.

    Returns:
        Options of `quantize_static` for each tensor of one token that several products read.
    """
    maker = {output: node for node in graph.node for output in node.output}
    empty = {constant.name for constant in graph.initializer if not numpy_helper.to_array(constant).any()}
    groups: list[tuple[set[str], set[str]]] = []  # products' inputs, and what these are copied from
    for node in products:
        inputs, copied = {node.input[0]}, _copied_from(node.input[0], maker) - empty
        for group in [group for group in groups if group[1] & copied]:
            groups.remove(group)
            inputs, copied = inputs | group[0], copied | group[1]
        groups.append((inputs, copied))
    calibrator = create_calibrator(
        file, ["MatMul", "Gemm"], str(file.with_name("calibrated.onnx")), extra_options={"moving_average": True}
    )
    calibrator.collect_data(_RandomSentences(model))
    found = calibrator.compute_data()
    file.with_name("calibrated.onnx").unlink()
    tables = {constant.name for constant in graph.initializer}
    ranges = {}
    for inputs, copied in groups:
        if len(inputs) > 1:
            lowest, highest = zip(*(found[name].range_value for name in inputs), strict=True)
            for name in inputs | (copied & tables):
                ranges[name] = [{"rmin": np.min(lowest), "rmax": np.max(highest)}]
    return ranges


def _weight_ranges(graph: onnx.GraphProto, products: list[onnx.NodeProto]) -> dict[str, list[dict[str, Any]]]:
    """Ranges of weights at which no sum of two products of bytes exceeds 16 bits.

    An x86 processor without VNNI multiplies an activation, up to 255, with a weight and adds the product of the next
    two in 16 bits, where more than 32,767 becomes 32,767. Two neighbouring weights may be 128 together, which they are
    at most, rounding included, if the range holds their sum.

    Args:
        graph: What the file holds.
        products: Its products that are quantised.

    Returns:
        Options of `quantize_static` for the weights of each product, one for each channel.
    """
    constants = {constant.name: constant for constant in graph.initializer}
    ranges = {}
    for node in products:
        name = node.input[1]
        if name not in constants:
            continue
        weights = numpy_helper.to_array(constants[name])
        is_transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        inputs = weights.T if is_transposed else weights  # (in, out)
        pairs = inputs[:-1:2] + inputs[1::2]  # (in // 2, out)
        highest = np.abs(np.concatenate([inputs, pairs])).max(axis=0)  # (out,)
        ranges[name] = [{"axis": int(not is_transposed), "rmin": -most, "rmax": most} for most in highest]
    return ranges


def _copied_from(name: str, maker: dict[str, onnx.NodeProto]) -> set[str]:
    """The tensors whose numbers stand in this one."""
    node = maker.get(name)
    if node is None or node.op_type not in _COPYING:
        return {name}
    return set().union(*(_copied_from(each, maker) for each in _copied(node)))


def _copied(node: onnx.NodeProto) -> list[str]:
    """What a node of `_COPYING` copies."""
    return list(node.input) if node.op_type == "Concat" else [node.input[0]]


def _move_bytes(written: onnx.ModelProto) -> None:
    """Round tokens before they are laid out anew and not after: the same numbers, rounded once and copied as bytes."""
    graph = written.graph
    constants = {constant.name: numpy_helper.to_array(constant).tobytes() for constant in graph.initializer}
    done: dict[tuple[str | bytes, ...], str] = {}
    waiting = [node for node in graph.node if node.op_type == "QuantizeLinear"]
    while waiting:
        quantize = waiting.pop()
        maker = {output: node for node in graph.node for output in node.output}
        readers = Counter(name for node in graph.node for name in node.input)
        moving = maker.get(quantize.input[0])
        (rounded,) = quantize.output
        scale = [constants[name] for name in quantize.input[1:]]
        if moving is None:
            continue
        if moving.op_type == "DequantizeLinear" and [constants[name] for name in moving.input[1:]] == scale:
            moved = quantize.input[0]
            done[(moved, *scale)] = moving.input[0]  # bytes of a table
            for node in graph.node:
                node.input[:] = [moving.input[0] if name == rounded else name for name in node.input]
            graph.node.remove(quantize)
            if readers[moved] == 1:
                graph.node.remove(moving)
            continue
        if moving.op_type not in _COPYING or readers[moving.output[0]] > 1:
            continue
        graph.node.remove(quantize)
        for number, name in enumerate(_copied(moving)):
            key: tuple[str | bytes, ...] = (name, *scale)
            if key not in done:
                done[key] = f"{name}_as_{rounded}"
                earlier = helper.make_node("QuantizeLinear", [name, *quantize.input[1:]], [done[key]], name=done[key])
                earlier.attribute.extend(quantize.attribute)
                graph.node.append(earlier)
                waiting.append(earlier)
            moving.input[number] = done[key]
        moving.output[0] = rounded
    del graph.value_info[:]  # it says float32 of them
    ONNXModel(written).topological_sort()
