"""A sweep as a state machine: the queue, room, early stops, refusals, and what always holds."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tenfold_control_api.sweeps.machine import ENDED, REFUSED, RUNNING, Room, Start, Stop, SweepMachine
from tenfold_control_api.sweeps.median import MedianRule

GB = 1 << 30


def a_machine(count: int = 4, **given: Any) -> SweepMachine:
    options: dict[str, Any] = {"parallel": 2, "each": Room(1, GB), "there": Room(4, 8 * GB), **given}
    return SweepMachine([{"lr": at} for at in range(count)], **options)


def started(machine: SweepMachine) -> list[int]:
    """Carries out the starts that are decided."""
    found = [each.index for each in machine.decide() if isinstance(each, Start)]
    for index in found:
        machine.started(index, f"run-{index}")
    return found


def test_a_place_that_becomes_free_goes_to_the_next_one() -> None:
    machine = a_machine()

    first = started(machine)
    none = started(machine)
    machine.observed(1, "SUCCEEDED", [])
    second = started(machine)

    assert (first, none, second) == ([0, 1], [], [2])
    assert not machine.over


@pytest.mark.parametrize(
    ("each", "there", "at_once"),
    [
        (Room(1), Room(4), 4),
        (Room(3), Room(4), 1),
        (Room(1, 3 * GB), Room(4, 8 * GB), 2),
        (Room(1, 3 * GB), Room(), 5),
        (Room(), Room(1, GB), 5),
    ],
)
def test_no_more_run_than_find_room(each: Room, there: Room, at_once: int) -> None:
    assert len(started(a_machine(9, parallel=5, each=each, there=there))) == at_once


def test_a_trial_that_never_finds_room_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"takes 5 cores and 0 bytes of memory, and there are 4 cores"):
        a_machine(each=Room(5))
    with pytest.raises(ValueError, match="at least 1"):
        a_machine(parallel=0)


def test_the_worst_is_stopped_once_and_its_place_is_free_when_it_has_ended() -> None:
    machine = a_machine(parallel=3, rule=MedianRule(others=2))
    started(machine)
    for index, value in enumerate((1.0, 2.0, 9.0)):
        machine.observed(index, "RUNNING", [(1, value)])

    decisions, again = machine.decide(), machine.decide()
    machine.observed(2, "STOPPED", [(1, 9.0)])

    assert decisions == [Stop(2, "run-2", "by step 1 its best is 9, and the median of 2 others is 1.5")]
    assert again == []
    assert started(machine) == [3]
    assert machine.trials[2].early


def test_the_curve_of_one_that_has_ended_still_counts() -> None:
    machine = a_machine(3, rule=MedianRule(others=2))
    started(machine)
    machine.observed(0, "SUCCEEDED", [(5, 1.0)])
    machine.observed(1, "FAILED", [(5, 2.0)])
    started(machine)

    machine.observed(2, "RUNNING", [(5, 9.0)])

    assert [type(each) for each in machine.decide()] == [Stop]


def test_a_refusal_starts_nothing_more_and_stops_what_runs() -> None:
    machine = a_machine()
    machine.decide()
    machine.started(0, "run-0")
    machine.refused(1, "there is no such folder")

    decisions = machine.decide()
    machine.observed(0, "STOPPED", [])

    assert decisions == [Stop(0, "run-0", "trial 1 could not be started")]
    assert machine.over
    assert [trial.phase for trial in machine.trials] == [ENDED, REFUSED, REFUSED, REFUSED]
    assert not machine.trials[0].early


def test_a_trial_that_is_started_while_the_sweep_stops_is_stopped_then() -> None:
    machine = a_machine(1)
    machine.decide()
    machine.stop("stopped by SIGINT")
    machine.stop("late")

    before = machine.decide()
    machine.started(0, "run-0")

    assert before == []
    assert machine.decide() == [Stop(0, "run-0", "stopped by SIGINT")]


def test_one_that_was_stopped_early_before_is_known_by_its_run() -> None:
    machine = a_machine(1)
    started(machine)

    machine.observed(0, "STOPPED", [], early=True)

    assert machine.trials[0].early
    assert machine.over


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_no_more_run_than_may_and_every_trial_ends(seed: int) -> None:
    draw = random.Random(seed)
    machine = a_machine(12, parallel=3, each=Room(2), there=Room(5), rule=MedianRule(others=1))
    stops: list[str] = []
    for _ in range(500):
        for decision in machine.decide():
            if isinstance(decision, Stop):
                stops.append(decision.run)
            elif draw.random() < 0.02:
                machine.refused(decision.index, "no")
            else:
                machine.started(decision.index, f"run-{decision.index}")
        assert len(machine.active) <= 2
        if machine.over:
            break
        for trial in machine.active:
            state = draw.choice(["RUNNING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"])
            machine.observed(trial.index, state, [(1, draw.random())])

    assert machine.over
    assert len(stops) == len(set(stops))
    assert all(trial.phase != RUNNING for trial in machine.trials)
