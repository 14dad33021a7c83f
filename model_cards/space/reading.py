"""Reading a text with a model of the DSA family: its classes, and the attention over its words."""

from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import cast

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.configuration_dsa import DSAConfig
from modeling_dsa.explanation.attention import LabelScores, TextAttention, read_attention
from modeling_dsa.files.loading import load_model_and_tokenizer
from modeling_dsa.files.model_folder import CONFIG, holds_model, read_config
from modeling_dsa.modeling_dsa import DSAForSequenceClassification
from modeling_dsa.prediction.answers import answers, csv_writer
from modeling_dsa.prediction.logits import score_function
from modeling_dsa.prediction.scores import label_scores
from modeling_dsa.prediction.texts import open_texts
from modeling_dsa.unknown_texts_dsa import unknown_texts

LONGEST_TEXT = 2_000  # characters of a sentence that are read: a page is not for documents
MOST_ROWS = 1_000  # of a table


class CannotRead(ValueError):  # noqa: N818  (it is a sentence for whoever typed, not a fault)
    """What was typed is nothing that the model could judge; the message says what to do."""


@dataclass(frozen=True)
class Reading:
    """What a model made of a text.

    Attributes:
        classes: the probability of each class, or a regression's number.
        sentences: the sentence or the pair by name, with its attention.
        notes: what one must know about them, in sentences.
    """

    classes: dict[str, float] | float
    sentences: dict[str, TextAttention]
    notes: list[str]

    @property
    def iterations(self) -> int:
        """Attentions one after the other, 0 where there is none."""
        return len(self._first.weights)

    @property
    def heads(self) -> int:
        """Attentions side by side, 0 where there is none."""
        return int(self._first.weights.shape[1])

    @property
    def _first(self) -> TextAttention:
        return next(iter(self.sentences.values()))


def find_models(folder: Path) -> list[Path]:
    """The folders in `folder` that hold a classifier of the DSA family, in the order of their names."""
    folders = [path.parent for path in sorted(folder.glob(f"*/{CONFIG}"))]
    return [folder for folder in folders if holds_model(folder) and _is_classifier(folder)]


def _is_classifier(source: str | Path) -> bool:
    # Nothing else of a config is looked at here, as a broken one is told where its model is chosen.
    return DSAConfig(architectures=read_config(source).get("architectures")).is_classifier


@cache
def load_model(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a classifier and its tokenizer, once.

    Args:
        name: a folder, or an id of the Hub.

    Raises:
        OSError: it is not there, or not complete.
        ValueError: it is no trained classifier of the DSA family.
    """
    if not _is_classifier(name):
        raise ValueError("It is an encoder without a trained classifier.")
    return load_model_and_tokenizer(name)


def reads_pairs(model: PreTrainedModel) -> bool:
    """Whether a model judges a premise and a hypothesis, and not one sentence."""
    return bool(model.config.sentences_per_example == 2)


def read(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, first: str, second: str) -> Reading:
    """Classify a pair, or `first` alone where the model reads single sentences.

    Raises:
        CannotRead: a sentence is empty, or the model knows none of its words.
    """
    texts = {"Premise": first, "Hypothesis": second} if reads_pairs(model) else {"Sentence": first}
    notes = []
    for name, text in texts.items():
        if not isinstance(text, str):  # a client of the Space's API may send anything
            raise CannotRead(f"The {name.lower()} is no text: type one.")
        if len(text) > LONGEST_TEXT:
            # Without the word that is cut in two; of blanks nothing stays.
            texts[name] = (text[:LONGEST_TEXT].rsplit(maxsplit=1) or [""])[0]
            notes.append(f"Only the first {LONGEST_TEXT:,} characters of the {name.lower()} are read.")
    attentions, scores = read_attention(model, tokenizer, *texts.values())
    found = dict(zip(texts, attentions, strict=True))
    empty = [name.lower() for name, attention in found.items() if not attention.offsets]
    if empty:
        raise CannotRead(f"Type a {' and a '.join(empty)}, or choose an example.")
    for name, attention in found.items():
        if not any(attention.known):
            raise CannotRead(f"This model knows none of the words of the {name.lower()}: try other words.")
        if attention.left_out:
            notes.append(f"This model reads only the first {len(attention.offsets)} words of the {name.lower()}.")
    if not len(attentions[0].weights):
        notes.append(f"This model has no attention to show: pooling '{model.config.pooling}' does not weigh the words.")
    return Reading(_classes(cast(LabelScores, scores)), found, notes)


def classify_table(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, table: Path, output: Path) -> str:
    """Classify every row of a CSV and write them as a CSV with the labels and their probabilities.

    The columns of texts keep their names.

    Args:
        model: What `load_model` gives.
        tokenizer: Its tokenizer.
        table: With a column `text`, or of pairs `premise` and `hypothesis`.
        output: Where to write.

    Returns:
        What to say: how many rows there were, and of how many the model knows no word.

    Raises:
        CannotRead: the file is broken, has too many rows or no such columns, or a text is empty or too long.
    """
    columns = ("premise", "hypothesis") if reads_pairs(model) else ("text",)
    try:
        texts = list(islice(open_texts(str(table), None, columns, pairs=len(columns) == 2), MOST_ROWS + 1))
    except (ValueError, OSError) as error:
        raise CannotRead(str(error).replace(str(table), table.name)) from error
    if len(texts) > MOST_ROWS:
        raise CannotRead(f"The file has more than {MOST_ROWS:,} rows: send a part of it.")
    for number, text in enumerate(texts, start=1):
        if max(map(len, [text] if isinstance(text, str) else text)) > LONGEST_TEXT:
            raise CannotRead(f"Row {number} has a text of more than {LONGEST_TEXT:,} characters: shorten it.")
    scores = label_scores(cast(DSAForSequenceClassification, model), tokenizer, texts)
    function = score_function(cast(DSAConfig, model.config))
    with output.open("w", encoding="utf-8", newline="") as file:
        csv_writer(file)(answers(texts, scores, model.config.class_names, function, columns))
    unknown = unknown_texts(tokenizer, texts)
    told = f" It knows no word of {len(unknown):,} of them, such as row {unknown[0] + 1}." if unknown else ""
    return f"{len(texts):,} rows are classified.{told}"


def _classes(scores: LabelScores) -> dict[str, float] | float:
    if scores.function == "none" and len(scores.values) == 1:
        return float(scores.values[0])
    return dict(zip(scores.class_names, scores.values.tolist(), strict=True))
