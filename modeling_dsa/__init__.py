"""Dynamic Self-Attention sentence encoders for transformers. Importing this package registers them with AutoModel."""

from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

from .configuration_dsa import DSAConfig
from .modeling_dsa import (
    DSAClassifierOutput,
    DSAForNLI,
    DSAForSequenceClassification,
    DSAModel,
    DSAModelOutput,
    DSAPreTrainedModel,
)

AutoConfig.register("dsa", DSAConfig)
AutoModel.register(DSAConfig, DSAModel)
AutoModelForSequenceClassification.register(DSAConfig, DSAForSequenceClassification)

__all__ = [
    "DSAClassifierOutput",
    "DSAConfig",
    "DSAForNLI",
    "DSAForSequenceClassification",
    "DSAModel",
    "DSAModelOutput",
    "DSAPreTrainedModel",
]
