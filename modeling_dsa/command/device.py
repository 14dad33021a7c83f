"""Where a command computes."""

import os


def default_device() -> str:
    """Where a model computes if nobody says it: on a GPU where there is one, that of `LOCAL_RANK`, else on the CPU."""
    import torch

    gpus = torch.cuda.device_count()  # which processes share where they are fewer
    return f"cuda:{int(os.environ.get('LOCAL_RANK', 0)) % gpus}" if gpus else "cpu"
