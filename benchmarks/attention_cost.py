"""What encoder and attention add to a mean of words, in points and microseconds: a teacher's students in one runtime.

    python benchmarks/attention_cost.py --rounds 9 --bulk 2048 --output benchmarks/attention_cost.json

The students are those of `results/distillation-dynamic`: dsa-base-en with dynamic or static self-attention over its
encoder, and a learnt weighted mean of its words in place of both. Their points, the cosine to the teacher on held-out
sentences after one epoch, are read from that study's table. Their time is measured here, in ONNX int8, of models of the
same sizes with the words and the tokenizer of dsa-base-en; other weights are random, as speed does not depend on them.
"""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from lib.options import make_parser, recorded_options
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import REPOSITORY
from lib.speeds import read_lists, sentences_per_second

from modeling_dsa import DSAConfig, DSAModel
from modeling_dsa.onnx.export import export_onnx
from modeling_dsa.onnx.session import OnnxModel
from run_glue_style.reporting.grid.table import read_grid_table

ENCODER = REPOSITORY / "model_cards" / "dsa-base-en"
STUDY = REPOSITORY / "results" / "distillation-dynamic"
STUDENTS = ("base", "static", "static-length-8", "mean-of-words")  # its rows that differ in their pooling
METRIC = "validation.cosine"
NUMBERS = ("token_norm", "num_attention_heads")
TABLE = Table(
    (
        Column("student", "{name}", is_text=True),
        Column("cosine to the teacher after one epoch, x 100", "{points:.1f}"),
        Column("in bulk, us a sentence", "{bulk_us:.0f}"),
        Column("one at a time, us", "{single_us:.0f}"),
    )
)


def save_student(options: dict[str, Any], folder: Path) -> None:
    """A model of the study's sizes with its ONNX files.

    Args:
        options: What its row changes in the config.
        folder: Where; it is made.
    """
    shutil.copytree(ENCODER, folder)
    changes: dict[str, Any] = {name: int(value) if name in NUMBERS else value for name, value in options.items()}
    model = DSAModel(DSAConfig.from_pretrained(ENCODER, **changes)).eval()
    words = DSAModel.from_pretrained(ENCODER).get_input_embeddings().weight
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(words)
    model.save_pretrained(folder)
    export_onnx(folder, folder / "onnx", quantize=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Read the command line, measure, keep what was found."""
    shown = "2 rounds of 16 and 2 sentences, the last student"
    parser = make_parser(__doc__, 9, "lists for each student", shown, threads=False)
    arguments, lists = read_lists(parser, argv)
    study = read_grid_table(STUDY)
    assert study is not None
    machine = describe_machine()
    with tempfile.TemporaryDirectory() as made:
        students = {}
        for row in STUDENTS[-1:] if arguments.quick else STUDENTS:
            save_student(study.grid.rows[row].options, Path(made) / row)
            students[row] = OnnxModel.from_pretrained(Path(made) / row, quantized=True).encode
        speeds = {way: sentences_per_second(students, way, of_way) for way, of_way in lists.items()}
    results = []
    for row in students:
        values = study.values(row, METRIC).values()
        name = "dynamic" if row == "base" else row
        of_row = {f"{way}_us": 1e6 / speeds[way][row] for way in speeds}
        results.append({"name": name, "points": 100 * sum(values) / len(values), **of_row})
    keep(Record(recorded_options(arguments), machine, {}, results), TABLE, arguments.output)


if __name__ == "__main__":
    main()
