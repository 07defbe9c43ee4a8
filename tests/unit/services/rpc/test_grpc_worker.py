"""Another task's worker over gRPC, on a scripted channel: what is asked, by when, again, and when it is given up."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
import pytest
from grpc import aio

from tenfold_core import errors, traffic
from tenfold_core.access.credentials import NO_CREDENTIALS, Credentials
from tenfold_kernels.resources.messages import decode, encode_into
from tenfold_protos import worker_pb2
from tenfold_protos.config_pb2 import ConfigProto, GraphOptions
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_protos.step_stats_pb2 import DeviceStepStats, StepStats
from tenfold_protos.tensorflow_server_pb2 import ServerDef
from tenfold_services.interfaces import ExecOptions, RunRequest
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.rpc import grpc_worker as module
from tenfold_services.rpc.grpc_worker import GrpcWorker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TASK = "/job:ps/replica:0/task:0"
LIMITS = replace(DEFAULT_LIMITS, setup_seconds=30.0, cleanup_seconds=10.0, probe_every_seconds=1000.0)
#: For tests of the probe.
QUICK = replace(LIMITS, probe_every_seconds=0.0, probe_answer_seconds=7.0)
OURS = (("tenfold-task", TASK),)


def broken(code: Any = grpc.StatusCode.UNAVAILABLE, details: str = "Connection refused") -> aio.AioRpcError:
    return aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), details)


class Answer:
    """A call under way: ends with a message, an error, or what a future brings."""

    def __init__(self, outcome: Any, trailing: Any) -> None:
        self._outcome, self._trailing = outcome, trailing

    def __await__(self) -> Any:
        async def wait() -> Any:
            waits = isinstance(self._outcome, asyncio.Future)
            outcome = await self._outcome if waits else self._outcome
            if isinstance(outcome, type):
                outcome = await outcome()
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome() if callable(outcome) else outcome

        return wait().__await__()

    async def trailing_metadata(self) -> Any:
        return self._trailing


class FakeChannel:
    """Answers each method with the next of its outcomes, the last one again and again; else with an empty response."""

    def __init__(self) -> None:
        self.outcomes: dict[str, list[Any]] = {}
        self.trailing: Any = OURS
        #: (method, request, seconds)
        self.asked: list[Any] = []
        self.closed = 0
        self.made: list[str] = []
        self.opened: Any = None
        #: Method → set when it is asked.
        self.entered: dict[str, asyncio.Event] = {}

    def unary_unary(self, path: str, request_serializer: Any, response_deserializer: Any) -> Any:
        package, _, method = path.rpartition("/")
        assert package == "/tensorflow.WorkerService"
        self.made.append(method)

        def call(request: Any, timeout: float | None, wait_for_ready: bool) -> Answer:
            assert not wait_for_ready
            asked = getattr(worker_pb2, f"{method}Request").FromString(request_serializer(request))
            self.asked.append((method, asked, timeout))
            self.entered.setdefault(method, asyncio.Event()).set()
            outcomes = self.outcomes.get(method) or [getattr(worker_pb2, f"{method}Response")()]
            outcome = outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
            if callable(outcome) or isinstance(outcome, (BaseException, asyncio.Future)):
                return Answer(outcome, self.trailing)
            return Answer(response_deserializer(outcome.SerializeToString()), self.trailing)

        return call

    async def close(self) -> None:
        self.closed += 1

    def names(self) -> list[str]:
        return [method for method, _, _ in self.asked]


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> FakeChannel:
    made = FakeChannel()

    def opened(*given: Any) -> FakeChannel:
        made.opened = given
        return made

    monkeypatch.setattr(module, "open_channel", opened)
    return made


@pytest.fixture
async def worker(channel: FakeChannel) -> Any:
    made = GrpcWorker(TASK, "host:1", LIMITS)
    yield made
    await made.close()


def test_it_shows_its_credentials(channel: FakeChannel) -> None:
    shown = Credentials()
    GrpcWorker(TASK, "host:1", LIMITS, shown)
    assert channel.opened == ("host:1", shown)
    GrpcWorker(TASK, "host:1")
    assert channel.opened == ("host:1", NO_CREDENTIALS)


# -- what is asked -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "seconds"), [(None, 30.0), (2.5, 2.5)])
async def test_status_has_the_devices(worker: GrpcWorker, channel: FakeChannel, given: Any, seconds: float) -> None:
    channel.outcomes["GetStatus"] = [worker_pb2.GetStatusResponse(device_attributes=[DeviceAttributes(name="cpu")])]
    assert [device.name for device in await worker.get_status(given)] == ["cpu"]
    assert channel.asked == [("GetStatus", worker_pb2.GetStatusRequest(), seconds)]


async def test_a_session_is_opened_and_named_from_then_on(worker: GrpcWorker, channel: FakeChannel) -> None:
    server = ServerDef(job_name="ps")
    await worker.create_worker_session("s", server, True, ("m", 2**64 - 5))
    created = worker_pb2.CreateWorkerSessionRequest(
        session_handle="s", server_def=server, isolate_session_state=True, master_task="m", master_incarnation=-5
    )
    assert channel.asked == [("CreateWorkerSession", created, 30.0)]

    for session in ("s", "other"):
        await worker.deregister_graph(session, "g")
        named = worker_pb2.DeregisterGraphRequest(
            session_handle=session, create_worker_session_called=session == "s", graph_handle="g"
        )
        assert channel.asked[-1] == ("DeregisterGraph", named, 10.0)

    await worker.delete_worker_session("s")
    assert channel.asked[-1] == (
        "DeleteWorkerSession",
        worker_pb2.DeleteWorkerSessionRequest(session_handle="s"),
        10.0,
    )
    await worker.deregister_graph("s", "g")
    assert not channel.asked[-1][1].create_worker_session_called


async def test_a_session_that_was_not_made_is_not_named(worker: GrpcWorker, channel: FakeChannel) -> None:
    channel.outcomes["CreateWorkerSession"] = [broken()]
    with pytest.raises(errors.UnavailableError):
        await worker.create_worker_session("s", None, False, ("m", 1))
    await worker.deregister_graph("s", "g")
    assert not channel.asked[-1][1].create_worker_session_called


async def test_a_peer_that_is_not_ours_keeps_no_graphs_of_sessions_that_it_does_not_know(
    worker: GrpcWorker, channel: FakeChannel
) -> None:
    channel.trailing = (("other", "x"),)
    await worker.get_status()
    await worker.create_worker_session("s", None, False, ("m", 1))
    assert channel.names() == ["GetStatus"]

    channel.outcomes["RegisterGraph"] = [
        worker_pb2.RegisterGraphResponse(graph_handle=handle) for handle in ("a", "b", "c")
    ]
    for _ in "abc":
        await worker.register_graph("s", GraphDef(), ConfigProto())
    assert {request.session_handle for method, request, _ in channel.asked if method == "RegisterGraph"} == {""}
    await worker.deregister_graph("s", "b")
    channel.asked.clear()
    await worker.delete_worker_session("s")

    ends = [(method, request.session_handle, request.graph_handle) for method, request, _ in channel.asked]
    assert sorted(ends) == [("DeregisterGraph", "", "a"), ("DeregisterGraph", "", "c")] or sorted(ends) == [
        ("DeregisterGraph", "s", "a"),
        ("DeregisterGraph", "s", "c"),
    ]
    channel.asked.clear()
    await worker.delete_worker_session("s")
    assert channel.names() == ["DeleteWorkerSession"]


@pytest.mark.parametrize(
    ("trailing", "server", "isolate"), [((), ServerDef(), False), ((), None, True), (OURS, None, False)]
)
async def test_other_sessions_are_opened_there_too(
    worker: GrpcWorker, channel: FakeChannel, trailing: Any, server: Any, isolate: bool
) -> None:
    channel.trailing = trailing
    await worker.get_status()
    await worker.create_worker_session("s", server, isolate, ("m", 1))
    assert channel.names() == ["GetStatus", "CreateWorkerSession"]


async def test_an_answer_without_metadata_is_not_ours(worker: GrpcWorker, channel: FakeChannel) -> None:
    channel.trailing = None
    await worker.get_status()
    await worker.create_worker_session("s", None, False, ("m", 1))
    assert channel.names() == ["GetStatus"]


CONFIG = ConfigProto(graph_options=GraphOptions(build_cost_model=3))


async def test_a_graph_is_registered_without_a_deadline(worker: GrpcWorker, channel: FakeChannel) -> None:
    channel.outcomes["RegisterGraph"] = [worker_pb2.RegisterGraphResponse(graph_handle="g")]
    graph = GraphDef()
    graph.node.add(name="n", op="NoOp")

    assert await worker.register_graph("s", graph, CONFIG) == "g"

    request = worker_pb2.RegisterGraphRequest(
        session_handle="s", graph_def=graph, config_proto=CONFIG, graph_options=CONFIG.graph_options
    )
    assert channel.asked == [("RegisterGraph", request, None)]


async def test_a_graph_is_translated_for_a_peer_that_knows_less(worker: GrpcWorker, channel: FakeChannel) -> None:
    refused = "NodeDef mentions attr 'incompatible_shape_error' not in Op<name=Equal; signature=x>"
    channel.outcomes["RegisterGraph"] = [
        broken(grpc.StatusCode.INVALID_ARGUMENT, refused),
        worker_pb2.RegisterGraphResponse(graph_handle="g"),
    ]
    graph = GraphDef()
    graph.node.add(name="n", op="Equal").attr["incompatible_shape_error"].b = True

    assert await worker.register_graph("s", graph, CONFIG) == "g"

    first, second = [request.graph_def.node[0].attr for _, request, _ in channel.asked]
    assert (list(first), list(second)) == (["incompatible_shape_error"], [])
    assert list(graph.node[0].attr) == ["incompatible_shape_error"]


async def test_a_refusal_that_teaches_nothing_is_raised(worker: GrpcWorker, channel: FakeChannel) -> None:
    channel.outcomes["RegisterGraph"] = [broken(grpc.StatusCode.INVALID_ARGUMENT, "no such op")]
    with pytest.raises(errors.InvalidArgumentError, match="no such op"):
        await worker.register_graph("s", GraphDef(), CONFIG)
    assert channel.names() == ["RegisterGraph"]


async def test_a_run_is_asked_for_and_its_answer_read(worker: GrpcWorker, channel: FakeChannel) -> None:
    response = worker_pb2.RunGraphResponse(step_stats=StepStats(dev_stats=[DeviceStepStats(device="d")]))
    encode_into(response.recv.add(name="out").tensor, np.float32([1, 2]))
    encode_into(response.recv.add(name="words").tensor, np.array([b"w"], object))
    channel.outcomes["RunGraph"] = [response]

    result = await worker.run_graph(RunRequest("s", "g", 7, {"in": np.int32([3])}, ["out", "words"]))

    [(_, request, seconds)] = channel.asked
    assert (request.session_handle, request.graph_handle, request.step_id, list(request.recv_key)) == (
        "s",
        "g",
        7,
        ["out", "words"],
    )
    assert (seconds, request.store_errors_in_response_body, request.request_id != 0) == (None, True, True)
    assert [(each.name, decode(each.tensor, "x").tolist()) for each in request.send] == [("in", [3])]
    assert result.step_stats == response.step_stats
    assert (result.values["out"].tolist(), result.values["words"].tolist()) == ([1, 2], [b"w"])
    result.values["out"][0] = 9  # the receiver's own
    channel.outcomes["RunGraph"] = [worker_pb2.RunGraphResponse()]
    assert (await worker.run_graph(RunRequest("s", "g", 7, {}, []))).step_stats is None
    assert channel.asked[0][1].request_id != channel.asked[1][1].request_id


@pytest.mark.parametrize(
    "name", ["record_timeline", "record_costs", "record_partition_graphs", "is_partial", "is_last_partial_run"]
)
async def test_a_run_hands_on_each_option(worker: GrpcWorker, channel: FakeChannel, name: str) -> None:
    await worker.run_graph(RunRequest("s", "g", 7, {}, [], ExecOptions(**{name: True})))
    request = channel.asked[0][1]
    values = {
        each: getattr(request.exec_opts if each.startswith("record") else request, each)
        for each in ExecOptions.__slots__  # type: ignore[attr-defined]
    }
    assert values == {each: each == name for each in values}


async def test_an_error_in_the_body_of_an_answer_is_raised(worker: GrpcWorker, channel: FakeChannel) -> None:
    channel.outcomes["RunGraph"] = [worker_pb2.RunGraphResponse(status_code=5, status_error_message="no graph g")]  # type: ignore[arg-type]
    with pytest.raises(errors.NotFoundError, match=r"^no graph g$"):
        await worker.run_graph(RunRequest("s", "g", 7, {}, []))


async def test_a_fetched_value_that_cannot_be_decoded_names_its_task(worker: GrpcWorker, channel: FakeChannel) -> None:
    response = worker_pb2.RunGraphResponse()
    response.recv.add(name="out").tensor.dtype = 1
    response.recv[0].tensor.tensor_content = b"abc"
    channel.outcomes["RunGraph"] = [response]
    with pytest.raises(errors.InvalidArgumentError, match=f"out from {TASK}"):
        await worker.run_graph(RunRequest("s", "g", 7, {}, []))


async def test_a_tensor_is_received_or_dead(worker: GrpcWorker, channel: FakeChannel) -> None:
    live = worker_pb2.RecvTensorResponse()
    encode_into(live.tensor, np.int32([4]))
    cut = worker_pb2.RecvTensorResponse()
    cut.tensor.dtype, cut.tensor.tensor_content = 1, b"abc"
    channel.outcomes["RecvTensor"] = [live, worker_pb2.RecvTensorResponse(is_dead=True), cut]

    value, is_dead = await worker.recv_tensor(7, "key")
    assert (value.tolist(), is_dead) == ([4], False)
    assert await worker.recv_tensor(7, "key") == (None, True)
    with pytest.raises(errors.InvalidArgumentError, match=f"key from {TASK}"):
        await worker.recv_tensor(7, "key")

    (_, first, seconds), (_, second, _), _ = channel.asked
    assert (first.step_id, first.rendezvous_key, seconds) == (7, "key", None)
    assert 0 != first.request_id != second.request_id


async def test_steps_and_containers_are_cleaned_up(worker: GrpcWorker, channel: FakeChannel) -> None:
    await worker.cleanup_graph(7)
    await worker.cleanup_all(["a", "b"])
    assert channel.asked == [
        ("CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=7), 10.0),
        ("CleanupAll", worker_pb2.CleanupAllRequest(container=["a", "b"]), 10.0),
    ]


async def test_a_method_is_made_once_and_its_bytes_are_counted(worker: GrpcWorker, channel: FakeChannel) -> None:
    counted = traffic.traffic_with(TASK)
    sent, received = counted.sent, counted.received
    channel.outcomes["GetStatus"] = [worker_pb2.GetStatusResponse(device_attributes=[DeviceAttributes(name="cpu")])]
    for _ in range(2):
        await worker.get_status()
    await worker.cleanup_graph(7)
    assert channel.made == ["GetStatus", "CleanupGraph"]
    assert counted.sent - sent == len(worker_pb2.CleanupGraphRequest(step_id=7).SerializeToString())
    assert counted.received - received == 2 * len(channel.outcomes["GetStatus"][0].SerializeToString())


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ask", [lambda worker: worker.get_status(), lambda worker: worker.recv_tensor(1, "k")], ids=["call", "wait"]
)
async def test_a_task_without_an_address_has_not_registered(
    channel: FakeChannel, ask: Callable[[GrpcWorker], Awaitable[Any]]
) -> None:
    worker = GrpcWorker(TASK, "", LIMITS)
    with pytest.raises(errors.UnavailableError, match=f"^{TASK} cannot be reached: it has not registered yet.$"):
        await ask(worker)
    assert channel.asked == []


async def test_an_error_of_the_transport_names_task_and_address(worker: GrpcWorker, channel: FakeChannel) -> None:
    channel.outcomes["GetStatus"] = [broken()]
    with pytest.raises(errors.UnavailableError, match=f"^{TASK} at host:1 cannot be reached: .*GetStatus"):
        await worker.get_status()
    channel.outcomes["GetStatus"] = [aio.UsageError("Channel is closed.")]
    text = rf"^{TASK} at host:1 cannot be reached: Channel is closed\. \(GetStatus\)\.$"
    with pytest.raises(errors.UnavailableError, match=text):
        await worker.get_status()


async def test_what_ends_something_is_asked_once_more_over_a_new_connection(
    worker: GrpcWorker, channel: FakeChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    channel.outcomes["CleanupGraph"] = [broken(), worker_pb2.CleanupGraphResponse()]
    await worker.cleanup_graph(7)
    assert channel.asked == [("CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=7), 10.0)] * 2
    assert slept == [0.1]
    channel.asked.clear()

    channel.outcomes["CleanupGraph"] = [broken()]
    with pytest.raises(errors.UnavailableError):
        await worker.cleanup_graph(7)
    channel.outcomes["CleanupGraph"] = [broken(grpc.StatusCode.NOT_FOUND, "no")]
    with pytest.raises(errors.NotFoundError):
        await worker.cleanup_graph(7)
    assert len(channel.asked) == 3


# -- signs of life -----------------------------------------------------------------------------------------------------


class FakeLife:
    """Stands in for PeerLife: each check ends as it is told; `checked` counts them."""

    made: list[FakeLife]

    def __init__(self, *given: Any) -> None:
        self.given = given
        self.closed = False
        FakeLife.made.append(self)

    outcomes: list[Any]

    async def check(self) -> None:
        await asyncio.sleep(0)
        outcome = FakeLife.outcomes.pop(0)
        if isinstance(outcome, asyncio.Event):
            outcome.set()
            await asyncio.Event().wait()
        if outcome is not None:
            raise outcome

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def life(monkeypatch: pytest.MonkeyPatch) -> type[FakeLife]:
    FakeLife.made, FakeLife.outcomes = [], []
    monkeypatch.setattr(module, "PeerLife", FakeLife)
    return FakeLife


@pytest.fixture
async def probed(channel: FakeChannel, life: type[FakeLife]) -> Any:
    made = GrpcWorker(TASK, "host:1", QUICK)
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            errors.deadline_exceeded("late"),
            rf"^{TASK} at host:1 cannot be reached: it gave no sign of life for 7 s\.$",
        ),
        (errors.unavailable("refused"), rf"^{TASK} at host:1 cannot be reached: refused\.$"),
        (errors.unavailable(f"{TASK} is gone"), f"^{TASK} is gone$"),
    ],
)
async def test_calls_that_wait_are_given_up_with_their_peer(
    probed: GrpcWorker, channel: FakeChannel, life: type[FakeLife], error: Exception, text: str
) -> None:
    channel.outcomes["RecvTensor"] = [asyncio.get_running_loop().create_future()]
    # any other answer is a sign of life
    life.outcomes = [None, errors.not_found("what?"), error]
    calls = [asyncio.ensure_future(probed.recv_tensor(step, "k")) for step in (1, 2)]
    for call in calls:
        with pytest.raises(errors.UnavailableError, match=text):
            await call
    [probe] = life.made
    assert probe.given == (TASK, "host:1", QUICK, NO_CREDENTIALS, probed.get_status)
    assert probe.closed
    assert life.outcomes == []
    assert channel.outcomes["RecvTensor"][0].cancelled()


async def test_a_peer_is_probed_anew_for_a_later_call(
    probed: GrpcWorker, channel: FakeChannel, life: type[FakeLife]
) -> None:
    for _ in range(2):
        channel.outcomes["RecvTensor"] = [asyncio.get_running_loop().create_future()]
        life.outcomes = [errors.unavailable("refused")]
        with pytest.raises(errors.UnavailableError):
            await probed.recv_tensor(1, "k")
    assert len(life.made) == 2


async def test_a_probe_ends_when_nothing_waits_any_more(
    probed: GrpcWorker, channel: FakeChannel, life: type[FakeLife]
) -> None:
    channel.outcomes["RecvTensor"] = [worker_pb2.RecvTensorResponse(is_dead=True)]
    life.outcomes = [None] * 9
    await probed.recv_tensor(1, "k")
    probe = probed._probe
    assert probe is not None
    await probe
    assert life.made[0].closed
    assert probe.get_name() == f"probe:{TASK}"


async def test_a_fault_of_the_probe_ends_it_with_its_connection(
    probed: GrpcWorker, channel: FakeChannel, life: type[FakeLife]
) -> None:
    waiting = asyncio.get_running_loop().create_future()
    channel.outcomes["RecvTensor"] = [waiting]
    life.outcomes = [ValueError("a fault")]
    call = asyncio.ensure_future(probed.recv_tensor(1, "k"))
    await asyncio.sleep(0)
    probe = probed._probe
    assert probe is not None
    with pytest.raises(ValueError, match="a fault"):
        await probe
    assert life.made[0].closed
    waiting.set_result(worker_pb2.RecvTensorResponse(is_dead=True))
    assert await call == (None, True)


async def test_a_call_that_is_cancelled_is_cancelled_at_the_peer(
    probed: GrpcWorker, channel: FakeChannel, life: type[FakeLife]
) -> None:
    waiting = asyncio.get_running_loop().create_future()
    channel.outcomes["RecvTensor"] = [waiting]
    entered = asyncio.Event()
    life.outcomes = [entered]
    call = asyncio.ensure_future(probed.recv_tensor(1, "k"))
    await entered.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert probed._waiting == set()


async def test_closing_ends_what_waits_and_the_probe(channel: FakeChannel, life: type[FakeLife]) -> None:
    probed = GrpcWorker(TASK, "host:1", QUICK)
    channel.outcomes["RecvTensor"] = [asyncio.get_running_loop().create_future()]
    entered = asyncio.Event()
    life.outcomes = [entered]
    call = asyncio.ensure_future(probed.recv_tensor(1, "k"))
    await entered.wait()

    await probed.close()

    with pytest.raises(errors.UnavailableError, match=f"^the connection to {TASK} was closed$"):
        await call
    probe = probed._probe
    assert probe is not None
    await asyncio.wait([probe])
    assert probe.cancelled()
    assert channel.closed == 1
    assert life.made[0].closed


async def test_one_that_never_waited_closes_too(channel: FakeChannel) -> None:
    await GrpcWorker(TASK, "host:1", LIMITS).close()
    assert channel.closed == 1


async def test_errors_that_nobody_waits_for_any_more_are_not_reported(
    probed: GrpcWorker, channel: FakeChannel, life: type[FakeLife]
) -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    waiting = asyncio.get_running_loop().create_future()

    class Stubborn:
        """A call that breaks where it is cancelled."""

        def __await__(self) -> Any:
            try:
                yield from waiting
            finally:
                raise broken()

    channel.outcomes["RecvTensor"] = [Stubborn]
    life.outcomes = [errors.unavailable("refused")]
    with pytest.raises(errors.UnavailableError, match="refused"):
        await probed.recv_tensor(1, "k")
    # given up in the moment of its answer
    dead = worker_pb2.RecvTensorResponse(is_dead=True)
    channel.outcomes["RecvTensor"] = [lambda: (probed._give_up("too late"), dead)[1]]
    life.outcomes = [None] * 9
    assert await probed.recv_tensor(1, "k") == (None, True)

    await asyncio.sleep(0)
    gc.collect()
    assert reported == []
