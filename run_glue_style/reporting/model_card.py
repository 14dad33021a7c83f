"""A model's card, the README.md of its page on the Hub: the words of model_cards/template.md.jinja, a run's figures.

`python -m run_glue_style.reporting.model_card FOLDER --model_id org/name` writes it into a model's folder.
"""

import argparse
import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, cast

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from huggingface_hub.errors import HFValidationError, StrictDataclassError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # public, but not in an __all__
from safetensors import SafetensorError
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase, pipeline

from modeling_dsa import DSAConfig, DSAForSequenceClassification
from modeling_dsa.encoders_dsa import ENCODERS
from modeling_dsa.poolings_dsa import POOLINGS
from modeling_dsa.shipped.files import CARD_TEMPLATE
from run_glue_style.tasks import nli as nli_data
from run_glue_style.tasks import sst as sst_data
from run_glue_style.tasks import stance as stance_data
from run_glue_style.tasks.task import Task
from run_glue_style.training.entry import run_script
from run_glue_style.training.recipe import TrainingRecipe

from .comparison import mean_and_spread
from .published import read_published

PICTURE = "attention.png"

# What a card must read of an all_results.json; runs of earlier versions lack other entries.
_NEEDED = (
    *("metrics", "data", "model", "recipe", "source", "start", "seed", "mixed_precision", "processes", "steps"),
    *("trained_parameters", "train_seconds", "environment"),
)
# A reader wants these even where they are the defaults.
_ALWAYS_TOLD = ("num_train_epochs", "per_device_train_batch_size", "optimizer", "learning_rate", "schedule")
_TOLD_LABELS = 20
_TAGS = {
    "nli": ["natural-language-inference"],
    "sentiment": ["sentiment-analysis"],
    "stance": ["stance-detection"],
}
_EXAMPLES: dict[str, list[str | tuple[str, str]]] = {
    "nli": [
        ("A man is playing a guitar on stage.", "A man is asleep."),
        ("Two dogs run through the snow.", "Animals are outdoors."),
        ("A woman in a red coat waits at a bus stop.", "A woman is on her way to work."),
    ],
    "sentiment": [
        "A gripping film with a great cast.",
        "The plot is thin and the jokes fall flat.",
        "It is not as bad as it sounds.",
    ],
    "stance": [
        ("Police find mass graves", "The mayor said that no graves were found."),
        ("Police find mass graves", "Officers confirmed that several graves were found near the town."),
        ("Police find mass graves", "The new phone has a larger screen and a better camera."),
    ],
}


@dataclass(frozen=True)
class KnownData:
    """Public data that are recognised by their rows, whatever the files are called.

    Attributes:
        name: As people call them.
        table: The paper's table in configuration/tables that has figures on them.
        hub_id: Their data set on the Hub, if there is one of whose contents we are sure.
        sha256: `fingerprint` of the complete splits that choose weights or test them.
    """

    name: str
    table: str
    hub_id: str | None
    sha256: frozenset[str]


KNOWN_DATA = (
    KnownData(
        "SNLI",
        "snli",
        "stanfordnlp/snli",
        frozenset(
            {
                "c29542f144c497b90613f20222f091889304c1a78a60d1677a7632f81e0a8d47",
                "d09d4209d03bfd9f6a101f64a32b5dea7665a78fc6c8ec48e37f675df8cfae37",
            }
        ),
    ),
    KnownData(
        "SST-2",
        "sst",
        "stanfordnlp/sst",
        frozenset(
            {
                "b979a4b2eb3e86a47103720c0dfd1710c34fca8cb1975baa14307a25eda5e5fe",
                "84aec21327cd5a4f0688c3be9713e12c75c07ebcff569e384269fb3a65ed175f",
            }
        ),
    ),
    KnownData(
        "SST-5",
        "sst",
        "stanfordnlp/sst",
        frozenset(
            {
                "648483fe8009a28d5c2502cc574148b6777b58b353c5cc5494694a43e04fb08e",
                "35023f2c84331097f8dc6a13e774a5a020d789717b1630a9c7ce9cc88cece330",
            }
        ),
    ),
    KnownData(
        "FNC-1",
        "fnc1",
        None,
        frozenset({"2e7e286bf40eb6e04a26cf5498d09a4819f3152cc6c5482d5fcbf845f1b78e99"}),
    ),
)
_PACKAGED_TRAIN_SHA256 = "d962cb74b2520f5f3f5a3f84ceb578d9a08d9af4273aa5c37b34345b132c56d8"  # run_glue_style/sample


@dataclass(frozen=True)
class WidgetExample:
    """An input and what the model made of it.

    Attributes:
        text: A text, or a pair as `premise [SEP] hypothesis`: the Hub's examples have one text.
        output: Score of every class, the highest first.
    """

    text: str
    output: Mapping[str, float]


def widget_examples(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str | tuple[str, str]]
) -> list[WidgetExample]:
    """Run a classifier through transformers' text-classification pipeline and keep what it says.

    Args:
        model: A classifier of this package.
        tokenizer: Its tokenizer.
        texts: Texts, or pairs for a model that reads pairs.
    """
    was_training = model.training
    classify = pipeline(
        "text-classification", model=model.eval(), tokenizer=cast(Any, tokenizer), device=model.device, top_k=None
    )
    inputs = [text if isinstance(text, str) else f" {tokenizer.sep_token} ".join(text) for text in texts]
    examples = [
        WidgetExample(text, {str(scored["label"]): float(scored["score"]) for scored in cast(Any, output)})
        for text, output in zip(inputs, classify(inputs), strict=True)
    ]
    model.train(was_training)
    return examples


def model_card(
    results: Mapping[str, Any],
    *,
    model_id: str,
    config: DSAConfig,
    examples: Sequence[WidgetExample] = (),
    picture: str | None = None,
) -> ModelCard:
    """The card of a model.

    Args:
        results: Its run's all_results.json; empty where nothing was measured.
        model_id: Its name on the Hub, `organisation/name`; the code snippets load it from there.
        config: Its config.
        examples: What it said to some inputs.
        picture: File in its repository with a picture of its attention.

    Raises:
        ValueError: `model_id` is no name on the Hub, or `results` are not those of a run of this package.
    """
    validate_repo_id(model_id)
    _check_results(results)
    systems = {"encoder": ENCODERS[config.encoder], "pooling": POOLINGS[config.pooling]}
    facts = _facts(results, model_id, config) | systems | {"examples": examples, "picture": picture}
    card_data = _metadata(results, facts, examples)
    card: ModelCard = ModelCard.from_template(card_data, template_path=str(CARD_TEMPLATE), **facts)
    return card


def write_card(folder: Path, model_id: str) -> Path:
    """Write the card of a model's folder, README.md, from its config.json and, if it has them, results and weights.

    Args:
        folder: A saved model.
        model_id: As in `model_card`.

    Returns:
        The card's file.

    Raises:
        FileNotFoundError: The folder holds no config.json.
        ValueError: As in `model_card`, or a file of the folder cannot be read.
    """
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(f"{folder} has no config.json: give the folder of a saved model.")
    config = _load(DSAConfig, folder, "config")
    if config.model_type != DSAConfig.model_type:
        raise ValueError(f"{folder} holds a model of type {config.model_type!r}: give one of type 'dsa'.")
    path = folder / "all_results.json"
    results = _read_results(path) if path.is_file() else {}
    examples: Sequence[WidgetExample] = ()
    texts = _examples(config, results)
    if texts and any(folder.glob("*.safetensors")):
        model = _load(DSAForSequenceClassification, folder, "model")
        examples = widget_examples(model, _load(AutoTokenizer, folder, "tokenizer"), texts)
    picture = PICTURE if (folder / PICTURE).is_file() else None
    card = model_card(results, model_id=model_id, config=config, examples=examples, picture=picture)
    return _save(card, folder / "README.md")


def main() -> None:
    """Read the command line and write a card."""
    parser = argparse.ArgumentParser(description="Write a model's card from its results.", allow_abbrev=False)
    parser.add_argument("source", type=Path, help="A model's folder, or an all_results.json without its model.")
    parser.add_argument("--model_id", required=True, metavar="ORG/NAME", help="Name of the model on the Hub.")
    parser.add_argument("--output", type=Path, metavar="FILE", help="Card of an all_results.json.")
    arguments = parser.parse_args()
    source: Path = arguments.source
    if source.is_dir():
        if arguments.output is not None:
            parser.error("a model's card is the README.md of its folder: leave out --output")
        path = write_card(source, arguments.model_id)
    else:
        if arguments.output is None:
            parser.error("an all_results.json has no folder for its card: give --output")
        results = _read_results(source)
        config = DSAConfig.from_dict(results["model"])
        path = _save(model_card(results, model_id=arguments.model_id, config=config), arguments.output)
    print(f"The card is in {path}.")  # noqa: T201  (this is the command's answer)


def _facts(results: Mapping[str, Any], model_id: str, config: DSAConfig) -> dict[str, Any]:
    """All that the template reads, beside the metadata, the examples and the picture."""
    kind = _kind(config)
    vectors = str(results.get("vectors") or "")
    known = _known_data(results)
    samples = _examples(config, results) or _EXAMPLES["nli" if config.sentences_per_row == 2 else "sentiment"]
    first, second = (samples[0], "") if isinstance(samples[0], str) else samples[0]
    facts: dict[str, Any] = {
        "model_id": model_id,
        "name": model_id.rpartition("/")[2],
        "kind": kind,
        "pair": config.sentences_per_row == 2,
        "labels": _told_labels(config),
        "config": config,
        "results": results,
        "data_key": known.table if known else None,
        "glove": "glove" in vectors.lower(),
        "english": known is not None or re.search(r"glove\.(6B|27B|42B|840B)", vectors, flags=re.I) is not None,
        "first": first,
        "second": second,
        "text": _plain,
        "quoted": _quoted,
        "percent": _percent,
    }
    return facts | (_measured(results, known) if results else {})


def _measured(results: Mapping[str, Any], known: KnownData | None) -> dict[str, Any]:
    """The facts of a run: its figures on the test split, or on the first validation split where there is no other."""
    split = "test" if "test" in results["metrics"] else next(iter(results["metrics"]))
    scores = results["metrics"][split]
    return {
        "split": split,
        "scores": scores,
        **(_best_and_worst(scores) if "per_class" in scores else {}),
        "packaged": results["data"]["train"]["sha256"] == _PACKAGED_TRAIN_SHA256,
        "setting": _without_folders(results.get("setting") or ""),
        "recipe_name": _without_folders(results.get("recipe_name") or ""),
        "source": _without_folders(results["source"]),
        "start": _without_folders(results["start"]),
        "minutes": f"{results['train_seconds'] / 60:.1f}",
        "recipe": _told_options(results["recipe"]),
        "command": _command(results.get("command", ())),
        "versions": _plain(_versions(results["environment"])),
        "comparison": _comparison(results, known),
    }


def _best_and_worst(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The classes that a classifier finds most and least reliably, and what it takes the latter for."""
    names = list(scores["per_class"])
    best = max(names, key=lambda name: float(scores["per_class"][name]["f1"]))
    worst = min(names, key=lambda name: float(scores["per_class"][name]["f1"]))
    index = names.index(worst)
    counts: list[int] = scores["confusion_matrix"][index]
    mistaken_rows, mistaken_for = max((counts[i], name) for i, name in enumerate(names) if i != index)
    return {
        "best": best,
        "worst": worst,
        "worst_rows": sum(counts),
        "worst_found": counts[index],
        "mistaken_rows": mistaken_rows,
        "mistaken_for": mistaken_for,
    }


def _metadata(results: Mapping[str, Any], facts: Mapping[str, Any], examples: Sequence[WidgetExample]) -> ModelCardData:
    kind, config, known = facts["kind"], facts["config"], _known_data(results)
    source = _hub_id(results.get("source", ""))
    data_id = source or (known.hub_id if known else None)
    figures = [
        EvalResult(
            task_type="text-classification",
            task_name="Text classification",
            dataset_type=data_id or "custom",
            dataset_name=known.name if known else facts["source"],
            dataset_split=split,
            metric_type=metric,
            metric_name=name,
            metric_value=scores[key],
        )
        for split, scores in results.get("metrics", {}).items()
        for key, metric, name in (
            ("accuracy", "accuracy", "Accuracy"),
            ("macro_f1", "f1", "Macro F1"),
            ("fnc_relative", "fnc_score", "FNC score, relative to its maximum"),
            ("f1", "f1", "F1"),
            ("matthews_correlation", "matthews_correlation", "Matthews correlation"),
            ("pearson", "pearsonr", "Pearson correlation"),
            ("spearman", "spearmanr", "Spearman correlation"),
            ("mean_absolute_error", "mae", "Mean absolute error"),
        )
        if key in scores
    ]
    vectors = results.get("vectors")
    widget = [
        {
            "text": example.text,
            "output": [{"label": label, "score": round(score, 4)} for label, score in example.output.items()],
        }
        for example in examples
    ]
    return ModelCardData(
        license="apache-2.0",
        language="en" if facts["english"] else None,
        library_name="transformers",
        pipeline_tag="feature-extraction" if kind == "encoder" else "text-classification",
        tags=[
            "dsa",
            "custom_code",
            "sentence-transformers",
            "sentence-similarity",
            "feature-extraction",
            *_TAGS.get(kind, []),
            *(["glove"] if facts["glove"] else []),
        ],
        base_model=_hub_id(results.get("start", "")),
        base_vectors=f"{vectors}, {config.embedding_size} numbers a word" if vectors else None,
        datasets=[data_id] if data_id else None,
        metrics=(["pearsonr", "spearmanr"] if kind == "regression" else ["accuracy", "f1"]) if results else None,
        model_name=facts["name"],
        eval_results=figures or None,
        widget=widget or None,
    )


def _comparison(results: Mapping[str, Any], known: KnownData | None) -> dict[str, Any] | None:
    """Our figures and the paper's on the same test rows: `systems`, `table`, `figures` of (column, ours, published).

    The paper's system is the run's own or, where it has none of the kind, each that it has.
    """
    if known is None:
        return None
    table, part = read_published(known.table), known.name.replace("-", "").lower()
    own = [name for name in table.systems if f"{name}-{part}" == results.get("setting")]
    systems = own or list(table.systems)
    figures = []
    for column, place in table.columns.items():
        published = [table.systems[name].published.get(column) for name in systems]
        if place.part == part and any(published) and place.metric.split(".")[0] in results["metrics"]:
            ours = float(reduce(getitem, place.metric.split("."), results["metrics"]))
            told = ["–" if figure is None else f"{figure:.{table.decimals}f}" for figure in published]
            figures.append((column, mean_and_spread([ours]), told))
    shown = [number for number in range(len(systems)) if any(told[number] != "–" for _, _, told in figures)]
    if not shown:
        return None
    return {
        "systems": [table.systems[systems[number]].called for number in shown],
        "table": table,
        "figures": [(column, ours, [told[number] for number in shown]) for column, ours, told in figures],
    }


def _known_data(results: Mapping[str, Any]) -> KnownData | None:
    hashes = {of_split["sha256"] for split, of_split in results.get("data", {}).items() if split != "train"}
    return next((known for known in KNOWN_DATA if known.sha256 & hashes), None)


def _labels(config: DSAConfig) -> list[str]:
    names = cast(dict[int, str], config.id2label)  # a config turns the keys into numbers
    return [names[number] for number in sorted(names)]


def _told_labels(config: DSAConfig) -> str:
    names = [f"*{_plain(name)}*" for name in _labels(config)]
    more = len(names) - _TOLD_LABELS
    return ", ".join(names[:_TOLD_LABELS]) + (f" and {more} more" if more > 0 else "")


def _kind(config: DSAConfig) -> str:
    """What a model is for: "encoder", "regression", "nli", "sentiment", "stance" or else "classification"."""
    if not any(name.startswith("DSAFor") for name in config.architectures or ()):
        return "encoder"
    if config.problem_type == "regression":
        return "regression"
    of_pairs = {"nli": nli_data.LABEL_NAMES, "stance": stance_data.LABEL_NAMES}
    of_texts = dict.fromkeys(sst_data.LABEL_NAMES.values(), "sentiment")
    labels = sorted(_labels(config))
    kinds = {names: kind for kind, names in of_pairs.items()} if config.sentences_per_row == 2 else of_texts
    return next((kind for names, kind in kinds.items() if sorted(names) == labels), "classification")


def _told_options(recipe: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Options of a recipe that are not the defaults, or that everybody asks for."""
    defaults = {option.name: option.default for option in fields(TrainingRecipe)}
    defaults["metric_for_best_model"] = Task.metric_for_best_model
    return [
        (name, f"{value:g}" if isinstance(value, float) else str(value))
        for name, value in recipe.items()
        if name in _ALWAYS_TOLD or value != defaults.get(name)
    ]


def _command(words: Sequence[str]) -> str | None:
    """A fenced block with the command, an option a line; None where it was not recorded."""
    if not words:
        return None
    script, *options = map(_without_folders, words)
    module = f"run_glue_style.{Path(script).stem}"
    known = (Path(__file__).parents[1] / f"{Path(script).stem}.py").is_file()
    lines = [f"accelerate launch -q -m {module}" if known else shlex.quote(script)]
    for word in options:
        if word.startswith("--"):
            lines.append(shlex.quote(word))
        else:
            lines[-1] += f" {shlex.quote(word)}"
    text = " \\\n    ".join(lines)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}bash\n{text}\n{fence}"


def _without_folders(word: str) -> str:
    """A word of a command line whose path, alone or behind `--option=`, would tell where files lie on a machine."""
    return re.sub(r"(^|=)(?:~|\.{1,2}(?=/)|/)(?:.*/)?([^/]+)/*\Z", r"\1\2", word, flags=re.S)


def _versions(environment: Mapping[str, Any]) -> str:
    hardware = ("machine", "cpu_capability", "cpu_threads", "gpu")
    return ", ".join(f"{name} {value}" for name, value in environment.items() if name not in hardware and value)


def _hub_id(name: str) -> str | None:
    """The name if it can be that of a repository on the Hub, and is no path here."""
    try:
        validate_repo_id(name)
    except HFValidationError:
        return None
    return None if "/" not in name or Path(name).exists() else name


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _examples(config: DSAConfig, results: Mapping[str, Any]) -> list[str | tuple[str, str]]:
    """Inputs of a model of this kind: ours or, for labels of one's own, some of the run's examples."""
    recorded = [(texts[0], texts[1]) if len(texts) == 2 else texts[0] for texts in results.get("shown_examples", ())]
    return _EXAMPLES.get(_kind(config), recorded)


def _quoted(text: str) -> str:
    """Text as a string of Python and JSON."""
    return json.dumps(text, ensure_ascii=False)


def _plain(text: object) -> str:
    """Text that Markdown shows as it is, on one line, also in a table."""
    words = " ".join(str(text).split())
    return re.sub(r"[\\`*{}\[\]<>|#&~$]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", words)


def _check_results(results: Mapping[str, Any], name: str = "results") -> None:
    missing = [name for name in _NEEDED if results and name not in results]
    if missing:
        raise ValueError(
            f"There is no '{missing[0]}' in {name}, so no script of this package wrote it: take the file out of the "
            "folder for a card without figures."
        )


def _read_results(path: Path) -> dict[str, Any]:
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not JSON ({error}): give an all_results.json.") from error
    if not isinstance(results, dict):
        raise ValueError(f"{path} holds no object: give an all_results.json.")
    _check_results(results, str(path))
    return results


def _load(loader: Any, folder: Path, what: str) -> Any:
    try:
        return loader.from_pretrained(folder)
    except (OSError, ValueError, RuntimeError, SafetensorError, StrictDataclassError) as error:
        reason = " ".join(str(error.__cause__ if isinstance(error, StrictDataclassError) else error).split())
        raise ValueError(f"{folder}: the {what} cannot be loaded ({reason.rstrip('.')}).") from error


def _save(card: ModelCard, path: Path) -> Path:
    """Write a card beside its place and rename it."""
    beside = path.with_name(f".{path.name}")
    card.save(beside)
    beside.replace(path)
    return path


if __name__ == "__main__":
    sys.exit(run_script(main))
