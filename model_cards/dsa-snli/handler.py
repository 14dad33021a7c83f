"""The entry of a Hugging Face Inference Endpoint, which looks for `EndpointHandler` in a repository's `handler.py`."""

from typing import Any

from transformers import AutoConfig, Pipeline, pipeline


class EndpointHandler:
    """Answers requests: classes of a text or pair, or vectors of texts.

    A request is `{"inputs": ..., "parameters": {...}}`. `inputs` is a text, a pair `{"text": ..., "text_pair": ...}` or
    a list of either. `parameters` go to the pipeline, but for `task`, which chooses it: "text-classification" (the
    default where the repository holds a classifier) or "sentence-embedding".
    """

    def __init__(self, path: str = "") -> None:
        """Load the repository in the folder `path`."""
        is_classifier = AutoConfig.from_pretrained(path, trust_remote_code=True).is_classifier
        tasks = [*(["text-classification"] if is_classifier else []), "sentence-embedding"]
        self.pipelines: dict[str, Pipeline] = {
            task: pipeline(task, model=path, trust_remote_code=True)  # type: ignore[call-overload]  # a task of our own
            for task in tasks
        }

    def __call__(self, data: dict[str, Any]) -> Any:
        """Answer one request.

        Raises:
            ValueError: There is no such task, or nothing to work on.
        """
        parameters = dict(data.get("parameters") or {})
        task = parameters.pop("task", next(iter(self.pipelines)))
        if task not in self.pipelines:
            raise ValueError(f"There is no task '{task}' here: give one of {', '.join(self.pipelines)}.")
        if not data.get("inputs"):
            raise ValueError('Give "inputs": a text, {"text": ..., "text_pair": ...}, or a list of either.')
        return self.pipelines[task](data["inputs"], **parameters)
