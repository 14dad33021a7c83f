"""`dsa evaluate`: what a model's vectors, or a classifier's answers, are worth on files of one's own."""

import argparse
import itertools
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from modeling_dsa.command.optional_packages import optional_packages
from modeling_dsa.command.standard_output import standard_output
from modeling_dsa.files.outputs import refuse_input, refuse_other_report, require_folder
from modeling_dsa.files.replacing import filled_folder, write_json
from modeling_dsa.files.shown_paths import command_without_folders, without_folders
from modeling_dsa.shipped.models import model_source

if TYPE_CHECKING:
    from modeling_dsa.evaluation.models import EvaluatedModel
    from modeling_dsa.evaluation.probes import LabelledTexts
    from modeling_dsa.evaluation.report import Result
    from modeling_dsa.evaluation.similarity import SimilarityPairs

Described: TypeAlias = "dict[Path, dict[str, str]]"  # the name and SHA-256 of each file

logger = logging.getLogger(__name__)


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command `dsa`."""
    text = "Measure what a model is worth: similarity, linear probes, a classifier's accuracy."
    parser = commands.add_parser("evaluate", help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument(
        "model",
        type=model_source,
        metavar="MODEL",
        help="Folder or Hub id of a model, or of any model of sentence-transformers.",
    )
    parser.add_argument(
        "--similarity",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="Two texts and a human score a row, such as STS-B and SICK: correlations of the cosines with the scores.",
    )
    parser.add_argument(
        "--probe",
        type=Path,
        nargs="+",
        action="append",
        default=[],
        metavar="FILE",
        help="Labelled texts or pairs: logistic regression on the frozen vectors, by SentEval's protocol. TRAIN alone "
        "is cross-validated; or TRAIN TEST; or TRAIN VALIDATION TEST. May be given several times.",
    )
    parser.add_argument(
        "--labelled",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="Examples with the labels of MODEL, a classifier, such as NLI pairs: accuracy, F1 and confusion matrix.",
    )
    parser.add_argument(
        "--text_column", nargs="+", metavar="NAME", help="One or two columns of texts, in every file; default: found."
    )
    parser.add_argument("--score_column", metavar="NAME", help="Column of scores, for --similarity; default: found.")
    parser.add_argument(
        "--label_column", metavar="NAME", help="Column of labels, for --probe and --labelled; default: found."
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--output",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="Folder for evaluation.json, evaluation.md and evaluation.png; default: the current one.",
    )
    where.add_argument(
        "--card",
        action="store_true",
        help="Write them into MODEL, a folder, and the figures into its README.md: metadata and a section.",
    )


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, write the files, print the table.

    Raises:
        ValueError: Packages are missing, the model cannot be loaded or is no classifier, or a file does not fit.
        OSError: A file is missing or cannot be written.
    """
    if not (arguments.similarity or arguments.probe or arguments.labelled):
        raise ValueError("There is nothing to evaluate: give files with --similarity, --probe or --labelled.")
    if arguments.score_column is not None and not arguments.similarity:
        raise ValueError("--score_column names a column of --similarity: leave it out, or give that too.")
    if arguments.label_column is not None and not arguments.probe and not arguments.labelled:
        raise ValueError("--label_column names a column of --probe or --labelled: leave it out, or give one of them.")
    if any(len(files) > 3 for files in arguments.probe):
        raise ValueError("--probe takes up to three files, TRAIN VALIDATION TEST: give it once for each task.")
    for files in arguments.probe:
        if len({path.resolve() for path in files}) < len(files):
            raise ValueError(
                f"--probe has {files[-1]} twice: a probe is tested on other examples than it is trained on."
            )
    with optional_packages("Evaluation", "evaluation", "matplotlib", "scipy", "sklearn"):
        from modeling_dsa.evaluation import card, models, probes, report, similarity
    from modeling_dsa.command.environment import environment
    from modeling_dsa.files.card_sections import CARD, read_card, save_changed_card
    from modeling_dsa.files.model_hashes import unchanged

    # Mistakes are told before the work, and nothing is written before there are figures.
    folder, option = (Path(arguments.model), "MODEL") if arguments.card else (arguments.output, "--output")
    require_folder(folder, option)
    if arguments.card:
        read_card(folder)
    inputs = [*arguments.similarity, *itertools.chain(*arguments.probe), *arguments.labelled]
    for name in (report.FILE, report.TABLE, report.PICTURE):
        refuse_input(folder / name, inputs, option)
    others = [folder / report.TABLE, folder / report.PICTURE]
    refuse_other_report(folder / report.FILE, others, report.Evaluation.from_json, option)
    columns: Sequence[str] | None = arguments.text_column
    with unchanged(arguments.model, inputs) as (hashes, described):
        pairs = {
            path: similarity.read_similarity(path, columns, arguments.score_column) for path in arguments.similarity
        }
        labelled = [
            (paths, [probes.read_labelled(path, columns, arguments.label_column) for path in paths])
            for paths in arguments.probe
        ]
        for _, files in labelled:
            probes.check_files(files)
        model = models.open_model(arguments.model)
        classification = _classification(model, arguments, described)  # first, for its files have not been read yet
        results = [*_similarity(model, pairs, described), *_probes(model, labelled, described), *classification]
    evaluation = report.Evaluation(
        without_folders(arguments.model),
        hashes,
        model.library,
        command_without_folders(arguments.command),
        environment(),
        results,
    )
    table = evaluation.as_markdown()
    with filled_folder(folder, last=report.FILE) as beside:
        write_json(evaluation.as_json(), beside / report.FILE)
        (beside / report.TABLE).write_text(f"{table}\n", encoding="utf-8")
        evaluation.draw(beside / report.PICTURE)
    if arguments.card:
        model_card = read_card(folder)
        card.update_card(model_card, evaluation, folder)
        save_changed_card(model_card, folder / CARD)
    with standard_output() as answer:
        print(table, file=answer)
    logger.info(f"{folder / report.FILE}, {folder / report.TABLE} and {folder / report.PICTURE} hold the figures.")
    return 0


def _similarity(model: "EvaluatedModel", files: "dict[Path, SimilarityPairs]", described: Described) -> "list[Result]":
    from modeling_dsa.evaluation.report import Result
    from modeling_dsa.evaluation.similarity import evaluate_similarity

    results = []
    for path, pairs in files.items():
        model.warn_of_unread(f"{path}: the model", list(zip(pairs.first, pairs.second, strict=True)))
        found = evaluate_similarity(model.encode, pairs)
        metrics = {"spearman": found.spearman, "pearson": found.pearson}
        results.append(Result("similarity", [described[path]], len(pairs.first), metrics))
    return results


def _probes(
    model: "EvaluatedModel", tasks: "list[tuple[list[Path], list[LabelledTexts]]]", described: Described
) -> "list[Result]":
    from modeling_dsa.evaluation.probes import probe
    from modeling_dsa.evaluation.report import Result

    results = []
    for paths, files in tasks:
        for path, file in zip(paths, files, strict=True):
            model.warn_of_unread(f"{path}: the model", [text for example in file.texts for text in example])
        found = probe(model.encode, files)
        metrics = {"accuracy": found.accuracy, "macro_f1": found.macro_f1}
        details = {"protocol": found.protocol, "C": found.c, "classes": found.classes}
        results.append(Result("probe", [described[path] for path in paths], found.examples, metrics, details))
    return results


def _classification(model: "EvaluatedModel", arguments: argparse.Namespace, described: Described) -> "list[Result]":
    from modeling_dsa.evaluation.classification import classification_metrics, read_classified
    from modeling_dsa.evaluation.report import Result

    results: list[Result] = []
    if not arguments.labelled:
        return results
    classifier = model.classifier
    if classifier is None:
        raise ValueError(
            f"{arguments.model} gives no classes: --labelled needs a classifier; --probe trains one on frozen vectors."
        )
    examples = {
        path: read_classified(
            path,
            classifier.class_names,
            pairs=classifier.pairs,
            text_columns=arguments.text_column,
            label_column=arguments.label_column,
        )
        for path in arguments.labelled
    }
    for path, found in examples.items():
        model.warn_of_unread(f"{path}: the model", found.texts)
        if found.unlabelled:
            logger.info(f"Rows of {path} without a label, which are left out: {found.unlabelled:,}.")
        details = classification_metrics(found.labels, classifier.classify(found.texts), classifier.class_names)
        metrics = {key: details.pop(key) for key in ("accuracy", "macro_f1")}
        details = {"classes": classifier.class_names, "unlabelled": found.unlabelled, **details}
        results.append(Result("classification", [described[path]], len(found.labels), metrics, details))
    return results
