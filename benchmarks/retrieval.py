"""Search across encoders: sentences encoded by a distilled encoder, queries by its teacher, whose space it shares.

    python benchmarks/retrieval.py --texts SENTENCES --teacher MODEL --output benchmarks/retrieval.json

An index of millions of sentences is made by the fast encoder, and the few queries are encoded by the teacher. Told is
how many of the ten sentences that the teacher finds nearest to a query, by the cosine of its own vectors, are among the
ten that are found in the student's. The queries are drawn from the first `--queries_among` sentences, which the student
was best not trained on; a query never finds itself. The first `--sentences` of the texts are searched.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from lib.nearest import nearest, recall
from lib.options import make_parser, parse, recorded_options, reports_mistakes
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import REPOSITORY
from sklearn.preprocessing import normalize

from modeling_dsa.command.command_line import whole_number
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.encoding.sources import open_sentences
from modeling_dsa.encoding.teacher import load_teacher
from run_glue_style.distillation.teacher_vectors import open_vectors

TABLE = Table(
    (
        Column("sentences encoded by", "{name}", is_text=True),
        Column("numbers", "{width}"),
        Column("mean cosine with the teacher's vector", "{cosine:.3f}"),
        Column("recall of the teacher's ten nearest, %", "{recall_at_10:.1%}"),
    )
)


def main(argv: Sequence[str] | None = None) -> None:
    """Encode the sentences with the teacher and the students, search, keep what was found."""
    parser = make_parser(__doc__, 1, "draws of queries", "300 sentences, 20 queries among 100", threads=False)
    parser.add_argument("--texts", required=True, help="sentences: what `dsa encode` reads")
    parser.add_argument("--teacher", required=True, help="a sentence-transformers model: a folder or the Hub's id")
    parser.add_argument("--teacher_vectors", type=Path, help="its vectors of the texts (.npy, or a folder of them)")
    parser.add_argument("--model", nargs="+", default=[str(REPOSITORY / "model_cards" / "dsa-base-en")])
    parser.add_argument("--sentences", type=whole_number(100), default=100_000, help="searched (default: %(default)s)")
    parser.add_argument("--queries", type=whole_number(1), default=1000, help="in each draw (default: %(default)s)")
    parser.add_argument("--queries_among", type=whole_number(1), default=10_000, help="(default: %(default)s)")
    arguments = parse(parser, argv, {"sentences": 300, "queries": 20, "queries_among": 100})
    with reports_mistakes(parser):
        encoders = {model: SentenceEncoder.from_pretrained(model, device="cpu") for model in arguments.model}
        sentences = list(itertools.islice(open_sentences(arguments.texts, None, None).read(), arguments.sentences))
        first = {text: row for row, text in reversed([*enumerate(sentences)])}  # a copy would be found as a neighbour
        rows = np.array(sorted(first.values()))
        if arguments.teacher_vectors is None:
            teacher = load_teacher(arguments.teacher).encode([sentences[row] for row in rows], show_progress_bar=True)
        else:
            vectors = open_vectors(arguments.teacher_vectors)
            if len(vectors) < len(sentences):
                raise ValueError(
                    f"{arguments.teacher_vectors} holds {len(vectors):,} vectors, and there are {len(sentences):,} "
                    "texts: give the vectors of these texts."
                )
            teacher = vectors.take(rows)
        for model, encoder in encoders.items():
            if encoder.width != teacher.shape[1]:
                raise ValueError(f"{model} has vectors of {encoder.width} numbers, its teacher of {teacher.shape[1]}.")
    sentences = [sentences[row] for row in rows]
    teacher = normalize(teacher)  # (sentences, width)
    machine, results = describe_machine(), []
    for model, encoder in encoders.items():
        student = normalize(encoder.encode(sentences))  # (sentences, width)
        recalls = []
        for seed in range(arguments.rounds):
            among = np.random.default_rng(seed).permutation(min(arguments.queries_among, len(sentences)))
            own = among[: arguments.queries]
            expected, found = (nearest(teacher[own], vectors, own) for vectors in (teacher, student))
            recalls.append(recall(expected, found))
        cosine = float((teacher * student).sum(axis=1).mean())
        name = Path(model).name
        results.append(
            {
                "name": name,
                "width": student.shape[1],
                "cosine": cosine,
                "recall_at_10": float(np.mean(recalls)),
                "draws": recalls,
            }
        )
    options = recorded_options(arguments, "model", "texts", "teacher", "teacher_vectors")
    setup = {"texts": Path(arguments.texts).name, "teacher": Path(arguments.teacher).name, "searched": len(sentences)}
    keep(Record(options, machine, setup, results), TABLE, arguments.output)


if __name__ == "__main__":
    main()
