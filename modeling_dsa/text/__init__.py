"""Texts to token ids: tokenizer, vocabulary, word vectors."""
