"""A server's life: listening, refusing, the cluster that changes, stopping; the 26 methods; the blocking face."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from support.moments import started
from support.parts import PartBuilder
from tenfold_core import errors
from tenfold_protos import master_pb2, worker_pb2
from tenfold_protos.config_pb2 import ConfigProto, RunOptions
from tenfold_services.background import BackgroundServer
from tenfold_services.interfaces import RunRequest
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.rpc import master_service, worker_service
from tenfold_services.rpc.status import status_message
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from .conftest import StartCluster

METHODS = [
    f"/tensorflow.{descriptor.name}/{method.name}"
    for descriptor in (master_service.DESCRIPTOR, worker_service.DESCRIPTOR)
    for method in descriptor.methods
]


def hello() -> Any:
    part = PartBuilder("")
    part.const("c", b"hello")
    return part.graph_def


async def call(server: TaskServer, path: str, data: bytes) -> tuple[bytes, Any]:
    """One raw call: (answer, initial metadata). Raises AioRpcError."""
    async with grpc.aio.insecure_channel(f"localhost:{server.port}") as channel:
        pending = channel.unary_unary(path)(data, timeout=30)
        return await pending, await pending.initial_metadata()


async def test_port_0_is_any_free_port_and_becomes_the_address(start_cluster: StartCluster) -> None:
    server = (await start_cluster(local=1))["local", 0]
    assert server.port > 0
    assert server.target == f"grpc://localhost:{server.port}"
    assert server.workers.address(server.task) == f"localhost:{server.port}"


async def test_the_port_of_the_cluster_is_taken() -> None:
    async with TaskServer({"ps": ["localhost:0"]}, "ps", 0) as first:
        port = first.port
    async with TaskServer({"ps": [f"localhost:{port}"]}, "ps", 0) as again:
        assert again.port == port


async def test_a_taken_port_is_a_clear_error(start_cluster: StartCluster) -> None:
    server = (await start_cluster(local=1))["local", 0]
    second = TaskServer(None, "local", 1, bind=f"127.0.0.1:{server.port}")
    with pytest.raises(
        errors.UnknownError, match=rf"Could not start gRPC server: .*task:1 .*{server.port}: address already"
    ):
        await second.start()
    await second.stop()


@pytest.mark.parametrize("bind", ["0.0.0.0:0", "[::]:0", "10.1.2.3:80", "example.com:80"])
def test_a_listener_beyond_loopback_needs_to_be_asked_for(bind: str) -> None:
    with pytest.raises(errors.PermissionDeniedError, match="insecure=True"):
        TaskServer(None, "ps", 0, bind=bind)


def _bound(port: int) -> list[str]:
    """The addresses that have a listener on this port, in the system's hexadecimal."""
    lines = [line.split() for kind in ("tcp", "tcp6") for line in Path("/proc/net", kind).read_text().splitlines()[1:]]
    found = [local.split(":") for _, local, _, state, *_ in lines if state == "0A"]
    return [address for address, number in found if number == f"{port:04X}"]


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the system's list of listeners is Linux's")
async def test_the_plaintext_listener_is_bound_to_loopback_by_default() -> None:
    async with TaskServer(None, "ps", 0) as server:
        bound = _bound(server.port)
    # as such, or as an IPv6 address
    assert bound in (["0100007F"], ["0000000000000000FFFF00000100007F"])


async def test_a_listener_beyond_loopback_that_was_asked_for() -> None:
    async with TaskServer(None, "ps", 0, bind="0.0.0.0:0", insecure=True) as server:
        assert server.port > 0


@pytest.mark.parametrize(
    ("cluster", "text"),
    [
        ({"ps": ["nowhere"]}, "'nowhere' of /job:ps/task:0"),
        ({"ps": ["grpc://h:1"]}, "host:port"),
        ({"ps": {"0": "h:1"}}, "index"),
        ({"ps": {0: 7}}, "index"),
        ({"ps": ["h:99999"]}, "65535"),
    ],
)
def test_a_malformed_cluster_is_refused(cluster: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        TaskServer(cluster, "ps", 0)


def test_another_protocol_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"'grpc\+verbs' is not served"):
        TaskServer(None, "ps", 0, protocol="grpc+verbs")


async def test_a_cluster_may_grow_and_tasks_may_move(start_cluster: StartCluster) -> None:
    server = (await start_cluster(ps=1))["ps", 0]
    other = "/job:worker/replica:0/task:0"
    with pytest.raises(errors.NotFoundError, match="the cluster has the jobs ps"):
        server.workers.worker(other)
    server.update_cluster({"worker": {0: ""}})
    assert server.workers.tasks() == [server.task, other]
    with pytest.raises(errors.UnavailableError, match="has not registered yet"):
        await server.workers.devices(other)
    async with TaskServer(None, "worker", 0) as worker:
        server.update_cluster({"worker": {0: f"localhost:{worker.port}"}})
        [device] = [d for d in await server.workers.devices(other) if d.device_type == "CPU"]
        assert device.name == f"{other}/device:CPU:0"
    with pytest.raises(errors.UnavailableError, match=rf"{other} at .* cannot be reached"):
        await server.workers.devices(other, refresh=True)
    with pytest.raises(errors.NotFoundError, match="/job:worker has the tasks 0"):
        server.workers.worker("/job:worker/replica:0/task:3")


async def test_a_refused_connection_says_so(start_cluster: StartCluster) -> None:
    server = (await start_cluster(ps=1))["ps", 0]
    async with TaskServer(None, "worker", 0) as worker:
        port = worker.port
    server.update_cluster({"worker": [f"127.0.0.1:{port}"]})
    with pytest.raises(errors.UnavailableError, match="connection refused, no server listens there"):
        await server.workers.devices("/job:worker/replica:0/task:0")


async def test_a_host_that_does_not_exist_says_so(start_cluster: StartCluster) -> None:
    server = (await start_cluster(ps=1))["ps", 0]
    server.update_cluster({"worker": ["no-such-host.invalid:1"]})
    with pytest.raises(errors.UnavailableError, match="host name cannot be resolved"):
        await server.workers.devices("/job:worker/replica:0/task:0")


async def test_stopping_ends_blocked_steps_and_is_bounded(start_cluster: StartCluster) -> None:
    server = (await start_cluster(ps=1))["ps", 0]
    device = server.worker.devices[0]
    part = PartBuilder(device.name, device.incarnation)
    part.recv("r", "float32", part.device, part.incarnation)
    handle = await server.worker.register_graph("", part.graph_def, ConfigProto())
    running = await started(server.worker.run_graph(RunRequest("", handle, 1, {}, [])))
    await asyncio.gather(server.stop(), server.stop())
    with pytest.raises(errors.UnavailableError, match="shutting down"):
        await running
    with pytest.raises(errors.UnavailableError, match="shutting down"):
        await server.worker.run_graph(RunRequest("", handle, 2, {}, []))
    with pytest.raises(errors.FailedPreconditionError, match="started before"):
        await server.start()


async def test_a_step_that_ends_within_the_grace_is_not_disturbed(start_cluster: StartCluster) -> None:
    server = (await start_cluster(ps=1))["ps", 0]
    device = server.worker.devices[0]
    waits, sends = (PartBuilder(device.name, device.incarnation) for _ in range(2))
    waits.recv("r", "float32", device.name, device.incarnation, edge="e")
    sends.const("c", 1.0)
    sends.send("c", "float32", device.name, "e")
    first = await server.worker.register_graph("", waits.graph_def, ConfigProto())
    second = await server.worker.register_graph("", sends.graph_def, ConfigProto())
    running = await started(server.worker.run_graph(RunRequest("", first, 1, {}, [])))
    sending = await started(server.worker.run_graph(RunRequest("", second, 1, {}, [])))
    await server.stop(grace=30)
    await asyncio.gather(running, sending)


async def test_a_client_sees_the_task_and_gets_its_step(start_cluster: StartCluster) -> None:
    server = (await start_cluster(local=1))["local", 0]
    request = master_pb2.CreateSessionRequest(graph_def=hello())
    data, metadata = await call(server, "/tensorflow.MasterService/CreateSession", request.SerializeToString())
    assert ("tenfold-task", "/job:local/replica:0/task:0") in [tuple(item) for item in metadata]
    handle = master_pb2.CreateSessionResponse.FromString(data).session_handle
    step = master_pb2.RunStepRequest(session_handle=handle, fetch=["c:0"])
    data, _ = await call(server, "/tensorflow.MasterService/RunStep", step.SerializeToString())
    [tensor] = master_pb2.RunStepResponse.FromString(data).tensor
    assert (tensor.name, list(tensor.tensor.string_val)) == ("c:0", [b"hello"])


@pytest.mark.parametrize("in_body", [True, False])
async def test_an_error_travels_in_the_body_or_as_status(start_cluster: StartCluster, in_body: bool) -> None:
    server = (await start_cluster(local=1))["local", 0]
    step = master_pb2.RunStepRequest(session_handle="beef", store_errors_in_response_body=in_body)
    path = "/tensorflow.MasterService/RunStep"
    if in_body:
        data, _ = await call(server, path, step.SerializeToString())
        response = master_pb2.RunStepResponse.FromString(data)
        code, text = int(response.status_code), response.status_error_message
    else:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(server, path, step.SerializeToString())
        code, text = caught.value.code().value[0], caught.value.details() or ""
    assert code == errors.ABORTED
    assert "Session beef is not found" in text


@pytest.mark.parametrize("method", METHODS)
async def test_every_method_answers_bad_bytes_clearly(start_cluster: StartCluster, method: str) -> None:
    server = (await start_cluster(local=1))["local", 0]
    name = method.rpartition("/")[2]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(server, method, b"\xff\xff\xff")
    refused = name in worker_service.REFUSED
    expected = grpc.StatusCode.UNIMPLEMENTED if refused else grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.code() is expected
    assert name in (caught.value.details() or "")
    await call(server, "/tensorflow.WorkerService/GetStatus", b"")


def test_tensorflow_has_26_methods() -> None:
    assert len(METHODS) == 26


async def test_a_method_that_does_not_exist_is_named(start_cluster: StartCluster) -> None:
    server = (await start_cluster(local=1))["local", 0]
    with pytest.raises(grpc.aio.AioRpcError, match=r"MasterService\.Frobnicate is not served by /job:local"):
        await call(server, "/tensorflow.MasterService/Frobnicate", b"")


async def test_a_malformed_tensor_is_refused_by_name(start_cluster: StartCluster) -> None:
    server = (await start_cluster(local=1))["local", 0]
    step = master_pb2.RunStepRequest(session_handle="beef")
    feed = step.feed.add(name="x:0")
    feed.tensor.dtype = 1
    feed.tensor.tensor_shape.dim.add(size=3)
    feed.tensor.tensor_content = b"\0"
    with pytest.raises(grpc.aio.AioRpcError, match="The value fed for 'x:0'") as caught:
        await call(server, "/tensorflow.MasterService/RunStep", step.SerializeToString())
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_logging_and_mark_recv_finished_are_taken_note_of(start_cluster: StartCluster) -> None:
    server = (await start_cluster(local=1))["local", 0]
    assert (await call(server, "/tensorflow.WorkerService/Logging", b""))[0] == b""
    request = worker_pb2.MarkRecvFinishedRequest(request_id=1).SerializeToString()
    assert (await call(server, "/tensorflow.WorkerService/MarkRecvFinished", request))[0] == b""


def test_a_status_message_is_bounded_and_keeps_both_ends() -> None:
    text = "From /job:ps:\n" + "ü" * 20_000 + "\n\t [[{{node w}}]]"
    cut = status_message(text, 7_000)
    assert cut.startswith("From /job:ps:\n")
    assert cut.endswith("[[{{node w}}]]")
    assert len(cut.encode()) < 7_000
    assert status_message("short") == "short"


async def test_a_long_error_reaches_the_client_as_status(start_cluster: StartCluster) -> None:
    server = (await start_cluster(local=1))["local", 0]
    step = master_pb2.RunStepRequest(session_handle="x" * 40_000)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(server, "/tensorflow.MasterService/RunStep", step.SerializeToString())
    assert caught.value.code() is grpc.StatusCode.ABORTED


def test_the_blocking_face_runs_a_step_and_stops() -> None:
    with BackgroundServer(TaskServer(None, "local", 0, bind=None)) as server:
        assert server.target == ""
        handle, _ = server.call(lambda: server.master.create_session(hello(), ConfigProto()), 30)
        values, _ = server.call(lambda: server.master.run_step(handle, {}, ["c:0"], [], RunOptions()), 30)
        assert values[0].item() == b"hello"
    server.stop()
    server.join()
    with pytest.raises(errors.UnavailableError, match="does not run"):
        server.call(lambda: server.master.list_devices(""), 1)


def test_the_blocking_face_raises_what_the_server_raises() -> None:
    with BackgroundServer(TaskServer(None, "local", 0)) as server:
        second = BackgroundServer(TaskServer(None, "local", 1, bind=f"127.0.0.1:{server.port}"))
        with pytest.raises(errors.UnknownError, match="address already in use"):
            second.start()
        second.stop()
        with pytest.raises(errors.AbortedError, match="not found"):
            server.call(lambda: server.master.close_session("beef"), 30)
        with pytest.raises(errors.FailedPreconditionError, match="not started"):
            _ = BackgroundServer(TaskServer(None, "local", 2)).master


def test_a_call_that_times_out_is_cancelled() -> None:
    cancelled = threading.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with BackgroundServer(TaskServer(None, "local", 0, bind=None)) as server:
        with pytest.raises(TimeoutError):
            server.call(hang, 0.05)
        assert cancelled.wait(30)


def test_many_threads_may_join_and_call() -> None:
    server = BackgroundServer(TaskServer(None, "local", 0, bind=None))
    server.start()
    server.start()
    joined = [threading.Thread(target=server.join) for _ in range(3)]
    for thread in joined:
        thread.start()
    assert server.call(lambda: server.master.list_devices(""), 30)
    server.stop()
    for thread in joined:
        thread.join(30)
        assert not thread.is_alive()


async def test_stopping_is_bounded_when_a_part_hangs(start_cluster: StartCluster) -> None:
    server = (await start_cluster(replace(DEFAULT_LIMITS, stop_seconds=0.3), ps=1))["ps", 0]
    port = server.port

    async def hang() -> None:
        await asyncio.Event().wait()

    server.master.stop = hang  # type: ignore[method-assign]
    async with asyncio.timeout(10):
        await server.stop(grace=0.05)
    async with TaskServer(None, "ps", 0, bind=f"127.0.0.1:{port}"):  # the port is free again
        pass


def test_the_servers_thread_cannot_wait_for_itself() -> None:
    with BackgroundServer(TaskServer(None, "local", 0, bind=None)) as server:

        async def wait_for_itself() -> None:
            server.call(lambda: server.master.list_devices(""), 1)

        with pytest.raises(errors.FailedPreconditionError, match="cannot wait for itself"):
            server.call(wait_for_itself, 30)


def test_whether_a_servers_loop_answers() -> None:
    server = BackgroundServer(TaskServer(None, "local", 0, bind=None))
    assert not server.answers(0.01)
    with server:
        assert server.answers(30)
        gate, held = threading.Event(), threading.Event()

        async def hold() -> None:
            held.set()
            gate.wait(30)

        holder = threading.Thread(target=server.call, args=(hold, 60))
        holder.start()
        assert held.wait(30)
        assert not server.answers(0.05)
        gate.set()
        holder.join(30)
        assert server.answers(30)
