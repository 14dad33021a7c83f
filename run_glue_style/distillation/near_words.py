"""Words that are near in meaning, by an encoder's vectors."""

from collections.abc import Iterable

from sklearn.neighbors import NearestNeighbors

from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.text.tokenization import count_words

MOST_WORDS, FEWEST_OCCURRENCES = 12_000, 3
FEWEST_LETTERS = 3


def near_words(encoder: SentenceEncoder, sentences: Iterable[str], count: int) -> dict[str, list[str]]:
    """The frequent words of sentences, each with its nearest ones among them.

    Args:
        encoder: Its vectors of single words are compared by their cosine.
        sentences: Where the words are from.
        count: How many a word has, nearest first.

    Returns:
        By the word, in lower case. Empty where no word is frequent.
    """
    occurrences = count_words(sentences, lowercase=True)
    words = [
        word
        for word, times in occurrences.items()
        if times >= FEWEST_OCCURRENCES and len(word) >= FEWEST_LETTERS and word.isalpha()
    ][:MOST_WORDS]
    if len(words) < 2:
        return {}
    vectors = encoder.encode(words)  # (words, width)
    neighbours = NearestNeighbors(n_neighbors=min(count, len(words) - 1), metric="cosine").fit(vectors)
    found = neighbours.kneighbors(return_distance=False)  # (words, count); without the word itself
    return {word: [words[index] for index in row] for word, row in zip(words, found, strict=True)}
