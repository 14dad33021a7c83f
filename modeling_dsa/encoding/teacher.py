"""Teachers: the sentence-transformers models whose vectors a model of this family learns from."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from modeling_dsa.command.messages import cause_of
from modeling_dsa.command.optional_packages import optional_packages

from .model_hash import hash_state

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def load_teacher(model: str) -> "SentenceTransformer":
    """Load a sentence-transformers model: on a GPU where there is one, ready to encode.

    Args:
        model: A folder or Hub id.

    Raises:
        ValueError: sentence-transformers is not installed, or there is no such model, or it cannot be loaded.
    """
    with optional_packages(
        "A model of sentence-transformers", "sentence-transformers", "datasets", "sentence_transformers"
    ):
        import datasets  # noqa: F401 - what the teacher computes is kept in its cache
        from sentence_transformers import SentenceTransformer
    try:
        return SentenceTransformer(model)
    except Exception as error:  # of several libraries, and of the code of its modules
        raise ValueError(
            f"{model} cannot be loaded by sentence-transformers ({cause_of(error)}): give a folder or Hub id of one of "
            "its models."
        ) from error


def teacher_width(teacher: "SentenceTransformer") -> int:
    """How many numbers its vectors have."""
    return len(teacher.encode("a", show_progress_bar=False))


def teacher_caches() -> Path:
    """The folder of what teachers have computed, where no other one is asked for."""
    import datasets

    return Path(datasets.config.HF_DATASETS_CACHE) / "dsa-teacher"


def teacher_sha256(teacher: "SentenceTransformer") -> str:
    """The hash of what its vectors depend on: the modules with their options and configs, weights, tokenizer and
    prompt.
    """
    from transformers import PreTrainedModel

    configs = [module.config.to_dict() for module in teacher.modules() if isinstance(module, PreTrainedModel)]
    for config in configs:
        config.pop("_name_or_path", None)  # where it lies
    described = [repr(teacher), configs, teacher.prompts, teacher.default_prompt_name, teacher.max_seq_length]
    digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode())
    backend = getattr(teacher.tokenizer, "backend_tokenizer", None)
    digest.update((backend.to_str() if backend is not None else repr(teacher.tokenizer)).encode())
    hash_state(digest, teacher.state_dict())
    return digest.hexdigest()
