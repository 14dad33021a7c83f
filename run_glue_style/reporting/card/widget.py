"""Inputs on a model's page and what the model says to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from transformers import PreTrainedModel, PreTrainedTokenizerBase, pipeline


@dataclass(frozen=True)
class WidgetExample:
    """An input and what the model made of it.

    Attributes:
        text: A text, or a pair as `premise [SEP] hypothesis`: the Hub's examples have one text.
        output: Score of every class, the highest first.
    """

    text: str
    output: Mapping[str, float]


def widget_examples(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str | tuple[str, str]]
) -> list[WidgetExample]:
    """Run a classifier through transformers' text-classification pipeline and keep what it says.

    Args:
        model: A classifier of this package.
        tokenizer: Its tokenizer.
        texts: Texts, or pairs for a model that reads pairs.
    """
    classify = pipeline(
        "text-classification", model=model, tokenizer=cast(Any, tokenizer), device=model.device, top_k=None
    )
    inputs = [text if isinstance(text, str) else f" {tokenizer.sep_token} ".join(text) for text in texts]
    outputs = classify(inputs)
    return [
        WidgetExample(text, {str(scored["label"]): float(scored["score"]) for scored in cast(Any, output)})
        for text, output in zip(inputs, outputs, strict=True)
    ]
