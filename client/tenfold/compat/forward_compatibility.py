"""`tf.compat.forward_compatible` and its like: switches of TensorFlow by date, for graphs that older servers read.

What Tenfold writes has no dates, so nothing is held back. As TF 1.15's python/compat/compat.py.
"""

from __future__ import annotations

import contextlib
import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["forward_compatibility_horizon", "forward_compatible"]

#: The day of TensorFlow 1.15's own horizon.
_DEFAULT = datetime.date(2019, 9, 16)
_horizon = _DEFAULT


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether a change of that day may be used: whether it is before the horizon."""
    return _horizon > datetime.date(year, month, day)


@contextlib.contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Iterator[None]:
    """Sets the horizon to that day in the block."""
    global _horizon
    before, _horizon = _horizon, datetime.date(year, month, day)
    try:
        yield
    finally:
        _horizon = before
