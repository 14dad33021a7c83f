"""Pairs of the Fake News Challenge, real or synthetic, and the epochs over them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from datasets import Dataset

from modeling_dsa.text.tokenization import WordTokenizer, build_tokenizer, count_words
from modeling_dsa.text.word_vectors import WordVectors
from run_glue_style.tasks.distinct_texts import Indices, distinct_texts
from run_glue_style.tasks.stance import CLASS_NAMES
from run_glue_style.training.tokenized_examples import TokenizedExamples, TokenizedTexts, token_ids
from run_glue_style.training.training_batches import GroupedSampler

EMBEDDING_SIZE = 100
VOCABULARY = 25_000  # different words of the synthetic texts at most
HEADLINE_WORDS = 13
WAYS = ("texts once", "pairs alone", "grouped", "random", "every pair")


@dataclass(frozen=True)
class Size:
    """How much synthetic data there is; all body lengths are divided by `shortening`."""

    bodies: int = 1683
    headlines: int = 1648
    pairs: int = 49_972
    shortening: int = 1


QUICK = Size(bodies=60, headlines=40, pairs=600, shortening=20)


def body_lengths(size: Size) -> Indices:
    """Words of each body, with FNC-1's median 365, mean 443, 99th percentile 1,790 and maximum 5,650. (bodies,)

    They are evenly spaced quantiles of a log-normal distribution whose spread differs between its halves and has a
    longer end.
    """
    normal = statistics.NormalDist()
    deviates = [normal.inv_cdf((index + 0.5) / size.bodies) for index in range(size.bodies)]
    # The spread of the lower half, 1.02, is the one that gives the mean.
    knots = [-4, 0, normal.inv_cdf(0.99), max(deviates)]
    logarithms = [np.log(365) - 4 * 1.02, np.log(365), np.log(1790), np.log(5650)]
    lengths = np.exp(np.interp(deviates, knots, logarithms)) / size.shortening
    found: Indices = lengths.round().clip(min=1).astype(np.int64)
    return found


def synthetic_pairs(size: Size) -> Dataset:
    """Random pairs with the columns `headline`, `body` and `label`; every text stands in one at least."""
    generator = np.random.default_rng(0)
    chances = 1 / np.arange(3, VOCABULARY + 3)  # Zipf's law

    def text(words: int) -> str:
        return " ".join(f"w{word}" for word in generator.choice(VOCABULARY, words, p=chances / chances.sum()))

    def column(texts: Sequence[str], weights: np.ndarray) -> list[str]:
        counts = 1 + generator.multinomial(size.pairs - len(texts), weights / weights.sum())
        return [texts[number] for number in generator.permutation(np.repeat(np.arange(len(texts)), counts))]

    bodies = [text(words) for words in generator.permutation(body_lengths(size))]
    headlines = [text(HEADLINE_WORDS) for _ in range(size.headlines)]
    return Dataset.from_dict(
        {
            # FNC-1 has a median of 21 pairs a body and 26 a headline, a 95th percentile of 87 and of 70.
            "headline": column(headlines, generator.gamma(2, size=size.headlines)),
            "body": column(bodies, generator.exponential(size=size.bodies)),
            "label": generator.integers(len(CLASS_NAMES), size=size.pairs).tolist(),
        }
    )


@dataclass(frozen=True)
class Pass:
    """An epoch in one way.

    Attributes:
        examples: What the batches are made of.
        measured: The batches that are run, as indices of examples.
        batches: Batches in the whole epoch.
        tokens: Tokens that the model reads in it, before `token_dropout`.
        measured_tokens: Those in the batches that are run.
    """

    examples: TokenizedExamples
    measured: Sequence[Indices]
    batches: int
    tokens: int
    measured_tokens: int


class StancePairs:
    """Training pairs, tokenised, and the epochs over them."""

    def __init__(self, data: Dataset) -> None:
        """Tokenise the pairs: a dataset with the columns `headline`, `body` and `label`."""
        texts = distinct_texts({"": data}, ("headline", "body"))
        words = count_words(texts.texts, lowercase=True)
        vectors = np.random.default_rng(0).normal(scale=0.4, size=(len(words), EMBEDDING_SIZE)).astype(np.float32)
        columns = texts.indices[""]
        self.vectors = WordVectors(list(words), vectors)
        self.tokenizer: WordTokenizer = build_tokenizer(words, lowercase=True)
        self._ids, self.lengths = token_ids(self.tokenizer.backend_tokenizer, texts.texts)
        self.texts = [columns["headline"], columns["body"]]  # (pairs,) of each
        self._labels = data["label"][:]

    def epoch(self, number: int, batch_size: int, sample: int, limit: int | None) -> dict[str, Pass]:
        """The passes of an epoch, by way.

        Args:
            number: Of the epoch; each has orders of its own.
            batch_size: Pairs in a batch.
            sample: How many batches are run in random order.
            limit: Tokens of a text that the model reads; None reads all.
        """
        # As in training, examples hold no more than the model reads: its batches are not padded to the longest body.
        tokenized = TokenizedTexts(self.tokenizer, self._ids, self.lengths, 2, limit)
        examples = TokenizedExamples(tokenized, self.texts, self._labels)
        starts = tokenized.ends - tokenized.lengths  # (texts,)
        read = self.lengths if limit is None else self.lengths.clip(max=limit)  # (texts,)
        # Texts that differ only in what the tokenizer or the model does not see are one text to the model.
        known: dict[bytes, int] = {}
        twins = np.asarray(
            [
                known.setdefault(self._ids[start : start + length].tobytes(), text)
                for text, (start, length) in enumerate(zip(starts, read, strict=True))
            ]
        )  # (texts,)

        def tokens_of(examples: TokenizedExamples, batch: Indices, deduplicate: bool) -> int:
            texts = np.concatenate([column[batch] for column in examples.texts])
            return int(read[np.unique(twins[texts]) if deduplicate else texts].sum())

        def make(
            examples: TokenizedExamples, batches: Sequence[Indices], measured: Sequence[Indices], deduplicate: bool
        ) -> Pass:
            tokens, measured_tokens = (
                sum(tokens_of(examples, batch, deduplicate) for batch in some) for some in (batches, measured)
            )
            return Pass(examples, measured, len(batches), tokens, measured_tokens)

        sampler = GroupedSampler(self.texts[1].tolist(), seed=0)
        sampler.set_epoch(number)
        grouped = _cut(np.asarray(list(sampler)), batch_size)
        generator = np.random.default_rng(number)
        random = _cut(generator.permutation(len(examples)), batch_size)
        chosen = [random[index] for index in np.unique(np.linspace(0, len(random) - 1, sample).round().astype(int))]
        passes = {
            "grouped": make(examples, grouped, grouped, True),
            "random": make(examples, random, chosen, True),
            "every pair": make(examples, random, chosen, False),
        }
        texts, batches = _texts_once(generator, tokenized, read, passes["grouped"].tokens / len(grouped))
        return {"texts once": make(texts, batches, batches, True), "pairs alone": passes["grouped"], **passes}


def _texts_once(
    generator: np.random.Generator, tokenized: TokenizedTexts, read: Indices, tokens: float
) -> tuple[TokenizedExamples, list[Indices]]:
    """Each distinct text once, two to an example, and batches of about so many tokens."""
    order = generator.permutation(len(read))
    order = np.append(order, order[-1:]) if len(order) % 2 else order  # the model encodes a copy once
    columns = [order[0::2], order[1::2]]
    labels = generator.integers(len(CLASS_NAMES), size=len(columns[0])).tolist()
    ends = (read[columns[0]] + read[columns[1]]).cumsum()  # (examples,)
    cuts = np.flatnonzero(np.diff((ends // tokens).astype(int))) + 1
    return TokenizedExamples(tokenized, columns, labels), np.split(np.arange(len(labels)), cuts)


def _cut(order: Indices, size: int) -> list[Indices]:
    """Batches of so many examples. A last one of a single example is dropped, as in training."""
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    return batches[:-1] if len(batches[-1]) == 1 else batches
