"""A tokenizer that remembers: where most of a text stood in earlier ones, to look it up takes a tenth of the time.

What stands between two spaces is a chunk, such as `man,` or `isn't`. By the rules of `modeling_dsa.text.word_rules` no
token contains a space, and what a chunk becomes depends on no other one, but for this: whether `J.` or `no.` is one
token is decided by whether a letter or a number follows. So a text's tokens are those of its chunks, unless a chunk is
of that kind; such a text goes to the tokenizer whole, and so does one with a very long chunk.

Short texts of one kind, such as captions, soon hold nothing new. Texts of many kinds go on to, and to learn that costs
more than to look up saves: there the tokenizer alone works, and now and then it is tried again.
"""

import hashlib

from tokenizers import Tokenizer

from modeling_dsa.batching_dsa import Text, TextTokenizer
from modeling_dsa.text.word_rules import is_plain, is_simple_word

from .plain_tokenizer import PlainTokenizer

# SHA-256 of what `_rules` finds in the tokenizers of this package; a test compares. Another one is used as it is.
_KNOWN = frozenset(
    (
        "08b236abfeae4214539f5397e2fae8bc6714be406a254e30e8df9b765aeccc56",  # lower case, words
        "306e4207f31ff0b02f54d78a7bf85349a9de45ddbe0dbe7e36821d9d39a0b48c",  # lower case, words and pieces
        "349a0b6be69f3d2c021140612173121c6587956ff01ca282389270600b7dda60",  # words
        "a61aa9bc0ef4cdfbb8f8c931a89f562a1e25cc853158d0f8a6872c1e55aa499f",  # words and pieces
    )
)
_LONGEST_CHUNK = 64  # characters
_MOST_CHUNKS = 1 << 16  # some 250 bytes each
_FEW_CHUNKS = 1 << 13  # so many are learnt at any cost
_COST = 8  # of learning a chunk: it pays where so many others are looked up for it
_JUDGED_CHUNKS = 1 << 14  # by so many it is judged whether it does
_PAUSE = 16  # times as many texts as were judged, if not
_FOLLOWING = ("a", "1")  # a letter and a number


def text_tokenizer(tokenizer: Tokenizer) -> TextTokenizer:
    """What tokenises texts quickest, with the same ids.

    Args:
        tokenizer: The model's.
    """
    is_known = tokenizer.normalizer is not None and _rules(tokenizer) in _KNOWN
    added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    are_words = all(is_plain(content) and " " not in content for content in added)
    return CachingTokenizer(tokenizer) if is_known and are_words else TextTokenizer(tokenizer)


def _rules(tokenizer: Tokenizer) -> str:
    """How a tokenizer normalises and splits texts and joins pairs."""
    parts = (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.post_processor)
    return hashlib.sha256(b"".join(part.__getstate__() for part in parts)).hexdigest()


class CachingTokenizer(PlainTokenizer):
    """A tokenizer of this package that remembers the ids of chunks. Threads can share it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take a tokenizer.

        Args:
            tokenizer: One whose rules `text_tokenizer` knows.
        """
        super().__init__(tokenizer)
        self._last: dict[str, list[int]] = {}  # of chunks with which a text ends
        self._inner: dict[str, list[int] | None] = {}  # of others; None where they depend on what follows
        self._texts, self._chunks, self._new = 0, 0, 0  # that are to be judged
        self._paused = 0  # texts that are left of a pause
        self._separator = self._encode([("", "")], True)[0].ids
        added = tokenizer.get_added_tokens_decoder().values()
        self._words_are_whole = not any(is_simple_word(token.content) for token in added)  # one may stand inside a word

    def rows(
        self, texts: list[Text], with_types: bool, add_special_tokens: bool
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Ids of each text and, where they are wanted, its types."""
        if self._paused > 0 or not self._is_as_it_was:
            self._paused -= len(texts)
            return super().rows(texts, with_types, add_special_tokens)
        sides = [
            [side.rstrip(" ").split(" ") for side in ((text,) if isinstance(text, str) else text)] for text in texts
        ]
        self._learn([chunks for of_text in sides for chunks in of_text])
        separator = self._separator if add_special_tokens else []
        ids: list[list[int]] = []
        types: list[list[int]] = []
        unknown = []
        for index, (first, *second) in enumerate(sides):
            row = self._look_up(first)
            count = 0 if row is None else len(row)
            for chunks in second:
                following = self._look_up(chunks)
                row = None if row is None or following is None else row + separator + following
                count += len(separator)
            if row is None:
                unknown.append(index)
                row, count = [], 0
            if with_types:
                types.append([0] * count + [1] * (len(row) - count))
            ids.append(row)
        if unknown:
            rows = super().rows([texts[index] for index in unknown], with_types, add_special_tokens)
            for kept, found in zip((ids, types), rows, strict=True):
                for index, row in zip(unknown, found, strict=False):
                    kept[index] = row
        return ids, types

    def _look_up(self, chunks: list[str]) -> list[int] | None:
        """A text's ids, if those of all of its chunks are known."""
        *inner, last = chunks
        ids: list[int] = []
        try:
            for chunk in inner:
                ids += self._inner[chunk]  # type: ignore[arg-type]
            ids += self._last[last]
        except (KeyError, TypeError):
            return None
        return ids

    def _learn(self, texts: list[list[str]]) -> None:
        """Remember the chunks of texts, as many as there is room for."""
        inner, last = set[str](), set[str]()
        for *before, end in texts:
            inner.update(before)
            last.add(end)
        new = self._unknown(inner, last)
        self._judge(len(texts), sum(map(len, texts)), len(new))
        if len(self._last) + len(new) > _MOST_CHUNKS:
            self._last.clear()
            self._inner.clear()
            new = self._unknown(inner, last)[:_MOST_CHUNKS]
        if not new:
            return
        found = self._words(new) if self._words_are_whole else {}
        others = [chunk for chunk in new if chunk not in found]
        found.update((chunk, of_it.ids) for chunk, of_it in zip(others, self._encode(others, False), strict=True))
        self._last.update(found)
        doubtful = [chunk for chunk in new if "." in chunk and chunk in inner]
        depend = set[str]()
        for following in _FOLLOWING if doubtful else ():
            own, *both = self._encode([following, *(f"{chunk} {following}" for chunk in doubtful)], False)
            encodings = zip(doubtful, both, strict=True)
            depend.update(chunk for chunk, encoding in encodings if encoding.ids != found[chunk] + own.ids)
        known = (chunk for chunk in new if "." not in chunk or chunk in inner)
        self._inner.update((chunk, None if chunk in depend else found[chunk]) for chunk in known)

    def _judge(self, texts: int, chunks: int, new: int) -> None:
        """Pause after these texts, where so much is new that to remember costs more than it saves."""
        self._texts, self._chunks, self._new = self._texts + texts, self._chunks + chunks, self._new + new
        if len(self._last) > _FEW_CHUNKS and self._chunks >= _JUDGED_CHUNKS:
            if _COST * self._new > self._chunks:
                self._paused = _PAUSE * self._texts
            self._texts, self._chunks, self._new = 0, 0, 0

    def _words(self, chunks: list[str]) -> dict[str, list[int]]:
        """Those chunks that are one word of the vocabulary: half of them, at a tenth of the tokenizer's time."""
        found = {}
        for chunk in chunks:
            if is_simple_word(chunk):
                number = self._plain.token_to_id(chunk.lower() if self._lowercase else chunk)
                if number is not None:
                    found[chunk] = [number]
        return found

    def _unknown(self, inner: set[str], last: set[str]) -> list[str]:
        """Chunks whose ids are not known and shall be."""
        chunks = {chunk for chunk in inner if chunk not in self._inner}
        chunks.update(chunk for chunk in last if chunk not in self._last)
        return [chunk for chunk in chunks if len(chunk) <= _LONGEST_CHUNK]
