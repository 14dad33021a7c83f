"""How frequent the classes are in each file."""

import numpy as np
from datasets import Dataset

from run_glue_style.tasks.class_shares import class_shares


def test_each_example_has_the_shares_of_its_file() -> None:
    shares = class_shares(Dataset.from_dict({"label": [0, 0, 0, 1, 1, 2], "file": [0, 0, 0, 0, 1, 1]}), 3)
    first, second = np.array([3, 1, 1]) / 5, np.array([1, 1, 1]) / 3  # a class that is not there counts as one example
    np.testing.assert_allclose(np.exp(shares.of_examples()), [first] * 4 + [second] * 2, rtol=1e-6)
    np.testing.assert_allclose(np.exp(shares.chosen(np.array([5, 0])).of_examples()), [second, first], rtol=1e-6)


def test_examples_of_one_file_need_no_column() -> None:
    shares = class_shares(Dataset.from_dict({"label": [0, 1, 1, 1]}), 2)
    np.testing.assert_allclose(np.exp(shares.of_examples()), [[0.25, 0.75]] * 4, rtol=1e-6)
