"""What a session remembers of calls, and how it runs steps that its master has prepared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from tenfold.graph import Graph
from tenfold.session import composite_values, targets
from tenfold.session.calls import Call, CallTable, FeedSlot, Uncacheable, key_of
from tenfold.session.feeds import convert_feed, read_only
from tenfold.session.session import Session
from tenfold_core import dtypes, errors
from tenfold_protos import attr_value_pb2, config_pb2, tensor_shape_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator


# -- what a session remembers of calls ---------------------------------------------------------------------------------


@pytest.fixture
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


def placeholder(graph: Graph, dtype: str = "float32", shape: tuple[int | None, ...] | None = ()) -> Any:
    proto = tensor_shape_pb2.TensorShapeProto(unknown_rank=shape is None)
    for size in shape or ():
        proto.dim.add(size=-1 if size is None else size)
    enum: Any = dtypes.as_dtype(dtype).as_datatype_enum
    attrs = {"dtype": attr_value_pb2.AttrValue(type=enum), "shape": attr_value_pb2.AttrValue(shape=proto)}
    return graph.create_op("Placeholder", [], name="x", attrs=attrs).outputs[0]


class Pair(NamedTuple):
    first: Any
    second: Any


def test_keys_tell_structures_apart(graph: Graph) -> None:
    a, b = placeholder(graph), placeholder(graph)
    calls: list[tuple[Any, Any]] = [
        (a, None), (b, None), (a.op, None), ("x:0", None), ([a], None), ((a,), None), ([a, b], None), ((a, b), None),
        ([b, a], None), ([[a], b], None), ([a, [b]], None), ({"a": a}, None), ({"b": a}, None), ({"a": [a]}, None),
        ({"a": a, "b": b}, None), ({"b": b, "a": a}, None), (a, {b: 1}), (a, {b: 1, a: 1}), (a, {a: 1, b: 1}),
        ([a], {b: 1}), ("x:0", {b: 1}), (a, {"x:0": 1}), ([], None), ((), None), ({}, None),
    ]  # fmt: skip
    keys = [key_of(fetches, feed) for fetches, feed in calls]

    assert len(set(keys)) == len(calls)
    assert key_of(a, {b: 5}) == key_of(a, {b: 7})
    assert key_of(a, {}) == key_of(a, None)
    assert key_of([a, {"k": b}], None) == key_of([a, {"k": b}], None)


def test_what_is_out_of_the_ordinary_has_no_key(graph: Graph) -> None:
    a = placeholder(graph)

    for fetches, feed in (
        (Pair(a, a), None), ({1: a}, None), ({True: a}, None), ({("k",): a}, None), (None, None), (3, None),
        ([a, None], None), (b"x", None), (np.str_("x:0"), None), (a, {(a, a): 1}), (a, [(a, 1)]), (a, ()), (a, {3: 1}),
    ):  # fmt: skip
        with pytest.raises(Uncacheable):
            key_of(fetches, feed)


def test_what_stands_for_a_tensor_has_its_key(graph: Graph) -> None:
    a = placeholder(graph)

    class StandIn:
        def _as_graph_element(self) -> Any:
            return a

    assert key_of([StandIn(), a], None) == key_of([a, a], None)


def test_a_table_is_bounded_and_forgets(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenfold.session.calls._CALLS", 3)
    table = CallTable(graph)
    tensors = [placeholder(graph) for _ in range(5)]

    calls = [table.make(tensor, None) for tensor in tensors]

    assert [table.find(tensor, None) for tensor in tensors] == [None, None, *calls[2:]]
    assert table.make([tensors[0]], {tensors[0]: 1}) is None
    assert table.make("no such", None) is None
    table.forget()
    assert table.find(tensors[4], None) is None


def test_a_restriction_makes_calls_stale(graph: Graph) -> None:
    table, a, b = CallTable(graph), placeholder(graph), placeholder(graph)
    old = table.make(a, {b: 1})

    graph.prevent_feeding(b)

    assert table.find(a, {b: 1}) is None
    assert table.make(a, {b: 1}) is None
    made = table.make(a, None)
    assert made is not None
    assert made is not old


def test_a_registered_type_is_looked_at_each_time(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composite_values, "_registered", list(composite_values._registered))
    monkeypatch.setattr("tenfold.session.calls._leaves", frozenset({type(placeholder(graph)), str}))
    table, a = CallTable(graph), placeholder(graph)
    assert table.make(a, None) is not None

    composite_values.register_session_run_conversion_functions(
        type(a), lambda tensor: ([tensor.name, tensor.name], sum), lambda key, value: [(key.name, value)]
    )

    assert table.find(a, None) is None
    assert table.make(a, None) is None
    assert table.make("x:0", None) is not None


def outcome(function: Any) -> tuple[Any, ...]:
    try:
        array = function()
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return array.dtype, array.shape, array.tolist(), array.flags.writeable, array.flags.c_contiguous


VALUES: list[Any] = [
    0, 1, -1, 127, 128, 255, 256, 2047, 2049, 1 << 24, (1 << 24) + 1, 1 << 31, 1 << 53, (1 << 53) + 1, -(1 << 63),
    1 << 64, True, 0.0, 2.5, -0.0, 1e300, float("nan"), 1j, "text", b"bytes", None, [], [1.5, 2.5], [[1, 2], [3, 4]],
    np.float32(1.5), np.float64(1.5), np.int64(7), np.bool_(True), np.str_("s"), np.zeros(2, np.float32),
    np.zeros((2, 2)), np.zeros((2, 4), np.float32)[:, ::2], np.zeros(2, ">f4"), np.array([b"a", "b"], object),
    np.zeros((3, 2), np.float32).T, np.zeros(0, np.int32), np.frombuffer(b"\0" * 9, np.uint8)[1:].view(np.float32),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # what NumPy says of a conversion is the same on both sides
@pytest.mark.parametrize("shape", [None, (), (2,), (None, 2)])
@pytest.mark.parametrize(
    "dtype",
    ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint64", "bool", "complex64", "string"],
)
def test_the_short_way_of_a_feed_is_the_long_way(
    graph: Graph, dtype: str, shape: tuple[int | None, ...] | None
) -> None:
    tensor = placeholder(graph, dtype, shape)
    slot = FeedSlot(tensor)

    for value in VALUES:
        long = outcome(lambda value=value: read_only(convert_feed(tensor, value)))
        assert str(outcome(lambda value=value: slot.convert(value))) == str(long), repr(value)


def test_a_feed_of_the_right_type_is_shared_and_stays_writable(graph: Graph) -> None:
    fed = np.zeros(3, np.float32)

    array = FeedSlot(placeholder(graph, shape=(None,))).convert(fed)

    assert np.shares_memory(array, fed)
    assert fed.flags.writeable


def test_a_shape_that_is_learnt_later_counts(graph: Graph) -> None:
    x = placeholder(graph, shape=None)
    slot = FeedSlot(x)
    assert slot.convert(np.zeros(3, np.float32)).shape == (3,)

    x.set_shape([2])

    with pytest.raises(ValueError, match=r"Cannot feed value of shape \(3,\)"):
        slot.convert(np.zeros(3, np.float32))
    assert slot.convert(np.zeros(2, np.float32)).shape == (2,)


def test_a_type_that_numpy_does_not_know_is_not_remembered(graph: Graph) -> None:
    x, y = placeholder(graph, "qint8"), placeholder(graph)

    with pytest.raises(Uncacheable):
        Call(graph, y, [x])


# -- a session and a master that prepares steps ------------------------------------------------------------------------


class PreparedMaster:
    """Answers every step with 1.0, scheduled or prepared; `ways` says which it was."""

    def __init__(self) -> None:
        self.ways: list[str] = []
        self.asked: list[tuple[Any, ...]] = []
        self.is_prepared = True
        self.fetches = 0
        self.error: errors.OpError | None = None

    def create_session(self, graph_def: Any, config: Any, timeout: float | None) -> tuple[str, int]:
        return "handle", 0

    def extend_session(self, handle: str, graph_def: Any, version: int, timeout: float | None) -> int:
        self.ways.append("extend")
        return version + 1

    def run_step(
        self, handle: str, feeds: Any, fetches: Any, run: Any, options: Any, timeout: float | None
    ) -> tuple[list[Any], config_pb2.RunMetadata]:
        self.ways.append("usual")
        return [np.array(1.0) for _ in fetches], config_pb2.RunMetadata()

    may_wait = True

    def prepared_step(
        self, handle: str, feeds: Any, fetches: Any, run: Any, timeout: float | None
    ) -> PreparedMaster | None:
        self.asked.append((handle, feeds, fetches, run, timeout))
        self.fetches = len(fetches)
        return self if self.is_prepared else None

    def run(self, feeds: list[np.ndarray]) -> list[Any] | None:
        if self.error is not None:
            raise self.error
        if not self.is_prepared:
            return None
        self.ways.append("prepared")
        return [np.array(1.0)] * self.fetches

    def close_session(self, handle: str, timeout: float | None) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> PreparedMaster:
    master = PreparedMaster()
    monkeypatch.setattr(targets, "connect", lambda target, config=None: master)
    return master


def test_a_prepared_step_is_asked_for_once_and_again_when_it_is_over(graph: Graph, master: PreparedMaster) -> None:
    x, y = placeholder(graph), placeholder(graph)
    with Session("grpc://h:1", graph) as sess:
        master.is_prepared = False
        for prepared in (False, False, True, True, False, True):
            master.is_prepared = prepared
            assert sess.run([y, x.op], {x: 2.0}) == [1.0, None]

    assert master.ways == ["usual", "usual", "prepared", "prepared", "usual", "prepared"]
    # The first step creates the session; nothing can be prepared before.
    assert master.asked == [("handle", ("x:0",), ("x_1:0",), ("x",), None)] * 3


def test_new_nodes_are_sent_before_a_prepared_step_runs(graph: Graph, master: PreparedMaster) -> None:
    y = placeholder(graph)
    with Session("grpc://h:1", graph) as sess:
        sess.run(y)
        sess.run(y)
        placeholder(graph)
        sess.run(y)
        sess.run(y)

    assert master.ways == ["usual", "prepared", "extend", "usual", "prepared"]


def test_an_error_of_a_prepared_step_gets_its_operation(graph: Graph, master: PreparedMaster) -> None:
    y = placeholder(graph)
    with Session("grpc://h:1", graph) as sess:
        sess.run(y)
        master.error = errors.AbortedError(None, None, "gone\n\t [[{{node x}}]]")
        with pytest.raises(errors.AbortedError) as raised:
            sess.run(y)
        assert raised.value.op is y.op

        master.error = errors.AbortedError(None, None, "gone")
        with pytest.raises(errors.AbortedError) as raised:
            sess.run(y)
        assert raised.value is master.error


def test_the_time_out_of_a_session_and_that_of_a_step(graph: Graph, master: PreparedMaster) -> None:
    y = placeholder(graph)
    with Session("grpc://h:1", graph, config_pb2.ConfigProto(operation_timeout_in_ms=1500)) as sess:
        for _ in range(2):
            sess.run(y)
        sess.run(y, options=config_pb2.RunOptions(timeout_in_ms=700))

    assert master.ways == ["usual", "prepared", "usual"]
    assert [asked[-1] for asked in master.asked] == [1.5]


def test_a_training_operation_runs_once(graph: Graph, master: PreparedMaster) -> None:
    # Its result is None, which must not be taken for "not run".
    y = placeholder(graph)
    with Session("grpc://h:1", graph) as sess:
        call = sess.make_callable(y.op)
        for _ in range(2):
            assert sess.run(y.op) is None
            assert call() is None

    assert master.ways == ["usual", "prepared", "prepared", "prepared"]


def test_a_callable_with_a_key_twice_or_of_another_kind(graph: Graph, master: PreparedMaster) -> None:
    x, y = placeholder(graph), placeholder(graph)
    with Session("grpc://h:1", graph) as sess:
        assert sess.make_callable(y, [x, x])(1.0, 2.0) == 1.0
        assert sess.make_callable(y, [(x,)])([1.0]) == 1.0
        with pytest.raises(TypeError, match="takes 1 feed values, but got 2"):
            sess.make_callable(y, [x])(1.0, 2.0)
