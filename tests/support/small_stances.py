"""Made-up files in the format of the Fake News Challenge, for the tests of its data and its script."""

import csv
from pathlib import Path
from typing import Any

TOPICS = ("bees", "comets", "robots", "storms", "whales", "bridges", "violins", "tulips", "lions", "maps")
STANCES = ("agree", "disagree", "discuss", "discuss")
VERBS = {"agree": "confirmed", "disagree": "denied", "discuss": "reported"}
NAMES = {
    "train_stances": "train_stances.csv",
    "train_bodies": "train_bodies.csv",
    "test_stances": "competition_test_stances.csv",
    "test_bodies": "competition_test_bodies.csv",
}


def write_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def make_tables(topics: tuple[str, ...], seed: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Stances and bodies: each topic has three headlines and four bodies of several lines, and meets other topics."""
    stances, bodies = [], []
    headlines = {topic: [f"{topic} seen in {place} {seed}" for place in ("Rome", "Oslo", "Lima")] for topic in topics}
    for index, topic in enumerate(topics):
        for number, stance in enumerate(STANCES):
            body_id = str(10 * index + number)
            text = f'The mayor {VERBS[stance]} it.\n\n"It is {topic}", he said,\r\n{number} times in {seed}.'
            bodies.append({"Body ID": body_id, "articleBody": text})
            for headline in headlines[topic]:
                stances.append({"Headline": headline, "Body ID": body_id, "Stance": stance})
            for step in range(1, len(topics)):
                other = headlines[topics[(index + step) % len(topics)]][(number + step) % 3]
                stances.append({"Headline": other, "Body ID": body_id, "Stance": "unrelated"})
    return stances, bodies


def write_stances(folder: Path) -> Path:
    """The four files under their original names."""
    for part, topics in (("train", TOPICS), ("test", ("pianos", "rivers", "clouds"))):
        stances, bodies = make_tables(topics, part)
        write_table(folder / NAMES[f"{part}_stances"], stances)
        write_table(folder / NAMES[f"{part}_bodies"], bodies)
    return folder
