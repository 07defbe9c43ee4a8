"""The machine that says what has ended and what takes too long: no clock, no connection."""

from __future__ import annotations

from tenfold.launchers.kubernetes_status import Ended, PodView
from tenfold.launchers.kubernetes_tasks import KILL, TERM, PodTask, PodTasks


def begun(now: float = 0.0) -> tuple[PodTasks, PodTask]:
    tasks = PodTasks(grace=5, patience=100)
    task = tasks.begin("worker/0", "p", 1, now)
    task.created = True
    return tasks, task


def seen(**more: object) -> PodView:
    return PodView("p", "u", "n1", **more)  # type: ignore[arg-type]


def test_an_end_counts_once_its_last_lines_are_there() -> None:
    tasks, task = begun()
    assert tasks.on_pod(seen(started=True), False, 1.0).follow is task
    assert tasks.on_pod(seen(started=True), False, 2.0).follow is None
    tasks.on_pod(seen(started=True, ended=Ended(3)), False, 3.0)
    assert task.exit_code is None
    tasks.all_read(task, 4.0)
    assert (task.exit_code, task.over_at, tasks.running) == (3, 4.0, [])


def test_a_log_that_does_not_end_is_not_waited_for_for_ever() -> None:
    tasks, task = begun()
    tasks.on_pod(seen(started=True, ended=Ended(0)), False, 3.0)
    assert tasks.overdue(17.0) == []
    assert tasks.overdue(19.0) == ["the last lines of worker/0 may be missing: its log does not end"]
    assert task.exit_code == 0


def test_the_server_is_told_once_and_again_where_it_did_not_hear() -> None:
    tasks, task = begun()
    tasks.ask([task], TERM)
    assert tasks.to_tell(0.0) == [task]
    tasks.not_told(task, 0.0)
    assert tasks.to_tell(4.0) == []
    assert tasks.to_tell(5.0) == [task]
    tasks.told(task, TERM, 5.0)
    assert tasks.to_tell(9.0) == []
    tasks.ask([task], KILL)
    tasks.ask([task], TERM)  # a kill stays one
    assert (tasks.to_tell(9.0), task.asked) == ([task], KILL)


def test_a_node_that_does_not_end_its_pod_is_lost() -> None:
    tasks, task = begun()
    tasks.on_pod(seen(started=True), False, 1.0)
    tasks.told(task, TERM, 10.0)
    tasks.overdue(44.0)
    assert task.exit_code is None
    tasks.overdue(46.0)
    assert (task.exit_code, task.error) == (-9, {"type": "HostLost", "message": "n1 does not end pod/p"})
    assert (tasks.take_unwanted(), tasks.take_unwanted()) == ({"p": 0}, {})


def test_a_pod_that_others_delete_gets_the_time_that_they_gave_it() -> None:
    tasks, task = begun()
    tasks.on_pod(seen(started=True, deleted=20.0), False, 1.0)
    tasks.overdue(1.0)
    tasks.overdue(50.0)
    assert task.exit_code is None
    tasks.overdue(52.0)
    assert task.exit_code == -9


def test_one_that_does_not_start_is_given_up() -> None:
    tasks, task = begun()
    assert tasks.on_pod(seen(waits="Unschedulable: full"), False, 1.0).say == "worker/0 waits: Unschedulable: full"
    assert tasks.on_pod(seen(waits="Unschedulable: full"), False, 2.0).say == ""
    tasks.overdue(101.0)
    assert (task.exit_code, task.error) == (
        1,
        {"type": "NotStarted", "message": "not within 100 s: Unschedulable: full"},
    )
    assert tasks.take_unwanted() == {"p": 1}


def test_one_that_is_refused_is_deleted() -> None:
    tasks, task = begun()
    tasks.on_pod(seen(refused={"type": "InvalidImageName", "message": "x"}), False, 1.0)
    assert (task.exit_code, tasks.take_unwanted()) == (1, {"p": 1})


def test_a_list_tells_of_pods_that_are_gone_but_not_of_those_that_came_after_it() -> None:
    tasks, task = begun()
    tasks.on_list([], set(), 1.0)
    assert task.exit_code is None
    tasks.on_list([task], {"p"}, 1.0)
    assert task.exit_code is None
    tasks.on_list([task], set(), 1.0)
    assert task.exit_code == -9


def test_news_of_an_earlier_start_is_not_taken_for_the_newer_one() -> None:
    tasks, _ = begun()
    task = tasks.begin("worker/0", "p2", 1, 5.0)
    tasks.on_pod(seen(ended=Ended(1)), False, 6.0)
    assert task.exit_code is None
