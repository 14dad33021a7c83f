from collections.abc import Callable, Sequence

import lib.peers
import numpy as np
import pytest
import torch
from lib.peers import (
    BiLSTMAttention,
    BiLSTMMax,
    TransformerMean,
    Vectors,
    in_padded_batches,
    installed_packages,
    random_table,
)
from torch import nn

from modeling_dsa.text.tokenization import build_tokenizer


@pytest.mark.parametrize(
    "make",
    [
        lambda table: BiLSTMMax(table, 5),
        lambda table: BiLSTMAttention(table, 5, 7),
        lambda table: TransformerMean(table, 3, 2, longest=9),
    ],
    ids=["max", "attention", "transformer"],
)
def test_padding_does_not_change_what_a_peer_makes_of_a_sentence(
    make: Callable[[nn.Embedding], BiLSTMMax | BiLSTMAttention | TransformerMean],
) -> None:
    encoder = make(random_table(50, 12)).eval()
    ids = torch.tensor([[4, 5, 6, 0, 0], [7, 8, 9, 10, 11], [12, 0, 0, 0, 0]])
    together = encoder(ids, (ids != 0).long())
    assert together.shape == (3, encoder.width)
    alone = [encoder(row[row != 0][None], torch.ones(1, int((row != 0).sum()), dtype=torch.int64))[0] for row in ids]
    torch.testing.assert_close(together, torch.stack(alone))
    assert not torch.allclose(together[0], together[1], atol=1e-3)


def test_padded_batches_keep_the_order() -> None:
    tokenizer = build_tokenizer(["a", "man", "is", "asleep"], lowercase=True)
    encode = in_padded_batches(BiLSTMMax(random_table(len(tokenizer), 6), 4), tokenizer, 2)
    sentences = ["a", "a man is asleep", "man", "a man", "a man is a man"]
    np.testing.assert_allclose(encode(sentences), np.concatenate([encode([text]) for text in sentences]), atol=1e-6)


def test_packages_that_are_absent_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(sentences: Sequence[str]) -> Vectors:
        return np.zeros((len(sentences), 2), np.float32)

    packages = {
        "there": ("json", "json", lambda: encode),
        "absent": ("no_such_module", "no-such-package", lambda: encode),
    }
    monkeypatch.setattr(lib.peers, "PACKAGES", packages)
    assert installed_packages() == ({"there": encode}, {"absent": "pip install no-such-package"})
