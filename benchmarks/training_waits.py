"""How often a training step waits for the GPU, what it copies, and for how much of its time the GPU computes.

    python benchmarks/training_waits.py --output benchmarks/training_waits.json

The training engine itself makes the steps, on random batches of the pairs that ship, with settings of DSA's Table 1 and
their own sizes. torch's profiler counts in two runs of different lengths; a step's share is their difference over the
steps that one has more, so that the evaluation and the preparations of a run do not count. A wait is a call of CUDA
that returns when the GPU has done its work: a synchronisation of a stream, an event or the device. The time of a step
is the engine's own, of runs that nothing profiles, a median. A part of it goes by while the step's batch is put
together, in which nothing else computes; that part is measured by going through the engine's loader alone. Without a
GPU there are only these times.
"""

import itertools
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.state import AcceleratorState, GradientState
from lib.batches import prepare_pairs
from lib.options import make_parser, parse, recorded_options, reports_mistakes
from lib.records import Column, Record, Table, describe_machine, keep, write_record
from lib.shipped import Pairs, draw_pairs
from torch.profiler import ProfilerActivity, profile

from modeling_dsa import DSAConfig, DSAForNLI
from modeling_dsa.command.command_line import whole_number
from modeling_dsa.shipped.settings import setting_folder
from modeling_dsa.text.tokenization import WordTokenizer
from run_glue_style.training.accelerator import make_accelerator
from run_glue_style.training.engine import Trainer
from run_glue_style.training.objective import Classification
from run_glue_style.training.recipe import RunArguments, TrainingRecipe
from run_glue_style.training.tokenized_examples import TokenizedExamples, TokenizedTexts, token_ids

SETTINGS = ["dsa-single-snli", "dsa-multiple-snli", "static-cnn-snli", "bilstm-max-snli", "disan-snli"]
PROFILED_STEPS = 3, 9  # of two runs: what the profiler writes down of a step takes it seconds to add up
COUNTED = {  # what of the profiler's events begins with one of these
    "waits": ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize"),
    "copies_to_pinned": ("Memcpy HtoD (Pinned",),
    "copies_to_pageable": ("Memcpy HtoD (Pageable",),
    "copies_from": ("Memcpy DtoH",),
    "launches": ("cudaLaunchKernel", "cuLaunchKernel"),
}
TABLE = Table(
    (
        Column("setting", "{setting}", is_text=True),
        Column("precision", "{precision}", is_text=True),
        Column("a step, ms", "{milliseconds:.1f}"),
        Column("its batch is put together, ms", "{loading_milliseconds:.2f}"),
        Column("the GPU computes, ms", "{busy_milliseconds:.1f}"),
        Column("waits", "{waits:.1f}"),
        Column("copies to the GPU, pinned", "{copies_to_pinned:.1f}"),
        Column("not pinned", "{copies_to_pageable:.1f}"),
        Column("copies back", "{copies_from:.1f}"),
        Column("kernels launched", "{launches:,.0f}"),
    )
)


def examples_of(pairs: Pairs, tokenizer: WordTokenizer) -> TokenizedExamples:
    """The pairs as the engine reads them."""
    count = len(pairs["label"])
    ids, lengths = token_ids(tokenizer.backend_tokenizer, pairs["premise"] + pairs["hypothesis"])
    columns = np.split(np.arange(2 * count), 2)
    return TokenizedExamples(TokenizedTexts(tokenizer, ids, lengths, 2), columns, pairs["label"])


def make_trainer(
    setting: str,
    precision: str,
    steps: int,
    batch_size: int,
    examples: TokenizedExamples,
    tokenizer: WordTokenizer,
    parent: Path,
) -> Trainer:
    """The engine with a fresh model, for so many updates and one evaluation of few examples, in a folder of its own."""
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    recipe = TrainingRecipe(per_device_train_batch_size=batch_size, max_train_steps=steps, batch_norm_batches=0)
    folder = Path(tempfile.mkdtemp(dir=parent))
    run = RunArguments(output_dir=folder, report_to="none", mixed_precision="bf16" if precision == "bf16" else "no")
    torch.manual_seed(0)
    options: dict[str, Any] = {"vocab_size": len(tokenizer), "unknown_init_range": 0.5, "soft_attention_steps": 0}
    return Trainer(
        accelerator=make_accelerator(run, folder),
        model=DSAForNLI(DSAConfig.from_pretrained(setting_folder(setting), **options)),
        tokenizer=tokenizer,
        train_examples=examples,
        validation_splits={"validation": examples[:32]},
        objective=Classification(
            lambda predictions, labels: {"accuracy": float((predictions == labels).mean())}, "accuracy", 0.0
        ),
        recipe=recipe,
        run=run,
        output_dir=folder,
        identity={"recipe": asdict(recipe)},
    )


def count(trainer: Trainer) -> Mapping[str, float]:
    """What the profiler counts in a whole run."""
    counts: Counter[str] = Counter()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        trainer.train()
    for event in profiler.key_averages():
        for name, beginnings in COUNTED.items():
            counts[name] += event.count if event.key.startswith(beginnings) else 0
        counts["busy_milliseconds"] += event.self_device_time_total / 1e3
    return counts


def loading_seconds(trainer: Trainer) -> float:
    """What the engine's loader takes for a batch, on average over an epoch."""
    started = time.perf_counter()
    batches = sum(1 for _ in trainer.train_loader)
    return (time.perf_counter() - started) / batches


def main(argv: Sequence[str] | None = None) -> None:
    """Train each setting, keep what was found, what there is so far at once."""
    parser = make_parser(__doc__, 3, "runs of each setting that are timed", "1 round of one setting, steps of 4 pairs")
    parser.add_argument("--setting", nargs="+", default=SETTINGS, help="default: %(default)s")
    parser.add_argument(
        "--batch_size", type=whole_number(2), default=64, help="pairs in a batch (default: %(default)s)"
    )
    parser.add_argument(
        "--steps",
        type=whole_number(1),
        default=100,
        help="that the longer of two runs without a profiler has more (default: %(default)s)",
    )
    options = parse(parser, argv, {"rounds": 1, "setting": SETTINGS[:1], "batch_size": 4, "steps": 4})
    with reports_mistakes(parser):
        pairs = draw_pairs(40 * options.batch_size)
        for setting in options.setting:
            setting_folder(setting)
    torch.set_num_threads(options.threads)
    _, tokenizer = prepare_pairs(pairs)
    examples = examples_of(pairs, tokenizer)
    on_gpu = torch.cuda.is_available()
    record = Record(recorded_options(options), describe_machine(), {"on_gpu": on_gpu}, [])
    precisions = ("fp32", "bf16") if on_gpu else ("fp32",)
    with tempfile.TemporaryDirectory() as parent:
        for setting, precision in itertools.product(options.setting, precisions):

            def trained(steps: int, setting: str = setting, precision: str = precision) -> Trainer:
                return make_trainer(setting, precision, steps, options.batch_size, examples, tokenizer, Path(parent))

            few = 8
            trained(few).train()  # warms up
            longer = few + options.steps
            seconds = [trained(longer).train().seconds - trained(few).train().seconds for _ in range(options.rounds)]
            result: dict[str, Any] = dict.fromkeys([*COUNTED, "busy_milliseconds"])
            if on_gpu:
                first, second = (count(trained(steps)) for steps in PROFILED_STEPS)
                more = PROFILED_STEPS[1] - PROFILED_STEPS[0]
                result = {name: (second[name] - first[name]) / more for name in result}
            loading = [loading_seconds(trained(1)) for _ in range(options.rounds)]
            result["loading_milliseconds"] = 1e3 * statistics.median(loading)
            result["milliseconds"] = 1e3 * statistics.median(seconds) / options.steps
            record.results.append({"setting": setting, "precision": precision, **result})
            if options.output:
                write_record(record, TABLE, options.output)
    keep(record, TABLE, options.output)


if __name__ == "__main__":
    main()
