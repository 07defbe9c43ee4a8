"""A run in words: one line for a terminal, a few lines of HTML for a notebook. Pure.

Used by displays.py, by `Run` in notebooks, and by the tables of `tenfold status` and `tenfold runs`.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from tenfold.state_styles import css_colour
from tenfold_core.run_states import is_final

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


def progress_text(progress: Mapping[str, Any] | None, *, percent: bool = True, ended: bool = False) -> str:
    """ "step 1,200 (24%) · 85.3 steps/s", without the share where it is not known or not wanted; without a global step
    the speed alone; empty where nothing is known. A run that has `ended` has no speed, and how far it came is its
    step."""
    if progress is None:
        return ""
    step, speed, done = progress["global_step"], progress["steps_per_second"], progress.get("percent")
    if ended:
        speed = done = None
    share = f" ({int(done)}%)" if percent and done is not None else ""
    parts = ("" if step is None else f"step {step:,}{share}", "" if speed is None else f"{speed:.1f} steps/s")
    return " · ".join(filter(None, parts))


def left_text(progress: Mapping[str, Any] | None) -> str:
    """ "12 min left"; empty where that is not known, and at the end."""
    seconds = None if progress is None else progress.get("seconds_left")
    return f"{duration_text(seconds)} left" if seconds else ""


def duration_text(seconds: float) -> str:
    """ "12 s", "5 min", "3 h", "2 d": at least two of a unit, but of the smallest."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"


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


def what_it_does(run: Shown, *, percent: bool = True) -> str:
    """Where a run stands, without its name and state: its progress while it goes on, else why it is so."""
    left = left_text(run.progress)
    # it takes the room of a scalar
    scalars = scalars_text(run.progress, _SCALARS - bool(left))
    progress = progress_text(run.progress, percent=percent, ended=is_final(run.state))
    told = " · ".join(filter(None, (progress, scalars, left)))
    return told if told and run.state == "RUNNING" else " · ".join(filter(None, (run.reason, told)))


def headline(run: Shown) -> str:
    """ "run-1 is RUNNING: step 1,200 · 85.3 steps/s · loss 0.1234"."""
    return f"{run.name} is {run.state}: {what_it_does(run)}"


def run_html(run: Shown, steps: int | None = None) -> str:
    """A run with its tasks; with a bar if it is known how many steps it takes, by `steps` or by itself. Plain HTML
    without style sheets."""
    head = f"<b>{escape(run.name)}</b> {_state(run.state)} {escape(what_it_does(run))}"
    step = None if run.progress is None else run.progress.global_step
    steps = steps or (None if run.progress is None else run.progress.last_step)
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
