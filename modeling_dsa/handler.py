"""The entry of a Hugging Face Inference Endpoint, which looks for `EndpointHandler` in a repository's `handler.py`."""

import threading
import time
from typing import Any

from transformers import AutoConfig, Pipeline, pipeline

# Bounds of one request: who needs more asks again, and nobody else waits for it.
MOST_TEXTS, LONGEST_TEXT, MOST_CHARACTERS = 10_000, 100_000, 5_000_000
_BATCH_SIZE = 64
_AT_ONCE = 4 * _BATCH_SIZE  # texts that a request computes before others have their turn
_PARAMETERS = {"text-classification": ("top_k", "function_to_apply"), "sentence-embedding": ("normalize",)}
_SHAPE = 'a text, {"text": ..., "text_pair": ...}, or a list of either'


class EndpointHandler:
    """Answers requests: classes of a text or pair, or vectors of texts.

    A request is `{"inputs": ..., "parameters": {...}}`. `inputs` is a text, a pair `{"text": ..., "text_pair": ...}` or
    a list of either, of up to 10,000 texts of up to 100,000 characters, 5,000,000 in all. Requests at the same time
    share the model: a large one does not keep a small one waiting. `parameters` are `task`, which is
    "text-classification" (the default where the repository holds a classifier) or "sentence-embedding", and what the
    task's pipeline takes: `top_k` and `function_to_apply`, or `normalize`.
    """

    def __init__(self, path: str = "") -> None:
        """Load the repository in the folder `path`."""
        is_classifier = AutoConfig.from_pretrained(path, trust_remote_code=True).is_classifier
        tasks = [*(["text-classification"] if is_classifier else []), "sentence-embedding"]
        self.pipelines: dict[str, Pipeline] = {
            task: pipeline(task, model=path, trust_remote_code=True)  # type: ignore[call-overload]  # a task of our own
            for task in tasks
        }
        self._lock = threading.Lock()  # a tokenizer is changed by each call

    def __call__(self, data: dict[str, Any]) -> Any:
        """Answer one request.

        Raises:
            ValueError: There is no such task or parameter, or nothing to work on, or too much. An endpoint answers with
                this sentence and status 400.
        """
        if not isinstance(data, dict):
            raise ValueError(f'The request is no object: give {{"inputs": {_SHAPE}}}.')
        parameters = data.get("parameters") or {}
        if not isinstance(parameters, dict):
            raise ValueError('"parameters" is no object: give names and values, or leave it out.')
        options = dict(parameters)
        task = options.pop("task", next(iter(self.pipelines)))
        if not isinstance(task, str) or task not in self.pipelines:
            raise ValueError(f"There is no task {task!r:.80} here: give one of {', '.join(self.pipelines)}.")
        _check_options(task, options)
        inputs = data.get("inputs")
        if not inputs:
            raise ValueError(f'Give "inputs": {_SHAPE}.')
        several = inputs if isinstance(inputs, list) else [inputs]
        if len(several) > MOST_TEXTS:
            raise ValueError(f'"inputs" are {len(several):,} texts: give at most {MOST_TEXTS:,} at a time.')
        texts = [self._checked(text, index, task) for index, text in enumerate(several)]
        if (characters := sum(map(_length, texts))) > MOST_CHARACTERS:
            raise ValueError(f'"inputs" have {characters:,} characters: give at most {MOST_CHARACTERS:,} at a time.')
        if not isinstance(inputs, list):
            with self._lock:
                return self.pipelines[task](texts[0], **options)
        # Texts of similar length in one batch: the others' padding would be most of the work.
        order = sorted(range(len(texts)), key=lambda index: _length(texts[index]))
        answers: dict[int, Any] = {}
        for first in range(0, len(order), _AT_ONCE):
            part = order[first : first + _AT_ONCE]
            with self._lock:
                found = self.pipelines[task]([texts[index] for index in part], batch_size=_BATCH_SIZE, **options)
            answers |= zip(part, found, strict=True)
            time.sleep(0.001)  # else this thread takes the lock again before one that waits for it
        return [answers[index] for index in range(len(texts))]

    def _checked(self, text: Any, index: int, task: str) -> Any:
        """One text or pair as the pipeline takes it."""
        parts = {"text": text} if isinstance(text, str) else text
        is_embedding = task == "sentence-embedding"
        names = {"text"} if is_embedding or isinstance(text, str) else {"text", "text_pair"}
        if not isinstance(parts, dict) or not {"text"} <= parts.keys() <= names:
            shape = 'a text or {"text": ...}' if is_embedding else _SHAPE.removesuffix(", or a list of either")
            raise ValueError(f"The input at index {index} is {repr(text)[:80]}: give {shape}.")
        for name, part in parts.items():
            if not isinstance(part, str) or len(part) > LONGEST_TEXT:
                found = f"{len(part):,} characters long" if isinstance(part, str) else repr(part)[:80]
                raise ValueError(
                    f"The {name} of the input at index {index} is {found}: give a text of up to {LONGEST_TEXT:,} "
                    "characters."
                )
            if not is_embedding and not part.strip():
                raise ValueError(f"The {name} of the input at index {index} is empty: give a text to classify.")
        if is_embedding:
            return parts["text"]
        pipe: Any = self.pipelines[task]
        reads_pairs = pipe.model.config.sentences_per_example == 2
        if reads_pairs and "text_pair" not in parts:
            first, _, second = parts["text"].partition(pipe.tokenizer.sep_token)
            if not (first.strip() and second.strip()):
                raise ValueError(
                    f"The input at index {index} is one text, and the model reads pairs: give "
                    '{"text": ..., "text_pair": ...}.'
                )
        if not reads_pairs and "text_pair" in parts:
            raise ValueError(f"The input at index {index} is a pair, and the model reads single texts.")
        # Half of a UTF-16 surrogate pair is no character, and no tokenizer takes it. An endpoint loads this file by
        # itself and not as a part of a package, so that nothing of the files beside it can be imported with a dot.
        whole = {
            name: part.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for name, part in parts.items()
        }
        return whole["text"] if isinstance(text, str) else whole


def _length(text: Any) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text.values()))


def _check_options(task: str, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if name not in _PARAMETERS[task]:
            raise ValueError(f"There is no parameter {name!r:.80} of {task}: give {' or '.join(_PARAMETERS[task])}.")
        if name == "top_k" and value is not None and (type(value) is not int or value < 1):
            raise ValueError(f"top_k is {value!r:.80}: give a number of classes, or null for all.")
        if name == "function_to_apply" and value not in ("softmax", "sigmoid", "none", None):
            raise ValueError(f"function_to_apply is {value!r:.80}: give softmax, sigmoid or none.")
        if name == "normalize" and not isinstance(value, bool):
            raise ValueError(f"normalize is {value!r:.80}: give true or false.")
