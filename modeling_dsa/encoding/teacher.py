"""Teachers: the sentence-transformers models whose vectors a model of this family learns from."""

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def load_teacher(model: str) -> "SentenceTransformer":
    """Load a sentence-transformers model: on a GPU where there is one, ready to encode.

    Args:
        model: A folder or Hub id.

    Raises:
        ValueError: sentence-transformers is not installed, or there is no such model, or it cannot be loaded.
    """
    try:
        import datasets  # noqa: F401 - what the teacher computes is kept in its cache
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError as error:
        if error.name not in ("datasets", "sentence_transformers"):
            raise
        raise ValueError(
            f'A teacher needs {error.name.replace("_", "-")}: pip install "dsa-transformers[sentence-transformers]".'
        ) from error
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        return SentenceTransformer(model)
    except (OSError, ValueError, RuntimeError, KeyError, StrictDataclassError, SafetensorError) as error:
        first_sentence = re.split(r"[.:]?\s*\n|\. ", str(error))[0].rstrip(".")
        raise ValueError(
            f"The teacher {model} cannot be loaded ({first_sentence}): give a folder or Hub id of a "
            "sentence-transformers model."
        ) from error


def teacher_cache() -> Path:
    """The folder of what teachers have computed, where no other one is asked for."""
    import datasets

    return Path(datasets.config.HF_DATASETS_CACHE) / "dsa-teacher"


def teacher_sha256(teacher: "SentenceTransformer") -> str:
    """The hash of what its vectors depend on: the modules with their options, weights, tokenizer and prompt."""
    import torch

    described = [repr(teacher), teacher.prompts, teacher.default_prompt_name, teacher.max_seq_length]
    digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode())
    backend = getattr(teacher.tokenizer, "backend_tokenizer", None)
    digest.update((backend.to_str() if backend is not None else repr(teacher.tokenizer)).encode())
    for name, tensor in teacher.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
