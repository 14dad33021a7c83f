"""A word tokenizer for pretrained word vectors, complete in one `tokenizer.json`.

The words are those of GloVe's corpora and of InferSent's pre-processing: Penn Treebank style. Everything is built from
the normalizers, pre-tokenizers and models of the `tokenizers` library, so a saved tokenizer loads with `AutoTokenizer`
and needs neither this package nor remote code.

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
"""

import re
from collections import Counter
from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import TokenizersBackend

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[SEP]")
PAD, UNK, SEP = SPECIAL_TOKENS

_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL_TOKENS)))


class WordTokenizer(TokenizersBackend):
    """transformers' own tokenizer, which saves itself under a name that both transformers 4 and 5 can load."""


# `save_pretrained` writes this name to tokenizer_config.json, and transformers 4 knows no TokenizersBackend.
WordTokenizer.__name__ = "PreTrainedTokenizerFast"


def build_tokenizer(words: Iterable[str], *, lowercase: bool) -> WordTokenizer:
    """Make a tokenizer that knows `words`; every other word becomes `[UNK]`.

    One text is encoded as `A`, a pair as `A [SEP] B` with token_type_ids 0 for A and the separator, 1 for B. Nothing is
    truncated. Special tokens that stand in a text are read as such, so one text can carry a pair: `A [SEP] B`.

    Args:
        words: the vocabulary; the first word gets id 3, after `SPECIAL_TOKENS`. Words that the splitting never gives
            (see the module's rules) do no harm.
        lowercase: lowercase every text first: True for lower-case vectors (GloVe 6B), False for cased ones (840B).

    Raises:
        ValueError: a word is empty, is a special token or comes twice.
    """
    _refuse_single_string("words", words)
    vocabulary = {token: index for index, token in enumerate(SPECIAL_TOKENS)}
    for position, word in enumerate(words):
        if not word:
            raise ValueError(f"The word at position {position} is empty: remove it from the vocabulary.")
        known = vocabulary.setdefault(word, len(SPECIAL_TOKENS) + position)
        if known < len(SPECIAL_TOKENS):
            raise ValueError(f"The word {word!r} at position {position} is a special token: remove it.")
        if known != len(SPECIAL_TOKENS) + position:
            raise ValueError(
                f"The word {word!r} comes twice, at positions {known - len(SPECIAL_TOKENS)} and {position}: "
                "give each word once."
            )
    return WordTokenizer(
        tokenizer_object=_backend(vocabulary, lowercase=lowercase),
        pad_token=PAD,
        unk_token=UNK,
        sep_token=SEP,
        padding_side="right",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def count_words(texts: Iterable[str], *, lowercase: bool) -> Counter[str]:
    """Count the words of `texts`, normalised and split exactly as `build_tokenizer`'s tokenizer does.

    Special tokens in the texts are not counted. The result is ordered: most frequent first, then by code point.

    Args:
        texts: any number of texts; they are held in memory.
        lowercase: as for `build_tokenizer`.
    """
    _refuse_single_string("texts", texts)
    normalizer, pre_tokenizer = _normalizer(lowercase=lowercase), _pre_tokenizer()
    counts: Counter[str] = Counter()
    # Data sets of pairs repeat their texts many times, so each distinct text is split once.
    for text, copies in Counter(iter(texts)).items():
        for part in _SPECIAL.split(text):
            for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(part)):
                counts[word] += copies
    return Counter(dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))))


def _refuse_single_string(name: str, value: Iterable[str]) -> None:
    if isinstance(value, str):
        raise ValueError(f"{name} is one string where a list of strings is needed: put it in a list.")


def _backend(vocabulary: dict[str, int], *, lowercase: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNK))
    tokenizer.normalizer = _normalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = _pre_tokenizer()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A:0", pair=f"$A:0 {SEP}:0 $B:1", special_tokens=[(SEP, SPECIAL_TOKENS.index(SEP))]
    )
    return tokenizer


def _pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(_WORD), behavior="removed", invert=True)


def _normalizer(*, lowercase: bool) -> normalizers.Normalizer:
    # A replacement of two or more characters stands between spaces: two words that share one raw character would
    # otherwise be possible where it meets its like (a quote beside an apostrophe, an ellipsis beside a full stop).
    replacements = [
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
    ]
    steps: list[normalizers.Normalizer] = [
        normalizers.Replace(Regex(r"[\p{Cc}\p{Cf}\x{FE00}-\x{FE0F}\x{E0100}-\x{E01EF}&&[^\s]]"), ""),
        normalizers.NFC(),
        *(normalizers.Replace(Regex(pattern), content) for pattern, content in replacements),
    ]
    return normalizers.Sequence([*steps, normalizers.Lowercase()] if lowercase else steps)


_TREEBANK_BRACKETS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}"}

_ALNUM = r"[\p{L}\p{M}\p{N}]"
_END = rf"(?!{_ALNUM})"
_CLITIC = rf"(?i:s|m|d|ll|re|ve){_END}"
_ADDRESS_REST = r"[^\s<>]*[^\s<>\p{P}]/?"
# Abbreviations that are no words without their full stop.
_ABBREVIATIONS = (
    "mr|mrs|ms|messrs|dr|prof|st|jr|sr|gen|col|capt|lt|sgt|sen|rep|gov|rev|hon|vs|inc|corp|co|ltd|bros|mt|"
    "jan|feb|aug|sept|oct|nov|dec"
)

# One word, in Oniguruma's syntax; the first alternative that fits wins and the last one takes any character. Every
# look-ahead is bounded, or stops where its own word does, so time stays linear in the length of the text.
_WORD = "|".join(
    (
        rf"(?i:https?://|www\.){_ADDRESS_REST}",
        r"[\p{L}\p{N}](?>[\p{L}\p{N}._%+\-]{0,63})@(?:[\p{L}\p{N}\-]{1,63}\.){1,4}\p{L}{2,63}(?!\p{M})",
        rf"(?:[\p{{L}}\p{{N}}\-]{{1,63}}\.){{1,4}}(?i:com|org|net|edu|gov|co\.uk){_END}(?:/{_ADDRESS_REST})?",
        r"\p{L}\.(?:\p{L}\.)+",
        r"(?i:[a-hj-z])\.(?=\s+\p{L})",
        rf"(?i:{_ABBREVIATIONS})\.",
        r"(?i:no)\.(?=\s*\p{Nd})",
        r"\p{Nd}+(?:,\p{Nd}{3}(?!\p{Nd})|[.:/]\p{Nd}+)+",
        rf"(?i:can(?=not{_END})|gon(?=na{_END})|got(?=ta{_END})|wan(?=na{_END})|lem(?=me{_END})|gim(?=me{_END}))",
        rf"(?=[\p{{L}}\p{{M}}]+'[tT])[\p{{L}}\p{{M}}]+?(?=(?i:n't){_END})",
        rf"(?i:n't){_END}",
        rf"'{_CLITIC}",
        rf"\p{{L}}{{1,2}}&\p{{L}}{{1,2}}{_END}",
        rf"(?<!-)\p{{L}}-{_ALNUM}+",
        rf"(?>{_ALNUM}+(?:(?<=[\p{{L}}\p{{M}}])'(?!{_CLITIC})\p{{L}}{_ALNUM}*)*)",
        r"\.\.\.|--|``|''|\S",
    )
)
