"""Tokens that are no words. Neither torch nor transformers is imported for them."""

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[SEP]")
PAD, UNK, SEP = SPECIAL_TOKENS
