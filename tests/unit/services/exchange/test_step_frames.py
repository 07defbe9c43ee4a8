"""The frames of a step between two tasks: what they say, and what is malformed, whatever the bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors, graph_wire
from tenfold_link.wire.calls import (
    HAS_NAMES,
    KEY_NUMBER,
    PUSH,
    RECORD_COSTS,
    RECORD_PARTITION_GRAPHS,
    RECORD_TIMELINE,
    RUN_GRAPH,
    RUN_GRAPH_ANSWER,
    STEP_DONE,
    UNKNOWN_NUMBER,
    LinkCall,
)
from tenfold_protos.link_calls_pb2 import LinkRunPlan
from tenfold_protos.step_stats_pb2 import StepStats
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.exchange.step_frames import (
    answer_frame,
    options_of,
    pack,
    push,
    quick_reader,
    read_answer,
    read_push,
    reader,
    run_frame,
)
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS, ExecOptions, RunGraphResult

PLAN = ExchangePlan("s", "g", fetches=("out",), answered=("edge",))


class Link:
    state: dict[Any, Any]

    def stage(self, buffer: Any) -> Any:
        return buffer

    def notify_nowait(self, method: int, header: bytes = b"", buffers: Any = ()) -> None:
        raise AssertionError


def test_an_answer_comes_back() -> None:
    value = np.arange(3.0)
    arrived: dict[str, Any] = {}
    answer = answer_frame(RunGraphResult({"out": value}, answered=[(0, value + 1, False)]), PLAN.fetches, Link())

    result = read_answer(PLAN, answer, lambda key, tensor, is_dead: arrived.update({key: tensor}))

    assert result is not None
    assert result.values["out"].tolist() == [0, 1, 2]
    assert arrived["edge"].tolist() == [1, 2, 3]
    assert read_answer(PLAN, (RUN_GRAPH_ANSWER.pack(UNKNOWN_NUMBER, 0, 0, 0), []), arrived.update) is None


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (b"", "requires a buffer"),
        (RUN_GRAPH_ANSWER.pack(STEP_DONE, 2, 0, 0), "2 values for 1"),
        (RUN_GRAPH_ANSWER.pack(STEP_DONE, 0, 0, 0), "0 values for 1"),
        (RUN_GRAPH_ANSWER.pack(STEP_DONE, 1, 0, 0), "malformed tensor at byte"),
        (RUN_GRAPH_ANSWER.pack(STEP_DONE, 1, 0, 2) + b"\xff\xff", "Error parsing message"),
    ],
)
def test_a_malformed_answer_is_said_to_be_one(header: bytes, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        read_answer(PLAN, (header, []), lambda key, value, is_dead: None)


def test_a_key_that_the_plan_has_not_is_malformed() -> None:
    value = np.float32(1)
    header, buffers = answer_frame(RunGraphResult({"out": value}, answered=[(7, value, False)]), PLAN.fetches, Link())

    with pytest.raises(errors.InvalidArgumentError, match="RunGraph's answer: tuple index out of range"):
        read_answer(PLAN, (header, buffers), lambda key, value, is_dead: None)


@pytest.mark.parametrize("name", ["record_timeline", "record_costs", "record_partition_graphs"])
def test_what_a_run_is_to_record_comes_across_and_nothing_else(name: str) -> None:
    link = Link()
    link.state = {}
    method, header, _ = run_frame(link, PLAN, 7, {}, [], ExecOptions(**{name: True}))
    plain = run_frame(link, PLAN, 8, {}, [], DEFAULT_EXEC_OPTIONS, known=False)[1]

    assert method == LinkCall.RUN_GRAPH
    assert options_of(RUN_GRAPH.unpack_from(header)[3]) == ExecOptions(**{name: True})
    assert options_of(RUN_GRAPH.unpack_from(plain)[3]) is DEFAULT_EXEC_OPTIONS


def test_a_plan_is_said_the_first_time_and_to_who_does_not_know_it() -> None:
    link = Link()
    link.state = {}

    said = [
        len(run_frame(link, PLAN, step, {}, [], DEFAULT_EXEC_OPTIONS, known=known)[1]) > RUN_GRAPH.size
        for step, known in ((1, True), (2, True), (3, False))
    ]

    assert said == [True, False, True]


@pytest.mark.parametrize("writeable", [True, False])
def test_what_belongs_to_a_variable_is_copied_before_it_can_change(writeable: bool) -> None:
    value = np.zeros(100_000)
    value.flags.writeable = writeable
    staged: list[Any] = []
    link = Link()
    link.stage = lambda buffer: staged.append(buffer) or buffer  # type: ignore[method-assign, func-returns-value]

    answer_frame(RunGraphResult({"out": value}), PLAN.fetches, link)

    assert len(staged) == (0 if writeable else 1)


# -- what a frame says, byte by byte -----------------------------------------------------------------------------------


class Recorder:
    """A link that marks what it copies, and keeps what is sent."""

    def __init__(self) -> None:
        self.state: dict[Any, Any] = {}
        self.staged: list[Any] = []
        self.sent: list[tuple[int, bytes, list[Any]]] = []

    def stage(self, buffer: Any) -> Any:
        self.staged.append(buffer)
        return buffer.copy()

    def notify_nowait(self, method: int, header: bytes = b"", buffers: Any = ()) -> None:
        self.sent.append((method, header, list(buffers)))


LARGE = np.arange(4000, dtype=np.float32).reshape(40, 100)


def test_a_run_s_frame_has_plan_feeds_and_what_is_brought_in_order() -> None:
    plan = ExchangePlan("session", "graph", feeds=("y", "x"), brought=("k0", "k1", "k2"))
    link, text = Recorder(), np.array([b"a", b"bc"], object)
    feeds = {"x": LARGE, "y": text, "unasked": np.float32(9)}
    brought = [(2, np.int32(5), False), (1, None, True), (0, LARGE + 1, False)]

    method, header, buffers = run_frame(link, plan, 77, feeds, brought, DEFAULT_EXEC_OPTIONS)

    assert method == LinkCall.RUN_GRAPH
    number, step, flags, record, fed, came, length = RUN_GRAPH.unpack_from(header)
    assert (step, flags, record, fed, came) == (77, HAS_NAMES, 0, 2, 3)
    message = header[RUN_GRAPH.size : RUN_GRAPH.size + length]
    assert ExchangePlan.from_message(LinkRunPlan.FromString(message)) == plan
    records = reader(header, RUN_GRAPH.size + length, buffers)
    assert records.read()[0].tolist() == [b"a", b"bc"]
    np.testing.assert_array_equal(records.read()[0], LARGE)
    found = []
    for _ in range(came):
        found.append((*KEY_NUMBER.unpack_from(header, records.offset), *records_after_key(records)))
    assert [(key, is_dead) for key, _, is_dead in found] == [(2, False), (1, True), (0, False)]
    assert (found[0][1].tolist(), found[1][1]) == (5, None)
    np.testing.assert_array_equal(found[2][1], LARGE + 1)
    assert records.offset == len(header)
    assert len(link.staged) == len(buffers) == 2, "both large tensors are copied: they may change when this returns"

    # known from now on, by the same number and without the plan
    again = run_frame(link, plan, 78, feeds, [], DEFAULT_EXEC_OPTIONS)[1]
    assert RUN_GRAPH.unpack_from(again) == (number, 78, 0, 0, 2, 0, 0)
    assert reader(again, RUN_GRAPH.size, []).read()[0].tolist() == [b"a", b"bc"]
    # another plan has another number, and so has this one once it is said anew
    other = run_frame(link, ExchangePlan("session", "other"), 79, {}, [], DEFAULT_EXEC_OPTIONS)[1]
    anew = run_frame(link, plan, 80, feeds, [], DEFAULT_EXEC_OPTIONS, known=False)[1]
    assert len({number, RUN_GRAPH.unpack_from(other)[0], RUN_GRAPH.unpack_from(anew)[0]}) == 3


def records_after_key(records: Any) -> tuple[Any, bool]:
    records.offset += KEY_NUMBER.size
    found: tuple[Any, bool] = records.read()
    return found


def test_what_a_run_is_to_record_are_bits_of_their_own() -> None:
    options = ExecOptions(record_timeline=True, record_costs=True, record_partition_graphs=True)
    header = run_frame(Recorder(), PLAN, 7, {}, [], options)[1]
    assert RUN_GRAPH.unpack_from(header)[3] == RECORD_TIMELINE | RECORD_COSTS | RECORD_PARTITION_GRAPHS
    assert options_of(RECORD_TIMELINE | RECORD_COSTS | RECORD_PARTITION_GRAPHS) == options
    mixed = ExecOptions(record_timeline=True, record_costs=False, record_partition_graphs=True)
    assert options_of(RUN_GRAPH.unpack_from(run_frame(Recorder(), PLAN, 7, {}, [], mixed)[1])[3]) == mixed


def test_an_answer_has_statistics_values_and_what_the_caller_consumes() -> None:
    plan = ExchangePlan("s", "g", fetches=("b", "a"), answered=("edge 0", "edge 1", "edge 2"))
    stats = StepStats()
    stats.dev_stats.add(device="/job:ps/replica:0/task:0/device:CPU:0")
    value = LARGE.copy()
    answered = [(1, None, True), (2, value, False), (0, np.int64(3), False)]
    result = RunGraphResult({"a": np.float32(1), "b": LARGE}, step_stats=stats, answered=answered)
    link = Recorder()

    answer = answer_frame(result, plan.fetches, link)
    value[:] = -1  # what is consumed by others was copied

    came: list[tuple[str, Any, bool]] = []
    found = read_answer(plan, answer, lambda *one: came.append(one))
    assert found is not None
    assert list(found.values) == ["b", "a"]
    np.testing.assert_array_equal(found.values["b"], LARGE)
    assert found.values["a"] == 1
    assert found.step_stats == stats
    assert [(key, is_dead) for key, _, is_dead in came] == [("edge 1", True), ("edge 2", False), ("edge 0", False)]
    assert came[0][1] is None
    np.testing.assert_array_equal(came[1][1], LARGE)
    assert came[2][1] == 3
    assert len(link.staged) == 1


@pytest.mark.parametrize("brought", [0, 1])
@pytest.mark.parametrize("fetched", [0, 1])
def test_an_answer_may_lack_values_or_what_the_caller_consumes(fetched: int, brought: int) -> None:
    plan = ExchangePlan("s", "g", fetches=("a",)[:fetched], answered=("edge",)[:brought])
    value = np.float32(4)
    result = RunGraphResult({"a": value}, answered=[(0, value, False)][:brought])
    came: list[str] = []
    found = read_answer(plan, answer_frame(result, plan.fetches, Recorder()), lambda key, *_: came.append(key))
    assert found is not None
    assert (list(found.values), came) == (["a"][:fetched], ["edge"][:brought])
    assert found.step_stats is None


def test_an_answer_that_is_cut_off_within_a_key_is_malformed() -> None:
    header = RUN_GRAPH_ANSWER.pack(STEP_DONE, 0, 1, 0) + b"\0"
    plan = ExchangePlan("s", "g", answered=("edge",))
    with pytest.raises(errors.InvalidArgumentError, match=r"A link's frame is malformed: RunGraph's answer: .*buffer"):
        read_answer(plan, (header, []), lambda key, value, is_dead: None)


def test_pushed_tensors_come_with_their_step_and_key() -> None:
    link, value = Recorder(), LARGE.copy()
    push(
        link, 1 << 40, [("a;b", value, False), ("a much longer \u00e9 key", None, True), ("c", np.int8([1, 2]), False)]
    )
    value[:] = 0  # what was large is copied by then
    ((method, header, buffers),) = link.sent
    assert method == LinkCall.PUSH
    assert len(link.staged) == len(buffers) == 1
    came: list[tuple[int, str, Any, bool]] = []
    read_push(header, buffers, lambda *one: came.append(one))
    assert [(step, key, is_dead) for step, key, _, is_dead in came] == [
        (1 << 40, "a;b", False),
        (1 << 40, "a much longer \u00e9 key", True),
        (1 << 40, "c", False),
    ]
    np.testing.assert_array_equal(came[0][2], LARGE)
    assert came[1][2] is None
    assert came[2][2].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (b"\1", "Push: unpack_from requires a buffer"),
        (PUSH.pack(1, 1), "Push: unpack_from requires a buffer"),
        (PUSH.pack(1, 1) + KEY_NUMBER.pack(2) + b"\xff\xfe", "malformed"),
        (PUSH.pack(1, 1) + KEY_NUMBER.pack(1) + b"\xff" + bytes(40), "Push: 'utf-8' codec can't decode"),
        (PUSH.pack(1, 1) + KEY_NUMBER.pack(1) + b"k", "malformed tensor at byte"),
    ],
)
def test_a_malformed_push_is_said_to_be_one(header: bytes, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        read_push(header, [], lambda step, key, value, is_dead: None)


def test_a_tensor_of_strings_that_cannot_be_read_is_malformed() -> None:
    parts: list[bytes] = []
    pack(np.array([b"text"], object), False, parts, [])
    header = b"".join(parts)
    assert reader(header, 0, []).read()[0].tolist() == [b"text"]
    bad = header[: len(parts[0])] + b"\xff" * (len(header) - len(parts[0]))
    with pytest.raises(errors.InvalidArgumentError, match="A link's frame holds a malformed TensorProto"):
        reader(bad, 0, []).read()


def test_on_an_event_loop_strings_are_read_up_to_a_size_in_all() -> None:
    parts: list[bytes] = []
    buffers: list[Any] = []
    for text in (b"x" * (128 << 10), b"y" * (128 << 10), b"z"):
        pack(np.array([text], object), False, parts, buffers)
    header = b"".join(parts)
    here, apart = quick_reader(header, 0, buffers), reader(header, 0, buffers)

    assert here.read()[0].tolist() == [b"x" * (128 << 10)]
    with pytest.raises(graph_wire.ReadApartError):
        here.read()
    assert [apart.read()[0][0][:1] for _ in range(3)] == [b"x", b"y", b"z"]


def test_what_goes_out_without_a_link_is_not_copied() -> None:
    parts: list[bytes] = []
    buffers: list[Any] = []
    pack(LARGE, False, parts, buffers)
    (buffer,) = buffers
    assert np.shares_memory(buffer, LARGE)
