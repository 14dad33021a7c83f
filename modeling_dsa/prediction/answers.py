"""Predictions as JSON lines or as a CSV table, one for each text, in their order."""

import csv
import json
from collections.abc import Callable, Sequence
from typing import Any, TextIO, TypeAlias

from modeling_dsa.batching_dsa import Text, Vectors, replace_surrogates
from modeling_dsa.prediction.logits import ScoreFunction

Answer: TypeAlias = dict[str, Any]


def answers(
    texts: Sequence[Text],
    scores: Vectors,
    class_names: Sequence[str],
    function: ScoreFunction,
    columns: Sequence[str] = ("text", "text_pair"),
) -> list[Answer]:
    """What a classifier says to texts.

    Args:
        texts: Texts or pairs.
        scores: Of each class. (texts, classes)
        class_names: By index.
        function: "softmax" where one class is right, "sigmoid" where several can be, "none" for the numbers of a
            regression.
        columns: What the texts are called, and the second ones of pairs.

    Returns:
        For each text its `text`, and `text_pair` of a pair, with `label` (where one is right) and `probabilities` by
        class; or, of a regression, `prediction`, by name where there are several.
    """
    return [
        _answer(text, row, class_names, function, columns) for text, row in zip(texts, scores.tolist(), strict=True)
    ]


def _answer(
    text: Text, scores: Sequence[float], class_names: Sequence[str], function: ScoreFunction, columns: Sequence[str]
) -> Answer:
    answer: Answer = dict(zip(columns, [text] if isinstance(text, str) else text, strict=False))
    by_class = {name: float(f"{score:.6g}") for name, score in zip(class_names, scores, strict=True)}
    if function == "none":
        return answer | {"prediction": by_class if len(class_names) > 1 else by_class[class_names[0]]}
    if function == "softmax":
        best = max(range(len(scores)), key=scores.__getitem__)  # before rounding makes two equal
        answer["label"] = class_names[best]
    return answer | {"probabilities": by_class}


def json_lines_writer(file: TextIO) -> Callable[[Sequence[Answer]], None]:
    """What writes answers as JSON lines."""

    def write(found: Sequence[Answer]) -> None:
        file.writelines(f"{_json(answer)}\n" for answer in found)
        file.flush()

    return write


def csv_writer(file: TextIO) -> Callable[[Sequence[Answer]], None]:
    """What writes answers as a table with a header, whose columns of labels are called `probabilities.NAME`."""
    writer = csv.writer(file)
    header_written = False

    def write(found: Sequence[Answer]) -> None:
        nonlocal header_written
        rows = [_flat(answer) for answer in found]
        if rows and not header_written:
            writer.writerow(map(replace_surrogates, rows[0]))
            header_written = True
        writer.writerows(
            [replace_surrogates(value) if isinstance(value, str) else value for value in row.values()] for row in rows
        )
        file.flush()

    return write


def _json(answer: Answer) -> str:
    line = json.dumps(answer, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can carry
        return json.dumps(answer)
    return line


def _flat(answer: Answer) -> Answer:
    flat: Answer = {}
    for name, value in answer.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{label}": score for label, score in value.items()}
        else:
            flat[name] = value
    return flat
