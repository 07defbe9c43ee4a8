"""Who holds a place of a cluster, what becomes of it, what each refusal says. The machine: test_cluster_machine.py."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace
from typing import Any

import pytest

from tenfold_control_api import views
from tenfold_control_api.cluster import Cluster, Drain, Newcomer, Task, TaskState
from tenfold_control_api.leases import LeaseTable
from tenfold_control_api.problems import ApiError

PS, WORKERS = "/job:ps/replica:0/task:0", [f"/job:worker/replica:0/task:{index}" for index in range(30)]


def declared(**jobs: int) -> Cluster:
    return Cluster.new("default", uuid.uuid4().hex, jobs or {"ps": 1, "worker": 2}, now=1.0)


def comes(life: str = "a", address: str = "h:1", **more: Any) -> Newcomer:
    return Newcomer(address, life, uuid.uuid4().hex, **more)


def full(cluster: Cluster) -> Cluster:
    """Every task is there, each at an address of its own."""
    for job, index in cluster.tasks:
        cluster = cluster.register(job, index, comes(f"{job}{index}", f"{job}{index}:1"), 2.0).cluster
    return cluster


# -- who holds it


HELD = Task("ps", 0, TaskState.READY, address="h:1", incarnation="a", lease_id="lease", registrar="alice")


@pytest.mark.parametrize(
    ("task", "newcomer", "held"),
    [
        pytest.param(HELD, Newcomer("h:1", "a", "other", registrar="alice"), True, id="repeats what it said"),
        pytest.param(HELD, Newcomer("h:2", "a", "other", registrar="alice"), False, id="from another address"),
        pytest.param(HELD, Newcomer("h:1", "a", "other", registrar="bob"), False, id="by another principal"),
        pytest.param(HELD, Newcomer("h:1", "b", "other", registrar="alice"), False, id="another life"),
        pytest.param(HELD, Newcomer("h:2", "a", "lease", lease="lease"), True, id="shows the lease"),
        pytest.param(HELD, Newcomer("h:1", "a", "x", registrar="alice", lease="x"), False, id="shows another lease"),
        pytest.param(HELD, Newcomer("h:1", "b", "lease", lease="lease"), False, id="another life with the lease"),
        pytest.param(
            replace(HELD, own_lease=True), Newcomer("h:1", "a", "x", registrar="alice"), False, id="should show its own"
        ),
        pytest.param(
            replace(HELD, state=TaskState.LOST), Newcomer("h:1", "a", "x", registrar="alice"), False, id="lost it"
        ),
    ],
)
def test_who_holds_a_place(task: Task, newcomer: Newcomer, held: bool) -> None:
    assert task.held_by(newcomer) is held


@pytest.mark.parametrize(
    ("address", "sender", "here", "refused"),
    [
        ("127.0.0.1:2222", "10.0.0.2", "10.0.0.1", True),
        ("[::1]:2222", "10.0.0.2", "10.0.0.1", True),
        ("127.0.0.1:2222", "127.0.0.1", "127.0.0.1", False),
        ("127.0.0.1:2222", "10.0.0.1", "10.0.0.1", False),  # this machine by another of its addresses
        ("10.0.0.2:2222", "10.0.0.2", "10.0.0.1", False),
        ("10.0.0.3:2222", "10.0.0.2", "10.0.0.1", False),
    ],
)
def test_a_loopback_address_is_of_no_use_to_other_machines(address: str, sender: str, here: str, refused: bool) -> None:
    with pytest.raises(ApiError, match=f"sent by {sender}") if refused else contextlib.nullcontext():
        comes(address=address).require_reachable(sender, here)


def test_the_first_and_the_last_port_are_ports() -> None:
    assert [comes(address=f"h:{port}").address for port in (1, 65535)] == ["h:1", "h:65535"]
    for port in ("0", "65536", "99999"):
        with pytest.raises(ApiError, match=f"'h:{port}' is not HOST:PORT with a port from 1 to 65535"):
            comes(address=f"h:{port}")


# -- declaring


@pytest.mark.parametrize(
    ("name", "good"),
    [("a", True), ("0.b-c_D", True), ("a" * 63, True), ("a" * 64, False), ("", False), ("-a", False), ("a b", False)],
)
def test_names_of_clusters(name: str, good: bool) -> None:
    with contextlib.nullcontext() if good else pytest.raises(ApiError, match="at most 63 of them"):
        made = Cluster.new(name, "uid", {"ps": 1}, 5.0)
        assert (made.name, made.uid, made.version, made.created) == (name, "uid", 1, 5.0)


@pytest.mark.parametrize(("name", "good"), [("a", True), ("a" * 63, True), ("a" * 64, False), ("_a", False)])
def test_names_of_jobs(name: str, good: bool) -> None:
    with contextlib.nullcontext() if good else pytest.raises(ApiError, match="at most 63"):
        assert declared(**{name: 1}).jobs == {name: 1}


def test_whether_servers_stop_with_the_workers_is_kept_until_it_is_said_again() -> None:
    cluster = declared(ps=1)
    stopping = cluster.declare({"ps": 1}, 2.0, stop_with_workers=True)
    grown = stopping.declare({"ps": 2}, 3.0)
    going_on = grown.declare({"ps": 2}, 4.0, stop_with_workers=False)

    assert [each.stop_with_workers for each in (cluster, stopping, grown, going_on)] == [False, True, True, False]
    assert [each.version for each in (cluster, stopping, grown, going_on)] == [1, 2, 3, 4]
    assert stopping.tasks is cluster.tasks
    assert stopping.declare({"ps": 1}, 9.0, stop_with_workers=True) is stopping
    assert stopping.declare({"ps": 1}, 9.0) is stopping
    assert Cluster.new("c", "uid", {"ps": 1}, 1.0, stop_with_workers=True).stop_with_workers


def test_only_what_would_go_has_to_be_over() -> None:
    there = full(declared(ps=2, worker=2))

    with pytest.raises(ApiError) as refused:
        there.declare({"worker": 1}, 3.0)

    assert f"{PS}, /job:ps/replica:0/task:1, {WORKERS[1]} would go but hold live leases" in refused.value.detail
    assert (refused.value.kind, refused.value.task) == ("tasks-alive", PS)
    lost = there.end("worker", 1, TaskState.LOST, "gone", 3.0).end("ps", 1, TaskState.FINISHED, "done", 3.0)
    smaller = lost.declare({"worker": 1, "ps": 1}, 4.0)
    assert list(smaller.tasks) == [("worker", 0), ("ps", 0)]
    assert smaller.tasks["worker", 0] is there.tasks["worker", 0]
    assert smaller.declare({"worker": 1, "ps": 1, "chief": 1}, 5.0).task("chief", 0).since == 5.0


def test_a_cluster_without_jobs_is_none() -> None:
    with pytest.raises(ApiError, match="at least one job"):
        declared().declare({}, 2.0)


# -- registering


def test_what_a_task_says_of_itself_is_kept() -> None:
    device = {"name": f"{PS}/device:CPU:0", "device_type": "CPU"}
    newcomer = Newcomer("h:1", "a", "lease", (device,), insecure=True, registrar="alice", lease="lease")

    task = declared().register("ps", 0, newcomer, 2.0).task

    assert task == Task(
        "ps", 0, TaskState.READY, 2.0, "registered", "h:1", "a", (device,), "lease",
        insecure=True, registrar="alice", own_lease=True,
    )  # fmt: skip
    assert (task.name, task.absent, task.drain, task.exit_code) == (PS, False, None, None)


def test_what_it_does_not_say_is_the_safe_thing() -> None:
    task = declared().register("ps", 0, Newcomer("h:1", "a", "lease"), 2.0).task

    assert (task.insecure, task.own_lease, task.registrar, task.devices) == (False, False, None, ())
    assert (Task("ps", 0).insecure, Task("ps", 0).own_lease) == (False, False)


def test_a_task_that_moved_says_so_and_keeps_its_devices() -> None:
    device = {"name": f"{PS}/device:CPU:0"}
    cluster = declared().register("ps", 0, Newcomer("h:1", "a", "lease", (device,), lease="lease"), 2.0).cluster

    moved = cluster.register("ps", 0, Newcomer("h:2", "a", "lease", insecure=True, lease="lease"), 3.0)

    assert (moved.task.reason, moved.task.since, moved.task.address) == ("moved to a new address", 3.0, "h:2")
    assert (moved.task.devices, moved.task.insecure, moved.task.lease_id) == ((device,), True, "lease")
    assert not moved.fresh
    assert moved.cluster.task("ps", 0) is moved.task


def test_a_stranger_is_not_told_how_to_take_the_place() -> None:
    cluster = declared().register("ps", 0, comes("a"), 2.0).cluster

    with pytest.raises(ApiError) as another:
        cluster.register("ps", 0, comes("b"), 3.0)
    with pytest.raises(ApiError) as same:
        cluster.register("ps", 0, comes("a", "h:2"), 3.0)

    assert another.value.detail.endswith("or stops renewing it.")
    assert same.value.detail.endswith("shows its `lease`, too.")


def test_the_story_of_a_place_does_not_grow_without_end() -> None:
    cluster = declared(ps=1)
    for life in range(30):
        cluster = cluster.register("ps", 0, comes(str(life)), 2.0).cluster
        cluster = cluster.end("ps", 0, TaskState.LOST, f"{cluster.task('ps', 0).reason}, then lost", 3.0)
    again = cluster.register("ps", 0, comes("again"), 4.0).cluster
    done = again.end("ps", 0, TaskState.FINISHED, "x" * 600, 5.0)

    assert len(again.task("ps", 0).reason) == 500
    assert again.task("ps", 0).reason.startswith("registered again; before: registered again; before: ")
    next_run = full(declared(ps=2)).end("ps", 0, TaskState.FINISHED, "x" * 600, 5.0)
    over = next_run.end("ps", 1, TaskState.FINISHED, "done", 5.0).register("ps", 1, comes("b"), 6.0).cluster
    assert len(over.task("ps", 0).reason) == 500
    assert done.register("ps", 0, comes("b"), 6.0).task.reason == "registered", "of a run before nothing is told"


# -- claiming


def test_claims_take_what_is_free_in_order() -> None:
    cluster = full(declared(worker=4))
    for index, state in ((3, TaskState.STOPPED), (0, TaskState.LOST), (1, TaskState.FINISHED)):
        cluster = cluster.end("worker", index, state, "gone", 3.0)
    grown = cluster.declare({"worker": 6}, 4.0)
    taken = []
    for life in "abcd":
        claimed = grown.claim("worker", comes(life, f"{life}:1"), 5.0)
        grown = claimed.cluster
        taken.append(claimed.task.index)

    assert taken == [4, 5, 0, 3], "missing ones before lost and stopped ones; never finished or held ones"
    with pytest.raises(ApiError) as refused:
        grown.claim("worker", comes("e"), 6.0)
    held = "task:0 ready, task:1 finished, task:2 ready, task:3 ready, task:4 ready, task:5 ready"
    assert f"its size is 6 ({held})" in refused.value.detail
    assert refused.value.kind == "no-free-index"


@pytest.mark.parametrize(("size", "more"), [(20, False), (21, True)])
def test_the_first_twenty_that_hold_a_job_are_named(size: int, more: bool) -> None:
    cluster = full(declared(worker=size))

    with pytest.raises(ApiError) as refused:
        cluster.claim("worker", comes("late"), 3.0)

    assert refused.value.detail.count(" ready") == 20
    assert (", …)" in refused.value.detail) is more


# -- leaving


@pytest.mark.parametrize("state", [TaskState.FINISHED, TaskState.STOPPED, TaskState.LOST])
@pytest.mark.parametrize("code", [None, 0, 3])
def test_how_a_task_ends(state: TaskState, code: int | None) -> None:
    there = full(declared()).drain("ps", 0, Drain(1.0, "maintenance"))

    if state is TaskState.FINISHED and code:
        with pytest.raises(ApiError, match="ended with exit code 3, so it has not finished"):
            there.end("ps", 0, state, "over", 3.0, code)
        return
    gone = there.end("ps", 0, state, "over", 3.0, code)

    task = gone.task("ps", 0)
    assert (task.state, task.reason, task.since, task.exit_code) == (state, "over", 3.0, code)
    assert (task.lease_id, task.drain, task.address, gone.version) == (None, None, "ps0:1", there.version + 1)
    assert task.absent is (state is not TaskState.FINISHED)
    assert gone.complete is (state is TaskState.FINISHED)


def test_a_drain_is_told_once_and_to_somebody() -> None:
    there = full(declared())
    drained = there.drain("ps", 0, Drain(1.0, "maintenance"))
    longer = drained.drain("ps", 0, Drain(2.0, "maintenance"))

    assert drained.task("ps", 0).drain == Drain(1.0, "maintenance")
    assert drained.drain("ps", 0, Drain(1.0, "maintenance")) is drained
    assert (longer.version, longer.task("ps", 0).drain) == (there.version + 2, Drain(2.0, "maintenance"))
    with pytest.raises(ApiError, match=r"is lost \(gone\): there is nobody to drain") as refused:
        there.end("ps", 0, TaskState.LOST, "gone", 3.0).drain("ps", 0, Drain(1.0, "maintenance"))
    assert (refused.value.kind, refused.value.task) == ("nothing-to-drain", PS)


def test_an_operator_empties_a_place_once() -> None:
    there = full(declared())

    empty = there.deregister("ps", 0, "by request", 3.0)

    assert empty.task("ps", 0) == Task("ps", 0, TaskState.MISSING, 3.0, "by request")
    assert (empty.version, empty.missing) == (there.version + 1, (PS,))
    assert empty.deregister("ps", 0, "again", 4.0) is empty


def test_a_cluster_with_live_tasks_is_not_idle() -> None:
    cluster = full(declared(worker=12))

    with pytest.raises(ApiError) as refused:
        cluster.require_idle()

    assert f"{', '.join(WORKERS[:10])} hold live leases" in refused.value.detail
    assert (refused.value.kind, refused.value.task) == ("tasks-alive", WORKERS[0])
    for index in range(12):
        cluster = cluster.end("worker", index, [TaskState.LOST, TaskState.FINISHED][index % 2], "over", 3.0)
    cluster.require_idle()


# -- looking


def test_what_there_is_not_is_named() -> None:
    cluster = declared(ps=1, worker=2)

    for index in (-1, 2, 3):
        with pytest.raises(ApiError, match=f"has size 2: index {index} is not one of 0 to 1") as refused:
            cluster.task("worker", index)
        assert (refused.value.kind, refused.value.task) == ("no-such-task", f"/job:worker/replica:0/task:{index}")
    with pytest.raises(ApiError, match="no job 'chief'"):
        list(cluster.in_order("chief", None))
    assert [task.index for task in cluster.job("worker")] == [0, 1]
    assert (cluster.task("worker", 0).name, cluster.task("worker", 1).name) == (WORKERS[0], WORKERS[1])


def test_a_master_is_ready_and_not_drained() -> None:
    cluster = full(declared(ps=1, worker=3)).drain("worker", 0, Drain(1.0, "maintenance"))
    lost = cluster.end("worker", 1, TaskState.LOST, "gone", 3.0)

    assert cluster.pick_master(None, None).name == WORKERS[1]
    assert lost.pick_master("worker", None).name == WORKERS[2]
    assert lost.pick_master("worker", 2).name == WORKERS[2]
    assert lost.pick_master("ps", None).name == PS
    with pytest.raises(ApiError, match="task:0 is being drained: maintenance") as drained:
        lost.pick_master("worker", 0)
    with pytest.raises(ApiError, match="task:1 is lost: gone") as gone:
        lost.pick_master("worker", 1)
    with pytest.raises(ApiError, match="index 3 is not one of 0 to 2"):
        lost.pick_master("worker", 3)
    assert (drained.value.task, list(drained.value.missing_tasks)) == (WORKERS[0], [])
    assert (gone.value.task, list(gone.value.missing_tasks)) == (WORKERS[1], [WORKERS[1]])


def test_ten_that_cannot_be_the_master_are_named() -> None:
    with pytest.raises(ApiError) as refused:
        declared(worker=11).pick_master(None, None)

    assert refused.value.detail.count(" is missing: ") == 10
    assert (refused.value.task, list(refused.value.missing_tasks)) == (None, WORKERS[:11])


# -- what is kept with a value, and is not part of it


def test_what_was_shown_of_a_value_is_not_shown_of_the_next_one() -> None:
    leases = LeaseTable(lambda: 0.0, stall=1.0)
    before = full(declared())
    views.spec_json(before, after=None)
    views.task_json(before, before.task("ps", 0), leases)

    after = before.drain("ps", 0, Drain(1.0, "maintenance"))
    stopping = before.declare(before.jobs, 3.0, stop_with_workers=True)

    assert b'"stop_with_workers":true' in views.spec_json(stopping, after=None)
    assert "maintenance" in views.task_json(after, after.task("ps", 0), leases)


def test_what_was_shown_makes_no_value_another_one() -> None:
    lease = uuid.uuid4().hex
    newcomer = Newcomer("h:1", "a", lease, lease=lease)
    first = declared().register("ps", 0, newcomer, 2.0)
    same = replace(first.cluster)
    views.spec_json(first.cluster, after=None)
    views.task_json(first.cluster, first.task, LeaseTable(lambda: 0.0, stall=1.0))

    again = first.cluster.register("ps", 0, newcomer, 3.0)

    assert (again.fresh, again.cluster is first.cluster) == (False, True)
    assert (first.cluster == same, same._absent, same._made_of, same.shown) == (True, None, None, [])
    assert first.task == replace(first.task)


def test_a_value_is_written_without_those_before_it() -> None:
    text = repr(full(declared()))

    assert all(name not in text for name in ("shown", "_made_of", "_absent"))
    with pytest.raises(TypeError):
        Task("ps", 0, shown=[])  # type: ignore[call-arg]


class Unread(dict[tuple[str, int], Task]):
    """Tasks, of which nobody looks at all."""

    def items(self) -> Any:
        pytest.fail("one task has changed, and all were looked at")

    values = __iter__ = items


def test_a_change_of_one_task_is_known_without_looking_at_the_others() -> None:
    cluster = full(declared())
    gone = cluster.end("ps", 0, TaskState.LOST, "gone", 3.0)
    assert gone.differing(declared()) == [("ps", 0), ("worker", 0), ("worker", 1)]

    object.__setattr__(gone, "tasks", Unread(gone.tasks))

    assert (gone.differing(cluster), gone.dropped(cluster), gone.absent) == ([("ps", 0)], [], 1)
