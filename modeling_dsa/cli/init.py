"""`dsa init`: a model folder from word vectors, of a file or of a teacher."""

import argparse
import logging
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modeling_dsa.command.command_line import positive_number, whole_number
from modeling_dsa.files.loading import load_config
from modeling_dsa.files.model_folder import holds_model
from modeling_dsa.files.model_replacing import replaced_model
from modeling_dsa.files.outputs import require_folder
from modeling_dsa.files.text_files import read_texts
from modeling_dsa.shipped.nli import NLI_CLASS_NAMES

if TYPE_CHECKING:
    from modeling_dsa import DSAConfig
    from modeling_dsa.text.tokenization import WordTokenizer
    from modeling_dsa.text.vocabulary import Choose
    from modeling_dsa.text.word_vectors import WordVectors

logger = logging.getLogger(__name__)

HEADS = {"model": "DSAModel", "sequence-classification": "DSAForSequenceClassification", "nli": "DSAForNLI"}


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Make a model folder from word vectors: fresh weights, a filled word table and the tokenizer."
    parser = commands.add_parser("init", help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="Folder to write.")
    parser.add_argument("--overwrite", action="store_true", help="Replace the model in a folder that is in use.")
    _add_vocabulary(parser.add_argument_group("vocabulary"))
    group = parser.add_argument_group("model")
    group.add_argument(
        "--config",
        help="Name of a published setting, or a folder, JSON file or Hub id; default: the config's defaults.",
    )
    group.add_argument("--head", choices=HEADS, default="model", help="What the model is for; default: %(default)s.")
    group.add_argument(
        "--seed", type=whole_number(0, 2**32 - 1), default=0, help="Seed of all that is drawn; default: %(default)s."
    )


def _add_vocabulary(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--vectors",
        type=Path,
        required=True,
        metavar="FILE",
        help="Word vectors: GloVe .txt/.zip/.gz, word2vec text/.bin, fastText .vec; or teacher:MODEL for those that a "
        "sentence-transformers model gives the words, reduced to the config's embedding_size.",
    )
    words = group.add_mutually_exclusive_group(required=True)
    words.add_argument(
        "--texts",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="Know the words of these texts: .txt with one text a line, .jsonl, .csv, .tsv or .parquet.",
    )
    words.add_argument(
        "--word_list", type=Path, metavar="FILE", help="Know the words of this file, which has one a line."
    )
    words.add_argument(
        "--most_frequent",
        type=whole_number(1, sys.maxsize),
        metavar="N",
        help="Know the first N words of the vectors, which are the most frequent ones.",
    )
    group.add_argument(
        "--text_column",
        nargs="+",
        default=[],
        metavar="NAME",
        help="Columns of the texts; with it a .txt is a table with tabs.",
    )
    group.add_argument(
        "--vocabulary_size",
        type=whole_number(1, sys.maxsize),
        metavar="N",
        help="At most N words: the most frequent ones of the texts, or the first of the list; default: 50000 with a "
        "teacher, all with a file.",
    )
    group.add_argument(
        "--pieces",
        type=whole_number(0, 1_000_000),
        metavar="N",
        help="Split other words into N pieces that are learnt from the same words, and into single characters; 0 reads "
        "them as [UNK]. With a teacher, emoji and the characters of other scripts that it reads come, too. Default: "
        "8000 with a teacher, 0 with a file.",
    )
    group.add_argument(
        "--frequency_weighting",
        type=positive_number,
        metavar="A",
        help="Multiply a teacher's vector by A / (A + p) where the word is a share p of the texts (such as 0.001), so "
        "that frequent words weigh less; default: no.",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the folder.

    Raises:
        ValueError: The folder is in use, or an input cannot be read or does not fit.
        OSError: A file is missing or cannot be written.
    """
    import modeling_dsa
    from modeling_dsa.text.building import build_model

    output: Path = arguments.output
    require_folder(output, "OUTPUT")
    if output.is_dir() and any(output.iterdir()):
        if not arguments.overwrite:
            raise ValueError(f"{output} is not empty: give --overwrite to replace the model in it, or another folder.")
        if not holds_model(output):
            raise ValueError(f"{output} is not empty and holds no model to replace: give another folder.")
    config = _config_for(arguments.head, arguments.config)
    tokenizer, vectors = _vocabulary(arguments, config.embedding_size)
    model_class = getattr(modeling_dsa, HEADS[arguments.head])
    model = build_model(model_class, config, tokenizer, vectors, arguments.seed)
    with replaced_model(output) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    logger.info(f"{output} holds a {model_class.__name__} with fresh weights, ready to train. Use it:\n")
    logger.info(_example(arguments.head, output))
    return 0


def _vocabulary(arguments: argparse.Namespace, width: int) -> "tuple[WordTokenizer, WordVectors]":
    """The tokenizer and the word vectors; those of a teacher have `width` numbers."""
    from modeling_dsa.encoding.teacher_words import USUAL_SIZE, teacher_name, vocabulary_from_teacher
    from modeling_dsa.text.building import vocabulary_from_file, vocabulary_from_vectors
    from modeling_dsa.text.vocabulary import Size, vocabulary_of_list, vocabulary_of_texts

    teacher = teacher_name(arguments.vectors)
    weighting = arguments.frequency_weighting
    if weighting is not None and not (teacher and arguments.texts):
        raise ValueError("--frequency_weighting needs --vectors teacher:MODEL, and --texts to count the words of.")
    if arguments.text_column and not arguments.texts:
        raise ValueError("--text_column names a column of the texts: give it with --texts.")
    if arguments.most_frequent:
        if teacher:
            raise ValueError("A teacher has no list of words: give --texts or --word_list in place of --most_frequent.")
        if arguments.vocabulary_size or arguments.pieces:
            raise ValueError(
                "--most_frequent takes neither --vocabulary_size nor --pieces: give --texts or --word_list."
            )
        return vocabulary_from_vectors(arguments.vectors, arguments.most_frequent)
    size = (USUAL_SIZE if teacher else Size()).changed(arguments.vocabulary_size, arguments.pieces)
    if arguments.texts:
        choose: Choose = partial(vocabulary_of_texts, read_texts(arguments.texts, arguments.text_column), size)
    else:
        choose = vocabulary_of_list(arguments.word_list, size)
    if teacher:
        return vocabulary_from_teacher(teacher, choose, width, frequency_weighting=weighting)
    return vocabulary_from_file(arguments.vectors, choose)


def _config_for(head: str, source: str | None) -> "DSAConfig":
    """The config that `--config` names, or the default one, with what the head needs."""
    from modeling_dsa import DSAConfig

    config = DSAConfig() if source is None else load_config(_find_config(source))
    if head == "nli":
        config.sentences_per_example = 2
        if config.problem_type is not None:
            config.problem_type = "single_label_classification"
        if sorted(map(str.lower, config.class_names)) != sorted(NLI_CLASS_NAMES):
            config.id2label = dict(enumerate(NLI_CLASS_NAMES))
            config.label2id = {name: index for index, name in enumerate(NLI_CLASS_NAMES)}
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
