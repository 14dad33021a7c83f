"""The int8 form of an ONNX file: 8 bits a weight, and fixed scales of the activations."""

from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quant_pre_process,
    quantize_static,
)
from onnxruntime.quantization.onnx_model import ONNXModel

from modeling_dsa.modeling_dsa import DSAPreTrainedModel

from .session import INPUTS, Arrays


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
            batches.append(dict(zip(INPUTS, (ids, np.ones_like(ids), types), strict=True)))
        self.batches = iter(batches)

    def get_next(self) -> Arrays | None:
        """The next batch."""
        return next(self.batches, None)


def quantize(model: DSAPreTrainedModel, file: Path, quantized: Path) -> None:
    """Write the int8 form of `file`, an ONNX file of `model`, to `quantized`.

    Each matrix has a scale for each of its channels. Activations have fixed scales, from random sentences of the
    model's own tokens, so that no sentence sees its batch; scales that are found while it runs would be those of a
    whole batch.
    """
    prepared = quantized.with_name("prepared.onnx")
    quant_pre_process(file, prepared, skip_symbolic_shape=True)
    graph = onnx.load(prepared).graph
    constants = {constant.name for constant in graph.initializer if len(constant.dims) == 2}
    nodes = [
        node.name
        for node in graph.node
        if node.op_type in ("MatMul", "Gemm", "Gather") and constants.intersection(node.input)
    ]
    quantize_static(
        prepared,
        quantized,
        _RandomSentences(model),
        QuantFormat.QDQ,
        op_types_to_quantize=["MatMul", "Gemm", "Gather"],
        nodes_to_quantize=nodes,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        extra_options={"CalibMovingAverage": True},  # a scale for one rare token would be too coarse for all others
    )
    prepared.unlink()
    written = onnx.load(quantized)
    _gather_bytes(written)
    onnx.helper.set_model_props(written, {entry.key: entry.value for entry in onnx.load(file).metadata_props})
    onnx.checker.check_model(written)
    onnx.save(written, quantized)


def _gather_bytes(written: onnx.ModelProto) -> None:
    """Round tokens before their windows are gathered and not after: the same numbers, gathered as bytes."""
    graph = written.graph
    maker = {output: node for node in graph.node for output in node.output}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    moved = set()
    for quantize in graph.node:
        reshape = maker.get(quantize.input[0]) if quantize.op_type == "QuantizeLinear" else None
        gather = maker.get(reshape.input[0]) if reshape is not None and reshape.op_type == "Reshape" else None
        if reshape is None or gather is None or gather.op_type != "Gather":
            continue
        between = {gather.output[0], reshape.output[0]}
        if any(len(readers[name]) > 1 for name in between):
            continue
        (rounded,) = quantize.output
        for reader in readers[rounded]:
            reader.input[:] = [reshape.output[0] if name == rounded else name for name in reader.input]
        quantize.input[0], gather.input[0] = gather.input[0], rounded
        moved |= between
    typed = [info for info in graph.value_info if info.name not in moved]  # they say float32
    del graph.value_info[:]
    graph.value_info.extend(typed)
    ONNXModel(written).topological_sort()
