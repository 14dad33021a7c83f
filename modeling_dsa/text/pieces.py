"""The pieces of words, learnt from how often words occur."""

from collections.abc import Collection, Iterator, Mapping

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from .special_tokens import UNK
from .tokenization import CONTINUING


def learn_pieces(counts: Mapping[str, int], size: int, *, words: Collection[str] = ()) -> list[str]:
    """Learn the pieces that words are most often built of, by merging the most frequent pairs of neighbours.

    A word counts by the logarithm of its frequency: frequent words are tokens of their own, and pieces are for the many
    rare ones. The same counts give the same pieces.

    Args:
        counts: How often each word occurs, such as `count_words` says.
        size: How many pieces; there are fewer where the words have no more.
        words: Tokens that the vocabulary has already.

    Returns:
        Pieces of two or more characters, such as `un` or `##ing`, those that were merged first at the front.
    """
    known = set(words)
    characters = sorted({character for word in counts for character in word})
    # They get their numbers here: the trainer's own depend on the run, and of pairs that are as frequent it merges that
    # with the lower numbers first.
    single = [*characters, *sorted({CONTINUING + character for word in counts for character in word[1:]})]
    wanted = len(single) + size
    while True:
        merged = _merged(counts, single, wanted)
        pieces = [piece for piece in merged if piece not in known]
        if len(pieces) >= size or len(single) + len(merged) < wanted:
            return pieces[:size]
        wanted += max(size - len(pieces), size // 4)


def _merged(counts: Mapping[str, int], single: list[str], size: int) -> list[str]:
    """What is merged until there are `size` pieces with the single characters, in that order."""

    def repeated() -> Iterator[str]:
        for word, count in counts.items():
            if len(word) > 1:
                yield " ".join([word] * count.bit_length())

    tokenizer = Tokenizer(models.WordPiece({UNK: 0}, unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, show_progress=False, continuing_subword_prefix=CONTINUING, special_tokens=single
    )
    tokenizer.train_from_iterator(repeated(), trainer)
    vocabulary = tokenizer.get_vocab()
    return sorted(vocabulary.keys() - set(single), key=lambda piece: vocabulary[piece])
