"""run_glue_style.tasks.validation_split: what is held out, and what stays."""

from collections import Counter

import pytest
from datasets import ClassLabel, Dataset, Features, Value
from hypothesis import given, settings
from hypothesis import strategies as st

from run_glue_style.tasks.validation_split import hold_out


def examples(labels: list[int]) -> Dataset:
    features = Features({"text": Value("string"), "label": ClassLabel(names=["a", "b", "c", "d"])})
    return Dataset.from_dict({"text": [str(n) for n in range(len(labels))], "label": labels}, features=features)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.floats(0.05, 0.5))
def test_classes_are_held_out_by_their_share_and_none_altogether(labels: list[int], size: float) -> None:
    data = examples(labels)
    counts = Counter(labels)
    train, validation = hold_out(data, size) if len(labels) > len(counts) / (1 - size) + 1 else (data, data.select([]))
    assert sorted([*map(int, train["text"]), *map(int, validation["text"])]) == list(range(len(labels)))
    assert set(train["label"]) == set(labels)
    held_out = Counter(validation["label"])
    share = len(validation) / len(labels)
    for label, count in counts.items():
        assert abs(held_out[label] - share * count) <= 1 + share * 4


def test_the_same_examples_are_held_out_at_every_call_and_keep_their_order() -> None:
    data = examples([0, 1] * 50)
    first, again = hold_out(data, 0.1), hold_out(data, 10)
    assert [split["text"][:] for split in first] == [split["text"][:] for split in again]
    assert [len(split) for split in first] == [90, 10]
    for split in first:
        assert split["text"][:] == sorted(split["text"], key=int)


def test_numbers_are_held_out_at_random() -> None:
    data = Dataset.from_dict({"text": ["x"] * 40, "label": [float(n) for n in range(40)]})
    train, validation = hold_out(data, 0.25)
    assert (len(train), len(validation)) == (30, 10)
    assert min(validation["label"]) < 15 < 25 < max(validation["label"])


@pytest.mark.parametrize("size", [0.9, 100])
def test_every_class_needs_an_example_for_training(size: float) -> None:
    with pytest.raises(ValueError, match=f"validation_split {size:g} would hold out .* of 4 examples, and each class"):
        hold_out(examples([0, 0, 1, 1]), size)


def test_of_numbers_the_model_needs_one_for_training() -> None:
    with pytest.raises(ValueError, match="would hold out 2 of 2 examples, and the model needs one for training"):
        hold_out(Dataset.from_dict({"label": [0.5, 1.5]}), 2)
