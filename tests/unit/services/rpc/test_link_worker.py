"""A linked peer's worker, on a scripted link: what goes over the link, what over gRPC, and runs by a plan."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS
from tenfold_link.aio.methods import Deferred
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire.calls import RUN_GRAPH, RUN_GRAPH_ANSWER, STEP, UNKNOWN_NUMBER, LinkCall
from tenfold_protos.link_calls_pb2 import LinkArrangeRequest, LinkArrangeResponse, LinkProducer
from tenfold_protos.link_pb2 import OpenLinkRequest, OpenLinkResponse
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.exchange.step_frames import answer_frame, options_of, pack, read_push
from tenfold_services.interfaces import DEFAULT_EXEC_OPTIONS, ExecOptions, RunGraphResult, RunRequest
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.rpc import grpc_worker
from tenfold_services.rpc import link_worker as module
from tenfold_services.rpc.link_worker import LinkWorker

ME, PS = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"
ONE = np.float32([1])


class FakeLink:
    """Answers calls with the next of its answers: (header, buffers), an error, or None for one that waits."""

    def __init__(self) -> None:
        self.state: dict[Any, Any] = {}
        self.answers: list[Any] = []
        self.called: list[Any] = []
        self.notified: list[Any] = []
        self.waiting: list[Deferred] = []

    def stage(self, buffer: Any) -> Any:
        return buffer

    def call_nowait(self, method: int, header: bytes = b"", buffers: Any = ()) -> Deferred:
        self.called.append((method, header, list(buffers)))
        answer = self.answers.pop(0)
        if isinstance(answer, errors.UnavailableError):
            raise answer
        call = Deferred()
        self.waiting.append(call)
        if isinstance(answer, Exception):
            call.set_exception(answer)
        elif answer is not None:
            call.set_result(answer)
        return call

    async def call(self, *given: Any) -> Any:
        return await self.call_nowait(*given)

    async def notify(self, *given: Any) -> None:
        self.notified.append(given)

    def notify_nowait(self, *given: Any) -> None:
        self.notified.append(given)


class FakeDialer:
    """Has a link now, or has one once it is asked for."""

    made: FakeDialer

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given, self.named = given, named
        self.link: FakeLink | None = None
        #: What comes of dialling.
        self.dialled: FakeLink | None = None
        self.asked = self.closed = 0
        FakeDialer.made = self

    async def get(self) -> FakeLink | None:
        self.asked += 1
        self.link = self.dialled
        return self.link

    async def close(self) -> None:
        self.closed += 1


class FakeChannel:
    """A gRPC channel that is only closed."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1


class Over:
    """What came of a call that tells its end."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.event = asyncio.Event()

    def __call__(self, result: Any, error: Any) -> None:
        self.told.append((result, error))
        self.event.set()


@pytest.fixture
def channel() -> FakeChannel:
    return FakeChannel()


@pytest.fixture
def delivered() -> list[Any]:
    return []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The OpenLink calls, and how they were made."""
    found: list[Any] = []

    def asker(*given: Any) -> Any:
        async def ask(request: OpenLinkRequest) -> OpenLinkResponse:
            found.append((given, request))
            return OpenLinkResponse(token=b"key")

        return ask

    monkeypatch.setattr(module, "asker", asker)
    return found


def on_link(link: Any) -> Any:
    return {}


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, channel: FakeChannel, delivered: list[Any], asked: list[Any]) -> LinkWorker:
    monkeypatch.setattr(module, "LinkDialer", FakeDialer)
    monkeypatch.setattr(grpc_worker, "open_channel", lambda *_: channel)
    return LinkWorker(
        PS,
        "host:1",
        DEFAULT_LIMITS,
        own=(ME, 5),
        on_link=on_link,
        settings=DEFAULT_LINK_SETTINGS,
        deliver=lambda *given: delivered.append(given),
    )


@pytest.fixture
def dialer(worker: LinkWorker) -> FakeDialer:
    return FakeDialer.made


@pytest.fixture
def link(dialer: FakeDialer) -> FakeLink:
    dialer.link = dialer.dialled = FakeLink()
    return dialer.link


# -- the link ----------------------------------------------------------------------------------------------------------


async def test_links_are_dialled_by_open_link(worker: LinkWorker, dialer: FakeDialer, channel: Any, asked: Any) -> None:
    ask, address = dialer.given
    assert address == "host:1"
    assert dialer.named == {
        "task": ME,
        "peer": PS,
        "on_link": on_link,
        "settings": DEFAULT_LINK_SETTINGS,
        "credentials": NO_CREDENTIALS,
    }
    assert (await ask(OpenLinkRequest())).token == b"key"
    assert asked == [((channel, PS, "host:1", DEFAULT_LIMITS.probe_answer_seconds), OpenLinkRequest())]


@pytest.mark.parametrize("tls", [False, True])
async def test_one_more_link_is_asked_for_as_this_task(
    worker: LinkWorker, asked: list[Any], tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials: Any = SimpleNamespace(of=lambda address: "certificates" if tls and address == "host:1" else None)
    worker = LinkWorker(
        PS,
        "host:1",
        own=(ME, 5),
        on_link=on_link,
        settings=DEFAULT_LINK_SETTINGS,
        deliver=lambda *given: None,
        credentials=credentials,
    )
    assert FakeDialer.made.named["credentials"] is credentials
    made: list[Any] = []
    monkeypatch.setattr(
        module.handshake, "ask", lambda *given, **named: (made.append((given, named)), OpenLinkRequest(task=ME))[1]
    )
    assert (await worker.ask_link(DEFAULT_LINK_SETTINGS)).token == b"key"
    assert made == [((DEFAULT_LINK_SETTINGS, ME), {"tls": tls})]
    assert asked[0][1].task == ME


async def test_a_new_link_says_which_task_pushes_over_it(worker: LinkWorker, dialer: FakeDialer) -> None:
    dialer.dialled = link = FakeLink()
    link.answers = [(b"", [])]
    assert not worker.is_linked
    assert worker._dialer.link is None

    assert await worker.connect()
    assert await worker.connect()

    message = LinkProducer(task=ME, incarnation=5).SerializeToString()
    assert link.called == [(LinkCall.PRODUCER, message, [])]
    assert worker.is_linked
    assert worker._dialer.link is link


async def test_a_link_that_has_not_said_so_cannot_be_pushed_to(worker: LinkWorker, link: FakeLink) -> None:
    assert not worker.is_linked


async def test_without_a_link_there_is_nothing_to_push_to(worker: LinkWorker, dialer: FakeDialer) -> None:
    assert not await worker.connect()
    assert await worker.arrange(["a"]) == []
    with pytest.raises(errors.UnavailableError, match=rf"^{PS} at host:1 cannot be reached: the link to it broke\.$"):
        worker.push(7, [("k", ONE, False)])


async def test_closing_ends_link_and_connection(worker: LinkWorker, dialer: FakeDialer, channel: FakeChannel) -> None:
    await worker.close()
    assert (dialer.closed, channel.closed) == (1, 1)


async def test_the_peer_says_whom_it_can_push_to(worker: LinkWorker, link: FakeLink) -> None:
    link.answers = [(LinkArrangeResponse(task=["a"]).SerializeToString(), [])]
    assert await worker.arrange(["a", "b"]) == ["a"]
    assert link.called == [(LinkCall.ARRANGE, LinkArrangeRequest(task=["a", "b"]).SerializeToString(), [])]


def test_tensors_are_pushed(worker: LinkWorker, link: FakeLink) -> None:
    worker.push(7, [("k", ONE, False)])
    [(method, header, buffers)] = link.notified
    arrived: list[Any] = []
    read_push(header, buffers, lambda *given: arrived.append(given))
    assert (method, arrived[0][:2], arrived[0][2].tolist(), arrived[0][3]) == (LinkCall.PUSH, (7, "k"), [1], False)


# -- steps -------------------------------------------------------------------------------------------------------------


async def test_a_tensor_comes_over_the_link(worker: LinkWorker, link: FakeLink, dialer: FakeDialer) -> None:
    for value, is_dead in ((ONE, False), (None, True)):
        parts: list[bytes] = []
        pack(value, is_dead, parts, [])
        link.answers = [(b"".join(parts), [])]
        received, dead = await worker.recv_tensor(7, "key")
        assert (None if dead else received.tolist(), dead) == (None if is_dead else [1], is_dead)
    assert link.called == [(LinkCall.RECV_TENSOR, STEP.pack(7) + b"key", [])] * 2
    assert dialer.asked == 0


async def test_a_step_is_cleaned_up_over_the_link(worker: LinkWorker, link: FakeLink) -> None:
    await worker.cleanup_graph(7)
    assert link.notified == [(LinkCall.CLEANUP_GRAPH, STEP.pack(7))]


async def test_without_a_link_steps_go_over_grpc(
    worker: LinkWorker, dialer: FakeDialer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    result = RunGraphResult()

    def over_grpc(name: str, answer: Any) -> None:
        async def method(self: Any, *given: Any) -> Any:
            made.append((name, *given))
            return answer

        monkeypatch.setattr(grpc_worker.GrpcWorker, name, method)

    over_grpc("run_graph", result)
    over_grpc("recv_tensor", (ONE, False))
    over_grpc("cleanup_graph", None)

    assert await worker.run_graph(RunRequest("s", "g", 7, {"in": ONE}, ["out"])) is result
    assert await worker.recv_tensor(7, "key") == (ONE, False)
    assert dialer.asked == 2
    await worker.cleanup_graph(7)
    assert dialer.asked == 2
    assert made == [
        ("run_graph", RunRequest("s", "g", 7, {"in": ONE}, ["out"], DEFAULT_EXEC_OPTIONS)),
        ("recv_tensor", 7, "key"),
        ("cleanup_graph", 7),
    ]
    dialer.dialled = dialer.link = FakeLink()
    partial = ExecOptions(is_partial=True)
    assert await worker.run_graph(RunRequest("s", "g", 7, {}, [], partial)) is result
    assert made[-1] == ("run_graph", RunRequest("s", "g", 7, {}, [], partial))


ANSWER = answer_frame(RunGraphResult({"out": ONE}), ["out"], cast("Any", None))
UNKNOWN = (RUN_GRAPH_ANSWER.pack(UNKNOWN_NUMBER, 0, 0, 0), [])


def plans_said(link: FakeLink) -> list[bool]:
    """Of each RunGraph whether it says what the plan is."""
    return [RUN_GRAPH.unpack_from(header)[-1] > 0 for method, header, _ in link.called if method == LinkCall.RUN_GRAPH]


async def test_a_run_goes_over_the_link(worker: LinkWorker, link: FakeLink, dialer: FakeDialer) -> None:
    link.answers = [ANSWER, ANSWER]
    options = ExecOptions(record_costs=True)

    result = await worker.run_graph(RunRequest("s", "g", 7, {"in": ONE}, ["out"], options))
    await worker.run_graph(RunRequest("s", "g", 8, {"in": ONE}, ["out"]))

    assert result.values["out"].tolist() == [1]
    result.values["out"][0] = 2  # the receiver's own
    assert plans_said(link) == [True, False]
    first, second = [RUN_GRAPH.unpack_from(header) for _, header, _ in link.called]
    assert (first[1], options_of(first[3]), first[4], first[5]) == (7, options, 1, 0)
    assert (second[1], options_of(second[3])) == (8, DEFAULT_EXEC_OPTIONS)
    assert dialer.asked == 0


async def test_a_link_is_dialled_for_a_run(worker: LinkWorker, dialer: FakeDialer) -> None:
    dialer.dialled = FakeLink()
    dialer.dialled.answers = [ANSWER]
    await worker.run_graph(RunRequest("s", "g", 7, {}, ["out"]))
    assert dialer.asked == 1


async def test_a_plan_that_the_peer_forgot_is_said_once_more(worker: LinkWorker, link: FakeLink) -> None:
    link.answers = [ANSWER, UNKNOWN, ANSWER]
    for _ in range(2):
        await worker.run_graph(RunRequest("s", "g", 7, {}, ["out"]))
    assert plans_said(link) == [True, False, True]
    link.answers = [UNKNOWN, UNKNOWN]
    with pytest.raises(errors.InvalidArgumentError, match="it does not know the plan that came with the call"):
        await worker.run_graph(RunRequest("s", "g", 7, {}, ["out"]))


# -- runs by a plan ----------------------------------------------------------------------------------------------------

PLAN = ExchangePlan("s", "g", fetches=("out",), answered=("edge",), brought=("fed",))
BROUGHT = [(0, ONE, False)]
WITH_EDGE = answer_frame(RunGraphResult({"out": ONE}, answered=[(0, ONE + 1, False)]), ["out"], cast("Any", FakeLink()))


def start(worker: LinkWorker, done: Any, options: ExecOptions = DEFAULT_EXEC_OPTIONS) -> Any:
    return worker.start_plan(PLAN, 7, BROUGHT, options, done)


async def test_a_run_by_a_plan_tells_its_end(worker: LinkWorker, link: FakeLink, delivered: list[Any]) -> None:
    link.answers = [None]
    over = Over()
    options = ExecOptions(record_timeline=True)

    start(worker, over, options)
    number, step_id, _, record, feeds, brought, _ = RUN_GRAPH.unpack_from(link.called[0][1])
    assert (number, step_id, options_of(record), feeds, brought) == (1, 7, options, 0, 1)
    assert over.told == []
    link.waiting[0].set_result(WITH_EDGE)

    [(result, error)] = over.told
    assert (result.values["out"].tolist(), error) == ([1], None)
    assert result.values["out"].flags.writeable
    [(step, key, value, is_dead)] = delivered
    assert (step, key, value.tolist(), is_dead) == (7, "edge", [2], False)


async def test_a_call_that_fails_at_once_is_told(worker: LinkWorker, link: FakeLink) -> None:
    gone = errors.unavailable("gone")
    link.answers = [gone]
    over = Over()
    call = start(worker, over)
    assert over.told == [(None, gone)]
    call.cancel()
    assert len(over.told) == 1


@pytest.mark.parametrize(
    ("failure", "kind", "text"),
    [
        (errors.aborted("restarted"), errors.AbortedError, "restarted"),
        (ValueError("odd"), errors.InternalError, "ValueError: odd"),
    ],
)
async def test_an_error_of_a_run_is_told(
    worker: LinkWorker, link: FakeLink, failure: Exception, kind: type[errors.OpError], text: str
) -> None:
    link.answers = [None]
    over = Over()
    start(worker, over)
    link.waiting[0].set_exception(failure)
    [(result, error)] = over.told
    assert (result, type(error), error.message) == (None, kind, text)


async def test_an_answer_that_cannot_be_read_is_an_error(worker: LinkWorker, link: FakeLink) -> None:
    link.answers = [None, None]
    over = Over()
    start(worker, over)
    link.waiting[0].set_result((b"", []))
    start(worker, over)
    worker._deliver = cast("Any", None)
    link.waiting[1].set_result(WITH_EDGE)
    (_, malformed), (_, fault) = over.told
    assert isinstance(malformed, errors.InvalidArgumentError)
    assert fault.message == "TypeError: the first argument must be callable"


async def test_a_run_is_cancelled(worker: LinkWorker, link: FakeLink) -> None:
    link.answers = [None]
    over = Over()
    call = start(worker, over)

    call.cancel()

    assert link.waiting[0].cancelled()
    [(result, error)] = over.told
    assert (result, type(error), error.message) == (None, errors.CancelledError, f"The call to {PS} was cancelled.")
    call.cancel()
    assert len(over.told) == 1


async def test_a_plan_that_the_peer_forgot_is_said_again(worker: LinkWorker, link: FakeLink) -> None:
    link.answers = [None, WITH_EDGE]
    over = Over()
    options = ExecOptions(record_costs=True)
    start(worker, over, options)
    link.waiting[0].set_result(UNKNOWN)
    await over.event.wait()
    [(result, error)] = over.told
    assert (result.values["out"].tolist(), error) == ([1], None)
    again = RUN_GRAPH.unpack_from(link.called[1][1])
    assert (again[1], options_of(again[3]), again[5]) == (7, options, 1)


async def test_a_run_without_a_link_dials_first(worker: LinkWorker, dialer: FakeDialer) -> None:
    dialer.dialled = FakeLink()
    dialer.dialled.answers = [(b"", []), WITH_EDGE]
    over = Over()
    start(worker, over)
    [task] = [task for task in asyncio.all_tasks() if task.get_name() == f"run_graph:{PS}"]
    await over.event.wait()
    [(result, error)] = over.told
    assert (result.values["out"].tolist(), error) == ([1], None)
    assert [method for method, _, _ in dialer.dialled.called] == [LinkCall.PRODUCER, LinkCall.RUN_GRAPH]
    assert task.done()


async def test_a_run_whose_link_cannot_be_opened_is_unavailable(worker: LinkWorker, dialer: FakeDialer) -> None:
    over = Over()
    start(worker, over)
    await over.event.wait()
    [(_, error)] = over.told
    text = f"{PS} at host:1 cannot be reached: the link to it broke and cannot be opened again."
    assert (type(error), error.message) == (errors.UnavailableError, text)


async def test_a_run_that_dials_is_cancelled(worker: LinkWorker, dialer: FakeDialer) -> None:
    over = Over()
    start(worker, over).cancel()
    await over.event.wait()
    [(_, error)] = over.told
    assert error.message == f"The call to {PS} was cancelled."
