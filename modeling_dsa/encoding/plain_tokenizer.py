"""A tokenizer that normalises only the texts that need it: few do, and normalising takes most of the time."""

from collections.abc import Sequence

from tokenizers import Encoding, Tokenizer, normalizers

from modeling_dsa.batching_dsa import Text, TextTokenizer
from modeling_dsa.text.word_rules import is_plain, usual_normalized


class PlainTokenizer(TextTokenizer):
    """A tokenizer by `modeling_dsa.text.word_rules` that leaves out what would change nothing.

    One that gets more tokens later is used as it is.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take a tokenizer.

        Args:
            tokenizer: One whose normaliser is that of the rules, and whose added tokens need none.
        """
        super().__init__(tokenizer)
        added = tokenizer.get_added_tokens_decoder()
        self._added_tokens = [token.content for token in added.values()]
        self._plain = Tokenizer(tokenizer.model)  # the same vocabulary, not a copy
        self._lowercase = tokenizer.normalizer.normalize_str("A") == "a"
        if self._lowercase:
            self._plain.normalizer = normalizers.Lowercase()
        self._plain.pre_tokenizer = tokenizer.pre_tokenizer
        self._plain.post_processor = tokenizer.post_processor
        for token in added.values():  # in the order of their ids, which stay so
            add = self._plain.add_special_tokens if token.special else self._plain.add_tokens
            add([token])

    @property
    def _is_as_it_was(self) -> bool:
        return len(self.tokenizer.get_added_tokens_decoder()) == len(self._added_tokens)

    def _encode(self, texts: Sequence[Text], add_special_tokens: bool) -> list[Encoding]:
        if not self._is_as_it_was:
            return super()._encode(texts, add_special_tokens)
        normalized = [self._normalized(text) for text in texts]
        chosen = [text for text in normalized if text is not None]
        others = [text for text, found in zip(texts, normalized, strict=True) if found is None]
        found = iter(self._plain.encode_batch_fast(chosen, add_special_tokens=add_special_tokens) if chosen else ())
        rest = iter(super()._encode(others, add_special_tokens) if others else ())
        return [next(rest if text is None else found) for text in normalized]

    def _normalized(self, text: Text) -> Text | None:
        """A text or a pair as the normaliser leaves it, but for its case; None where that is not known."""
        if isinstance(text, tuple):
            first, second = self._normalized(text[0]), self._normalized(text[1])
            return None if first is None or second is None else (first, second)  # type: ignore[return-value]
        if is_plain(text):
            return text
        found = usual_normalized(text)
        # What stands before and behind an added token is normalised apart, and none comes about by it.
        has_added = found is None or any(token in text or token in found for token in self._added_tokens)
        return None if has_added else found
