"""`tf.keras.preprocessing.sequence`: lists of different lengths as the rows of one array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.left_out import why

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pad_sequences"]


def pad_sequences(
    sequences: Sequence[Any],
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> Any:
    """An array of a row for each sequence, `maxlen` or as wide as the longest; `value` fills it "pre" or "post", and
    what is too long loses its begin ("pre") or end ("post"). Raises ValueError for another word."""
    for word in (padding, truncating):
        if word not in ("pre", "post"):
            raise ValueError(f'Padding and truncating are "pre" or "post", not "{word}"')
    width = max(map(len, sequences), default=0) if maxlen is None else maxlen
    shape = next((np.shape(each)[1:] for each in sequences if len(each)), ())
    rows = np.full((len(sequences), width, *shape), value, dtype)
    for row, sequence in zip(rows, sequences, strict=True):
        kept = sequence[max(0, len(sequence) - width) :] if truncating == "pre" else sequence[:width]
        if len(kept):
            row[slice(-len(kept), None) if padding == "pre" else slice(len(kept))] = kept
    return rows


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.preprocessing.sequence.{name} is not part of Tenfold: {why('keras.preprocessing')}")
