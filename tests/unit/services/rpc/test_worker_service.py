"""A worker over gRPC: what each method hands on and answers; and numbers of requests, against a model."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.fake_calls import FakeCall, ask, ask_bytes
from support.machines import short_and_long
from tenfold_core import errors, graph_wire
from tenfold_core.access.roles import Role
from tenfold_kernels.resources.messages import decode, encode_into
from tenfold_protos import worker_pb2
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_protos.node_def_pb2 import NodeDef
from tenfold_protos.step_stats_pb2 import DeviceStepStats, StepStats
from tenfold_protos.tensorflow_server_pb2 import ServerDef
from tenfold_services.interfaces import ExecOptions, RunGraphResult
from tenfold_services.rpc.worker_service import REFUSED, RequestIds, worker_service

_REMEMBERED = 3


class RequestIdsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ids = RequestIds(_REMEMBERED)
        #: Oldest first.
        self.model: list[int] = []

    @rule(request_id=st.integers(0, 6))
    def check(self, request_id: int) -> None:
        if request_id in self.model:
            with pytest.raises(errors.AbortedError, match=f"same RunGraph request was received twice.* {request_id}"):
                self.ids.check(request_id, "RunGraph")
            return
        self.ids.check(request_id, "RunGraph")
        if request_id:
            self.model = [*self.model, request_id][-_REMEMBERED:]

    @invariant()
    def no_more_is_kept(self) -> None:
        assert len(self.ids._known) == len(self.model)


TestRequestIds, TestRequestIdsLong = short_and_long(RequestIdsMachine)


def test_a_number_that_came_before_is_refused() -> None:
    ids = RequestIds()
    for number in (7, 8, 0, 0):  # 0 is not a number
        ids.check(number, "RunGraph")

    with pytest.raises(errors.AbortedError, match="The same RunGraph request was received twice: request_id 7"):
        ids.check(7, "RunGraph")


def test_so_many_numbers_are_remembered() -> None:
    ids = RequestIds()
    for number in range(1, 100_001):
        ids.check(number, "RunGraph")
    with pytest.raises(errors.AbortedError):
        ids.check(1, "RunGraph")
    ids.check(100_001, "RunGraph")
    ids.check(1, "RunGraph")


# -- the service -------------------------------------------------------------------------------------------------------


class FakeTransfers:
    def __init__(self) -> None:
        self.enabled = False
        self.cleared = 0

    def take(self, step_id: int) -> StepStats:
        return StepStats(dev_stats=[DeviceStepStats(device=f"d{step_id}")])

    def clear(self) -> None:
        self.cleared += 1


class FakeWorker:
    """Writes down what it is asked, and answers as it is told."""

    task = "/job:ps/replica:0/task:0"

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.result: Any = RunGraphResult()
        self.value: Any = (np.float32(1.5), False)
        self.transfers = FakeTransfers()
        self.takes, self.gives = 1, 1

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any) -> Any:
            self.asked.append((name, *given))
            if name == "get_status":
                return [DeviceAttributes(name="cpu")]
            return "handle" if name == "register_graph" else None

        return call

    def program(self, session: str, handle: str) -> Any:
        self.asked.append(("program", session, handle))
        transfers = SimpleNamespace(feeds=range(self.takes), fetch_keys=range(self.gives))
        return SimpleNamespace(compiled=SimpleNamespace(transfers=transfers))

    async def run_graph(self, request: Any) -> Any:
        self.asked.append(("run_graph", *request))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    async def recv_tensor(self, *given: Any) -> Any:
        self.asked.append(("recv_tensor", *given))
        return self.value


@pytest.fixture
def worker() -> FakeWorker:
    return FakeWorker()


async def call(worker: FakeWorker, method: str, request: Any = None, context: Any = None) -> Any:
    request = request or getattr(worker_pb2, f"{method}Request")()
    response = getattr(worker_pb2, f"{method}Response")
    service = worker_service(cast("Any", worker), lambda: "here")
    return await ask(service, f"/tensorflow.WorkerService/{method}", request, response, context)


async def test_status_says_which_task_it_is(worker: FakeWorker) -> None:
    context = FakeCall()
    answer = await call(worker, "GetStatus", context=context)
    assert [device.name for device in answer.device_attributes] == ["cpu"]
    assert context.trailing == (("tenfold-task", FakeWorker.task),)


GRAPH, CONFIG = GraphDef(node=[NodeDef(name="n")]), ConfigProto(intra_op_parallelism_threads=3)


@pytest.mark.parametrize(
    ("method", "request_", "asked"),
    [
        (
            "CreateWorkerSession",
            worker_pb2.CreateWorkerSessionRequest(
                session_handle="s",
                server_def=ServerDef(job_name="ps"),
                isolate_session_state=True,
                master_task="m",
                master_incarnation=5,
            ),
            ("create_worker_session", "s", ServerDef(job_name="ps"), True, ("m", 5)),
        ),
        (
            "DeleteWorkerSession",
            worker_pb2.DeleteWorkerSessionRequest(session_handle="s"),
            ("delete_worker_session", "s"),
        ),
        (
            "RegisterGraph",
            worker_pb2.RegisterGraphRequest(
                session_handle="s", create_worker_session_called=True, graph_def=GRAPH, config_proto=CONFIG
            ),
            ("register_graph", "s", GRAPH, CONFIG),
        ),
        (
            "DeregisterGraph",
            worker_pb2.DeregisterGraphRequest(session_handle="s", graph_handle="g"),
            ("deregister_graph", "", "g"),
        ),
        ("CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=3), ("cleanup_graph", 3)),
        ("CleanupAll", worker_pb2.CleanupAllRequest(container=["a", "b"]), ("cleanup_all", ["a", "b"])),
    ],
)
async def test_a_call_hands_on_each_field(worker: FakeWorker, method: str, request_: Any, asked: Any) -> None:
    answer = await call(worker, method, request_)
    assert worker.asked == [asked]
    assert type(answer).__name__ == f"{method}Response"
    assert getattr(answer, "graph_handle", "") == ("handle" if method == "RegisterGraph" else "")


def run_request(**more: Any) -> worker_pb2.RunGraphRequest:
    fields = {"session_handle": "s", "create_worker_session_called": True, "graph_handle": "g", "step_id": 7, **more}
    return worker_pb2.RunGraphRequest(**fields)


@pytest.mark.parametrize("more", [-1, 0])
async def test_a_run_is_handed_on_and_answered(worker: FakeWorker, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    apart: list[Any] = []
    real = graph_wire.apart
    request = run_request(recv_key=["out"])
    encode_into(request.send.add(name="in").tensor, np.zeros(graph_wire.LARGE // 2, np.uint8))
    request.graph_handle = "g" * (graph_wire.LARGE // 2 - 1000)
    request.graph_handle += "g" * (graph_wire.LARGE + more - request.ByteSize())
    assert request.ByteSize() == graph_wire.LARGE + more
    stats = StepStats(dev_stats=[DeviceStepStats(device="d")])
    worker.result = RunGraphResult({"out": np.float32([1, 2])}, stats, [GRAPH])
    # what the whole request is read by is another matter
    monkeypatch.setattr(graph_wire, "apart", lambda work, *given: (apart.append(given), real(work, *given))[1])

    answer = await call(worker, "RunGraph", request)

    (_, *looked_up), (_, session, graph, step_id, feeds, fetches, options) = worker.asked
    assert looked_up == ["s", request.graph_handle]
    assert (session, graph, step_id, fetches, options) == ("s", request.graph_handle, 7, ["out"], ExecOptions())
    assert feeds["in"].shape == (graph_wire.LARGE // 2,)
    assert [(item.name, decode(item.tensor, "x").tolist()) for item in answer.recv] == [("out", [1, 2])]
    assert (answer.step_stats, list(answer.partition_graph)) == (stats, [GRAPH])
    assert (() in apart) == (more == 0)


@pytest.mark.parametrize(
    "name", ["record_timeline", "record_costs", "record_partition_graphs", "is_partial", "is_last_partial_run"]
)
async def test_a_run_hands_on_each_option(worker: FakeWorker, name: str) -> None:
    request = run_request()
    setattr(request.exec_opts if name.startswith("record") else request, name, True)
    await call(worker, "RunGraph", request)
    assert worker.asked[-1][-1] == ExecOptions(**{name: True})


@pytest.mark.parametrize(("feeds", "fetches"), [(2, 0), (0, 2)])
async def test_a_run_with_too_many_tensors_is_refused_before_they_are_decoded(
    worker: FakeWorker, feeds: int, fetches: int
) -> None:
    request = run_request(recv_key=["out"] * fetches)
    for _ in range(feeds):
        request.send.add(name="in").tensor.dtype = 99
    failure = await call(worker, "RunGraph", request)
    assert (failure.code, failure.text) == (
        3,
        f"A run with {feeds} feeds and {fetches} fetches of a graph that takes 1 and gives 1.",
    )


async def test_what_cannot_be_decoded_is_named(worker: FakeWorker) -> None:
    request = run_request()
    request.send.add(name="in").tensor.dtype = 1
    request.send[0].tensor.tensor_content = b"abc"
    failure = await call(worker, "RunGraph", request)
    assert failure.code == 3
    assert "The value sent for 'in'" in failure.text


@pytest.mark.parametrize("in_body", [True, False])
async def test_an_error_of_a_run_goes_where_the_master_looks_for_it(
    worker: FakeWorker, in_body: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[Any] = []
    monkeypatch.setattr(errors, "forget_frames", forgotten.append)
    worker.result = errors.not_found("no graph g")
    answer = await call(worker, "RunGraph", run_request(store_errors_in_response_body=in_body))
    if in_body:
        assert (answer.status_code, answer.status_error_message) == (5, "no graph g")
    else:
        assert (answer.code, answer.text) == (5, "no graph g")
    assert forgotten == [worker.result]


@pytest.mark.parametrize("method", ["RunGraph", "RecvTensor"])
async def test_a_request_that_comes_again_is_aborted(worker: FakeWorker, method: str) -> None:
    service = worker_service(cast("Any", worker), lambda: "here")
    response = getattr(worker_pb2, f"{method}Response")
    request = getattr(worker_pb2, f"{method}Request")(request_id=9)
    path = f"/tensorflow.WorkerService/{method}"

    first, second = [await ask(service, path, request, response) for _ in range(2)]

    assert isinstance(first, response)
    assert (second.code, second.text) == (
        10,
        f"The same {method} (Worker) request was received twice: request_id 9.",
    )


@pytest.mark.parametrize("is_dead", [False, True])
async def test_a_tensor_is_sent_or_is_dead(worker: FakeWorker, is_dead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 2.5)
    worker.value = (None, True) if is_dead else (np.int32([4, 5]), False)
    request = worker_pb2.RecvTensorRequest(step_id=3, rendezvous_key="k")

    answer = await call(worker, "RecvTensor", request)

    assert worker.asked == [("recv_tensor", 3, "k")]
    assert (answer.is_dead, answer.send_start_micros) == (is_dead, 2_500_000)
    value = decode(answer.tensor, "x")
    assert (value.dtype, value.tolist()) == ((np.float32, []) if is_dead else (np.int32, [4, 5]))


async def test_the_end_of_a_receive_is_heard_and_nothing_more(worker: FakeWorker) -> None:
    assert await call(worker, "MarkRecvFinished") == worker_pb2.MarkRecvFinishedResponse()
    assert worker.asked == []


async def test_transfers_are_logged_fetched_and_forgotten(worker: FakeWorker) -> None:
    log = worker.transfers
    await call(worker, "Logging", worker_pb2.LoggingRequest(enable_rpc_logging=True))
    assert (log.enabled, log.cleared) == (True, 0)
    answer = await call(worker, "Logging", worker_pb2.LoggingRequest(fetch_step_id=[4, 5], clear=True))
    assert [(step.step_id, step.step_stats.dev_stats[0].device) for step in answer.step] == [(4, "d4"), (5, "d5")]
    assert (log.enabled, log.cleared) == (True, 1)
    await call(worker, "Logging", worker_pb2.LoggingRequest(disable_rpc_logging=True))
    assert log.enabled is False


@pytest.mark.parametrize(
    ("method", "why"),
    [
        ("Tracing", "tracing is not implemented"),
        *((name, "collective operations are not implemented") for name in REFUSED if name != "Tracing"),
    ],
)
async def test_what_is_not_served_says_why(worker: FakeWorker, method: str, why: str) -> None:
    path = f"/tensorflow.WorkerService/{method}"
    failure = await ask_bytes(worker_service(cast("Any", worker), lambda: "here"), path, b"")
    assert failure.text == f"WorkerService.{method} is not served by here: {why}."


def test_each_method_has_its_role_and_its_name_in_the_audit_log(worker: FakeWorker) -> None:
    handlers = worker_service(cast("Any", worker), lambda: "here").handlers
    named = {path.rpartition("/")[2]: handler for path, handler in handlers.items()}
    readers = {name for name, handler in named.items() if handler.needs is Role.READ}
    assert readers == {"GetStatus", *REFUSED}
    assert {handler.needs for name, handler in named.items() if name not in readers} == {Role.REGISTER}
    actions = {name: handler.action for name, handler in named.items() if handler.action != name}
    assert actions == {"CreateWorkerSession": "join session", "DeleteWorkerSession": "leave session"}
    assert len(REFUSED) == 5
