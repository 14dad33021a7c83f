"""torch.compile, torch.export and ONNX give what the model gives without them.

A model that is compiled or exported packs its tokens with shapes that depend on the batch's shape alone
(`packing_dsa._pack_static_shapes`); everything here compares that way with the ordinary one, from outside.
"""

import io
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_models import (
    EXAMPLE_PAIRS,
    FIRST_TOKEN,
    GRAPH_CASES,
    PAD,
    PROJECTION_CASES,
    SEP,
    VOCABULARY,
    join_pair,
    pad_rows,
    randomize,
    small_config,
)
from torch import Tensor, nn
from torch._dynamo.exc import Unsupported
from torch.export import Dim, ExportedProgram

from modeling_dsa import DSAForNLI, DSAForSequenceClassification

Batch = dict[str, Tensor]
Pair = tuple[list[int], list[int]]

# A case takes seconds to compile: what does not meet in the model is one case.
COMPILED: dict[str, dict[str, Any]] = {
    "dynamic": {},
    "three heads, iterations and tokens, cosines": {
        "num_attention_heads": 3,
        "routing_iterations": 3,
        "max_sentence_tokens": 3,
        "pair_features": ["cosine", "product", "overlap"],
    },
    "no encoder, mean": GRAPH_CASES["no encoder"] | GRAPH_CASES["mean"],
    **{
        name: changes
        for name, changes in GRAPH_CASES.items()
        if name not in ("no encoder", "mean") and "bilstm" not in changes.get("encoder", "")
    },
    "shortcut": PROJECTION_CASES["shortcut"],  # which has the projection
    "variational, samples": {"pooling": "variational", "num_prediction_samples": 4, "num_training_samples": 3},
}
RECURRENT = GRAPH_CASES["last"] | {"num_hidden_layers": 2}
# One sentence in an example differs from two before the encoder and after the pooling, dropout lies in the encoders.
OF_SENTENCES = {name: COMPILED[name] for name in ("dynamic", "pairwise encoder", "variational by position")}
# The backward pass of each layer that has one of its own; dense CNN and dynamic attention have a test for themselves.
BACKWARD = {
    "kim_cnn, variational, samples": COMPILED["kim_cnn"] | COMPILED["variational, samples"],
    "pairwise encoder, structured": COMPILED["pairwise encoder"] | COMPILED["structured"],
    **{f"no encoder, {name}": COMPILED[name] | {"encoder": "none"} for name in ("static", "pairwise", "max")},
}
# Where the config does not say what a loss is for, the first one writes it there, and the model is compiled again.
OF_CLASSES = {"problem_type": "single_label_classification"}
WITH_DROPOUT = {
    "dynamic": COMPILED["dynamic"],
    "kim_cnn, variational, samples": BACKWARD["kim_cnn, variational, samples"] | OF_CLASSES,
    "pairwise encoder": COMPILED["pairwise encoder"] | OF_CLASSES,
}

OTHER_ROWS: list[Pair] = [([30] * 11, [31, 32] * 4), ([], []), ([8], [5, 6, 7]), ([5, 6, 7], [8])]
MAPS = {"output_attentions": True, "output_hidden_states": True}
NO_DROPOUT = {"embedding_dropout": 0.0, "hidden_dropout": 0.0, "classifier_dropout": 0.0}


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> Iterator[None]:
    """What one test compiled counts towards the limit of another's recompilations."""
    yield
    torch._dynamo.reset()


def model_of(changes: dict[str, Any], *, pairs: bool = True) -> DSAForSequenceClassification:
    kind = DSAForNLI if pairs else DSAForSequenceClassification
    model: DSAForSequenceClassification = randomize(
        kind(small_config(**changes, sentences_per_example=1 + pairs))
    ).eval()
    return model


def batch_of(rows: Sequence[Pair], **padding: Any) -> Batch:
    """`premise [SEP] hypothesis`"""
    ids, mask = pad_rows([join_pair(*pair) for pair in rows], **padding)
    return {"input_ids": ids, "attention_mask": mask}


def with_types(batch: Batch) -> Batch:
    """`token_type_ids` as the tokenizer gives them."""
    return {**batch, "token_type_ids": ((batch["input_ids"] == SEP).cumsum(1) > 0).long() * batch["attention_mask"]}


def batches() -> list[Batch]:
    """Batches of several shapes, with padding left, right and on both sides."""
    rest = batch_of([*EXAMPLE_PAIRS, *OTHER_ROWS], left=4)
    return [batch_of(EXAMPLE_PAIRS, left=[0, 3, 1, 2, 0, 4], right=1), batch_of(OTHER_ROWS, right=2), rest]


def labels_of(batch: Batch) -> Tensor:
    return torch.arange(len(batch["input_ids"])) % 3


def assert_same(found: Any, expected: Any) -> None:
    """Outputs are equal up to the order of sums."""
    assert found.keys() == expected.keys()
    torch.testing.assert_close(dict(found), dict(expected), rtol=1e-4, atol=1e-5)


def silence(layer: str, model: DSAForSequenceClassification) -> None:
    """Make the samples equal to their mean: no two ways of packing draw the same noise."""
    with torch.no_grad():
        model.dsa.get_parameter(f"pooling.{layer}.weight").zero_()
        model.dsa.get_parameter(f"pooling.{layer}.bias").fill_(-30.0)


# torch.compile


def check_prediction(model: DSAForSequenceClassification, given: Sequence[Batch], **options: Any) -> None:
    if model.config.num_prediction_samples:
        silence("log_std", model)
    compiled = torch.compile(model, fullgraph=True, dynamic=True, **options)
    for batch in given:
        asked = {**batch, **MAPS, "labels": labels_of(batch)}
        with torch.no_grad():
            expected = model(**asked)  # first: the loss writes problem_type, and a compiled model would be traced again
            assert_same(compiled(**asked), expected)


@pytest.mark.slow
@pytest.mark.parametrize("system", COMPILED)
def test_every_system_predicts_the_same_when_compiled(system: str) -> None:
    check_prediction(model_of(COMPILED[system]), [*map(with_types, batches()[1:])], backend="eager")


@pytest.mark.slow
@pytest.mark.parametrize("changes", OF_SENTENCES.values(), ids=OF_SENTENCES.keys())
def test_a_classifier_of_sentences_predicts_the_same_when_compiled(changes: dict[str, Any]) -> None:
    check_prediction(model_of(changes, pairs=False), batches(), backend="eager")


@pytest.mark.slow
def test_the_default_backend_predicts_the_same() -> None:
    check_prediction(model_of({}), batches())


def check_training(model: DSAForSequenceClassification, backend: str) -> None:
    """Gradients, and what the model counts, after a step on each batch."""
    model.train()
    if model.config.pooling == "variational":
        silence("posterior_log_std", model)
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=backend)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for batch in batches():
        found = []
        for way in (model, compiled):
            model.load_state_dict(before)
            model.zero_grad()
            outputs = way(**batch, labels=labels_of(batch))
            outputs.loss.backward()
            gradients = {name: weight.grad for name, weight in model.named_parameters()}
            buffers = {name: value.clone() for name, value in model.named_buffers()}
            found.append((dict(outputs), gradients, buffers))
        torch.testing.assert_close(found[1], found[0], rtol=1e-8, atol=1e-10)
        if model.config.pooling == "variational":
            assert torch.all(found[1][0]["kl"][: len(EXAMPLE_PAIRS)] >= 0)
            assert found[1][2]["dsa.pooling.step"] == before["dsa.pooling.step"] + 1


@pytest.mark.slow
def test_a_compiled_model_has_the_same_gradients() -> None:
    check_training(model_of({**NO_DROPOUT, "deduplicate_sentences": False}).double(), "eager")


@pytest.mark.slow
@pytest.mark.parametrize("changes", BACKWARD.values(), ids=BACKWARD.keys())
def test_every_layer_has_the_same_gradients_when_compiled(changes: dict[str, Any]) -> None:
    more = {**NO_DROPOUT, "deduplicate_sentences": False, "freeze_embeddings": False, "kl_warmup_steps": 5}
    check_training(model_of(changes | more).double(), "aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("changes", WITH_DROPOUT.values(), ids=WITH_DROPOUT.keys())
def test_a_system_learns_with_dropout_when_compiled(changes: dict[str, Any]) -> None:
    model = DSAForNLI(small_config(**changes, sentences_per_example=2, token_dropout=0.05)).train()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="eager")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    batch = with_types(batch_of(EXAMPLE_PAIRS, right=1))
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = compiled(**batch, labels=labels_of(batch)).loss
        loss.backward()
        learning = [weight.grad for weight in model.parameters() if weight.requires_grad]
        assert len(learning) == len([*model.parameters()]) - 1  # all but the word table
        assert all(gradient.isfinite().all() for gradient in learning)
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])


@pytest.mark.slow
def test_dropout_of_a_compiled_model_has_its_rate() -> None:
    """An example of many equal tokens without an encoder: how many of them are dropped shows in the hidden states."""
    model = model_of({"encoder": "none", "embedding_dropout": 0.25}, pairs=False).train()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="eager")
    tokens = compiled(torch.full((4, 2000), 7), output_hidden_states=True).hidden_states[0]
    table = model.get_input_embeddings().weight[7]
    dropped = (tokens == 0).float().mean()
    assert dropped.item() == pytest.approx(0.25, abs=0.01)
    torch.testing.assert_close(tokens[tokens != 0], (table.expand_as(tokens) / 0.75)[tokens != 0])


def test_torch_compiles_no_lstm_in_one_graph() -> None:
    with pytest.raises(Unsupported, match="Dynamo does not support RNN, GRU, or LSTM"):
        torch.compile(model_of(RECURRENT), fullgraph=True, backend="eager")(**batches()[0])


def test_a_compiled_model_refuses_a_mask_of_another_shape() -> None:
    batch = batches()[0]
    with pytest.raises(ValueError, match="attention_mask must have the shape"):
        torch.compile(model_of({}), backend="eager")(**batch | {"attention_mask": batch["attention_mask"][:1]})


@pytest.mark.filterwarnings("ignore")  # torch's, on tracing
def test_a_trace_is_refused() -> None:
    with pytest.raises(ValueError, match="keep the lengths of its example's sentences"):
        torch.jit.trace(model_of(RECURRENT), example_kwarg_inputs=batches()[0], strict=False)


@pytest.mark.slow
def test_an_lstm_is_compiled_around() -> None:
    model = model_of(RECURRENT)
    compiled = torch.compile(model, dynamic=True, backend="aot_eager")
    for batch in batches():
        with torch.no_grad():
            assert_same(compiled(**batch, **MAPS), model(**batch, **MAPS))


# torch.export


def export(model: DSAForSequenceClassification, batch: Batch, *, tokens: Any = Dim.AUTO) -> ExportedProgram:
    """The program for any number of examples and, unless it is said otherwise, of tokens."""
    if model.config.num_prediction_samples:
        silence("log_std", model)
    shapes = {name: {0: Dim.AUTO, 1: tokens} for name in batch} | dict.fromkeys(MAPS)
    with torch.no_grad():
        return torch.export.export(model, (), batch | MAPS, dynamic_shapes=shapes, strict=False)


def check_program(program: ExportedProgram, model: DSAForSequenceClassification, given: Sequence[Batch]) -> None:
    run = program.module()
    for batch in given:
        with torch.no_grad():
            assert_same(run(**batch, **MAPS), model(**batch, **MAPS))


def saved_and_loaded(program: ExportedProgram) -> ExportedProgram:
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    return torch.export.load(buffer)


@pytest.mark.slow
def test_an_exported_model_is_the_same_at_other_shapes() -> None:
    model = model_of(COMPILED["variational"])
    first, *others = batches()
    check_program(saved_and_loaded(export(model, first)), model, [first, *others, batch_of(OTHER_ROWS[:1])])


ONNX = {
    "pairwise encoder, static": COMPILED["pairwise encoder"] | COMPILED["static"],
    "no encoder, pairwise": BACKWARD["no encoder, pairwise"],
}
# What else is exported: `test_an_exported_model_is_the_same_at_other_shapes` has "variational", PROPERTY_SYSTEMS have
# five, and ONNX files are made of such exports: those here, and those of Table 1's other systems.
EXPORTED_ELSEWHERE = (
    *("variational", "dynamic", "pairwise encoder", "structured", "kim_cnn", "variational by position"),
    *("disan", "distance-san", "static", "pairwise"),
)


@pytest.mark.slow
@pytest.mark.parametrize("system", [name for name in COMPILED if name not in EXPORTED_ELSEWHERE])
def test_every_exported_system_is_the_same_at_other_shapes(system: str) -> None:
    model = model_of(COMPILED[system])
    given = [with_types(batch) for batch in [*batches(), batch_of(OTHER_ROWS[:1])]]
    program = export(model, given[0])
    check_program(saved_and_loaded(program), model, given)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")  # torch's, on its own LSTM
def test_an_lstm_is_exported_for_one_number_of_tokens() -> None:
    model = model_of(RECURRENT)
    batch = batches()[0]
    with pytest.raises(ValueError, match="a recurrent encoder is exported for one number of tokens") as caught:
        export(model, batch)
    assert "\n" not in str(caught.value)
    program = export(model, batch, tokens=Dim.STATIC)
    parts = [{name: value[rows] for name, value in batch.items()} for rows in (slice(6), slice(1, 4), slice(2, 3))]
    check_program(saved_and_loaded(program), model, parts)


# Any batch: the two ways of packing a batch give the same


@cache
def exported(system: str, per_row: int) -> tuple[DSAForSequenceClassification, ExportedProgram]:
    model = model_of(PROPERTY_SYSTEMS[system], pairs=per_row == 2)
    return model, saved_and_loaded(export(model, with_types(batches()[0])))


PROPERTY_SYSTEMS: dict[str, dict[str, Any]] = {
    "dense CNN, dynamic": {"num_attention_heads": 2, "kernel_sizes": [1, 5]},
    "pairwise, structured": {**GRAPH_CASES["pairwise encoder"], "pooling": "structured"},
    "kim_cnn, variational by position": {
        **GRAPH_CASES["kim_cnn"],
        **GRAPH_CASES["variational by position"],
        "max_sentence_tokens": 3,
    },
}


@st.composite
def random_batches(draw: st.DrawFn) -> Batch:
    """Any ids, holes in the mask and token types: more than a tokenizer would ever give."""
    rows, tokens = draw(st.integers(1, 5)), draw(st.integers(1, 9))

    def grid(values: st.SearchStrategy[int]) -> Tensor:
        row = st.lists(values, min_size=tokens, max_size=tokens)
        return torch.tensor(draw(st.lists(row, min_size=rows, max_size=rows)))

    ids = grid(st.sampled_from([PAD, SEP, *range(FIRST_TOKEN, FIRST_TOKEN + 4), VOCABULARY - 1]))
    return {"input_ids": ids, "attention_mask": grid(st.integers(0, 1)), "token_type_ids": grid(st.integers(0, 1))}


@pytest.mark.slow
@pytest.mark.parametrize(("system", "per_row"), zip(PROPERTY_SYSTEMS, (2, 1, 2), strict=True))
@settings(max_examples=20)
@given(batch=random_batches())
@example(batch=with_types(batches()[0]))
@example(batch=with_types(batches()[1]))
@example(batch=with_types(batches()[2]))
@example(batch=with_types(batch_of(OTHER_ROWS[:1])))
def test_fixed_shapes_and_the_ordinary_packing_agree(system: str, per_row: int, batch: Batch) -> None:
    model, program = exported(system, per_row)
    check_program(program, model, [batch])


# ONNX


class Logits(nn.Module):
    """What a server asks for."""

    def __init__(self, model: DSAForSequenceClassification) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        logits: Tensor = self.model(input_ids, attention_mask, token_type_ids).logits
        return logits


@pytest.mark.slow
@pytest.mark.parametrize("system", ONNX)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
def test_onnxruntime_gives_the_same_logits(system: str, tmp_path: Path) -> None:
    model = model_of(ONNX[system])
    first, *others = map(with_types, [*batches(), batch_of(OTHER_ROWS[:1])])
    file = tmp_path / "model.onnx"
    torch.onnx.export(
        Logits(model).eval(),
        tuple(first.values()),
        file,
        input_names=[*first],
        output_names=["logits"],
        dynamic_shapes=tuple({0: "batch", 1: "tokens"} for _ in first),
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    session = onnxruntime.InferenceSession(file)
    for batch in (first, *others):
        (logits,) = session.run(None, {name: value.numpy() for name, value in batch.items()})
        with torch.no_grad():
            torch.testing.assert_close(torch.from_numpy(logits), model(**batch).logits, rtol=1e-4, atol=1e-5)
