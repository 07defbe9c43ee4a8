"""What an increment has of a variable goes to its rows; of another shape it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.checkpoint.increments import put_rows


class Whole:
    """An increment that has a variable whole."""

    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        self._value = value

    def contains(self, name: str) -> bool:
        return name == "v"

    def dtype_and_shape(self, name: str) -> tuple[Any, tuple[int, ...]]:
        return dtypes.float32, self._value.shape

    def slices(self, name: str) -> list[Any]:
        return []

    def names(self) -> list[str]:
        return ["v"]

    def read_slice(self, name: str, part: Any) -> np.ndarray[Any, Any]:
        return self._value


@pytest.mark.parametrize("shape", [(2, 3, 4), (6,)])
def test_rows_of_another_rank_are_refused(shape: tuple[int, ...]) -> None:
    reader: Any = Whole(np.ones(shape, np.float32))
    value = np.zeros((2, 3), np.float32)
    with pytest.raises(errors.InvalidArgumentError, match="v"):
        put_rows(reader, "v", 0, value)
    assert not value.any()
