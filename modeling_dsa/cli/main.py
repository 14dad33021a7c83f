"""The command `dsa`: make a model folder from word vectors, draw attention, encode sentences, push to the Hub."""

import argparse
import logging
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging as transformers_logging

from modeling_dsa.batching_dsa import BATCH_SIZE, DTYPES
from modeling_dsa.configuration_dsa import DSAConfig
from modeling_dsa.encoding.bulk import SHARD_SIZE, BulkOptions, Process, check_output, encode_bulk
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.encoding.sources import open_sentences
from modeling_dsa.files.model_files import replaced_model
from modeling_dsa.files.text_files import read_texts
from modeling_dsa.hub.publishing import CARD, NotPushedError, push_folder, validate
from modeling_dsa.modeling_dsa import DSAForNLI, DSAForSequenceClassification, DSAModel, DSAPreTrainedModel
from modeling_dsa.text.building import build_model, vocabulary_from_texts, vocabulary_from_vectors

logger = logging.getLogger(__name__)

MOST_FOLDED_WORDS = 50_000  # the tables of single DSA are then half a gigabyte
HEADS: dict[str, type[DSAPreTrainedModel]] = {
    "model": DSAModel,
    "sequence-classification": DSAForSequenceClassification,
    "nli": DSAForNLI,
}
NLI_LABELS = ("entailment", "neutral", "contradiction")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The command line's words; default: the process's own.

    Returns:
        0, or 2 after a user's mistake, which is told in one sentence, or 1 where the Hub did not take a model, or 130
        after an interrupt.

    Raises:
        SystemExit: After --help and --version, and with code 2 where the command line itself is wrong.
    """
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("modeling_dsa").setLevel(logging.INFO)
    transformers_logging.disable_progress_bar()
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], None] = arguments.run
    try:
        run(arguments)
    except KeyboardInterrupt:
        logger.error("Stopped; nothing was written.")
        return 130
    except NotPushedError as error:
        logger.error(f"error: {error}")
        return 1
    except (ValueError, OSError, SafetensorError) as error:
        logger.error(f"error: {error}")
        return 2
    return 0


class _Parser(argparse.ArgumentParser):
    """Refuses a mistake with one sentence and exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}\nSee {self.prog} --help.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dsa", description="Dynamic Self-Attention sentence encoders.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"dsa-transformers {version('dsa-transformers')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    text = "Make a model folder from word vectors: fresh weights, a filled word table and the tokenizer."
    init = commands.add_parser("init", help=text, description=text, allow_abbrev=False)
    init.set_defaults(run=_init)
    init.add_argument("output", type=Path, metavar="OUTPUT", help="Folder to write.")
    init.add_argument("--overwrite", action="store_true", help="Replace the model's files in a folder that is in use.")
    group = init.add_argument_group("vocabulary")
    group.add_argument(
        "--vectors",
        type=Path,
        required=True,
        metavar="FILE",
        help="Word vectors: GloVe .txt/.zip/.gz, word2vec text/.bin, fastText .vec.",
    )
    words = group.add_mutually_exclusive_group(required=True)
    words.add_argument(
        "--texts",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="Know every word of these texts: .txt with one text a line, .jsonl, .csv, .tsv or .parquet.",
    )
    words.add_argument(
        "--most_frequent",
        type=_whole_number(1, sys.maxsize),
        metavar="N",
        help="Know the first N words of the vectors, which are the most frequent ones.",
    )
    group.add_argument(
        "--text_columns", nargs="+", default=[], metavar="NAME", help="Columns of the texts, in all files but .txt."
    )
    group = init.add_argument_group("model")
    group.add_argument(
        "--config",
        help="Name of a published setting, or a folder, JSON file or Hub id; default: the config's defaults.",
    )
    group.add_argument("--head", choices=HEADS, default="model", help="What the model is for; default: %(default)s.")
    group.add_argument(
        "--seed", type=_whole_number(0, 2**32 - 1), default=0, help="Seed of all that is drawn; default: %(default)s."
    )

    text = "Draw where a model looks in a sentence, or in a pair of sentences."
    draw = commands.add_parser("draw", help=text, description=text, allow_abbrev=False)
    draw.set_defaults(run=_draw)
    draw.add_argument("model", metavar="MODEL", help="Folder or Hub id of a model.")
    draw.add_argument("text", metavar="TEXT", help="The sentence, or the first of a pair.")
    draw.add_argument("text_pair", metavar="TEXT_PAIR", nargs="?", help="The second sentence of a pair.")
    draw.add_argument(
        "--output",
        type=Path,
        default=Path("attention.png"),
        metavar="FILE",
        help="Picture to write: .png, .svg or .pdf; default: %(default)s.",
    )

    text = "Turn sentences into vectors: any number of them, in memory that stays flat."
    encode = commands.add_parser("encode", help=text, description=text, allow_abbrev=False)
    encode.set_defaults(run=_encode)
    encode.add_argument(
        "input",
        metavar="INPUT",
        help="Sentences: .txt with one a line, .jsonl, .csv, .tsv or .parquet, each also with .gz behind; or a data "
        "set's Hub id or folder.",
    )
    encode.add_argument(
        "output",
        type=Path,
        metavar="OUTPUT",
        help="file.npy; or a folder, for Parquet files of --shard_size rows each. Only a folder can be written by "
        "several processes (accelerate launch or torchrun), and gone on with after a stop, by the same command.",
    )
    encode.add_argument("--model", required=True, metavar="MODEL", help="Folder or Hub id of a model.")
    encode.add_argument(
        "--text_column", metavar="NAME", help="Column of the sentences; default: 'text', or the only one."
    )
    encode.add_argument("--split", metavar="NAME", help="Split of a data set; default: the only one.")
    encode.add_argument(
        "--batch_size",
        type=_whole_number(1, sys.maxsize),
        default=BATCH_SIZE,
        metavar="N",
        help="Sentences that the model sees at once; default: %(default)s, for a CPU.",
    )
    encode.add_argument("--normalize", action="store_true", help="Give every vector the length 1.")
    encode.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="Of the vectors; int8 keeps their direction, for cosines; default: %(default)s.",
    )
    encode.add_argument(
        "--shard_size",
        type=_whole_number(1, sys.maxsize),
        default=SHARD_SIZE,
        metavar="ROWS",
        help="Rows of a file in a folder; default: %(default)s.",
    )
    encode.add_argument("--overwrite", action="store_true", help="Replace what is there and start again.")

    text = "Write a model's ONNX file into its folder, for onnxruntime: checked to be equal to the model."
    onnx = commands.add_parser("onnx", help=text, description=text, allow_abbrev=False)
    onnx.set_defaults(run=_onnx)
    onnx.add_argument("folder", type=Path, metavar="FOLDER", help="Folder of a saved model; the file goes to onnx/.")
    onnx.add_argument("--int8", action="store_true", help="Write an int8 file too, which is smaller and faster.")
    onnx.add_argument("--overwrite", action="store_true", help="Replace the ONNX files that are there.")

    text = "Push a model's folder to the Hub in one commit: weights, code, tokenizer, card and results."
    push = commands.add_parser("push", help=text, description=text, allow_abbrev=False)
    push.set_defaults(run=_push)
    push.add_argument("folder", type=Path, metavar="FOLDER", help="Folder of a saved model.")
    push.add_argument("repo_id", metavar="ORG/NAME", help="Repository; it is made where it does not exist.")
    push.add_argument("--private", action="store_true", help="Make a new repository private.")
    push.add_argument("--revision", metavar="BRANCH", help="Push to this branch instead of main.")
    return parser


def _whole_number(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(word: str) -> int:
        if not re.fullmatch(r"-?\d{1,30}", word) or not lowest <= int(word) <= highest:
            raise argparse.ArgumentTypeError(f"{word!r} is no whole number from {lowest} to {highest}")
        return int(word)

    return parse


def _init(arguments: argparse.Namespace) -> None:
    output: Path = arguments.output
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file: give the path of a folder to write.")
    if output.is_dir() and any(output.iterdir()) and not arguments.overwrite:
        raise ValueError(f"{output} is not empty: give --overwrite to replace the model in it, or another folder.")
    config = _config_for(arguments.head, arguments.config)
    if arguments.texts:
        tokenizer, vectors = vocabulary_from_texts(
            arguments.vectors, read_texts(arguments.texts, arguments.text_columns)
        )
    else:
        tokenizer, vectors = vocabulary_from_vectors(arguments.vectors, arguments.most_frequent)
    model = build_model(HEADS[arguments.head], config, tokenizer, vectors, arguments.seed)

    with replaced_model(output) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    logger.info(f"{output} holds a {type(model).__name__} with fresh weights, ready to train. Use it:\n")
    logger.info(_example(arguments.head, output))


def _config_for(head: str, source: str | None) -> DSAConfig:
    """The config that `--config` names, or the default one, with what the head needs."""
    config = DSAConfig() if source is None else _read_config(_find_config(source))
    if head == "nli":
        config.sentences_per_row = 2
        if config.num_labels != len(NLI_LABELS):
            config.id2label = dict(enumerate(NLI_LABELS))
            config.label2id = {name: number for number, name in enumerate(NLI_LABELS)}
    return config


def _find_config(source: str) -> str:
    # The settings belong to the training scripts; the models must stay importable without them.
    from modeling_dsa.shipped.settings import setting_folder, setting_names

    is_setting = source in setting_names() or not ("/" in source or Path(source).exists())
    return str(setting_folder(source)) if is_setting else source


def _read_config(source: str) -> DSAConfig:
    config = _load(AutoConfig, source, "config")
    if config.model_type != DSAConfig.model_type:
        raise ValueError(f"{source} is a model of type {config.model_type!r}: give one of type 'dsa'.")
    return config  # type: ignore[no-any-return]


def _load(loader: Any, source: str, what: str) -> Any:
    """`loader.from_pretrained(source)`, whose many kinds of errors become one sentence."""
    try:
        return loader.from_pretrained(source)
    except (OSError, ValueError, RuntimeError, StrictDataclassError, SafetensorError) as error:
        reason = re.split(r"[.:]?\s*\n|\. ", str(error.__cause__ if isinstance(error, StrictDataclassError) else error))
        raise ValueError(
            f"{source}: the {what} cannot be loaded ({reason[0].rstrip('.')}): give a folder or Hub id of a DSA model."
        ) from error


def _load_as_saved(source: str) -> DSAPreTrainedModel:
    """The classifier of a classifier's folder, or else the encoder."""
    heads = {DSAForSequenceClassification.__name__, DSAForNLI.__name__}
    is_classifier = bool(heads & set(_read_config(source).architectures or ()))
    loader = AutoModelForSequenceClassification if is_classifier else AutoModel
    return _load(loader, source, "model")  # type: ignore[no-any-return]


def _example(head: str, folder: Path) -> str:
    """One line of Python that uses a folder."""
    if head == "model":
        return (
            f"import modeling_dsa; from transformers import AutoModel, AutoTokenizer; folder = {str(folder)!r}; "
            "words = AutoTokenizer.from_pretrained(folder)('A man is asleep.', return_tensors='pt'); "
            "print(AutoModel.from_pretrained(folder)(**words).pooler_output.shape)"
        )
    text = {"text": "A man plays a guitar.", "text_pair": "A man is asleep."} if head == "nli" else "A man is asleep."
    return (
        "import modeling_dsa; from transformers import pipeline; "
        f"print(pipeline('text-classification', {str(folder)!r})({text!r}))"
    )


def _draw(arguments: argparse.Namespace) -> None:
    try:
        from modeling_dsa.explain.drawing import attention_rows, draw_attention
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ValueError('Drawing needs matplotlib: pip install "dsa-transformers[train]".') from error
    model = _load_as_saved(arguments.model)
    tokenizer = _load(AutoTokenizer, arguments.model, "tokenizer")
    path = draw_attention(attention_rows(model, tokenizer, arguments.text, arguments.text_pair), arguments.output)
    logger.info(f"The picture is in {path}.")


def _encode(arguments: argparse.Namespace) -> None:
    output: Path = arguments.output
    process = Process.from_environment()
    check_output(output, arguments.overwrite, process)
    source = open_sentences(arguments.input, arguments.text_column, arguments.split)
    encoder: SentenceEncoder = _load(SentenceEncoder, arguments.model, "model")
    if encoder.model.config.encoder == "dense_cnn" and encoder.model.config.vocab_size <= MOST_FOLDED_WORDS:
        encoder.model.fold_embeddings()  # type: ignore[operator]  # of DSAModel
    options = BulkOptions(
        batch_size=arguments.batch_size,
        normalize=arguments.normalize,
        dtype=arguments.dtype,
        shard_size=arguments.shard_size,
        overwrite=arguments.overwrite,
    )
    try:
        rows = encode_bulk(encoder, source, output, options, process)
    except KeyboardInterrupt:
        stays = "nothing was written" if output.suffix == ".npy" else "the same command goes on after the last shard"
        logger.error(f"Stopped; {stays}.")
        raise SystemExit(130) from None
    part = f"process {process.rank}'s part of the " if process.count > 1 else "the "
    logger.info(f"{output} holds {part}vectors of {rows:,} sentences, {encoder.width} numbers each.")


def _onnx(arguments: argparse.Namespace) -> None:
    try:
        from modeling_dsa.onnx.export import export_onnx
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("onnx", "onnxruntime", "onnxscript"):
            raise
        raise ValueError('ONNX files need more packages: pip install "dsa-transformers[onnx]".') from error
    folder: Path = arguments.folder
    output = folder / "onnx"
    old = sorted(output.glob("*.onnx"))
    if old and not arguments.overwrite:
        raise ValueError(f"{old[0]} is there already: give --overwrite to replace it.")
    for path in export_onnx(_load_as_saved(str(folder)), output, quantize=arguments.int8):
        logger.info(f"{path} holds the model: {path.stat().st_size / 1e6:.1f} MB.")


def _push(arguments: argparse.Namespace) -> None:
    folder, repo_id = arguments.folder, arguments.repo_id
    _read_config(str(folder))
    validate(repo_id)
    if not (folder / CARD).is_file():
        make = f"python -m run_glue_style.reporting.model_card {shlex.quote(str(folder))} --model_id {repo_id}"
        logger.warning(f"There is no model card. Make one and push again: {make}")
    commit = push_folder(folder, repo_id, private=arguments.private or None, revision=arguments.revision)
    logger.info(f"The model is on the Hub: {commit.commit_url}")
