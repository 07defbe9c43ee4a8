"""When a run that its programs joined has ended, and how. Over REST: tests/control/test_joined_runs.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs import joined
from tenfold_control_api.runs.joined import Newcomer
from tenfold_core.run_states import RunState

if TYPE_CHECKING:
    from tenfold_control_api.runs.record import RunRecord

SUBMISSION: dict[str, Any] = {"jobs": {"ps": 1, "worker": 2}}


def a_run(*tasks: tuple[str, int], **jobs: int) -> RunRecord:
    """A run with these tasks in it; their process ids are 10, 11, …"""
    run = joined.begun("run-1", "joined:k:1", {**SUBMISSION, "jobs": jobs or SUBMISSION["jobs"]}, 1.0)
    for at, (job, index) in enumerate(tasks):
        run, _ = joined.join(run, Newcomer("k", job, index, "here", 10 + at), 2.0)
    return run


def end(run: RunRecord, job: str, index: int, state: str = "succeeded", now: float = 5.0, **more: Any) -> RunRecord:
    return joined.ended(run, job, index, {"state": state, **more}, now)


def test_it_waits_for_workers_that_have_not_come_while_anything_runs() -> None:
    serving = end(a_run(("ps", 0), ("worker", 0)), "worker", 0)
    later = end(serving, "ps", 0, "stopped", 6.0)

    assert (serving.state, joined.settled(serving, 10.0, 99.0).state) == (RunState.RUNNING, RunState.RUNNING)
    assert (later.state, joined.settled(later, 10.0, 15.0) is later) == (RunState.RUNNING, True)
    settled = joined.settled(later, 10.0, 16.0)
    assert (settled.state, settled.ended, settled.version) == (RunState.SUCCEEDED, 16.0, later.version + 1)


def test_a_worker_that_comes_in_time_goes_on_in_the_run() -> None:
    alone = end(a_run(("worker", 0)), "worker", 0)
    both, _ = joined.join(alone, Newcomer("k", "worker", 1, "here", 99), 7.0)

    assert joined.settled(both, 1.0, 99.0) is both
    assert end(both, "worker", 1).state is RunState.SUCCEEDED


def test_a_failure_is_not_waited_with() -> None:
    failed = end(a_run(("ps", 0), ("worker", 0)), "worker", 0, "failed", error={"type": "E", "message": "m"})
    working = end(a_run(("worker", 0), ("worker", 1)), "worker", 0, "failed")

    assert (failed.state, failed.reason, failed.ended) == (RunState.FAILED, "worker/0 failed: E: m", 5.0)
    assert working.state is RunState.RUNNING


def test_the_first_failure_is_the_reason() -> None:
    run = a_run(("worker", 0), ("worker", 1))
    run = end(run, "worker", 1, "failed", 4.0, error={"type": "First", "message": "", "node": "n"})
    run = end(run, "worker", 0, "failed", 5.0, error={"type": "Second", "message": "s"})

    assert run.reason == "worker/1 failed: First, node n: "


def test_a_parameter_server_that_dies_does_not_fail_workers_that_finish() -> None:
    run = joined.silent(a_run(("ps", 0), ("worker", 0), ("worker", 1)), "ps", 0, 11.0, 3.0)
    run = end(end(run, "worker", 0), "worker", 1)

    assert (run.state, run.tasks[0]["state"]) == (RunState.SUCCEEDED, "failed")
    assert run.tasks[0]["error"]["message"] == "nothing was heard of it for 11 s: it ended without a word"


def test_a_run_of_servers_alone_ends_with_them() -> None:
    run = end(a_run(("ps", 0), ps=1), "ps", 0)

    assert run.state is RunState.SUCCEEDED


def test_an_end_is_told_once() -> None:
    run = end(a_run(("worker", 0), worker=1), "worker", 0)

    assert end(run, "worker", 0, "failed") is run
    with pytest.raises(ApiError, match="has ended"):
        joined.require_here(run, "worker", 0, {"host": "here", "pid": 10})


def test_versions_grow_with_each_change_and_only_then() -> None:
    run = a_run(("worker", 0))
    again, _ = joined.join(run, Newcomer("k", "worker", 0, "here", 10), 9.0)
    other, _ = joined.join(run, Newcomer("k", "worker", 1, "here", 11), 9.0)

    assert (again is run, other.version) == (True, run.version + 1)


def test_runs_of_a_key_are_numbered() -> None:
    run = a_run(("worker", 0))

    assert (joined.following("k", None), joined.following("k", run)) == ("joined:k:1", "joined:k:2")


# -- who joins


def comes(run: RunRecord, job: str, pid: int, index: int | None = None, now: float = 7.0) -> tuple[RunRecord, int]:
    return joined.join(run, Newcomer("k", job, index, "here", pid), now)


def by_place(run: RunRecord) -> dict[tuple[str, int], tuple[str, int, int | None]]:
    """(job, index) → state, how often it was started, process."""
    return {(each["job"], each["index"]): (each["state"], each["starts"], each["pid"]) for each in run.tasks}


def test_a_run_begins_with_all_its_tasks_to_come() -> None:
    submission = {**SUBMISSION, "name": "mnist"}

    run = joined.begun("run-1", "joined:k:1", submission, 3.0)

    assert (run.id, run.submission_id, run.submission, run.launcher) == ("run-1", "joined:k:1", submission, "external")
    assert (run.state, run.attempt, run.created, run.started) == (RunState.RUNNING, 1, 3.0, 3.0)
    assert by_place(run) == {key: ("waiting", 0, None) for key in (("ps", 0), ("worker", 0), ("worker", 1))}
    assert joined.running(run) == []


def test_who_names_no_index_gets_the_next_free_one_and_then_a_new_one() -> None:
    run = a_run(("ps", 0), ("worker", 0))
    places = []
    for pid in (20, 21, 22, 20):
        run, index = comes(run, "worker", pid)
        places.append(index)

    assert places == [1, 2, 3, 1], "the last one is there already"
    assert run.submission["jobs"] == {"ps": 1, "worker": 4}
    assert joined.running(run) == [("ps", 0), ("worker", 0), ("worker", 1), ("worker", 2), ("worker", 3)]
    assert by_place(run)["worker", 2] == ("running", 1, 21)
    evaluating, index = comes(run, "evaluator", 30)
    assert (index, evaluating.submission["jobs"]) == (0, {"ps": 1, "worker": 4, "evaluator": 1})


def test_who_names_no_index_takes_the_place_of_one_that_has_ended() -> None:
    run = end(a_run(("worker", 0), ("worker", 1)), "worker", 0)

    run, index = comes(run, "worker", 20)

    assert (index, by_place(run)["worker", 0]) == (0, ("running", 2, 20))
    assert by_place(run)["worker", 1] == ("running", 1, 11)


def test_another_process_at_a_place_has_started_it_again() -> None:
    run, index = comes(a_run(("worker", 0)), "worker", 99, 0)

    task = next(task for task in run.tasks if task["pid"] == 99)
    assert (index, task["starts"], task["started"], task["state"]) == (0, 2, 7.0, "running")
    with pytest.raises(ApiError, match="process 10 on here is not worker/0"):
        joined.require_here(run, "worker", 0, {"host": "here", "pid": 10})


def test_a_process_that_has_ended_may_come_again() -> None:
    run = end(a_run(("worker", 0), ("worker", 1)), "worker", 0, exit_code=3)

    again, _ = comes(run, "worker", 10, 0)

    assert by_place(again)["worker", 0] == ("running", 2, 10)
    assert (again.tasks[1]["exit_code"], again.tasks[1]["ended"]) == (None, None)


def test_a_task_that_the_run_lacks_is_refused_with_its_jobs() -> None:
    with pytest.raises(
        ApiError, match=r"run run-1 has no task worker/2: its jobs are \{'ps': 1, 'worker': 2\}"
    ) as refused:
        comes(a_run(), "worker", 20, 2)
    assert refused.value.kind == "no-such-task"


def test_nobody_joins_a_run_that_has_ended() -> None:
    over = end(a_run(("worker", 0), worker=1), "worker", 0)

    for index in (None, 0):
        with pytest.raises(ApiError, match="has ended"):
            comes(over, "worker", 20, index)


# -- who speaks for a task


@pytest.mark.parametrize(
    ("job", "index", "process"),
    [
        pytest.param("worker", 5, {"host": "here", "pid": 10}, id="no such task"),
        pytest.param("worker", 1, {"host": "here", "pid": 11}, id="not come yet"),
        pytest.param("worker", 0, {"host": "here", "pid": 11}, id="another process"),
        pytest.param("worker", 0, {"host": "there", "pid": 10}, id="another host"),
        pytest.param("ps", 0, {"host": "here", "pid": 11}, id="ended"),
    ],
)
def test_only_the_process_that_is_a_task_speaks_for_it(job: str, index: int, process: dict[str, Any]) -> None:
    run = end(a_run(("worker", 0), ("ps", 0)), "ps", 0)
    joined.require_here(run, "worker", 0, {"host": "here", "pid": 10})

    with pytest.raises(ApiError, match=f"is not {job}/{index} of run run-1 now") as refused:
        joined.require_here(run, job, index, process)

    assert refused.value.kind == "run-left"


def test_who_has_ended_ends_once_and_others_are_as_they_were() -> None:
    run = a_run(("worker", 0), ("worker", 1))

    one = end(run, "worker", 0, "failed", exit_code=3, error={"type": "E", "message": "m"})

    assert by_place(one)["worker", 0] == ("failed", 1, 10)
    assert (one.tasks[1]["exit_code"], one.tasks[1]["ended"]) == (3, 5.0)
    assert (one.reason, one.version) == ("worker/0 failed: E: m; the others go on", run.version + 1)
    assert end(one, "worker", 0, "succeeded") is one
    assert end(one, "worker", 7) is one
    assert end(one, "ps", 0) is one, "it never came"


# -- how it ends


def test_a_program_that_was_told_to_stop_ends_a_run_as_stopped() -> None:
    run = end(end(a_run(("worker", 0), ("worker", 1)), "worker", 0), "worker", 1, "stopped")

    assert (run.state, run.reason) == (RunState.STOPPED, "worker/1 was stopped")


def test_a_failure_counts_more_than_a_stop_that_nobody_asked_for() -> None:
    run = end(end(a_run(("worker", 0), ("worker", 1)), "worker", 0, "stopped"), "worker", 1, "failed")

    assert (run.state, run.reason) == (RunState.FAILED, "worker/1 failed")


@pytest.mark.parametrize("state", ["succeeded", "failed", "stopped"])
def test_a_run_that_is_asked_to_stop_is_stopped_whatever_its_programs_say(state: str) -> None:
    run = a_run(("ps", 0), ("worker", 0)).ask_to_stop("enough", 4.0)

    run = end(run, "worker", 0, state)

    assert (run.state, run.reason, run.ended) == (RunState.STOPPED, "enough", 5.0)
    assert by_place(run)["ps", 0][0] == "stopped", "it goes on no longer"
    assert by_place(run)["worker", 0][0] == state
    assert by_place(run)["worker", 1][0] == "waiting"


def test_silence_after_a_stop_is_no_failure() -> None:
    run = joined.silent(a_run(("worker", 0)).ask_to_stop("enough", 4.0), "worker", 0, 11.0, 5.0)

    assert (run.state, run.tasks[1]["state"], run.tasks[1]["error"]) == (RunState.STOPPED, "stopped", None)


def test_a_run_that_nobody_joined_is_waited_for() -> None:
    run = a_run()

    assert joined.settled(run, 1.0, 99.0) is run


def test_a_long_reason_is_cut() -> None:
    long = {"type": None, "message": "x" * 5000}

    going_on = end(a_run(("worker", 0), ("worker", 1)), "worker", 0, "failed", error=long)
    over = end(going_on, "worker", 1)

    assert (len(going_on.reason), len(over.reason)) == (2000, 2000)
