"""Tenfold's own services and the calls that other tasks make of them, without a transport."""

from __future__ import annotations

from typing import Any, cast

import pytest

from support.fake_calls import CALLER, FakeCall, ask
from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_protos import health_pb2, link_pb2, peers_pb2, placement_pb2
from tenfold_services.finished import FinishedTasks
from tenfold_services.rpc import own_services
from tenfold_services.rpc.own_services import (
    LIVE,
    WHY_NOT,
    asker,
    exchange_finished,
    health_service,
    link_service,
    peer_service,
    placement_service,
)

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
ADDRESS = "ipv4:127.0.0.1:1234"


def where() -> str:
    return "here"


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    lines: list[Any] = []
    monkeypatch.setattr("tenfold_core.access.audit.done", lambda *line, **more: lines.append((*line, more)))
    return lines


class Asked:
    """Stands in for channels.ask and open_channel; answers as it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
        self.calls: list[Any] = []
        self.opened: list[Any] = []
        self.answer = answer
        monkeypatch.setattr(own_services, "ask", self.ask)
        monkeypatch.setattr(own_services, "open_channel", self.open)

    async def ask(self, *given: Any, **named: Any) -> Any:
        self.calls.append((*given, *named.values()))
        return self.answer

    def open(self, *given: Any) -> Asked:
        self.opened.append(given)
        return self

    async def __aenter__(self) -> Asked:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.opened.append("closed")


# -- OpenLink ----------------------------------------------------------------------------------------------------------


class Listener:
    def __init__(self) -> None:
        self.asked: list[Any] = []

    def open_link(self, *given: Any) -> link_pb2.OpenLinkResponse:
        self.asked.append(given)
        return link_pb2.OpenLinkResponse(token=b"key")


@pytest.mark.parametrize(
    ("task", "peer"), [("/job:worker/replica:0/task:0", "/job:worker/replica:0/task:0"), ("", "pid 7")]
)
async def test_a_link_is_opened_for_its_caller(audited: list[Any], task: str, peer: str) -> None:
    listener = Listener()
    request = link_pb2.OpenLinkRequest(task=task, pid=7)
    service = link_service(cast("Any", listener), where)

    answer = await ask(service, "/tenfold.LinkService/OpenLink", request, link_pb2.OpenLinkResponse)

    assert answer.token == b"key"
    assert listener.asked == [(request, CALLER.role, "token ci at 127.0.0.1", CALLER)]
    assert audited == [(CALLER, "open link", "done", {"address": ADDRESS, "peer": peer})]


async def test_a_link_is_asked_for_by_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, link_pb2.OpenLinkResponse(token=b"key"))
    request = link_pb2.OpenLinkRequest(task=PS)
    assert await asker("channel", PS, "host:1", 2.5)(request) is asked.answer
    assert asked.calls == [
        ("channel", "/tenfold.LinkService/OpenLink", request, link_pb2.OpenLinkResponse, PS, "host:1", 2.5)
    ]


# -- ExchangeFinished --------------------------------------------------------------------------------------------------


def finished_tasks() -> FinishedTasks:
    return FinishedTasks(PS, lambda: {"ps": [0], "worker": [0, 1]})


async def exchange(finished: FinishedTasks, request: peers_pb2.ExchangeFinishedRequest) -> Any:
    path = "/tenfold.PeerService/ExchangeFinished"
    return await ask(peer_service(finished, 11, where), path, request, peers_pb2.ExchangeFinishedResponse)


def life(task: str, incarnation: int) -> peers_pb2.TaskLife:
    return peers_pb2.TaskLife(task=task, incarnation=incarnation)


async def test_finished_tasks_are_exchanged(audited: list[Any]) -> None:
    finished = finished_tasks()
    finished.note({f"{WORKER[:-1]}1": 5})

    answer = await exchange(finished, peers_pb2.ExchangeFinishedRequest(task=[life(WORKER, 6)], caller=life(WORKER, 6)))

    assert finished.known == {f"{WORKER[:-1]}1": 5, WORKER: 6}
    assert finished.heard(WORKER)
    assert {each.task: each.incarnation for each in answer.task} == finished.known
    assert answer.callee == life(PS, 11)
    assert audited == [
        (CALLER, "exchange finished", "done", {"address": ADDRESS, "peer": WORKER, "finished": WORKER}),
    ]


async def test_a_caller_that_does_not_say_who_it_is_was_not_heard() -> None:
    finished = finished_tasks()
    await exchange(finished, peers_pb2.ExchangeFinishedRequest())
    assert not finished.heard("")
    assert finished.known == {}


@pytest.mark.parametrize("more", [0, 1])
async def test_a_message_names_so_many_tasks(more: int, audited: list[Any]) -> None:
    count = 100_000 + more
    request = peers_pb2.ExchangeFinishedRequest(task=[life(f"t{index % 99}", 1) for index in range(count)])
    answer = await exchange(finished_tasks(), request)
    if more:
        assert (answer.code, answer.text) == (3, "ExchangeFinished names 100001 tasks; 100000 is the limit.")
    else:
        assert answer.callee == life(PS, 11)
    [(_, _, _, told)] = audited
    assert told["finished"] == ",".join(f"t{index}" for index in range(20))


@pytest.mark.parametrize("says_who", [True, False])
async def test_another_task_is_told_over_a_connection_of_its_own(
    monkeypatch: pytest.MonkeyPatch, says_who: bool
) -> None:
    answer = peers_pb2.ExchangeFinishedResponse(task=[life(WORKER, 6)], callee=life(PS, 7) if says_who else None)
    asked = Asked(monkeypatch, answer)

    known, callee = await exchange_finished(PS, "host:1", (WORKER, 6), {"a": 1}, 2.5, cast("Any", "shown"))

    assert known == {WORKER: 6}
    assert callee == ((PS, 7) if says_who else None)
    request = peers_pb2.ExchangeFinishedRequest(task=[life("a", 1)], caller=life(WORKER, 6))
    [(channel, *call)] = asked.calls
    assert channel is asked
    path = "/tenfold.PeerService/ExchangeFinished"
    assert call == [path, request, peers_pb2.ExchangeFinishedResponse, PS, "host:1", 2.5]
    assert asked.opened == [("host:1", "shown"), "closed"]


async def test_of_a_long_answer_the_beginning_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [life(f"t{index}", 1) for index in range(100_001)]
    Asked(monkeypatch, peers_pb2.ExchangeFinishedResponse(task=tasks))
    known, _ = await exchange_finished(PS, "host:1", (WORKER, 6), {}, 1.0, cast("Any", None))
    assert len(known) == 100_000
    assert "t99999" in known


# -- GetPlacement ------------------------------------------------------------------------------------------------------


class Master:
    def check_reader(self, handle: str, caller: Any) -> None:
        assert caller == CALLER
        if handle == "another's":
            raise errors.permission_denied("not yours")

    async def placement(self, handle: str) -> placement_pb2.GetPlacementResponse:
        assert handle == "s"
        return placement_pb2.GetPlacementResponse(node=[placement_pb2.NodePlacement(name="n")])


async def test_a_reader_of_a_session_sees_its_placement() -> None:
    service, path = placement_service(cast("Any", Master()), where), "/tenfold.PlacementService/GetPlacement"
    response = placement_pb2.GetPlacementResponse
    answer = await ask(service, path, placement_pb2.GetPlacementRequest(session_handle="s"), response)
    assert [node.name for node in answer.node] == ["n"]
    failure = await ask(service, path, placement_pb2.GetPlacementRequest(session_handle="another's"), response)
    assert (failure.code, failure.text) == (7, "not yours")


# -- Health ------------------------------------------------------------------------------------------------------------

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


async def check(name: str, why: str) -> tuple[Any, Any]:
    call = FakeCall()
    request = health_pb2.HealthCheckRequest(service=name)
    service = health_service(lambda: why, where)
    answer = await ask(service, "/grpc.health.v1.Health/Check", request, health_pb2.HealthCheckResponse, call)
    return getattr(answer, "status", answer), call.trailing


@pytest.mark.parametrize("name", ["", "tenfold.ready", "tensorflow.MasterService", "tensorflow.WorkerService"])
async def test_a_task_is_ready_until_it_says_why_not(name: str) -> None:
    assert await check(name, "") == (SERVING, None)
    assert await check(name, "draining") == (NOT_SERVING, ((WHY_NOT, "draining"),))


async def test_a_task_that_answers_lives() -> None:
    assert await check(LIVE, "draining") == (SERVING, None)


async def test_the_reason_is_bounded_and_plain_text() -> None:
    _, ((_, told),) = await check("", "50 % € naïve, (a)" + "x" * 600)
    assert told.startswith("50 %25 %E2%82%AC na%C3%AFve, (a)xxx")
    assert told.count("x") == 500 - len("50 % € naïve, (a)")


async def test_another_name_is_not_known() -> None:
    failure, _ = await check("other", "")
    assert (failure.code, failure.text) == (
        5,
        "here has no service 'other' to check; it knows '', 'tenfold.ready', 'tensorflow.MasterService', "
        "'tensorflow.WorkerService', 'tenfold.live'.",
    )


async def test_health_is_not_watched() -> None:
    service = health_service(lambda: "", where)
    failure = await ask(
        service, "/grpc.health.v1.Health/Watch", health_pb2.HealthCheckRequest(), health_pb2.HealthCheckResponse
    )
    text = "grpc.health.v1.Health.Watch is not served by here: a task answers Check alone; ask that again."
    assert (failure.code, failure.text) == (12, text)


def test_each_service_has_its_role() -> None:
    services = {
        link_service(cast("Any", None), where): Role.RUN_UNTRUSTED,
        peer_service(finished_tasks(), 1, where): Role.REGISTER,
        placement_service(cast("Any", None), where): Role.READ,
        health_service(lambda: "", where): Role.READ,
    }
    assert all({handler.needs for handler in service.handlers.values()} == {role} for service, role in services.items())
    paths = [path for service in services for path in service.handlers]
    assert paths == [
        "/tenfold.LinkService/OpenLink",
        "/tenfold.PeerService/ExchangeFinished",
        "/tenfold.PlacementService/GetPlacement",
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
    ]
