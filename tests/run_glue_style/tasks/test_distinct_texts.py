"""The texts of data, each distinct one once."""

from datasets import Dataset

from run_glue_style.tasks.distinct_texts import distinct_texts


def test_each_distinct_text_is_held_once() -> None:
    splits = {
        "train": {"premise": ["a", "b", "a"], "hypothesis": ["c", "a", "c"]},
        "test": {"premise": ["d"], "hypothesis": ["b"]},
    }
    found = distinct_texts(
        {name: Dataset.from_dict(split) for name, split in splits.items()}, ("premise", "hypothesis")
    )
    assert found.texts == ["a", "b", "c", "d"]
    assert {name: {key: list(column) for key, column in split.items()} for name, split in found.indices.items()} == {
        "train": {"premise": [0, 1, 0], "hypothesis": [2, 0, 2]},
        "test": {"premise": [3], "hypothesis": [1]},
    }
    assert found.all() == ["a", "b", "a", "c", "a", "c", "d", "b"]
