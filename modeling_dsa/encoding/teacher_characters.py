"""What an open vocabulary knows beyond Latin script: the characters that its teacher reads, and emoji."""

import json
import unicodedata
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from modeling_dsa.batching_dsa import TextTokenizer
from modeling_dsa.text.word_rules import emoji, other_characters

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_WORD_BEGINS = {"▁", "Ġ"}  # marks of SentencePiece and of byte-level BPE, where they are tokens of their own


def characters_of(teacher: "SentenceTransformer", *, lowercase: bool) -> list[str]:
    """Characters of other scripts that a teacher reads as one token, and all emoji, in the order of their code points.

    Args:
        teacher: As `load_teacher` gives it. If its tokenizer is not of the `tokenizers` library, only emoji are given.
        lowercase: As for `build_tokenizer`.
    """
    found = set(emoji())
    backend = getattr(teacher.tokenizer, "backend_tokenizer", teacher.tokenizer)
    if isinstance(backend, Tokenizer):
        content = backend.to_str()
        copy = Tokenizer.from_str(content)  # the teacher's own keeps its padding, which its hash knows
        begins, unknown = {copy.token_to_id(mark) for mark in _WORD_BEGINS}, _unknown_id(copy, content)
        others = other_characters(lowercase=lowercase)
        rows, _ = TextTokenizer(copy).rows([*others], with_types=False, add_special_tokens=False)
        for character, row in zip(others, rows, strict=True):
            ids = [index for index in row if index not in begins]
            if len(ids) == 1 and ids[0] != unknown:
                found.add(character)
    return sorted(found)


def in_words(token: str) -> str:
    """What a teacher is given of a token: of an emoji its name in Unicode, as few teachers know emoji; else itself."""
    return unicodedata.name(token).lower() if token in emoji() else token


def _unknown_id(tokenizer: Tokenizer, content: str) -> int | None:
    """The id of what a tokenizer, with its content as JSON, does not know. One of bytes knows everything."""
    model = json.loads(content)["model"]  # no property has it of a Unigram model
    index: int | None = model.get("unk_id")
    return index if index is not None else tokenizer.token_to_id(model.get("unk_token") or "")
