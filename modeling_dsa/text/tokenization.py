"""The tokenizer: words, or words and the pieces of others, complete in one `tokenizer.json`.

Its rules are those of `word_rules`. It is built from parts of the `tokenizers` library, so a saved one loads with
`AutoTokenizer` and needs neither this package nor remote code.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from tokenizers import AddedToken, Tokenizer, decoders, models, processors
from transformers import PreTrainedTokenizerBase, TokenizersBackend

from .special_tokens import PAD, SEP, SPECIAL_TOKENS, UNK
from .word_rules import latin_characters, normalizer, pre_tokenizer

CONTINUING = "##"  # stands before a piece that continues a word, as in BERT's vocabularies

_NO_LIMIT = 1 << 10  # characters of a word, where the splitting has set a lower limit
_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL_TOKENS)))


class WordTokenizer(TokenizersBackend):
    """transformers' own tokenizer, which saves itself under a name that both transformers 4 and 5 can load."""


# `save_pretrained` writes this name to tokenizer_config.json, and transformers 4 knows no TokenizersBackend.
WordTokenizer.__name__ = "PreTrainedTokenizerFast"


def portable(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """A tokenizer that `AutoTokenizer` has loaded, as one that saves itself under that name again."""
    if type(tokenizer) is TokenizersBackend:
        tokenizer.__class__ = WordTokenizer
    return tokenizer


def build_tokenizer(words: Iterable[str], *, lowercase: bool, pieces: Iterable[str] = ()) -> WordTokenizer:
    """Make a tokenizer that knows `words`.

    Without `pieces` every other word becomes `[UNK]`. With them the vocabulary is open: another word becomes the
    longest pieces that it can be read as, from its start on, and single characters in the last resort. Then nothing in
    Latin script is `[UNK]`; a character of another script is one token, and known if it is among `words` or `pieces`.

    One text is encoded as `A`, a pair as `A [SEP] B` with token_type_ids 0 for A and the separator, 1 for B. Nothing is
    truncated. Special tokens that stand in a text are read as such, so one text can carry a pair: `A [SEP] B`.

    Args:
        words: The vocabulary; the first word gets id 3, after `SPECIAL_TOKENS`. Words that the splitting never gives
            (see `word_rules`) do no harm.
        lowercase: Lower-case every text first: True for lower-case vectors (GloVe 6B), False for cased ones (840B).
        pieces: Parts of words, as `learn_pieces` gives them: `##ing` continues a word, `un` begins one; and
            characters of other scripts. Their ids follow those of the words, and then come the characters of Latin
            script that are not among either.

    Raises:
        ValueError: A word is empty, is a special token, is spelled like a piece or comes twice.
    """
    _refuse_single_string("words", words)
    _refuse_single_string("pieces", pieces)
    words, pieces = list(words), list(pieces)
    vocabulary = _numbered(words, pieces)
    if pieces:
        beginning, continuing = latin_characters(lowercase=lowercase)
        for piece in (*beginning, *(CONTINUING + character for character in continuing)):
            vocabulary.setdefault(piece, len(vocabulary))
    return WordTokenizer(
        tokenizer_object=_backend(vocabulary, lowercase=lowercase, open_vocabulary=bool(pieces)),
        pad_token=PAD,
        unk_token=UNK,
        sep_token=SEP,
        padding_side="right",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def count_words(texts: Iterable[str], *, lowercase: bool, open_vocabulary: bool = False) -> Counter[str]:
    """Count the words of `texts`, normalised and split exactly as `build_tokenizer`'s tokenizer does.

    Special tokens in the texts are not counted. The result is ordered: most frequent first, then by code point.

    Args:
        texts: Any number of texts; they are held in memory.
        lowercase: As for `build_tokenizer`.
        open_vocabulary: Whether the tokenizer will have pieces.
    """
    _refuse_single_string("texts", texts)
    counts: Counter[str] = Counter()
    # Data sets of pairs repeat their texts many times, so each distinct text is split once.
    distinct = Counter(iter(texts))
    words = split_texts(distinct, lowercase=lowercase, open_vocabulary=open_vocabulary)
    for copies, words_of_text in zip(distinct.values(), words, strict=True):
        for word in words_of_text:
            counts[word] += copies
    return Counter(dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))))


def split_texts(texts: Iterable[str], *, lowercase: bool, open_vocabulary: bool) -> Iterator[list[str]]:
    """The words of each text, without special tokens; the arguments are those of `count_words`."""
    normalise, split = normalizer(lowercase=lowercase), pre_tokenizer(open_vocabulary=open_vocabulary)
    for text in texts:
        parts = _SPECIAL.split(text)
        yield [word for part in parts for word, _ in split.pre_tokenize_str(normalise.normalize_str(part))]


def _refuse_single_string(name: str, value: Iterable[str]) -> None:
    if isinstance(value, str):
        raise ValueError(f"{name} is one string where a list of strings is needed: put it in a list.")


def has_pieces(tokenizer: Tokenizer) -> bool:
    """Whether a tokenizer reads words that it lacks as pieces."""
    return isinstance(tokenizer.model, models.WordPiece)


def _numbered(words: list[str], pieces: list[str]) -> dict[str, int]:
    """The ids of special tokens, words and pieces."""
    first = len(SPECIAL_TOKENS)
    vocabulary = {token: index for index, token in enumerate(SPECIAL_TOKENS)}
    for position, word in enumerate((*words, *pieces)):
        if position < len(words):
            what, where = "word", position
            if pieces and word.startswith(CONTINUING):
                raise ValueError(f"The word {word!r} at position {where} is spelled like a piece: remove it.")
        else:
            what, where = "piece", position - len(words)
        if not word.removeprefix(CONTINUING if pieces else ""):
            raise ValueError(f"The {what} at position {where} is empty: remove it from the vocabulary.")
        known = vocabulary.setdefault(word, first + position)
        if known < first:
            raise ValueError(f"The {what} {word!r} at position {where} is a special token: remove it.")
        if known != first + position:
            raise ValueError(
                f"The {what} {word!r} comes twice, at positions {known - first} and {position}: give each once."
            )
    return vocabulary


def _backend(vocabulary: dict[str, int], *, lowercase: bool, open_vocabulary: bool) -> Tokenizer:
    if open_vocabulary:
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=UNK, max_input_chars_per_word=_NO_LIMIT))
        tokenizer.decoder = decoders.WordPiece(prefix=CONTINUING, cleanup=False)
    else:
        tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNK))
    tokenizer.normalizer = normalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizer(open_vocabulary=open_vocabulary)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A:0", pair=f"$A:0 {SEP}:0 $B:1", special_tokens=[(SEP, SPECIAL_TOKENS.index(SEP))]
    )
    return tokenizer
