"""Which runs belong on an event loop's thread: shapes that were measured as short, and no size that a value settles."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.functions import program_of as program_of_graph
from support.parts import PartBuilder
from support.programs import compiled
from tenfold_core import opdefs
from tenfold_core.opdefs.runtime_ops import COUNTING_OPS, PICKING_OPS, UNIQUE_OPS
from tenfold_core.shape_inference import ShapeContext
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources import state
from tenfold_protos.types_pb2 import DT_FLOAT
from tenfold_services.limits import Limits
from tenfold_services.worker.execution import extent
from tenfold_services.worker.part_run import DONE, LONG, WAITS, PartRun
from tenfold_services.worker.run_policy import EVENT_LOOP

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_services.worker.loaded_program import LoadedProgram

LIMIT = Limits().inline_nanoseconds
SHORT = LIMIT // 2


def program_of(build: Callable[[], Any]) -> LoadedProgram:
    """What the server makes of a graph whose placeholders are fed and whose last tensor is fetched."""
    with tf.Graph().as_default() as graph:
        last = build()
    fed = [operation.outputs[0].name for operation in graph.get_operations() if operation.type == "Placeholder"]
    fetch: tf.Tensor = last[0] if isinstance(last, list) else last
    return program_of_graph(graph.as_graph_def(), [fetch.name], fed)


def test_a_shape_that_was_not_measured_is_not_run_inline() -> None:
    program = program_of(lambda: tf.placeholder(tf.float32, None) + 1.0)
    assert not program.policy.is_short(1)
    program.policy.note(SHORT, (1,))
    assert program.policy.is_short(1)
    assert not program.policy.is_short(2)
    program.policy.note(LIMIT * 2, (2,))
    program.policy.nanoseconds = SHORT
    assert not program.policy.is_short(2)


def test_tensors_that_come_in_another_order_stay_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenfold_services.worker.part_run.clock", lambda: 0)
    part = PartBuilder()
    keys = [part.recv(f"x{number}", tf.float32, "/job:worker/replica:0/task:0/device:CPU:0", 7) for number in range(6)]
    for number in range(6):
        part.node("Neg", f"n{number}", [f"x{number}"], T=tf.float32)
        part.send(f"n{number}", tf.float32, "/job:worker/replica:0/task:0/device:CPU:0", f"edge{number}")
    program = compiled(part)

    def turns(order: list[str], *, value: Any) -> list[int]:
        run = PartRun(program, {}, lambda *_: None)
        run.receive = lambda key: None
        found = [run.turn(EVENT_LOOP)]
        for key in order:
            run.arrived(key, value, False)
            found.append(run.turn(EVENT_LOOP))
            if found[-1] == LONG:
                run.leave()
                run.advance()
                run.came_back(None)
                run.turn(EVENT_LOOP)
        return found

    small = np.float32(1)
    assert LONG in turns(keys, value=small)
    assert turns(keys[::-1], value=small) == turns(keys[3:] + keys[:3], value=small) == [WAITS] * 6 + [DONE]
    assert LONG in turns(keys, value=np.ones(100_000, np.float32))


def test_what_was_measured_is_void_once_a_variable_has_another_shape() -> None:
    program = program_of(lambda: tf.placeholder(tf.float32, None) + 1.0)
    program.policy.note(SHORT, (1,))
    variable = state.Variable("v", tf.float32, TensorShape(None))
    variable.assign(np.zeros(2, np.float32), validate_shape=False)
    variable.assign(np.ones(2, np.float32), validate_shape=False)
    assert program.policy.is_short(1)
    variable.assign(np.zeros(10**6, np.float32), validate_shape=False)
    assert not program.policy.is_short(1)
    program.policy.note(SHORT, (1,))
    assert program.policy.is_short(1)


def test_strings_are_as_large_as_their_text() -> None:
    short, long = np.array(b"ab", object), np.array(b"ab" * 1000, object)
    assert extent(short) != extent(long)
    assert extent(np.zeros((2, 3))) == extent(np.zeros((3, 2))) != extent(np.zeros((2, 4)))


def _counted(most: tf.Tensor) -> Any:
    return tf.while_loop(lambda i: i < most, lambda i: i + 1, [tf.constant(0)])


#: Whether a number from outside settles the work → how it is built.
SIZED: dict[str, tuple[bool, Callable[[], Any]]] = {
    "fill with a fed shape": (True, lambda: tf.fill(tf.placeholder(tf.int32, [1]), 1.0)),
    "fill with a constant": (False, lambda: tf.fill([3], 1.0) + tf.placeholder(tf.float32, [3])),
    "fill as something fed": (False, lambda: tf.fill(tf.shape(tf.placeholder(tf.float32, None)) * 2, 1.0)),
    "a part of a shape": (False, lambda: tf.range(tf.shape(tf.placeholder(tf.float32, [None]))[0])),
    "a random number as size": (True, lambda: tf.range(tf.random_uniform([], 0, 9, tf.int32))),
    "a fed number, computed with": (True, lambda: tf.range(tf.placeholder(tf.int32, []) * 2 + 1)),
    "labels and a constant depth": (False, lambda: tf.one_hot(tf.placeholder(tf.int32, [None]), 10)),
    "a fed depth": (True, lambda: tf.one_hot([1], tf.placeholder(tf.int32, []))),
    "parts of a range by fed numbers": (
        False,
        lambda: tf.dynamic_stitch(
            tf.dynamic_partition(tf.range(tf.size(ids := tf.placeholder(tf.int32, [None]))), ids % 2, 2),
            tf.dynamic_partition(ids, ids % 2, 2),
        ),
    ),
    "stitched by fed numbers": (True, lambda: tf.dynamic_stitch([tf.placeholder(tf.int32, [2])], [[1.0, 2.0]])),
    "a loop's variable": (
        True,
        lambda: tf.range(_counted(tf.placeholder(tf.int32, []))),
    ),
    "elements that differ": (
        False,
        lambda: tf.unsorted_segment_sum(*(u := tf.unique(tf.placeholder(tf.int32, [None]))), tf.size(u[0])),
    ),
    "so many as the largest number": (True, lambda: tf.segment_sum([1.0, 2.0], tf.placeholder(tf.int32, [2]))),
}


@pytest.mark.parametrize("name", SIZED)
def test_values_from_outside_that_settle_sizes_are_found(name: str) -> None:
    expected, build = SIZED[name]
    assert program_of(build).policy.sized_by_values is expected


# -- the table ---------------------------------------------------------------------------------------------------------


class _Attrs(dict[str, Any]):
    def __missing__(self, name: str) -> int:
        return 1


class _Asked(ShapeContext):
    """Notes which inputs' values a shape function asks for."""

    def __init__(self, name: str, rank: int | None) -> None:
        definition = opdefs.get(name)
        attrs = _Attrs((attr.name, attr.default) for attr in definition.attrs if attr.default is not None)
        attrs["T"] = attrs["dtype"] = DT_FLOAT
        self.asked: set[int] = set()
        shapes = [TensorShape(None if rank is None else [None] * rank)] * 8
        super().__init__(definition, attrs, shapes, self._constant, None, max(1, len(definition.outputs)))

    def _constant(self, index: int) -> None:
        self.asked.add(index)

    def partial(self, index: int) -> TensorShape:
        self.asked.add(index)
        return TensorShape(None)


def test_every_op_whose_shape_function_reads_a_value_says_what_sizes_it() -> None:
    asking: set[str] = set()
    for name in opdefs.names():
        shape_fn = opdefs.get(name).shape_fn
        for rank in (None, *range(6)) if shape_fn is not None else ():
            context = _Asked(name, rank)
            # an attribute or a rank that this op does not have
            with contextlib.suppress(Exception):
                shape_fn(context)  # type: ignore[misc]
            if context.asked:
                asking.add(name)
    assert len(asking) > 100
    assert {name for name in asking if opdefs.get(name).sized_by is None} == set()
    # what says that nothing is sized by a value, says so for a reason
    assert {name for name in opdefs.names() if opdefs.get(name).sized_by == ()} - asking == set()
    assert (COUNTING_OPS | PICKING_OPS | UNIQUE_OPS) - set(opdefs.names()) == set()
