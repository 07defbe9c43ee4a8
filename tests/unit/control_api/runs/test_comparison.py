"""Runs side by side: differing parameters first, the leading task's curve, values that are missing."""

from __future__ import annotations

from typing import Any

from tenfold_control_api.runs.comparison import compare
from tenfold_control_api.runs.models import RunSubmission, dumped
from tenfold_control_api.runs.progress import Curve, TaskProgress
from tenfold_control_api.runs.record import LOCAL, RunRecord


def a_run(name: str, **details: Any) -> RunRecord:
    submission = dumped(RunSubmission(entrypoint=["python", "t.py"], jobs={"worker": 2}))
    return RunRecord(name, name, "f", LOCAL, submission, 1.0, details=details)


def a_task(index: int, *values: float | str) -> TaskProgress:
    curve = Curve()
    for at, value in enumerate(values):
        curve.add((float(at), at, value))
    return TaskProgress("worker", index, steps=1, curves={"loss": curve})


def test_parameters_in_which_the_runs_differ_come_first() -> None:
    a = a_run("a", parameters={"batch": 32, "lr": 0.1, "on": True, "opt": "adam"})
    b = a_run("b", parameters={"batch": 32, "lr": 0.2, "on": 1})

    found = compare([(a, ()), (b, ())])

    assert [(row.name, row.differs, row.values) for row in found.parameters] == [
        ("lr", True, [0.1, 0.2]),
        ("on", True, [True, 1]),
        ("opt", True, ["adam", None]),
        ("batch", False, [32, 32]),
    ]
    assert [run.name for run in found.runs] == ["a", "b"]
    assert [row.name for row in found.facts] == ["jobs", "launcher", "program", "state"]
    assert not any(row.differs for row in found.facts)


def test_a_curve_is_that_of_the_task_that_leads() -> None:
    first, second = a_task(0, 3.0, "NaN", 1.0), a_task(1, 9.0)

    (scalar,) = compare([(a_run("a"), [second, first]), (a_run("b"), ())]).scalars

    assert (scalar.name, scalar.newest) == ("loss", [1.0, None])
    assert (scalar.lowest, scalar.highest) == ([1.0, None], [3.0, None])
    assert scalar.curves[0] is not None
    assert scalar.curves[0].values == [3.0, "NaN", 1.0]
    assert scalar.curves[1] is None


def test_only_the_scalars_that_are_named() -> None:
    runs = [(a_run("a"), [a_task(0, 1.0)])]

    assert compare(runs, ["accuracy"]).scalars == []
    assert [each.name for each in compare(runs, ["loss", "accuracy"]).scalars] == ["loss"]


def test_facts_tell_source_and_versions() -> None:
    told = {"versions": {"numpy": "2.1"}, "seed": 7}
    source = {"commit": "abcd", "dirty": True, "diff_bytes": 1, "diff_truncated": False}
    a = a_run("a", source=source, recorded=told)

    found = {row.name: row.values for row in compare([(a, ()), (a_run("b"), ())]).facts}

    assert (found["commit"], found["changed files"], found["numpy"], found["seed"]) == (
        *(["abcd", None], [True, None]),
        *(["2.1", None], [7, None]),
    )


def test_a_curve_is_thinned_out_evenly_and_keeps_its_ends() -> None:
    runs = [(a_run("a"), [a_task(0, *map(float, range(9)))]), (a_run("b"), [a_task(0, 5.0)])]

    (scalar,) = compare(runs, points=3).scalars

    long, short = scalar.curves
    assert long is not None
    assert short is not None
    assert (long.times, long.steps, long.values) == ([0.0, 4.0, 8.0], [0, 4, 8], [0.0, 4.0, 8.0])
    assert short.values == [5.0]
    assert (scalar.lowest, scalar.highest, scalar.newest) == ([0.0, 5.0], [8.0, 5.0], [8.0, 5.0])
