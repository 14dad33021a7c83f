"""transformers' own tests of a model family: `ModelTesterMixin`, `TrainingTesterMixin` and `ConfigTester`.

What does not hold for this family stands in `FamilyTests` and its subclasses, each with its reason: either the mixin is
told what else to expect, or the test is expected to fail, and fails here when it no longer does.
"""

import importlib
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
import torch
from small_models import FIRST_TOKEN, SEP, VOCABULARY, small_config
from torch import Tensor
from transformers.models.auto import modeling_auto
from transformers.testing_utils import torch_device

from modeling_dsa import DSAConfig, DSAForNLI, DSAForSequenceClassification, DSAModel

pytest.importorskip("transformers_tests", reason="transformers' source distribution could not be downloaded")
ConfigTester = importlib.import_module("transformers_tests.test_configuration_common").ConfigTester
ModelTesterMixin = importlib.import_module("transformers_tests.test_modeling_common").ModelTesterMixin
TrainingTesterMixin = importlib.import_module("transformers_tests.test_training_mixin").TrainingTesterMixin

pytestmark = pytest.mark.slow

SEPARATOR = 4  # its index in an example that is a pair


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mixin knows by these names which model is a base model and which a classifier."""
    monkeypatch.setitem(modeling_auto.MODEL_MAPPING_NAMES, "dsa", "DSAModel")
    classifiers = ("DSAForSequenceClassification", "DSAForNLI")
    monkeypatch.setitem(modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES, "dsa", classifiers)


def random_rows(batch: int, tokens: int) -> Tensor:
    """Ids of tokens, with a separator at `SEPARATOR`. (batch, tokens)"""
    ids = torch.randint(FIRST_TOKEN, VOCABULARY, (batch, tokens))
    ids[:, SEPARATOR] = SEP
    return ids


class SmallFamily:
    """What the mixin calls a model tester: a small config, a batch, and what to expect of the outputs.

    Attributes:
        batch_size: Rows of the batch.
        seq_length: Words of a row, with its padding.
        is_training: Whether the models are trained, too.
        num_attention_heads: Heads, as in the config.
        num_hidden_layers: Layers, as in the config.
        encoder_seq_length: Rows of an attention map.
        key_length: Columns of an attention map.
        hidden_size: Width of the first hidden states, which are the word vectors.
        expected_num_hidden_layers: Number of hidden states.
        sequence_classification_class: The model to train.
    """

    batch_size, seq_length, is_training = 4, 9, True

    def __init__(self, settings: dict[str, Any], hidden_states: int, classifier: type) -> None:
        self._settings = settings
        config = self.get_config()
        self.num_attention_heads = config.num_attention_heads
        self.num_hidden_layers = config.num_hidden_layers
        self.encoder_seq_length = self.key_length = self.seq_length
        self.hidden_size = config.embedding_size
        self.expected_num_hidden_layers = hidden_states
        self.sequence_classification_class = classifier

    def get_config(self) -> DSAConfig:
        """A new config."""
        # So wide that the mean of a layer's weights is near 0, which a test of the mixin asks of any initialisation.
        return small_config(classifier_hidden_sizes=[32, 32], **self._settings)

    def prepare_config_and_inputs_for_common(self) -> tuple[DSAConfig, dict[str, Tensor]]:
        """A new config and a batch. The last row is a copy of the first, the second is padded."""
        config = self.get_config()
        ids = random_rows(self.batch_size, self.seq_length)
        if config.sentences_per_example == 1:
            ids[:, SEPARATOR] = FIRST_TOKEN
        ids[-1] = ids[0]
        mask = torch.ones_like(ids)
        mask[1, -2:] = 0
        return config, {"input_ids": ids.to(torch_device), "attention_mask": mask.to(torch_device)}


class FamilyTests(ModelTesterMixin, TrainingTesterMixin):  # type: ignore[misc, valid-type]
    """All tests, and what differs in every model of this family.

    Attributes:
        settings: Of the small config.
        hidden_states: Number of hidden states: the word vectors, what the encoder has between, the encoded tokens.
        attention_maps: Number of attention maps.
    """

    all_model_classes: tuple[type, ...] = (DSAModel, DSAForSequenceClassification)
    test_can_init_all_missing_weights_before_2023 = True  # our files bear no year, by which that test is skipped
    training_overfit_steps = 100
    training_overfit_learning_rate = 0.03
    settings: ClassVar[dict[str, Any]] = {}
    hidden_states = 2
    attention_maps = 1

    def setUp(self) -> None:
        self._use()

    def _use(self, **changes: Any) -> None:
        self.model_tester = SmallFamily(self.settings | changes, self.hidden_states, self.all_model_classes[-1])

    def test_config(self) -> None:
        ConfigTester(self, config_class=DSAConfig, **self.settings).run_common_tests()

    def test_attention_outputs(self) -> None:
        """A token's weight is its share in its sentence's vector, so maps are (batch, heads, tokens) and not square."""
        tester = self.model_tester
        tester.num_hidden_layers = self.attention_maps
        # The mixin's names for the last three dimensions of a map: heads, queries and keys.
        shape = (tester.batch_size, tester.num_attention_heads, tester.seq_length)
        tester.num_attention_heads, tester.encoder_seq_length, tester.key_length = shape
        super().test_attention_outputs()

    def test_training_overfit(self) -> None:
        """Noise and a penalty keep a loss from falling to a tenth."""
        self._use(embedding_dropout=0.0, hidden_dropout=0.0, classifier_dropout=0.0, attention_penalty=0.0)
        super().test_training_overfit()

    def _create_text_training_batch(self, batch_size: int, seq_length: int, vocab_size: int) -> dict[str, Tensor]:
        """A row has one class, where the mixin's batch has one for each token."""
        return {"input_ids": random_rows(batch_size, seq_length), "labels": torch.arange(batch_size)}

    @pytest.mark.xfail(
        strict=True,
        raises=(AssertionError, RuntimeError),
        reason="a frozen word table has no gradient, and what a caller gets of the tokens is laid out anew from packed "
        "rows, beside the way of the gradients",
    )
    def test_retain_grad_hidden_states_attentions(self) -> None:
        super().test_retain_grad_hidden_states_attentions()


class DynamicSelfAttentionTest(FamilyTests, unittest.TestCase):
    settings: ClassVar = {"num_attention_heads": 2, "freeze_embeddings": False}
    hidden_states = 4
    attention_maps = 2


class PairsTest(FamilyTests, unittest.TestCase):
    all_model_classes = (DSAModel, DSAForNLI)
    settings: ClassVar = {
        "sentences_per_example": 2,
        "pair_features": ["first", "second", "difference", "product", "cosine"],
    }
    hidden_states = 4
    attention_maps = 2

    def test_inputs_embeds_matches_input_ids(self) -> None:
        """Word vectors do not tell the separator: the mask and the token types have to say what is in a row."""
        tester = self.model_tester
        _, inputs = tester.prepare_config_and_inputs_for_common()
        inputs["attention_mask"][:, SEPARATOR] = 0
        types = torch.zeros_like(inputs["attention_mask"])
        types[:, SEPARATOR + 1 :] = 1
        super().test_inputs_embeds_matches_input_ids(attention_mask=inputs["attention_mask"], token_type_ids=types)


class StaticSelfAttentionTest(FamilyTests, unittest.TestCase):
    settings: ClassVar = {"encoder": "kim_cnn", "kernel_sizes": [3, 2, 4], "hidden_size": 6, "pooling": "static"}


class StructuredSelfAttentionTest(FamilyTests, unittest.TestCase):
    settings: ClassVar = {
        "encoder": "bilstm",
        "hidden_size": 6,
        "pooling": "structured",
        "num_attention_heads": 3,
        "attention_penalty": 0.3,
    }
    hidden_states = 3


class PairwiseSelfAttentionTest(FamilyTests, unittest.TestCase):
    settings: ClassVar = {"encoder": "pairwise", "pooling": "pairwise", "num_attention_heads": 2}
    hidden_states = 3


class Undivided:
    """Lets a part of a test that fails as expected be a failure of the whole test."""

    @contextmanager
    def subTest(self, msg: object = None, **params: Any) -> Iterator[None]:  # noqa: N802
        yield


class VariationalSelfAttentionTest(Undivided, FamilyTests, unittest.TestCase):
    settings: ClassVar = {"pooling": "variational", "num_attention_heads": 2}
    hidden_states = 4

    @pytest.mark.xfail(
        strict=True,
        raises=AssertionError,
        reason="the posterior has a vector for each class, so num_labels is a size of DSAModel, too",
    )
    def test_can_load_ignoring_mismatched_shapes(self) -> None:
        super().test_can_load_ignoring_mismatched_shapes()

    @pytest.mark.xfail(
        strict=True,
        raises=ValueError,
        reason="the posterior reads one class of a row, which other problem types do not have",
    )
    def test_problem_types(self) -> None:
        super().test_problem_types()


class MeanTest(Undivided, FamilyTests, unittest.TestCase):
    settings: ClassVar = {"encoder": "none", "pooling": "mean"}

    @pytest.mark.xfail(strict=True, raises=AssertionError, reason="no encoder has no layer to compute again")
    def test_training_gradient_checkpointing(self) -> None:
        super().test_training_gradient_checkpointing()

    @pytest.mark.xfail(strict=True, raises=AssertionError, reason="no encoder has no layer to compute again")
    def test_training_gradient_checkpointing_use_reentrant_false(self) -> None:
        super().test_training_gradient_checkpointing_use_reentrant_false()


class MaxTest(FamilyTests, unittest.TestCase):
    settings: ClassVar = {"pooling": "max"}
    hidden_states = 4


class LastTest(FamilyTests, unittest.TestCase):
    settings: ClassVar = {"encoder": "bilstm", "hidden_size": 6, "pooling": "last"}
    hidden_states = 3
    has_attentions = False
