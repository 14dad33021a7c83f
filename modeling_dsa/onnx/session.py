"""Use an exported model with onnxruntime: sentences in, vectors or classes out.

This file needs numpy, onnxruntime, tokenizers and, for models on the Hub, huggingface_hub. Copied out of the package it
works alone, where there is no torch.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer

FOLDER = "onnx"
FILE, QUANTIZED_FILE = "model.onnx", "model_quantized.onnx"  # as optimum and transformers.js call them
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
METADATA = "dsa"  # what the file says of itself, as JSON

Text = str | tuple[str, str] | Mapping[str, str]


def score_function(problem_type: str | None, num_labels: int) -> str:
    """How logits become scores, as in transformers' pipeline: "softmax", "sigmoid" or "none"."""
    if problem_type == "regression":
        return "none"
    return "sigmoid" if problem_type == "multi_label_classification" or num_labels == 1 else "softmax"


class OnnxModel:
    """A model of a folder or of the Hub, run by onnxruntime.

    `OnnxModel.from_pretrained("org/name").encode(["A man is asleep."])`
    """

    def __init__(
        self, file: str | PathLike[str], tokenizer: str | PathLike[str], *, threads: int | None = None
    ) -> None:
        """Load a model.

        Args:
            file: As `export_onnx` wrote it.
            tokenizer: The model's tokenizer.json.
            threads: How many batches are computed at a time, each by one thread; default: one for each core.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not one of `export_onnx`.
        """
        for path in (file, tokenizer):
            if not Path(path).is_file():
                raise FileNotFoundError(f"There is no file {path}; `dsa onnx FOLDER` writes a model's ONNX file.")
        self.threads = threads or os.cpu_count() or 1
        options = onnxruntime.SessionOptions()
        # Two threads on one batch wait for each other most of the time; on two batches they are twice as fast as one.
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        about = self.session.get_modelmeta().custom_metadata_map.get(METADATA)
        if about is None:
            raise ValueError(f"{file} does not say what it is: give a file that `dsa onnx` wrote.")
        self.about: dict[str, Any] = json.loads(about)
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    @classmethod
    def from_pretrained(
        cls,
        name: str | PathLike[str],
        *,
        quantized: bool = False,
        threads: int | None = None,
        revision: str | None = None,
    ) -> "OnnxModel":
        """Load a model of a folder or of the Hub.

        Args:
            name: Folder of a model, or its id on the Hub.
            quantized: Take the int8 file, which is smaller and faster and a little less exact.
            threads: As for the class.
            revision: Branch, tag or commit on the Hub.

        Raises:
            FileNotFoundError: The folder has no such file.
            OSError: The Hub has no such file, or cannot be reached.
        """
        inside = f"{FOLDER}/{QUANTIZED_FILE if quantized else FILE}"
        if Path(name).is_dir():
            files = [Path(name) / inside, Path(name) / "tokenizer.json"]
        else:
            from huggingface_hub import hf_hub_download

            files = [Path(hf_hub_download(str(name), path, revision=revision)) for path in (inside, "tokenizer.json")]
        return cls(*files, threads=threads)

    @property
    def labels(self) -> list[str]:
        """Names of the classes; none where the model is no classifier."""
        return list(self.about.get("labels", []))

    def encode(
        self,
        sentences: str | Sequence[str],
        *,
        batch_size: int = 64,
        normalize: bool = False,
        dtype: Literal["float32", "float16"] = "float32",
        progress: bool = False,
    ) -> npt.NDArray[Any]:
        """Vectors of sentences, which do not depend on what else is encoded.

        Args:
            sentences: One sentence, or several.
            batch_size: Sentences that are computed at a time.
            normalize: Give the vectors length 1; that of a sentence without words stays 0.
            dtype: Of the vectors.
            progress: Show a bar.

        Returns:
            (sentences, m * d_o), or (m * d_o,) for one sentence.

        Raises:
            ValueError: One of `sentences` is no string, or an option has no such value.
        """
        if dtype not in ("float32", "float16"):
            raise ValueError(f"There are no vectors of dtype {dtype!r} here: give float32 or float16.")
        several = [sentences] if isinstance(sentences, str) else list(sentences)
        width = next(output.shape[1] for output in self.session.get_outputs() if output.name == "pooler_output")
        vectors: npt.NDArray[Any] = np.zeros((len(several), width), dtype)
        for numbers, found in self._run(several, "pooler_output", batch_size, progress):
            if normalize:
                found = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
            vectors[numbers] = found
        shape = vectors.shape[1:] if isinstance(sentences, str) else vectors.shape
        return vectors.reshape(shape)

    def classify(self, texts: Text | Sequence[Text], *, batch_size: int = 64) -> list[dict[str, Any]]:
        """The most likely class of each text or pair, as transformers' "text-classification" gives it.

        Args:
            texts: A text, a pair, as a tuple or as {"text": ..., "text_pair": ...}, or a list of either.
            batch_size: Texts that are computed at a time.

        Returns:
            {"label": its name, "score": its probability} for each.

        Raises:
            ValueError: The model is no classifier, one of `texts` is no text, or `batch_size` is below 1.
        """
        if not self.labels:
            raise ValueError(f"{self.about['name']} is no classifier: it has vectors only, by encode().")
        several = [texts] if isinstance(texts, str | tuple | Mapping) else list(texts)
        found: list[dict[str, Any]] = [{}] * len(several)
        for numbers, logits in self._run([_as_input(text) for text in several], "logits", batch_size, False):
            for number, scores in zip(numbers, self._scores(logits), strict=True):
                best = int(scores.argmax())
                found[number] = {"label": self.labels[best], "score": float(scores[best])}
        return found

    def _scores(self, logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(batch, num_labels) -> the same"""
        if self.about["scores"] == "softmax":
            powers = np.exp(logits - logits.max(axis=1, keepdims=True))
            shares: npt.NDArray[Any] = powers / powers.sum(axis=1, keepdims=True)
            return shares
        if self.about["scores"] == "sigmoid":
            with np.errstate(over="ignore"):  # exp(100) is as good as infinity here
                sigmoid: npt.NDArray[Any] = 1 / (1 + np.exp(-logits))
            return sigmoid
        return logits

    def _run(
        self, texts: Sequence[str | tuple[str, str]], output: str, batch_size: int, progress: bool
    ) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Numbers of the texts of each batch, and one output for them; texts of similar lengths stand together."""
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
        for place, text in enumerate(texts):
            if not all(isinstance(part, str) for part in (text if isinstance(text, tuple) else [text])):
                raise ValueError(f"The text at position {place} is {text!r}, which is no string.")
        encodings = self.tokenizer.encode_batch_fast(list(texts))
        lengths = np.array([len(encoding) for encoding in encodings], np.int64)
        order = lengths.argsort(kind="stable")
        size = min(batch_size, max(1, -(-len(order) // self.threads)))

        def compute(start: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
            numbers = order[start : start + size]
            inside = np.arange(max(1, lengths[numbers[-1]])) < lengths[numbers, None]  # (batch, words)
            batch = dict.fromkeys(INPUTS, inside.astype(np.int64))
            fields = (("input_ids", "ids", self.about["pad_token_id"]), ("token_type_ids", "type_ids", 0))
            for name, field, padding in fields:
                values = [value for number in numbers for value in getattr(encodings[number], field)]
                batch[name] = np.full(inside.shape, padding, np.int64)
                batch[name][inside] = values
            return numbers, self.session.run([output], batch)[0]

        starts = range(0, len(order), size)
        if len(starts) == 1:
            yield compute(0)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            batches: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = pool.map(compute, starts)
            if progress:
                from tqdm import tqdm

                batches = tqdm(batches, total=len(starts), unit="batch")
            yield from batches


def _as_input(text: Text) -> str | tuple[str, str]:
    """What the tokenizer takes."""
    if isinstance(text, Mapping):
        return (text["text"], text["text_pair"]) if "text_pair" in text else text["text"]
    return text
