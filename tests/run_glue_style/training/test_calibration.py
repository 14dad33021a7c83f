"""Calibration: what scipy finds by itself, taken in by the last layer."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax
from small_models import small_config
from small_runs import small_tokenizer, tokenized

from modeling_dsa import DSAForSequenceClassification
from run_glue_style.training.calibration import calibrate, require_all_classes
from run_glue_style.training.training_batches import PaddingCollator, model_inputs


def test_temperature_and_biases_are_those_of_another_optimizer_and_are_in_the_logits() -> None:
    tokenizer = small_tokenizer()
    config = small_config(vocab_size=len(tokenizer), sentences_per_example=2, num_labels=3)
    model = DSAForSequenceClassification(config).eval()
    batch = PaddingCollator(0)(tokenized("train", 60))
    labels = batch["labels"]
    with torch.no_grad():
        logits = model(**model_inputs(batch)).logits
        found = calibrate(model, logits, labels)
        calibrated = model(**model_inputs(batch)).logits

    def loss(parameters: np.ndarray) -> float:
        log_scale, biases = parameters[0], parameters[1:]
        likelihood = log_softmax(logits.double().numpy() * np.exp(log_scale) + biases, axis=1)
        return float(-likelihood[np.arange(60), labels.numpy()].sum() + np.square(parameters).sum() / 2)

    log_scale, *biases = minimize(loss, np.zeros(4)).x
    assert found["temperature"] == pytest.approx(np.exp(-log_scale), rel=1e-3)
    assert found["biases"] == pytest.approx(np.subtract(biases, np.mean(biases)), abs=1e-4)
    expected = logits / found["temperature"] + torch.tensor(found["biases"])
    torch.testing.assert_close(calibrated, expected, atol=1e-5, rtol=1e-5)


def test_a_class_without_examples_is_named() -> None:
    with pytest.raises(ValueError, match="fits each class on the dev split, which has no 'b': leave it out"):
        require_all_classes(np.array([0, 2, 2]), ("a", "b", "c"), "dev")
