"""`DataProvider`: tensors of items by name. Follows TensorFlow 1.15's contrib/slim (data_provider.py)."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class DataProvider(ABC):  # noqa: B024 - as TensorFlow's class, a base without methods to define
    """Holds the tensor of each item, and how many examples there are."""

    def __init__(self, items_to_tensors: Mapping[str, Any], num_samples: int) -> None:
        self._items_to_tensors = items_to_tensors
        self._num_samples = num_samples

    def get(self, items: Any) -> list[Any]:
        """The tensors of the items. Raises ValueError for anything but a list of known items."""
        if not isinstance(items, (list, tuple)):
            raise ValueError("items must be a list or tuple")
        for item in items:
            if item not in self._items_to_tensors:
                raise ValueError(f"Item [{item}] is invalid. Valid entries include: {list(self.list_items())}")
        return [self._items_to_tensors[item] for item in items]

    def list_items(self) -> Iterable[str]:
        """The names of the items."""
        return self._items_to_tensors.keys()

    def num_samples(self) -> int:
        """How many examples the data has."""
        return self._num_samples
