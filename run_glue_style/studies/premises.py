"""What the studies of attention share: the sentences that they read, and a model's attention over them."""

from collections.abc import Iterator, Sequence
from typing import cast

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from modeling_dsa import DSAModel
from modeling_dsa.explanation.attention import require_attention
from modeling_dsa.files.loading import load_model_and_tokenizer
from modeling_dsa.files.text_files import read_texts
from modeling_dsa.packing_dsa import sentence_masks
from run_glue_style.sample import SAMPLE_FILES

NAME = f"premises of {SAMPLE_FILES['validation'].name}"
_BATCH = 256  # sentences


def read_premises() -> list[str]:
    """The different premises of SNLI's dev split, which ship."""
    return list(dict.fromkeys(read_texts([SAMPLE_FILES["validation"]], ["premise"])))


def load_encoder(folder: str) -> tuple[DSAModel, PreTrainedTokenizerBase]:
    """The encoder of a trained model, without its head, and its tokenizer."""
    model, tokenizer = load_model_and_tokenizer(folder)
    return cast(DSAModel, model.base_model), tokenizer


@torch.inference_mode()
def attention_batches(
    model: DSAModel, tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str]
) -> Iterator[tuple[tuple[Tensor, ...], Tensor]]:
    """A model's attention over sentences, batch by batch.

    Yields:
        The weights of each iteration, (batch, heads, tokens), and the number of tokens that it reads, (batch,).

    Raises:
        ValueError: The model's pooling has none.
    """
    require_attention(model.config)
    for start in range(0, len(sentences), _BATCH):
        batch = tokenizer(list(sentences[start : start + _BATCH]), padding=True, return_tensors="pt")
        read = sentence_masks(
            model.config, batch["input_ids"], batch["attention_mask"], None
        )  # (batch, 1 or 2, tokens)
        yield model(**batch, output_attentions=True).attentions, read.sum((1, 2))
