"""The values that generated code and the executors have in common: the dead one, and those that nobody may write to."""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core import errors


class _Dead:
    """The one value of a dead edge."""

    def __repr__(self) -> str:
        return "DEAD"


DEAD = _Dead()


def read_only(value: Any) -> Any:
    """`value` so that it cannot be written to; a view where it is writable, itself otherwise."""
    if type(value) is np.ndarray and value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


def dead_fetch(key: str) -> errors.OpError:
    """A fetch from a branch that was not taken."""
    return errors.invalid_argument(f"The tensor returned for {key} was not valid.")
