"""Sessions of a token with the role run:untrusted: graphs that compute, on containers of their own, no more."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
import pytest

import tenfold as tf
from tenfold.graph.op_builder import apply_op
from tenfold.session import inprocess
from tenfold.session.grpc_master import GrpcMaster
from tenfold.session.link_master import LinkMaster
from tenfold_core import errors
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import Gate
from tenfold_core.access.roles import Role
from tenfold_core.opdefs import compute_only, table
from tenfold_protos import config_pb2, master_pb2, placement_pb2
from tenfold_services import server as server_module
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RUNNER, GUEST, OTHER_GUEST = "tenfold-of-a-runner", "tenfold-of-a-guest", "tenfold-of-another-guest"


@pytest.fixture(params=["http2", "grpcio"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A task that takes every connection for another user's; clients show the token of TENFOLD_TOKEN."""
    guests = "".join(f"{guest} role=run:untrusted\n" for guest in (GUEST, OTHER_GUEST))
    (tmp_path / "tokens").write_text(f"{RUNNER} role=run\n{guests}")
    monkeypatch.setenv("TENFOLD_GRPC", request.param)
    monkeypatch.setenv("TENFOLD_TOKEN", GUEST)
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))
    server = BackgroundServer(
        TaskServer({"ps": [""]}, "ps", 0, access=AccessSettings(token_file=str(tmp_path / "tokens")))
    )
    server.start()
    # not the server of this process, which is reached without a call
    yield server.target.replace("localhost", "127.0.0.1")
    server.stop(0)


def session_of(token: str, target: str, monkeypatch: pytest.MonkeyPatch) -> tf.Session:
    monkeypatch.setenv("TENFOLD_TOKEN", token)
    return tf.Session(target)


@pytest.fixture(autouse=True)
def _reached_by_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's own process would call it without showing a token."""
    monkeypatch.setattr(inprocess, "find", lambda target: None)


@pytest.fixture
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_a_graph_that_computes_runs_and_trains(target: str, graph: None) -> None:
    x = tf.placeholder(tf.float32, [None])
    w = tf.Variable(2.0)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum((w * x - 1.0) ** 2))
    queue = tf.FIFOQueue(4, [tf.float32], shapes=[()])
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        session.run(step, {x: [1.0]})
        assert session.run(w) == pytest.approx(1.8)
        session.run(queue.enqueue(7.0))
        assert session.run(queue.dequeue()) == 7.0
        loop = tf.while_loop(lambda i: i < 5, lambda i: i + 1, [tf.constant(0)])
        assert session.run(loop) == 5


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "ReadFile": (lambda: tf.read_file("/etc/hostname"), "uses files"),
    "WriteFile": (lambda: tf.write_file("/tmp/x", "x"), "uses files"),
    "MatchingFiles": (lambda: tf.matching_files("/*"), "uses files"),
    "TextLineReaderV2": (lambda: tf.TextLineReader().num_records_produced(), "uses files"),
    "SaveV2": (
        lambda: apply_op("SaveV2", prefix="p", tensor_names=["v"], shape_and_slices=[""], tensors=[tf.constant(1.0)]),
        "uses files",
    ),
    "PyFunc": (lambda: tf.py_func(lambda: np.float32(1), [], tf.float32), "calls a function of a program"),
    "SummaryWriter": (lambda: apply_op("SummaryWriter", shared_name="", container=""), "writes files"),
    "InitializeTableFromTextFileV2": (
        lambda: tf.contrib.lookup.index_table_from_file("/etc/hostname").init,
        "reads a file",
    ),
    "Print": (lambda: tf.Print(1.0, [1.0]), "the task's log"),
    "Abort": (lambda: apply_op("Abort", error_msg="", exit_without_error=False), "ends the task"),
    "_Send": (
        lambda: apply_op(
            "_Send",
            name="send",
            tensor=tf.constant(1.0),
            tensor_name="t",
            send_device="/job:ps/task:0/cpu:0",
            send_device_incarnation=1,
            recv_device="/job:ps/task:0/cpu:0",
            client_terminated=False,
        ),
        "runtime's own",
    ),
}


@pytest.mark.parametrize("op", REFUSED)
def test_an_op_that_does_more_is_refused_by_its_name(target: str, graph: None, op: str) -> None:
    build, why = REFUSED[op]
    fetch = build()
    message = rf"is a {op}, which.*run:untrusted.*{why}.*role run is needed"
    with tf.Session(target) as session, pytest.raises(errors.PermissionDeniedError, match=message):
        session.run(fetch)


def test_a_graph_is_looked_at_when_it_grows_too(target: str, graph: None) -> None:
    with tf.Session(target) as session:
        assert session.run(tf.constant(1)) == 1
        with pytest.raises(errors.PermissionDeniedError, match="ReadFile"):
            session.run(tf.read_file("/etc/hostname"))


def test_variables_of_other_sessions_are_not_seen(target: str, graph: None, monkeypatch: pytest.MonkeyPatch) -> None:
    w = tf.Variable(42.0, name="w")
    with session_of(RUNNER, target, monkeypatch) as trusted:
        trusted.run(w.initializer)
        with session_of(GUEST, target, monkeypatch) as guest:
            with pytest.raises(errors.FailedPreconditionError, match="uninitialized"):
                guest.run(w)
            guest.run(w.assign(0.0))
        assert trusted.run(w) == 42.0


OF_A_SESSION = {
    "ExtendSession": master_pb2.ExtendSessionRequest,
    "PartialRunSetup": master_pb2.PartialRunSetupRequest,
    "RunStep": master_pb2.RunStepRequest,
    "CloseSession": master_pb2.CloseSessionRequest,
    "MakeCallable": master_pb2.MakeCallableRequest,
    "RunCallable": master_pb2.RunCallableRequest,
    "ReleaseCallable": master_pb2.ReleaseCallableRequest,
}


@pytest.mark.parametrize("method", OF_A_SESSION)
def test_another_ones_session_is_not_used_with_its_handle(
    target: str, graph: None, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    c = tf.constant(1)
    with session_of(RUNNER, target, monkeypatch) as trusted:
        assert trusted.run(c) == 1
        request = OF_A_SESSION[method](session_handle=trusted._handle)
        metadata = (("authorization", f"Bearer {GUEST}"),)
        with grpc.insecure_channel(target.removeprefix("grpc://")) as channel:
            call = channel.unary_unary(f"/tensorflow.MasterService/{method}")
            with pytest.raises(grpc.RpcError, match="not opened by the role run:untrusted") as caught:
                call(request.SerializeToString(), timeout=20, metadata=metadata)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert trusted.run(c) == 1


@pytest.mark.parametrize("method", [*OF_A_SESSION, "GetPlacement"])
def test_another_guest_s_session_is_not_used_with_its_handle(
    target: str, graph: None, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A handle is no secret: tasks report those of their sessions, which whoever may read sees."""
    w = tf.Variable(42.0, name="w")
    with session_of(GUEST, target, monkeypatch) as guest:
        guest.run(w.initializer)
        service = "tenfold.PlacementService" if method == "GetPlacement" else "tensorflow.MasterService"
        message = OF_A_SESSION.get(method, placement_pb2.GetPlacementRequest)
        request = message(session_handle=guest._handle).SerializeToString()
        metadata = (("authorization", f"Bearer {OTHER_GUEST}"),)
        with grpc.insecure_channel(target.removeprefix("grpc://")) as channel:
            call = channel.unary_unary(f"/{service}/{method}")
            with pytest.raises(grpc.RpcError, match="was opened by another caller") as caught:
                call(request, timeout=20, metadata=metadata)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        other = LinkMaster(target, access=AccessSettings(token=OTHER_GUEST))
        with pytest.raises(errors.PermissionDeniedError, match="was opened by another caller"):
            other.run_step(guest._handle, {}, [w.name], [], config_pb2.RunOptions(), 20.0)
        other.close()
        # who may run any graph, and asks for a lesser role, acts for others: a control service does
        acting = LinkMaster(target, access=AccessSettings(token=RUNNER), as_role=Role.RUN_UNTRUSTED)
        acting.run_step(guest._handle, {}, [], ["w"], config_pb2.RunOptions(), 20.0)
        acting.close()
        assert guest.run(w) == 42.0


def test_a_cluster_of_its_own_and_a_reset_are_refused(target: str, graph: None) -> None:
    config = tf.ConfigProto()
    config.cluster_def.job.add(name="ps").tasks[0] = "127.0.0.1:1"
    with tf.Session(target, config=config) as session, pytest.raises(errors.PermissionDeniedError, match="cluster_def"):
        session.run(tf.constant(1))
    with pytest.raises(errors.PermissionDeniedError, match="needs the role run"):
        tf.Session.reset(target)


def test_the_table_names_ops_that_there_are() -> None:
    assert [op for op in compute_only._OTHERS if not table.has(op)] == []
    for op in table.names():
        family = table.family_of(op)
        if family in ("script", "sendrecv", "dataset", "parquet"):
            assert compute_only.refusal(op), op
    for op in ("ReadFile", "RestoreV2", "WriteFile", "WholeFileReaderV2", "CreateSummaryFileWriter", "PyFuncStateless"):
        assert compute_only.refusal(op), op
    assert compute_only.refusal("NoSuchOp") == "it is not known here"
    assert compute_only.refusal("MatMul") is None


def test_steps_go_over_a_link_for_sessions_of_his_own(
    target: str, graph: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    with session_of(RUNNER, target, monkeypatch) as trusted, tf.Session(target) as guest:
        assert trusted.run(y, {x: 0}) == 1
        monkeypatch.setenv("TENFOLD_TOKEN", GUEST)
        for value in range(4):
            assert trusted.run(y, {x: value}) == value + 1
            assert guest.run(y, {x: value}) == value + 1
        master = guest._master
        assert isinstance(master, LinkMaster)
        assert master.link is not None
        assert trusted._handle
        refused = pytest.raises(errors.PermissionDeniedError, match="not opened by the role run:untrusted")
        with refused:
            master.run_step(trusted._handle, {x.name: np.float32(1)}, [y.name], [], config_pb2.RunOptions(), 20.0)
        assert guest.run(y, {x: 7.0}) == 8


def test_a_call_may_ask_as_somebody_of_a_lesser_role(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the control service does for its callers."""
    with tf.Graph().as_default() as reads:
        tf.read_file("/etc/hostname")
    lesser = LinkMaster(target, access=AccessSettings(token=RUNNER), as_role=Role.RUN_UNTRUSTED)
    with pytest.raises(errors.PermissionDeniedError, match="is a ReadFile"):
        lesser.create_session(reads.as_graph_def(), config_pb2.ConfigProto(), 20.0)
    handle, _ = lesser.create_session(tf.Graph().as_graph_def(), config_pb2.ConfigProto(), 20.0)
    with pytest.raises(errors.PermissionDeniedError, match="needs the role run"):
        lesser.reset([], 20.0)
    lesser.close_session(handle, 20.0)
    lesser.close()

    # no role is gained by asking for it
    more = GrpcMaster(target, access=AccessSettings(token=GUEST), as_role=Role.ADMIN)
    with pytest.raises(errors.PermissionDeniedError, match="needs the role run"):
        more.reset([], 20.0)
    more.close()


def test_a_role_that_there_is_not(target: str) -> None:
    metadata = (("authorization", f"Bearer {RUNNER}"), ("tenfold-role", "king"))
    with grpc.insecure_channel(target.removeprefix("grpc://")) as channel:
        call = channel.unary_unary("/tensorflow.MasterService/ListDevices")
        with pytest.raises(grpc.RpcError, match="'king' is no role") as caught:
            call(b"", timeout=20, metadata=metadata)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
