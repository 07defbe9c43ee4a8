"""Values for tests that call kernels by the fixture `ops`, and the refusal of such a call."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors


def filled(shape: tuple[int, ...], dtype: Any = np.float32, start: int = 1) -> np.ndarray:
    """Different elements, from `start` on; texts of them for objects."""
    numbers = np.arange(start, start + int(np.prod(shape)))
    if dtype is object:
        made = np.empty(shape, object)
        made.reshape(-1)[:] = [b"%d" % number for number in numbers]
        return made
    return numbers.astype(dtype).reshape(shape)


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def frozen(value: Any) -> np.ndarray:
    """Numbers that nobody may write to, as those of constants."""
    array = np.array(value, np.int32)
    array.flags.writeable = False
    return array


def refused(ops: Any, op: str, inputs: list[Any], text: str, **attrs: Any) -> None:
    """The call raises InvalidArgumentError with a message that begins with `text`."""
    with pytest.raises(errors.InvalidArgumentError, match=f"^{re.escape(text)}"):
        ops.run(op, inputs, **attrs)
