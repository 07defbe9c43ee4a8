"""`DataDecoder`: what takes the items out of a record. Follows TensorFlow 1.15's contrib/slim (data_decoder.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class DataDecoder(ABC):
    """Takes items, by name, out of serialized data."""

    @abstractmethod
    def decode(self, data: Any, items: Any) -> list[Any]:
        """The tensors of `items`, in that order."""

    @abstractmethod
    def list_items(self) -> list[str]:
        """The names of the items that it knows."""
