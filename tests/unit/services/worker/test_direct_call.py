"""A straight program as a call: what goes in, what comes out, who owns it."""

from __future__ import annotations

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compiled, numbers, sums
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_services.worker.direct_call import DirectCall


def test_feeds_and_fetches_are_in_the_callers_order() -> None:
    program, x, y, plus, minus = sums()

    assert [v.tolist() for v in DirectCall(program, [x, y], [plus, minus])(numbers(5, 3), [])] == [[8.0], [2.0]]
    assert [v.tolist() for v in DirectCall(program, [y, x], [minus, plus])(numbers(5, 3), [])] == [[-2.0], [8.0]]
    # A feed that nothing needs has a place and no key; a fetch may come twice.
    twice = DirectCall(program, [None, x, None, y], [plus, plus])
    assert [v.tolist() for v in twice(numbers(9, 5, 9, 3), [])] == [[8.0], [8.0]]


def test_other_feeds_are_refused() -> None:
    program, x, _y, plus, _minus = sums()

    with pytest.raises(ValueError, match="other feeds"):
        DirectCall(program, [x], [plus])


def test_a_feed_of_another_type_is_named() -> None:
    program, x, y, plus, _minus = sums()

    with pytest.raises(errors.InvalidArgumentError, match=r"'x' has dtype float64; float is expected") as raised:
        DirectCall(program, [x, y], [plus])([np.zeros(1), *numbers(1)], [])

    assert "{{node x}}" in raised.value.message


def test_a_call_that_was_told_to_stop() -> None:
    program, x, y, plus, _minus = sums()

    with pytest.raises(errors.CancelledError):
        DirectCall(program, [x, y], [plus])(numbers(1, 2), ["stop"])


def test_what_belongs_to_others_comes_out_read_only_unless_the_program_may_write() -> None:
    part = PartBuilder()
    part.const("c", [1.0, 2.0])
    x, c, same = part.feed("x"), part.fetch("c"), part.fetch("x")
    fed = np.zeros(2, np.float32)

    constant, passed = DirectCall(compiled(part), [x], [c, same])([fed], [])

    assert not constant.flags.writeable
    assert not passed.flags.writeable
    assert fed.flags.writeable


def test_a_variable_is_copied_when_it_is_fetched() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=dtypes.float32, shape=TensorShape([2]))
    x = part.feed("x")
    part.node("Assign", "init", ["v", "x"], T=dtypes.float32)
    key = part.fetch("init")
    call = DirectCall(compiled(part), [x], [key])

    (first,) = call([np.array([1, 2], np.float32)], [])
    (second,) = call([np.array([3, 4], np.float32)], [])

    assert first.tolist() == [1.0, 2.0]
    assert first.flags.writeable
    assert second.tolist() == [3.0, 4.0]
