"""Kernels that wait: no thread is held, every end of a step wakes its waiters, and nothing they wait for is lost."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from tenfold.graph import Graph
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array
from tenfold.session.session import Session
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_protos.config_pb2 import ConfigProto, RunOptions
from tenfold_services.interfaces import RunRequest
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tenfold_services.interfaces import RunGraphResult
    from tenfold_services.worker.graph_run import GraphRun

TASK = "/job:localhost/replica:0/task:0"
I32 = dtypes.int32


def with_queue(op: str = "FIFOQueueV2", **attrs: Any) -> PartBuilder:
    part = PartBuilder()
    part.node(op, "queue", component_types=[I32], shapes=[TensorShape([])], **attrs)
    return part


def dequeue(name: str = "element") -> PartBuilder:
    part = with_queue()
    part.node("QueueDequeueV2", name, ["queue"], component_types=[I32])
    return part


class Steps:
    """One session of one worker, whose graphs share the queue."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._handles: dict[bytes, str] = {}
        self._next = 0
        #: By step id.
        self.runs: dict[int, GraphRun] = {}

    async def start(self, part: PartBuilder, fetches: Sequence[str] = ()) -> tuple[int, asyncio.Future[RunGraphResult]]:
        """(step id, the step, which has gone as far as it goes)."""
        key = part.graph_def.SerializeToString(deterministic=True)
        if key not in self._handles:
            self._handles[key] = await self.worker.register_graph("s", part.graph_def, ConfigProto())
        self._next += 1
        future: asyncio.Future[RunGraphResult] = asyncio.get_running_loop().create_future()

        def done(result: RunGraphResult | None, error: errors.OpError | None) -> None:
            if error is not None:
                future.set_exception(error)
            elif result is not None:
                future.set_result(result)

        run = self.worker.start_run(RunRequest("s", self._handles[key], self._next, {}, fetches), done)
        self.runs[self._next] = run
        return self._next, future

    async def run(self, part: PartBuilder, fetches: Sequence[str] = ()) -> list[Any]:
        _, task = await self.start(part, fetches)
        async with asyncio.timeout(20):
            return [value.tolist() for value in (await task).values.values()]

    async def enqueue(self, value: int) -> None:
        part = with_queue()
        part.const("value", value, I32)
        part.node("QueueEnqueueV2", "enqueue", ["queue", "value"], Tcomponents=[I32])
        await self.run(part)

    async def size(self) -> int:
        part = with_queue()
        part.node("QueueSizeV2", "size", ["queue"])
        fetch = part.fetch("size", I32)
        return int((await self.run(part, [fetch]))[0])


@pytest.fixture
async def steps() -> AsyncIterator[Steps]:
    worker = Worker(TASK)
    await worker.create_worker_session("s", None, False, ("/job:localhost/replica:0/task:0", 1))
    yield Steps(worker)
    worker.abort_steps(errors.CancelledError(None, None, "The test is over."))
    worker.close()


def fetching(part: PartBuilder, source: str = "element") -> tuple[PartBuilder, list[str]]:
    return part, [part.fetch(source, I32)]


async def test_a_step_waits_for_another(steps: Steps) -> None:
    _, waiting = await steps.start(*fetching(dequeue()))
    await steps.enqueue(7)
    async with asyncio.timeout(20):
        (value,) = (await waiting).values.values()
    assert value.tolist() == 7


async def test_what_is_there_is_not_waited_for(steps: Steps) -> None:
    await steps.enqueue(1)
    await steps.enqueue(2)
    assert await steps.run(*fetching(dequeue())) == [1]
    assert await steps.run(*fetching(dequeue())) == [2]


async def test_nodes_go_on_with_what_they_have(steps: Steps) -> None:
    """A node of no dequeue runs before anything comes; one of both runs when both are there."""
    part = with_queue()
    for name in "ab":
        part.node("QueueDequeueV2", name, ["queue"], component_types=[I32])
    part.const("one", 1, I32)
    part.node("Neg", "minus_one", ["one"], T=I32)
    part.node("Add", "sum", ["a", "b"], T=I32)
    part.node("Add", "total", ["sum", "minus_one"], T=I32)
    fetch = part.fetch("total", I32)
    _, waiting = await steps.start(part, [fetch])
    await steps.enqueue(10)
    assert not waiting.done()
    await steps.enqueue(20)
    async with asyncio.timeout(20):
        assert (await waiting).values[fetch].tolist() == 29


async def test_what_has_no_outputs_can_be_waited_for(steps: Steps) -> None:
    """An enqueue into a full queue, and a node that comes after it by a control edge only."""

    def full() -> PartBuilder:
        return with_queue(capacity=1)

    async def put(value: int) -> asyncio.Future[RunGraphResult]:
        part = full()
        part.const("value", value, I32)
        part.node("QueueEnqueueV2", "enqueue", ["queue", "value"], Tcomponents=[I32])
        part.const("done", 5, I32, inputs=["^enqueue"])
        part.node("Identity", "after", ["value", "^enqueue"], T=I32)
        _, task = await steps.start(part, [part.fetch("after", I32)])
        return task

    first, second = await put(1), await put(2)
    async with asyncio.timeout(20):
        await first
    assert not second.done()
    part = full()
    part.node("QueueDequeueV2", "element", ["queue"], component_types=[I32])
    assert await steps.run(*fetching(part)) == [1]
    async with asyncio.timeout(20):
        assert [value.tolist() for value in (await second).values.values()] == [2]


async def test_a_branch_that_is_not_taken_waits_for_nothing(steps: Steps) -> None:
    """On the dynamic executor; and the taken one waits."""

    def branching(taken: bool) -> tuple[PartBuilder, list[str]]:
        part = with_queue()
        part.const("taken", taken, dtypes.bool_)
        part.const("zero", 0, I32)
        part.node("Switch", "switch", ["zero", "taken"], T=I32)
        part.node("Identity", "pivot", ["switch:1"], T=I32)
        part.node("QueueDequeueV2", "inside", ["queue", "^pivot"], component_types=[I32])
        part.node("Merge", "element", ["switch", "inside"], T=I32, N=2)
        return fetching(part)

    assert await steps.run(*branching(False)) == [0]
    _, waiting = await steps.start(*branching(True))
    await steps.enqueue(3)
    async with asyncio.timeout(20):
        assert [value.tolist() for value in (await waiting).values.values()] == [3]


async def test_every_component_reaches_a_branch(steps: Steps) -> None:
    """A node of several outputs that had to wait: each is read from its own place."""
    part = PartBuilder()
    part.node("FIFOQueueV2", "queue", component_types=[I32, I32], shapes=[TensorShape([])] * 2)
    part.const("first", 1, I32)
    part.const("second", 2, I32)
    part.node("QueueEnqueueV2", "enqueue", ["queue", "first", "second"], Tcomponents=[I32, I32])
    part.node("QueueDequeueV2", "pair", ["queue", "^enqueue"], component_types=[I32, I32])
    part.node("Less", "less", ["pair", "pair:1"], T=I32)
    part.node("Switch", "switch", ["pair:1", "less"], T=I32)
    part.node("Neg", "no", ["switch"], T=I32)
    part.node("Square", "yes", ["switch:1"], T=I32)
    part.node("Merge", "element", ["no", "yes"], T=I32, N=2)

    assert await steps.run(*fetching(part)) == [4]


async def test_an_error_names_the_node_that_waited(steps: Steps) -> None:
    _, waiting = await steps.start(*fetching(dequeue("patient"), "patient"))
    part = with_queue()
    part.node("QueueCloseV2", "close", ["queue"])
    await steps.run(part)
    async with asyncio.timeout(20):
        with pytest.raises(errors.OutOfRangeError, match=r"'_\d+_queue' is closed and has.*\n.*{{node patient}}"):
            await waiting


@pytest.mark.parametrize("end", ["session", "cleanup", "abort", "cancel"])
async def test_every_end_of_a_step_wakes_it_and_loses_nothing(steps: Steps, end: str) -> None:
    step_id, waiting = await steps.start(*fetching(dequeue()))
    worker = steps.worker
    if end == "session":
        await worker.delete_worker_session("s")
    elif end == "cleanup":
        await worker.cleanup_graph(step_id)
    elif end == "abort":
        worker.abort_steps(errors.UnavailableError(None, None, "The server stops."))
    else:
        steps.runs[step_id].cancel()
    async with asyncio.timeout(20):
        with pytest.raises(errors.OpError):
            await waiting
    if end != "session":
        await steps.enqueue(1)
        assert await steps.size() == 1


async def test_another_node_that_fails_ends_the_wait(steps: Steps) -> None:
    part = dequeue()
    part.const("condition", False, dtypes.bool_)
    part.node("Assert", "fails", ["condition", "condition"], T=[dtypes.bool_])
    with pytest.raises(errors.InvalidArgumentError, match="assertion failed"):
        await steps.run(*fetching(part))
    await steps.enqueue(1)
    assert await steps.size() == 1


async def test_ten_thousand_waiters_hold_no_thread(steps: Steps) -> None:
    part, fetches = fetching(dequeue())
    _, first = await steps.start(part, fetches)
    threads = threading.active_count()
    waiting = [first, *[(await steps.start(part, fetches))[1] for _ in range(9_999)]]
    # those of the pool, which compute and go on to the next step, another for each that a busy machine makes slow, and
    # the one that looks for these
    most = DEFAULT_LIMITS.pool_threads + DEFAULT_LIMITS.long_kernels_per_session + 1
    assert threading.active_count() <= threads + most
    await steps.enqueue(1)
    async with asyncio.timeout(60):
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert [step.done() for step in waiting].count(True) == 1
        await steps.worker.delete_worker_session("s")
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(isinstance(result, errors.CancelledError) for result in results) == 9_999


class TestTwoTasks:
    """A queue on one task, its users on another, through a session."""

    @pytest.fixture
    async def graph(self) -> Graph:
        graph = Graph()
        with graph.as_default(), graph.device("/job:ps/task:0"):
            queue = apply_op("FIFOQueueV2", component_types=[I32], shapes=[TensorShape([])], name="queue")
            apply_op("QueueEnqueueV2", handle=queue, components=[array.constant(np.int32(4))], name="enqueue")
            element = apply_op("QueueDequeueV2", handle=queue, component_types=[I32], name="dequeue")
            with graph.device("/job:worker/task:0"):
                apply_op("Neg", x=element, name="negative")
        return graph

    async def test_waiting_ends_with_the_element_the_deadline_or_the_session(
        self, start_cluster: Any, graph: Graph
    ) -> None:
        cluster = await start_cluster(ps=1, worker=1)
        target = cluster["worker", 0].target

        def act() -> None:
            with Session(target, graph=graph) as session:
                with pytest.raises(errors.DeadlineExceededError):
                    session.run("negative:0", options=RunOptions(timeout_in_ms=200))
                found: list[Any] = []
                thread = threading.Thread(target=lambda: found.append(session.run("negative:0")))
                thread.start()
                session.run("enqueue")
                thread.join(20)
                assert found == [-4]
                ended: list[errors.OpError] = []

                def wait() -> None:
                    try:
                        session.run("negative:0")
                    except errors.OpError as error:
                        ended.append(error)

                thread = threading.Thread(target=wait)
                thread.start()
            thread.join(20)
            assert [type(error) for error in ended] in ([errors.CancelledError], [errors.AbortedError])

        await asyncio.to_thread(act)

    async def test_a_server_that_stops_wakes_who_waits(self, start_cluster: Any, graph: Graph) -> None:
        cluster = await start_cluster(ps=1, worker=1)
        session = Session(cluster["worker", 0].target, graph=graph)

        def wait() -> type[BaseException] | None:
            try:
                session.run("negative:0")
            except errors.OpError as error:
                return type(error)
            return None

        began = asyncio.Event()
        worker = cluster["ps", 0].worker
        start_run = worker.start_run

        def noted(*given: Any) -> Any:
            run = start_run(*given)
            began.set()
            return run

        worker.start_run = noted
        waiting = asyncio.create_task(asyncio.to_thread(wait))
        async with asyncio.timeout(20):
            await began.wait()
            await cluster["ps", 0].stop(0)
            ended = await waiting
        assert ended is not None
        assert issubclass(ended, errors.OpError)
        await asyncio.to_thread(session.close)
