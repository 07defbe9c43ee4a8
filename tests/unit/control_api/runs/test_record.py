"""A run as a value: who starts it, what its supervisor may say, how it stops, fails and ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.record import LOCAL, RunRecord
from tenfold_core.run_states import RunState

MINE, OTHER = {"host": "h", "pid": 1}, {"host": "i", "pid": 2}
FINAL = (RunState.SUCCEEDED, RunState.FAILED, RunState.STOPPED)


def a_run(**given: Any) -> RunRecord:
    return replace(RunRecord("r", "once", "f", LOCAL, {"jobs": {"worker": 1}}, 1.0), **given)


def a_report(state: RunState = RunState.RUNNING, **given: Any) -> dict[str, Any]:
    return {
        **{"state": str(state), "reason": "it runs", "attempt": 1, "restarts": 0},
        **{"tasks": [{"job": "worker", "state": "running"}], "supervisor": MINE, **given},
    }


def refusal(call: Any, *given: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        call(*given)
    return raised.value


def test_a_new_run_waits_for_its_supervisor() -> None:
    run = a_run()
    assert (run.state, run.reason, run.version) == (RunState.PENDING, "its supervisor has not reported yet", 1)
    assert not run.joined
    assert a_run(submission_id="program:1").joined
    run.require_active()


@pytest.mark.parametrize("state", FINAL)
def test_one_that_has_ended_says_so(state: RunState) -> None:
    error = refusal(a_run(state=state, reason="why").require_active)
    assert (error.kind, error.detail) == ("run-ended", f"run r has ended: it is {state} (why).")


def test_a_service_claims_a_run_that_nobody_else_starts() -> None:
    claimed = a_run().claim("me", None)
    assert (claimed.owner, claimed.version) == ("me", 2)
    assert claimed.claim("you", "me").owner == "you"
    for run, instead_of in (
        (claimed, None),
        (claimed, "you"),
        (a_run(supervisor=MINE), None),
        *((a_run(state=state), None) for state in FINAL),
    ):
        assert run.claim("they", instead_of) is run


def test_a_supervisors_report_is_taken_over() -> None:
    run = a_run().report(a_report(attempt=2, restarts=1), 5.0)
    assert (run.state, run.reason, run.attempt, run.restarts) == (RunState.RUNNING, "it runs", 2, 1)
    assert run.tasks == ({"job": "worker", "state": "running"},)
    assert (run.supervisor, run.version, run.started, run.ended) == (MINE, 2, 5.0, None)

    assert run.report(a_report(attempt=2, restarts=1), 6.0) is run
    later = run.report(a_report(attempt=3), 6.0)
    assert (later.version, later.started, later.attempt) == (3, 5.0, 3)


def test_a_run_that_waits_has_not_started() -> None:
    run = a_run().report(a_report(RunState.PENDING), 5.0)
    assert (run.started, run.ended, run.supervisor) == (None, None, MINE)
    assert run.report(a_report(), 6.0).started == 6.0


@pytest.mark.parametrize("state", FINAL)
def test_an_end_stays(state: RunState) -> None:
    run = a_run().report(a_report(), 5.0).report(a_report(state, reason="over"), 7.0)
    assert (run.state, run.reason, run.started, run.ended) == (state, "over", 5.0, 7.0)
    assert run.report(a_report(state, reason="again"), 8.0) is run
    for other in {*FINAL, RunState.RUNNING} - {state}:
        assert refusal(run.report, a_report(other), 8.0).kind == "run-ended"


def test_another_supervisor_is_refused() -> None:
    run = a_run().report(a_report(), 5.0)
    error = refusal(run.report, a_report(supervisor=OTHER), 6.0)
    assert (error.kind, error.detail) == ("run-taken", "run r has another supervisor: process 1 on h.")


def test_who_asked_it_to_stop_said_why() -> None:
    asked = a_run().report(a_report(), 5.0).ask_to_stop("enough", 6.0)
    assert (asked.stop, asked.state, asked.version, asked.ended) == ("enough", RunState.RUNNING, 3, None)
    stopped = asked.report(a_report(RunState.STOPPED, reason="by a signal"), 7.0)
    assert stopped.reason == "enough"
    assert asked.report(a_report(RunState.FAILED, reason="it crashed"), 7.0).reason == "it crashed"
    unasked = a_run().report(a_report(RunState.STOPPED, reason="by a signal"), 7.0)
    assert unasked.reason == "by a signal"


def test_one_that_nobody_runs_stops_at_once_and_the_wish_is_kept_once() -> None:
    stopped = a_run().ask_to_stop("enough", 6.0)
    assert (stopped.state, stopped.reason, stopped.stop, stopped.ended) == (RunState.STOPPED, "enough", "enough", 6.0)
    assert stopped.version == 2
    waits = a_run(supervisor=MINE).ask_to_stop("enough", 6.0)
    assert (waits.state, waits.stop) == (RunState.PENDING, "enough")
    assert waits.ask_to_stop("again", 7.0) is waits
    for state in FINAL:
        over = a_run(state=state)
        assert over.ask_to_stop("enough", 7.0) is over


def test_one_whose_supervisor_is_gone_has_failed_with_its_tasks() -> None:
    states = ("running", "waiting", "succeeded", "failed")
    run = a_run(state=RunState.RUNNING, tasks=tuple({"index": n, "state": state} for n, state in enumerate(states)))
    failed = run.fail("it is gone", 8.0)
    assert (failed.state, failed.reason, failed.ended, failed.version) == (RunState.FAILED, "it is gone", 8.0, 2)
    assert [task["state"] for task in failed.tasks] == ["failed", "failed", "succeeded", "failed"]
    assert [task["index"] for task in failed.tasks] == [0, 1, 2, 3]
    assert failed.fail("again", 9.0) is failed
