"""What a loaded model must be to give vectors: complete and finite. It goes to the Hub with the model."""

from collections.abc import Iterable

import torch
from torch import nn


def refuse_missing_weights(source: str, missing: Iterable[str], has_head: bool) -> None:
    """Refuse a file of weights that lacks some, which would be drawn at random.

    Args:
        source: Where the model comes from, for the message.
        missing: Names of the weights that the file lacks.
        has_head: Whether the model was saved with a classifier; an encoder may get a new one.

    Raises:
        ValueError: The file lacks weights of what was saved.
    """
    names = sorted(name for name in missing if has_head or not name.startswith("classifier."))
    if names:
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise ValueError(f"{source}: the file of weights lacks {names[0]}{others}; save or download the model again.")


@torch.no_grad()
def refuse_nonfinite_weights(source: str, model: nn.Module) -> None:
    """Refuse weights or statistics that are NaN or infinite; those that are offloaded to a disk are not read.

    Raises:
        ValueError: There are some.
    """
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_meta or not tensor.is_floating_point() or not tensor.numel():
            continue
        # The extremes carry NaN along, and need no mask as large as a word table.
        if not torch.stack(torch.aminmax(tensor)).isfinite().all():
            raise ValueError(f"{source}: the weights {name} are not finite; save or download the model again.")
