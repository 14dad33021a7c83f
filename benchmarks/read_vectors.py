"""How fast `modeling_dsa.text.word_vectors.read_vectors` reads a GloVe text file, and how much memory it takes for it.

    python benchmarks/read_vectors.py --output benchmarks/read_vectors.json

A file with the form of GloVe 6B (random numbers, five digits) is written to a temporary folder. Every reader reads it
for 5 % of its rows and for all of them; the runs alternate, so that other work on the machine meets all readers alike.
The file is in the system's cache, so it is the readers that are timed and not the disk. Memory is measured by
tracemalloc in a run of its own, as tracing slows a reader down. gensim is a peer for all rows where it is installed.
"""

import statistics
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from lib.measuring import alternate
from lib.options import make_parser, parse, recorded_options
from lib.records import Column, Record, Table, describe_machine, keep
from tqdm.auto import tqdm

from modeling_dsa.command.command_line import whole_number
from modeling_dsa.text.word_vectors import WordVectors, read_vectors

Reader = Callable[[Path, set[str] | None], WordVectors]
TABLE = Table(
    (
        Column("rows wanted", "{wanted}", is_text=True),
        Column("reader", "{reader}", is_text=True),
        Column("MB/s: median (range)", "{megabytes_per_second:.0f} ({slowest:.0f} to {fastest:.0f})"),
        Column("rows kept", "{rows:,}"),
        Column("their vectors, MB", "{kept_megabytes:.1f}"),
        Column("peak memory, MB", "{peak_megabytes:.1f}"),
    )
)


@dataclass(frozen=True)
class Result:
    """What one reader did with the file. MB are 10^6 bytes."""

    reader: str
    wanted: str
    rows: int
    megabytes_per_second: float  # median
    slowest: float
    fastest: float
    kept_megabytes: float
    peak_megabytes: float


def read_with_this_package(path: Path, words: set[str] | None) -> WordVectors:
    """The reader that is measured."""
    return read_vectors(path, words=words, progress=False)


def read_with_a_line_loop(path: Path, words: set[str] | None) -> WordVectors:
    """The usual loop over lines, made quick: it parses wanted rows only. It knows one format and checks nothing."""
    wanted = None if words is None else {word.encode() for word in words}
    kept: dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]] = {}
    with path.open("rb") as file:
        for line in file:
            word, _, numbers = line.partition(b" ")
            if wanted is None or word in wanted:
                kept[word.decode()] = np.array(numbers.split(b" "), dtype=np.float32)
    return WordVectors(list(kept), np.stack(list(kept.values())))


def read_with_gensim(path: Path, words: set[str] | None) -> WordVectors:
    """gensim's reader of GloVe files, which cannot pick words."""
    if words is not None:
        raise ValueError("gensim reads all rows.")
    vectors = import_module("gensim.models").KeyedVectors.load_word2vec_format(str(path), no_header=True)
    return WordVectors(list(vectors.index_to_key), vectors.vectors)


def write_file(path: Path, rows: int, dimension: int) -> None:
    """Write a file like GloVe 6B: words of different lengths, numbers with five significant digits."""
    generator = np.random.default_rng(0)
    form = "word%d" + " %.5g" * dimension + "\n"
    with path.open("w", encoding="ascii") as file:
        for row in tqdm(range(rows), desc="Writing", unit=" rows", unit_scale=True):
            file.write(form % (row, *generator.normal(scale=0.4, size=dimension).tolist()))


def peak_megabytes(reader: Reader, path: Path, words: set[str] | None) -> float:
    """The most memory that one run held at once, the result included."""
    tracemalloc.start()
    reader(path, words)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def measure(path: Path, rows: int, rounds: int) -> list[Result]:
    """Time all readers on the file, in turns, and check that they agree."""
    # A word that is not there makes every reader go to the end of the file.
    some = {f"word{row}" for row in np.random.default_rng(1).choice(rows, rows // 20, replace=False)} | {"absent"}
    shares: dict[str, set[str] | None] = {"5 %": some, "all": None}
    readers: dict[str, Reader] = {"read_vectors": read_with_this_package, "line loop": read_with_a_line_loop}
    runs = [(name, share) for share in shares for name in readers]
    if find_spec("gensim"):
        readers["gensim"] = read_with_gensim
        runs.append(("gensim", "all"))

    results: dict[str, WordVectors] = {}

    def competitor(name: str, share: str) -> Callable[[int], None]:
        def run(turn: int) -> None:
            found = readers[name](path, shares[share])
            if turn == 0:  # fills the caches, and shows that all read the same
                ours = results.setdefault(share, found)
                if ours.words != found.words or not np.array_equal(ours.vectors, found.vectors):
                    raise RuntimeError(f"{name} and read_vectors read different vectors for {share} of the rows.")

        return run

    seconds = alternate({run: competitor(*run) for run in runs}, range(rounds + 1), "Reading", warm_up=1)
    kept = {share: (len(found.words), found.vectors.nbytes / 1e6) for share, found in results.items()}
    results.clear()
    size = path.stat().st_size / 1e6
    measured = []
    for name, share in tqdm(runs, desc="Tracing memory", unit=" runs"):
        speed = [size / second for second in seconds[name, share]]
        peak = peak_megabytes(readers[name], path, shares[share])
        measured.append(
            Result(name, share, kept[share][0], statistics.median(speed), min(speed), max(speed), kept[share][1], peak)
        )
    return measured


def main(argv: Sequence[str] | None = None) -> None:
    """Write the file, measure, keep what was found."""
    parser = make_parser(__doc__, 5, "timed runs of each reader", "20,000 rows and 3 rounds", threads=False)
    parser.add_argument("--rows", type=whole_number(20), default=400_000, help="of the file (default: %(default)s)")
    parser.add_argument("--dimension", type=whole_number(1), default=100, help="of a row (default: %(default)s)")
    arguments = parse(parser, argv, {"rows": 20_000, "rounds": 3})
    machine = describe_machine()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "glove.txt"
        write_file(path, arguments.rows, arguments.dimension)
        setup = {"megabytes": path.stat().st_size / 1e6}
        results = [asdict(result) for result in measure(path, arguments.rows, arguments.rounds)]
    keep(Record(recorded_options(arguments), machine, setup, results), TABLE, arguments.output)


if __name__ == "__main__":
    main()
