"""What a sentence encoder computes, as one number that tells it from all others."""

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

from modeling_dsa.files.model_hashes import config_hash, tokenizer_hash

from .encoder import SentenceEncoder


def model_hash(encoder: SentenceEncoder) -> str:
    """SHA-256 of the config, the tokenizer and the weights of a model, in hexadecimal digits."""
    config = encoder.model.config.to_json_string(use_diff=False)
    digest = hashlib.sha256(config_hash(config).encode())
    digest.update(tokenizer_hash(encoder.tokenizer.backend_tokenizer.to_str()).encode())
    hash_state(digest, encoder.model.state_dict())
    return digest.hexdigest()


def hash_state(digest: "hashlib._Hash", state: Mapping[str, Tensor]) -> None:
    """Let a hash go on over the names and the bytes of a model's weights."""
    for name, tensor in state.items():
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
