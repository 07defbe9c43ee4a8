"""Registry values as answers: one word for many tasks, what is missing, and TF_CONFIG."""

from __future__ import annotations

import json
import uuid

import pytest

from support.hand_clock import HandClock
from tenfold_control_api import views
from tenfold_control_api.cluster import Cluster, Newcomer, TaskState
from tenfold_control_api.leases import LeaseTable
from tenfold_control_api.problems import ApiError


def cluster(*present: int) -> Cluster:
    """Of three workers, of which those in `present` are registered."""
    made = Cluster.new("default", uuid.uuid4().hex, {"worker": 3}, now=0.0)
    for index in present:
        comes = Newcomer(f"h:{index + 1}", f"life {index}", f"lease {index}")
        made = made.register("worker", index, comes, 1.0).cluster
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
    ],
)
def test_one_word_for_the_cluster(found: Cluster, word: str) -> None:
    view = views.cluster_view(found)

    assert view.state == word
    assert sum(view.counts.values()) == 3
    (condition,) = view.conditions
    assert condition.status is (word == "ready")


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
