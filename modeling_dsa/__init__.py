"""Dynamic Self-Attention sentence encoders for transformers. Importing this package registers them with AutoModel."""

from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification
from transformers.pipelines import PIPELINE_REGISTRY

from .configuration_dsa import DSAConfig
from .encoding.encoder import SentenceEncoder
from .modeling_dsa import (
    DSAClassifierOutput,
    DSAForNLI,
    DSAForSequenceClassification,
    DSAModel,
    DSAModelOutput,
    DSAPreTrainedModel,
)
from .pipeline_dsa import SentenceEmbeddingPipeline

AutoConfig.register("dsa", DSAConfig)
AutoModel.register(DSAConfig, DSAModel)
# Of several classes AutoModel takes the one that config.json names, so that a model is saved as what it was.
AutoModelForSequenceClassification.register(DSAConfig, (DSAForSequenceClassification, DSAForNLI))
PIPELINE_REGISTRY.register_pipeline("sentence-embedding", SentenceEmbeddingPipeline, pt_model=AutoModel, type="text")

__all__ = [
    "DSAClassifierOutput",
    "DSAConfig",
    "DSAForNLI",
    "DSAForSequenceClassification",
    "DSAModel",
    "DSAModelOutput",
    "DSAPreTrainedModel",
    "SentenceEmbeddingPipeline",
    "SentenceEncoder",
]
