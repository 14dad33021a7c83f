"""A tokenizer that normalises only the texts that need it: few do, and normalising takes half of the time."""

from collections.abc import Sequence

from tokenizers import Encoding, Tokenizer, normalizers

from modeling_dsa.batching_dsa import Text, TextTokenizer
from modeling_dsa.text.word_rules import is_plain


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
        self._added_tokens = len(added)
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
        return len(self.tokenizer.get_added_tokens_decoder()) == self._added_tokens

    def _encode(self, texts: Sequence[Text], add_special_tokens: bool) -> list[Encoding]:
        plain = [is_plain(text) if isinstance(text, str) else is_plain(text[0]) and is_plain(text[1]) for text in texts]
        if not any(plain) or not self._is_as_it_was:
            return super()._encode(texts, add_special_tokens)
        chosen = [text for text, is_one in zip(texts, plain, strict=True) if is_one]
        found = iter(self._plain.encode_batch_fast(chosen, add_special_tokens=add_special_tokens))
        others = [text for text, is_one in zip(texts, plain, strict=True) if not is_one]
        normalized = iter(super()._encode(others, add_special_tokens) if others else ())
        return [next(found if is_one else normalized) for is_one in plain]
