"""`GrpcMaster` against a real gRPC server on loopback that follows a script.

The server answers calls in the order of the script and fails the test for a call that the script does not have and
for an answer that no call asked for.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from concurrent import futures
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
import pytest

from support.ports import free_port
from tenfold.session import grpc_master
from tenfold.session.grpc_master import _PINGS, GrpcMaster
from tenfold_core import errors
from tenfold_core.tensor_util import make_ndarray, tensor_to_proto
from tenfold_protos import config_pb2, graph_pb2, master_pb2, tensor_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NO_OPTIONS = config_pb2.RunOptions()


class ScriptedServer:
    """A MasterService whose answers are written down beforehand."""

    def __init__(self) -> None:
        self._script: list[tuple[str, Callable[[Any, Any], Any]]] = []
        self._pool = futures.ThreadPoolExecutor(4)
        self._server: Any = None
        self.requests: list[Any] = []
        self.problems: list[str] = []
        self.port = 0
        #: Sent with every answer.
        self.metadata: tuple[tuple[str, str], ...] = (("tenfold-task", "/job:worker/replica:0/task:1"),)

    @property
    def target(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def start(self, port: int = 0) -> None:
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ]
        self._server = grpc.server(self._pool, [_Handlers(self)], options=options)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    def answer(self, method: str, reply: Any) -> None:
        """The next call must be `method`; `reply` is a message, or a function (request, context) → message."""
        self._script.append((method, reply if callable(reply) else lambda request, context: reply))

    def handle(self, method: str, request: Any, context: Any) -> Any:
        self.requests.append(request)
        if not self._script or self._script[0][0] != method:
            self.problems.append(f"{method} was called, the script has {[name for name, _ in self._script]}")
            context.abort(grpc.StatusCode.INTERNAL, self.problems[-1])
        _, reply = self._script.pop(0)
        context.send_initial_metadata(self.metadata)
        return reply(request, context)

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(0).wait(5)
        self._pool.shutdown()
        assert self.problems == []
        assert [name for name, _ in self._script] == [], "answers that no call asked for"


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, server: ScriptedServer) -> None:
        self._server = server

    def service(self, details: Any) -> Any:
        method = details.method.removeprefix("/tensorflow.MasterService/")
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._server.handle(method, request, context),
            request_deserializer=getattr(master_pb2, f"{method}Request").FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def master(server: ScriptedServer) -> Iterator[GrpcMaster]:
    master = GrpcMaster(server.target)
    yield master
    master.close()


def step_reply(**values: np.ndarray) -> master_pb2.RunStepResponse:
    reply = master_pb2.RunStepResponse()
    for name, value in values.items():
        reply.tensor.add(name=f"{name}:0", tensor=tensor_to_proto(value))
    return reply


def test_life_of_a_session(server: ScriptedServer, master: GrpcMaster) -> None:
    graph_def = graph_pb2.GraphDef()
    graph_def.node.add(name="x", op="NoOp")
    config = config_pb2.ConfigProto(log_device_placement=True)
    devices = master_pb2.ListDevicesResponse()
    devices.local_device.add(name="own")
    devices.remote_device.add(name="other")
    server.answer("CreateSession", master_pb2.CreateSessionResponse(session_handle="h", graph_version=3))
    server.answer("ExtendSession", master_pb2.ExtendSessionResponse(new_graph_version=4))
    server.answer("ListDevices", devices)
    server.answer("RunStep", master_pb2.RunStepResponse())
    server.answer("CloseSession", master_pb2.CloseSessionResponse())
    server.answer("Reset", master_pb2.ResetResponse())

    assert master.create_session(graph_def, config, None) == ("h", 3)
    assert master.extend_session("h", graph_def, 3, None) == 4
    assert [device.name for device in master.list_devices("h", None)] == ["own", "other"]
    assert master.run_step("h", {}, [], ["x"], NO_OPTIONS, None) == ([], config_pb2.RunMetadata())
    master.close_session("h", None)
    master.reset(["a", "b"], None)

    create, extend, listed, step, close, reset = server.requests
    assert (create.graph_def, create.config, create.target) == (graph_def, config, server.target)
    assert (extend.session_handle, extend.graph_def, extend.current_graph_version) == ("h", graph_def, 3)
    assert (listed.session_handle, close.session_handle) == ("h", "h")
    assert (step.session_handle, list(step.target), step.HasField("options")) == ("h", ["x"], True)
    assert step.store_errors_in_response_body
    assert step.request_id != 0
    assert list(reset.container) == ["a", "b"]
    assert master.task == "/job:worker/replica:0/task:1"


@pytest.mark.parametrize(
    "value",
    [
        np.array(1.5, np.float32),
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.zeros((0, 4), np.float64),
        np.array([True, False]),
        np.array([1 + 2j], np.complex64),
        np.array([0.5], np.float16),
        np.array([[b"a", b""], [b"\xff\x00", b"d"]], object),
        np.array(b"scalar", object),
    ],
)
def test_feeds_and_fetches(server: ScriptedServer, master: GrpcMaster, value: np.ndarray) -> None:
    fed = value.view()
    fed.flags.writeable = False
    server.answer("RunStep", step_reply(z=np.array(7, np.int32), y=value))

    (y, z), _ = master.run_step("h", {"x:0": fed}, ["y:0", "z:0"], [], NO_OPTIONS, None)

    assert z == 7
    assert y.dtype == value.dtype
    assert y.shape == value.shape
    assert y.tolist() == value.tolist()
    assert y.flags.writeable
    (feed,) = server.requests[0].feed
    assert feed.name == "x:0"
    assert make_ndarray(feed.tensor).tolist() == value.tolist()


def test_large_messages(server: ScriptedServer, master: GrpcMaster) -> None:
    value = np.zeros(3_000_000, np.float32)
    server.answer("RunStep", step_reply(y=value))

    (y,), _ = master.run_step("h", {"x:0": value}, ["y:0"], [], NO_OPTIONS, None)

    assert y.nbytes == value.nbytes


def test_resource_handles(server: ScriptedServer, master: GrpcMaster) -> None:
    tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_RESOURCE)
    tensor.resource_handle_val.add(name="w", container="c")
    reply = master_pb2.RunStepResponse()
    reply.tensor.add(name="y:0", tensor=tensor)
    server.answer("RunStep", reply)

    (y,), _ = master.run_step("h", {}, ["y:0"], [], NO_OPTIONS, None)

    assert y.shape == ()
    handle: Any = y[()]
    assert handle.name == "w"


def test_partial_run(server: ScriptedServer, master: GrpcMaster) -> None:
    server.answer("PartialRunSetup", master_pb2.PartialRunSetupResponse(partial_run_handle="p"))
    server.answer("RunStep", step_reply(y=np.array(1)))

    assert master.partial_run_setup("h", ["x:0"], ["y:0"], [], None) == "p"
    assert master.partial_run("h", "p", {"x:0": np.array(2)}, ["y:0"], None) == [1]

    assert list(server.requests[0].feed) == ["x:0"]
    assert server.requests[1].partial_run_handle == "p"


def test_errors_in_the_body(server: ScriptedServer, master: GrpcMaster) -> None:
    long_text = "not initialised " * 2000 + "[[{{node w}}]]"
    server.answer(
        "RunStep",
        master_pb2.RunStepResponse(status_code=9, status_error_message=long_text),  # type: ignore[arg-type]
    )

    with pytest.raises(errors.FailedPreconditionError) as raised:
        master.run_step("h", {}, ["w:0"], [], NO_OPTIONS, None)

    assert raised.value.message == long_text


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, errors.InvalidArgumentError),
        (grpc.StatusCode.ABORTED, errors.AbortedError),
        (grpc.StatusCode.NOT_FOUND, errors.NotFoundError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.DeadlineExceededError),
        (grpc.StatusCode.UNAVAILABLE, errors.UnavailableError),
        (grpc.StatusCode.UNIMPLEMENTED, errors.UnimplementedError),
        (grpc.StatusCode.CANCELLED, errors.CancelledError),
        (grpc.StatusCode.UNAUTHENTICATED, errors.UnauthenticatedError),
    ],
)
def test_errors_in_the_status(
    server: ScriptedServer, master: GrpcMaster, status: grpc.StatusCode, expected: type[errors.OpError]
) -> None:
    server.answer("ExtendSession", lambda request, context: context.abort(status, "the server's own words"))

    with pytest.raises(expected, match="the server's own words"):
        master.extend_session("h", graph_pb2.GraphDef(), 0, None)


def test_a_fetch_that_is_missing_from_the_answer(server: ScriptedServer, master: GrpcMaster) -> None:
    server.answer("RunStep", step_reply(other=np.array(1)))

    with pytest.raises(errors.InternalError, match=r"did not return \['y:0'\]; it returned \['other:0'\]"):
        master.run_step("h", {}, ["y:0"], [], NO_OPTIONS, None)


def test_deadline(server: ScriptedServer, master: GrpcMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenfold.session.grpc_master.ANSWER_GRACE_SECONDS", 0.0)
    over = threading.Event()

    def never(request: Any, context: Any) -> Any:
        context.add_callback(over.set)
        assert over.wait(10)
        return master_pb2.RunStepResponse()

    # it is connected before the time begins, to a task that does not say its name
    server.metadata = ()
    server.answer("RunStep", master_pb2.RunStepResponse())
    master.run_step("h", {}, [], ["x"], NO_OPTIONS, None)
    server.answer("RunStep", never)

    with pytest.raises(errors.DeadlineExceededError) as raised:
        master.run_step("h", {}, ["y:0"], [], NO_OPTIONS, 0.5)

    assert raised.value.message == (
        f"RunStep on {server.target} was not answered within 0.5 s: it accepts connections but sent no answer"
    )
    assert over.wait(10)


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenfold.session.grpc_master.ANSWER_GRACE_SECONDS", 0.0)
    master = GrpcMaster(f"grpc://127.0.0.1:{free_port()}")

    with pytest.raises(errors.DeadlineExceededError) as created:
        master.create_session(graph_pb2.GraphDef(), config_pb2.ConfigProto(), 0.3)
    with pytest.raises(
        errors.UnavailableError, match=f"RunStep failed: the server at {master.target} cannot be reached"
    ):
        master.run_step("h", {}, [], ["x"], NO_OPTIONS, None)
    master.close()

    assert created.value.message == (
        f"CreateSession on {master.target} was not answered within 0.3 s: "
        "connection refused, no server listens at that address"
    )


def test_a_host_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenfold.session.grpc_master.ANSWER_GRACE_SECONDS", 0.0)
    master = GrpcMaster("grpc://no-such-host.invalid:2222")

    with pytest.raises(errors.DeadlineExceededError, match=r"the host name 'no-such-host.invalid' does not resolve"):
        master.create_session(graph_pb2.GraphDef(), config_pb2.ConfigProto(), 0.3)
    master.close()


def test_create_session_waits_for_a_late_server() -> None:
    server = ScriptedServer()
    port = free_port()
    server.answer("CreateSession", master_pb2.CreateSessionResponse(session_handle="h"))
    master = GrpcMaster(f"grpc://127.0.0.1:{port}")
    with futures.ThreadPoolExecutor(1) as pool:
        created = pool.submit(master.create_session, graph_pb2.GraphDef(), config_pb2.ConfigProto(), 20)
        # Refused once, the client is waiting for the server.
        with pytest.raises(errors.UnavailableError):
            GrpcMaster(master.target).list_devices("", 5)
        server.start(port)
        assert created.result(20) == ("h", 0)
    master.close()
    server.stop()


def test_close_ends_running_calls(server: ScriptedServer, master: GrpcMaster) -> None:
    entered, over = threading.Event(), threading.Event()

    def never(request: Any, context: Any) -> Any:
        context.add_callback(over.set)
        entered.set()
        assert over.wait(10)
        return master_pb2.RunStepResponse()

    server.answer("RunStep", never)
    with futures.ThreadPoolExecutor(1) as pool:
        step = pool.submit(master.run_step, "h", {}, [], ["x"], NO_OPTIONS, None)
        assert entered.wait(10)
        master.close()
        with pytest.raises(errors.CancelledError, match="Step was cancelled by an explicit call"):
            step.result(10)
    with pytest.raises(errors.CancelledError):
        master.run_step("h", {}, [], ["x"], NO_OPTIONS, None)
    assert over.wait(10)


def test_ctrl_c_cancels_the_step_at_the_server(server: ScriptedServer, master: GrpcMaster) -> None:
    over = threading.Event()

    def interrupted(request: Any, context: Any) -> Any:
        context.add_callback(over.set)
        signal.raise_signal(signal.SIGINT)
        assert over.wait(10)
        return master_pb2.RunStepResponse()

    server.answer("RunStep", interrupted)

    with pytest.raises(KeyboardInterrupt) as raised:
        master.run_step("h", {}, [], ["x"], NO_OPTIONS, None)

    assert over.wait(10)
    # what Python prints of it ends in our file, without the frames of gRPC in which it arrived
    assert str(raised.traceback[-1].path) == grpc_master.__file__
    assert raised.value.__suppress_context__


def test_errors_name_the_task_once_it_is_known(server: ScriptedServer, master: GrpcMaster) -> None:
    server.answer("CreateSession", master_pb2.CreateSessionResponse(session_handle="h"))
    server.answer("RunStep", lambda request, context: context.abort(grpc.StatusCode.UNAVAILABLE, "going down"))
    master.create_session(graph_pb2.GraphDef(), config_pb2.ConfigProto(), None)

    with pytest.raises(errors.UnavailableError) as raised:
        master.run_step("h", {}, [], ["x"], NO_OPTIONS, None)

    assert f"{server.target} (/job:worker/replica:0/task:1)" in raised.value.message


class BlackHole:
    """A TCP relay to a server that can vanish: the connection stays open and nothing passes any more."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._vanished = threading.Event()
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def vanish(self) -> None:
        self._vanished.set()

    def stop(self) -> None:
        self._vanished.set()
        # A thread in accept() or recv() returns when its socket is shut down.
        for end in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._upstream))
                self._sockets += [near, far]
                for source, sink in ((near, far), (far, near)):
                    pump = threading.Thread(target=self._pump, args=(source, sink))
                    self._threads.append(pump)
                    pump.start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self._vanished.is_set():
                    sink.sendall(data)
            if not self._vanished.is_set():
                sink.shutdown(socket.SHUT_RDWR)


def test_two_sessions_at_once_over_a_new_connection(server: ScriptedServer) -> None:
    """The first answer makes a channel with pings; the call for the other session is under way on the one before."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(request: Any, context: Any) -> Any:
        begun.set()
        assert go_on.wait(20)
        return master_pb2.CreateSessionResponse(session_handle="slow")

    server.answer("CreateSession", slow)
    server.answer("CreateSession", master_pb2.CreateSessionResponse(session_handle="quick"))
    master = GrpcMaster(server.target)
    graph, config = graph_pb2.GraphDef(), config_pb2.ConfigProto()
    with futures.ThreadPoolExecutor(1) as pool:
        try:
            waiting = pool.submit(master.create_session, graph, config, 20)
            assert begun.wait(20)
            assert master.create_session(graph, config, 20)[0] == "quick"
            go_on.set()
            assert waiting.result(20)[0] == "slow"
        finally:
            go_on.set()
            master.close()


def test_a_host_that_vanishes_during_a_step(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    # The relay stands for another host, and the pings come faster than in production.
    monkeypatch.setattr("tenfold.session.grpc_master._PINGS", [(name, value // 20) for name, value in _PINGS])
    relay = BlackHole(server.port)
    master = GrpcMaster(f"grpc://127.0.0.1:{relay.port}")
    finish = threading.Event()

    def vanishing(request: Any, context: Any) -> Any:
        relay.vanish()
        assert finish.wait(20)
        return master_pb2.RunStepResponse()

    server.answer("CreateSession", master_pb2.CreateSessionResponse(session_handle="h"))
    server.answer("RunStep", vanishing)
    try:
        master.create_session(graph_pb2.GraphDef(), config_pb2.ConfigProto(), 10)
        with pytest.raises(errors.UnavailableError, match=r"/job:worker/replica:0/task:1.* has died"):
            master.run_step("h", {}, [], ["x"], NO_OPTIONS, 15)
    finally:
        finish.set()
        master.close()
        relay.stop()
