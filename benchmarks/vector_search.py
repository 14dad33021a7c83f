"""What smaller vectors cost a search: int8, and the first numbers only, against all numbers in float32.

    python benchmarks/vector_search.py --output benchmarks/vector_search.json

Told is how many of the ten sentences that are nearest to a query by the cosine of float32 vectors are among the ten
that are nearest by that of the smaller ones, queries and sentences being of the same kind. All are compared, without an
index that approximates. The queries are drawn from the sentences; none finds itself.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from lib.nearest import nearest, recall
from lib.options import make_parser, parse, recorded_options, reports_mistakes
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import REPOSITORY, draw_sentences
from sklearn.preprocessing import normalize

from modeling_dsa.batching_dsa import VectorType
from modeling_dsa.command.command_line import whole_number
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.encoding.sources import open_sentences

DTYPES: tuple[VectorType, ...] = ("float32", "int8")
SHARES = (1, 3 / 4, 1 / 2, 1 / 3, 1 / 4, 1 / 6)  # of a vector's numbers
TABLE = Table(
    (
        Column("model", "{name}", is_text=True),
        Column("first numbers", "{width}"),
        Column("of type", "{dtype}", is_text=True),
        Column("bytes a sentence", "{bytes:,}"),
        Column("recall of the ten nearest", "{recall_at_10:.1%}"),
    )
)


def main(argv: Sequence[str] | None = None) -> None:
    """Encode the sentences, search with smaller vectors, keep what was found."""
    parser = make_parser(__doc__, 3, "draws of queries", "300 sentences, 20 queries", threads=False)
    parser.add_argument("--texts", help="sentences: what `dsa encode` reads (default: the shipped sample of SNLI)")
    parser.add_argument("--model", nargs="+", default=[str(REPOSITORY / "model_cards" / "dsa-base-en")])
    parser.add_argument("--sentences", type=whole_number(100), default=50_000, help="searched (default: %(default)s)")
    parser.add_argument("--queries", type=whole_number(1), default=1000, help="in each draw (default: %(default)s)")
    arguments = parse(parser, argv, {"sentences": 300, "queries": 20})
    with reports_mistakes(parser):
        if arguments.texts is None:
            sentences = draw_sentences(arguments.sentences)
        else:
            texts = dict.fromkeys(open_sentences(arguments.texts).read())
            sentences = list(itertools.islice(texts, arguments.sentences))
    machine, results = describe_machine(), []
    for model in arguments.model:
        encoder = SentenceEncoder.from_pretrained(model, device="cpu")
        vectors = {dtype: encoder.encode(sentences, dtype=dtype).astype(np.float32) for dtype in DTYPES}
        draws = [
            np.random.default_rng(seed).permutation(len(sentences))[: arguments.queries]
            for seed in range(arguments.rounds)
        ]
        whole = normalize(vectors["float32"])  # (sentences, width)
        expected = [nearest(whole[own], whole, own) for own in draws]
        for width in (round(share * encoder.width) for share in SHARES):
            for dtype in DTYPES:
                found = normalize(vectors[dtype][:, :width])  # (sentences, width)
                recalls = [
                    recall(one, nearest(found[own], found, own)) for one, own in zip(expected, draws, strict=True)
                ]
                results.append(
                    {
                        "name": Path(model).name,
                        "width": width,
                        "dtype": dtype,
                        "bytes": width * np.dtype(dtype).itemsize,
                        "recall_at_10": float(np.mean(recalls)),
                        "draws": recalls,
                    }
                )
    setup = {
        "texts": "sample of SNLI" if arguments.texts is None else Path(arguments.texts).name,
        "searched": len(sentences),
    }
    keep(
        Record(recorded_options(arguments, "model", "texts"), machine, setup, results),
        TABLE,
        arguments.output,
    )


if __name__ == "__main__":
    main()
