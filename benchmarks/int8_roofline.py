"""What int8 can gain: where the time of a sentence goes in float32 and in int8, in bulk on one thread.

    python benchmarks/int8_roofline.py --rounds 9 --output benchmarks/int8_roofline.json

The encoders are those that ship, as the files of `dsa onnx --int8`. They encode lists of 2,048 new sentences in turn by
`OnnxModel`, on one thread, and its session of onnxruntime is timed within, so that both have met the same moments; the
tokenizer alone has a turn of its own. What is left is everything around them, such as making arrays. Figures are
medians over the lists.

How a session's time is shared by matrix products (with the activations that onnxruntime has made part of them),
look-ups (of rows of tables, and of the tokens of windows) and its other operators is what onnxruntime's profiler says.
It makes small operators slower, so that only the shares are from sessions that are profiled, on the same batches, and
the times from those that are not.

The last column is the roofline: how many times as fast as float32 in whole this row would be if its products took no
time at all and all else stayed as it is. In a row of float32 nothing that makes products alone faster can gain more; in
a row of int8, which also looks up bytes and has to round, no product of integers can.
"""

import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import onnxruntime
from lib.measuring import alternate
from lib.options import make_parser, parse, recorded_options, reports_mistakes
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import SHIPPED_ENCODERS, SHIPPED_MODEL, draw_sentences, encoders_with_onnx
from lib.speeds import WARM_UP_ROUNDS
from tokenizers import Tokenizer

from modeling_dsa.encoding.caching_tokenizer import text_tokenizer
from modeling_dsa.onnx.session import FILE, FOLDER, QUANTIZED_FILE, Arrays, OnnxModel

ENCODERS = (*SHIPPED_ENCODERS, SHIPPED_MODEL.name)
SENTENCES, QUICK_SENTENCES = 2_048, 16  # of a list
FORMS = {"float32": FILE, "int8": QUANTIZED_FILE}
TOKENIZER = "tokenizer"
PRODUCTS, LOOK_UPS, OTHERS = "products", "look_ups", "others"
OPERATORS = {PRODUCTS: ("MatMul", "Gemm", "Conv"), LOOK_UPS: ("Gather",)}  # a part of their names
TABLE = Table(
    (
        Column("encoder", "{name}", is_text=True),
        Column("form", "{form}", is_text=True),
        Column("a sentence, us", "{whole:.1f}"),
        Column("tokenising", "{tokenising:.1f}"),
        Column("matrix products", "{products:.1f}"),
        Column("look-ups", "{look_ups:.1f}"),
        Column("the session's other operators", "{others:.1f}"),
        Column("everything around", "{around:.1f}"),
        Column("as fast as float32", "{times_float32:.2f}x"),
        Column("were its products free", "{times_without_products:.2f}x"),
    )
)


class TimedModel:
    """An encoder in one form, whose session is timed.

    Attributes:
        name: The encoder's.
        form: A key of `FORMS`.
        session_seconds: What the session took for each list.
        batches: What it was given, of all lists.
    """

    def __init__(self, folder: Path, form: str) -> None:
        """Load it.

        Args:
            folder: The encoder's, with its ONNX files.
            form: A key of `FORMS`.
        """
        self.name, self.form = folder.name, form
        self.session_seconds: list[float] = []
        self.batches: list[Arrays] = []
        self._file = folder / FOLDER / FORMS[form]
        self._model = OnnxModel.from_pretrained(folder, quantized=form == "int8", threads=1)
        self._run = self._model.session.run
        self._model.session.run = self._run_timed

    def encode(self, sentences: Sequence[str]) -> None:
        """The whole way from text to vector."""
        self.session_seconds.append(0)
        self._model.encode(sentences)

    def _run_timed(self, outputs: list[str], batch: Arrays) -> Any:
        start = time.perf_counter()
        found = self._run(outputs, batch)
        self.session_seconds[-1] += time.perf_counter() - start
        self.batches.append(batch)
        return found

    def shares(self) -> dict[str, float]:
        """The share of each kind of operators in the session's time, by a profile of another one on all batches."""
        options = self._model.session.get_session_options()
        options.enable_profiling = True
        options.profile_file_prefix = str(self._file.with_suffix(""))
        session = onnxruntime.InferenceSession(self._file, options, providers=["CPUExecutionProvider"])
        for batch in self.batches:
            session.run(["pooler_output"], batch)
        return shares_of_kinds(json.loads(Path(session.end_profiling()).read_text(encoding="utf-8")))


def shares_of_kinds(events: Iterable[dict[str, Any]]) -> dict[str, float]:
    """The share of each kind of operators in the time of all.

    Args:
        events: As onnxruntime's profiler writes them.
    """
    times: Counter[str] = Counter()
    for event in events:
        if event["name"].endswith("_kernel_time"):
            times[kind_of(event["args"]["op_name"])] += event["dur"]
    return {kind: times[kind] / times.total() for kind in (PRODUCTS, LOOK_UPS, OTHERS)}


def kind_of(operator: str) -> str:
    """Of what kind an operator of onnxruntime is, such as QGemm or MatMulIntegerToFloat."""
    kinds = (kind for kind, parts in OPERATORS.items() if any(part in operator for part in parts))
    return next(kinds, OTHERS)


def figures(
    shares: dict[str, float], *, whole: float, tokenising: float, session: float, float32: float
) -> dict[str, Any]:
    """What a row of the table says of an encoder in one form.

    Args:
        shares: As `TimedModel.shares` gives them.
        whole: Microseconds a sentence.
        tokenising: Those of its tokenizer.
        session: Those of its session.
        float32: Those of the whole in float32.
    """
    of_session = {kind: share * session for kind, share in shares.items()}
    return {
        "whole": whole,
        "tokenising": tokenising,
        **of_session,
        "around": whole - tokenising - session,
        "times_float32": float32 / whole,
        "times_without_products": float32 / (whole - of_session[PRODUCTS]),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Read the command line, measure, keep what was found."""
    parser = make_parser(__doc__, 9, "lists of sentences", "2 lists of 16 sentences, one encoder", threads=False)
    arguments = parse(parser, argv, {"rounds": 2})
    size, names = (QUICK_SENTENCES, ENCODERS[:1]) if arguments.quick else (SENTENCES, ENCODERS)
    with reports_mistakes(parser):
        sentences = draw_sentences((arguments.rounds + WARM_UP_ROUNDS) * size)
    lists = [sentences[start : start + size] for start in range(0, len(sentences), size)]
    machine = describe_machine()

    def micros(seconds: Sequence[float]) -> float:
        return 1e6 * statistics.median(seconds) / size

    results = []
    with tempfile.TemporaryDirectory() as made:
        models: list[TimedModel] = []
        calls: dict[tuple[str, str], Callable[[list[str]], object]] = {}
        for folder in encoders_with_onnx(Path(made), names):
            for form in FORMS:
                models.append(TimedModel(folder, form))
                calls[folder.name, form] = models[-1].encode
            calls[folder.name, TOKENIZER] = text_tokenizer(Tokenizer.from_file(str(folder / "tokenizer.json"))).tokens
        seconds = alternate(calls, lists, "Encoding", WARM_UP_ROUNDS)
        for model in models:
            found = figures(
                model.shares(),
                whole=micros(seconds[model.name, model.form]),
                tokenising=micros(seconds[model.name, TOKENIZER]),
                session=micros(model.session_seconds[WARM_UP_ROUNDS:]),
                float32=micros(seconds[model.name, "float32"]),
            )
            results.append({"name": model.name, "form": model.form, **found})
    keep(Record(recorded_options(arguments), machine, {"sentences": size}, results), TABLE, arguments.output)


if __name__ == "__main__":
    main()
