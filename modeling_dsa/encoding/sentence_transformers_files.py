"""What the files of sentence-transformers in a model's folder say that `SentenceEncoder` does not do."""

import json
import logging
import os
from typing import Any

from modeling_dsa.files.model_folder import find_file

logger = logging.getLogger(__name__)

_LONGEST = 10**6  # tokens; a tokenizer without a limit has a much larger number


def steps_of_sentence_transformers(source: str | os.PathLike[str]) -> list[str]:
    """What sentence-transformers does for a text besides asking the encoder for its vector.

    Args:
        source: Folder or Hub id of a model of this family.

    Returns:
        Each in words, such as "puts 'query: ' before each text"; nothing for what this package writes.
    """
    settings, modules = _read(source, "config_sentence_transformers.json"), _read(source, "modules.json")
    limit = _get(_read(source, "tokenizer_config.json"), "model_max_length")
    prompt = _get(_get(settings, "prompts"), _get(settings, "default_prompt_name"))
    length = _get(settings, "truncate_dim")
    steps = [f"puts {prompt!r:.80} before each text"] if prompt else []
    if isinstance(limit, int) and limit < _LONGEST:
        steps.append(f"reads no more than {limit} tokens of a text")
    if isinstance(modules, list) and len(modules) > 1:
        kinds = (str(_get(module, "type")).rpartition(".")[2] for module in modules[1:])
        steps.append(f"computes {', '.join(kinds)} behind the encoder")
    if length is not None:
        steps.append(f"keeps the first {length} numbers of a vector")
    return steps


def warn_of_other_vectors(source: str | os.PathLike[str]) -> None:
    """Say that sentence-transformers gives other vectors than the encoder of a model, where its files make it so."""
    if steps := steps_of_sentence_transformers(source):
        logger.warning(
            f"{os.fspath(source)}: sentence-transformers {' and '.join(steps)}, and this encoder does not: their "
            "vectors are not to be compared."
        )


def _read(source: str | os.PathLike[str], name: str) -> object:
    path = find_file(source, name)
    try:
        return None if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):  # it says nothing
        return None


def _get(content: object, key: Any) -> object:
    return content.get(key) if isinstance(content, dict) else None
