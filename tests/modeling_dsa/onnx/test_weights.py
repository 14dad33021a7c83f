"""modeling_dsa.onnx.weights: a file has the hash of the model that is loaded from it."""

import io

import pytest
import torch
from safetensors.torch import save

from modeling_dsa.onnx import weights
from modeling_dsa.onnx.weights import weights_hash


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_has_the_hash_of_what_it_is_loaded_as(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "_READ_AT_ONCE", 64)  # bytes, of 700 and 1,400

    def hash_of(weight: torch.Tensor) -> str:
        return weights_hash(io.BytesIO(save({"weight": weight, "step": torch.tensor(3)})))

    for broken in (b"\xff" * 16, b"\x02" + bytes(7) + b"[]", b"\x0a" + bytes(7) + b'{"a": {}}\n'):
        with pytest.raises(ValueError, match="is no safetensors file"):
            weights_hash(io.BytesIO(broken))
    weight = torch.randn(50, 7, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert hash_of(weight) == hash_of(weight.float())
    assert hash_of(weight) != hash_of(weight.float() * 1.001)
    assert hash_of(weight) != hash_of(weight.double())
