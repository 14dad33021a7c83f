"""Scores of a classifier's labels for any number of texts."""

from collections.abc import Sequence

import torch
from transformers import PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import Batch, Text, TextTokenizer, Vectors, compute_in_batches
from modeling_dsa.encoding.finite import first_nonfinite
from modeling_dsa.modeling_dsa import DSAForSequenceClassification
from modeling_dsa.prediction.logits import logits_to_scores, score_function


def label_scores(
    model: DSAForSequenceClassification, tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text]
) -> Vectors:
    """Score texts, each distinct one once; the same texts have the same scores each time.

    Args:
        model: A classifier, on any device. It is put into evaluation mode.
        tokenizer: Its tokenizer.
        texts: Texts, or pairs for a model that reads pairs.

    Returns:
        Probabilities of the labels, or the numbers of a regression. (texts, num_labels)

    Raises:
        ValueError: One of them is not finite.
    """
    model.eval()

    @torch.inference_mode()
    def logits(batch: Batch) -> Vectors:
        ids, mask, types = (
            torch.from_numpy(array).to(model.device)
            for array in (batch.input_ids, batch.attention_mask, batch.token_type_ids)
        )
        found: torch.Tensor = model(ids, attention_mask=mask.long(), token_type_ids=types, return_dict=True).logits
        return found.float().cpu().numpy()  # (batch, num_labels)

    function = score_function(model.config)
    with torch.random.fork_rng(devices=[] if model.device.type == "cpu" else None):
        torch.manual_seed(0)  # of a variational model that predicts from samples
        found = compute_in_batches(TextTokenizer(tokenizer.backend_tokenizer), texts, logits, model.num_labels)
    scores = logits_to_scores(found, function)
    wrong = first_nonfinite(scores)
    if wrong is not None:
        raise ValueError(f"The model's scores of {texts[wrong]!r:.80} are not finite: give another model.")
    return scores
