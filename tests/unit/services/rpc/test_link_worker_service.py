"""The worker's end of a link: runs answered at once, later or elsewhere, tensors, and which task pushes to which."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_link.wire.calls import (
    HAS_NAMES,
    KEY_NUMBER,
    PUSH,
    RUN_GRAPH,
    RUN_GRAPH_ANSWER,
    STEP,
    UNKNOWN_NUMBER,
    LinkCall,
)
from tenfold_protos.link_calls_pb2 import LinkArrangeRequest, LinkArrangeResponse, LinkProducer
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.exchange.step_frames import push, read_answer, read_push, reader, run_frame
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS, ExecOptions, RunGraphResult
from tenfold_services.rpc.link_worker_service import WorkerEndpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

PS, OTHER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1"
ONE = np.float32([1])


class FakeLink:
    """Either end: keeps state, and what is sent without an answer."""

    def __init__(self) -> None:
        self.state: dict[Any, Any] = {}
        self.closed = False
        self.notified: list[Any] = []
        self.closers: list[Any] = []
        self.staged: list[Any] = []

    def stage(self, buffer: Any) -> Any:
        self.staged.append(buffer)
        return buffer

    def notify_nowait(self, method: int, header: bytes = b"", buffers: Any = ()) -> None:
        self.notified.append((method, header, list(buffers)))

    def on_close(self, callback: Any) -> None:
        self.closers.append(callback)


class FakePeer:
    """A worker that can be pushed to."""

    def __init__(self, *, is_linked: bool = True, connects: Any = True) -> None:
        self.is_linked, self._connects = is_linked, connects
        self.pushed: list[Any] = []
        self.connected = 0

    async def connect(self) -> bool:
        self.connected += 1
        if isinstance(self._connects, Exception):
            raise self._connects
        return bool(self._connects)

    def push(self, step_id: int, tensors: Any) -> None:
        self.pushed.append((step_id, tensors))


class FakeRun:
    def __init__(self) -> None:
        self.cancelled = 0

    def cancel(self) -> None:
        self.cancelled += 1


class FakeWorker:
    """Writes down what it is asked; runs end as it is told."""

    task = PS

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.steps = SimpleNamespace(finish=lambda step_id: self.asked.append(("finish", step_id)))
        self.peers: dict[str, Any] = {}
        self.workers: Any = SimpleNamespace(worker=lambda task: self.peers[task])
        self.takes, self.gives = 1, 1
        #: Of run_at_once.
        self.at_once: RunGraphResult | None = None
        #: Of start_run: how it ends at once, None for later.
        self.ends: tuple[Any, Any] | None = None
        self.run, self.started = FakeRun(), asyncio.Event()
        self.done: Any = None
        self.value: Any = (ONE, False)

    def program(self, session: str, handle: str) -> Any:
        self.asked.append(("program", session, handle))
        transfers = SimpleNamespace(feeds=range(self.takes), fetch_keys=range(self.gives))
        return SimpleNamespace(compiled=SimpleNamespace(transfers=transfers))

    def run_at_once(self, *given: Any) -> Any:
        self.asked.append(("run_at_once", *given))
        return self.at_once

    def start_run(self, request: Any, done: Any, plan: Any, push: Any) -> Any:
        self.done = done
        self.asked.append(("start_run", *request, plan, push))
        self.started.set()
        if self.ends is not None:
            self.done(*self.ends)
        return self.run

    def pushed(self, *given: Any) -> None:
        self.asked.append(("pushed", *given))

    @property
    @contextlib.contextmanager
    def arrivals(self) -> Iterator[None]:
        self.asked.append("arrivals begin")
        yield
        self.asked.append("arrivals end")

    async def recv_tensor(self, *given: Any) -> Any:
        self.asked.append(("recv_tensor", *given))
        return self.value

    def producer_lost(self, task: str, error: Any) -> None:
        self.asked.append(("producer_lost", task, error))

    def names(self) -> list[str]:
        return [each if isinstance(each, str) else each[0] for each in self.asked]


@pytest.fixture
def worker() -> FakeWorker:
    return FakeWorker()


@pytest.fixture
def link() -> FakeLink:
    return FakeLink()


@pytest.fixture
def end(worker: FakeWorker, link: FakeLink) -> WorkerEndpoint:
    return WorkerEndpoint(cast("Any", link), cast("Any", worker))


def frame(
    plan: ExchangePlan, feeds: Any = None, brought: Any = (), options: Any = DEFAULT_EXEC_OPTIONS, by: Any = None
) -> tuple[bytes, list[Any]]:
    """(header, buffers) of a RunGraph of step 7 from the other end, `by` its link."""
    _, header, buffers = run_frame(by or FakeLink(), plan, 7, feeds or {}, brought, options)
    return header, buffers


def run(end: WorkerEndpoint, *given: Any, **more: Any) -> Any:
    header, buffers = frame(*given, **more)
    return end.run_graph(cast("Any", None), header, buffers)


FED = ExchangePlan("s", "g", feeds=("in",), fetches=("out",))
SENDING = ExchangePlan("s", "g", fetches=("out",), answered=("edge",), pushed=((OTHER, ("far",)),), brought=("a", "b"))


def test_what_an_end_serves(end: WorkerEndpoint) -> None:
    methods = end.methods()
    assert {number: method.name for number, method in methods.items()} == {
        LinkCall.RUN_GRAPH: "RunGraph",
        LinkCall.RECV_TENSOR: "RecvTensor",
        LinkCall.CLEANUP_GRAPH: "CleanupGraph",
        LinkCall.PUSH: "Push",
        LinkCall.ARRANGE: "Arrange",
        LinkCall.PRODUCER: "Producer",
    }
    assert {method.needs for method in methods.values()} == {Role.REGISTER}
    assert [method.handle.__name__ for method in methods.values()] == [  # type: ignore[attr-defined]
        *("run_graph", "recv_tensor", "cleanup_graph", "push", "arrange", "producer")
    ]


# -- runs --------------------------------------------------------------------------------------------------------------


def test_a_short_run_is_answered_within_the_read(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.at_once = RunGraphResult({"out": ONE})

    reply = run(end, FED, {"in": ONE})

    result = read_answer(FED, reply, lambda *_: None)
    assert result is not None
    assert result.values["out"].tolist() == [1]
    looked_up, (name, step_id, feeds, tensors, plan, push_on) = worker.asked
    assert looked_up == ("program", "s", "g")
    assert (name, step_id, plan, push_on) == ("run_at_once", 7, FED, end._push_on)
    assert (feeds["in"].tolist(), tensors) == ([1], {})


def test_a_plan_is_known_by_its_number_from_then_on(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.at_once = RunGraphResult({"out": ONE})
    peer = FakeLink()
    run(end, FED, {"in": ONE}, by=peer)
    worker.asked.clear()

    run(end, FED, {"in": ONE}, by=peer)

    assert worker.names() == ["run_at_once"]


def test_an_unknown_number_is_answered_so(end: WorkerEndpoint, worker: FakeWorker) -> None:
    header = RUN_GRAPH.pack(99, 7, 0, 0, 0, 0, 0)
    assert end.run_graph(cast("Any", None), header, []) == (RUN_GRAPH_ANSWER.pack(UNKNOWN_NUMBER, 0, 0, 0), ())
    assert worker.asked == []


def test_tensors_that_come_along_reach_a_run_at_once(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.peers[OTHER] = FakePeer()
    worker.at_once = RunGraphResult({"out": ONE}, answered=[(0, ONE + 1, False)])
    answered: list[Any] = []

    reply = run(end, SENDING, brought=[(1, ONE, False), (0, None, True)])

    read_answer(SENDING, reply, lambda *given: answered.append(given))
    [(key, value, is_dead)] = answered
    assert (key, value.tolist(), is_dead) == ("edge", [2], False)
    tensors = worker.asked[-1][3]
    assert list(tensors) == ["b", "a"]
    assert (tensors["b"][0].tolist(), tensors["b"][1], tensors["a"]) == ([1], False, (None, True))


@pytest.mark.parametrize("ends", [(RunGraphResult({"out": ONE}), None), None])
async def test_a_run_that_has_to_wait_is_started_with_what_came(
    end: WorkerEndpoint, worker: FakeWorker, ends: Any
) -> None:
    worker.peers[OTHER] = FakePeer()
    worker.ends = ends

    reply = run(end, SENDING, brought=[(0, ONE, True), (1, ONE, False)])

    assert worker.names() == ["program", "run_at_once", "pushed", "pushed", "start_run"]
    dead, live, started = worker.asked[2:]
    assert dead == ("pushed", 7, "a", None, True)
    assert (live[1:3], live[3].tolist(), live[4]) == ((7, "b"), [1], False)
    assert started[1:] == ("s", "g", 7, {}, ("out",), DEFAULT_EXEC_OPTIONS, SENDING, end._push_on)
    if ends is None:
        assert not reply.done()
        worker.done(RunGraphResult({"out": ONE}), None)
        reply = await reply
    result = read_answer(SENDING, reply, lambda *_: None)
    assert result is not None
    assert result.values["out"].tolist() == [1]


async def test_a_run_that_is_recorded_is_not_run_at_once(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.ends = (RunGraphResult({"out": ONE}), None)
    options = ExecOptions(record_costs=True)
    run(end, FED, {"in": ONE}, options=options)
    assert worker.names() == ["program", "start_run"]
    assert worker.asked[-1][6] == options
    assert worker.asked[-1][4]["in"].tolist() == [1]


async def test_a_run_whose_consumer_is_not_linked_waits_for_the_link(end: WorkerEndpoint, worker: FakeWorker) -> None:
    peer = worker.peers[OTHER] = FakePeer(is_linked=False)
    worker.at_once = RunGraphResult({"out": ONE})
    options = ExecOptions(record_timeline=True)

    waiting = run(end, SENDING, options=options)
    assert worker.names() == ["program"]
    later = asyncio.ensure_future(waiting)
    await worker.started.wait()
    worker.done(RunGraphResult({"out": ONE}), None)

    assert read_answer(SENDING, await later, lambda *_: None) is not None
    assert peer.connected == 1
    assert worker.names() == ["program", "start_run"]
    assert worker.asked[-1][1:4] == ("s", "g", 7)
    assert worker.asked[-1][6] == options


async def test_one_that_ends_at_once_behind_a_new_link_is_answered(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.peers[OTHER] = FakePeer(is_linked=False)
    worker.ends = (RunGraphResult({"out": ONE}), None)
    assert read_answer(SENDING, await run(end, SENDING), lambda *_: None) is not None


async def test_a_run_that_fails_is_an_error_of_the_call(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.takes = 2
    pending = run(end, FED, {"in": ONE})
    worker.done(None, errors.aborted("restarted"))
    with pytest.raises(errors.AbortedError, match="restarted"):
        await pending


async def test_an_answer_that_cannot_be_packed_is_an_error_of_the_call(end: WorkerEndpoint, worker: FakeWorker) -> None:
    pending = run(end, FED, {"in": ONE})
    worker.done(RunGraphResult({}), None)
    with pytest.raises(KeyError, match="out"):
        await pending


async def test_a_call_that_is_cancelled_stops_its_run(end: WorkerEndpoint, worker: FakeWorker) -> None:
    pending = run(end, FED, {"in": ONE})

    assert pending.cancel()
    worker.done(None, errors.cancelled("as asked"))

    assert pending.cancelled()
    assert worker.run.cancelled == 1
    assert not pending.cancel()
    assert worker.run.cancelled == 1


async def test_a_call_whose_run_is_over_stops_nothing(end: WorkerEndpoint, worker: FakeWorker) -> None:
    pending = run(end, FED, {"in": ONE})
    worker.done(RunGraphResult({"out": ONE}), None)
    assert not pending.cancel()
    assert worker.run.cancelled == 0
    assert pending.run is None


async def test_a_value_that_may_change_is_copied_into_the_answer(
    end: WorkerEndpoint, worker: FakeWorker, link: FakeLink
) -> None:
    large = np.zeros(1 << 20, np.uint8)
    large.flags.writeable = False
    worker.at_once = RunGraphResult({"out": large})
    run(end, FED, {"in": ONE})
    assert len(link.staged) == 1


def test_what_a_run_sends_goes_to_its_consumer(end: WorkerEndpoint, worker: FakeWorker, link: FakeLink) -> None:
    peer = worker.peers[OTHER] = FakePeer()
    tensors = [("edge", ONE, False)]

    end._push_on(OTHER, 7, tensors)
    assert (peer.pushed, link.notified) == ([(7, tensors)], [])
    end._push_on("", 8, tensors)
    [(method, header, buffers)] = link.notified
    arrived: list[Any] = []
    read_push(header, buffers, lambda *given: arrived.append(given))
    assert (method, arrived[0][:2], len(peer.pushed)) == (LinkCall.PUSH, (8, "edge"), 1)
    link.closed = True
    end._push_on("", 9, tensors)
    assert len(link.notified) == 1


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (b"\0" * (RUN_GRAPH.size - 1), "RunGraph: unpack_from requires a buffer"),
        (RUN_GRAPH.pack(1, 7, HAS_NAMES, 0, 0, 0, 1) + b"\xff", "LinkRunPlan: "),
    ],
)
def test_a_malformed_run_is_refused(end: WorkerEndpoint, header: bytes, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"A link's frame is malformed: {text}"):
        end.run_graph(cast("Any", None), header, [])


@pytest.mark.parametrize("count", [0, 2])
def test_a_run_has_as_many_feeds_as_its_plan(end: WorkerEndpoint, count: int) -> None:
    plan = ExchangePlan("s", "g", feeds=("in",), brought=("a",))
    header, buffers = frame(plan, {"in": ONE}, [(0, ONE, False)])
    number, step_id, flags, record, _, brought, length = RUN_GRAPH.unpack_from(header)
    header = RUN_GRAPH.pack(number, step_id, flags, record, count, brought, length) + header[RUN_GRAPH.size :]
    with pytest.raises(errors.InvalidArgumentError, match=rf"RunGraph: {count} feeds for 1\."):
        end.run_graph(cast("Any", None), header, buffers)


def test_a_tensor_that_the_plan_does_not_have_is_refused(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.peers[OTHER] = FakePeer()
    header, buffers = frame(SENDING, brought=[(2, ONE, False)])
    with pytest.raises(errors.InvalidArgumentError, match="RunGraph: tuple index out of range"):
        end.run_graph(cast("Any", None), header, buffers)


@pytest.mark.parametrize(("takes", "gives"), [(0, 1), (1, 0)])
def test_a_plan_of_more_than_the_graph_has_is_refused(
    end: WorkerEndpoint, worker: FakeWorker, takes: int, gives: int
) -> None:
    worker.takes, worker.gives = takes, gives
    with pytest.raises(errors.InvalidArgumentError, match=f"takes {takes} and gives {gives}"):
        run(end, FED, {"in": ONE})


def test_a_worker_without_a_cluster_knows_no_consumer(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.workers = None
    with pytest.raises(errors.NotFoundError, match=f"{PS} knows no other task; tensors are to go to {OTHER}"):
        run(end, SENDING)


# -- tensors -----------------------------------------------------------------------------------------------------------


def test_pushed_tensors_arrive_together(end: WorkerEndpoint, worker: FakeWorker) -> None:
    sender = FakeLink()
    push(cast("Any", sender), 7, [("a", ONE, False), ("b", None, True)])
    [(_, header, buffers)] = sender.notified

    end.push(cast("Any", None), header, buffers)

    assert worker.names() == ["arrivals begin", "pushed", "pushed", "arrivals end"]
    assert worker.asked[1][1:3] == (7, "a")
    assert worker.asked[2] == ("pushed", 7, "b", None, True)


def test_a_malformed_push_is_refused(end: WorkerEndpoint) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="malformed: Push"):
        end.push(cast("Any", None), b"\0" * (PUSH.size - 1), [])


@pytest.mark.parametrize("value", [(ONE, False), (None, True)])
async def test_a_tensor_is_waited_for(end: WorkerEndpoint, worker: FakeWorker, value: Any) -> None:
    worker.value = value
    header, buffers = await end.recv_tensor(cast("Any", FakeLink()), STEP.pack(7) + b"key", [])
    read, is_dead = reader(header, 0, buffers).read()
    assert worker.asked == [("recv_tensor", 7, "key")]
    assert (None if read is None else read.tolist(), is_dead) == (None if value[1] else [1], value[1])


async def test_a_large_tensor_is_copied_for_the_link_that_asked(end: WorkerEndpoint, worker: FakeWorker) -> None:
    asker = FakeLink()
    worker.value = (np.zeros(1 << 20, np.uint8), False)
    await end.recv_tensor(cast("Any", asker), STEP.pack(7) + b"key", [])
    assert len(asker.staged) == 1


@pytest.mark.parametrize("header", [b"short", STEP.pack(7) + b"\xff"])
async def test_a_malformed_request_for_a_tensor_is_refused(end: WorkerEndpoint, header: bytes) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="malformed: RecvTensor"):
        await end.recv_tensor(cast("Any", None), header, [])


def test_steps_are_forgotten(end: WorkerEndpoint, worker: FakeWorker) -> None:
    end.cleanup_graph(cast("Any", None), STEP.pack(3) + STEP.pack(4), [])
    assert worker.asked == [("finish", 3), ("finish", 4)]
    with pytest.raises(errors.InvalidArgumentError, match="malformed: CleanupGraph"):
        end.cleanup_graph(cast("Any", None), STEP.pack(3) + b"x", [])
    assert len(worker.asked) == 2


# -- which task pushes to which ----------------------------------------------------------------------------------------


async def test_links_are_opened_to_those_that_can_be_reached(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.peers = {
        "a": FakePeer(),
        "b": FakePeer(connects=False),
        "c": FakePeer(connects=errors.unavailable("gone")),
        "d": object(),
        "e": FakePeer(),
    }
    header, buffers = await end.arrange(
        cast("Any", None), LinkArrangeRequest(task=[*worker.peers]).SerializeToString(), []
    )
    assert list(LinkArrangeResponse.FromString(header).task) == ["a", "e"]
    assert buffers == ()
    assert worker.peers["a"].connected == 1


async def test_a_fault_in_opening_a_link_is_no_answer(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.peers = {"a": FakePeer(connects=ValueError("a fault"))}
    with pytest.raises(ValueError, match="a fault"):
        await end.arrange(cast("Any", None), LinkArrangeRequest(task=["a"]).SerializeToString(), [])


async def test_a_worker_without_a_cluster_reaches_nobody(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.workers = None
    assert await end.arrange(cast("Any", None), LinkArrangeRequest(task=["a"]).SerializeToString(), []) == (b"", ())


async def test_a_malformed_arrangement_is_refused(end: WorkerEndpoint) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="malformed: LinkArrangeRequest"):
        await end.arrange(cast("Any", None), b"\xff", [])


def test_a_worker_without_links_cannot_be_pushed_to(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.peers = {"a": FakePeer(), "b": object()}
    assert end._link_of("a") is worker.peers["a"]
    with pytest.raises(errors.UnavailableError, match="b cannot be pushed to: there is no link to it"):
        end._link_of("b")


def test_the_end_of_a_producers_link_ends_runs_that_wait_for_it(end: WorkerEndpoint, worker: FakeWorker) -> None:
    link, gone = FakeLink(), errors.unavailable("gone")
    for task in ("a", "b"):
        assert end.producer(cast("Any", link), LinkProducer(task=task).SerializeToString(), []) == (b"", ())
        assert len(link.closers) == 1

    [closed] = link.closers
    closed(gone)

    assert worker.asked == [("producer_lost", "b", gone)]
    with pytest.raises(errors.InvalidArgumentError, match="malformed: LinkProducer"):
        end.producer(cast("Any", link), b"\xff", [])


def test_a_number_that_is_cut_off_is_refused(end: WorkerEndpoint, worker: FakeWorker) -> None:
    worker.peers[OTHER] = FakePeer()
    header, _ = frame(SENDING)
    number, step_id, flags, record, feeds, _, length = RUN_GRAPH.unpack_from(header)
    header = RUN_GRAPH.pack(number, step_id, flags, record, feeds, 1, length) + header[RUN_GRAPH.size :]
    with pytest.raises(errors.InvalidArgumentError, match="RunGraph: unpack_from requires a buffer"):
        end.run_graph(cast("Any", None), header + b"\0" * (KEY_NUMBER.size - 1), [])
