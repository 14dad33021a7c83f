"""Whether a device has instructions for bf16. Without them it still computes, many times as slowly as in float32."""

import torch


def computes_in_bf16(device: torch.device) -> bool:
    """Whether bf16 is arithmetic of the hardware, and not emulated."""
    if device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
