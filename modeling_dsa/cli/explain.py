"""`dsa explain`: where a model looks, and whether that explains what it decides."""

import argparse
import importlib
import itertools
import logging
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from modeling_dsa.command.command_line import whole_number
from modeling_dsa.command.optional_packages import optional_packages
from modeling_dsa.command.standard_output import standard_output
from modeling_dsa.files.model_folder import read_config
from modeling_dsa.files.outputs import refuse_input, refuse_model_folder, refuse_other_report, require_folder
from modeling_dsa.files.replacing import replaced_file, write_json
from modeling_dsa.files.shown_paths import command_without_folders, last_part, without_folders
from modeling_dsa.shipped.models import model_source

if TYPE_CHECKING:
    from modeling_dsa.batching_dsa import Text

logger = logging.getLogger(__name__)

EXAMPLES = 500


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Show where a model looks in a text or a pair, or measure whether that explains what it decides."
    parser = commands.add_parser("explain", help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument("model", type=model_source, metavar="MODEL", help="Folder or Hub id of a model.")
    parser.add_argument("text", metavar="TEXT", nargs="?", help="The text, or the first of a pair.")
    parser.add_argument("text_pair", metavar="TEXT_PAIR", nargs="?", help="The second text of a pair.")
    parser.add_argument(
        "--output",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="Files to write instead of showing it here: .html, a page that needs nothing else; .png, .svg or .pdf, a "
        "picture. Of --heads: .json and pictures; of --faithfulness: .json and .png.",
    )
    _add_options_of_files(parser)


def _add_options_of_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--faithfulness",
        type=Path,
        metavar="FILE",
        help="Texts or pairs, as dsa predict reads them: delete the most attended words and see what becomes of the "
        "decisions, against random words, gradient x input and integrated gradients.",
    )
    parser.add_argument(
        "--heads",
        type=Path,
        metavar="FILE",
        help="Sentences: which words and positions each head emphasises, how sharply it looks in each iteration, and "
        "how far the heads agree.",
    )
    parser.add_argument(
        "--word_classes",
        choices=("en", "de", "nl"),
        help="The language of the sentences of --heads: say which word classes each head emphasises, too.",
    )
    parser.add_argument(
        "--vectors",
        type=Path,
        metavar="FILE",
        help="Sentences, each with a label or none: show their dynamic weight vectors in the plane, by label, routing "
        "iteration and head. It needs --output.",
    )
    parser.add_argument("--method", choices=("pca", "t-sne"), help="How --vectors projects; default: pca.")
    parser.add_argument(
        "--text_column", nargs="+", default=[], metavar="NAME", help="One or two columns of FILE; default: found."
    )
    parser.add_argument("--label_column", metavar="NAME", help="Column of labels of --vectors; default: found.")
    parser.add_argument(
        "--examples",
        type=whole_number(1, 10**9),
        metavar="N",
        help=f"The first N examples or sentences of FILE; default: {EXAMPLES}.",
    )
    parser.add_argument(
        "--card",
        action="store_true",
        help="Write faithfulness.json and .png into MODEL, a folder, and the figures into its README.md.",
    )


def run(arguments: argparse.Namespace) -> int:
    """Show the explanation, or write it.

    Raises:
        ValueError: A package is missing, the model cannot be loaded or has no attention, a text does not fit it, a file
            is broken or has an unsupported extension, or options do not go together.
        OSError: A file is missing or cannot be written.
    """
    given = [name for name in ("text", "faithfulness", "heads", "vectors") if getattr(arguments, name) is not None]
    if not given:
        raise ValueError(
            "There is nothing to explain: give a text, or a file with --faithfulness, --heads or --vectors."
        )
    if len(given) > 1:
        raise ValueError("Give one of these: a text, or a file with --faithfulness, --heads or --vectors.")
    if arguments.card and given != ["faithfulness"]:
        raise ValueError("--card goes with --faithfulness.")
    if arguments.text_column and given == ["text"]:
        raise ValueError("--text_column names columns of a file: leave it out for a text.")
    if arguments.examples and given == ["text"]:
        raise ValueError("--examples counts rows of a file: leave it out for a text.")
    arguments.examples = arguments.examples or EXAMPLES
    if arguments.word_classes and given != ["heads"]:
        raise ValueError("--word_classes goes with --heads.")
    for name in ("label_column", "method"):
        if getattr(arguments, name) and given != ["vectors"]:
            raise ValueError(f"--{name} goes with --vectors.")
    explain_by = {
        "text": _explain_text,
        "faithfulness": _measure_faithfulness,
        "heads": _show_heads,
        "vectors": _show_vectors,
    }
    return explain_by[given[0]](arguments)


def _explain_text(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from modeling_dsa.explanation.explain import EXTENSIONS, explain
    from modeling_dsa.prediction.texts import names_file

    _check_outputs(arguments.output, EXTENSIONS)
    for text in (arguments.text, arguments.text_pair):
        if text is not None and names_file(text):
            kind = "folder" if Path(text).is_dir() else "file"
            raise ValueError(f"{text} is a {kind}, and one text is explained: --heads and --faithfulness read files.")
    if any(path.suffix.lower() != ".html" for path in arguments.output):
        with optional_packages("Drawing", "evaluation", "matplotlib"):  # told before a page is written
            importlib.import_module("modeling_dsa.explanation.drawing")
    explanation = explain(arguments.model, arguments.text, arguments.text_pair)
    if not arguments.output:
        console = Console()
        with console.capture() as shown:  # by itself it takes a reader that has enough for an error
            console.print(explanation)
        with standard_output() as answer:
            answer.write(shown.get())
    for path in arguments.output:
        explanation.save(path)
        logger.info(f"The explanation is in {path}.")
    return 0


def _measure_faithfulness(arguments: argparse.Namespace) -> int:
    with optional_packages("--faithfulness", "explanation", "captum", "matplotlib", "scipy"):
        from modeling_dsa.explanation import faithfulness_report
        from modeling_dsa.explanation.faithfulness import check_model, faithfulness
        from modeling_dsa.explanation.faithfulness_summary import summarize
    from modeling_dsa.command.environment import environment
    from modeling_dsa.files.card_sections import CARD, read_card, save_changed_card
    from modeling_dsa.files.loading import load_model_and_tokenizer
    from modeling_dsa.files.model_hashes import unchanged
    from modeling_dsa.modeling_dsa import DSAForSequenceClassification
    from modeling_dsa.prediction.unread_texts import warn_of_unread

    outputs: list[Path] = arguments.output
    folder = Path(arguments.model)
    _check_outputs(outputs, (".json", ".png"), arguments.faithfulness)
    if arguments.card:
        read_card(folder)  # a mistake is told before the work
        figures, picture = folder / faithfulness_report.FILE, folder / faithfulness_report.PICTURE
        for path in (figures, picture):
            refuse_input(path, [arguments.faithfulness], "--faithfulness")
        refuse_other_report(figures, [picture], faithfulness_report.FaithfulnessReport.from_json, "MODEL")
        outputs = [*outputs, figures, picture]
    with unchanged(arguments.model, [arguments.faithfulness]) as (hashes, described):
        texts = _read_texts(arguments)
        model, tokenizer = load_model_and_tokenizer(arguments.model)
        check_model(model)
        warn_of_unread(arguments.model, model.config, tokenizer, texts)
        model.float()  # gradients in half precision say little
        summary = summarize(faithfulness(cast(DSAForSequenceClassification, model), tokenizer, texts))
    report = faithfulness_report.FaithfulnessReport(
        without_folders(arguments.model),
        hashes,
        described[arguments.faithfulness],
        command_without_folders(arguments.command),
        environment() | {"captum": version("captum")},
        **summary,
    )
    for path in outputs:
        if path.suffix.lower() == ".json":
            write_json(report.as_json(), path)
        else:
            with replaced_file(path) as beside:
                report.draw(beside)
        logger.info(f"The figures are in {path}.")
    if arguments.card:
        card = read_card(folder)
        report.update_card(card)
        save_changed_card(card, folder / CARD)
    with standard_output() as answer:
        print(f"{report.as_markdown()}\n\n{report.verdict}", file=answer)
    return 0


def _show_heads(arguments: argparse.Namespace) -> int:
    with optional_packages("--heads", "explanation", "matplotlib", "scipy"):
        from modeling_dsa.explanation.head_profiles import head_profiles
        from modeling_dsa.explanation.head_profiles_drawing import draw_head_profiles
        from modeling_dsa.explanation.head_profiles_report import as_json, as_markdown
        from modeling_dsa.files.pictures import EXTENSIONS, save_with_fonts
    from modeling_dsa.explanation.labelled_sentences import read_sentences
    from modeling_dsa.explanation.word_classes import load_tagger
    from modeling_dsa.files.loading import load_model_and_tokenizer
    from modeling_dsa.prediction.unread_texts import warn_of_unread

    _check_outputs(arguments.output, (".json", *EXTENSIONS), arguments.heads)
    tagger = load_tagger(arguments.word_classes) if arguments.word_classes else None
    found = read_sentences(arguments.heads, arguments.text_column, None, arguments.examples, with_labels=False)
    model, tokenizer = load_model_and_tokenizer(arguments.model)
    warn_of_unread(arguments.model, model.config, tokenizer, found.texts)
    profiles = head_profiles(model, tokenizer, found.texts, tagger)
    for path in arguments.output:
        if path.suffix.lower() == ".json":
            write_json(as_json(profiles), path)
        else:
            with replaced_file(path) as beside:
                source = f"{profiles.sentences:,} sentences of {arguments.heads.name}"
                title = f"Heads of {last_part(arguments.model)} on {source}"
                save_with_fonts(draw_head_profiles(profiles, title), beside)
        logger.info(f"The profiles are in {path}.")
    with standard_output() as answer:
        print(as_markdown(profiles), file=answer)
    return 0


def _show_vectors(arguments: argparse.Namespace) -> int:
    with optional_packages("--vectors", "explanation", "matplotlib", "sklearn"):
        from modeling_dsa.explanation.explain import EXTENSIONS
        from modeling_dsa.explanation.projection_files import write_projection
        from modeling_dsa.explanation.weight_vectors import project, weight_vectors
    from modeling_dsa.explanation.labelled_sentences import read_sentences
    from modeling_dsa.files.loading import load_model_and_tokenizer
    from modeling_dsa.prediction.unread_texts import warn_of_unread

    if not arguments.output:
        raise ValueError(f"Say with --output where the vectors go: {', '.join(EXTENSIONS)}.")
    _check_outputs(arguments.output, EXTENSIONS, arguments.vectors)
    sentences = read_sentences(arguments.vectors, arguments.text_column, arguments.label_column, arguments.examples)
    model, tokenizer = load_model_and_tokenizer(arguments.model)
    warn_of_unread(arguments.model, model.config, tokenizer, sentences.texts)
    projection = project(sentences, weight_vectors(model, tokenizer, sentences.texts), arguments.method or "pca")
    for path in arguments.output:
        write_projection(projection, last_part(arguments.model), path)
        logger.info(f"The vectors are in {path}.")
    with standard_output() as answer:
        print("; ".join(projection.axes), file=answer)
    return 0


def _check_outputs(paths: Sequence[Path], extensions: Sequence[str], *inputs: Path) -> None:
    """Refuse files that cannot be written, or would replace what is read, before a model is loaded."""
    for path in paths:
        if path.suffix.lower() not in extensions:
            raise ValueError(f"{path}: this is written as {', '.join(extensions)}: give another name.")
        refuse_input(path, inputs, "--output")
        require_folder(path.parent, "--output")
        refuse_model_folder(path, "--output")


def _read_texts(arguments: argparse.Namespace) -> "list[Text]":
    """The first examples of the file, texts or pairs as the model reads them."""
    from modeling_dsa.prediction.texts import open_texts

    if not arguments.faithfulness.is_file():
        raise FileNotFoundError(f"There is no file {arguments.faithfulness}.")
    pairs = read_config(arguments.model).get("sentences_per_example") == 2
    texts = open_texts(str(arguments.faithfulness), None, arguments.text_column, pairs=pairs)
    return list(itertools.islice(texts, arguments.examples))
