"""How texts are normalised and split into words, for every tokenizer of this package.

The words are those of GloVe's corpora and of InferSent's pre-processing: Penn Treebank style. Everything is built from
the normalizers and pre-tokenizers of the `tokenizers` library, which `tokenizer.json` holds.

Rules, in the order in which they apply:

- Characters without a width (zero-width spaces, soft hyphens, controls, variation selectors) are removed; then NFC.
- Single quotes and apostrophes become `'`; double quotes become the Treebank's two tokens, opening and closing
  (GloVe 6B has no straight double quote). A straight double quote opens when it follows a space, a bracket, a dash or
  the start, and something follows it; it closes everywhere else.
- Long dashes, and an en dash between spaces, become `--`; other dashes become `-`; an ellipsis becomes `...`.
- The Treebank's `-LRB-`, `-RSB-`, ... become brackets, its `\\/` and `\\*` lose the backslash.
- Split: `do n't`, `can not`, `gon na`, clitics (`'s 'm 'd 'll 're 've`), and every other punctuation character.
- Whole: numbers (`1,000`, `3.5`, `10:30`, `1/2`), abbreviations (`U.S.`, `Mr.`, an initial before a name), `R&B`,
  `o'clock`, `...`, `--`, e-mail and web addresses, and one letter with what its hyphen joins to it (`t-shirt`, `f-16`).

All other hyphens split (`well - known`). The Treebank keeps them, but a word-level tokenizer cannot fall back to the
parts of a word that it lacks. Tokens that this project's GloVe 6B vectors have, every hyphen kept against this rule:
SNLI 99.75 % against 99.85 %, SST 98.92 % against 99.46 %, FNC-1 headlines 97.80 % against 98.35 %, FNC-1 bodies 98.27 %
against 98.57 %. The one-letter words stay whole because `t-shirt` alone is one word in 1,850 of SNLI.

Offsets point into the raw text. Where several raw characters become one, the offset is that of one of them: the last
for `-LRB-`, the base letter for a letter with a separate combining mark.

An open vocabulary, which knows the pieces of words, has the same rules with bounds. Its words consist of Latin letters,
combining marks and ASCII; every other character is a word of its own, and so is `#`, which marks pieces. A word of more
than 64 characters is cut (an address has a few more), because finding pieces takes time quadratic in a word's length.
"""

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

from tokenizers import PreTokenizedString, Regex, normalizers, pre_tokenizers

LONGEST_WORD = 64  # characters of a word that an open vocabulary reads as one


def normalizer(*, lowercase: bool) -> normalizers.Normalizer:
    """What is done to a text before it is split.

    Args:
        lowercase: Lower-case it too.
    """
    steps: list[normalizers.Normalizer] = [
        normalizers.Replace(Regex(r"[\p{Cc}\p{Cf}\x{FE00}-\x{FE0F}\x{E0100}-\x{E01EF}&&[^\s]]"), ""),
        normalizers.NFC(),
        *(normalizers.Replace(Regex(pattern), content) for pattern, content in _REPLACEMENTS),
    ]
    return normalizers.Sequence([*steps, normalizers.Lowercase()] if lowercase else steps)


_TREEBANK_BRACKETS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}"}
# In the syntax of Oniguruma and of Python. A replacement of two or more characters stands between spaces: two words
# that share one raw character would otherwise be possible where it meets its like (a quote beside an apostrophe, an
# ellipsis beside a full stop).
_REPLACEMENTS = (
    (r"[‘’‚‛‹›′‵´ʼ＇]", "'"),
    (r"[“„‟«〝]", " `` "),
    (r"[”»″〞]", " '' "),
    (r"""(?<![^\s(\[{<\-–—/'`])["＂](?=\S)""", " `` "),
    (r"""["＂]""", " '' "),
    (r"[—―⸺⸻]|(?<!\S)–(?!\S)", " -- "),
    (r"[‐‑‒–−﹣－]", "-"),
    (r"…", " ... "),
    *((f"-(?i:{code})-", f" {bracket} ") for code, bracket in _TREEBANK_BRACKETS.items()),
    (r"\\(?=[/*])", ""),
)
_COMPILED = tuple((re.compile(pattern), content) for pattern, content in _REPLACEMENTS)
# Printable characters of European languages and their usual punctuation, without the soft hyphen: a text of these alone
# has no other space than " ", on which the two syntaxes differ, and is in NFC.
_USUAL = re.compile("[ -~\u00a1-\u00ac\u00ae-\u024f‘’‚“”„–—…]*")

# What any step of the normaliser but lower-casing looks for: controls, quotes, a backslash, a bracket's code, no ASCII.
_NORMALIZED = re.compile(rf"[^ !#-\[\]-~]|-(?i:{'|'.join(_TREEBANK_BRACKETS)})-")


_JOINED = ("cannot", "gonna", "gotta", "wanna", "lemme", "gimme")  # two words each


def is_plain(text: str) -> bool:
    """Whether `normalizer` changes no character of a text, but for its case."""
    return _NORMALIZED.search(text) is None


def usual_normalized(text: str) -> str | None:
    """A text as `normalizer` leaves it, but for its case, in less time; None if it holds unusual characters."""
    if _USUAL.fullmatch(text) is None:
        return None
    for pattern, content in _COMPILED:
        text = pattern.sub(content, text)
    return text


def is_simple_word(chunk: str) -> bool:
    """Whether what stands between two spaces is certainly one word: ASCII letters, and few enough of them."""
    return chunk.isascii() and chunk.isalpha() and len(chunk) <= LONGEST_WORD and chunk.lower() not in _JOINED


@dataclass(frozen=True)
class _Characters:
    """What words consist of, inside the brackets of a regular expression, and how long they may be.

    Attributes:
        letters: Letters.
        marks: Combining marks.
        numbers: Characters of numbers, among words.
        digits: Digits of numbers that have a separator.
        visible: What may stand in an address, and `address_end` at its end.
        bounded: Whether there is a longest word.
    """

    letters: str
    marks: str
    numbers: str
    digits: str
    visible: str
    address_end: str
    bounded: bool

    def some(self, most: int, least: int = 1) -> str:
        """The quantifier of what comes `least` times or more, and at most `most` times where there are bounds."""
        return f"{{{least},{most}}}" if self.bounded else "+" if least else "*"


_ANY_SCRIPT = _Characters(r"\p{L}", r"\p{M}", r"\p{N}", r"\p{Nd}", r"^\s<>", r"^\s<>\p{P}", False)
# Whole words as people see them: of scripts that are written without spaces each letter is one.
_SPACED_SCRIPTS = replace(
    _ANY_SCRIPT,
    letters=r"[\p{L}&&[^\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]",
)
_LATIN_LETTERS = r"\p{Latin}\x{2B0}-\x{2FF}"  # with the modifier letters that many spellings share, as in Hawaiʻi
_LATIN_MARKS = r"\x{300}-\x{36F}\x{1AB0}-\x{1AFF}\x{1DC0}-\x{1DFF}\x{20D0}-\x{20FF}\x{FE20}-\x{FE2F}"
_LATIN = _Characters(
    _LATIN_LETTERS,
    _LATIN_MARKS,
    "0-9",
    "0-9",
    rf"!-\"$-;=?-~{_LATIN_LETTERS}{_LATIN_MARKS}",
    rf"$+=\^`|~0-9{_LATIN_LETTERS}{_LATIN_MARKS}",
    True,
)
# Of no script, but usual between Latin words: signs, punctuation, superscripts, currencies, fractions, arrows.
_SIGNS = (
    r"\x{A0}-\x{BF}×÷\x{2010}-\x{2027}\x{2030}-\x{205E}\x{2070}-\x{209C}\x{20A0}-\x{20C0}№™\x{2150}-\x{215F}"
    r"\x{2190}-\x{2193}"
)
_EVERY_CHARACTER = "".join(map(chr, (*range(0x21, 0xD800), *range(0xE000, 0x20000))))


def latin_characters(*, lowercase: bool) -> tuple[list[str], list[str]]:
    """The characters of text in Latin script, once it is normalised.

    Args:
        lowercase: As for `normalizer`.

    Returns:
        Those that can begin a word, and those that can continue one, in the order of their code points.
    """

    def found(characters: str) -> list[str]:
        return _normalized_characters(_those_of(characters), lowercase=lowercase)

    return found(rf"{_LATIN.visible}#<>{_SIGNS}"), found(_LATIN.visible)


def other_characters(*, lowercase: bool) -> list[str]:
    """The characters that `latin_characters` leaves out, once they are normalised, in the order of their code points.

    Args:
        lowercase: As for `normalizer`.
    """
    latin = set(chain.from_iterable(latin_characters(lowercase=lowercase)))
    return [
        character
        for character in _normalized_characters(_EVERY_CHARACTER, lowercase=lowercase)
        if character not in latin
    ]


@cache
def emoji() -> frozenset[str]:
    """Emoji of one character, without signs of Latin text (`©`) and without parts of other emoji (skin tones).

    They are those that Python has a name for: 3.11 knows Unicode 14, and a later one a few more.
    """
    found = _normalized_characters(_those_of(r"\p{Emoji}&&[^\p{Emoji_Component}]"), lowercase=True)
    named = frozenset(character for character in found if unicodedata.name(character, ""))
    return named - set(latin_characters(lowercase=True)[0])


def _those_of(characters: str) -> str:
    """The characters inside the brackets of a regular expression in Oniguruma's syntax."""
    return normalizers.Replace(Regex(f"[^{characters}]"), "").normalize_str(_EVERY_CHARACTER)


def _normalized_characters(characters: str, *, lowercase: bool) -> list[str]:
    normalised = normalizer(lowercase=lowercase).normalize_str(" ".join(characters))
    return sorted(set(normalised) - {" "})


def pre_tokenizer(*, open_vocabulary: bool) -> pre_tokenizers.PreTokenizer:
    """What splits a normalised text into words.

    Args:
        open_vocabulary: Keep the bounds that pieces need.
    """
    return _splitter(_LATIN if open_vocabulary else _ANY_SCRIPT)


def _splitter(of: _Characters) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(_word_pattern(of)), behavior="removed", invert=True)


def whole_word_pattern() -> str:
    """One whole word of a normalised text, however a tokenizer may cut it, in Oniguruma's syntax."""
    return _word_pattern(_SPACED_SCRIPTS)


def word_spans(text: str, normalise: normalizers.Normalizer | None) -> list[tuple[int, int]]:
    """Start and end in a text of each of its words, however a tokenizer may cut them, in characters.

    Args:
        text: As it was typed.
        normalise: The tokenizer's, if it has one.
    """
    parts = PreTokenizedString(text)
    if normalise is not None:
        parts.normalize(normalise.normalize)
    _splitter(_SPACED_SCRIPTS).pre_tokenize(parts)
    return [offsets for _, offsets, _ in parts.get_splits("original", "char")]


_END = r"(?![\p{L}\p{M}\p{N}])"
_CLITIC = rf"(?i:s|m|d|ll|re|ve){_END}"
# Abbreviations that are no words without their full stop.
_ABBREVIATIONS = (
    "mr|mrs|ms|messrs|dr|prof|st|jr|sr|gen|col|capt|lt|sgt|sen|rep|gov|rev|hon|vs|inc|corp|co|ltd|bros|mt|"
    "jan|feb|aug|sept|oct|nov|dec"
)


def _word_pattern(of: _Characters) -> str:
    """One word, in Oniguruma's syntax; the first alternative that fits wins and the last one takes any character.

    Every look-ahead is bounded, or stops where its own word does, so time stays linear in the length of the text.
    """
    letter, letter_or_mark, digit = f"[{of.letters}]", f"[{of.letters}{of.marks}]", f"[{of.digits}]"
    letter_or_digit, any_of_word = f"[{of.letters}{of.numbers}]", f"[{of.letters}{of.marks}{of.numbers}]"
    some = of.some(LONGEST_WORD)
    label = rf"[{of.letters}{of.numbers}\-]{{1,{30 if of.bounded else 63}}}\."
    address_rest = rf"[{of.visible}]{of.some(LONGEST_WORD, 0)}[{of.address_end}]/?"
    return "|".join(
        (
            # Most words are letters before a space, which no other rule concerns: with this one first, splitting takes
            # a tenth less time.
            rf"(?!(?i:{'|'.join(_JOINED)}){_END})(?>{letter}{some})(?=[\s,]|\z)",
            rf"(?i:https?://|www\.){address_rest}",
            rf"{letter_or_digit}(?>[{of.letters}{of.numbers}._%+\-]{{0,63}})@(?:{label}){{1,4}}{letter}{{2,63}}(?!\p{{M}})",
            rf"(?:{label}){{1,4}}(?i:com|org|net|edu|gov|co\.uk){_END}(?:/{address_rest})?",
            rf"{letter}\.(?:{letter}\.){of.some(30)}",
            r"(?i:[a-hj-z])\.(?=\s+\p{L})",
            rf"(?i:{_ABBREVIATIONS})\.",
            r"(?i:no)\.(?=\s*\p{Nd})",
            rf"{digit}{some}(?:,{digit}{{3}}(?!\p{{Nd}})|[.:/]{digit}{of.some(9)}){of.some(9)}",
            rf"(?i:can(?=not{_END})|gon(?=na{_END})|got(?=ta{_END})|wan(?=na{_END})|lem(?=me{_END})|gim(?=me{_END}))",
            rf"(?={letter_or_mark}{some}'[tT]){letter_or_mark}{some}?(?=(?i:n't){_END})",
            rf"(?i:n't){_END}",
            rf"'{_CLITIC}",
            rf"{letter}{{1,2}}&{letter}{{1,2}}{_END}",
            rf"(?<!-){letter}-{any_of_word}{some}",
            rf"(?>{any_of_word}{some}"
            rf"(?:(?<={letter_or_mark})'(?!{_CLITIC}){letter}{any_of_word}{of.some(30, 0)}){of.some(2, 0)})",
            r"\.\.\.|--|``|''|\S",
        )
    )
