"""Accepted when: bad input of every kind gets a clear error of the right class, and the server serves the next request.

The same cluster is asked over real gRPC and over REST; graphs and steps are the rows of bad_input.py. After every test
a session that was opened before all of them runs a step.

    test ──gRPC──► worker:0 ──► ps:0
         ──REST──► control service ──gRPC──► worker:0
"""

from __future__ import annotations

import base64
import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import httpx
import numpy as np
import pytest

import tenfold as tf
from support.task_processes import CLI, PATIENCE, task_name
from tenfold.cli.local import LocalCluster
from tenfold_core import tensor_util
from tenfold_protos import graph_pb2, master_pb2, types_pb2

from .bad_input import BAD_GRAPHS, BAD_STEPS, INVALID, NOT_FOUND, BadGraph, BadStep, X, Y, good_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON, PROTOBUF = "application/json", "application/x-protobuf"
MASTER, WORKER = "/tensorflow.MasterService/", "/tensorflow.WorkerService/"
#: Bytes that are no message: the second field announces more than there is.
RUBBISH = b"\x0a\xff\xff\xff\xff\x0f" + bytes(range(64))


class Rpc:
    """A task's services, called with bytes."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)

    def __call__(self, path: str, request: bytes) -> bytes:
        answer: bytes = self._channel.unary_unary(path)(request, timeout=PATIENCE)
        return answer

    def refused(self, path: str, request: bytes) -> tuple[str, str]:
        """(code, message) of a call that must fail."""
        with pytest.raises(grpc.RpcError) as caught:
            self(path, request)
        error: Any = caught.value
        return error.code().name, error.details()

    def close(self) -> None:
        self._channel.close()


class Sessions(NamedTuple):
    """One session at the master, and one at the control service, of `good_graph`."""

    handle: str
    path: str


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(ps=1, workers=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def rpc(cluster: LocalCluster) -> Iterator[Rpc]:
    rpc = Rpc(cluster.addresses["worker", 0])
    yield rpc
    rpc.close()


@pytest.fixture(scope="module")
def rest(cluster: LocalCluster) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=cluster.control_url, timeout=PATIENCE, trust_env=False) as rest:
        yield rest


@pytest.fixture(scope="module")
def sessions(rpc: Rpc, rest: httpx.Client) -> Sessions:
    graph = good_graph()
    request = master_pb2.CreateSessionRequest(graph_def=graph).SerializeToString()
    created = master_pb2.CreateSessionResponse.FromString(rpc(MASTER + "CreateSession", request))
    init = master_pb2.RunStepRequest(session_handle=created.session_handle, target=["init"])
    rpc(MASTER + "RunStep", init.SerializeToString())
    body = {"cluster": "default", "job": "worker", "index": 0, "graph_def": base64_of(graph)}
    session = rest.post("/v1/sessions", json=body).raise_for_status().json()
    return Sessions(created.session_handle, f"/v1/sessions/{session['name']}")


@pytest.fixture(autouse=True)
def the_next_request(rpc: Rpc, rest: httpx.Client, sessions: Sessions) -> Iterator[None]:
    """After each test: a good step over gRPC and one over REST."""
    yield
    request = master_pb2.RunStepRequest(session_handle=sessions.handle, fetch=["y:0"])
    request.feed.add(name="x:0", tensor=X)
    answer = master_pb2.RunStepResponse.FromString(rpc(MASTER + "RunStep", request.SerializeToString()))
    assert tensor_util.make_ndarray(answer.tensor[0].tensor).tolist() == Y
    x = {"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [1, 2, 3, 4]}
    step = rest.post(f"{sessions.path}/steps", json={"inputs": [x], "outputs": ["y"]})
    assert step.json()["outputs"][0]["data"] == np.ravel(Y).tolist()


def base64_of(graph_def: graph_pb2.GraphDef) -> str:
    return base64.b64encode(graph_def.SerializeToString()).decode()


def problem(answer: httpx.Response) -> tuple[str, str]:
    """(code, detail) of an answer that must be a problem."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    members = answer.json()
    assert answer.status_code == members["status"]
    assert answer.status_code >= 400
    return members["code"], members["detail"]


def assert_says(said: tuple[str, str], code: str, fragments: tuple[str, ...]) -> None:
    assert said[0] == code, said
    assert [each for each in fragments if each not in said[1]] == [], said


class TestGraph:
    @pytest.mark.parametrize("bad", BAD_GRAPHS, ids=lambda bad: bad.name)
    def test_over_grpc(self, rpc: Rpc, bad: BadGraph) -> None:
        request = master_pb2.CreateSessionRequest(graph_def=bad.graph_def).SerializeToString()

        assert_says(rpc.refused(MASTER + "CreateSession", request), bad.code, bad.says)

    @pytest.mark.parametrize("bad", BAD_GRAPHS, ids=lambda bad: bad.name)
    def test_over_rest(self, rest: httpx.Client, bad: BadGraph) -> None:
        body = {"cluster": "default", "job": "worker", "graph_def": base64_of(bad.graph_def)}

        assert_says(problem(rest.post("/v1/sessions", json=body)), bad.code, bad.says)

    @pytest.mark.parametrize("bad", BAD_GRAPHS, ids=lambda bad: bad.name)
    def test_as_an_extension(self, rpc: Rpc, sessions: Sessions, bad: BadGraph) -> None:
        request = master_pb2.ExtendSessionRequest(session_handle=sessions.handle, graph_def=bad.graph_def)

        assert_says(rpc.refused(MASTER + "ExtendSession", request.SerializeToString()), bad.code, bad.says)

    def test_a_node_that_the_session_has_already(self, rpc: Rpc, sessions: Sessions) -> None:
        request = master_pb2.ExtendSessionRequest(session_handle=sessions.handle, graph_def=good_graph())

        said = rpc.refused(MASTER + "ExtendSession", request.SerializeToString())

        assert_says(said, INVALID, ("created by a previous call", "{{node "))

    def test_a_version_that_is_not_the_sessions(self, rpc: Rpc, sessions: Sessions) -> None:
        request = master_pb2.ExtendSessionRequest(session_handle=sessions.handle, current_graph_version=7)

        said = rpc.refused(MASTER + "ExtendSession", request.SerializeToString())

        assert_says(said, "ABORTED", ("Current version is 0 but caller expected 7",))

    def test_a_chain_as_long_as_a_recursion_is_not_deep(self, rpc: Rpc) -> None:
        """Not bad at all, but long: 20,000 nodes one after the other."""
        graph = graph_pb2.GraphDef()
        graph.node.add(name="n0", op="Placeholder").attr["dtype"].type = types_pb2.DT_FLOAT
        for index in range(1, 20_000):
            graph.node.add(name=f"n{index}", op="Identity", input=[f"n{index - 1}"]).attr["T"].type = types_pb2.DT_FLOAT
        request = master_pb2.CreateSessionRequest(graph_def=graph).SerializeToString()
        handle = master_pb2.CreateSessionResponse.FromString(rpc(MASTER + "CreateSession", request)).session_handle
        step = master_pb2.RunStepRequest(session_handle=handle, fetch=["n19999:0"])
        step.feed.add(name="n0:0", tensor=X)

        answer = master_pb2.RunStepResponse.FromString(rpc(MASTER + "RunStep", step.SerializeToString()))

        assert tensor_util.make_ndarray(answer.tensor[0].tensor).tolist() == [[1, 2], [3, 4]]
        rpc(MASTER + "CloseSession", master_pb2.CloseSessionRequest(session_handle=handle).SerializeToString())


class TestStep:
    @pytest.mark.parametrize("bad", BAD_STEPS, ids=lambda bad: bad.name)
    def test_over_grpc(self, rpc: Rpc, sessions: Sessions, bad: BadStep) -> None:
        request = bad.request
        request.session_handle = sessions.handle

        assert_says(rpc.refused(MASTER + "RunStep", request.SerializeToString()), bad.code, bad.says)

    @pytest.mark.parametrize("bad", BAD_STEPS, ids=lambda bad: bad.name)
    def test_with_the_error_in_the_answer(self, rpc: Rpc, sessions: Sessions, bad: BadStep) -> None:
        request = bad.request
        request.session_handle, request.store_errors_in_response_body = sessions.handle, True

        answer = master_pb2.RunStepResponse.FromString(rpc(MASTER + "RunStep", request.SerializeToString()))

        assert tf.errors.from_code(answer.status_code, "").code == getattr(tf.errors, bad.code)
        assert [each for each in bad.says if each not in answer.status_error_message] == []

    @pytest.mark.parametrize("bad", BAD_STEPS, ids=lambda bad: bad.name)
    def test_over_rest(self, rest: httpx.Client, sessions: Sessions, bad: BadStep) -> None:
        body = bad.request.SerializeToString()

        answer = rest.post(f"{sessions.path}/steps", content=body, headers={"Content-Type": PROTOBUF})

        assert_says(problem(answer), bad.code, bad.says)

    def test_a_session_that_is_not_there(self, rpc: Rpc, rest: httpx.Client) -> None:
        request = master_pb2.RunStepRequest(session_handle="0123456789abcdef", fetch=["y:0"]).SerializeToString()

        over_grpc = rpc.refused(MASTER + "RunStep", request)
        over_rest = problem(rest.post("/v1/sessions/nobody/steps", json={"outputs": ["y"]}))

        assert_says(over_grpc, "ABORTED", ("Session 0123456789abcdef is not found",))
        assert_says(over_rest, NOT_FOUND, ("'nobody'",))

    def test_a_tensor_fed_twice(self, rpc: Rpc, rest: httpx.Client, sessions: Sessions) -> None:
        request = master_pb2.RunStepRequest(session_handle=sessions.handle, fetch=["y:0"])
        for _ in range(2):
            request.feed.add(name="x:0", tensor=X)

        body = request.SerializeToString()

        over_grpc = rpc.refused(MASTER + "RunStep", body)
        over_rest = problem(rest.post(f"{sessions.path}/steps", content=body, headers={"Content-Type": PROTOBUF}))

        assert_says(over_grpc, INVALID, ('"x:0" fed more than once',))
        assert_says(over_rest, INVALID, ('"x:0" fed more than once',))


class TestClient:
    """The same over a session of the library, where the error knows the operation and where it was made."""

    def test_a_step_that_fails(self, cluster: LocalCluster) -> None:
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            n = tf.placeholder(tf.int32, [], name="n")
            division = tf.floordiv(7, n, name="division")
            with tf.Session("grpc://" + cluster.addresses["worker", 0]) as sess:
                with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero") as caught:
                    sess.run(division, {n: 0})
                assert sess.run(division, {n: 2}) == 3

        assert caught.value.op is division.op
        assert caught.value.node_def is not None
        assert f"From {task_name('ps', 0)}:" in caught.value.message
        assert os.path.basename(__file__) in caught.value.message

    def test_what_the_client_itself_refuses(self, cluster: LocalCluster) -> None:
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [2], name="x")
            with tf.Session("grpc://" + cluster.addresses["worker", 0]) as sess:
                with pytest.raises(ValueError, match=r"Cannot feed value of shape \(3,\) for Tensor '?x:0'?"):
                    sess.run(x + 1.0, {x: [1, 2, 3]})
                with pytest.raises(ValueError, match="could not convert string to float"):
                    sess.run(x + 1.0, {x: ["a", "b"]})
                with pytest.raises(ValueError, match="nobody"):
                    sess.run("nobody:0")


class TestBytes:
    """What is no message, no method, no JSON."""

    @pytest.mark.parametrize(
        "method", ["CreateSession", "ExtendSession", "RunStep", "CloseSession", "ListDevices", "Reset"]
    )
    def test_rubbish_for_the_master(self, rpc: Rpc, method: str) -> None:
        said = rpc.refused(MASTER + method, RUBBISH)

        assert_says(said, INVALID, (f"{method}: the request is no valid {method}Request message",))

    @pytest.mark.parametrize("method", ["RegisterGraph", "RunGraph", "RecvTensor", "CreateWorkerSession", "CleanupAll"])
    def test_rubbish_for_the_worker(self, rpc: Rpc, method: str) -> None:
        said = rpc.refused(WORKER + method, RUBBISH)

        assert_says(said, INVALID, (f"{method}: the request is no valid {method}Request message",))

    @pytest.mark.parametrize("path", [MASTER + "Nonsense", WORKER + "Nonsense", "/tensorflow.NoService/RunStep"])
    def test_no_such_method(self, rpc: Rpc, path: str) -> None:
        assert rpc.refused(path, b"")[0] == "UNIMPLEMENTED"

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            (b"{not json", "not JSON"),
            (b"", "JSON"),
            (b"\xff\xfe", "UTF-8"),
            (b"[1, 2]", "object"),
            (b"null", "object"),
            (b'{"cluster": NaN}', "NaN"),
            (b"[" * 100_000, "JSON"),
            (b'{"cluster": "default", "colour": 1}', "colour"),
            (b'{"graph_def": ""}', "cluster"),
            (b'{"cluster": "default", "graph_def": "not base64!"}', "base64"),
            (b'{"cluster": "default", "graph_def": "' + base64.b64encode(RUBBISH) + b'"}', "GraphDef"),
            (b'{"cluster": "default", "graph_def": {"node": [{"nmae": "x"}]}}', "nmae"),
            (b'{"cluster": "default", "index": 0}', "job"),
            (b'{"cluster": "default", "job": "worker", "index": -1}', "index"),
        ],
    )
    def test_a_session_body(self, rest: httpx.Client, body: bytes, says: str) -> None:
        answer = rest.post("/v1/sessions", content=body, headers={"Content-Type": JSON})

        assert_says(problem(answer), INVALID, (says,))

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            (b"{not json", "not JSON"),
            (b"7", "object"),
            (b'{"input": []}', "'input'"),
            (b'{"inputs": {}}', "inputs"),
            (b'{"inputs": [{"name": "x", "datatype": "FP33", "shape": [1], "data": [1]}]}', "FP33"),
            (b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [3], "data": [1]}]}', "3"),
            (b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1], "data": [1]}]}', "shape"),
            (b'{"inputs": [{"name": "x", "datatype": "INT32", "shape": [1], "data": ["a"]}]}', "INT32"),
            (b'{"inputs": [{"name": "x", "datatype": "UINT8", "shape": [1], "data": [256]}]}', "256"),
            (b'{"inputs": [{"datatype": "FP32", "shape": [1], "data": [1]}]}', "name"),
            (b'{"outputs": [7]}', "outputs"),
            (b'{"outputs": ["y"], "options": {"timeout_in_ms": "soon"}}', "options"),
        ],
    )
    def test_a_step_body(self, rest: httpx.Client, sessions: Sessions, body: bytes, says: str) -> None:
        answer = rest.post(f"{sessions.path}/steps", content=body, headers={"Content-Type": JSON})

        assert_says(problem(answer), INVALID, (says,))

    def test_rubbish_as_protobuf(self, rest: httpx.Client, sessions: Sessions) -> None:
        headers = {"Content-Type": PROTOBUF}

        creation = problem(rest.post("/v1/sessions?cluster=default", content=RUBBISH, headers=headers))
        step = problem(rest.post(f"{sessions.path}/steps", content=RUBBISH, headers=headers))

        assert_says(creation, INVALID, ("CreateSessionRequest",))
        assert_says(step, INVALID, ("RunStepRequest",))

    def test_a_content_type_that_is_not_taken(self, rest: httpx.Client) -> None:
        answer = rest.post("/v1/sessions", content=b"{}", headers={"Content-Type": "text/plain"})

        assert answer.status_code == 415
        assert_says(problem(answer), INVALID, ("text/plain", JSON))


class TestRegistry:
    def test_a_second_task_on_a_taken_index(self, cluster: LocalCluster, rest: httpx.Client) -> None:
        before = rest.get("/v1/clusters/default/jobs/worker/tasks/0").json()

        answer = rest.put(
            "/v1/clusters/default/tasks/worker/0", json={"address": "127.0.0.1:1", "incarnation": "other"}
        )
        cluster.children.start(
            "second", [*CLI, "task", "--job", "worker", "--index", "0", "--control", cluster.control_url], stage=1
        )
        ended = cluster.children.wait_for_exit(["second"], PATIENCE)

        assert answer.status_code == 409
        assert_says(problem(answer), "ALREADY_EXISTS", (task_name("worker", 0), before["address"]))
        assert ended == ("second", 1)
        assert f"AlreadyExistsError: {task_name('worker', 0)}" in str(cluster.children.failure("second"))
        after = rest.get("/v1/clusters/default/jobs/worker/tasks/0").json()
        assert (after["state"], after["incarnation"]) == ("ready", before["incarnation"])

    @pytest.mark.parametrize(
        ("method", "path", "body", "status", "code", "says"),
        [
            ("PUT", "/tasks/worker/9", {"address": "127.0.0.1:1"}, 404, NOT_FOUND, "index 9"),
            ("PUT", "/tasks/chief/0", {"address": "127.0.0.1:1"}, 404, NOT_FOUND, "chief"),
            ("PUT", "/tasks/worker/-1", {"address": "127.0.0.1:1"}, 404, NOT_FOUND, "index -1"),
            ("PUT", "/tasks/worker/0", {"address": "no address"}, 400, INVALID, "no address"),
            ("PUT", "/tasks/worker/0", {}, 400, INVALID, "address"),
            ("POST", "/tasks/worker:claim", {"address": "127.0.0.1:1"}, 429, "RESOURCE_EXHAUSTED", "worker"),
            ("PUT", "", {"jobs": {"worker": 0}}, 400, INVALID, "worker"),
            ("PUT", "", {"jobs": {"no good": 1}}, 400, INVALID, "no good"),
            ("GET", "/spec?wait=soon", None, 400, INVALID, "soon"),
            ("GET", "/jobs/chief", None, 404, NOT_FOUND, "chief"),
            ("GET", "/jobs/worker/tasks/9", None, 404, NOT_FOUND, "9"),
            ("GET", "/nonsense", None, 404, NOT_FOUND, "/v1/clusters/default/nonsense"),
            ("PATCH", "/spec", None, 405, "UNIMPLEMENTED", "PATCH"),
        ],
    )
    def test_registry_requests(
        self, rest: httpx.Client, method: str, path: str, body: Any, status: int, code: str, says: str
    ) -> None:
        content = None if body is None else json.dumps(body).encode()

        answer = rest.request(
            method, f"/v1/clusters/default{path}", content=content, headers={"Content-Type": JSON} if content else {}
        )

        assert_says(problem(answer), code, (says,))
        assert answer.status_code == status

    def test_a_cluster_that_is_not_there(self, rest: httpx.Client) -> None:
        assert_says(problem(rest.get("/v1/clusters/nobody")), NOT_FOUND, ("nobody",))
        assert_says(problem(rest.post("/v1/sessions", json={"cluster": "nobody"})), NOT_FOUND, ("nobody",))

    def test_a_lease_that_is_not_there(self, rest: httpx.Client) -> None:
        assert_says(problem(rest.post("/v1/leases/nobody:renew")), NOT_FOUND, ("nobody",))
