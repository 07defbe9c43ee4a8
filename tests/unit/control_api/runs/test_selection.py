"""Which runs a filter wants and in which order: what a run has under a name, missing values last, pages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tenfold_control_api.runs.filter import parse
from tenfold_control_api.runs.progress import Summary
from tenfold_control_api.runs.record import LOCAL, RunRecord
from tenfold_control_api.runs.selection import Candidate, select


def candidate(name: str, created: float = 0.0, loss: Any = None, **details: Any) -> Candidate:
    submission = {"jobs": {"worker": 1}, "entrypoint": ["python", "t.py"]}
    run = RunRecord(name, name, "f", LOCAL, submission, created, details=details)
    newest = None if loss is None else Summary(5, 2.0, None, {"loss": loss, "lr": 9.0}, None, 0.0)
    return Candidate(run, newest)


RUNS = [
    candidate("a", 1.0, loss=0.5, parameters={"lr": 0.1}, tags=["x"]),
    candidate("b", 2.0, loss=0.25, parameters={"lr": 0.2, "opt": "adam"}),
    candidate("c", 3.0, loss="NaN"),
    candidate("d", 4.0),
]


def names(sort: str, wanted: str | None = None, limit: int = 10, after: Any = None) -> list[str]:
    keys = select(RUNS, None if wanted is None else parse(wanted), sort, limit, after)
    return [key.run for key in keys]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("loss", "bacd"),  # numbers, texts, nothing
        ("-loss", "abcd"),
        ("created", "abcd"),
        ("-created", "dcba"),
        ("name", "abcd"),
        ("metric.lr", "abcd"),
        ("param.lr", "abcd"),
        ("-lr", "cbad"),  # c has no parameter of that name, but a scalar
        ("opt", "bacd"),
    ],
)
def test_the_order(sort: str, order: str) -> None:
    assert names(sort) == list(order)


def test_a_name_is_a_field_else_a_parameter_else_a_scalar() -> None:
    (a, *_), newest = RUNS, RUNS[0].newest

    assert a.values("lr") == (0.1,)
    assert a.values("metric.lr") == (9.0,)
    assert a.values("loss") == (0.5,)
    assert a.values("state") == ("PENDING",)
    assert a.values("tag") == ("x",)
    assert a.values("program") == ("python t.py",)
    assert a.values("created") == ("1970-01-01T00:00:01.000Z",)
    assert newest is not None
    assert a.values("step") == (5,)
    assert (a.values("seed"), a.values("commit"), a.values("none")) == ((), (), ())


def test_how_long_a_run_ran_is_known_once_it_has_ended() -> None:
    (a, *_) = RUNS
    ran = [replace(a.run, started=started, ended=ended) for started, ended in ((2.0, 5.5), (2.0, None), (None, 5.5))]

    assert [Candidate(run, None).values("seconds") for run in ran] == [(3.5,), (), ()]


@pytest.mark.parametrize("sort", ["loss", "-loss", "created", "-created", "opt", "-opt"])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_together_are_the_list(sort: str, limit: int) -> None:
    found: list[str] = []
    after = None
    while page := select(RUNS, None, sort, limit, after):
        found += [key.run for key in page]
        after = tuple(page[-1])

    assert found == names(sort)


def test_only_what_is_wanted() -> None:
    assert names("created", "lr>0.15 or tag=x") == ["a", "b", "c"]
    assert names("-loss", "step=5", limit=1) == ["a"]
