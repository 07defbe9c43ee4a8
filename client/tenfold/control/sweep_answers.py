"""Sweeps as the control service tells them. Times are ISO 8601 in UTC.

Of answers.py's kind; made by sweep_calls.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenfold.control.answers import Answer, answer
from tenfold.control.cluster_answers import Condition
from tenfold.control.ending import Ending


@answer
class Trial(Answer):
    """One setting of a sweep, and its run."""

    index: int
    #: WAITING | RUNNING | SUCCEEDED | FAILED | STOPPED | REFUSED (it was not started)
    state: str
    parameters: Mapping[str, bool | int | float | str]
    #: The run's name, None before it is started.
    run: str | None
    stopped_early: bool
    #: Why it did not succeed, or was not started.
    reason: str | None
    #: The best value of the sweep's metric; None where none is known.
    best: float | str | None


@answer
class SweepSummary(Ending):
    """One sweep without its trials: one program run with many settings of its parameters."""

    name: str
    uid: str
    #: Grows with every change: when a trial starts or ends.
    version: int
    #: RUNNING | SUCCEEDED | FAILED | STOPPED
    state: str
    conditions: tuple[Condition, ...]
    #: Why it is in its state.
    reason: str
    #: Why it was told to stop.
    stop: str | None
    created: str
    ended: str | None
    launcher: str
    entrypoint: tuple[str, ...]
    #: The scalar by which its runs are compared.
    metric: str | None
    #: Which value of it is best: min | max.
    goal: str
    #: The most runs at once.
    parallel: int
    #: How many trials it has, and how many by state.
    settings: int
    counts: Mapping[str, int]


@answer
class Sweep(SweepSummary):
    """One sweep with all its trials."""

    #: In the order in which they are started.
    trials: tuple[Trial, ...]
    #: The one with the best value of the metric, as far as one is known.
    best: Trial | None
