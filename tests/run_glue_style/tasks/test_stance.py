"""The Fake News Challenge's files as splits, and what is held out of them."""

import logging
import os
from collections import Counter
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Dataset, DatasetDict
from small_stances import NAMES, TOPICS, make_tables, write_stances, write_table

from run_glue_style.reporting.card.known_data import joined_pairs
from run_glue_style.tasks.stance import CLASS_NAMES, STANCE, StanceFiles, ValidationBy, hold_out_topics, load_stances

FNC1 = Path(__file__).parents[4] / "shared" / "data" / "fnc1"
UNRELATED = CLASS_NAMES.index("unrelated")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_stances(tmp_path)


def load(folder: Path, share: float = 0.2, by: ValidationBy = "topics") -> DatasetDict:
    train, test = (
        StanceFiles(folder / NAMES[f"{part}_stances"], folder / NAMES[f"{part}_bodies"]) for part in ("train", "test")
    )
    return load_stances(train, test, share, by)


def rows_of(stances: list[dict[str, Any]], bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    texts = {row["Body ID"]: row["articleBody"] for row in bodies}
    return [
        {
            "headline": row["Headline"],
            "body": texts[row["Body ID"]],
            "body_id": row["Body ID"],
            "label": CLASS_NAMES.index(row["Stance"]),
        }
        for row in stances
    ]


def as_set(rows: Any) -> set[tuple[str, str]]:
    return {(row["headline"], row["body"]) for row in rows}


def counts(split: Dataset) -> list[int]:
    found = Counter(split["label"][:])
    return [found[label] for label in range(4)]


def test_test_split_is_the_whole_file_in_its_order(folder: Path) -> None:
    expected = rows_of(*make_tables(("pianos", "rivers", "clouds"), "test"))
    loaded = load(folder)["test"]
    assert loaded.to_list() == expected
    assert '\n\n"It is pianos", he said,\r\n0 times' in loaded[0]["body"]
    assert loaded.features["label"].names == list(CLASS_NAMES)


def test_no_text_of_the_validation_split_is_in_the_training_split(folder: Path) -> None:
    splits = load(folder)
    for column in ("headline", "body", "body_id"):
        assert not set(splits["train"][column]) & set(splits["validation"][column])
    texts = " ".join(splits["validation"]["headline"])
    assert sum(topic in texts for topic in TOPICS) == 2  # of ten


def test_training_pairs_are_all_original_pairs_of_the_other_topics(folder: Path) -> None:
    splits, original = load(folder), rows_of(*make_tables(TOPICS, "train"))
    held_out = set(splits["validation"]["headline"])
    bodies = set(splits["validation"]["body"])
    expected = [row for row in original if row["headline"] not in held_out and row["body"] not in bodies]
    assert splits["train"].to_list() == expected
    assert splits["train"].num_rows == 8 * (12 + 4 * 7)


def test_related_validation_pairs_are_original_and_the_others_join_two_topics(folder: Path) -> None:
    splits, original = load(folder), rows_of(*make_tables(TOPICS, "train"))
    validation = splits["validation"].to_list()
    related = [row for row in validation if row["label"] != UNRELATED]
    assert as_set(related) <= as_set(original)
    assert len(related) == 2 * 12
    for row in validation:
        assert (row["headline"].split()[0] in row["body"]) == (row["label"] != UNRELATED)
    # 8 of 2 x 4 bodies' unrelated pairs lie inside; without the joined ones the class would be that rare.
    assert counts(splits["validation"])[UNRELATED] > 24
    share = counts(splits["validation"])[UNRELATED] / len(validation)
    assert share == pytest.approx(0.75, abs=0.15)


def test_held_out_bodies_keep_all_their_real_pairs(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    splits, original = load(folder, by="bodies"), rows_of(*make_tables(TOPICS, "train"))
    held_out = set(splits["validation"]["body"])
    assert len(held_out) == 8  # of 40
    assert splits["validation"].to_list() == [row for row in original if row["body"] in held_out]
    assert splits["train"].to_list() == [row for row in original if row["body"] not in held_out]
    assert "Validation holds out 8 of 40 bodies with all their pairs." in caplog.text
    assert "30 of its 30 headlines are in the training split too." in caplog.text
    with pytest.raises(ValueError, match=r"A share of 0\.01 of 40 bodies is none: give a larger --validation_share"):
        load(folder, 0.01, "bodies")


def test_the_nearest_whole_part_of_the_topics_is_held_out(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    load(folder, 0.4)  # a third is nearer than a half
    assert any(f"{count} of 10 topics" in caplog.text for count in (3, 4))


def test_split_depends_on_the_pairs_alone(folder: Path) -> None:
    first, again = load(folder), load(folder)
    for name in first:
        assert first[name].to_list() == again[name].to_list()


def test_counts_are_logged(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    validation = load(folder)["validation"]
    (line,) = [message for message in caplog.messages if message.startswith("Validation holds out")]
    assert "2 of 10 topics. Training: 24 agree, 24 disagree, 48 discuss, 224 unrelated." in line
    assert f"Validation: 6 agree, 6 disagree, 12 discuss, {counts(validation)[UNRELATED]} unrelated;" in line
    assert "of the 128 unrelated pairs that have one side in each split" in line  # 2 x 8 topics, 4 bodies, both ways


def test_one_headline_in_capitals_and_one_body_under_two_numbers_are_of_one_topic() -> None:
    texts = {"headline": [], "body": [], "body_id": [], "label": []}  # type: ignore[var-annotated]
    for topic in range(4):
        for number in range(3):
            # Headline 0 meets body 0 only, HEADLINE 0 meets bodies 1 and 2, and so on.
            headline = f"headline {topic}" if number == 0 else f"HEADLINE  {topic}"
            row = {"headline": headline, "body": f"body {topic} {number}", "body_id": f"{topic}{number}", "label": 0}
            for key, value in row.items():
                texts[key].append(value)
    training, validation = hold_out_topics(Dataset.from_dict(texts), 0.25)
    assert len(validation) == 3
    assert len({headline.lower().split()[1] for headline in validation["headline"]}) == 1
    assert len(training) == 9


def test_reading_again_takes_the_cache_until_a_file_changes(folder: Path, cache: Path) -> None:
    load(folder)
    written = {path: path.stat().st_mtime_ns for path in cache.rglob("*.arrow")}
    load(folder)
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.arrow")} == written
    bodies = folder / NAMES["test_bodies"]
    text = bodies.read_text("utf-8").replace("pianos", "organs")
    bodies.write_text(text, "utf-8", newline="")
    os.utime(bodies, ns=(1, 1))
    assert "organs" in load(folder)["test"][0]["body"]


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("train_stances", "Rome train,0,agree", "Rome train,77,agree", r"line 2: there is no body .77. in .*bodies"),
        ("train_stances", "Rome train,0,agree", "Rome train,0,agrees", r"line 2: the label 'agrees' is unknown; "),
        ("test_stances", "Headline,", "Title,", r"has no column 'Headline': it has Title, Body ID, Stance"),
        ("test_bodies", "articleBody", "text", r"has no column 'articleBody': it has Body ID, text"),
        ("train_stances", "bees seen in Rome train,0", " ,0", r"line 2: the Headline is ' ', not a text"),
        ("train_bodies", "\r\n1,", "\r\n0,", r"line 9: the body '0' stands there again with another text"),
    ],
)  # fmt: skip
def test_mistake_in_a_file_is_one_sentence(folder: Path, name: str, old: str, new: str, message: str) -> None:
    path = folder / NAMES[name]
    text = path.read_bytes().decode()
    assert old in text
    path.write_bytes(text.replace(old, new, 1).encode())
    with pytest.raises(ValueError, match=f"{NAMES[name]}.*{message}") as caught:
        load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / NAMES[name]).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{NAMES[name]}.*no such file"):
        load(folder)


def test_the_same_body_twice_is_no_mistake(folder: Path) -> None:
    path = folder / NAMES["test_bodies"]
    _, bodies = make_tables(("pianos", "rivers", "clouds"), "test")
    before = load(folder)["test"].to_list()
    write_table(path, [*bodies, bodies[0]])
    assert load(folder)["test"].to_list() == before


@pytest.mark.slow
@pytest.mark.skipif(not FNC1.is_dir(), reason="the competition's files are not here")
def test_original_files(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    splits = load(FNC1, 0.1)
    # What results/fnc1, docs/pages/papers.md and the cards say of the validation pairs.
    told = joined_pairs({"data": {"validation": {"sha256": STANCE.fingerprint(splits["validation"])}}})
    assert told is not None
    assert f"; {told.joined:,} of these are made of the {told.dropped:,} unrelated pairs" in caplog.text
    assert counts(splits["test"]) == [1903, 697, 4464, 18349]
    headlines = [set(splits[name]["headline"]) for name in ("train", "validation")]
    bodies = [set(splits[name]["body"]) for name in ("train", "validation")]
    assert not headlines[0] & headlines[1]
    assert not bodies[0] & bodies[1]
    together = [sum(both) for both in zip(counts(splits["train"]), counts(splits["validation"]), strict=True)]
    assert together[:3] == [3678, 840, 8909]  # no related pair is lost
    held_out, full = counts(splits["validation"]), [3678, 840, 8909, 36545]
    for found, of in zip(held_out, full, strict=True):
        assert found / sum(held_out) == pytest.approx(of / sum(full), abs=0.02)
    assert sum(held_out[:3]) / sum(full[:3]) == pytest.approx(0.1, abs=0.01)
