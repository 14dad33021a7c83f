"""`dsa predict`: a classifier's labels and probabilities for texts."""

import argparse
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from modeling_dsa.command.device import default_device
from modeling_dsa.command.standard_output import standard_output
from modeling_dsa.files.loading import load_config, load_model_and_tokenizer
from modeling_dsa.files.outputs import refuse_input, refuse_model_folder, require_folder
from modeling_dsa.files.replacing import replaced_file
from modeling_dsa.shipped.models import model_source

if TYPE_CHECKING:
    from modeling_dsa import DSAConfig, DSAForSequenceClassification
    from modeling_dsa.batching_dsa import Text
    from modeling_dsa.prediction.answers import Answer

logger = logging.getLogger(__name__)

FORMATS = ("jsonl", "csv")


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Classify texts or pairs of texts: a label and the probability of every label for each, in their order."
    parser = commands.add_parser("predict", help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument("model", type=model_source, metavar="MODEL", help="Folder or Hub id of a classifier.")
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="A text; or a file: .txt with one text a line, .jsonl, .csv, .tsv or .parquet, each also with .gz behind; "
        "or - for standard input with one text a line. A line of a pair is the first text, a tab and the second.",
    )
    parser.add_argument("text_pair", metavar="TEXT_PAIR", nargs="?", help="The second text of a pair.")
    parser.add_argument(
        "--labels",
        nargs="+",
        default=[],
        metavar="LABEL",
        help="Classify by similarity instead, which needs no classifier: each text gets the label whose vector is "
        "nearest to its own. They stand after INPUT, or before -- and INPUT.",
    )
    parser.add_argument(
        "--template",
        metavar="TEXT",
        help='Makes a description of each label, which takes the place of {}, such as "This text is about {}."; '
        "default: the label alone.",
    )
    parser.add_argument(
        "--text_column",
        nargs="+",
        default=[],
        metavar="NAME",
        help="Column of the texts in a file, or two columns of pairs; default: found as for training, such as text, or "
        "premise and hypothesis.",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="File to write; default: standard output.")
    parser.add_argument(
        "--format", choices=FORMATS, help="Of what is written; default: what FILE's extension says, or else jsonl."
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the predictions.

    Raises:
        ValueError: The model is no classifier or cannot be loaded, or an input is broken or does not fit the model.
        OSError: A file is missing or cannot be written.
    """
    from modeling_dsa.prediction.texts import open_texts

    output: Path | None = arguments.output
    if output is not None:
        refuse_input(output, [arguments.input], "--output")
        require_folder(output.parent, "--output")
        refuse_model_folder(output, "--output")
    output_format = _output_format(output, arguments.format)
    if arguments.template is not None and not arguments.labels:
        raise ValueError("--template describes labels: give --labels too.")
    pairs = not arguments.labels and _classifier_config(arguments.model).sentences_per_example == 2
    texts = open_texts(arguments.input, arguments.text_pair, arguments.text_column, pairs=pairs)
    if arguments.labels:
        template = "{}" if arguments.template is None else arguments.template
        predict = _nearest_label(arguments.model, arguments.labels, template)
    else:
        predict = _predictor(arguments.model)
    try:
        with _opened(output) as file:
            count = _write(texts, predict, file, output_format)
    except KeyboardInterrupt:
        logger.error("Stopped." if output is None else "Stopped; nothing was written.")
        return 130
    if output is not None:
        logger.info(f"{output} holds the predictions for {count:,} texts.")
    return 0


def _output_format(output: Path | None, chosen: str | None) -> str:
    by_extension = None if output is None else output.suffix.lower().removeprefix(".")
    if output == Path("-"):
        raise ValueError("Without --output the answers go to standard output: leave it out.")
    if by_extension == "gz" or (by_extension and chosen is None and by_extension not in FORMATS):
        raise ValueError(f"{output} would hold no .{by_extension}: give a name in .jsonl or .csv, or a --format.")
    if chosen is not None and by_extension in FORMATS and by_extension != chosen:
        raise ValueError(f"{output} would hold {chosen}, which its extension denies: give another name or --format.")
    return chosen or (by_extension if by_extension in FORMATS else FORMATS[0])


def _classifier_config(source: str) -> "DSAConfig":
    config = load_config(source)
    if not config.is_classifier:
        raise ValueError(
            f"{source} holds an encoder without a classifier: train one, give --labels to classify by similarity, or "
            "use dsa encode."
        )
    return config


def _predictor(source: str) -> "Callable[[Sequence[Text]], list[Answer]]":
    """What gives the answers to texts."""
    from modeling_dsa.prediction.answers import answers
    from modeling_dsa.prediction.logits import score_function
    from modeling_dsa.prediction.scores import label_scores
    from modeling_dsa.prediction.unread_texts import warn_of_unread

    loaded, tokenizer = load_model_and_tokenizer(source)
    model = cast("DSAForSequenceClassification", loaded)
    model.to(default_device())  # type: ignore[arg-type]  # a wrapper hides the signature
    function = score_function(model.config)

    def predict(texts: "Sequence[Text]") -> "list[Answer]":
        warn_of_unread(source, model.config, tokenizer, texts, "its answers to them")
        return answers(texts, label_scores(model, tokenizer, texts), model.config.class_names, function)

    return predict


def _nearest_label(source: str, labels: list[str], template: str) -> "Callable[[Sequence[Text]], list[Answer]]":
    """What gives the labels whose descriptions are nearest to texts."""
    from modeling_dsa.encoding.encoder import SentenceEncoder
    from modeling_dsa.encoding.finite import check_finite
    from modeling_dsa.prediction.answers import answers
    from modeling_dsa.prediction.unread_texts import warn_of_unread
    from modeling_dsa.zero_shot_dsa import describe_labels, label_probabilities, refuse_unknown_labels

    descriptions = describe_labels(labels, template)
    encoder = SentenceEncoder.from_pretrained(source)
    refuse_unknown_labels(source, encoder.tokenizer, labels)
    described = encoder.encode(descriptions)  # (labels, width)
    check_finite(described, descriptions)

    def predict(texts: "Sequence[Text]") -> "list[Answer]":
        warn_of_unread(source, encoder.model.config, encoder.tokenizer, texts, "its answers to them")
        sentences = cast("Sequence[str]", texts)
        vectors = encoder.encode(sentences)  # (texts, width)
        check_finite(vectors, sentences)
        return answers(texts, label_probabilities(vectors, described), labels, "softmax")

    return predict


@contextmanager
def _opened(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        with standard_output() as file:
            file.reconfigure(encoding="utf-8", newline="")  # type: ignore[attr-defined]  # a TextIOWrapper
            yield file
        return
    with replaced_file(output) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        yield file


def _write(
    texts: "Iterator[Text]", predict: "Callable[[Sequence[Text]], list[Answer]]", file: TextIO, output_format: str
) -> int:
    """Write the predictions, window by window, and return how many they are."""
    from modeling_dsa.encoding.windows import windows
    from modeling_dsa.prediction.answers import csv_writer, json_lines_writer

    write = (csv_writer if output_format == "csv" else json_lines_writer)(file)
    count = 0
    for window in windows(texts):
        write(predict(window))
        count += len(window)
    return count
