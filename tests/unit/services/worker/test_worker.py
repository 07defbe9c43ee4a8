"""A worker without a server: sessions of masters that come, restart and go, guests, graphs, and waits that end."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.moments import PATIENCE, started
from support.parts import PartBuilder
from tenfold_core import dtypes, errors, telemetry
from tenfold_core.rendezvous_key import make_key
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos.cluster_pb2 import ClusterDef
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_protos.tensorflow_server_pb2 import ServerDef
from tenfold_services.interfaces import ExecOptions, RunRequest
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.worker import worker as worker_module
from tenfold_services.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

F32 = dtypes.float32
TASK, PS, MASTER = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0", "/job:chief/replica:0/task:0"
CONFIG = ConfigProto()


def made(**limits: Any) -> Worker:
    return Worker(TASK, limits=replace(DEFAULT_LIMITS, **limits))


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = made()
    yield found
    found.close()


def doubling(worker: Worker) -> tuple[PartBuilder, str, str]:
    part = PartBuilder(worker.devices[0].name, worker.devices[0].incarnation)
    x = part.feed("x")
    part.node("Add", "y", ["x", "x"], T=F32)
    return part, x, part.fetch("y")


def waiting(worker: Worker) -> tuple[PartBuilder, str, str]:
    part = PartBuilder(worker.devices[0].name, worker.devices[0].incarnation)
    key = part.recv("r", F32, worker.devices[0].name, worker.devices[0].incarnation)
    return part, key, part.fetch("r")


# -- sessions ----------------------------------------------------------------------------------------------------------


async def test_a_master_is_told_of_with_an_unsigned_incarnation(worker: Worker) -> None:
    heard: list[tuple[str, int]] = []
    worker.on_master = lambda task, incarnation: heard.append((task, incarnation))

    await worker.create_worker_session("s", None, False, (MASTER, -1))

    assert heard == [(MASTER, 2**64 - 1)]


async def test_a_server_that_stops_opens_no_session(worker: Worker) -> None:
    worker.refuse(errors.unavailable("the server is going"))
    with pytest.raises(errors.UnavailableError, match="is going"):
        await worker.create_worker_session("s", None, False, (MASTER, 1))


async def test_a_replaced_master_is_refused_before_anything_changes(worker: Worker) -> None:
    heard: list[Any] = []
    await worker.create_worker_session("s", None, False, (MASTER, 1))
    await worker.create_worker_session("t", None, False, (MASTER, 2))
    worker.on_master = lambda *told: heard.append(told)
    with pytest.raises(errors.FailedPreconditionError, match="was replaced"):
        await worker.create_worker_session("u", None, False, (MASTER, 1))
    assert heard == []


async def test_steps_of_a_master_that_restarted_end_and_say_why(worker: Worker) -> None:
    await worker.create_worker_session("s", None, False, (MASTER, 1))
    part, _, fetch = waiting(worker)
    handle = await worker.register_graph("s", part.graph_def, CONFIG)
    step = await started(worker.run_graph(RunRequest("s", handle, 3, {}, [fetch])))

    await worker.create_worker_session("t", None, False, (MASTER, 2))

    with pytest.raises(errors.CancelledError) as raised:
        await step
    assert raised.value.message == f"Session s ended: its master {MASTER} restarted."


async def test_a_session_that_is_closed_ends_its_steps_and_says_so(worker: Worker) -> None:
    await worker.create_worker_session("s", None, False, (MASTER, 1))
    part, _, fetch = waiting(worker)
    handle = await worker.register_graph("s", part.graph_def, CONFIG)
    step = await started(worker.run_graph(RunRequest("s", handle, 3, {}, [fetch])))

    await worker.delete_worker_session("s")
    await worker.delete_worker_session("s")

    with pytest.raises(errors.CancelledError, match=r"explicit call to `Session::Close\(\)`"):
        await step
    with pytest.raises(errors.AbortedError):
        await worker.register_graph("s", part.graph_def, CONFIG)


class Kernel:
    """Computes in the pool until it is let go."""

    def __init__(self, worker: Worker, session: str) -> None:
        self.entered, self.released = threading.Event(), threading.Event()
        self.job = worker.pool.submit(session, self)

    def __call__(self) -> None:
        self.entered.set()
        assert self.released.wait(PATIENCE)


async def test_a_replacement_waits_for_the_kernels_of_the_former_life(worker: Worker) -> None:
    await worker.create_worker_session("s", None, False, (MASTER, 1))
    kernel = Kernel(worker, "s")
    assert await asyncio.to_thread(kernel.entered.wait, PATIENCE)
    waits = await started(worker.create_worker_session("t", None, False, (MASTER, 2)))
    assert not waits.done()
    assert worker._of_former == {MASTER: [kernel.job.future]}

    kernel.released.set()
    await waits

    assert worker._of_former == {}
    assert worker._sessions.get("t").master_incarnation == 2


async def test_a_replacement_that_waits_for_too_long_tries_again_and_waits_again() -> None:
    worker = made(cleanup_seconds=0.01)
    await worker.create_worker_session("s", None, False, (MASTER, 1))
    kernel = Kernel(worker, "s")
    assert await asyncio.to_thread(kernel.entered.wait, PATIENCE)
    for handle in ("t", "u"):
        with pytest.raises(errors.UnavailableError) as raised:
            await worker.create_worker_session(handle, None, False, (MASTER, 2))
        assert raised.value.message == (
            f"{TASK} still computes 1 kernels of {MASTER}'s former process after 0.01 s; its replacement has to wait "
            "for their end. Try again."
        )
        with pytest.raises(errors.AbortedError):
            worker._sessions.get(handle)
    kernel.released.set()
    await asyncio.wrap_future(kernel.job.future)

    await worker.create_worker_session("v", None, False, (MASTER, 2))

    assert worker._of_former == {}
    worker.close()


@pytest.mark.parametrize("isolate", [False, True])
async def test_the_work_of_resources_of_its_own_ends_with_the_session(
    worker: Worker, isolate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(ResourceManager, "work", lambda self: [lambda: ended.append("a"), lambda: ended.append("b")])
    await worker.create_worker_session("s", None, isolate, (MASTER, 1))

    await worker.delete_worker_session("s")

    assert ended == (["a", "b"] if isolate else [])
    await worker.create_worker_session("t", None, isolate, (MASTER, 1))
    worker.file_pool.close()
    await worker.delete_worker_session("t")  # a task that goes does not do it, and does not fail


# -- guests ------------------------------------------------------------------------------------------------------------


def server_def(job: str = "theirs", index: int = 2) -> ServerDef:
    found = ServerDef(job_name=job, task_index=index)
    found.cluster.job.add(name=job).tasks[index] = "localhost:1"
    return found


async def test_a_session_with_a_cluster_of_its_own_is_a_guests(worker: Worker) -> None:
    heard: list[Any] = []
    worker.on_master = lambda *told: heard.append(told)
    await worker.create_worker_session("g", server_def(), True, (MASTER, 1))
    (guest,) = worker.guests
    assert guest.task == "/job:theirs/replica:0/task:2"
    assert heard == []

    part, x, fetch = doubling(worker)
    handle = await worker.register_graph("g", part.graph_def, CONFIG)
    found = await worker.run_graph(RunRequest("g", handle, 3, {x: np.float32([2])}, [fetch]))
    assert found.values[fetch].tolist() == [4.0]
    assert worker.program("g", handle) is guest._sessions.get("g").graph(handle)
    await worker.deregister_graph("g", handle)
    with pytest.raises(errors.AbortedError):
        worker.program("g", handle)

    await worker.delete_worker_session("g")
    assert worker.guests == []
    with pytest.raises(errors.AbortedError):
        worker.program("g", handle)


async def test_a_cluster_without_jobs_is_none(worker: Worker) -> None:
    await worker.create_worker_session("s", ServerDef(), False, (MASTER, 1))
    assert worker.guests == []
    assert worker._sessions.get("s").handle == "s"


async def test_guests_are_bounded_and_each_has_a_handle_of_its_own() -> None:
    worker = made(sessions=2)
    for handle in "gf":
        await worker.create_worker_session(handle, server_def(), False, ("", 1))
    with pytest.raises(errors.AlreadyExistsError, match=f"Session g exists already on {TASK}"):
        await worker.create_worker_session("g", server_def(), False, ("", 1))
    with pytest.raises(errors.ResourceExhaustedError, match=f"{TASK} has 2 sessions with their own clusters; 2 is"):
        await worker.create_worker_session("h", server_def(), False, ("", 1))
    worker.close()


async def test_guests_of_a_master_that_restarted_leave(worker: Worker) -> None:
    for handle, master, life in (("g", MASTER, 1), ("h", PS, 1), ("i", "", 1)):
        await worker.create_worker_session(handle, server_def(), False, (master, life))

    await worker.create_worker_session("s", None, False, (MASTER, 1))
    assert list(worker._guest_of) == ["g", "h", "i"]
    await worker.create_worker_session("t", None, False, (MASTER, 2))

    assert list(worker._guest_of) == ["h", "i"]


# -- graphs and steps --------------------------------------------------------------------------------------------------


async def test_what_is_recorded_of_a_run(worker: Worker) -> None:
    part, x, fetch = doubling(worker)
    handle = await worker.register_graph("", part.graph_def, CONFIG)
    feeds = {x: np.float32([2])}

    plain = await worker.run_graph(RunRequest("", handle, 3, feeds, [fetch]))
    recorded = await worker.run_graph(
        RunRequest("", handle, 4, feeds, [fetch], ExecOptions(record_timeline=True, record_partition_graphs=True))
    )

    assert (plain.step_stats, plain.partition_graphs) == (None, [])
    assert recorded.values[fetch].tolist() == [4.0]
    assert recorded.step_stats is not None
    assert [{node.name for node in graph.node} for graph in recorded.partition_graphs] == [
        {node.name for node in part.graph_def.node}
    ]


async def test_a_call_that_is_cancelled_ends_its_step(worker: Worker) -> None:
    part, _, fetch = waiting(worker)
    handle = await worker.register_graph("", part.graph_def, CONFIG)
    step = await started(worker.run_graph(RunRequest("", handle, 3, {}, [fetch])))

    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step

    error = worker.steps.get(3, 0.0).error
    assert error is not None
    assert error.message == f"Step 3 was cancelled on {TASK}."
    assert worker.running == 0


async def test_calls_of_a_partial_run_are_one_run_until_the_step_is_over(worker: Worker) -> None:
    part, x, fetch = doubling(worker)
    handle = await worker.register_graph("", part.graph_def, CONFIG)
    partial = ExecOptions(is_partial=True)
    await worker.run_graph(RunRequest("", handle, 3, {x: np.float32([2])}, [], partial))
    begun = worker.steps.get(3, 0.0).partial
    last = replace(partial, is_last_partial_run=True)

    found = await worker.run_graph(RunRequest("", handle, 3, {}, [fetch], last))

    assert found.values[fetch].tolist() == [4.0]
    assert worker.steps.get(3, 0.0).partial is begun
    assert worker.running == 0
    ended = errors.aborted("it was ended")
    worker.steps.get(3, 0.0).abort(ended)
    with pytest.raises(errors.AbortedError) as raised:
        await worker.run_graph(RunRequest("", handle, 3, {}, [], partial))
    assert raised.value is ended


async def test_a_graph_that_is_not_there_cannot_be_dropped(worker: Worker) -> None:
    part, _, _ = doubling(worker)
    handle = await worker.register_graph("", part.graph_def, CONFIG)
    await worker.deregister_graph("", handle)
    with pytest.raises(errors.AbortedError, match="Graph handle is not found"):
        await worker.deregister_graph("", handle)


@pytest.mark.parametrize("is_small", [True, False])
async def test_large_graphs_have_a_pool_of_their_own(
    worker: Worker, is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[Any] = []
    for pool in worker.pools:
        submit = pool.submit
        monkeypatch.setattr(pool, "submit", lambda *job, pool=pool, submit=submit: (used.append(pool), submit(*job))[1])
    monkeypatch.setattr(worker_module, "is_small", lambda graph_def: is_small)
    part, _, _ = doubling(worker)

    await worker.register_graph("", part.graph_def, CONFIG)

    assert used == [worker.pool if is_small else worker.graph_pool]


@pytest.mark.parametrize("sets", [True, False])
async def test_a_sessions_threads_count_only_where_they_may(
    worker: Worker, sets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited: list[tuple[Any, int]] = []
    monkeypatch.setattr(worker_module, "limit_blas_threads", lambda owner, count: limited.append((owner, count)))
    worker.sessions_set_threads = sets
    part, _, _ = doubling(worker)

    await worker.register_graph("", part.graph_def, ConfigProto(intra_op_parallelism_threads=3))

    assert limited == ([(worker, 3)] if sets else [])
    assert worker.join(ClusterDef(), "/job:g/replica:0/task:0")[0].sessions_set_threads == sets


async def test_kernels_that_keep_something_are_a_sessions_own_and_nobodys_share_none(worker: Worker) -> None:
    await worker.create_worker_session("s", None, False, (MASTER, 1))
    part = PartBuilder(worker.devices[0].name, worker.devices[0].incarnation)
    part.const("shape", [2])
    part.node("RandomStandardNormal", "r", ["shape"], T=dtypes.int32, dtype=F32, seed=1, seed2=2)
    fetch = part.fetch("r")

    drawn = []
    for session in ("s", "s", "", ""):
        handle = await worker.register_graph(session, part.graph_def, CONFIG)
        drawn.append(
            (await worker.run_graph(RunRequest(session, handle, len(drawn), {}, [fetch]))).values[fetch].tolist()
        )

    assert drawn[0] != drawn[1]
    assert drawn[0] == drawn[2] == drawn[3]


async def test_a_tensor_is_received_by_key(worker: Worker) -> None:
    device = worker.devices[0]
    key = make_key(device.name, device.incarnation, f"{PS}/device:CPU:0", "x")
    waits = await started(worker.recv_tensor(3, key))
    worker.pushed(3, key, 7, True)
    assert await waits == (7, True)
    with pytest.raises(errors.InvalidArgumentError, match="was asked for a tensor of"):
        await worker.recv_tensor(3, key.replace("worker", "other"))
    await worker.cleanup_graph(3)
    with pytest.raises(errors.AbortedError, match="Step 3 is over"):
        await worker.recv_tensor(3, key)


async def test_work_of_resources_of_its_own_is_the_sessions_to_end(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.create_worker_session("own", None, True, (MASTER, 1))
    await worker.create_worker_session("shared", None, False, (MASTER, 1))
    own, ended = worker._sessions.get("own").resources, list[Any]()
    monkeypatch.setattr(ResourceManager, "work", lambda self: [lambda: ended.append(self)])

    await worker.delete_worker_session("shared")
    assert ended == []
    await worker.delete_worker_session("own")
    assert ended == [own]


async def test_what_a_closed_worker_has_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    limited: list[tuple[Any, int]] = []
    worker, closed = made(), []
    monkeypatch.setattr(worker_module, "limit_blas_threads", lambda owner, count: limited.append((owner, count)))
    monkeypatch.setattr(worker._fusion, "close", lambda timeout: closed.append(timeout))

    worker.close()

    for pool in worker.pools:
        with pytest.raises(errors.UnavailableError):
            pool.submit("s", lambda: None)
    assert closed == [0]
    assert limited == [(worker, 0)]


async def test_containers_are_cleared_by_name(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    cleared: list[Any] = []
    monkeypatch.setattr(worker.resources, "clear", cleared.append)
    await worker.cleanup_all(["a", "b"])
    assert cleared == [["a", "b"]]
    assert await worker.get_status(1.0) is worker.devices


async def test_a_tensor_that_is_asked_for_has_a_span_while_somebody_listens(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []

    def span(name: str, **attributes: Any) -> Any:
        opened.append((name, attributes))
        return telemetry.NO_SPAN

    monkeypatch.setattr(telemetry, "span", span)
    device = worker.devices[0]
    key = make_key(device.name, device.incarnation, f"{PS}/device:CPU:0", "x" * 2 * telemetry.CHARACTERS)
    worker.pushed(255, key, 7, False)
    worker.pushed(256, key, 8, False)
    assert await worker.recv_tensor(255, key) == (7, False)
    assert opened == []
    monkeypatch.setattr(telemetry, "tracer", object())

    assert await worker.recv_tensor(256, key) == (8, False)

    shown = key[: telemetry.CHARACTERS]
    assert opened == [("worker RecvTensor", {"task": TASK, "step": "100", "key": shown})]
