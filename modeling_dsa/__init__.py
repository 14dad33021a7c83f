"""Dynamic Self-Attention sentence encoders for transformers. Importing this package registers them with AutoModel.

Neither torch nor transformers is imported before something needs them: the public names load when they are asked for,
and the model family is registered as soon as transformers' auto classes or pipelines are imported, before or after this
package.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING, Any

from wrapt import register_post_import_hook

if TYPE_CHECKING:
    from .configuration_dsa import DSAConfig as DSAConfig
    from .encoding.encoder import SentenceEncoder as SentenceEncoder
    from .explanation.explain import Explanation as Explanation
    from .explanation.explain import explain as explain
    from .modeling_dsa import DSAClassifierOutput as DSAClassifierOutput
    from .modeling_dsa import DSAForNLI as DSAForNLI
    from .modeling_dsa import DSAForSequenceClassification as DSAForSequenceClassification
    from .modeling_dsa import DSAModel as DSAModel
    from .modeling_dsa import DSAModelOutput as DSAModelOutput
    from .modeling_dsa import DSAPreTrainedModel as DSAPreTrainedModel
    from .pipeline_dsa import SentenceEmbeddingPipeline as SentenceEmbeddingPipeline
    from .zero_shot_dsa import ZeroShotSimilarityPipeline as ZeroShotSimilarityPipeline

    __version__: str

_MODULE_OF_NAME = {
    "DSAClassifierOutput": "modeling_dsa",
    "DSAConfig": "configuration_dsa",
    "DSAForNLI": "modeling_dsa",
    "DSAForSequenceClassification": "modeling_dsa",
    "DSAModel": "modeling_dsa",
    "DSAModelOutput": "modeling_dsa",
    "DSAPreTrainedModel": "modeling_dsa",
    "Explanation": "explanation.explain",
    "SentenceEmbeddingPipeline": "pipeline_dsa",
    "SentenceEncoder": "encoding.encoder",
    "ZeroShotSimilarityPipeline": "zero_shot_dsa",
    "explain": "explanation.explain",
}

__all__ = [*_MODULE_OF_NAME, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("dsa-transformers")
    if name in _MODULE_OF_NAME:
        return getattr(import_module(f"{__name__}.{_MODULE_OF_NAME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register_config(module: ModuleType) -> None:
    from transformers import AutoConfig

    AutoConfig.register("dsa", module.DSAConfig)


def _register_models(module: ModuleType) -> None:
    from transformers import AutoModel, AutoModelForSequenceClassification

    AutoModel.register(module.DSAConfig, module.DSAModel)
    # Of several classes AutoModel takes the one that config.json names, so that a model is saved as what it was.
    classifiers = (module.DSAForSequenceClassification, module.DSAForNLI)
    AutoModelForSequenceClassification.register(module.DSAConfig, classifiers)


def _register_sentence_embedding(module: ModuleType) -> None:
    _register_pipeline("sentence-embedding", module.SentenceEmbeddingPipeline)


def _register_zero_shot_similarity(module: ModuleType) -> None:
    _register_pipeline("zero-shot-similarity", module.ZeroShotSimilarityPipeline)


def _register_pipeline(task: str, pipeline: type) -> None:
    from transformers import AutoModel
    from transformers.pipelines import PIPELINE_REGISTRY

    PIPELINE_REGISTRY.register_pipeline(task, pipeline, pt_model=AutoModel, type="text")


def _register_when_imported(ours: str, trigger: str, register: Callable[[ModuleType], None]) -> None:
    """Register the classes of our module once it is complete, and import it when another module, the trigger, is.

    Either may come first: the import of our module may be what makes transformers import its own.
    """
    register_post_import_hook(register, f"{__name__}.{ours}")

    def import_ours(_: ModuleType) -> None:
        import_module(f"{__name__}.{ours}")

    register_post_import_hook(import_ours, trigger)


_register_when_imported("configuration_dsa", "transformers.models.auto.configuration_auto", _register_config)
# A config asks the poolings when it is made, and without one nobody looks a model up. The import of AutoModel would be
# too early: transformers' layers, of which our models are made, import it half way through their own module.
_register_when_imported("modeling_dsa", f"{__name__}.poolings_dsa", _register_models)
_register_when_imported("pipeline_dsa", "transformers.pipelines", _register_sentence_embedding)
# It is made from the other pipeline, whose import may be what imports transformers' pipelines.
_register_when_imported("zero_shot_dsa", f"{__name__}.pipeline_dsa", _register_zero_shot_similarity)
