"""Large variables copied in pieces: what is copied is of the first moment, and updates of rows move no variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources import kept_rows
from tenfold_kernels.resources.state import Variable

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, WIDTH = 8192, 64


def variable(rows: int = ROWS, width: int = WIDTH) -> Variable:
    made = Variable("v", dtypes.float32, TensorShape([rows, width]))
    made.assign(np.arange(rows * width, dtype=np.float32).reshape(rows, width))
    return made


def where(of: Variable) -> int:
    return int(of.value.__array_interface__["data"][0])


def update(of: Variable, rows: Any, exclusive: bool) -> None:
    indices = np.array(rows, np.int32)
    with of.lock:
        of.buffer(exclusive=exclusive, rows=indices)[indices] = -1


@pytest.mark.parametrize("exclusive", [False, True])
def test_updates_of_rows_move_nothing(monkeypatch: pytest.MonkeyPatch, exclusive: bool) -> None:
    """Rows that change before their piece is copied, in it and after it; of either kind of variable."""
    of = variable()
    before, place = of.value.copy(), where(of)
    with of.lock:
        reading = of.begin_reading()
    assert reading is not None
    update(of, [[3, ROWS - 1], [3, 4000]], exclusive)
    order = iter([[0, 5], [ROWS - 1, 1024]])

    def change(pause: float) -> None:
        rows = next(order, None)
        if rows is not None:
            update(of, rows, exclusive)

    monkeypatch.setattr(kept_rows.time, "sleep", change)
    np.testing.assert_array_equal(reading.copy(), before)
    assert next(order, None) is None
    assert where(of) == place
    changed = [0, 3, 5, 1024, 4000, ROWS - 1]
    np.testing.assert_array_equal(np.flatnonzero((of.value == -1).all(axis=1)), changed)


def whole(of: Variable) -> None:
    with of.lock:
        of.buffer()[...] = -1


@pytest.mark.parametrize("change", [whole, lambda of: of.assign(np.full((ROWS, WIDTH), -1, np.float32))])
def test_others_move_the_variable(change: Callable[[Variable], None]) -> None:
    of = variable()
    before, place = of.value.copy(), where(of)
    with of.lock:
        reading = of.begin_reading()
    assert reading is not None
    update(of, [7], exclusive=False)
    change(of)
    assert where(of) != place
    moved = where(of)
    change(of)
    assert where(of) == moved, "once"
    np.testing.assert_array_equal(reading.copy(), before)
    assert (of.value == -1).all()


def test_nothing_is_kept_for_who_is_done_or_gone() -> None:
    of = variable()
    place = where(of)
    for leave in (lambda reading: reading.copy(), lambda reading: None):
        with of.lock:
            reading = of.begin_reading()
            assert of.begin_reading() is None, "one at a time"
        leave(reading)
        done = reading.is_done
        if not done:
            del reading
        whole(of)
        assert where(of) == place, done


@pytest.mark.parametrize(("rows", "width"), [(16, 64), (4, 1 << 18)])
def test_small_values_and_wide_rows_are_not(rows: int, width: int) -> None:
    of = variable(rows, width)
    with of.lock:
        assert of.begin_reading() is None
