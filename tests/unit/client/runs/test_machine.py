"""The decisions of a run: success policies, failures, restarts, deadlines, stopping. No process, a clock by hand."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tenfold.runs.machine import Action, Do, RunMachine
from tenfold.runs.plan import RunPlan, RunPolicy
from tenfold_core.run_states import RunState, RunTaskState

W0, W1, PS = ("worker", 0), ("worker", 1), ("ps", 0)


def machine(jobs: dict[str, int] | None = None, **policy: Any) -> RunMachine:
    plan = RunPlan(jobs or {"ps": 1, "worker": 2}, ("trainer.py",), policy=RunPolicy(**policy))
    made = RunMachine(plan)
    assert [action.task for action in made.start(0.0)] == plan.tasks
    return made


def told(actions: list[Action], do: Do) -> list[Any]:
    return [action.task for action in actions if action.do is do]


def verdict(of: RunMachine) -> tuple[RunState, str, int]:
    assert of.verdict is not None
    return of.verdict.state, of.verdict.reason, of.verdict.exit_code


def states(of: RunMachine) -> dict[Any, str]:
    return {key: str(task.state) for key, task in of.tasks.items()}


def test_all_workers_have_to_end_and_then_the_servers_may_end_by_themselves() -> None:
    run = machine()

    assert run.ended(W0, 0, 1.0) == []
    assert run.verdict is None
    assert run.ended(W1, 0, 2.0) == []
    assert (verdict(run)[0], run.over, run.wake) == (RunState.SUCCEEDED, False, 7.0)
    assert run.ended(PS, 0, 3.0) == []
    assert run.over
    assert run.wake is None


def test_servers_that_do_not_end_are_told_and_then_killed() -> None:
    run = machine(servers_grace=5.0, stop_grace=10.0)
    run.ended(W0, 0, 1.0)
    run.ended(W1, 0, 2.0)

    assert told(run.tick(7.0), Do.TERMINATE) == [PS]
    assert run.wake == 17.0
    assert told(run.tick(17.0), Do.KILL) == [PS]
    run.ended(PS, -signal.SIGKILL, 17.1)
    assert run.over
    assert verdict(run) == (RunState.SUCCEEDED, "every worker has finished", 0)
    assert states(run)[PS] == "stopped"


def test_a_failure_gives_the_others_time_and_then_ends_them() -> None:
    run = machine(grace=30.0)

    actions = run.ended(W1, 3, 1.0)
    assert told(actions, Do.REPORT) == [W1]
    assert (run.verdict, run.wake) == (None, 31.0)
    late = run.tick(31.0)

    assert told(late, Do.SAY) == [None]
    assert late[0].text == "30 s after the first failure: stopping worker/0."
    assert told(late, Do.TERMINATE) == [W0]
    # parameter servers last
    assert told(run.ended(W0, -signal.SIGTERM, 32.0), Do.TERMINATE) == [PS]
    run.ended(PS, 143, 33.0)
    assert verdict(run) == (RunState.FAILED, "worker/1 ended with exit code 3", 3)
    assert run.over


def test_the_first_failure_counts() -> None:
    run = machine({"worker": 2})
    run.ended(W1, -signal.SIGKILL, 1.0)
    run.ended(W0, 5, 2.0)

    assert verdict(run) == (RunState.FAILED, "worker/1 was ended by SIGKILL", 128 + signal.SIGKILL)
    assert run.over


def test_a_parameter_server_that_fails_ends_the_run() -> None:
    run = machine()

    actions = run.ended(PS, 1, 1.0)

    assert told(actions, Do.TERMINATE) == [W0, W1]
    assert verdict(run)[:2] == (RunState.FAILED, "ps/0 ended with exit code 1")


def test_any_worker_is_enough() -> None:
    run = machine({"worker": 2}, success="any")
    run.ended(W0, 1, 1.0)
    assert run.wake is None

    run.ended(W1, 0, 2.0)

    assert verdict(run) == (RunState.SUCCEEDED, "worker/1 has finished", 0)


def test_any_fails_when_all_have() -> None:
    run = machine({"worker": 2}, success="any")
    run.ended(W0, 1, 1.0)
    run.ended(W1, 2, 2.0)

    assert verdict(run) == (RunState.FAILED, "worker/0 ended with exit code 1", 1)


def test_the_chief_decides_alone() -> None:
    run = machine({"worker": 3}, success="chief", restarts=1)

    # not even a restart is spent on another one
    assert told(run.ended(W1, 9, 1.0), Do.START) == []
    actions = run.ended(W0, 0, 2.0)

    assert told(actions, Do.TERMINATE) == [("worker", 2)]
    assert verdict(run) == (RunState.SUCCEEDED, "the chief has finished", 0)


@pytest.mark.parametrize(
    ("jobs", "chief"),
    [
        ({"ps": 1, "chief": 1, "worker": 2}, ("chief", 0)),
        ({"ps": 1, "worker": 2, "master": 1}, ("master", 0)),
        ({"ps": 2, "worker": 2}, W0),
        ({"ps": 1, "evaluator": 1}, ("evaluator", 0)),
    ],
)
def test_who_the_chief_is(jobs: dict[str, int], chief: tuple[str, int]) -> None:
    assert RunPlan(jobs, ("t.py",)).chief == chief


def test_a_task_alone_is_started_again_after_a_growing_pause() -> None:
    run = machine(restarts=3, backoff=1.0, longest_backoff=3.0)

    first = run.ended(W0, 1, 10.0)
    assert (told(first, Do.START), run.wake) == ([], 11.0)
    assert "again in 1 s; 2 more restarts allowed" in first[1].text
    assert told(run.tick(11.0), Do.START) == [W0]
    run.ended(W0, 1, 20.0)
    assert run.wake == 22.0
    run.tick(22.0)
    run.ended(W0, 1, 30.0)
    assert run.wake == 33.0
    run.tick(33.0)
    run.ended(W0, 0, 34.0)
    run.ended(W1, 0, 35.0)

    assert (verdict(run)[0], run.attempt, run.tasks[W0].starts) == (RunState.SUCCEEDED, 1, 4)


def test_how_a_task_failed_is_said_though_it_starts_again_at_once() -> None:
    run = machine(restarts=1)
    actions = run.ended(PS, -signal.SIGKILL, 1.0)

    assert [action.do for action in actions] == [Do.REPORT, Do.SAY, Do.START]
    assert actions[0].text == "was ended by SIGKILL"


def test_a_gang_is_started_again_as_one() -> None:
    run = machine(restarts=1, gang=True, backoff=5.0)

    assert told(run.ended(W0, 1, 10.0), Do.TERMINATE) == [W1]
    assert told(run.ended(W1, -signal.SIGTERM, 11.0), Do.TERMINATE) == [PS]
    assert told(run.ended(PS, 143, 12.0), Do.START) == []
    assert run.wake == 15.0
    assert told(run.tick(15.0), Do.START) == [PS, W0, W1]
    assert (run.attempt, run.restarts_used) == (2, 1)
    # the next failure is final
    run.ended(W0, 7, 20.0)
    assert verdict_after_all(run) == (RunState.FAILED, "worker/0 ended with exit code 7", 7)


def verdict_after_all(run: RunMachine) -> tuple[RunState, str, int]:
    while not run.over:
        assert run.wake is not None or run.verdict is None
        for key, task in run.tasks.items():
            if task.state is RunTaskState.RUNNING:
                run.ended(key, 0, 100.0)
    return verdict(run)


def test_a_gang_with_a_deaf_member_is_killed() -> None:
    run = machine({"worker": 2}, restarts=1, gang=True, stop_grace=4.0)
    run.ended(W0, 1, 10.0)

    assert run.wake == 14.0
    assert told(run.tick(14.0), Do.KILL) == [W1]
    assert told(run.ended(W1, -signal.SIGKILL, 14.5), Do.START) == [W0, W1]


def test_a_deadline_holds_over_restarts() -> None:
    run = machine({"worker": 1}, restarts=9, gang=True, deadline=60.0)
    run.ended(W0, 1, 50.0)

    actions = run.tick(60.0)

    assert told(actions, Do.TERMINATE) == [W0]
    run.ended(W0, -signal.SIGTERM, 61.0)
    assert verdict(run) == (RunState.FAILED, "the run's deadline of 60 s has passed", 1)
    assert run.over


def test_stopping() -> None:
    run = machine()

    assert told(run.stop("stopped by request", 1.0, 143), Do.TERMINATE) == [W0, W1]
    assert told(run.ended(W0, 0, 2.0), Do.TERMINATE) == []
    assert told(run.ended(W1, 143, 3.0), Do.TERMINATE) == [PS]
    run.ended(PS, 0, 4.0)

    assert verdict(run) == (RunState.STOPPED, "stopped by request", 143)
    assert set(states(run).values()) == {"stopped"}


def test_stopping_while_a_task_waits_for_its_restart() -> None:
    run = machine({"worker": 1}, restarts=1, backoff=9.0)
    run.ended(W0, 1, 1.0)

    run.stop("enough", 2.0)

    assert run.over
    assert (verdict(run)[0], states(run)[W0]) == (RunState.STOPPED, "stopped")


def test_a_stop_after_the_verdict_hastens_the_end_only() -> None:
    run = machine()
    run.ended(W0, 0, 1.0)
    run.ended(W1, 0, 2.0)

    assert told(run.stop("enough", 3.0), Do.TERMINATE) == [PS]
    assert verdict(run)[0] is RunState.SUCCEEDED


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"success": "some"}, "success is 'some'; it is one of chief, all, any"),
        ({"restarts": -1}, "restarts is -1"),
        ({"deadline": 0}, "deadline is 0 s; it must be more than 0"),
    ],
)
def test_a_policy_that_cannot_be(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        RunPolicy(**wrong)


def test_somebody_has_to_end_the_run() -> None:
    with pytest.raises(ValueError, match="nobody to end the run"):
        RunPlan({"ps": 2}, ("t.py",))


def test_a_run_is_patient_between_a_failure_and_its_verdict() -> None:
    run = machine(grace=30.0)

    run.ended(W1, 1, 1.0)
    waits = run.patient
    run.ended(W0, 0, 2.0)

    assert (waits, run.patient) == (True, False)


def test_tasks_that_the_engine_does_not_take_again_are_named_and_fail() -> None:
    run = machine(restarts=1, gang=True)
    run.ended(W0, 1, 1.0)
    run.ended(W1, -signal.SIGTERM, 1.1)
    again = run.ended(PS, -signal.SIGTERM, 1.2)
    assert told(again, Do.START) == [PS, W0, W1]

    said = run.not_started("n1: its host is gone", 1.3)

    reason = "ps/0, worker/0, worker/1 cannot start again: n1: its host is gone"
    assert said == [Action(Do.SAY, text=reason)]
    assert verdict(run) == (RunState.FAILED, reason, 1)
    assert set(states(run).values()) == {"failed"}
    assert [task.starts for task in run.tasks.values()] == [1, 1, 1]
    assert run.over


def test_a_run_that_has_not_begun_fails_with_its_tasks() -> None:
    run = RunMachine(RunPlan({"ps": 1, "worker": 1}, ("trainer.py",)))

    run.not_started("no room", 0.0)

    assert verdict(run) == (RunState.FAILED, "ps/0, worker/0 cannot start: no room", 1)
    assert run.over
