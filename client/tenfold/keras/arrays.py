"""What a model is given as arrays: matched with its inputs by name or order, cut into batches, split for validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def in_order(given: Any, names: Sequence[str], what: str) -> list[Any]:
    """One array for each name. `given` is a dictionary, a list, or one array. A vector becomes a column.

    Raises ValueError for another number of arrays, a missing name, or arrays of different lengths.
    """
    if isinstance(given, dict):
        missing = [name for name in names if name not in given]
        if missing:
            raise ValueError(f"No data provided for '{missing[0]}'. Need data for each key in: {list(names)}")
        listed = [given[name] for name in names]
    else:
        listed = list(given) if isinstance(given, (list, tuple)) and len(names) > 1 else [given]
        if isinstance(given, (list, tuple)) and len(names) == 1 and len(given) == 1 and np.ndim(given[0]) > 0:
            listed = list(given)
    if len(listed) != len(names):
        raise ValueError(f"The model expects {len(names)} {what} arrays, but got {len(listed)}")
    arrays = [np.asarray(each) for each in listed]
    arrays = [each[:, np.newaxis] if each.ndim == 1 else each for each in arrays]
    if len({len(each) for each in arrays}) > 1:
        raise ValueError(f"All {what} arrays must have as many examples, but have {[len(each) for each in arrays]}")
    return arrays


def split(arrays: Sequence[Any], fraction: float) -> tuple[list[Any], list[Any]]:
    """The first examples, and the last `fraction` of them. Raises ValueError for a fraction outside of [0, 1)."""
    if not 0 <= fraction < 1:
        raise ValueError(f"`validation_split` must be at least 0 and below 1, not {fraction}")
    at = int(len(arrays[0]) * (1 - fraction))
    return [each[:at] for each in arrays], [each[at:] for each in arrays]


def batches(arrays: Sequence[Any], size: int, shuffle: bool = False) -> Iterator[list[Any]]:
    """The examples in batches, the last one maybe smaller; in a new order with `shuffle`, by NumPy's generator."""
    order = np.arange(len(arrays[0]))
    if shuffle:
        np.random.shuffle(order)  # as in Keras, np.random.seed settles it
    for begin in range(0, len(order), size):
        chosen = order[begin : begin + size]
        yield [each[chosen] for each in arrays]
