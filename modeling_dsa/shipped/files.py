"""Where the files that ship with the package lie: in a checkout, and where a wheel has installed them."""

from pathlib import Path

_HERE = Path(__file__).parent
_CHECKOUT = _HERE.parents[1]


def shipped(installed: str, in_checkout: str) -> Path:
    """The path of a file or folder that ships.

    Args:
        installed: Where a wheel puts it, from this module's folder.
        in_checkout: Where it lies in a checkout, from the repository's root.
    """
    path = _HERE / installed
    return path if path.exists() else _CHECKOUT / in_checkout


CONFIGURATION = shipped("configuration", "configuration")
CARD_TEMPLATE = shipped("template.md.jinja", "model_cards/template.md.jinja")
MODEL_CARDS = _CHECKOUT / "model_cards"  # a wheel has none
