"""`dsa init`: a model folder from word vectors."""

import argparse
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modeling_dsa.files.loading import load_part
from modeling_dsa.files.model_files import replaced_model
from modeling_dsa.files.model_folder import read_config
from modeling_dsa.files.text_files import read_texts

from .numbers import whole_number

if TYPE_CHECKING:
    from modeling_dsa import DSAConfig

logger = logging.getLogger(__name__)

HEADS = {"model": "DSAModel", "sequence-classification": "DSAForSequenceClassification", "nli": "DSAForNLI"}
NLI_LABELS = ("entailment", "neutral", "contradiction")


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Make a model folder from word vectors: fresh weights, a filled word table and the tokenizer."
    parser = commands.add_parser("init", help=text, description=text, allow_abbrev=False)
    parser.set_defaults(run=run)
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="Folder to write.")
    parser.add_argument("--overwrite", action="store_true", help="Replace the model in a folder that is in use.")
    group = parser.add_argument_group("vocabulary")
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
        type=whole_number(1, sys.maxsize),
        metavar="N",
        help="Know the first N words of the vectors, which are the most frequent ones.",
    )
    group.add_argument(
        "--text_columns", nargs="+", default=[], metavar="NAME", help="Columns of the texts, in all files but .txt."
    )
    group = parser.add_argument_group("model")
    group.add_argument(
        "--config",
        help="Name of a published setting, or a folder, JSON file or Hub id; default: the config's defaults.",
    )
    group.add_argument("--head", choices=HEADS, default="model", help="What the model is for; default: %(default)s.")
    group.add_argument(
        "--seed", type=whole_number(0, 2**32 - 1), default=0, help="Seed of all that is drawn; default: %(default)s."
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the folder.

    Raises:
        ValueError: The folder is in use, or an input cannot be read or does not fit.
        OSError: A file is missing or cannot be written.
    """
    import modeling_dsa
    from modeling_dsa.text.building import build_model, vocabulary_from_texts, vocabulary_from_vectors

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
    model_class = getattr(modeling_dsa, HEADS[arguments.head])
    model = build_model(model_class, config, tokenizer, vectors, arguments.seed)
    with replaced_model(output) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    logger.info(f"{output} holds a {model_class.__name__} with fresh weights, ready to train. Use it:\n")
    logger.info(_example(arguments.head, output))
    return 0


def _config_for(head: str, source: str | None) -> "DSAConfig":
    """The config that `--config` names, or the default one, with what the head needs."""
    from modeling_dsa import DSAConfig

    if source is None:
        config = DSAConfig()
    else:
        source = _find_config(source)
        read_config(source)
        config = load_part("config", source, DSAConfig.from_pretrained)
    if head == "nli":
        config.sentences_per_example = 2
        if config.num_labels != len(NLI_LABELS):
            config.id2label = dict(enumerate(NLI_LABELS))
            config.label2id = {name: index for index, name in enumerate(NLI_LABELS)}
    return config


def _find_config(source: str) -> str:
    from modeling_dsa.shipped.settings import setting_folder, setting_names

    is_setting = source in setting_names() or not ("/" in source or Path(source).exists())
    return str(setting_folder(source)) if is_setting else source


def _example(head: str, folder: Path) -> str:
    """One line of Python that uses a folder."""
    if head == "model":
        return (
            f"import modeling_dsa; from transformers import AutoModel, AutoTokenizer; folder = {str(folder)!r}; "
            "tokens = AutoTokenizer.from_pretrained(folder)('A man is asleep.', return_tensors='pt'); "
            "print(AutoModel.from_pretrained(folder)(**tokens).pooler_output.shape)"
        )
    text = {"text": "A man plays a guitar.", "text_pair": "A man is asleep."} if head == "nli" else "A man is asleep."
    return (
        "import modeling_dsa; from transformers import pipeline; "
        f"print(pipeline('text-classification', {str(folder)!r})({text!r}))"
    )
