"""Steps of the master against scripted workers: what travels, what is registered, and requests that come twice."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.fake_cluster import FakeCluster, Gate
from support.moments import PATIENCE, started
from tenfold_core import errors
from tenfold_protos import config_pb2
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS
from tenfold_services.master.limits import MasterLimits
from tenfold_services.master.step_runner import StepRunner

from .sessions import MASTER, NO_OPTIONS, OTHER, PS, OpenSession, X, session

# -- steps -------------------------------------------------------------------------------------------------------------


async def test_a_step_contacts_only_the_tasks_it_needs(opened: OpenSession) -> None:
    assert await opened.run(X, ("z:0",)) == [np.float32(0)]

    assert len(opened.cluster[MASTER].called("run_graph")) == 1
    assert not opened.cluster[PS].called("run_graph")
    assert not opened.cluster[OTHER].called("register_graph")


async def test_feeds_and_fetches_travel_by_rendezvous_key(opened: OpenSession) -> None:
    values = await opened.run({"x": np.float32(3)}, ("z", "y:0", "z:0"))

    (_, step_id, feeds, fetches) = opened.cluster[MASTER].called("run_graph")[0]
    device = "/job:worker/replica:0/task:0/device:CPU:0"
    assert 0 < step_id < 1 << 56
    assert feeds == {f"{device};{1:016x};{device};x:0;0:0": np.float32(3)}
    assert sorted(key.split(";")[3] for key in fetches) == ["y:0", "z:0"]
    # The same tensor asked for twice is fetched once and returned twice.
    assert values[0] == values[2] != values[1]
    assert opened.cluster[PS].called("run_graph")[0][1:] == (step_id, {}, [])


async def test_a_graph_is_registered_once_for_each_signature(opened: OpenSession) -> None:
    await opened.run({"x": 1.0}, ("z", "y"))
    await opened.run({"x:0": 2.0}, ("y:0", "z:0"))

    assert len(opened.cluster[MASTER].called("register_graph")) == 1
    assert len(opened.cluster[MASTER].called("run_graph")) == 2


async def test_runs_that_come_while_the_graph_is_registered_share_it(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[PS].reply("register_graph", gate)
    first = asyncio.create_task(opened.run(targets=("init",)))
    await gate.entered.wait()
    second = await started(opened.run(targets=("init",)))

    first.cancel()
    gate.release()
    await second

    assert len(opened.cluster[PS].called("register_graph")) == 1


async def test_numbers_of_new_nodes_are_not_used_again(opened: OpenSession) -> None:
    await opened.run(X, ("y",))
    await opened.run(X, ("y", "read"))

    names = [
        {node.name for node in graph.node if node.op in ("_Send", "_Recv") and "_S" in node.name}
        for graph in opened.cluster[PS].graphs.values()
    ]
    assert len(names) == 2
    assert not names[0] & names[1]


async def test_the_step_is_forgotten_everywhere(opened: OpenSession) -> None:
    await opened.run(X, ("y",))
    await opened.master.close_session(opened.handle)

    step_id = opened.cluster[PS].called("run_graph")[0][1]
    assert opened.cluster[MASTER].called("cleanup_graph") == [(step_id,)]
    assert opened.cluster[PS].called("cleanup_graph") == [(step_id,)]


async def test_old_client_graphs_make_room() -> None:
    cluster = FakeCluster(MASTER)
    master = cluster.master(MasterLimits(client_graphs=2))
    handle = await session(cluster, master, "a = NoOp()\nb = NoOp()\nc = NoOp()")

    gate = Gate()
    cluster[MASTER].reply("deregister_graph", gate)
    for target in ("a", "b", "a", "c", "a"):
        await master.run_step(handle, {}, [], [target], NO_OPTIONS)
    await gate.entered.wait()
    gate.release()

    assert len(cluster[MASTER].called("register_graph")) == 3
    assert [handle for _, handle in cluster[MASTER].called("deregister_graph")] == ["/job:worker/replica:0/task:0#1"]
    await master.stop()


async def test_partition_graphs_are_returned_on_demand(opened: OpenSession) -> None:
    _, metadata = await opened.master.run_step(
        opened.handle, X, ["y:0"], [], config_pb2.RunOptions(output_partition_graphs=True)
    )

    registered = [next(iter(opened.cluster[task].graphs.values())) for task in (MASTER, PS)]
    assert sorted(g.SerializeToString(deterministic=True) for g in metadata.partition_graphs) == sorted(
        g.SerializeToString(deterministic=True) for g in registered
    )


async def test_a_fetch_without_a_value_is_an_error(opened: OpenSession) -> None:
    from tenfold_services.interfaces import RunGraphResult

    opened.cluster[MASTER].reply("run_graph", RunGraphResult({}))

    with pytest.raises(errors.InvalidArgumentError, match=r"The tensor returned for z:0 was not valid\."):
        await opened.run(X, ("z",))


# -- a request that comes twice ----------------------------------------------------------------------------------------


async def test_a_request_that_comes_again_gets_the_first_answer(opened: OpenSession) -> None:
    first = await opened.run(X, ("z",), request_id=7)

    assert await opened.run(X, ("z",), request_id=7) is first
    assert len(opened.cluster[MASTER].called("run_graph")) == 1


async def test_a_request_that_comes_again_waits_for_the_first(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    first = asyncio.create_task(opened.run(X, ("z",), request_id=7))
    await gate.entered.wait()
    again = await started(opened.run(X, ("z",), request_id=7))

    gate.release()

    assert await again == await first
    assert len(opened.cluster[MASTER].called("run_graph")) == 1


async def test_a_request_whose_first_caller_went_away_is_not_run_again(opened: OpenSession) -> None:
    gate = Gate()
    opened.cluster[MASTER].reply("run_graph", gate)
    first = asyncio.create_task(opened.run(X, ("z",), request_id=7))
    await gate.entered.wait()
    first.cancel()

    with pytest.raises(errors.AbortedError, match="received twice"):
        await opened.run(X, ("z",), request_id=7)


# -- a step without a session: its deadline, and who ended it ----------------------------------------------------------

TASK = "/job:worker/replica:0/task:0"
CLOSED = errors.cancelled("The session was closed.")


class Endless:
    """A worker whose part never ends by itself."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()

    async def run_graph(self, *_: Any) -> Any:
        self.entered.set()
        await asyncio.Event().wait()


def step(worker: Endless) -> StepRunner:
    part = SimpleNamespace(task=TASK, worker=worker, handle="h", feed_keys={}, fetch_keys={})
    graph: Any = SimpleNamespace(parts=[part], tasks=[TASK], pushes=None)
    about: Any = SimpleNamespace(handle="session", limits=MasterLimits(abort_seconds=0.05))
    return StepRunner(graph, 1, about, {}, DEFAULT_EXEC_OPTIONS)


@pytest.mark.parametrize("waited", [3600.0, 7200.0])
async def test_what_was_waited_before_counts(waited: float) -> None:
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(errors.DeadlineExceededError, match=f"within 3600000 ms; still pending on {TASK}"):
            await step(Endless()).run(3600.0, waited)


async def begun() -> tuple[StepRunner, asyncio.Task[Any]]:
    worker = Endless()
    runner = step(worker)
    task = asyncio.create_task(runner.run(None))
    async with asyncio.timeout(PATIENCE):
        await worker.entered.wait()
    return runner, task


async def test_a_step_that_its_session_ends_raises_the_reason() -> None:
    runner, task = await begun()

    runner.interrupt(CLOSED)
    runner.interrupt(errors.internal("the first reason counts"))

    with pytest.raises(errors.CancelledError) as caught:
        await task
    assert caught.value is CLOSED
    assert task.cancelling() == 0


@pytest.mark.parametrize("with_reason", [True, False])
async def test_a_step_whose_caller_is_cancelled_is_cancelled(with_reason: bool) -> None:
    runner, task = await begun()

    if with_reason:
        runner.interrupt(CLOSED)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_step_that_was_ended_before_does_not_begin() -> None:
    worker = Endless()
    runner = step(worker)
    runner.interrupt(CLOSED)

    with pytest.raises(errors.CancelledError, match="closed"):
        await runner.run(None)
    assert not worker.entered.is_set()
