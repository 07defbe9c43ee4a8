"""The state of one step, without an event loop: events in, decisions out."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tenfold_core import errors
from tenfold_services.master import step_state
from tenfold_services.master.step_state import (
    ArmGrace,
    Cancel,
    Finish,
    StepState,
    describe_pending,
    from_task,
    is_consequence,
    new_step_id,
)

PS, W0, W1 = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"


def failure(text: str, cls: type[errors.OpError] = errors.InvalidArgumentError) -> errors.OpError:
    return cls(None, None, text)


def started(*tasks: str) -> StepState:
    state = StepState(tasks)
    assert list(state.pending) == list(tasks)
    assert not state.finished
    return state


def test_all_parts_start_at_once_and_the_last_end_finishes() -> None:
    state = started(PS, W0)

    assert state.part_done(PS) == []
    assert state.part_done(W0) == [Finish()]
    assert state.error is None
    assert state.finished


def test_a_step_without_parts_is_over_at_once() -> None:
    assert StepState([]).finished
    assert StepState([]).grace_over() == []


def test_the_first_error_cancels_the_others_and_waits_for_them() -> None:
    state = started(PS, W0, W1)

    assert state.part_failed(W0, failure("bad shape")) == [Cancel(PS), Cancel(W1), ArmGrace()]
    assert state.part_done(PS) == []
    assert state.part_done(W1) == [Finish()]
    assert state.error is not None
    assert state.error.message == "bad shape"
    assert state.failed_task == W0


def test_an_error_of_the_last_part_finishes_without_grace() -> None:
    state = started(PS, W0)
    state.part_done(PS)

    assert state.part_failed(W0, failure("late")) == [Finish()]


def test_a_later_error_does_not_replace_the_first() -> None:
    state = started(PS, W0)
    state.part_failed(PS, failure("first"))

    assert state.part_failed(W0, failure("second")) == [Finish()]
    assert state.error is not None
    assert state.error.message == "first"


@pytest.mark.parametrize(
    "consequence",
    [failure("receive cancelled", errors.CancelledError), failure("[_Derived_]Step aborted", errors.AbortedError)],
)
def test_a_cause_replaces_its_consequence(consequence: errors.OpError) -> None:
    state = started(PS, W0)
    state.part_failed(W0, consequence)

    state.part_failed(PS, failure("division by zero"))

    assert state.error is not None
    assert state.error.message == "division by zero"
    assert state.failed_task == PS


def test_a_consequence_does_not_replace_a_cause() -> None:
    state = started(PS, W0)
    state.part_failed(PS, failure("cause"))

    state.part_failed(W0, failure("receive cancelled", errors.CancelledError))

    assert state.failed_task == PS


def test_the_deadline_names_what_is_pending_and_nothing_replaces_it() -> None:
    state = started(PS, W0)
    state.part_done(W0)

    assert state.deadline(0.25) == [Cancel(PS), ArmGrace()]
    assert state.part_failed(PS, failure("cancelled inside", errors.AbortedError)) == [Finish()]
    assert isinstance(state.error, errors.DeadlineExceededError)
    assert state.error.message == f"The step did not finish within 250 ms; still pending on {PS}."
    assert state.failed_task is None


def test_a_verdict_from_outside_replaces_an_error_that_still_waits_for_parts() -> None:
    state = started(PS, W0)
    state.part_failed(PS, failure("cause"))

    assert state.interrupt(failure("session closed", errors.CancelledError)) == []
    assert state.part_done(W0) == [Finish()]
    assert state.error is not None
    assert state.error.message == "session closed"


def test_a_part_that_does_not_stop_holds_the_error_back_no_longer_than_the_grace() -> None:
    state = started(PS, W0)
    state.part_failed(PS, failure("cause"))

    assert state.grace_over() == [Finish()]
    assert list(state.pending) == [W0]
    assert state.grace_over() == []


def test_nothing_is_decided_after_the_end() -> None:
    state = started(PS)
    state.part_done(PS)

    assert state.deadline(1.0) == []
    assert state.interrupt(failure("too late")) == []
    assert state.grace_over() == []
    assert state.error is None


def test_a_late_end_after_the_grace_decides_nothing() -> None:
    state = started(PS, W0)
    state.part_failed(PS, failure("cause"))
    state.grace_over()

    assert state.part_done(W0) == []


def test_the_task_is_named_once() -> None:
    named = from_task(failure("no such thing", errors.NotFoundError), PS)

    assert isinstance(named, errors.NotFoundError)
    assert named.message == f"From {PS}:\nno such thing"
    assert from_task(named, W0) is named


def test_pending_tasks_are_listed_up_to_ten() -> None:
    assert describe_pending([]) == "no part of it was running"
    assert describe_pending([PS, W0]) == f"still pending on {PS}, {W0}"
    assert describe_pending([f"t{i}" for i in range(12)]).endswith("t9 and 2 more tasks")


def test_what_counts_as_a_consequence() -> None:
    assert is_consequence(failure("x", errors.CancelledError))
    assert not is_consequence(failure("x", errors.UnavailableError))


# -- numbers of steps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("drawn", "number"), [(0, 1), (1, 1), ((1 << 56) - 1, (1 << 56) - 1)])
def test_the_number_of_a_step_is_never_nought(monkeypatch: pytest.MonkeyPatch, drawn: int, number: int) -> None:
    asked: list[int] = []
    monkeypatch.setattr(step_state, "_step_ids", SimpleNamespace(getrandbits=lambda bits: asked.append(bits) or drawn))
    assert new_step_id() == number
    assert asked == [56]


FORK = """
import os
from tenfold_services.master.step_state import new_step_id
ours, theirs = os.pipe()
if os.fork() == 0:
    os.write(theirs, str(new_step_id()).encode())
    os._exit(0)
print(int(os.read(ours, 100)) != new_step_id())
os.wait()
"""


def test_a_process_that_forks_does_not_share_its_numbers() -> None:
    found = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == "True\n"
