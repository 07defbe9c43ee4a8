"""Ends that come late and early, a thousand of each: steps that are given up while their answers are on the way,
sessions that close while they open, clean-up that overtakes what it is to clean up.

Real servers on loopback sockets, all on the test's event loop; what happens is drawn by a seed, which a failure names.
Whatever the order: every call ends, a step that was answered was done once, and nothing is left at either task.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.moments import PATIENCE, started
from support.parts import PartBuilder
from tenfold_core import dtypes, errors
from tenfold_core.request_id import new_request_id
from tenfold_link.link_settings import LinkSettings
from tenfold_protos.config_pb2 import ConfigProto, RunOptions
from tenfold_services.interfaces import RunRequest
from tenfold_services.rpc.grpc_worker import GrpcWorker
from tenfold_services.rpc.link_worker import LinkWorker
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

MODES = ["auto", "off"]
ROUNDS = [pytest.param(30, id="short"), pytest.param(1000, id="long", marks=pytest.mark.long)]
#: How what was given up, or came too late, may end.
GIVEN_UP = (
    errors.CancelledError,
    errors.AbortedError,
    errors.DeadlineExceededError,
    errors.FailedPreconditionError,
    asyncio.CancelledError,
)


@asynccontextmanager
async def two_tasks(mode: Any) -> AsyncIterator[dict[str, TaskServer]]:
    """A ps and a worker, which know each other; links between them as `mode` says."""
    async with AsyncExitStack() as stack:
        jobs = {"ps": [""], "worker": [""]}
        settings = LinkSettings(mode=mode)
        servers = {job: await stack.enter_async_context(TaskServer(jobs, job, 0, link=settings)) for job in jobs}
        for server in servers.values():
            server.update_cluster({job: {0: f"localhost:{other.port}"} for job, other in servers.items()})
        yield servers


async def ended(*work: Awaitable[Any]) -> list[Any]:
    """Results and errors, once all of it is over. Raises TimeoutError for what hangs."""
    async with asyncio.timeout(PATIENCE):
        return await asyncio.gather(*work, return_exceptions=True)


def left_at(servers: dict[str, TaskServer]) -> dict[str, int]:
    found = {}
    for job, server in servers.items():
        found[f"{job}: sessions"] = len(server.master.open_sessions)
        found[f"{job}: sessions at the worker"] = sum(1 for each in server.worker._sessions if each.handle)
        found[f"{job}: steps"] = len(server.worker.steps)
        found[f"{job}: runs"] = server.worker.running
    return {what: count for what, count in found.items() if count}


class Trainer:
    """A session's graph over both tasks: `step` waits at a queue of the ps, and then adds one to a variable there."""

    def __init__(self) -> None:
        with tf.Graph().as_default() as graph:
            with tf.device("/job:ps/task:0"):
                count = tf.Variable(0, name="count")
                gate = tf.FIFOQueue(100_000, tf.int32, shared_name="gate")
                with tf.control_dependencies([gate.dequeue()]):
                    added = tf.identity(tf.assign_add(count, 1))
                self.let_in = gate.enqueue([0]).name
            with tf.device("/job:worker/task:0"):
                self.step = (added + 0).name
            self.count, self.init = count.name, count.initializer.name
        self.graph_def = graph.as_graph_def()

    async def open(self, server: TaskServer) -> str:
        return (await server.master.create_session(self.graph_def, ConfigProto()))[0]

    async def run(self, server: TaskServer, handle: str, fetch: str = "", target: str = "", late: int = 0) -> Any:
        values, _ = await server.master.run_step(
            handle,
            {},
            [fetch] if fetch else [],
            [target] if target else [],
            RunOptions(timeout_in_ms=late),
            new_request_id(),
        )
        return values[0] if values else None


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("mode", MODES)
async def test_sessions_and_steps_that_end_at_any_moment(mode: str, rounds: int) -> None:
    trainer = Trainer()
    async with two_tasks(mode) as servers:
        worker = servers["worker"]
        keeper = await trainer.open(worker)
        await trainer.run(worker, keeper, target=trainer.init)
        answered = let_in = 0
        for seed in range(rounds):
            dice = random.Random(seed)
            opening = await started(trainer.open(worker))
            if dice.random() < 0.2:
                opening.cancel()
            (handle,) = await ended(opening)
            if isinstance(handle, asyncio.CancelledError):
                continue
            steps = []
            for _ in range(dice.randrange(1, 4)):
                late = dice.choice((0, 0, 1, 5))
                steps.append(await started(trainer.run(worker, handle, trainer.step, late=late)))
                if dice.random() < 0.5:
                    await trainer.run(worker, keeper, target=trainer.let_in)
                    let_in += 1
                if dice.random() < 0.3:
                    dice.choice(steps).cancel()
            closing = await started(worker.master.close_session(handle))
            outcomes = await ended(closing, *steps)
            assert all(isinstance(each, (*GIVEN_UP, int)) or each is None or each.shape == () for each in outcomes), (
                seed,
                outcomes,
            )
            answered += sum(1 for each in outcomes[1:] if not isinstance(each, BaseException))
        count = int(await trainer.run(worker, keeper, fetch=trainer.count))

        assert answered <= count <= let_in
        await worker.master.close_session(keeper)
        await ended(worker.master._closing.settled())
        assert left_at(servers) == {}


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("mode", MODES)
async def test_calls_of_a_step_that_come_in_any_order(mode: Any, rounds: int) -> None:
    """The run, who asks for its tensor, and the clean-up, each maybe given up, over connections that overtake."""
    async with two_tasks(mode) as servers, AsyncExitStack() as stack:
        ps = servers["ps"]
        peers: list[GrpcWorker] = [
            GrpcWorker(ps.task, f"localhost:{ps.port}"),
            LinkWorker(
                ps.task,
                f"localhost:{ps.port}",
                own=("/job:worker/replica:0/task:0", 1),
                on_link=lambda link: {},
                settings=LinkSettings(mode=mode),
                deliver=lambda *_: None,
            ),
        ]
        for peer in peers:
            stack.push_async_callback(peer.close)
            await peer.get_status()
        device = ps.worker.devices[0]
        part = PartBuilder(device.name, device.incarnation)
        part.node("VarHandleOp", "count", dtype=dtypes.int32, shape=[], shared_name="count")
        part.const("one", 1, dtypes.int32)
        part.node("AssignAddVariableOp", "add", ["count", "one"], dtype=dtypes.int32)
        part.node("ReadVariableOp", "now", ["count", "^add"], dtype=dtypes.int32)
        key = part.send("now", dtypes.int32, "/job:worker/replica:0/task:0/device:CPU:0", "edge")
        first = PartBuilder(device.name, device.incarnation)
        first.node("VarHandleOp", "count", dtype=dtypes.int32, shape=[], shared_name="count")
        first.const("zero", 0, dtypes.int32)
        first.node("AssignVariableOp", "set", ["count", "zero"], dtype=dtypes.int32)
        first.node("ReadVariableOp", "now", ["count", "^set"], dtype=dtypes.int32)
        counted = PartBuilder(device.name, device.incarnation)
        counted.node("VarHandleOp", "count", dtype=dtypes.int32, shape=[], shared_name="count")
        counted.node("ReadVariableOp", "now", ["count"], dtype=dtypes.int32)
        fetch = counted.fetch("now", dtypes.int32)
        graphs = [await peers[0].register_graph("", each.graph_def, ConfigProto()) for each in (first, part, counted)]
        await peers[0].run_graph(RunRequest("", graphs[0], 1, {}, []))
        await peers[0].cleanup_graph(1)

        done = asked = 0
        for seed in range(rounds):
            dice = random.Random(seed)
            step = 1000 + seed
            calls: list[tuple[str, asyncio.Task[Any]]] = []
            order = ["run", "recv", "cleanup"]
            dice.shuffle(order)
            for what in order:
                peer = dice.choice(peers)
                if what == "run":
                    call = await started(peer.run_graph(RunRequest("", graphs[1], step, {}, [])))
                elif what == "recv":
                    call = await started(peer.recv_tensor(step, key))
                else:
                    call = await started(peer.cleanup_graph(step))
                calls.append((what, call))
                if dice.random() < 0.3:
                    call.cancel()
            await ended(peers[0].cleanup_graph(step))
            outcomes = await ended(*(call for _, call in calls))
            for (what, _), outcome in zip(calls, outcomes, strict=True):
                failed = isinstance(outcome, BaseException)
                assert not failed or isinstance(outcome, GIVEN_UP), (seed, what, outcome)
                done += what == "run" and not failed
            asked += 1
        values = (await peers[0].run_graph(RunRequest("", graphs[2], 2, {}, [fetch]))).values
        await peers[0].cleanup_graph(2)

        assert done <= int(values[fetch]) <= asked
        assert left_at(servers) == {}


@pytest.mark.long
async def test_ten_thousand_steps_that_wait() -> None:
    """One session's: another session is served meanwhile, one step more is refused, and closing ends what is left."""
    trainer = Trainer()
    async with two_tasks("auto") as servers:
        worker = servers["worker"]
        keeper, handle = await trainer.open(worker), await trainer.open(worker)
        await trainer.run(worker, keeper, target=trainer.init)
        await trainer.run(worker, keeper, target=trainer.let_in)
        await trainer.run(worker, handle, trainer.step)
        steps = [asyncio.create_task(trainer.run(worker, handle, trainer.step)) for _ in range(10_000)]
        await ended(await started(trainer.run(worker, keeper, fetch=trainer.count)))

        with pytest.raises(errors.ResourceExhaustedError, match=f"Session {handle} runs 10000 steps at once"):
            await trainer.run(worker, handle, trainer.step)
        began = time.monotonic()
        assert int(await trainer.run(worker, keeper, fetch=trainer.count)) == 1
        assert time.monotonic() - began < 5.0
        for _ in range(5_000):
            await trainer.run(worker, keeper, target=trainer.let_in)
        closing = await started(worker.master.close_session(handle))
        outcomes = await ended(closing, *steps)

        assert all(isinstance(each, GIVEN_UP) for each in outcomes[1:] if isinstance(each, BaseException))
        answered = sum(1 for each in outcomes[1:] if not isinstance(each, BaseException))
        assert answered <= int(await trainer.run(worker, keeper, fetch=trainer.count)) - 1 <= 5_000
        await worker.master.close_session(keeper)
        await ended(worker.master._closing.settled())
        assert left_at(servers) == {}
