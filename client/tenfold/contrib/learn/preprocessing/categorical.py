"""Columns of categories as numbers.

Follows TensorFlow 1.15's `contrib/learn/python/learn/preprocessing/categorical.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.contrib.learn.data_feeder import setup_processor_data_feeder
from tenfold.contrib.learn.preprocessing.categorical_vocabulary import CategoricalVocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator


def _missing(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


class CategoricalProcessor:
    """A vocabulary for each column, or one for all with `share`. Missing values (NaN) are 0."""

    def __init__(self, min_frequency: int = 0, share: bool = False, vocabularies: Any = None) -> None:
        self.min_frequency = min_frequency
        self.share = share
        self.vocabularies_: Any = vocabularies

    def freeze(self, freeze: bool = True) -> None:
        """From now on new categories are unknown."""
        for vocabulary in self.vocabularies_:
            vocabulary.freeze(freeze)

    def fit(self, x: Any, unused_y: Any = None) -> CategoricalProcessor:
        """Learns the categories of rows. Returns itself."""
        for row in setup_processor_data_feeder(x):
            if self.vocabularies_ is None:
                shared = CategoricalVocabulary()
                self.vocabularies_ = [shared if self.share else CategoricalVocabulary() for _ in row]
            for vocabulary, value in zip(self.vocabularies_, row, strict=False):
                if not _missing(value):
                    vocabulary.add(value)
        if self.min_frequency > 0:
            for vocabulary in self.vocabularies_:
                vocabulary.trim(self.min_frequency)
        self.freeze()
        return self

    def fit_transform(self, x: Any, unused_y: Any = None) -> Iterator[Any]:
        """`fit`, then `transform`."""
        self.fit(x)
        return self.transform(x)

    def transform(self, x: Any) -> Iterator[Any]:
        """Yields int64 arrays, one for each row."""
        self.freeze()
        for row in setup_processor_data_feeder(x):
            pairs = zip(self.vocabularies_, row, strict=False)
            yield np.array([0 if _missing(value) else each.get(value) for each, value in pairs], dtype=np.int64)
