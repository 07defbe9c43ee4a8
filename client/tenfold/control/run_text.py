"""A run in words: one line for a terminal, a few lines of HTML for a notebook. Pure.

Used by displays.py, by `Run` in notebooks, and by the tables of `tenfold status` and `tenfold runs`.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from tenfold.state_styles import css_colour

if TYPE_CHECKING:
    from collections.abc import Mapping


class Shown(Protocol):
    """A run, as it is shown: run_answers.Run, or a row of a table."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def progress(self) -> Any: ...
    @property
    def tasks(self) -> tuple[Any, ...]: ...


#: Scalars that one line has room for.
_SCALARS = 3


def progress_text(progress: Mapping[str, Any] | None) -> str:
    """ "step 1,200 · 85.3 steps/s"; without a global step the speed alone; empty where nothing is known."""
    if progress is None:
        return ""
    step, speed = progress["global_step"], progress["steps_per_second"]
    parts = ("" if step is None else f"step {step:,}", "" if speed is None else f"{speed:.1f} steps/s")
    return " · ".join(filter(None, parts))


def examples_text(progress: Mapping[str, Any] | None) -> str:
    """ "5,461 examples/s"; empty where that is not known."""
    rate = None if progress is None else progress.get("examples_per_second")
    return "" if rate is None else f"{rate:,.0f} examples/s"


def scalars_text(progress: Mapping[str, Any] | None, limit: int | None = None) -> str:
    """ "loss 0.1234 · accuracy 0.97": what has "loss" in its name comes first."""
    values = {} if progress is None else progress["values"]
    names = sorted(values, key=lambda name: ("loss" not in name.lower(), name))
    return " · ".join(f"{name} {number_text(values[name])}" for name in names[:limit])


def number_text(value: float | str) -> str:
    """ "0.1234": four digits; NaN and the infinities are words."""
    return value if isinstance(value, str) else f"{value:.4g}"


def what_it_does(run: Shown) -> str:
    """Where a run stands, without its name and state: its progress while it goes on, else why it is so."""
    parts = progress_text(run.progress), scalars_text(run.progress, _SCALARS)
    told = " · ".join(filter(None, parts))
    return told if told and run.state == "RUNNING" else " · ".join(filter(None, (run.reason, told)))


def headline(run: Shown) -> str:
    """ "run-1 is RUNNING: step 1,200 · 85.3 steps/s · loss 0.1234"."""
    return f"{run.name} is {run.state}: {what_it_does(run)}"


def run_html(run: Shown, steps: int | None = None) -> str:
    """A run with its tasks; with a bar if it is known how many steps it takes. Plain HTML without style sheets."""
    head = f"<b>{escape(run.name)}</b> {_state(run.state)} {escape(what_it_does(run))}"
    step = None if run.progress is None else run.progress.global_step
    bar = (
        ""
        if not steps
        else f'<br><progress max="{steps}" value="{min(step or 0, steps)}" style="width: 20em"></progress>'
    )
    rows = [
        f"<tr><td>{escape(task.job)}/{task.index}</td><td>{_state(task.state)}</td>"
        f"<td>{escape(_ending(task.signal, task.exit_code))}</td>"
        f"<td>{escape((task.error.message or '') if task.error is not None else '')}</td></tr>"
        for task in run.tasks
    ]
    return f"<div>{head}{bar}<table>{''.join(rows)}</table></div>"


def _state(state: str) -> str:
    return f'<span style="color: {css_colour(state)}">{escape(state)}</span>'


def _ending(signal: str | None, exit_code: int | None) -> str:
    return signal or ("" if exit_code is None else f"exit code {exit_code}")
