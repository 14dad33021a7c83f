"""Profiles of two heads over two iterations, made up, for the tests of their table and picture."""

import numpy as np

from modeling_dsa.explanation.head_profiles import BINS, HeadProfiles

PROFILES = HeadProfiles(
    sentences=5,
    entropy=np.array([[1.0, 1.0], [0.75, 0.5]]),
    positions=np.array([[1.0] * (BINS - 1) + [np.nan], [2.0] * (BINS - 1) + [np.nan]]),
    divergence=np.array([[0, 0.0028], [0.0028, 0]]),
    words=[[("man", 2.0, 3), ("a", 0.5, 4)], [("a", 1.5, 4), ("man", 1.0, 3)]],
    word_classes=[[("NN", 1.2, 9), ("DET", 0.8, 4)], [("DET", 1.5, 4), ("NN", 0.9, 9)]],
)
