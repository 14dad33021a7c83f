"""What a sentence encoder computes, as one number that tells it from all others."""

import hashlib
import json

import torch

from .encoder import SentenceEncoder

# Fields of a config that say where it comes from, and not what the model computes.
_ORIGIN = ("_name_or_path", "auto_map", "custom_pipelines", "fold_embeddings", "transformers_version")


def model_hash(encoder: SentenceEncoder) -> str:
    """SHA-256 of the config, the tokenizer and the weights of a model, in hexadecimal digits."""
    config = {name: value for name, value in encoder.model.config.to_dict().items() if name not in _ORIGIN}
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
    digest.update(encoder.tokenizer.backend_tokenizer.to_str().encode())
    for name, tensor in encoder.model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.cpu().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
