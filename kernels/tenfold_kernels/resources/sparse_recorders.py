"""What an increment of a checkpoint has of ordinary variables: rows by indices that were recorded, or that differ.

A SparseRecorder keeps the indices that DeepRec's graphs record beside each sparse update. SavedRows remembers a
variable's value as the last save had it, for a Saver that asks for the rows that have changed. Used by
cpu/embedding_increments.py. Follows DeepRec's IndicesIncrRecorder.
"""

from __future__ import annotations

import threading
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class SparseRecorder:
    """Thread-safe. Records nothing before `activate`."""

    def __init__(self, *, active: bool = False) -> None:
        self._lock = threading.Lock()
        self._counts: dict[int, int] = {}
        self.active = active

    def activate(self) -> None:
        """Begins anew."""
        with self._lock:
            self._counts = {}
            self.active = True

    def record(self, keys: Array) -> None:
        """These have been updated."""
        if not self.active:
            return
        found, counts = np.unique(keys, return_counts=True)
        with self._lock:
            for key, count in zip(found.tolist(), counts.tolist(), strict=True):
                self._counts[key] = self._counts.get(key, 0) + count

    def keys(self) -> Array:
        """Those recorded so far, sorted, int64."""
        with self._lock:
            return np.array(sorted(self._counts), np.int64)

    def take(self, least: int = 0) -> Array:
        """Those that were recorded at least so often, sorted, int64; forgets all."""
        with self._lock:
            counts, self._counts = self._counts, {}
        return np.array(sorted(key for key, count in counts.items() if count >= least), np.int64)


class SavedRows:
    """A variable's value, and the save that had it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._prefix, self._value = "", np.zeros(0)

    def of(self, prefix: str) -> Array | None:
        """The value that the save of that name had; None where another was the last."""
        with self._lock:
            return self._value if prefix and self._prefix == prefix else None

    def keep(self, prefix: str, value: Array) -> None:
        """The save of that name has `value`, which is copied."""
        with self._lock:
            if self._value.shape == value.shape and self._value.dtype == value.dtype:
                np.copyto(self._value, value)
            else:
                self._value = np.array(value)
            self._prefix = prefix


def changed_rows(before: Array, now: Array) -> Array:
    """The rows [R, …] that are not the same bits, sorted, int64."""
    rows = len(now)
    bits = [np.ascontiguousarray(each).reshape(rows, -1).view(np.uint8) for each in (before, now)]
    return np.flatnonzero((bits[0] != bits[1]).any(axis=1)).astype(np.int64)
