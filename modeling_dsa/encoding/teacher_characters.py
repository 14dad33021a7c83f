"""What an open vocabulary knows beyond Latin script: the characters that its teacher reads, and emoji."""

import unicodedata
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from modeling_dsa.text.word_rules import emoji, other_characters

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_NO_TOKENS = {"▁"}  # SentencePiece's mark of a word's beginning, where it stands alone
_UNKNOWN = {"[UNK]", "<unk>"}


def characters_of(teacher: "SentenceTransformer", *, lowercase: bool) -> list[str]:
    """Characters of other scripts that a teacher reads as one token, and all emoji, in the order of their code points.

    Args:
        teacher: As `load_teacher` gives it. Of one whose tokenizer is none of the `tokenizers` library it is not known
            what it reads: there are the emoji alone.
        lowercase: As for `build_tokenizer`.
    """
    found = set(emoji())
    backend = getattr(teacher.tokenizer, "backend_tokenizer", teacher.tokenizer)
    if isinstance(backend, Tokenizer):
        alone = Tokenizer.from_str(backend.to_str())
        alone.no_padding()
        alone.no_truncation()
        others = other_characters(lowercase=lowercase)
        for character, encoding in zip(others, alone.encode_batch(others, add_special_tokens=False), strict=True):
            tokens = [token for token in encoding.tokens if token not in _NO_TOKENS]
            if len(tokens) == 1 and tokens[0] not in _UNKNOWN:
                found.add(character)
    return sorted(found)


def in_words(token: str) -> str:
    """What a teacher is given of a token: of an emoji its name in Unicode, as few teachers know emoji; else itself."""
    return unicodedata.name(token, token).lower() if token in emoji() else token
