"""How much each word of a text counts for a classifier's decision, by its attention and by methods of captum."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from captum.attr import InputXGradient, IntegratedGradients
from torch import Tensor

from modeling_dsa.modeling_dsa import DSAForSequenceClassification

from .attention import Weights, sum_pieces
from .words import TextWords

INTEGRATION_STEPS = 50  # captum's default


@dataclass(frozen=True)
class Decision:
    """What a classifier decides about an example, and what each of its words counts for it.

    Attributes:
        inputs: What the model takes. (1, tokens) each
        texts: The words of each text.
        label: The index of the predicted class.
        attributions: By method, for each text: a number of each word, large where it counts. (words,)
    """

    inputs: dict[str, Tensor]
    texts: list[TextWords]
    label: int
    attributions: dict[str, list[Weights]]


def attribute(model: DSAForSequenceClassification, inputs: dict[str, Tensor], texts: list[TextWords]) -> Decision:
    """Classify an example and say what each of its words counts.

    - attention: the weights after the last routing iteration, the mean over the heads.
    - gradient x input: the gradient of the predicted class's logit times the word vectors, summed over their numbers.
    - integrated gradients (Sundararajan et al. 2017): the same, with the mean gradient on the way from word vectors of
      0, in 50 steps.

    Both gradients are of what the words bring to the texts' vectors: where the model also compares which words two
    texts share, that stays as it is.

    Args:
        model: In evaluation mode, and with `prediction_samples(0)`.
        inputs: What it takes, (1, tokens) each, as `find_words` gives it.
        texts: The words of each text, of which there are some.
    """
    with torch.no_grad():
        outputs = model(**inputs, output_attentions=True)
    label = int(outputs.logits[0].argmax())
    token_scores = {"attention": outputs.attentions[-1][0].mean(0)} | _gradients(model, inputs, texts, label)
    attributions = {
        method: [sum_pieces(scores.float().numpy(), text.tokens) for text in texts]
        for method, scores in token_scores.items()
    }
    return Decision(inputs, texts, label, attributions)


def _gradients(
    model: DSAForSequenceClassification, inputs: dict[str, Tensor], texts: list[TextWords], label: int
) -> dict[str, Tensor]:
    """The attribution of each token by each method of captum, (tokens,)."""
    vectors = model.get_input_embeddings()(inputs["input_ids"]).detach()  # (1, tokens, d_0)
    is_read = torch.zeros_like(inputs["attention_mask"])  # word vectors do not say what is a separator
    is_read[0, [token for text in texts for word in text.tokens for token in word]] = 1

    with torch.no_grad():
        overlap = model.token_overlap(**inputs)  # (1, 5)

    def logits(inputs_embeds: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        outputs = model.dsa(inputs_embeds=inputs_embeds, attention_mask=mask, token_type_ids=types)
        shared = None if overlap is None else overlap.expand(len(mask), -1)  # captum gives several steps at once
        return model.sampled_logits(outputs, shared)[0]

    forward: Callable[..., Tensor] = logits
    others = (is_read, inputs["token_type_ids"])
    times_input = InputXGradient(forward).attribute(
        vectors.requires_grad_(), target=label, additional_forward_args=others
    )
    integrated = IntegratedGradients(forward).attribute(
        vectors, target=label, additional_forward_args=others, n_steps=INTEGRATION_STEPS
    )
    return {
        "gradient x input": times_input[0].detach().sum(-1),
        "integrated gradients": integrated[0].detach().sum(-1),
    }


def order_words(attributions: list[Weights]) -> list[np.ndarray]:
    """The words of each text, those that count most first; of equal ones the earlier. (words,) each"""
    return [np.argsort(-scores, kind="stable") for scores in attributions]
