"""NLI accuracy of the peers that `encode.py` measures the speed of: of a classifier on their frozen vectors.

    python benchmarks/peer_accuracy.py --output benchmarks/peer_accuracy.json

Training MiniLM or an LSTM of 2 x 2048 to the end takes days on a CPU. What is measured instead is what their users do:
sentence vectors u and v as they come, and a classifier on [u; v; |u - v|; u * v], one hidden layer of 512 units
(scikit-learn's `MLPClassifier`, Adam, early stopping on a tenth of the training pairs). The pairs are those that ship
with the package, the first `--pairs` of the train split in random order, and the whole dev split. The mean of GloVe is
that of the vectors that ship with the package, of 100 numbers. dsa-small-snli, trained on all of the pairs, takes part
as well, to show what such a classifier is worth against the model's own.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
from encode import TRAINED
from measuring import keep, machine, make_parser
from peers import Encode, Vectors, installed_packages
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm.auto import tqdm

from modeling_dsa import DSAConfig, DSAModel
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.text.building import build_model, vocabulary_from_texts
from run_glue_style.sample import SAMPLE_FILES, SAMPLE_VECTORS

HIDDEN = 512
Pairs = dict[str, list[Any]]


def read_pairs(split: str, count: int | None = None) -> Pairs:
    """Some pairs of a split, drawn at random, or all in their order."""
    table = parquet.read_table(SAMPLE_FILES[split])
    if count is not None:
        table = table.take(np.random.default_rng(0).permutation(len(table))[:count])
    found: Pairs = table.to_pydict()
    return found


def mean_of_glove(sentences: Sequence[str]) -> Encode:
    """The mean of the shipped vectors of a sentence's words; other words are left at their random start."""
    tokenizer, vectors = vocabulary_from_texts(SAMPLE_VECTORS, sentences)
    model = build_model(DSAModel, DSAConfig(encoder="none", pooling="mean"), tokenizer, vectors, seed=0)
    return SentenceEncoder(model.eval(), tokenizer).encode


def features(encode: Encode, pairs: Pairs) -> Vectors:
    """[u; v; |u - v|; u * v] of each pair, each distinct sentence encoded once. (pairs, 4 * width)"""
    number: dict[str, int] = {}
    first, second = (
        [number.setdefault(text, len(number)) for text in pairs[side]] for side in ("premise", "hypothesis")
    )
    vectors = encode(list(number))
    u, v = vectors[first], vectors[second]
    return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


def accuracies(encode: Encode, train: Pairs, validation: Pairs, rounds: int) -> list[float]:
    """Of classifiers on frozen vectors, on the dev pairs, one for each seed."""
    seen, asked = features(encode, train), features(encode, validation)
    found = []
    for seed in range(rounds):
        classifier = MLPClassifier(
            (HIDDEN,), batch_size=256, early_stopping=True, n_iter_no_change=3, random_state=seed
        )
        model = make_pipeline(StandardScaler(), classifier)
        model.fit(seen, train["label"])
        found.append(float(model.score(asked, validation["label"])))
    return found


def as_markdown(record: Mapping[str, Any]) -> str:
    """One table, the best last."""
    lines = ["| frozen vectors of | SNLI dev accuracy of a classifier on them |", "|---|---:|"]
    found = sorted((statistics.mean(values), name) for name, values in record["accuracies"].items())
    return "\n".join([*lines, *(f"| {name} | {value:.1%} |" for value, name in found)])


def main() -> None:
    """Encode the pairs with everyone, fit, print the table."""
    parser = make_parser(__doc__, 1, "seeds of the classifier", "200 pairs, without the installed packages")
    parser.add_argument("--pairs", type=int, default=20_000, help="training pairs (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments = argparse.Namespace(**{**vars(arguments), "pairs": 200, "rounds": 1})
    if arguments.pairs < 100 or arguments.rounds < 1:
        parser.error("give at least 100 pairs and 1 round")
    train, validation = read_pairs("train", arguments.pairs), read_pairs("validation", 200 if arguments.quick else None)
    packages, missing = ({}, {}) if arguments.quick else installed_packages()
    texts = [text for pairs in (train, validation) for side in ("premise", "hypothesis") for text in pairs[side]]
    own = SentenceEncoder.from_pretrained(TRAINED, device="cpu").encode
    on = machine()
    encoders = {"mean of GloVe": mean_of_glove(texts), **packages, "dsa-small-snli": own}
    found = {
        name: accuracies(encode, train, validation, arguments.rounds)
        for name, encode in tqdm(encoders.items(), desc="Fitting classifiers")
    }
    record = {
        "rounds": arguments.rounds,
        "pairs": len(train["label"]),
        "dev_pairs": len(validation["label"]),
        **on,
        "missing": missing,
        "accuracies": found,
    }
    print(f"{record['pairs']:,} training pairs, {record['dev_pairs']:,} dev pairs.\n\n{as_markdown(record)}")
    if arguments.output:
        keep(record, as_markdown(record), arguments.output)


if __name__ == "__main__":
    main()
