"""A worker reached by gRPC and directly: graphs, steps, tensors, sessions. Hand-made partitions, no master."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.faults.call_proxy import CallProxy
from support.faults.fates import Fate
from support.moments import until
from support.parts import PartBuilder
from tenfold_core import dtypes, errors
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_services.interfaces import ExecOptions, RunRequest
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.rpc.grpc_worker import GrpcWorker

if TYPE_CHECKING:
    from tenfold_services.interfaces import WorkerInterface
    from tenfold_services.server import TaskServer

    from .conftest import Connect, StartCluster

F32 = dtypes.float32
CONFIG = ConfigProto()
PARTIAL = ExecOptions(is_partial=True)


def part_on(server: TaskServer) -> PartBuilder:
    device = server.worker.devices[0]
    return PartBuilder(device.name, device.incarnation)


async def run(
    worker: WorkerInterface, part: PartBuilder, step: int, feeds: Any = None, fetches: Any = (), session: str = ""
) -> dict[str, Any]:
    handle = await worker.register_graph(session, part.graph_def, CONFIG)
    return (await worker.run_graph(RunRequest(session, handle, step, feeds or {}, fetches))).values


@pytest.fixture(params=["direct", "grpc", "link"])
async def task(
    request: Any, start_cluster: StartCluster, connect: Connect, connect_link: Connect
) -> tuple[TaskServer, WorkerInterface]:
    """A server, and its worker all three ways."""
    server = (await start_cluster(ps=1))["ps", 0]
    ways: dict[str, WorkerInterface] = {
        "direct": server.worker,
        "grpc": connect(server),
        "link": connect_link(server),
    }
    return server, ways[request.param]


async def test_status_names_the_devices(task: tuple[TaskServer, WorkerInterface]) -> None:
    _, worker = task
    [cpu] = [device for device in await worker.get_status() if device.device_type == "CPU"]
    assert cpu.name == "/job:ps/replica:0/task:0/device:CPU:0"
    assert cpu.incarnation != 0
    assert cpu.xla_global_id == -1


async def test_feeds_and_fetches_go_by_rendezvous_key(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    x = part.feed("x")
    part.const("one", 1.0)
    part.node("Add", "y", ["x", "one"], T=F32)
    y = part.fetch("y")
    values = await run(worker, part, 1, {x: np.float32([1, 2])}, [y])
    assert values[y].tolist() == [2, 3]
    values[y][:] = 0  # the receiver's own


async def test_what_a_task_sends_twice_is_taken_once(start_cluster: StartCluster) -> None:
    """A proxy sends each request twice; the task hears the second answer."""
    server = (await start_cluster(ps=1))["ps", 0]
    with CallProxy(server.port) as proxy:
        worker = GrpcWorker(server.task, proxy.address)
        part = part_on(server)
        part.const("one", 1.0)
        handle = await worker.register_graph("", part.graph_def, CONFIG)
        key = part.send("one", F32, "/job:worker/replica:0/task:0/device:CPU:0", "edge")
        for method, call in (
            ("RunGraph", lambda: worker.run_graph(RunRequest("", handle, 1, {}, []))),
            ("RecvTensor", lambda: worker.recv_tensor(1, key)),
        ):
            proxy.script.set(method, Fate.SENT_AGAIN)
            waiting = asyncio.ensure_future(call())
            if method == "RecvTensor":
                await asyncio.to_thread(proxy.script.wait)
                await server.worker.cleanup_graph(1)
            with pytest.raises(errors.AbortedError, match=f"The same {method} .* was received twice"):
                await waiting
        await worker.close()


async def test_an_end_is_told_again_where_the_connection_breaks(start_cluster: StartCluster) -> None:
    server = (await start_cluster(ps=1))["ps", 0]
    with CallProxy(server.port) as proxy:
        worker = GrpcWorker(server.task, proxy.address)
        await worker.create_worker_session("s", None, False, ("/job:worker/replica:0/task:0", 1))
        proxy.script.set("DeleteWorkerSession", Fate.REQUEST_LOST)

        await worker.delete_worker_session("s")

        assert [session.handle for session in server.worker._sessions] == [""]
        await worker.close()


@pytest.mark.parametrize("task", ["grpc", "link"], indirect=True)
async def test_feeds_that_the_graph_has_no_place_for_are_not_even_decoded(
    task: tuple[TaskServer, WorkerInterface],
) -> None:
    server, worker = task
    part = part_on(server)
    x = part.feed("x")
    y = part.fetch("x")
    feeds = {x: np.float32(1), f"{x}1": np.float32(2)}
    with pytest.raises(errors.InvalidArgumentError, match="A run with 2 feeds and 1 fetches of a graph that takes 1"):
        await run(worker, part, 1, feeds, [y])
    with pytest.raises(errors.InvalidArgumentError, match="A run with 1 feeds and 2 fetches of a graph that takes 1"):
        await run(worker, part, 2, {x: np.float32(1)}, [y, f"{y}1"])


async def test_strings_and_empty_tensors_travel(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    x = part.feed("x", dtypes.string)
    part.node("Identity", "y", ["x"], T=dtypes.string)
    y = part.fetch("y", dtypes.string)
    fed = np.array([b"a", b"", b"\xff"], dtype=object)
    assert (await run(worker, part, 1, {x: fed}, [y]))[y].tolist() == [b"a", b"", b"\xff"]
    assert (await run(worker, part, 2, {x: fed[:0]}, [y]))[y].shape == (0,)


async def test_a_node_that_fails_is_named(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    part.node("Placeholder", "x", dtype=F32, shape=[2])
    part.fetch("x")
    with pytest.raises(errors.InvalidArgumentError, match=r"(?s)You must feed a value.*\[\[\{\{node x\}\}\]\]"):
        await run(worker, part, 1, {}, [])


async def test_a_graph_that_cannot_be_compiled_is_refused(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    part.node("NoOp", "n")
    part.graph_def.node[0].op = "NoSuchOp"
    with pytest.raises(errors.NotFoundError, match="NoSuchOp"):
        await worker.register_graph("", part.graph_def, CONFIG)
    assert await worker.get_status()


async def test_an_unknown_graph_or_session_means_a_restart(task: tuple[TaskServer, WorkerInterface]) -> None:
    _, worker = task
    with pytest.raises(errors.AbortedError, match="Graph handle is not found: beef"):
        await worker.run_graph(RunRequest("", "beef", 1, {}, []))
    await worker.create_worker_session("s", None, False, ("", 0))
    await worker.delete_worker_session("s")
    if isinstance(worker, GrpcWorker):
        worker._sessions.add("s")  # this end believes that it is open
    with pytest.raises(errors.AbortedError, match="Session handle is not found: s"):
        await worker.register_graph("s", part_graph(), CONFIG)


def part_graph() -> Any:
    part = PartBuilder()
    part.node("NoOp", "n")
    return part.graph_def


async def test_a_deregistered_graph_is_gone(task: tuple[TaskServer, WorkerInterface]) -> None:
    _, worker = task
    handle = await worker.register_graph("", part_graph(), CONFIG)
    await worker.run_graph(RunRequest("", handle, 1, {}, []))
    await worker.deregister_graph("", handle)
    with pytest.raises(errors.AbortedError, match="Graph handle"):
        await worker.run_graph(RunRequest("", handle, 2, {}, []))


async def test_a_partial_run_takes_feeds_and_fetches_in_several_calls(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    x, y = part.feed("x"), part.feed("y")
    part.node("Neg", "first", ["x"], T=F32)
    part.node("Mul", "second", ["first", "y"], T=F32)
    first, second = part.fetch("first"), part.fetch("second")
    handle = await worker.register_graph("", part.graph_def, CONFIG)

    half = await worker.run_graph(RunRequest("", handle, 1, {x: np.float32(2)}, [first], PARTIAL))
    assert half.values[first] == -2
    with pytest.raises(errors.InvalidArgumentError, match="already been fed"):
        await worker.run_graph(RunRequest("", handle, 1, {x: np.float32(2)}, [second], PARTIAL))
    last = replace(PARTIAL, is_last_partial_run=True)
    rest = await worker.run_graph(RunRequest("", handle, 1, {y: np.float32(5)}, [second], last))
    assert rest.values[second] == -10
    assert server.worker.running == 0


async def test_a_partial_run_that_fails_says_so_in_every_call(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    x, y = part.feed("x"), part.feed("y", dtypes.int32)
    part.node("Neg", "first", ["x"], T=F32)
    part.node("Gather", "second", ["first", "y"], Tparams=F32, Tindices=dtypes.int32)
    second = part.fetch("second")
    handle = await worker.register_graph("", part.graph_def, CONFIG)

    await worker.run_graph(RunRequest("", handle, 1, {x: np.float32([1, 2])}, [], PARTIAL))
    for feeds in ({y: np.int32(9)}, {}):
        with pytest.raises(errors.InvalidArgumentError, match="second"):
            await worker.run_graph(RunRequest("", handle, 1, feeds, [second] if feeds else [], PARTIAL))
    assert server.worker.running == 0


async def test_a_partial_run_ends_with_its_step(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    part.feed("x")
    y = part.fetch("x")
    handle = await worker.register_graph("", part.graph_def, CONFIG)

    await worker.run_graph(RunRequest("", handle, 1, {}, [], PARTIAL))
    assert server.worker.running == 1
    await worker.cleanup_graph(1)
    await server.worker.drained()
    with pytest.raises(errors.AbortedError, match="Step 1 is over"):
        await worker.run_graph(RunRequest("", handle, 1, {}, [y], PARTIAL))


async def test_a_traced_run_tells_the_times_of_its_nodes(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    x = part.feed("x")
    part.node("Neg", "y", ["x"], T=F32)
    y = part.fetch("y")
    handle = await worker.register_graph("", part.graph_def, CONFIG)
    feeds = {x: np.ones([2, 3], np.float32)}

    traced = await worker.run_graph(RunRequest("", handle, 1, feeds, [y], ExecOptions(record_timeline=True)))
    plain = await worker.run_graph(RunRequest("", handle, 2, feeds, [y]))

    assert plain.step_stats is None
    assert traced.values[y].tolist() == plain.values[y].tolist()
    assert traced.step_stats is not None
    [device] = traced.step_stats.dev_stats
    assert device.device == server.worker.devices[0].name
    stats = {node.node_name: node for node in device.node_stats}
    assert stats["y"].timeline_label == "y = Neg(x)"
    assert stats["y"].all_start_micros > 0
    assert stats["y"].all_end_rel_micros >= stats["y"].op_end_rel_micros > 0
    described = stats["y"].output[0].tensor_description
    assert (described.dtype, [dim.size for dim in described.shape.dim]) == (F32.as_datatype_enum, [2, 3])
    assert stats["y"].memory[0].total_bytes == 24


def variable_part(server: TaskServer, assign: float | None) -> tuple[PartBuilder, str]:
    part = part_on(server)
    part.node("VariableV2", "w", shape=[], dtype=F32)
    source = "w"
    if assign is not None:
        part.const("value", assign)
        source = part.node("Assign", "assign", ["w", "value"], T=F32)
    part.node("Identity", "read", [source], T=F32)
    return part, part.fetch("read")


async def test_sessions_share_variables_unless_isolated(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    await worker.create_worker_session("shared", None, False, ("", 0))
    await worker.create_worker_session("alone", None, True, ("", 0))
    part, key = variable_part(server, 3.0)
    await run(worker, part, 1, {}, [key], "shared")
    part, key = variable_part(server, None)
    assert (await run(worker, part, 2, {}, [key]))[key] == 3
    with pytest.raises(errors.FailedPreconditionError, match="uninitialized value w"):
        await run(worker, part, 3, {}, [key], "alone")


async def test_clearing_containers_forgets_variables(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part, key = variable_part(server, 3.0)
    await run(worker, part, 1, {}, [key])
    await worker.cleanup_all([])
    part, key = variable_part(server, None)
    with pytest.raises(errors.FailedPreconditionError, match="uninitialized"):
        await run(worker, part, 2, {}, [key])


async def test_a_master_that_restarted_loses_its_old_sessions(task: tuple[TaskServer, WorkerInterface]) -> None:
    _, worker = task
    master = "/job:worker/replica:0/task:0"
    await worker.create_worker_session("old", None, False, (master, 1))
    await worker.create_worker_session("beside", None, False, (master, 1))
    await worker.create_worker_session("new", None, False, (master, 2))
    await worker.register_graph("new", part_graph(), CONFIG)
    for gone in ("old", "beside"):
        with pytest.raises(errors.AbortedError, match="Session handle"):
            await worker.register_graph(gone, part_graph(), CONFIG)


async def test_a_master_that_was_replaced_gets_no_session_any_more(task: tuple[TaskServer, WorkerInterface]) -> None:
    _, worker = task
    master = "/job:worker/replica:0/task:0"
    await worker.create_worker_session("old", None, False, (master, 1))
    await worker.delete_worker_session("old")  # it has no session open when it is replaced
    await worker.create_worker_session("new", None, False, (master, 2))
    with pytest.raises(errors.FailedPreconditionError, match=f"{master} was replaced"):
        await worker.create_worker_session("old again", None, False, (master, 1))
    await worker.register_graph("new", part_graph(), CONFIG)  # the replacement goes on


async def test_a_replacement_waits_for_what_the_former_life_computes(
    task: tuple[TaskServer, WorkerInterface], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, worker = task
    monkeypatch.setattr(server.worker, "limits", replace(server.worker.limits, cleanup_seconds=0.2))
    master = "/job:worker/replica:0/task:0"
    computes, release = threading.Event(), threading.Event()
    await worker.create_worker_session("old", None, False, (master, 1))
    # stands for a kernel that nothing stops
    job = server.worker.pool.submit("old", lambda: (computes.set(), release.wait(60)))
    assert await asyncio.to_thread(computes.wait, 60)

    with pytest.raises(errors.UnavailableError, match=r"still computes 1 kernels of /job:worker.*former process"):
        await worker.create_worker_session("new", None, False, (master, 2))
    opening = asyncio.ensure_future(worker.create_worker_session("new", None, False, (master, 2)))
    release.set()
    await opening

    assert job.future.done()
    await worker.register_graph("new", part_graph(), CONFIG)


async def test_a_tensor_may_be_asked_for_before_the_step_runs(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    part.const("c", [1.0, 2.0])
    key = part.send("c", F32, "/job:worker/replica:0/task:0/device:CPU:0", "edge")
    asked = asyncio.ensure_future(worker.recv_tensor(7, key))
    await run(worker, part, 7)
    value, is_dead = await asked
    assert (value.tolist(), is_dead) == ([1, 2], False)


async def test_a_dead_tensor_travels(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    part.const("c", 1.0)
    part.const("p", True)
    part.node("Switch", "s", ["c", "p"], T=F32)
    key = part.send("s:0", F32, "/job:worker/replica:0/task:0/device:CPU:0", "edge")
    await run(worker, part, 7)
    assert (await worker.recv_tensor(7, key))[1]


async def test_an_earlier_life_of_the_task_is_told_apart(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    part.incarnation ^= 1
    part.const("c", 1.0)
    key = part.send("c", F32, "/job:worker/replica:0/task:0/device:CPU:0", "edge")
    with pytest.raises(errors.AbortedError, match="RecvTensor expects a different device incarnation"):
        await worker.recv_tensor(7, key)
    with pytest.raises(errors.InvalidArgumentError, match="its devices are"):
        await worker.recv_tensor(7, key.replace("/job:ps", "/job:worker"))
    with pytest.raises(errors.InvalidArgumentError, match="Invalid rendezvous key"):
        await worker.recv_tensor(7, "nonsense")


async def test_a_failed_step_tells_its_receivers_why(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    part.node("Placeholder", "x", dtype=F32)
    key = part.send("x", F32, "/job:worker/replica:0/task:0/device:CPU:0", "edge")
    early = asyncio.ensure_future(worker.recv_tensor(7, key))
    with pytest.raises(errors.InvalidArgumentError, match="You must feed"):
        await run(worker, part, 7)
    with pytest.raises(errors.InvalidArgumentError, match="You must feed"):
        await early
    with pytest.raises(errors.InvalidArgumentError, match="You must feed"):
        await worker.recv_tensor(7, key)


async def test_cleaning_up_a_step_wakes_its_receivers(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part = part_on(server)
    part.const("c", 1.0)
    key = part.send("c", F32, "/job:worker/replica:0/task:0/device:CPU:0", "edge")
    waiting = asyncio.ensure_future(worker.recv_tensor(7, key))
    await until(lambda: len(server.worker.steps) == 1, (server.worker.steps, "get"))
    await worker.cleanup_graph(7)
    with pytest.raises(errors.AbortedError, match="Step 7"):
        await waiting
    assert len(server.worker.steps) == 0


def blocked_part(server: TaskServer) -> tuple[PartBuilder, str]:
    """A part that waits for a tensor of its own task that is never sent."""
    part = part_on(server)
    key = part.recv("r", F32, part.device, part.incarnation)
    part.fetch("r")
    return part, key


async def test_cancelling_the_caller_cancels_the_step(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part, _ = blocked_part(server)
    handle = await worker.register_graph("", part.graph_def, CONFIG)
    running = asyncio.ensure_future(worker.run_graph(RunRequest("", handle, 7, {}, [])))
    await until(lambda: server.worker.running == 1, (server.worker, "start_run"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: server.worker.running == 0, (server.worker, "over"))


async def test_deleting_a_session_cancels_its_steps(task: tuple[TaskServer, WorkerInterface]) -> None:
    server, worker = task
    part, _ = blocked_part(server)
    await worker.create_worker_session("s", None, False, ("", 0))
    handle = await worker.register_graph("s", part.graph_def, CONFIG)
    running = asyncio.ensure_future(worker.run_graph(RunRequest("s", handle, 7, {}, [])))
    await until(lambda: server.worker.running == 1, (server.worker, "start_run"))
    await worker.delete_worker_session("s")
    with pytest.raises(errors.CancelledError, match="explicit call to `Session::Close"):
        await running


async def test_two_tasks_exchange_tensors_both_ways(start_cluster: StartCluster) -> None:
    cluster = await start_cluster(ps=1, worker=1)
    ps, worker = cluster["ps", 0], cluster["worker", 0]
    here, there = part_on(ps), part_on(worker)
    here.const("w", [1.0, 2.0])
    here.send("w", F32, there.device, "w")
    here.recv("g", F32, there.device, there.incarnation, edge="g")
    done = here.fetch("g")
    there.recv("w", F32, here.device, here.incarnation, edge="w")
    there.node("Neg", "g", ["w"], T=F32)
    there.send("g", F32, here.device, "g")
    first, _ = await asyncio.gather(run(ps.worker, here, 7, {}, [done]), run(worker.worker, there, 7))
    assert first[done].tolist() == [-1, -2]


async def test_the_error_of_a_producer_reaches_its_consumer_with_its_task(start_cluster: StartCluster) -> None:
    cluster = await start_cluster(ps=1, worker=1)
    here, there = part_on(cluster["ps", 0]), part_on(cluster["worker", 0])
    here.node("Placeholder", "x", dtype=F32)
    here.send("x", F32, there.device, "x")
    there.recv("x", F32, here.device, here.incarnation)
    results = await asyncio.gather(
        run(cluster["ps", 0].worker, here, 7), run(cluster["worker", 0].worker, there, 7), return_exceptions=True
    )
    assert [type(result) for result in results] == [errors.InvalidArgumentError] * 2
    assert str(results[1]).startswith("From /job:ps/replica:0/task:0:\nYou must feed")


async def test_a_producer_that_is_not_there_is_named(start_cluster: StartCluster) -> None:
    cluster = await start_cluster(ps=1, worker=1)
    here, there = part_on(cluster["ps", 0]), part_on(cluster["worker", 0])
    await cluster["ps", 0].stop()
    there.recv("x", F32, here.device, here.incarnation)
    with pytest.raises(errors.UnavailableError, match=r"/job:ps/replica:0/task:0 at localhost:\d+ cannot be reached"):
        await run(cluster["worker", 0].worker, there, 7)


async def test_a_producer_that_has_not_registered_is_named(start_cluster: StartCluster) -> None:
    server = (await start_cluster(worker=1))["worker", 0]
    server.update_cluster({"worker": server.workers.addresses["worker"], "ps": {0: ""}})
    part = part_on(server)
    part.recv("x", F32, "/job:ps/replica:0/task:0/device:CPU:0", 1)
    with pytest.raises(
        errors.UnavailableError, match="/job:ps/replica:0/task:0 cannot be reached: it has not registered"
    ):
        await run(server.worker, part, 7)


async def test_a_peer_that_gives_no_sign_of_life_is_given_up(start_cluster: StartCluster, connect: Connect) -> None:
    server = (await start_cluster(ps=1))["ps", 0]
    worker = connect(server, replace(DEFAULT_LIMITS, probe_every_seconds=0.01, probe_answer_seconds=0.05))
    frozen = asyncio.Event()

    async def silent(timeout: float | None = None) -> Any:  # noqa: ASYNC109 - the worker's signature
        await frozen.wait()

    server.worker.get_status = silent  # type: ignore[method-assign]
    part = part_on(server)
    part.const("c", 1.0)
    key = part.send("c", F32, "/job:worker/replica:0/task:0/device:CPU:0", "edge")
    with pytest.raises(errors.UnavailableError, match=r"/job:ps/replica:0/task:0 at .* no sign of life for 0\.05 s"):
        await worker.recv_tensor(7, key)
    frozen.set()


@pytest.mark.thorough
async def test_a_long_program_leaves_the_loop_alive(start_cluster: StartCluster) -> None:
    """Every run of a program that takes longer than the limit goes to the pool, and so does the first of any."""
    server = (await start_cluster(replace(DEFAULT_LIMITS, inline_nanoseconds=0), ps=1))["ps", 0]
    part = part_on(server)
    x = part.feed("x")
    part.node("MatMul", "y", ["x", "x"], T=F32)
    y = part.fetch("y")
    handle = await server.worker.register_graph("", part.graph_def, CONFIG)
    turns = 0
    running = asyncio.ensure_future(
        server.worker.run_graph(RunRequest("", handle, 7, {x: np.ones((900, 900), np.float32)}, [y]))
    )

    def turn() -> None:
        nonlocal turns
        turns += 1
        if not running.done():
            running.get_loop().call_soon(turn)

    turn()
    assert (await running).values[y][0, 0] == 900
    assert turns > 10


async def test_a_loop_without_end_leaves_the_loop_alive_and_can_be_cancelled(start_cluster: StartCluster) -> None:
    server = (await start_cluster(ps=1))["ps", 0]
    part = part_on(server)
    go_on = part.feed("go_on", dtypes.bool_)
    part.const("start", 0.0)
    part.node("Enter", "enter", ["start"], T=F32, frame_name=b"loop")
    part.node("Enter", "endless", ["go_on"], T=dtypes.bool_, frame_name=b"loop", is_constant=True)
    part.node("Merge", "merge", ["enter", "next"], T=F32, N=2)
    part.node("Switch", "switch", ["merge", "endless"], T=F32)
    part.node("NextIteration", "next", ["switch:1"], T=F32)
    part.node("Exit", "exit", ["switch:0"], T=F32)
    y = part.fetch("exit")
    handle = await server.worker.register_graph("", part.graph_def, CONFIG)
    for step in (1, 2):  # short runs, so that the next one begins on the event loop's thread
        found = await server.worker.run_graph(RunRequest("", handle, step, {go_on: np.array(False)}, [y]))
        assert found.values[y] == 0
    running = asyncio.ensure_future(server.worker.run_graph(RunRequest("", handle, 7, {go_on: np.array(True)}, [y])))
    await until(lambda: server.worker.running == 1, (server.worker, "start_run"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
