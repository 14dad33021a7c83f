"""Look up what a graph computes of one token alone: tables of results take the place of the word table.

In single DSA's graph these are the first layer of each branch and what the compression makes of it and of the word
vector: a third of all multiplications, for tables a little more than twice as large as the word table.
"""

import numpy as np
import onnxruntime
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

_ELEMENTWISE = ("LeakyRelu", "Add")


def fold_tables(model: ModelProto, largest: int) -> None:
    """Replace what depends on one token alone by look-ups, in place; nothing where the tables would be too large.

    Args:
        model: A graph in float32 that looks each token's word vector up once.
        largest: How many numbers all tables together may have.
    """
    graph = model.graph
    sizes = {constant.name: list(constant.dims) for constant in graph.initializer}
    lookup = next(node for node in graph.node if node.op_type == "Gather" and len(sizes.get(node.input[0], [])) == 2)
    folded = _nodes_of_one_token(list(graph.node), lookup, sizes)
    names = [node.output[0] for node in folded]
    kept = [node for node in graph.node if node.output[0] not in names]
    read = {name for node in kept for name in node.input}
    wanted = [name for name in names if name in read]
    if wanted == [lookup.output[0]]:
        return
    session, (rows, _) = _session_of(model, folded, lookup.input[1], wanted), sizes[lookup.input[0]]
    if rows * sum(found.size for found in session.run(wanted, {lookup.input[1]: np.arange(1)})) > largest:
        return
    tables = session.run(wanted, {lookup.input[1]: np.arange(rows)})
    lookups = [helper.make_node("Gather", [f"{name}_table", lookup.input[1]], [name]) for name in wanted]
    first = list(graph.node).index(lookup)  # only nodes that are kept stand before it
    del graph.node[:]
    graph.node.extend([*kept[:first], *lookups, *kept[first:]])
    constants = [constant for constant in graph.initializer if constant.name in read]
    constants += [numpy_helper.from_array(table, f"{name}_table") for name, table in zip(wanted, tables, strict=True)]
    del graph.initializer[:]
    graph.initializer.extend(constants)
    for node in lookups:
        _look_up_in_place(graph, node)


def _look_up_in_place(graph: GraphProto, lookup: NodeProto) -> None:
    """Look a table's rows up where they are needed, if they are looked up only to be laid out with zeros outside.

    What is laid out then are the tokens' ids, with the number of a row of zeros outside.
    """
    name = lookup.output[0]
    concatenate = _only_reader(graph, name, "Concat")
    lay_out = _only_reader(graph, concatenate.output[0], "Gather") if concatenate else None
    if concatenate is None or lay_out is None or len(concatenate.input) != 2:
        return
    constants = {constant.name: constant for constant in graph.initializer}
    table, outside = constants[lookup.input[0]], constants.get(concatenate.input[1])
    rows = numpy_helper.to_array(table)
    if outside is None or list(outside.dims) != [1, rows.shape[1]] or numpy_helper.to_array(outside).any():
        return
    table.CopyFrom(numpy_helper.from_array(np.concatenate([rows, np.zeros_like(rows[:1])]), table.name))
    graph.initializer.append(numpy_helper.from_array(np.array([len(rows)]), f"{name}_outside"))
    made = [
        helper.make_node("Concat", [lookup.input[1], f"{name}_outside"], [f"{name}_ids"], axis=0),
        helper.make_node("Gather", [f"{name}_ids", lay_out.input[1]], [f"{name}_laid_out"]),
        helper.make_node("Gather", [table.name, f"{name}_laid_out"], list(lay_out.output)),
    ]
    nodes = list(graph.node)
    nodes[nodes.index(lay_out) : nodes.index(lay_out) + 1] = made
    del graph.node[:]
    graph.node.extend(node for node in nodes if node not in (lookup, concatenate))


def _only_reader(graph: GraphProto, name: str, op_type: str) -> NodeProto | None:
    """The node that reads a tensor, if it is the only one and of this kind."""
    readers = [node for node in graph.node if name in node.input]
    return readers[0] if len(readers) == 1 and readers[0].op_type == op_type else None


def _nodes_of_one_token(nodes: list[NodeProto], lookup: NodeProto, sizes: dict[str, list[int]]) -> list[NodeProto]:
    """The look-up and all nodes that depend on nothing else, row by row."""
    found, of_one_token = [lookup], {lookup.output[0]}
    for node in nodes:
        if node.op_type in ("Gemm", "MatMul"):
            by_row = node.input[0] in of_one_token and all(name in sizes for name in node.input[1:])
        else:
            by_row = node.op_type in _ELEMENTWISE and all(
                name in of_one_token or len(sizes.get(name, [0, 0])) < 2 for name in node.input
            )
        if by_row:
            found.append(node)
            of_one_token.add(node.output[0])
    return found


def _session_of(model: ModelProto, nodes: list[NodeProto], ids: str, wanted: list[str]) -> onnxruntime.InferenceSession:
    """Computes of token ids what some nodes of a model compute of them."""
    part = ModelProto()
    part.CopyFrom(model)
    graph = part.graph
    read = {name for node in nodes for name in node.input}
    constants = [constant for constant in graph.initializer if constant.name in read]
    for field in (graph.node, graph.input, graph.output, graph.value_info, graph.initializer):
        del field[:]
    graph.node.extend(nodes)
    graph.initializer.extend(constants)
    graph.input.append(helper.make_tensor_value_info(ids, TensorProto.INT64, ["tokens"]))
    graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in wanted)
    return onnxruntime.InferenceSession(part.SerializeToString(), providers=["CPUExecutionProvider"])
