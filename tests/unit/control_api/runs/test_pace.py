"""How long the rest of a training takes: by the pace of the last minutes, also where checkpoints were restored."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold_control_api.runs.pace import WINDOW_S, pace, percent, seconds_left
from tenfold_control_api.runs.progress import Curve, TaskProgress, summed_up


def points(*of: tuple[float, int]) -> list[tuple[float, int | None, Any]]:
    return [(moment, step, "of a program") for moment, step in of]


def of(*told: tuple[float, int], still: float = 0.0) -> float | None:
    made = points(*told)
    return pace(made, made[-1] if made else None, still)


def test_it_is_that_of_the_last_minutes() -> None:
    slow = [(float(second), second) for second in range(1000)]
    fast = [(1000.0 + second, 1000 + 10 * second) for second in range(0, int(WINDOW_S) + 1)]

    assert of(*slow) == 1.0
    assert of(*slow, *fast) == 10.0


def test_of_a_long_run_the_last_two_points_that_there_are() -> None:
    assert of((0, 0), (4000, 100), (8000, 900)) == 0.2


def test_a_newest_point_without_a_step_tells_nothing() -> None:
    assert pace(points((0.0, 0), (9.0, 9)), (10.0, None, 10), 0.0) is None


def test_it_falls_while_nothing_moves() -> None:
    assert of((0, 0), (10, 100), still=0.0) == 10.0
    assert of((0, 0), (10, 100), still=30.0) == 2.5


def test_before_a_restore_nothing_counts() -> None:
    assert of((0, 0), (100, 900), (110, 400), (120, 500)) == 10.0
    # it has just been restored
    assert of((0, 0), (100, 900), (110, 400)) is None


def test_a_session_may_see_the_step_before_another_one_does() -> None:
    assert of((0, 0), (9.9, 101), (10, 100)) == 10.0


@pytest.mark.parametrize("told", [(), ((5, 7),), ((0, 7), (0.5, 9)), ((0, 7), (60, 7))])
def test_too_little_says_nothing(told: tuple[tuple[float, int], ...]) -> None:
    assert of(*told) is None
    assert pace([(0.0, None, 1)], (9.0, None, 1), 0.0) is None


def test_percent_is_full_at_the_last_step_alone() -> None:
    assert [percent(step, 3000) for step in (0, 1, 1500, 2999, 3000, 3001)] == [0.0, 0.0, 50.0, 99.9, 100.0, 100.0]
    assert (percent(None, 10), percent(5, None), percent(5, 0)) == (None, None, None)


def test_seconds_left() -> None:
    assert seconds_left(100, 300, 4.0) == 50.0
    assert (seconds_left(300, 300, None), seconds_left(301, 300, 4.0)) == (0.0, 0.0)
    assert [seconds_left(*each) for each in ((None, 9, 1.0), (1, None, 1.0), (1, 9, None))] == [None] * 3


def reported(index: int, last_step: int | None, *told: tuple[float, int], now: float | None = None) -> TaskProgress:
    """A worker that reported each step at its moment, and once more at `now` without news."""
    task = TaskProgress("worker", index)
    common: dict[str, Any] = {"steps_per_second": None, "examples_per_second": None, "checkpoints": [], "logdirs": []}
    for moment, step in told:
        point = {"time": moment, "step": step, "values": {}}
        report = {"steps": 1, "global_step": step, "last_step": last_step, "points": [point], "figures": {}}
        task.add({**common, **report}, moment + 1000)
    if now is not None:
        task.add({**common, **report, "points": []}, now + 1000)
    return task


def test_a_run_has_the_end_that_one_of_its_programs_tells() -> None:
    tasks = [reported(0, 500, (0, 0), (10, 90)), reported(1, None, (0, 0), (10, 100))]

    found = summed_up(tasks, [("worker", 0)])
    nowhere = summed_up([tasks[1]], [])

    assert found is not None
    assert (found.last_step, found.percent, found.seconds_left) == (500, 20.0, 40.0)
    assert nowhere is not None
    assert (nowhere.last_step, nowhere.percent, nowhere.seconds_left) == (None, None, None)


def test_reports_without_a_step_make_the_rest_longer() -> None:
    task = reported(0, 500, (0, 0), (10, 100), now=20)

    assert task.pace == 5.0
    newest = TaskProgress.from_newest("worker", 0, task.newest())
    again = TaskProgress.from_json("worker", 0, task.to_json())
    for each in (newest, again):
        summary = summed_up([each], [])
        assert summary is not None
        assert summary.seconds_left == 80.0


def test_an_end_that_moves_is_told_anew() -> None:
    task = reported(0, 500, (0, 0))
    report = {"steps": 1, "global_step": None, "last_step": 900, "points": [], "figures": {}, "checkpoints": []}
    task.add({**report, "steps_per_second": None, "examples_per_second": None, "logdirs": []}, 2000.0)

    assert task.last_step == 900
    assert task.global_steps == Curve([(0.0, 0, 0)], last=(0.0, 0, 0))
