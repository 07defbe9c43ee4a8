"""Registry values as answers: one word for many tasks, what is missing, and TF_CONFIG."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from support.hand_clock import HandClock
from tenfold_control_api import views
from tenfold_control_api.cluster import Cluster, Drain, Newcomer, TaskState
from tenfold_control_api.figures import FiguresReport, NewestFigures
from tenfold_control_api.leases import LeaseTable
from tenfold_control_api.problems import ApiError
from tenfold_control_api.session_record import OpenSessions, SessionRecord


def cluster(*present: int) -> Cluster:
    """Of three workers, of which those in `present` are registered."""
    made = Cluster.new("default", uuid.uuid4().hex, {"worker": 3}, now=0.0)
    for index in present:
        comes = Newcomer(f"h:{index + 1}", f"life {index}", f"lease {index}")
        made = made.register("worker", index, comes, 1.0).cluster
    return made


def finished(made: Cluster, *done: int) -> Cluster:
    for index in done:
        made = made.end("worker", index, TaskState.FINISHED, "done", 2.0)
    return made


def test_a_time_is_text_in_utc() -> None:
    assert views.timestamp(1.5) == "1970-01-01T00:00:01.500Z"


@pytest.mark.parametrize(
    ("found", "word"),
    [
        pytest.param(cluster(), "waiting", id="none came"),
        pytest.param(cluster(0, 1), "waiting", id="one is missing"),
        pytest.param(cluster(0, 1, 2), "ready", id="all are there"),
        pytest.param(cluster(0, 1).end("worker", 0, TaskState.LOST, "silent", 2.0), "degraded", id="one was lost"),
        pytest.param(cluster(0, 1, 2).end("worker", 0, TaskState.STOPPED, "told", 2.0), "stopped", id="one stopped"),
        pytest.param(cluster(0, 1).end("worker", 0, TaskState.STOPPED, "told", 2.0), "waiting", id="and one missing"),
        pytest.param(finished(cluster(0, 1, 2), 0, 1), "ready", id="one still works"),
        pytest.param(finished(cluster(0, 1, 2), 0, 1, 2), "finished", id="all have finished"),
    ],
)
def test_one_word_for_the_cluster(found: Cluster, word: str) -> None:
    view = views.cluster_view(found)

    assert view.state == word
    assert sum(view.counts.values()) == 3
    (condition,) = view.conditions
    assert condition.status is (word in ("ready", "finished"))


def test_what_is_missing_is_named_with_the_reason() -> None:
    view = views.cluster_view(cluster(0, 1).end("worker", 0, TaskState.LOST, "silent for 9 s", 2.0))

    assert view.missing_tasks == ["/job:worker/replica:0/task:0", "/job:worker/replica:0/task:2"]
    assert "task:0 is lost: silent for 9 s" in view.conditions[0].message


@pytest.mark.parametrize(("after", "changed"), [(None, True), (0, True), (2, False), (9, False)])
def test_a_spec_says_whether_it_is_newer(after: int | None, changed: bool) -> None:
    found = cluster(0)
    assert found.version == 2
    assert views.spec_view(found, after=after).changed is changed
    assert json.loads(views.spec_json(found, after=after))["changed"] is changed


def test_tf_config_waits_for_every_address() -> None:
    with pytest.raises(ApiError, match="/job:worker/replica:0/task:2 is unknown"):
        views.tf_config(cluster(0, 1), "worker", 0)
    with pytest.raises(ApiError) as caught:
        views.tf_config(cluster(0, 1, 2), "worker", 7)
    assert caught.value.code == "NOT_FOUND"

    assert views.tf_config(cluster(2, 0, 1), "worker", 1) == {
        "cluster": {"worker": ["h:1", "h:2", "h:3"]},
        "task": {"type": "worker", "index": 1},
    }


def test_a_task_tells_when_it_was_heard_last() -> None:
    clock = HandClock()
    leases = LeaseTable(clock, stall=100.0)
    leases.grant("lease 0", 10.0)
    clock.now += 2.5
    found = cluster(0)

    assert views.task_view(found, found.task("worker", 0), leases).last_heartbeat_age == 2.5
    assert views.task_view(found, found.task("worker", 1), leases).last_heartbeat_age is None


def well_known() -> tuple[Cluster, LeaseTable, HandClock]:
    """Of one task with figures and a drain, one that has failed, and one that never came."""
    clock = HandClock()
    leases = LeaseTable(clock, stall=100.0)
    made = Cluster.new("default", "0" * 32, {"ps": 1, "worker": 2}, now=5.0, stop_with_workers=True)
    device = {"name": "/job:ps/replica:0/task:0/device:CPU:0", "device_type": "CPU"}
    comes = Newcomer("h:1", "life", "lease", (device,), insecure=True)
    made = made.register("ps", 0, comes, 6.0).cluster.drain("ps", 0, Drain(30.0, "the host is updated"))
    made = made.register("worker", 1, Newcomer("h:2", "other life", "other lease"), 7.0).cluster
    made = made.end("worker", 1, TaskState.LOST, "killed", 8.25, exit_code=-9)
    leases.grant("lease", 10.0)
    leases.note("lease", NewestFigures(FiguresReport(steps=3), 9.5))
    clock.now += 1.23456
    return made, leases, clock


def test_a_task_shows_all_that_is_known_of_it() -> None:
    found, leases, _ = well_known()
    figures = FiguresReport(steps=3).model_dump()

    shown = views.task_view(found, found.task("ps", 0), leases).model_dump()

    uid = shown.pop("uid")
    assert shown == {
        "name": "/job:ps/replica:0/task:0",
        "version": found.version,
        "state": "ready",
        "conditions": [{"type": "Ready", "status": True, "reason": "Ready", "message": "registered"}],
        "cluster": "default",
        "job": "ps",
        "index": 0,
        "since": "1970-01-01T00:00:06.000Z",
        "reason": "registered",
        "address": "h:1",
        "incarnation": "life",
        "devices": [
            {
                "name": "/job:ps/replica:0/task:0/device:CPU:0",
                "device_type": "CPU",
                "memory_limit": 0,
                "incarnation": None,
                "physical_device_desc": "",
            }
        ],
        "exit_code": None,
        "last_heartbeat_age": 1.235,
        "drain": {"grace": 30.0, "reason": "the host is updated"},
        "insecure": True,
        "figures": {**figures, "updated": "1970-01-01T00:00:09.500Z"},
    }
    others = {views.task_view(found, task, leases).uid for task in found.tasks.values()}
    assert (uid in others, len(others)) == (True, 3)


def test_a_task_that_failed_shows_how() -> None:
    found, leases, _ = well_known()

    shown = views.task_view(found, found.task("worker", 1), leases)

    assert (shown.state, shown.exit_code, shown.reason, shown.since) == (
        "lost",
        -9,
        "killed",
        "1970-01-01T00:00:08.250Z",
    )
    assert (shown.last_heartbeat_age, shown.figures, shown.drain) == (None, None, None)
    assert (shown.conditions[0].status, shown.conditions[0].reason) == (False, "Lost")


def test_text_and_value_of_a_task_are_the_same() -> None:
    """What a list shows quickly, by what is kept with each value, is what a task shows alone; also the second time."""
    found, leases, clock = well_known()

    for _ in range(2):
        for task in found.tasks.values():
            text, value = views.task_json(found, task, leases), views.task_view(found, task, leases)
            assert json.loads(text) == json.loads(value.model_dump_json())
        clock.now += 0.5
    assert all(len(task.shown) == 1 for task in found.tasks.values())


async def test_text_and_value_of_a_job_are_the_same() -> None:
    found, leases, _ = well_known()

    texts = await views.jobs_json(found, ["worker", "ps"], leases)

    values = [views.job_view(found, job, leases) for job in ("worker", "ps")]
    assert [json.loads(text) for text in texts] == [json.loads(value.model_dump_json()) for value in values]


def test_a_job_is_summed_up() -> None:
    found, leases, _ = well_known()

    shown = views.job_view(found, "worker", leases)

    assert (shown.name, shown.cluster, shown.size, shown.version) == ("worker", "default", 2, found.version)
    assert (shown.state, shown.missing_tasks) == ("degraded", [f"/job:worker/replica:0/task:{i}" for i in (0, 1)])
    assert shown.counts == {"missing": 1, "ready": 0, "lost": 1, "stopped": 0, "finished": 0}
    assert [task.index for task in shown.tasks] == [0, 1]
    (condition,) = shown.conditions
    assert (condition.type, condition.status, condition.reason) == ("Complete", False, "TasksMissing")
    assert condition.message.startswith("/job:worker/replica:0/task:0 is missing: no task has registered on this")
    assert condition.message.endswith("; /job:worker/replica:0/task:1 is lost: killed")
    assert views.job_view(found, "ps", leases).conditions[0].reason == "AllTasksPresent"
    with pytest.raises(ApiError, match="has no job 'chief'"):
        views.job_view(found, "chief", leases)


def test_a_cluster_shows_all_that_is_known_of_it() -> None:
    found, _, _ = well_known()

    shown = views.cluster_view(found)

    assert (shown.name, shown.uid, shown.version, shown.state) == ("default", "0" * 32, found.version, "degraded")
    assert (shown.created, shown.stop_with_workers, shown.complete) == ("1970-01-01T00:00:05.000Z", True, False)
    assert shown.jobs == {"ps": 1, "worker": 2}
    assert shown.counts == {"missing": 1, "ready": 1, "lost": 1, "stopped": 0, "finished": 0}
    assert shown.spec == {"ps": {0: "h:1"}, "worker": {1: "h:2"}}
    assert [part.split(" is ")[0] for part in shown.conditions[0].message.split("; ")] == shown.missing_tasks


def test_a_spec_shows_every_task() -> None:
    found, _, _ = well_known()

    shown = views.spec_view(found, after=None)

    assert (shown.cluster, shown.version, shown.complete, shown.stop_with_workers) == ("default", 5, False, True)
    assert (shown.jobs, shown.spec) == ({"ps": 1, "worker": 2}, {"ps": {0: "h:1"}, "worker": {1: "h:2"}})
    assert [(task.job, task.index, task.state, task.address, task.incarnation) for task in shown.tasks] == [
        ("ps", 0, "ready", "h:1", "life"),
        ("worker", 0, "missing", None, None),
        ("worker", 1, "lost", "h:2", "other life"),
    ]
    assert shown.missing_tasks == ["/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"]


@pytest.mark.parametrize("absent", [19, 20, 21])
def test_the_first_twenty_of_the_missing_are_named(absent: int) -> None:
    made = Cluster.new("default", uuid.uuid4().hex, {"worker": absent}, now=0.0)

    (condition,) = views.cluster_view(made).conditions

    assert condition.message.count(" is missing: ") == min(absent, 20)
    assert condition.message.endswith("; …") is (absent > 20)


async def turns_of_others(count: int) -> int:
    """How often another asyncio task has its turn while `count` tasks are written."""
    made = Cluster.new("default", uuid.uuid4().hex, {"worker": count}, now=0.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(other())
    text = await views.tasks_json(made, made.job("worker"), LeaseTable(HandClock(), stall=1.0))
    running.cancel()
    assert [task["index"] for task in json.loads(b"[%b]" % text)] == list(range(count))
    return turns


@pytest.mark.parametrize(("count", "turns"), [(1, 0), (views.TURN - 1, 0), (views.TURN, 1), (3 * views.TURN + 1, 3)])
async def test_others_have_their_turn_while_many_tasks_are_written(count: int, turns: int) -> None:
    assert await turns_of_others(count) == turns


def test_a_lease_tells_its_task_what_it_has_to_know() -> None:
    found, leases, _ = well_known()

    shown = views.lease_view(found, found.task("ps", 0), leases, 2.0, 10.0)

    assert shown.model_dump() == {
        "id": "lease",
        "state": "live",
        "cluster": "default",
        "task": "/job:ps/replica:0/task:0",
        "ttl": 10.0,
        "heartbeat": 2.0,
        "expires_in": pytest.approx(10.0 - 1.23456),
        "spec_version": found.version,
        "complete": False,
        "outcome": None,
        "reason": None,
        "exit_code": None,
        "drain": {"grace": 30.0, "reason": "the host is updated"},
    }
    undrained = cluster(0)
    assert views.lease_view(undrained, undrained.task("worker", 0), leases, 2.0, 10.0).drain is None


@pytest.mark.parametrize(
    ("incarnation", "state", "reason"), [("life 0", "ready", "MasterReady"), ("before", "lost", "MasterLost")]
)
def test_a_session_shows_whether_its_master_is_there(incarnation: str, state: str, reason: str) -> None:
    clock = HandClock()
    table = OpenSessions(clock, limit=2, idle_timeout=10.0, ttl=100.0)
    record = SessionRecord("s1", "default", "worker", 0, incarnation, "grpc://h:1", "handle", 7, 5.0)
    table.add(record)
    clock.now += 1.23456

    shown = views.session_view(record, cluster(0), table)

    (condition,) = shown.conditions
    assert (condition.type, condition.status, condition.reason) == ("Ready", state == "ready", reason)
    assert condition.message == record.standing(cluster(0))[1]
    assert shown.model_dump(exclude={"conditions"}) == {
        "name": "s1",
        "uid": "s1",
        "version": 7,
        "state": state,
        "cluster": "default",
        "job": "worker",
        "index": 0,
        "master": "/job:worker/replica:0/task:0",
        "target": "grpc://h:1",
        "graph_version": 7,
        "created": "1970-01-01T00:00:05.000Z",
        "idle": 1.235,
    }
