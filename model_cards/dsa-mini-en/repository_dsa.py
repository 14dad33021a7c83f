"""What makes the folder of a saved model a complete Hub repository: its code, and how other libraries read it.

This file goes to the Hub with the model, so that a model that was loaded from there can be saved as completely.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from transformers.dynamic_module_utils import get_relative_import_files

# sentence-transformers reads a plain folder as mean pooling over words; these make it take the model's own vector.
_SENTENCE_TRANSFORMERS: dict[str, Any] = {
    "modules.json": [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}],
    "sentence_bert_config.json": {
        "transformer_task": "feature-extraction",
        "modality_config": {"text": {"method": "sentence_vectors", "method_output_name": None}},
        "module_output_name": "sentence_embedding",
    },
    "config_sentence_transformers.json": {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine"},
}


def automatic_classes(classifier: str) -> dict[str, Any]:
    """The entries of config.json by which transformers finds the code: `auto_map` and `custom_pipelines`.

    Args:
        classifier: Name of the class that AutoModelForSequenceClassification shall give.
    """
    return {
        "auto_map": {
            "AutoConfig": "configuration_dsa.DSAConfig",
            "AutoModel": "modeling_dsa.DSAModel",
            "AutoModelForSequenceClassification": f"modeling_dsa.{classifier}",
        },
        "custom_pipelines": {
            task: {"impl": pipeline, "pt": ["AutoModel"], "type": "text"}
            for task, pipeline in (
                ("sentence-embedding", "pipeline_dsa.SentenceEmbeddingPipeline"),
                ("zero-shot-similarity", "zero_shot_dsa.ZeroShotSimilarityPipeline"),
            )
        },
    }


def write_repository_files(folder: Path) -> None:
    """Write the code, flat, and the files of sentence-transformers and of Inference Endpoints beside the weights."""
    model_file = Path(__file__).with_name("modeling_dsa.py")
    # The search of transformers' own loader: what it finds is what it will ask the Hub for.
    for path in {model_file, *map(Path, get_relative_import_files(model_file))}:
        shutil.copyfile(path, folder / path.name)
    for name, content in _SENTENCE_TRANSFORMERS.items():
        if not (folder / name).exists():  # sentence-transformers writes its prompts and modules first
            (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
