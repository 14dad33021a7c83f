"""Write a model as ONNX files, fp32 and int8, which onnxruntime serves where there is no torch.

A file is compared with the model itself at many shapes before it gets its name. `OnnxModel` is the way to use it.
"""

import copy
import io
import json
import warnings
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import torch
from safetensors.torch import save
from torch import Tensor, nn

from modeling_dsa.batching_dsa import Vectors, unit_vectors
from modeling_dsa.configuration_dsa import DSAConfig
from modeling_dsa.encoders_dsa import ENCODERS
from modeling_dsa.files.loading import load_model
from modeling_dsa.files.replacing import filled_folder
from modeling_dsa.modeling_dsa import DSAPreTrainedModel
from modeling_dsa.options_dsa import option_help
from modeling_dsa.pooled_dsa import Pooled
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.prediction.logits import ScoreFunction, score_function

from .layers import ONNX_ENCODERS, ONNX_POOLINGS, LookedUpTokenOverlap, RectangleWordShortcut
from .packing import RectanglePacking, pack_for_onnx
from .quantization import quantize as quantize_file
from .session import FILE, INPUTS, METADATA, QUANTIZED_FILE, Arrays, data_file, open_session
from .weights import weights_hash

LARGEST_FILE = 2**31 - 2**20  # what protobuf takes, with some room for the graph
LOWEST_COSINE = 0.95  # of an int8 vector and the model's own, the mean over random sentences
LOWEST_AGREEMENT = 0.8  # share of equal answers in int8, over random examples; the shipped classifiers have 0.98 to 1
_INSTEAD = "leave int8 out, and the fp32 file alone is written."  # for neither is where one is refused


def export_onnx(
    model: DSAPreTrainedModel | str | PathLike[str],
    folder: str | PathLike[str],
    *,
    quantize: bool = False,
    memory_mapped: bool = False,
) -> list[Path]:
    """Write `model.onnx` and, when asked, `model_quantized.onnx`.

    Inputs are `input_ids`, `attention_mask` and `token_type_ids`, int64 of any (batch, tokens) from (1, 1); a file is
    equal to the model at all of them. Outputs are `pooler_output` (batch, m * d_o), `second_pooler_output` where the
    model reads pairs, and first of all `logits` (batch, num_labels) of a classifier. Last comes `attention`, where the
    graph has its weights at hand (single DSA and static attention for instance, and no model with an LSTM): those of
    the last iteration over the tokens of each sentence, 0 behind its end, (sentences, heads, tokens of the longest
    sentence); of pairs the two sentences follow each other. The metadata tell the classes, how logits become their
    probabilities, the model's name, the config, and the hash of the weights: [`OnnxModel`] refuses the file in a folder
    that holds others. No sentence sees its batch, in the int8 file either.

    Args:
        model: A model or classifier, or the folder or Hub id of one. It is not changed.
        folder: Where the files go, on the Hub the folder `onnx` of a repository. Old files of both names go.
        quantize: Write the int8 file too.
        memory_mapped: Keep the tables in a file of their own beside each (`model.onnx_data`), which onnxruntime maps
            into memory: processes on one machine share it. Without it each file is complete, as a browser needs it.

    Returns:
        The files.

    Raises:
        ValueError: The model cannot be exported, or what came out is not equal to it, or in int8 not close.
    """
    if not isinstance(model, nn.Module):
        model = load_model(model)
    config = model.config
    if config.num_prediction_samples > 0:
        raise ValueError(
            f"The model draws {config.num_prediction_samples} random samples for each prediction, which a file cannot "
            "repeat: set num_prediction_samples=0 in its config, which predicts with their mean."
        )
    if POOLINGS[config.pooling].is_unrolled:
        raise ValueError(
            f"An ONNX file cannot hold pooling '{config.pooling}', which takes as many steps as the longest sentence "
            "has tokens."
        )
    size = sum(weight.numel() * 4 for weight in model.parameters())
    if size > LARGEST_FILE:
        raise ValueError(f"The model has {size / 1e9:.1f} GB of weights; an ONNX file holds 2 GB: use fewer words.")
    reference: Any = copy.deepcopy(model).cpu().float().eval()
    reference._hint_at_pairs = lambda *_: None  # the batches that compare model and file are no texts
    folder = Path(folder)
    with filled_folder(folder) as beside:
        files = [beside / FILE]
        _write(reference, files[0], _hash(model))
        _check_equal(reference, files[0])
        if quantize:
            files.append(beside / QUANTIZED_FILE)
            quantize_file(reference, *files)
            _check_close(reference, files[1])
        if memory_mapped:
            for file in files:
                _move_tables(file)
        written = sorted(entry.name for entry in beside.iterdir())
        for name in (QUANTIZED_FILE, data_file(FILE), data_file(QUANTIZED_FILE)):  # they may be an older model's
            (folder / name).unlink(missing_ok=True)
    return [folder / name for name in written]


class _Served(nn.Module):
    """What a file computes."""

    def __init__(self, model: DSAPreTrainedModel) -> None:
        super().__init__()
        self.model = copy.deepcopy(model)
        base: Any = self.model.base_model
        config = model.config
        # By name: a model with the code of its folder has classes of its own.
        encoder, pooling = ENCODERS[config.encoder], POOLINGS[config.pooling]
        if encoder in ONNX_ENCODERS:
            base.encoder = ONNX_ENCODERS[encoder](base.encoder)
        in_rectangles = encoder.takes_rectangle_packing and pooling.takes_rectangle_packing
        if in_rectangles:
            base._pack = lambda ids, mask, types, _: pack_for_onnx(config, ids, mask, types)
            if pooling in ONNX_POOLINGS:
                base.pooling = ONNX_POOLINGS[pooling](base.pooling)
            if base.shortcut is not None:
                base.shortcut = RectangleWordShortcut(base.shortcut)
        features = getattr(self.model, "pair_features", None)
        if features is not None and features.overlap is not None:
            features.overlap = LookedUpTokenOverlap(features.overlap, base.get_input_embeddings())
        base._normalize = lambda encoded: _normalize(encoded) * config.token_norm
        self.vectors: list[Tensor] = []
        self.attention: list[Tensor] = []
        # A classifier does not return the vectors that it reads.
        base.register_forward_hook(self._keep)
        self.has_attention = in_rectangles and pooling.has_attention and not pooling.attention_is_extra
        if self.has_attention:
            base.pooling.register_forward_hook(self._keep_attention)
        self.is_classifier = base is not self.model

    def _keep(self, _module: nn.Module, _inputs: Any, outputs: Any) -> None:
        vectors = (outputs.pooler_output, outputs.second_pooler_output)
        self.vectors = [vector for vector in vectors if vector is not None]

    def _keep_attention(self, _pooling: nn.Module, _inputs: Any, pooled: Pooled) -> None:
        packing = cast(RectanglePacking, pooled.packing)
        last = pooled.attentions[-1]  # (U, heads, longest), or packed (heads, N)
        self.attention = [last if last.ndim == 3 else packing.lay_out(last.t()).transpose(1, 2)]

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, ...]:
        """(batch, tokens) three times -> the outputs by `output_names`"""
        # A config may ask for all of these. Only the encoder knows the last one; a classifier sets it itself.
        options = {"return_dict": True, "output_attentions": False, "output_hidden_states": False}
        options |= {} if self.is_classifier else {"output_tokens": False}
        outputs = self.model(input_ids, attention_mask, token_type_ids, **options)
        return (*([outputs.logits] if self.is_classifier else []), *self.vectors, *self.attention)

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs, in order."""
        second = ["second_pooler_output"] if self.model.config.sentences_per_example == 2 else []
        attention = ["attention"] if self.has_attention else []
        return [*(["logits"] if self.is_classifier else []), "pooler_output", *second, *attention]


def _normalize(tokens: Tensor) -> Tensor:
    """`F.normalize`, of which the exporter makes an operator that is slow. (N, d_c) -> (N, d_c)"""
    return tokens / (tokens * tokens).sum(1, keepdim=True).clamp(min=1e-12).sqrt()


def _hash(model: DSAPreTrainedModel) -> str:
    """The hash of the file that `save_pretrained` writes."""
    return weights_hash(io.BytesIO(save({name: weight.contiguous() for name, weight in model.state_dict().items()})))


def _write(model: DSAPreTrainedModel, file: Path, weights: str) -> None:
    served = _Served(model).eval()
    example = next(_batches(model))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of torch, on its own code
        program = torch.onnx.export(
            served,
            tuple(torch.from_numpy(example[name]) for name in INPUTS),
            dynamo=True,
            verbose=False,
            input_names=list(INPUTS),
            output_names=served.output_names,
            dynamic_shapes=tuple({0: "batch", 1: "tokens"} for _ in INPUTS),
        )
    assert program is not None  # as it is with dynamo
    written = program.model_proto
    graph = written.graph
    for part in (graph, *graph.node, *graph.value_info, *graph.initializer, *graph.input, *graph.output):
        del part.metadata_props[:]  # stack traces, with the paths of this machine
    config = model.config
    about: dict[str, Any] = {
        "name": Path(str(config.name_or_path)).name or type(model).__name__,
        "weights_sha256": weights,
        "vocab_size": config.vocab_size,
    }
    about |= _described(config)
    if served.is_classifier:
        about["labels"] = config.class_names
        about["scores"] = score_function(config)
    onnx.helper.set_model_props(written, {METADATA: json.dumps(about)})
    onnx.checker.check_model(written, full_check=True)
    onnx.save(written, file)


def _described(config: DSAConfig) -> dict[str, Any]:
    """What a config says, and what its absence from a config.json means."""
    names = {*option_help(type(config)), "id2label", "problem_type", "pad_token_id", "sep_token_id"}
    names -= {"fold_embeddings"}
    defaults = type(config)()
    return {
        part: {name: getattr(of, name) for name in sorted(names)}
        for part, of in (("config", config), ("defaults", defaults))
    }


def _move_tables(file: Path) -> None:
    """Move what is large in an ONNX file into a file beside it."""
    tables = file.with_name(data_file(file.name))
    onnx.save(onnx.load(file), file, save_as_external_data=True, location=tables.name)
    if tables.exists():  # onnx lets nobody else read it
        tables.chmod(file.stat().st_mode)


def _batches(model: DSAPreTrainedModel) -> Iterator[Arrays]:
    """Random batches of many shapes: padding on both sides, empty sentences and examples, marked and unmarked pairs."""
    config, draw = model.config, np.random.default_rng(0)
    for examples, longest in [(5, 9), (1, 1), (2, 60), (3, 5), (4, 17), (6, 30), (7, 3), (1, 12), (7, 40)]:
        left = draw.integers(0, 3, examples)
        ids = np.full((examples, longest + 3), config.pad_token_id or 0)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, start in enumerate(left):
            length = draw.integers(0, longest + 1) if row else longest
            ids[row, start : start + length] = draw.integers(0, config.vocab_size, length)
            mask[row, start : start + length] = 1
            if config.sentences_per_example == 2 and length:
                middle = start + draw.integers(0, length)
                if config.sep_token_id is not None:
                    ids[row, middle] = config.sep_token_id
                if row % 3 < 2:
                    types[row, middle + 1 : start + length] = 1
                if config.compares_tokens and row % 2 == 0:  # random ids alone share none
                    shared = min(middle - start, start + length - middle - 1)
                    ids[row, middle + 1 : middle + 1 + shared] = ids[row, start : start + shared]
        yield dict(zip(INPUTS, (ids, mask, types), strict=True))
    yield {name: np.zeros((2, 3), np.int64) for name in INPUTS}  # not a single token


@torch.no_grad()
def _compare(model: DSAPreTrainedModel, file: Path) -> Iterator[tuple[str, tuple[int, ...], Any, Any]]:
    """Name of an output, shape of the batch, what the file gives and what the model gives."""
    session = open_session(file)
    names = [output.name for output in session.get_outputs()]
    for batch in _batches(model):
        expected = _outputs(model, {name: torch.from_numpy(value) for name, value in batch.items()})
        for name, found in zip(names, session.run(names, batch), strict=True):
            yield name, batch[INPUTS[0]].shape, found, expected[name].numpy()


def _outputs(model: DSAPreTrainedModel, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """A model's outputs by the names that they have in a file."""
    outputs = dict(model.base_model(**batch, output_attentions=True, return_dict=True))
    if outputs.get("attentions"):
        index, packing = pack_for_onnx(model.config, *(batch[name] for name in INPUTS))
        by_token = outputs["attentions"][-1].transpose(1, 2).flatten(0, 1)  # (batch * tokens, heads)
        outputs["attention"] = packing.lay_out(by_token[index]).transpose(1, 2)
    return outputs if model.base_model is model else outputs | {"logits": model(**batch, return_dict=True).logits}


def _check_equal(model: DSAPreTrainedModel, file: Path) -> None:
    for name, shape, found, expected in _compare(model, file):
        if not np.allclose(found, expected, rtol=1e-4, atol=1e-5):
            raise ValueError(
                f"The exported file is not equal to the model: {name} differs by "
                f"{np.abs(found - expected).max():.1e} for a batch of {shape[0]} x {shape[1]}; it was not kept."
            )


def _check_close(model: DSAPreTrainedModel, file: Path) -> None:
    """Refuse an int8 file with numbers that are not finite, vectors of another direction or other answers."""
    batches: dict[str, list[tuple[Any, Any]]] = {}
    for name, _, found, expected in _compare(model, file):
        if not np.isfinite(found).all():
            raise ValueError(f"In int8 this model's {name} has numbers that are not finite: {_INSTEAD}")
        batches.setdefault(name, []).append((found, expected))
    batches.pop("attention", None)  # it has another shape in each
    outputs = {name: [np.concatenate(side) for side in zip(*each, strict=True)] for name, each in batches.items()}
    logits = outputs.pop("logits", None)
    for name, (found, expected) in outputs.items():
        cosine = _mean_cosine(found, expected)
        if cosine < LOWEST_COSINE:
            raise ValueError(
                f"In int8 this model's {name} has a mean cosine of {cosine:.3f} with its own; at least "
                f"{LOWEST_COSINE} is asked: {_INSTEAD}"
            )
    if logits is None:
        return
    # The scales of the activations come from sentences that all have tokens.
    is_whole = np.all([expected.any(axis=1) for _, expected in outputs.values()], axis=0)  # (examples,)
    found, expected = logits
    agreement = _agreement(found[is_whole], expected[is_whole], score_function(model.config))
    if agreement < LOWEST_AGREEMENT:
        raise ValueError(
            f"In int8 this model's logits give its own answer to {agreement:.0%} of random examples; at least "
            f"{LOWEST_AGREEMENT:.0%} is asked: {_INSTEAD}"
        )


def _mean_cosine(found: Vectors, expected: Vectors) -> float:
    """The mean over sentences, without those that have zeros in both; zeros in one count as 0. (sentences, width)"""
    is_vector = found.any(axis=1) | expected.any(axis=1)  # (sentences,)
    cosines = (unit_vectors(found) * unit_vectors(expected)).sum(axis=1)  # (sentences,)
    return float(cosines[is_vector].mean()) if is_vector.any() else 1.0


def _agreement(found: Vectors, expected: Vectors, function: ScoreFunction) -> float:
    """The share of classes that are the same, of labels that apply or not, or of numbers to a tenth of their range.

    (examples, num_labels)
    """
    if len(expected) == 0:
        return 1.0
    if function == "softmax":
        is_same = found.argmax(axis=1) == expected.argmax(axis=1)  # (examples,)
    elif function == "sigmoid":
        is_same = (found > 0) == (expected > 0)  # (examples, num_labels)
    else:
        is_same = np.abs(found - expected) <= np.ptp(expected, axis=0) / 10  # (examples, num_labels)
    return float(is_same.mean())
