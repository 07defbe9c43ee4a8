"""Private functions of TensorFlow's rnn module that programs call."""

from __future__ import annotations

from typing import Any

from tenfold.ops import array


def _transpose_batch_time(x: Any) -> Any:
    """`x` with its first two dimensions exchanged, by its static shape too; unchanged if it has fewer."""
    rank = x.shape.ndims
    if rank is not None and rank < 2:
        return x
    if rank is None:
        from tenfold.ops.math import range as range_

        return array.transpose(x, array.concat([[1, 0], range_(2, array.rank(x))], 0))
    return array.transpose(x, [1, 0, *range(2, rank)])
