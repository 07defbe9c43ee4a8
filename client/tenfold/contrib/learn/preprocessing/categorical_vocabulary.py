"""A vocabulary: category → number, from 1 on; 0 is what is unknown.

The attributes have TensorFlow's names, because vocabularies are pickled. Follows TensorFlow 1.15's
`contrib/learn/python/learn/preprocessing/categorical_vocabulary.py`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any


class CategoricalVocabulary:
    """Numbers categories in the order in which they come, until it is frozen."""

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._support_reverse = support_reverse
        if support_reverse:
            self._reverse_mapping: list[Any] = [unknown_token]
        self._freq: dict[Any, int] = defaultdict(int)
        self._freeze = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """From now on new categories are unknown."""
        self._freeze = freeze

    def get(self, category: Any) -> int:
        """The number of a category, a new one if it is new."""
        if category not in self._mapping:
            if self._freeze:
                return 0
            self._mapping[category] = len(self._mapping)
            if self._support_reverse:
                self._reverse_mapping.append(category)
        return self._mapping[category]

    def add(self, category: Any, count: int = 1) -> None:
        """Counts a category."""
        if self.get(category) > 0:
            self._freq[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Numbers those anew that were counted more often than `min_frequency`; the most frequent one comes first.

        With `max_frequency` above 0 those that were counted so often, or more, are dropped too.
        """
        by_name = sorted(self._freq.items(), key=lambda each: (isinstance(each[0], str), each[0]))
        ordered = sorted(by_name, key=lambda each: each[1], reverse=True)
        kept = [
            (category, count)
            for category, count in ordered
            if count > min_frequency and not (max_frequency > 0 and count >= max_frequency)
        ]
        self._mapping = {self._unknown_token: 0, **{category: index for index, (category, _) in enumerate(kept, 1)}}
        if self._support_reverse:
            self._reverse_mapping = list(self._mapping)
        self._freq = dict(ordered[: len(kept)])

    def reverse(self, class_id: int) -> Any:
        """The category of a number. Raises ValueError for a vocabulary that was made without reverse."""
        if not self._support_reverse:
            raise ValueError("This vocabulary wasn't initialized with support_reverse to support reverse() function.")
        return self._reverse_mapping[class_id]
