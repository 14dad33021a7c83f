"""A sentence-transformers model that costs nothing: the mean of random word vectors tells any two sentences apart."""

from pathlib import Path

from small_models import randomize, small_config
from small_runs import small_tokenizer

from modeling_dsa import DSAModel


def save_teacher(folder: Path, width: int) -> Path:
    """Save one whose vectors have so many numbers, and return its folder."""
    config = small_config(vocab_size=len(small_tokenizer()), embedding_size=width, encoder="none", pooling="mean")
    randomize(DSAModel(config)).save_pretrained(folder)
    small_tokenizer().save_pretrained(folder)
    return folder
