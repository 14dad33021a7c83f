"""modeling_dsa.onnx.folding: the same results from tables, and no tables that are much larger than the word table."""

import copy
from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from modeling_dsa.onnx.folding import fold_tables

IDS = np.array([3, 0, 3, 6])


LAY_OUT = (
    helper.make_node("Concat", ["both", "outside"], ["with_outside"], axis=0),
    helper.make_node("Gather", ["with_outside", "places"], ["laid_out"]),
)


def graph_of(turned: str, lay_out: Sequence[NodeProto] = ()) -> ModelProto:
    """tanh(x^T), where x, one of the tensors of (tokens, width), depends on each token alone, plus the sum of all."""
    draw = np.random.default_rng(0)
    shapes = {"E": (7, 4), "A": (4, 9), "B": (9, 3), "b": (3,), "C": (4, 3)}
    constants = [
        numpy_helper.from_array(draw.normal(size=shape).astype(np.float32), name) for name, shape in shapes.items()
    ]
    if lay_out:
        constants.append(numpy_helper.from_array(np.zeros((1, 3), np.float32), "outside"))
        constants.append(numpy_helper.from_array(np.array([0, 4, 1, 4, 3]), "places"))
    nodes = [
        helper.make_node("Identity", ["input_ids"], ["ids"]),
        helper.make_node("Gather", ["E", "ids"], ["words"]),
        helper.make_node("MatMul", ["words", "A"], ["first"]),
        helper.make_node("LeakyRelu", ["first"], ["active"]),
        helper.make_node("Gemm", ["active", "B", "b"], ["by_first"]),
        helper.make_node("MatMul", ["words", "C"], ["by_words"]),
        helper.make_node("Add", ["by_first", "by_words"], ["both"]),
        *lay_out,
        helper.make_node("Transpose", [turned], ["turned"]),
        helper.make_node("Tanh", ["turned"], ["known"]),
        helper.make_node("ReduceSum", ["words"], ["total"], keepdims=0),
        helper.make_node("Add", ["known", "total"], ["output"]),
    ]
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["tokens"])]
    outputs = [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["width", "places"])]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def run(model: ModelProto) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    onnx.checker.check_model(model, full_check=True)
    found: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = onnxruntime.InferenceSession(
        model.SerializeToString()
    ).run(None, {"input_ids": IDS})[0]
    return found


def test_what_depends_on_one_token_is_looked_up() -> None:
    plain = graph_of("both")
    folded = copy.deepcopy(plain)
    fold_tables(folded, largest=7 * (3 + 4))
    np.testing.assert_allclose(run(folded), run(plain), rtol=1e-6, atol=1e-6)
    kinds = Counter(node.op_type for node in folded.graph.node)
    assert kinds == {"Identity": 1, "Gather": 2, "Transpose": 1, "Tanh": 1, "ReduceSum": 1, "Add": 1}
    assert sorted(constant.dims[1] for constant in folded.graph.initializer) == [3, 4]


def test_what_is_laid_out_alone_is_looked_up_where_it_is_laid_out() -> None:
    plain = graph_of("laid_out", LAY_OUT)
    folded = copy.deepcopy(plain)
    fold_tables(folded, largest=7 * (3 + 4))
    np.testing.assert_allclose(run(folded), run(plain), rtol=1e-6, atol=1e-6)
    assert [list(node.input) for node in folded.graph.node if "both_table" in node.input] == [
        ["both_table", "both_laid_out"]
    ]


def test_tables_that_would_be_too_large_are_not_made() -> None:
    plain = graph_of("active")  # nine numbers a token beside the word table's four
    folded = copy.deepcopy(plain)
    fold_tables(folded, largest=7 * (9 + 4) - 1)
    assert folded.SerializeToString() == plain.SerializeToString()
