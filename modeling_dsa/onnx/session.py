"""Use an exported model with onnxruntime: sentences in, vectors or classes out.

It works where there is neither torch nor transformers: numpy, onnxruntime, tokenizers, tqdm, wrapt and huggingface_hub
are enough.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from modeling_dsa.batching_dsa import (
    Batch,
    Text,
    Vectors,
    VectorType,
    check_ordered,
    check_token_ids,
    compute_in_batches,
    encode_sentences,
)
from modeling_dsa.command.messages import one_line
from modeling_dsa.encoding.caching_tokenizer import text_tokenizer
from modeling_dsa.encoding.sentence_transformers_files import warn_of_other_vectors
from modeling_dsa.files.model_folder import CONFIG, read_config
from modeling_dsa.files.tokenizer_patterns import refuse_unknown_patterns
from modeling_dsa.prediction.logits import logits_to_scores
from modeling_dsa.text.special_tokens import SEP

from .weights import weights_hash

FOLDER = "onnx"
FILE, QUANTIZED_FILE = "model.onnx", "model_quantized.onnx"  # as optimum and transformers.js call them
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
BATCH_SIZE = 64  # On one thread 128 is 3 % quicker; with these a list of some hundred sentences keeps several busy.
METADATA = "dsa"  # what the file says of itself, as JSON

TextInput: TypeAlias = Text | Mapping[str, str]
Arrays: TypeAlias = dict[str, Vectors]


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
            ValueError: A file is broken or not one of `export_onnx`, the tokenizer is another model's, or `threads` is
                below 1.
        """
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}.")
        for path in (file, tokenizer):
            if not Path(path).is_file():
                raise FileNotFoundError(
                    f"There is no file {path}; `dsa onnx FOLDER` writes a model's ONNX file, with --int8 both."
                )
        self.threads = threads or os.cpu_count() or 1
        self.session = open_session(file)
        about = self.session.get_modelmeta().custom_metadata_map.get(METADATA)
        if about is None:
            raise ValueError(f"{file} does not say what it is: give a file that `dsa onnx` wrote.")
        self.about: dict[str, Any] = json.loads(about)
        refuse_unknown_patterns(Path(tokenizer))
        try:
            self.tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # Rust code's have no class of their own
            raise ValueError(f"{tokenizer} is no tokenizer ({one_line(error):.200}): save the model again.") from error
        check_token_ids(self.tokenizer, self.about["vocab_size"])
        self._text_tokenizer = text_tokenizer(self.tokenizer)

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
            ValueError: The folder holds the weights or the config of another model.
            OSError: The Hub has no such file, or cannot be reached.
        """
        inside = f"{FOLDER}/{QUANTIZED_FILE if quantized else FILE}"
        if os.path.isdir(name):  # noqa: PTH112  (pathlib's fails for what is too long for a name)
            model = cls(Path(name) / inside, Path(name) / "tokenizer.json", threads=threads)
            model._check_folder(Path(name))
            warn_of_other_vectors(name)
            return model
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

        files = [hf_hub_download(str(name), path, revision=revision) for path in (inside, "tokenizer.json")]
        with suppress(ValueError):
            return cls(files[0], files[1], threads=threads)
        try:  # its tables may be in a file of their own
            hf_hub_download(str(name), data_file(inside), revision=revision)
        except LocalEntryNotFoundError as error:
            raise OSError(
                f"{name} cannot be loaded: {data_file(inside)}, which may hold its tables, is not in the cache, and "
                "the Hub cannot be reached. Try again where it can."
            ) from error
        except EntryNotFoundError:
            pass
        return cls(files[0], files[1], threads=threads)

    def _check_folder(self, folder: Path) -> None:
        """Refuse a file that an earlier training or another config of the folder's model has left."""
        if difference := self._other_weights(folder) or self._other_config(folder):
            int8 = " --int8" if (folder / FOLDER / QUANTIZED_FILE).is_file() else ""
            mapped = " --memory_mapped" if (folder / FOLDER / data_file(FILE)).is_file() else ""
            raise ValueError(
                f"The ONNX file in {folder} was made {difference}: make it again by "
                f"`dsa onnx {folder} --overwrite{int8}{mapped}`."
            )

    def _other_weights(self, folder: Path) -> str:
        """From what other weights than the folder's; nothing where they are the same, or it has none."""
        whole = folder / "model.safetensors"
        paths = [whole] if whole.is_file() else sorted(folder.glob("model-*.safetensors"))
        if not paths:
            return ""
        with ExitStack() as opened:
            found = weights_hash(*(opened.enter_context(path.open("rb")) for path in paths))
        return "" if found == self.about["weights_sha256"] else f"from other weights than {paths[0]}"

    def _other_config(self, folder: Path) -> str:
        """From what else than the folder's config; nothing where that says the same, or it has none."""
        if not (folder / CONFIG).is_file():
            return ""
        written = read_config(folder)
        for name, value in self.about["config"].items():
            found = written.get(name, self.about["defaults"][name])
            if found != value:
                return f"with {name} {value!r:.200} and not {found!r:.200}, as {folder / CONFIG} says"
        return ""

    @property
    def labels(self) -> list[str]:
        """Names of the classes; none where the model is no classifier."""
        return list(self.about.get("labels", []))

    def encode(
        self,
        sentences: str | Sequence[str],
        *,
        batch_size: int = BATCH_SIZE,
        normalize: bool = False,
        dtype: VectorType = "float32",
        progress: bool = False,
    ) -> Vectors:
        """Vectors of sentences, as [`SentenceEncoder`] gives them: every option means the same.

        Args:
            sentences: A sentence, or any number of them.
            batch_size: Sentences that are computed at a time by a thread; fewer where they are longer than 16 tokens,
                or where a thread would have nothing to do.
            normalize: Give each vector the length 1; a vector of zeros stays.
            dtype: Of the result: "float32", "float16" or "int8".
            progress: Show a bar.

        Returns:
            (m * d_o,) for one sentence, else (sentences, m * d_o).

        Raises:
            ValueError: One of `sentences` is no string, or an option has no such value.
        """
        return encode_sentences(
            self._text_tokenizer,
            sentences,
            lambda batch: self._run(self._as_sentences(batch), "pooler_output"),
            self._width("pooler_output"),
            batch_size=batch_size,
            normalize=normalize,
            dtype=dtype,
            threads=self.threads,
            progress=progress,
        )

    def classify(self, texts: TextInput | Sequence[TextInput], *, batch_size: int = BATCH_SIZE) -> list[dict[str, Any]]:
        """The most likely class of each text or pair, as transformers' "text-classification" gives it.

        Args:
            texts: A text, a pair, as a tuple or as {"text": ..., "text_pair": ...}, or a list of either.
            batch_size: Texts that are computed at a time by a thread.

        Returns:
            {"label": its name, "score": its probability} for each.

        Raises:
            ValueError: The model is no classifier, one of `texts` is not what it reads, a text or a pair, or
                `batch_size` is below 1.
        """
        if not self.labels:
            raise ValueError(f"{self.about['name']} is no classifier: it has vectors only, by encode().")
        if not isinstance(texts, Iterable):
            raise ValueError(f"{texts!r:.80} is no text, pair or list of these.")
        if not isinstance(texts, Mapping):
            check_ordered(texts)
        several = [_pair(text) for text in ([texts] if isinstance(texts, str | tuple | Mapping) else texts)]
        if any(output.name == "second_pooler_output" for output in self.session.get_outputs()):
            single = next((text for text in several if isinstance(text, str) and SEP not in text), None)
            if single is not None:
                raise ValueError(f"The model reads pairs, and {single!r:.80} is one text: give (text, text_pair).")
        elif (pair := next((text for text in several if isinstance(text, tuple)), None)) is not None:
            raise ValueError(f"The model reads single texts, and {pair!r:.80} is a pair: give a list of texts.")
        logits = compute_in_batches(
            self._text_tokenizer,
            several,
            lambda batch: self._run(batch, "logits"),
            self._width("logits"),
            batch_size=batch_size,
            threads=self.threads,
        )  # (texts, num_labels)
        scores = logits_to_scores(logits, self.about["scores"])
        best = scores.argmax(axis=1)
        return [
            {"label": self.labels[index], "score": float(of_text[index])}
            for index, of_text in zip(best, scores, strict=True)
        ]

    def _width(self, output: str) -> int:
        return int(next(found.shape[1] for found in self.session.get_outputs() if found.name == output))

    def _as_sentences(self, batch: Batch) -> Batch:
        """As `DSAModel.sentence_vectors`: a separator splits no sentence in two."""
        separator = self.about["config"]["sep_token_id"]
        if separator is None:
            return batch
        return replace(batch, attention_mask=batch.attention_mask & (batch.input_ids != separator))

    def _run(self, batch: Batch, output: str) -> Vectors:
        """One output for a batch. (batch, its width)"""
        inputs = (batch.input_ids, batch.attention_mask.astype(np.int64), batch.token_type_ids)
        found: Vectors = self.session.run([output], dict(zip(INPUTS, inputs, strict=True)))[0]
        return found


def data_file(file: str) -> str:
    """The name of the file beside an ONNX file that holds its tables where it was written memory-mapped."""
    return f"{file}_data"  # as transformers.js calls it


def _pair(text: TextInput) -> Text:
    """What the tokenizer takes."""
    if isinstance(text, Mapping):
        if "text" not in text:
            raise ValueError(f'{dict(text)!r:.80} has no "text".')
        return (text["text"], text["text_pair"]) if "text_pair" in text else text["text"]
    return text


def open_session(file: str | PathLike[str]) -> onnxruntime.InferenceSession:
    """An ONNX file with the settings that it is served with.

    Raises:
        ValueError: It is no ONNX file, or a broken one.
    """
    options = onnxruntime.SessionOptions()
    # Two threads on one batch wait for each other most of the time; on two batches they are twice as fast as one.
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's have no common class
        raise ValueError(f"{file} cannot be loaded ({one_line(error):.200}): write it again by `dsa onnx`.") from error
