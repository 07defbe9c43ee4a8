"""A variable's value is written where it is while nothing reads it: told by counts of references on each Python."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.variable_memory import LENDABLE
from tenfold_kernels.resources.state import Variable

SIZES = [1, LENDABLE // 4]


@pytest.fixture(params=SIZES, ids=["small", "lendable"])
def variable(request: pytest.FixtureRequest) -> Variable:
    made = Variable("v", dtypes.float32, TensorShape([request.param]))
    made.assign(np.ones(request.param, np.float32))
    return made


def where(variable: Variable) -> int:
    """The address of the value, without a reader that stays."""
    return int(variable.value.__array_interface__["data"][0])


def add(variable: Variable) -> None:
    with variable.lock:
        buffer = variable.buffer(exclusive=True)
        buffer += 1


def test_without_a_reader_the_value_stays_where_it_is(variable: Variable) -> None:
    before = where(variable)
    # often enough for the interpreter to have adapted its code
    for _ in range(1000):
        add(variable)
    assert where(variable) == before
    assert variable.value.max() == 1001


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(lambda value: value, id="the value"),
        pytest.param(lambda value: value[:1], id="a view of it"),
        pytest.param(lambda value: value.reshape(1, -1).view(np.int32), id="a view of another type"),
    ],
)
def test_a_reader_keeps_its_snapshot_and_is_forgotten_with_it(variable: Variable, take) -> None:
    held = take(variable.snapshot())
    kept, before = held.copy(), where(variable)
    add(variable)
    np.testing.assert_array_equal(held, kept)
    after = where(variable)
    assert after != before
    assert variable.value.max() == 2
    del held
    add(variable)
    assert where(variable) == after
