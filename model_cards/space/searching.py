"""Search by meaning: the sentences of a small corpus that are nearest to a text."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow.parquet

from modeling_dsa import SentenceEncoder
from modeling_dsa.batching_dsa import Vectors
from run_glue_style.sample import SAMPLE_FILES

CORPUS_SIZE = 500  # distinct sentences: captions of photographs, and what people wrote about them
NEAREST = 5


@dataclass(frozen=True)
class Neighbour:
    """A sentence of the corpus with the cosine of its vector and the text's."""

    sentence: str
    cosine: float


@cache
def corpus() -> list[str]:
    """The first distinct sentences of SNLI's validation pairs that ship with the package."""
    pairs = pyarrow.parquet.read_table(SAMPLE_FILES["validation"], columns=["premise", "hypothesis"])
    texts = (pair[name] for pair in pairs.slice(0, CORPUS_SIZE).to_pylist() for name in ("premise", "hypothesis"))
    return list(dict.fromkeys(texts))[:CORPUS_SIZE]


def nearest(encoder: str, text: str) -> list[Neighbour]:
    """The sentences that mean most nearly the same, the nearest first.

    Args:
        encoder: A folder, or an id of the Hub.
        text: What to look for.

    Raises:
        OSError: The encoder is not there, or not complete.
        ValueError: It is no model of the DSA family.
    """
    loaded, vectors = _load(encoder)
    cosines = vectors @ loaded.encode(text, normalize=True)  # (sentences,)
    first = np.argsort(-cosines, kind="stable")[:NEAREST]
    return [Neighbour(corpus()[index], float(cosines[index])) for index in first]


@cache
def _load(encoder: str) -> tuple[SentenceEncoder, Vectors]:
    """An encoder and the corpus's vectors, (sentences, width), once."""
    loaded = SentenceEncoder.from_pretrained(encoder)
    return loaded, loaded.encode(corpus(), normalize=True)
