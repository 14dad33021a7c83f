"""Give broken files to every reader of the package, and keep those that do harm.

`python tests/faults/fuzz.py --mutations 10000` gives so many to each reader: whole files with a few changes. Each must
be read, or be refused with one sentence, within seconds and without much memory. What is not is made as small as it can
be and kept in `tests/faults/findings`, which `test_fuzz.py` reads again.
"""

import argparse
import hashlib
import logging
import os
import random
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path
from types import FrameType

os.environ.update({"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"})
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "model_cards" / "space"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from fuzz_targets import Fault, Target, mutated, read_or_refuse, targets
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from transformers.utils.logging import disable_progress_bar

FINDINGS = Path(__file__).with_name("findings")
LONGEST = 10  # seconds of computing until a file hangs its reader, whatever else the machine does
LONGEST_WAIT = 120  # seconds of waiting
MEMORY = 4 << 30  # bytes that a process may take beside what it has at its start


class Hang(BaseException):
    """A reader took too long. No library that catches errors shall catch it."""


def read_in_time(target: Target, path: Path) -> bool:
    """As `read_or_refuse`, within seconds."""
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_WAIT)
    try:
        return read_or_refuse(target, path)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def fuzz(name: str, target: Target, mutations: int, seed: int) -> int:
    """Give a reader broken files; the number of kinds of faults that it has."""
    counts, known = Counter[str](), set[str]()
    failing: tuple[str, str, bytes] | None = None
    with tempfile.TemporaryDirectory(prefix="dsa-fuzz-") as folder:

        def act(whole: tuple[str, bytes], draw: random.Random) -> None:
            nonlocal failing
            path, content = Path(folder, whole[0]), mutated(whole[1], draw)
            path.write_bytes(content)
            try:
                counts["read" if read_in_time(target, path) else "refused"] += 1
            except Fault as fault:
                counts["faults"] += 1
                kind = str(fault).strip().splitlines()[-1][:60]
                if kind not in known:
                    failing = kind, whole[0], content
                    raise

        _require_whole(target, Path(folder))
        while counts.total() < mutations:
            search = settings(
                max_examples=mutations - counts.total(),
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                report_multiple_bugs=False,
            )
            files = st.sampled_from(list(target.seeds))
            try:
                seeded(f"{seed} {len(known)}")(search(given(files, st.randoms(use_true_random=False))(act)))()
            except Fault as fault:
                assert failing is not None
                kind, file, content = failing  # Hypothesis ends with the smallest
                known.add(kind)
                sys.stdout.write(f"FAULT {_keep(name, file, content)}: {fault}\n")
        _require_whole(target, Path(folder))
    sys.stdout.write(
        f"{name}: {counts.total()} files, {counts['read']} read, {counts['refused']} refused, {len(known)} faults\n"
    )
    return len(known)


def _require_whole(target: Target, folder: Path) -> None:
    """See that whole files are read, before and after the broken ones: a reader that refuses all has no faults."""
    for file, content in target.seeds:
        (folder / file).write_bytes(content)
        assert read_in_time(target, folder / file), f"a whole {file} is refused"


def _keep(name: str, file: str, content: bytes) -> Path:
    path = FINDINGS / name.replace(" ", "-") / f"{hashlib.sha256(content).hexdigest()[:12]}-{file}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _hang(_number: int, _frame: FrameType | None) -> None:
    raise Hang("it takes too long")


def main() -> int:
    """Fuzz the targets that the command line names; 1 where one had a fault or died."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", nargs="*", default=[], metavar="NAME", help="default: all")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    disable_progress_bar()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="dsa-fuzz-") as folder:
        all_targets = targets(Path(folder))
        for name in arguments.targets or all_targets:
            sys.stdout.flush()
            process = os.fork()  # a reader may take its process with it
            if process == 0:
                signal.signal(signal.SIGALRM, _hang)
                signal.signal(signal.SIGPROF, _hang)
                used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
                faults = 1
                try:
                    faults = fuzz(name, all_targets[name], arguments.mutations, arguments.seed)
                except Exception:
                    traceback.print_exc()
                finally:  # the folder of the targets is the parent's to delete
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(min(faults, 1))
            status = os.waitpid(process, 0)[1]
            if os.WIFSIGNALED(status):
                sys.stdout.write(f"FAULT {name}: its process died of signal {os.WTERMSIG(status)}\n")
            failed += status != 0
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
