"""Sentences to vectors: one batch, or any number of files."""
