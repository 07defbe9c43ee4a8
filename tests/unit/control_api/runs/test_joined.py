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
