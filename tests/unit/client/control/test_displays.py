"""Where a run is shown: what a terminal, a notebook and a file get."""

from __future__ import annotations

import io
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from support.hand_clock import HandClock
from support.run_answers import PROGRESS, a_run
from tenfold.control.displays import LineDisplay, NotebookDisplay, TerminalDisplay, display_here


def shown_in_terminal(*runs: Any, steps: int | None = None, width: int = 120) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, legacy_windows=False)
    with TerminalDisplay(steps, console) as display:
        for run in runs:
            display.show(run)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    lines = (re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).strip() for line in text.replace("\r", "\n").splitlines())
    return [line for line in lines if line]


def test_a_line_that_moves() -> None:
    lines = shown_in_terminal(a_run("PENDING", reason="it waits"), a_run(progress=PROGRESS), steps=2468)

    assert any("run-1 PENDING" in line and line.endswith("it waits") for line in lines)
    assert "run-1 RUNNING" in lines[-1]
    assert lines[-1].endswith("step 1,234 · 85.3 steps/s · loss 0.1235 · accuracy 0.97 · rate 0.1")
    # half of twenty
    assert lines[-1].count("━") >= 10


def test_a_run_that_has_ended_moves_no_more() -> None:
    succeeded = shown_in_terminal(a_run("SUCCEEDED", reason="all workers ended", progress=PROGRESS), steps=2468)
    failed = shown_in_terminal(a_run("FAILED", reason="[worker/0] died"))

    assert "run-1 SUCCEEDED" in succeeded[-1]
    assert "━" * 20 in succeeded[-1]
    assert failed[-1].endswith("[worker/0] died")


@pytest.mark.parametrize("steps", [None, 2468])
def test_the_loss_shows_at_80_columns(steps: int | None) -> None:
    run = a_run(name="run-bcaf38e164f0", progress=PROGRESS)

    (line,) = {each for each in shown_in_terminal(run, steps=steps, width=80) if "RUNNING" in each}

    assert line.startswith("run-bcaf38e164f0 RUNNING")
    assert "step 1,234 · 85.3 steps/s · loss 0.1235" in line
    assert ("50%" in line) == (steps is not None)


@pytest.mark.parametrize("width", [80, 120])
def test_a_run_that_says_where_it_stops_has_its_share(width: int) -> None:
    bounded = {**PROGRESS, "last_step": 2468, "percent": 50.0, "seconds_left": 14.0}
    lines = shown_in_terminal(a_run("PENDING", reason="it waits"), a_run(progress=bounded), width=width)

    assert not any("%" in line or "━" in line for line in lines if "PENDING" in line)
    assert "step 1,234 · 85.3 steps/s · loss 0.1235" in lines[-1]
    assert "50%" in lines[-1] if width == 80 else lines[-1].count("━") >= 10
    assert ("14 s left" in lines[-1]) == (width == 120)


def test_lines_where_nothing_moves() -> None:
    clock, file = HandClock(), io.StringIO()
    with LineDisplay(file, clock) as display:
        display.show(a_run())
        for step in range(20):
            clock.now += 1.0
            display.show(a_run(progress={**PROGRESS, "values": {}, "global_step": step}))
        display.show(a_run("SUCCEEDED", reason="done"))
        display.show(a_run("SUCCEEDED", reason="done"))

    assert file.getvalue().splitlines() == [
        "run-1 is RUNNING: attempt 1 of 3",
        "run-1 is RUNNING: step 9 · 85.3 steps/s",
        "run-1 is RUNNING: step 19 · 85.3 steps/s",
        "run-1 is SUCCEEDED: done",
    ]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Stands for IPython with a kernel; what its cell is given, and how."""
    given: list[tuple[str, Any]] = []
    handle = SimpleNamespace(update=lambda shown: given.append(("update", shown)))

    def display(shown: Any, *, display_id: bool) -> Any:
        assert display_id
        given.append(("display", shown))
        return handle

    ipython, ipython_display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    ipython_display.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython_display)
    return given


def test_a_notebook_has_one_output_that_changes(notebook: list[tuple[str, Any]]) -> None:
    with display_here(steps=2000) as display:
        display.show(a_run())
        display.show(a_run(progress=PROGRESS))

    assert isinstance(display, NotebookDisplay)
    assert [how for how, _ in notebook] == ["display", "update"]
    assert '<progress max="2000" value="1234"' in notebook[1][1]._repr_html_()
    assert repr(notebook[1][1]).startswith("run-1 is RUNNING: step 1,234")


def test_elsewhere_it_is_a_terminal_or_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(display_here(), LineDisplay)

    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", terminal)
    assert isinstance(display_here(), TerminalDisplay)
