"""Words that are near in meaning, by an encoder's vectors."""

import re
from collections import Counter
from collections.abc import Iterable

from sklearn.neighbors import NearestNeighbors

from modeling_dsa.encoding.encoder import SentenceEncoder

MOST_WORDS, FEWEST_OCCURRENCES = 12_000, 3
_WORD = re.compile(r"[^\W\d_]{3,}")


def near_words(encoder: SentenceEncoder, sentences: Iterable[str], count: int) -> dict[str, list[str]]:
    """The frequent words of sentences, each with its nearest ones among them.

    Args:
        encoder: Its vectors of single words are compared by their cosine.
        sentences: Where the words are from.
        count: How many a word has, nearest first.

    Returns:
        By the word, in lower case. Empty where no word is frequent.
    """
    occurrences = Counter(word for sentence in sentences for word in _WORD.findall(sentence.lower()))
    words = [word for word, times in occurrences.most_common(MOST_WORDS) if times >= FEWEST_OCCURRENCES]
    if len(words) < 2:
        return {}
    vectors = encoder.encode(words)  # (words, width)
    neighbours = NearestNeighbors(n_neighbors=min(count, len(words) - 1), metric="cosine").fit(vectors)
    found = neighbours.kneighbors(return_distance=False)  # (words, count); without the word itself
    return {word: [words[index] for index in row] for word, row in zip(words, found, strict=True)}
