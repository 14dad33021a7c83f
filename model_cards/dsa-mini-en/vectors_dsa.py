"""The vectors that a model gives a batch of sentences."""

import torch
from torch import Tensor
from transformers import PreTrainedModel

from .batching_dsa import Batch, Vectors


@torch.inference_mode()
def batch_vectors(model: PreTrainedModel, batch: Batch) -> Vectors:
    """The vectors of a batch, as `DSAModel.sentence_vectors` gives them. (batch, m * d_o)"""
    # Offloaded weights are on no device until they are needed.
    device = next((weight.device for weight in model.parameters() if not weight.is_meta), torch.device("cpu"))
    ids, mask = (torch.from_numpy(array).to(device) for array in (batch.input_ids, batch.attention_mask))
    vectors: Tensor = model.sentence_vectors(ids, mask)  # type: ignore[operator]  # of DSAModel
    return vectors.float().cpu().numpy()
