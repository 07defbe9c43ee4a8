"""A straight program as a call: what goes in, what comes out, who owns it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compiled, node_by_node, numbers, sums
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_services.worker import direct_call
from tenfold_services.worker.direct_call import DirectCall
from tenfold_services.worker.execution import StepIO


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


def test_feeds_that_the_program_does_not_have_or_none_of_are_refused() -> None:
    program, x, y, plus, _minus = sums()

    for keys in ([x, None], [x, y, "other"], []):
        with pytest.raises(ValueError, match="not straight, or takes other feeds than"):
            DirectCall(program, keys, [plus])


def test_a_program_without_code_is_refused() -> None:
    program, x, y, plus, _minus = sums()
    program.compiled = replace(program.compiled, generated=None)

    with pytest.raises(ValueError, match="is not straight"):
        DirectCall(program, [x, y], [plus])


def test_an_unknown_fetch_is_refused() -> None:
    program, x, y, _plus, _minus = sums()
    with pytest.raises(ValueError, match="not in tuple"):
        DirectCall(program, [x, y], ["unknown"])


@pytest.mark.parametrize("sizes", [(1, 5), (2, 4), (7, 1000), (32, 64)])
def test_feeds_that_exchange_their_shapes_are_another_step(sizes: tuple[int, int]) -> None:
    program, x, y, plus, _minus = sums()
    call, (one, other) = DirectCall(program, [x, y], [plus]), (np.zeros(size, np.float32) for size in sizes)

    numbers_of = {call.shapes(fed) for fed in ([one, other], [other, one], [one, one], [other, other])}
    by_node = {
        node_by_node(program, StepIO({x: fed_x, y: fed_y}, lambda *_: None)).shapes
        for fed_x in (one, other)
        for fed_y in (one, other)
    }

    assert len(numbers_of) == len(by_node) == 4


def test_sizes_within_a_factor_of_two_are_the_same_step() -> None:
    program, x, y, plus, _minus = sums()
    call = DirectCall(program, [x, y], [plus])

    def number(size: int) -> int:
        return call.shapes([np.zeros(size, np.float32)] * 2)

    assert number(64) == number(100) == number(127)
    assert len({number(63), number(64), number(128)}) == 3


def test_the_same_shapes_have_the_same_number_as_a_steps() -> None:
    program, x, y, plus, _minus = sums()
    call = DirectCall(program, [y, None, x], [plus])
    small, large = np.zeros(1, np.float32), np.zeros(5, np.float32)

    for fed_y, fed_x in ((small, small), (small, large), (large, small)):
        execution = program.start(StepIO({x: fed_x, y: fed_y}, lambda *_: None))
        assert call.shapes([fed_y, None, fed_x]) == execution.shapes


def test_fetches_may_be_some_and_in_any_order() -> None:
    program, x, y, _plus, minus = sums()
    fed = numbers(5, 3)

    assert [v.tolist() for v in DirectCall(program, [x, y], [minus])(fed, [])] == [[2.0]]
    assert [v.tolist() for v in DirectCall(program, [x, y], [])(fed, [])] == []


def test_what_is_fed_is_not_written_to_and_a_number_becomes_an_array() -> None:
    program, x, y, plus, _minus = sums()
    value = np.ones(1, np.float32)

    (total,) = DirectCall(program, [x, y], [plus])([value, np.float32(2)], [])

    assert total.tolist() == [3.0]
    assert value.flags.writeable


@pytest.mark.parametrize(
    ("op", "attrs", "writes"),
    [
        ("VariableV2", {"dtype": dtypes.float32, "shape": TensorShape([2])}, False),
        ("VarHandleOp", {"dtype": dtypes.float32, "shape": TensorShape([2])}, False),
        ("RandomStandardNormal", {"T": dtypes.int32, "dtype": dtypes.float32}, True),
        ("Neg", {"T": dtypes.float32}, False),
    ],
)
def test_which_nodes_may_write_what_others_have(op: str, attrs: dict[str, Any], writes: bool) -> None:
    part = PartBuilder()
    part.const("shape", [2])
    part.feed("x")
    inputs = {"Neg": ["x"], "RandomStandardNormal": ["shape"]}.get(op, [])
    part.node(op, "node", inputs, **attrs)
    if not op.startswith("Var"):
        part.fetch("node")
    (node,) = [each for each in compiled(part).compiled.part.nodes if each.name == "node"]

    assert direct_call._may_write(node) == writes


def test_an_update_may_write_and_an_unknown_op_too() -> None:
    part = PartBuilder()
    part.node("VariableV2", "v", dtype=dtypes.float32, shape=TensorShape([2]))
    part.feed("x")
    part.node("Assign", "init", ["v", "x"], T=dtypes.float32)
    (node,) = [each for each in compiled(part).compiled.part.nodes if each.name == "init"]

    assert direct_call._may_write(node)
    unknown = SimpleNamespace(op="NobodyKnowsThis", input_types=())
    assert direct_call._may_write(cast("Any", unknown))
