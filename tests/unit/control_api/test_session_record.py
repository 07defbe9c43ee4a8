"""Sessions as values: whether one can be used, how many there may be, and which are over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.hand_clock import HandClock
from tenfold_control_api.cluster import Cluster, Newcomer, TaskState
from tenfold_control_api.problems import ApiError
from tenfold_control_api.session_record import OpenSessions, SessionRecord

MASTER = "/job:worker/replica:0/task:0"


def record(name: str = "s1", incarnation: str = "a") -> SessionRecord:
    return SessionRecord(name, "default", "worker", 0, incarnation, "grpc://h:1", "handle", 1, 0.0)


def cluster(incarnation: str = "a") -> Cluster:
    declared = Cluster.new("default", "id", {"worker": 1}, now=1.0)
    return declared.register("worker", 0, Newcomer("h:1", incarnation, "lease"), 2.0).cluster


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def sessions(clock: HandClock) -> OpenSessions:
    return OpenSessions(clock, limit=2, idle_timeout=10.0, ttl=100.0)


def test_a_session_of_a_ready_task_can_be_used() -> None:
    assert record().standing(cluster()) == ("ready", f"{MASTER} is ready")
    record().require_ready(cluster())


@pytest.mark.parametrize(
    ("now", "code", "retryable", "text"),
    [
        pytest.param(None, "ABORTED", False, "no longer part of cluster", id="no cluster"),
        pytest.param(cluster("b"), "ABORTED", False, "was restarted", id="another life"),
        pytest.param(
            cluster().end("worker", 0, TaskState.LOST, "no heartbeat", 3.0),
            "UNAVAILABLE",
            True,
            "is lost: no heartbeat",
            id="silent",
        ),
    ],
)
def test_a_lost_session_says_whether_it_may_come_back(
    now: Cluster | None, code: str, retryable: bool, text: str
) -> None:
    with pytest.raises(ApiError, match=text) as caught:
        record().require_ready(now)
    assert caught.value.code == code
    assert caught.value.body("/")["retryable"] is retryable


def test_places_of_sessions_to_come_count(sessions: OpenSessions) -> None:
    sessions.reserve()
    sessions.reserve()
    with pytest.raises(ApiError, match="0 sessions are open and 2 are being created"):
        sessions.reserve()
    sessions.add(record())
    sessions.unreserve()
    with pytest.raises(ApiError, match="1 sessions are open and 1 are being created"):
        sessions.reserve()
    sessions.unreserve()
    sessions.reserve()


def test_one_caller_does_not_take_all_places(clock: HandClock) -> None:
    sessions = OpenSessions(clock, limit=4, limit_per_caller=2, idle_timeout=10.0, ttl=100.0)
    sessions.add(replace(record("1"), owner="guest"))
    sessions.reserve("guest")
    assert not sessions.has_room("guest")
    with pytest.raises(ApiError, match="1 sessions of this caller are open and 1 are being created: the limit is 2"):
        sessions.reserve("guest")
    assert sessions.has_room("owner")
    sessions.reserve("owner")
    sessions.reserve("another")
    with pytest.raises(ApiError, match="1 sessions are open and 3 are being created: the limit is 4"):
        sessions.reserve("owner")
    sessions.unreserve("guest")
    sessions.reserve("guest")


def test_an_unused_session_is_over_and_one_with_a_call_is_not(sessions: OpenSessions, clock: HandClock) -> None:
    sessions.add(record("idle"))
    sessions.add(record("busy"))
    sessions.begin("busy")
    clock.now += 10
    assert [each.id for each, _ in sessions.expired()] == ["idle"]
    assert (sessions.idle_for("idle"), sessions.idle_for("busy")) == (10, 0)
    sessions.end("busy")
    sessions.remove("idle")
    clock.now += 9
    assert sessions.expired() == []
    clock.now += 1
    assert [each.id for each, _ in sessions.expired()] == ["busy"]


def test_an_old_session_is_over_even_while_it_is_used(sessions: OpenSessions, clock: HandClock) -> None:
    sessions.add(record())
    sessions.begin("s1")
    clock.now += 100
    ((found, why),) = sessions.expired()
    assert (found.id, why) == ("s1", "the session is older than 100 s")


def test_a_session_that_is_gone_is_told_so(sessions: OpenSessions) -> None:
    sessions.add(record())
    sessions.begin("s1")
    assert sessions.remove("s1") == record()
    assert sessions.remove("s1") is None
    sessions.end("s1")
    with pytest.raises(ApiError, match="there is no session 's1'"):
        sessions.begin("s1")
    assert len(sessions) == 0


def test_a_graph_that_grew_is_noted(sessions: OpenSessions) -> None:
    sessions.add(record())
    assert sessions.get("s1") == record()
    assert sessions.replace("s1", graph_version=7).graph_version == 7
    assert sessions.get("s1").graph_version == 7
    assert [each.graph_version for each in sessions] == [7]
