"""The cluster as a value: declare, register, claim, leave. No event loop, no database."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from tenfold_control_api.cluster import Cluster, Newcomer, TaskState
from tenfold_control_api.problems import ApiError


def newcomer(incarnation: str = "a", address: str = "h:1") -> Newcomer:
    return Newcomer(address, incarnation, uuid.uuid4().hex)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.new("default", uuid.uuid4().hex, {"ps": 1, "worker": 2}, now=1.0)


def test_a_new_cluster_misses_everyone(cluster: Cluster) -> None:
    assert cluster.version == 1
    assert cluster.missing == (
        "/job:ps/replica:0/task:0",
        "/job:worker/replica:0/task:0",
        "/job:worker/replica:0/task:1",
    )


def test_the_same_declaration_changes_nothing(cluster: Cluster) -> None:
    assert cluster.declare({"ps": 1, "worker": 2}, 2.0) is cluster


def test_growing_keeps_the_tasks_that_are_there(cluster: Cluster) -> None:
    held = cluster.register("worker", 1, newcomer(), 2.0).cluster

    grown = held.declare({"ps": 1, "worker": 3}, 3.0)

    assert grown.version == held.version + 1
    assert grown.task("worker", 1).state is TaskState.READY
    assert grown.task("worker", 2).state is TaskState.MISSING


def test_shrinking_over_a_live_task_is_refused_by_name(cluster: Cluster) -> None:
    held = cluster.register("worker", 1, newcomer(), 2.0).cluster

    with pytest.raises(ApiError, match="/job:worker/replica:0/task:1 would go") as caught:
        held.declare({"ps": 1, "worker": 1}, 3.0)

    assert caught.value.code == "FAILED_PRECONDITION"


@pytest.mark.parametrize("jobs", [{}, {"ps": 0}, {"1ps": 1}, {"p s": 1}, {"": 1}, {"ps/": 1}])
def test_bad_declarations(jobs: dict[str, int]) -> None:
    with pytest.raises(ApiError) as caught:
        Cluster.new("default", uuid.uuid4().hex, jobs, 1.0)

    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("address", ["h", "h:0", "h:65536", "unix:/x", "grpc://h:1", "h:1/x", ":1", "a b:1", "[::1"])
def test_bad_addresses(address: str) -> None:
    with pytest.raises(ApiError, match="HOST:PORT"):
        newcomer(address=address)


@pytest.mark.parametrize("address", ["h:1", "127.0.0.1:65535", "[::1]:2222", "a-b.example:80", "worker_1:2222"])
def test_good_addresses(address: str) -> None:
    assert newcomer(address=address).address == address


def test_the_same_incarnation_gets_its_lease_again(cluster: Cluster) -> None:
    first = cluster.register("ps", 0, newcomer(), 2.0)
    again = first.cluster.register("ps", 0, newcomer(), 3.0)

    assert first.fresh
    assert not again.fresh
    assert again.task.lease_id == first.task.lease_id
    assert again.cluster is first.cluster


def test_devices_may_be_told_later(cluster: Cluster) -> None:
    device = {"name": "/job:ps/replica:0/task:0/device:CPU:0", "device_type": "CPU"}
    first = cluster.register("ps", 0, newcomer(), 2.0)

    told = first.cluster.register("ps", 0, replace(newcomer(), devices=(device,)), 3.0)
    again = told.cluster.register("ps", 0, newcomer(), 4.0)

    assert not told.fresh
    assert told.task.devices == (device,)
    assert told.cluster.version > first.cluster.version
    assert again.cluster is told.cluster


def test_another_incarnation_is_refused_while_the_lease_lives(cluster: Cluster) -> None:
    held = cluster.register("ps", 0, newcomer("a"), 2.0).cluster

    with pytest.raises(ApiError, match="taken by h:1") as caught:
        held.register("ps", 0, newcomer("b"), 3.0)

    assert caught.value.code == "ALREADY_EXISTS"
    assert caught.value.task == "/job:ps/replica:0/task:0"


def test_another_incarnation_takes_a_lost_index_over(cluster: Cluster) -> None:
    lost = cluster.register("ps", 0, newcomer("a"), 2.0).cluster.end("ps", 0, TaskState.LOST, "lease expired", 3.0)

    taken = lost.register("ps", 0, newcomer("b", "other:9"), 4.0)

    assert taken.fresh
    assert taken.cluster.version == lost.version + 1
    assert taken.cluster.addresses()["ps"] == {0: "other:9"}


def test_a_lost_task_keeps_its_address_in_the_spec_and_is_missing(cluster: Cluster) -> None:
    lost = cluster.register("ps", 0, newcomer(), 2.0).cluster.end("ps", 0, TaskState.LOST, "lease expired", 3.0)

    assert lost.addresses()["ps"] == {0: "h:1"}
    assert "/job:ps/replica:0/task:0" in lost.missing
    assert (lost.task("ps", 0).since, lost.task("ps", 0).reason) == (3.0, "lease expired")


def test_a_finished_task_is_not_missing(cluster: Cluster) -> None:
    done = cluster.register("ps", 0, newcomer(), 2.0).cluster.end("ps", 0, TaskState.FINISHED, "done", 3.0, 0)

    assert done.task("ps", 0).state is TaskState.FINISHED
    assert done.task("ps", 0).exit_code == 0
    assert "/job:ps/replica:0/task:0" not in done.missing


def test_a_task_that_failed_has_not_finished(cluster: Cluster) -> None:
    there = cluster.register("ps", 0, newcomer(), 2.0).cluster

    with pytest.raises(ApiError, match="task:0 ended with exit code 3, so it has not finished") as refused:
        there.end("ps", 0, TaskState.FINISHED, "done", 3.0, 3)

    assert refused.value.code == "INVALID_ARGUMENT"


def test_a_stopped_task_is_missing_and_its_index_is_free(cluster: Cluster) -> None:
    there = cluster.register("ps", 0, newcomer("a"), 2.0).cluster
    stopped = there.end("ps", 0, TaskState.STOPPED, "stopped by SIGTERM", 3.0, 143)
    back = stopped.claim("ps", newcomer("b"), 4.0)

    assert "/job:ps/replica:0/task:0" in stopped.missing
    assert (stopped.task("ps", 0).state, stopped.task("ps", 0).exit_code) == (TaskState.STOPPED, 143)
    assert stopped.addresses()["ps"] == {0: "h:1"}
    assert (back.fresh, back.task.reason) == (True, "registered again; before: stopped by SIGTERM")


def finished(cluster: Cluster) -> Cluster:
    """Every task came and has finished."""
    for job, index in cluster.tasks:
        cluster = cluster.register(job, index, newcomer("old", f"{job}{index}:1"), 2.0).cluster
    for job, index in cluster.tasks:
        cluster = cluster.end(job, index, TaskState.FINISHED, "done", 3.0, 0)
    return cluster


def test_the_first_task_after_all_have_finished_begins_the_next_run(cluster: Cluster) -> None:
    over = finished(cluster)
    for first in (over.register("ps", 0, newcomer("new"), 4.0), over.claim("ps", newcomer("new"), 4.0)):
        assert first.fresh
        assert first.cluster.missing == ("/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1")
        assert first.cluster.addresses() == {"ps": {0: "h:1"}, "worker": {}}
        assert first.cluster.version == over.version + 2, "the run, and the task"
        assert first.cluster.task("worker", 0).reason == "a new run of the cluster began; before: done"


def test_a_parameter_server_that_was_lost_comes_back_into_the_run_that_is_ending(cluster: Cluster) -> None:
    over = finished(cluster).register("ps", 0, newcomer("new"), 4.0).cluster
    for index in range(2):
        there = over.register("worker", index, newcomer("new"), 4.0).cluster
        over = there.end("worker", index, TaskState.FINISHED, "done", 5.0, 0)
    back = over.end("ps", 0, TaskState.LOST, "killed", 6.0).register("ps", 0, newcomer("newer"), 7.0)

    assert back.cluster.complete
    assert back.cluster.task("worker", 1).state is TaskState.FINISHED


def test_a_same_incarnation_that_moved_is_a_new_version(cluster: Cluster) -> None:
    first = cluster.register("ps", 0, newcomer("a", "h:1"), 2.0)
    shown = replace(newcomer("a", "h:2"), lease=first.task.lease_id)
    moved = first.cluster.register("ps", 0, shown, 3.0)

    with pytest.raises(ApiError, match="Who names the same incarnation shows its `lease`"):
        first.cluster.register("ps", 0, newcomer("a", "h:2"), 3.0)
    assert moved.cluster.version == first.cluster.version + 1
    assert moved.task.lease_id == first.task.lease_id
    assert moved.cluster.addresses()["ps"] == {0: "h:2"}


def test_claims_take_missing_indices_before_lost_ones(cluster: Cluster) -> None:
    there = cluster.register("worker", 0, newcomer("a", "x:1"), 2.0).cluster
    lost = there.end("worker", 0, TaskState.LOST, "gone", 3.0)

    assert lost.claim("worker", newcomer("b", "y:1"), 4.0).task.index == 1
    assert lost.claim("worker", newcomer("b", "x:1"), 4.0).task.index == 0, "its old address means its old index"


def test_a_claim_by_the_same_incarnation_is_the_same_place(cluster: Cluster) -> None:
    first = cluster.claim("worker", newcomer("a"), 2.0)
    again = first.cluster.claim("worker", newcomer("a"), 3.0)

    assert (again.fresh, again.task.index) == (False, first.task.index)


def test_a_claim_without_a_free_index_says_who_holds_them(cluster: Cluster) -> None:
    full = cluster.claim("ps", newcomer("a"), 2.0).cluster

    with pytest.raises(ApiError, match=r"its size is 1 \(task:0 ready\)") as caught:
        full.claim("ps", newcomer("b"), 3.0)

    assert caught.value.code == "RESOURCE_EXHAUSTED"


def test_unknown_jobs_and_indices_name_what_there_is(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match=r"no job 'chief'; its jobs are: ps \(1\), worker \(2\)"):
        cluster.job("chief")
    with pytest.raises(ApiError, match="index 2 is not one of 0 to 1"):
        cluster.task("worker", 2)


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ({"ps": 1, "worker": 2, "chief": 1}, "/job:chief/replica:0/task:0"),
        ({"ps": 1, "worker": 2}, "/job:worker/replica:0/task:0"),
        ({"ps": 1, "evaluator": 1}, "/job:evaluator/replica:0/task:0"),
    ],
)
def test_the_default_master(jobs: dict[str, int], expected: str) -> None:
    cluster = Cluster.new("default", uuid.uuid4().hex, jobs, 1.0)
    for job, size in jobs.items():
        for index in range(size):
            cluster = cluster.register(job, index, newcomer(f"{job}{index}"), 2.0).cluster

    assert cluster.pick_master(None, None).name == expected


def test_no_master_names_who_is_missing_and_why(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match="worker/replica:0/task:1 is missing: no task has registered") as caught:
        cluster.pick_master("worker", 1)

    assert caught.value.code == "UNAVAILABLE"
    assert list(caught.value.missing_tasks) == ["/job:worker/replica:0/task:1"]


def test_tasks_come_in_order_from_any_place_on() -> None:
    cluster = Cluster.new("default", uuid.uuid4().hex, {"worker": 3, "ps": 2}, now=0.0)

    def named(job: str | None, after: tuple[str, int] | None) -> list[tuple[str, int]]:
        return [(task.job, task.index) for task in cluster.in_order(job, after)]

    everything = [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1), ("worker", 2)]
    assert named(None, None) == everything
    assert named(None, ("ps", 1)) == everything[2:]
    assert named(None, ("q", 0)) == everything[2:]
    assert named("ps", ("ps", 0)) == [("ps", 1)]
    assert named("ps", ("worker", 0)) == []
    assert named("worker", ("worker", -5)) == everything[2:]


def test_absent_tasks_are_counted_with_each_change() -> None:
    cluster = Cluster.new("default", uuid.uuid4().hex, {"worker": 2}, now=0.0)
    one = cluster.register("worker", 0, Newcomer("h:1", "a", "lease"), 1.0).cluster

    assert [each.absent for each in (cluster, one, one.end("worker", 0, TaskState.LOST, "gone", 2.0))] == [2, 1, 2]
    assert one.end("worker", 0, TaskState.FINISHED, "done", 2.0).absent == 1


def _compared(old: Cluster | None, new: Cluster) -> list[tuple[str, int]]:
    before = {} if old is None else old.tasks
    return [place for place, task in new.tasks.items() if before.get(place) is not task]


def test_what_differs_is_known_without_comparing_all(cluster: Cluster) -> None:
    one = cluster.register("worker", 1, newcomer(), 2.0).cluster
    two = one.register("ps", 0, newcomer("b"), 3.0).cluster
    grown = two.declare({"ps": 1, "worker": 3}, 4.0)
    shrunk = two.end("worker", 1, TaskState.LOST, "gone", 5.0).declare({"ps": 1, "worker": 1}, 6.0)

    pairs = ((None, cluster), (cluster, one), (one, two), (cluster, two), (two, grown), (two, shrunk), (two, one))
    for old, new in pairs:
        assert new.differing(old) == _compared(old, new)
    assert one.differing(cluster) == [("worker", 1)]
    assert shrunk.dropped(two) == [("worker", 1)]
    assert grown.dropped(two) == one.dropped(None) == []


def test_a_settled_cluster_keeps_no_older_value(cluster: Cluster) -> None:
    held = cluster.register("worker", 1, newcomer(), 2.0).cluster
    held.settle()

    assert held.differing(cluster) == [("worker", 1)]
    assert held._made_of is None


def test_the_absent_are_counted_as_they_come_and_go(cluster: Cluster) -> None:
    values = [cluster]
    for place, name in ((("worker", 1), "a"), (("ps", 0), "b"), (("worker", 0), "c")):
        values.append(values[-1].register(*place, newcomer(name), 2.0).cluster)
    values.append(values[-1].end("worker", 0, TaskState.FINISHED, "done", 3.0))
    values.append(values[-1].end("ps", 0, TaskState.LOST, "gone", 3.0))
    values.append(values[-1].declare({"ps": 1, "worker": 5}, 4.0))

    assert [value.absent for value in values] == [3, 2, 1, 0, 0, 1, 4]
    assert all(value.absent == len(value.missing) for value in values)
