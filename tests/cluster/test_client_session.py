"""Sessions on a real server, three ways: the shared server of the process, a server of the process, and the network.

Graphs are built from raw operations, so that this stands on the client's graph and the services alone.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.ports import free_port
from tenfold.graph import Graph, Operation, Tensor
from tenfold.session import inprocess
from tenfold.session.session import Session
from tenfold.train.server_lib import Server
from tenfold_core import dtypes, errors
from tenfold_core.tensor_util import make_tensor_proto
from tenfold_protos import attr_value_pb2, config_pb2, tensor_shape_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    OpenSession = Callable[..., Session]

Attr = attr_value_pb2.AttrValue

NUMERIC = [
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "complex64", "complex128", "bool",
]  # fmt: skip


def kind(dtype: str) -> Attr:
    enum: Any = dtypes.as_dtype(dtype).as_datatype_enum
    return Attr(type=enum)


def const(graph: Graph, value: Any, dtype: str | None = None, name: str = "Const") -> Tensor:
    proto = make_tensor_proto(value, dtype)
    attrs = {"dtype": Attr(type=proto.dtype), "value": Attr(tensor=proto)}
    return graph.create_op("Const", [], name=name, attrs=attrs).outputs[0]


def placeholder(graph: Graph, dtype: str, name: str = "x") -> Tensor:
    attrs = {"dtype": kind(dtype), "shape": Attr(shape=tensor_shape_pb2.TensorShapeProto(unknown_rank=True))}
    return graph.create_op("Placeholder", [], name=name, attrs=attrs).outputs[0]


def unary(graph: Graph, op: str, tensor: Tensor, name: str | None = None) -> Tensor:
    return graph.create_op(op, [tensor], name=name, attrs={"T": kind(tensor.dtype.base_dtype.name)}).outputs[0]


def variable(graph: Graph, name: str, shape: tuple[int, ...] = (), container: str = "") -> Tensor:
    proto = tensor_shape_pb2.TensorShapeProto()
    for size in shape:
        proto.dim.add(size=size)
    attrs = {"dtype": kind("float32"), "shape": Attr(shape=proto), "container": Attr(s=container.encode())}
    return graph.create_op("VariableV2", [], name=name, attrs=attrs).outputs[0]


def assign(graph: Graph, ref: Tensor, value: Tensor) -> Operation:
    return graph.create_op("Assign", [ref, value], name=f"{ref.op.name}/Assign", attrs={"T": kind("float32")})


@pytest.fixture
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph


@pytest.fixture
def server() -> Iterator[Server]:
    with Server.create_local_server() as server:
        yield server


@pytest.fixture(params=["shared", "in process", "network"])
def opened(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenSession]:
    """Opens sessions one of the three ways; closes them, and the server, at the end."""
    sessions: list[Session] = []

    def open_at(target: str) -> OpenSession:
        def open_session(**arguments: Any) -> Session:
            sessions.append(Session(target, **arguments))
            return sessions[-1]

        return open_session

    if request.param == "shared":
        yield open_at("")
        for sess in sessions:
            sess.close()
        inprocess.stop_shared_server()
        return
    with Server.create_local_server() as server:
        if request.param == "network":
            monkeypatch.setattr(inprocess, "find", lambda target: None)
        yield open_at(server.target)
        for sess in sessions:
            sess.close()


def test_hello(server: Server, graph: Graph) -> None:
    hello = const(graph, "Hello, distributed TensorFlow!")

    with Session(server.target) as sess:
        assert sess.run(hello) == b"Hello, distributed TensorFlow!"
        (device,) = sess.list_devices()

    assert device.name == "/job:local/replica:0/task:0/device:CPU:0"
    assert server.target.startswith("grpc://localhost:")


@pytest.mark.parametrize("dtype", NUMERIC)
def test_numbers_go_in_and_come_out(opened: OpenSession, graph: Graph, dtype: str) -> None:
    x = placeholder(graph, dtype)
    y = unary(graph, "Identity", x)
    sess = opened()

    for value in (np.array([[1, 0], [1, 1]], dtype), np.zeros((0, 3), dtype), np.array(1, dtype)):
        result = sess.run(y, {x: value})
        assert result.dtype == np.dtype(dtype)
        assert np.shape(result) == value.shape
        assert np.array_equal(result, value)
        assert isinstance(result, np.ndarray if value.ndim else np.generic)


def test_strings_go_in_and_come_out(opened: OpenSession, graph: Graph) -> None:
    x = placeholder(graph, "string")
    y = unary(graph, "Identity", x)
    sess = opened()

    assert sess.run(y, {x: "é"}) == "é".encode()
    assert sess.run(y, {x: [["a", b"\x00\xff"], ["", "c" * 70000]]}).tolist() == [
        [b"a", b"\x00\xff"],
        [b"", b"c" * 70000],
    ]
    assert sess.run(y, {x: np.empty((2, 0), object)}).shape == (2, 0)


def test_results_belong_to_the_caller(opened: OpenSession, graph: Graph) -> None:
    three = const(graph, [3.0])
    x = placeholder(graph, "float32")
    y = unary(graph, "Identity", x)
    sess = opened()
    fed = np.zeros(2, np.float32)

    sess.run(three)[:] = 5
    sess.run(y, {x: fed})[:] = 7

    assert sess.run(three).tolist() == [3.0]
    assert fed.tolist() == [0.0, 0.0]


def test_a_fed_value_may_change_after_the_step(opened: OpenSession, graph: Graph) -> None:
    x = placeholder(graph, "float32")
    w = variable(graph, "w", (2,))
    store = assign(graph, w, x)
    sess = opened()
    fed = np.zeros(2, np.float32)

    sess.run(store, {x: fed})
    fed[:] = 9

    assert sess.run(w).tolist() == [0.0, 0.0]


def test_structures(opened: OpenSession, graph: Graph) -> None:
    a, b = const(graph, 1.0, name="a"), const(graph, [2, 3], name="b")
    sess = opened()

    result = sess.run({"k": (a, [b, "a:0"]), "op": a.op})

    assert result["k"][0] == 1.0
    assert result["k"][1][0].tolist() == [2, 3]
    assert result["k"][1][1] == 1.0
    assert result["op"] is None


def test_the_graph_grows_between_steps(opened: OpenSession, graph: Graph) -> None:
    a = const(graph, 4.0)
    sess = opened()

    assert sess.run(a) == 4.0
    assert sess.run(unary(graph, "Neg", a)) == -4.0
    assert sess.run(unary(graph, "Sqrt", a)) == 2.0


def test_feeding_in_the_middle_of_the_graph(opened: OpenSession, graph: Graph) -> None:
    a = const(graph, 4.0)
    b = unary(graph, "Neg", a)
    c = unary(graph, "Neg", b)
    sess = opened()

    assert sess.run(c, {b: 7.0}) == -7.0
    assert sess.run([b, c], {b: 7.0}) == [7.0, -7.0]


def test_make_callable(opened: OpenSession, graph: Graph) -> None:
    x = placeholder(graph, "float32")
    sess = opened()
    negate = sess.make_callable({"y": unary(graph, "Neg", x)}, [x])

    assert [negate(value)["y"] for value in (1.0, 2.0)] == [-1.0, -2.0]


@pytest.mark.parametrize("opened", ["in process", "network"], indirect=True)
def test_sessions_share_variables_by_container(opened: OpenSession) -> None:
    def program(container: str) -> tuple[Graph, Operation, Tensor]:
        graph = Graph()
        w = variable(graph, "w", container=container)
        return graph, assign(graph, w, const(graph, float(len(container)))), w

    graphs = {name: program(name) for name in ("", "exp0", "other")}
    for graph, init, _ in graphs.values():
        opened(graph=graph).run(init)

    # Each container has a `w` of its own, and it outlives the session that made it.
    for name, (graph, _, w) in graphs.items():
        assert opened(graph=graph).run(w) == len(name)


@pytest.mark.parametrize("opened", ["shared"], indirect=True)
def test_a_session_without_a_target_has_its_variables_to_itself(opened: OpenSession, graph: Graph) -> None:
    w = variable(graph, "w")
    init = assign(graph, w, const(graph, 3.0))
    opened().run(init)

    with pytest.raises(errors.FailedPreconditionError, match="Attempting to use uninitialized value w"):
        opened().run(w)


def test_isolated_sessions_share_nothing(opened: OpenSession, graph: Graph) -> None:
    w = variable(graph, "w")
    init = assign(graph, w, const(graph, 3.0))
    isolated = opened(config=config_pb2.ConfigProto(isolate_session_state=True))
    opened().run(init)

    with pytest.raises(errors.FailedPreconditionError, match="Attempting to use uninitialized value w"):
        isolated.run(w)


def test_reset_of_a_port_where_nobody_can_listen_ends_in_time() -> None:
    config = config_pb2.ConfigProto(operation_timeout_in_ms=50)
    with pytest.raises(errors.DeadlineExceededError, match="localhost:0"):
        Session.reset("grpc://localhost:0", ["test0"], config=config)


def test_reset_clears_one_container(server: Server) -> None:
    graph = Graph()
    kept, cleared = variable(graph, "kept", container="a"), variable(graph, "cleared", container="b")
    inits = [assign(graph, ref, const(graph, 1.0)) for ref in (kept, cleared)]
    old = Session(server.target, graph=graph)
    old.run(inits)

    Session.reset(server.target, ["b"])

    with pytest.raises(errors.AbortedError, match="is not found"):
        old.run(kept)
    old.close()
    with Session(server.target, graph=graph) as sess:
        assert sess.run(kept) == 1.0
        with pytest.raises(errors.FailedPreconditionError):
            sess.run(cleared)


def test_uninitialized_variable(opened: OpenSession, graph: Graph) -> None:
    w = variable(graph, "w")

    session = opened()
    with pytest.raises(errors.FailedPreconditionError, match="Attempting to use uninitialized value w") as raised:
        session.run(unary(graph, "Identity", w, "w/read"))

    assert raised.value.op is not None
    assert raised.value.op.name in ("w", "w/read")
    assert "was defined at:" in raised.value.message
    # without a target there is one task, which is not named
    assert raised.value.message.startswith("From /job:local/replica:0/task:0:\n") == bool(session.sess_str)


def test_placeholder_that_is_not_fed(opened: OpenSession, graph: Graph) -> None:
    x = placeholder(graph, "float32", "inputs/x")
    y = unary(graph, "Neg", x)
    sess = opened()

    with pytest.raises(
        errors.InvalidArgumentError, match="You must feed a value for placeholder tensor 'inputs/x' with dtype float"
    ) as raised:
        sess.run(y)

    assert raised.value.op is x.op
    assert raised.value.node_def.name == "inputs/x"
    # The server goes on.
    assert sess.run(y, {x: 2.0}) == -2.0


def test_impossible_device(opened: OpenSession, graph: Graph) -> None:
    with graph.device("/device:GPU:0"):
        a = const(graph, 1.0, name="a")
    sess = opened()

    with pytest.raises(errors.InvalidArgumentError, match=r"Cannot place 'a' on .*GPU:0") as raised:
        sess.run(a)

    assert raised.value.op is a.op
    assert opened(config=config_pb2.ConfigProto(allow_soft_placement=True)).run(a) == 1.0


def test_unknown_job(opened: OpenSession, graph: Graph) -> None:
    with graph.device("/job:nope/task:3"):
        a = const(graph, 1.0, name="a")

    with pytest.raises(errors.InvalidArgumentError, match="nope"):
        opened().run(a)


def test_operation_that_fails(opened: OpenSession, graph: Graph) -> None:
    x, y = placeholder(graph, "float32", "x"), placeholder(graph, "float32", "y")
    z = graph.create_op("Add", [x, y], name="sum", attrs={"T": kind("float32")}).outputs[0]
    sess = opened()

    with pytest.raises(errors.InvalidArgumentError, match=r"\{\{node sum\}\}") as raised:
        sess.run(z, {x: np.ones(2), y: np.ones(3)})

    assert raised.value.op is z.op
    assert sess.run(z, {x: 1, y: 2}) == 3.0


def test_many_threads_on_one_session(opened: OpenSession, graph: Graph) -> None:
    x = placeholder(graph, "float32")
    y = unary(graph, "Neg", x)
    sess = opened()
    results: dict[int, float] = {}

    def work(number: int) -> None:
        for _ in range(20):
            results[number] = float(sess.run(y, {x: number}))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert results == {number: -float(number) for number in range(4)}


def test_in_process_targets_skip_the_network(server: Server, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tenfold.session.grpc_master.GrpcMaster.__init__", lambda *_: pytest.fail("went to the network")
    )
    port = server.target.rpartition(":")[2]

    for target in (server.target, f"grpc://127.0.0.1:{port}", server.target.encode()):
        with Session(target, graph=graph) as sess:
            assert sess.run(const(graph, 1.0)) == 1.0


def test_a_stopped_server(graph: Graph) -> None:
    a = const(graph, 1.0)
    server = Server.create_local_server()
    sess = Session(server.target)
    sess.run(a)
    target = server.target
    server.stop()
    server.stop()
    server.join()

    with pytest.raises(errors.UnavailableError):
        sess.run(a)
    sess.close()
    assert inprocess.find(target) is None


def test_a_server_that_is_not_started(graph: Graph) -> None:
    server = Server.create_local_server(start=False)
    server.stop()
    with pytest.raises(errors.FailedPreconditionError, match="was not started"):
        server.join()

    server.start()
    server.start()
    with Session(server.target) as sess:
        assert sess.run(const(graph, 1.0)) == 1.0
    server.stop()


def test_port_in_use(server: Server) -> None:
    port = server.target.rpartition(":")[2]

    with pytest.raises(errors.UnknownError, match=f"(?i)could not start gRPC server.*{port}.*in use"):
        Server({"local": [f"localhost:{port}"]})


def test_listening_beyond_loopback_must_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENFOLD_INSECURE", raising=False)
    with pytest.raises(errors.PermissionDeniedError, match="insecure=True"):
        Server({"worker": ["worker0.example.com:0"]})

    server = Server({"worker": ["worker0.example.com:0"]}, start=False, insecure=True)
    assert server.server_def.job_name == "worker"
    server.stop()


def test_default_session_config(graph: Graph) -> None:
    with graph.device("/device:GPU:0"):
        a = const(graph, 1.0)

    with (
        Server.create_local_server(config_pb2.ConfigProto(allow_soft_placement=True)) as server,
        Session(server.target) as sess,
    ):
        assert sess.run(a) == 1.0


@pytest.mark.parametrize("network", [False, True])
def test_a_task_that_is_not_up_is_named(graph: Graph, monkeypatch: pytest.MonkeyPatch, network: bool) -> None:
    if network:
        monkeypatch.setattr(inprocess, "find", lambda target: None)
    a = const(graph, 1.0)
    cluster = {"ps": ["localhost:0"], "worker": [f"localhost:{free_port()}", f"localhost:{free_port()}"]}
    impatient = config_pb2.ConfigProto(operation_timeout_in_ms=300)
    with Server(cluster, "ps", 0) as server:
        with Session(server.target, config=impatient) as sess, pytest.raises(errors.DeadlineExceededError) as raised:
            sess.run(a)
        filtered = config_pb2.ConfigProto(device_filters=["/job:ps"])
        with Session(server.target, config=filtered) as sess:
            assert sess.run(a) == 1.0

    for index in (0, 1):
        assert f"/job:worker/replica:0/task:{index}" in raised.value.message
    assert "refused" in raised.value.message


@pytest.mark.parametrize("network", [False, True])
def test_two_tasks(graph: Graph, monkeypatch: pytest.MonkeyPatch, network: bool) -> None:
    if network:
        monkeypatch.setattr(inprocess, "find", lambda target: None)
    cluster = {"ps": [f"localhost:{free_port()}"], "worker": [f"localhost:{free_port()}"]}
    with graph.device("/job:ps/task:0"):
        w = variable(graph, "w", (2,))
        init = assign(graph, w, const(graph, [1.0, 2.0]))
    with graph.device("/job:worker/task:0"):
        y = unary(graph, "Neg", w)
        bad = graph.create_op("Add", [y, placeholder(graph, "float32")], name="bad", attrs={"T": kind("float32")})

    with Server(cluster, "ps", 0) as ps, Server(cluster, "worker", 0) as worker:
        for target in (ps.target, worker.target):
            with Session(target, graph=graph) as sess:
                sess.run(init)
                assert sess.run(y).tolist() == [-1.0, -2.0]
                with pytest.raises(errors.InvalidArgumentError, match="/job:worker/replica:0/task:0") as raised:
                    sess.run(bad, {"x:0": [1.0] * 3})
                assert raised.value.op is bad
                assert [device.name for device in sess.list_devices()] == [
                    "/job:ps/replica:0/task:0/device:CPU:0",
                    "/job:worker/replica:0/task:0/device:CPU:0",
                ][:: 1 if target == ps.target else -1]


def test_a_partial_run_feeds_and_fetches_in_parts(opened: OpenSession, graph: Graph) -> None:
    x, y = placeholder(graph, "float32"), placeholder(graph, "float32")
    first = unary(graph, "Neg", x)
    second = graph.create_op("Mul", [first, y], attrs={"T": kind("float32")}).outputs[0]
    session = opened()

    handle = session.partial_run_setup([first, second], [x, y])
    with pytest.raises(errors.InvalidArgumentError, match="can't be computed from the feeds that have been fed so far"):
        session.partial_run(handle, second, {x: 2.0})
    assert session.partial_run(handle, first, {x: 2.0}) == -2.0
    with pytest.raises(errors.InvalidArgumentError, match="has already been fed"):
        session.partial_run(handle, second, {x: 2.0, y: 1.0})
    assert session.partial_run(handle, second, {y: 5.0}) == -10.0
    with pytest.raises(errors.InvalidArgumentError, match="Must run PartialRunSetup"):
        session.partial_run(handle, second, {y: 5.0})


def test_step_deadline_is_kept_by_a_step_that_is_fast(opened: OpenSession, graph: Graph) -> None:
    metadata = config_pb2.RunMetadata()
    options = config_pb2.RunOptions(timeout_in_ms=20_000)

    assert opened().run(const(graph, 1.0), options=options, run_metadata=metadata) == 1.0
