"""NLI accuracy of the encoders that `encode.py` and `encoders_table.py` measure the speed of: of a classifier on their
frozen vectors.

    python benchmarks/peer_accuracy.py --output benchmarks/peer_accuracy.json

Training MiniLM or an LSTM of 2 x 2048 to the end takes days on a CPU. What is measured instead is what their users do:
sentence vectors u and v as they come, and a classifier on [u; v; |u - v|; u * v], one hidden layer of 512 units
(scikit-learn's `MLPClassifier`, Adam, early stopping on a tenth of the training pairs). The pairs are those that ship
with the package, the first `--pairs` of the train split in random order, and the whole dev split. Each class has the
same weight in training: the train split has few neutral pairs, the dev split as many as of the other classes. The mean
of GloVe is that of the vectors that ship with the package, of 100 numbers, and model2vec's that of the word table of
dsa-base-en. dsa-small-snli, trained on all of the pairs, takes part as well, to show what such a classifier is worth
against the model's own.
"""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from lib.options import make_parser, parse, recorded_options, reports_mistakes
from lib.peers import Encode, Vectors, installed_packages, mean_of_glove
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import SHIPPED_ENCODERS, SHIPPED_MODEL, Pairs, draw_pairs, read_pairs
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight
from tqdm.auto import tqdm

from modeling_dsa.command.command_line import whole_number
from modeling_dsa.encoding.encoder import SentenceEncoder
from run_glue_style.sample import SAMPLE_VECTORS

HIDDEN = 512
TABLE = Table(
    (
        Column("frozen vectors of", "{name}", is_text=True),
        Column("SNLI dev accuracy of a classifier on them", "{accuracy:.1%}"),
    )
)


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
    weights = compute_sample_weight("balanced", train["label"])
    found = []
    for seed in range(rounds):
        classifier = MLPClassifier(
            (HIDDEN,), batch_size=256, early_stopping=True, n_iter_no_change=3, random_state=seed
        )
        model = make_pipeline(StandardScaler(), classifier)
        model.fit(seen, train["label"], mlpclassifier__sample_weight=weights)
        found.append(float(model.score(asked, validation["label"])))
    return found


def measure(encoders: dict[str, Encode], train: Pairs, validation: Pairs, rounds: int) -> list[dict[str, Any]]:
    """The accuracies with each encoder, the best last."""
    found = {
        name: accuracies(encode, train, validation, rounds)
        for name, encode in tqdm(encoders.items(), desc="Fitting classifiers")
    }
    results = [{"name": name, "accuracy": statistics.mean(seeds), "seeds": seeds} for name, seeds in found.items()]
    return sorted(results, key=lambda result: result["accuracy"])


def main(argv: Sequence[str] | None = None) -> None:
    """Encode the pairs with everyone, fit, keep what was found."""
    quick = "200 pairs, without the installed packages"
    parser = make_parser(__doc__, 1, "seeds of the classifier", quick, threads=False)
    parser.add_argument("--pairs", type=whole_number(100), default=20_000, help="training pairs (default: %(default)s)")
    arguments = parse(parser, argv, {"pairs": 200, "rounds": 1})
    with reports_mistakes(parser):
        train = draw_pairs(arguments.pairs)
    validation = read_pairs("validation", 200 if arguments.quick else None)
    packages, missing = ({}, {}) if arguments.quick else installed_packages(SHIPPED_MODEL.parent / "dsa-base-en")
    texts = [text for pairs in (train, validation) for side in ("premise", "hypothesis") for text in pairs[side]]
    folders = {"dsa-small-snli": SHIPPED_MODEL, **{name: SHIPPED_MODEL.parent / name for name in SHIPPED_ENCODERS}}
    own = {name: SentenceEncoder.from_pretrained(folder, device="cpu").encode for name, folder in folders.items()}
    machine = describe_machine()
    encoders = {"mean of GloVe": mean_of_glove(texts, SAMPLE_VECTORS), **packages, **own}
    results = measure(encoders, train, validation, arguments.rounds)
    setup = {"dev_pairs": len(validation["label"]), "missing": missing}
    keep(Record(recorded_options(arguments), machine, setup, results), TABLE, arguments.output)


if __name__ == "__main__":
    main()
