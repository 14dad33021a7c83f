"""Sentences a second on a GPU, from text and from tokens, against all-MiniLM-L6-v2 on the same GPU.

    python benchmarks/encode_on_gpu.py --output benchmarks/encode_on_gpu.json

Distinct sentences of SNLI in random order, from the sample that ships with the package. Everyone encodes the same lists
in turn, and figures are medians over the rounds. "From text" is the call that users make, `SentenceEncoder.encode` with
`--batch_size` and sentence-transformers' `encode` with `--peer_batch_size`, tokenisation included; "from tokens" is the
same batches, tokenised and padded beforehand, from memory to vectors in memory. The encoders that ship are folded, but
where they are compiled: compiled ones encode padding too.

fp32 multiplies in full precision; in bf16 are the weights themselves. A form that fails has its error in the table.
Without a GPU all is computed on the CPU.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from lib.measuring import alternate
from lib.minilm_folder import MINILM, PACKAGE, load_minilm, minilm_folder
from lib.options import make_parser, parse, recorded_options, reports_mistakes
from lib.peers import Encode, Vectors
from lib.records import Column, Record, Table, describe_machine, keep, write_record
from lib.shipped import REPOSITORY, SHIPPED_ENCODERS, draw_sentences
from lib.speeds import WARM_UP_ROUNDS

from modeling_dsa.batching_dsa import TextBatches
from modeling_dsa.command.command_line import whole_number
from modeling_dsa.encoding.caching_tokenizer import text_tokenizer
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.vectors_dsa import batch_vectors

EAGER, COMPILED = (("fp32", False), ("bf16", False)), (("bf16", True),)
WAYS = ("text", "tokens")


def rows(record: Record) -> Iterator[Mapping[str, Any]]:
    """Each form, with the quickest MiniLM's rate over its own upside down; or its error."""
    peers = [result["sentences_per_second"] for result in record.results if result["model"] == MINILM]
    best = {way: max((rates[way] for rates in peers if rates[way]), default=None) for way in WAYS}
    for result in record.results:
        rates = result["sentences_per_second"]
        ratio = {way: rates[way] / best[way] if rates[way] and best[way] else None for way in WAYS}
        form = "compiled" if result["compiled"] else "eager"
        yield {**result, "ratio": ratio, "form": f"{form}, failed: {result['error']}" if result["error"] else form}


TABLE = Table(
    (
        Column("encoder", "{model}", is_text=True),
        Column("precision", "{precision}", is_text=True),
        Column("form", "{form}", is_text=True),
        Column("from text, sentences/s", "{sentences_per_second[text]:,.0f}"),
        Column("of the quickest MiniLM's", "{ratio[text]:.3g}x"),
        Column("from tokens, sentences/s", "{sentences_per_second[tokens]:,.0f}"),
        Column("of the quickest MiniLM's", "{ratio[tokens]:.3g}x"),
    ),
    rows=rows,
)


class Form(NamedTuple):
    """A model in one precision, compiled or not."""

    model: str
    precision: str
    compiled: bool


@dataclass(frozen=True)
class Encoder:
    """A form that is loaded.

    Attributes:
        encode: Sentences to vectors.
        prepare: Sentences to batches of tokens in memory.
        compute: Such batches to vectors in memory.
    """

    encode: Encode
    prepare: Callable[[Sequence[str]], list[Any]]
    compute: Callable[[list[Any]], Vectors]


def ours(form: Form, device: str, batch_size: int) -> Encoder:
    """An encoder that ships."""
    encoder = SentenceEncoder.from_pretrained(REPOSITORY / "model_cards" / form.model, device=device)
    tokenizer = text_tokenizer(encoder.tokenizer.backend_tokenizer)
    model: Any = encoder.model.eval().to(torch.bfloat16 if form.precision == "bf16" else torch.float32)
    if form.compiled:
        model.sentence_vectors = torch.compile(model.sentence_vectors, dynamic=True)
    else:
        encoder.fold_small_vocabulary()

    def encode(sentences: Sequence[str]) -> Vectors:
        return encoder.encode(sentences, batch_size=batch_size)

    def prepare(sentences: Sequence[str]) -> list[Any]:
        batches = TextBatches(tokenizer, sentences, batch_size)
        return [batches[number] for number in range(len(batches))]

    def compute(batches: list[Any]) -> Vectors:
        return np.concatenate([batch_vectors(model, batch) for batch in batches])

    return Encoder(encode, prepare, compute)


def minilm(form: Form, device: str, batch_size: int) -> Encoder:
    """all-MiniLM-L6-v2 as its users run it, through sentence-transformers."""
    model: Any = load_minilm(device)
    model.to(torch.bfloat16 if form.precision == "bf16" else torch.float32)
    if form.compiled:
        model.forward = torch.compile(model.forward, dynamic=True)

    def encode(sentences: Sequence[str]) -> Vectors:
        vectors: Vectors = model.encode(list(sentences), batch_size=batch_size, show_progress_bar=False)
        return vectors

    def prepare(sentences: Sequence[str]) -> list[Any]:
        longest_first = sorted(sentences, key=len, reverse=True)
        parts = (longest_first[start : start + batch_size] for start in range(0, len(sentences), batch_size))
        return [model.preprocess(part) for part in parts]

    @torch.inference_mode()
    def compute(batches: list[Any]) -> Vectors:
        found = []
        for batch in batches:
            features = {name: value.to(device) for name, value in batch.items() if isinstance(value, torch.Tensor)}
            found.append(model(features)["sentence_embedding"].float().cpu().numpy())
        return np.concatenate(found)

    return Encoder(encode, prepare, compute)


def measure(encoders: Mapping[Form, Encoder], lists: Sequence[Sequence[str]]) -> dict[str, dict[Form, float]]:
    """Sentences a second of each form from text and from tokens, medians over the lists, of which the first warms up.

    Every run ends with vectors in the host's memory, so that nothing is left to wait for.
    """
    prepared = {form: [encoder.prepare(part) for part in lists] for form, encoder in encoders.items()}

    def from_text(form: Form, turn: int) -> object:
        return encoders[form].encode(lists[turn])

    def from_tokens(form: Form, turn: int) -> object:
        return encoders[form].compute(prepared[form][turn])

    found = {}
    for way, run in zip(WAYS, (from_text, from_tokens), strict=True):
        runs: dict[Form, Callable[[int], object]] = {form: partial(run, form) for form in encoders}
        seconds = alternate(runs, range(len(lists)), f"From {way}", WARM_UP_ROUNDS)
        found[way] = {form: len(lists[0]) / statistics.median(taken) for form, taken in seconds.items()}
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Load each form, leave out those that fail, measure, keep what was found: that of compiled models comes behind."""
    parser = make_parser(__doc__, 3, "timed lists of sentences", "2 rounds of 16 sentences, nothing compiled")
    parser.add_argument("--bulk", type=whole_number(1), default=16_000, help="of a list (default: %(default)s)")
    parser.add_argument(
        "--batch_size", type=whole_number(1), default=4096, help="sentences in a batch of ours (default: %(default)s)"
    )
    parser.add_argument(
        "--peer_batch_size", type=whole_number(1), default=512, help="in one of MiniLM's (default: %(default)s)"
    )
    parser.add_argument("--compile", action="store_true", help="measure compiled models in bf16, too")
    options = parse(parser, argv, {"rounds": 2, "bulk": 16, "compile": False})
    with reports_mistakes(parser):
        drawn = draw_sentences((options.rounds + WARM_UP_ROUNDS) * options.bulk)
    lists = [drawn[start : start + options.bulk] for start in range(0, len(drawn), options.bulk)]
    torch.set_num_threads(options.threads)
    torch.backends.cudnn.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    has_peer = minilm_folder() is not None
    setup = {"device": device, "missing": [] if has_peer else [f"pip install {PACKAGE}"]}
    record = Record(recorded_options(options), describe_machine(), setup, [])
    names = (*SHIPPED_ENCODERS, *([MINILM] if has_peer else []))
    for precisions in (EAGER, *([COMPILED] if options.compile else [])):
        encoders, errors = {}, dict[Form, str | None]()
        for form in (Form(name, *precision) for precision in precisions for name in names):
            try:
                if form.model == MINILM:
                    encoder = minilm(form, device, options.peer_batch_size)
                else:
                    encoder = ours(form, device, options.batch_size)
                encoder.compute(encoder.prepare(lists[0]))
            except Exception as error:
                errors[form] = f"{type(error).__name__}: {error}".splitlines()[0]
            else:
                encoders[form], errors[form] = encoder, None
        found = measure(encoders, lists)
        for form, told in errors.items():
            speeds = {way: found[way].get(form) for way in WAYS}
            record.results.append({**form._asdict(), "sentences_per_second": speeds, "error": told})
        if options.output:
            write_record(record, TABLE, options.output)
    keep(record, TABLE, options.output)


if __name__ == "__main__":
    main()
