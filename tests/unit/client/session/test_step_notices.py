"""When it is said what a step waits for: after five seconds, at pauses that grow, and only if it waits for others."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from support.hand_clock import HandClock
from tenfold.session.step_notices import FIRST_S, GROWTH, LONGEST_PAUSE_S, StepNotices

PLAN: Any = SimpleNamespace(names=["loss:0"], target_names=["train"])
#: What a notice ends with.
MORE = "(what to do: docs/how-to/by-symptom.md#it-hangs)"


class Master:
    """Tells what its test says."""

    def __init__(self, *waits: str) -> None:
        self.waits = list(waits)
        self.asked: list[str] = []

    def step_waits(self, handle: str, timeout: float) -> list[str]:
        """See WaitTellingMaster."""
        self.asked.append(handle)
        return self.waits


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def notices(clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> StepNotices:
    """Without its thread: the tests look."""
    monkeypatch.setattr(StepNotices, "_start", lambda notices: None)
    return StepNotices(clock)


def test_it_is_said_after_five_seconds_and_then_less_and_less_often(
    notices: StepNotices, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    master = Master("'get' (QueueDequeueV2 of 'work') at /job:ps/replica:0/task:0: there are 0 elements, too few")
    number = notices.begin(PLAN, master, "a session")
    began, said = clock.now, []
    for _ in range(200):
        clock.now += 1
        notices.look()
        if len(caplog.messages) > len(said):
            said.append(clock.now - began)
    notices.end(number)
    clock.now += 10_000
    notices.look()

    assert said == [FIRST_S, FIRST_S * GROWTH, FIRST_S * GROWTH**2, FIRST_S * GROWTH**3]
    assert master.asked == ["a session"] * 4
    assert caplog.messages[0] == f"a step of loss:0, train has run for 5 s; waiting for {master.waits[0]} {MORE}"


def test_pauses_grow_up_to_an_hour(notices: StepNotices, clock: HandClock) -> None:
    notices.begin(PLAN, Master(), "a session")
    (step,) = notices._steps.values()
    step.due = 9 * LONGEST_PAUSE_S
    clock.now += step.due
    notices.look()

    assert step.due == 10 * LONGEST_PAUSE_S


@pytest.mark.parametrize("master", [Master(), object()])
def test_nothing_is_said_of_a_step_that_waits_for_nobody(
    master: object, notices: StepNotices, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    notices.begin(PLAN, master, "a session")
    clock.now += 60
    notices.look()

    assert caplog.messages == []


def test_a_master_that_fails_to_tell_is_no_trouble(notices: StepNotices, clock: HandClock) -> None:
    class Away(Master):
        def step_waits(self, handle: str, timeout: float) -> list[str]:
            raise TimeoutError

    notices.begin(PLAN, Away(), "a session")
    clock.now += 60
    notices.look()


def test_a_step_that_ends_while_its_master_is_asked_is_not_told_of(
    notices: StepNotices, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Slow(Master):
        def step_waits(self, handle: str, timeout: float) -> list[str]:
            notices.end(number)
            return ["something"]

    number = notices.begin(PLAN, Slow(), "a session")
    clock.now += 60
    notices.look()

    assert caplog.messages == []


def test_many_names_and_waits_are_cut(notices: StepNotices, clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    plan: Any = SimpleNamespace(names=[f"x{i}:0" for i in range(9)], target_names=[])
    notices.begin(plan, Master(*(f"w{i}" for i in range(9))), "a session")
    clock.now += 5
    notices.look()

    assert caplog.messages == [
        f"a step of x0:0, x1:0, x2:0, x3:0, x4:0, … has run for 5 s; waiting for w0; w1; w2; w3; w4; and 4 more {MORE}"
    ]


def test_its_thread_starts_with_the_first_step() -> None:
    notices = StepNotices()
    assert notices._thread is None
    number = notices.begin(PLAN, Master(), "a session")
    notices.end(number)

    assert notices._thread in threading.enumerate()
    assert notices._thread is not None
    assert notices._thread.daemon
