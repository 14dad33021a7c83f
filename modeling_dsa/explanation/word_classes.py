"""Word classes by HanTa, the Hanover Tagger (hidden Markov models for three languages, which come in its package)."""

import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias, cast

from modeling_dsa.command.optional_packages import optional_packages

Tagger: TypeAlias = Callable[[Sequence[str]], list[str]]

_FILES = {"en": "morphmodel_en.pgz", "de": "morphmodel_ger.pgz", "nl": "morphmodel_dutch.pgz"}
_OTHER = "X"
_LONGEST = 64  # characters of a word that are read: the time is quadratic in them
# How each language's tags begin: those of the British National Corpus, of STTS and of the Spoken Dutch Corpus. The
# first that fits says the class, by its name in Universal Dependencies.
_CLASSES = {
    "en": {
        "ADJ": "AJ|ORD",
        "ADP": "PR[FP]|AVP|IN",
        "ADV": "AV",
        "AUX": "V[BDHM]",
        "CCONJ": "CJC",
        "DET": "AT0|DT0",
        "INTJ": "ITJ",
        "NOUN": "NN",
        "NUM": "CRD",
        "PART": "POS|TO0|XX0",
        "PRON": "PN|DPS|DTQ|EX0",
        "PROPN": "NP0",
        "PUNCT": "PU",
        "SCONJ": "CJ[ST]",
        "VERB": "VV",
    },
    "de": {
        "ADJ": "ADJ",
        "ADP": "AP|PTKVZ",
        "ADV": "ADV|PROAV|PWAV",
        "AUX": r"V[AM]\(",
        "CCONJ": "KON|KOKOM",
        "DET": "ART|P(?:D|I|POS|REL|W)AT",
        "INTJ": "ITJ",
        "NOUN": "NN",
        "NUM": "CARD",
        "PART": "PTK",
        "PRON": "P(?:D|I|POS|REL|W)S|PPER|PRF",
        "PROPN": "NE",
        "PUNCT": r"\$",
        "SCONJ": "KOU",
        "VERB": r"VV\(",
    },
    "nl": {
        "ADJ": r"ADJ|TW\(rang",
        "ADP": "VZ",
        "ADV": "BW",
        "CCONJ": r"VG\(neven",
        "DET": r"LID|VNW\([^,]*,det",
        "INTJ": "TSW",
        "NOUN": r"N\(soort",
        "NUM": r"TW\(hoofd",
        "PRON": "VNW",
        "PROPN": r"N\(eigen",
        "PUNCT": "LET",
        "SCONJ": r"VG\(onder",
        "VERB": "WW",
    },
}


def load_tagger(language: str) -> Tagger:
    """What says the class of each word of a sentence.

    Args:
        language: `en`, `de` or `nl`.

    Returns:
        A function of a sentence's words, in their order, that gives each one's class by its name in Universal
        Dependencies, such as `NOUN`; `X` is any other. Dutch auxiliaries are `VERB`; English *be*, *do* and *have* are
        `AUX` wherever they stand.

    Raises:
        ValueError: HanTa is not installed.
    """
    with optional_packages("--word_classes", "word-classes", "HanTa"):
        from HanTa.HanoverTagger import HanoverTagger
    spec = cast(Any, find_spec("HanTa"))
    # The whole path: of a bare name HanTa would unpickle a file in the current folder first.
    tagger = HanoverTagger(str(Path(spec.submodule_search_locations[0]) / _FILES[language]))

    def classes(words: Sequence[str]) -> list[str]:
        tags = tagger.tag_sent([word[:_LONGEST] for word in words], taglevel=0)
        return [_class_of(tag, language) for tag in tags]

    return classes


def _class_of(tag: str, language: str) -> str:
    return next((name for name, begins in _CLASSES[language].items() if re.match(begins, tag)), _OTHER)
