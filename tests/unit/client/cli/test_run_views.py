"""What `tenfold runs` prints: golden output at 80 columns."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from tenfold.cli.run_views import listed
from tenfold.cli.tables import plain_console

NOW = datetime(2026, 11, 24, 12, 0, 0, tzinfo=UTC)


def run(name: str, state: str, program: str, progress: dict[str, Any] | None, ended: str | None) -> dict[str, Any]:
    times = {"created": "2026-11-24T11:00:00Z", "started": "2026-11-24T11:59:01Z", "ended": ended}
    return {"name": name, "state": state, "entrypoint": program.split(), "progress": progress, **times}


#: Of a run that came to the half of its steps.
HALF = {"global_step": 500, "steps_per_second": 85.3, "last_step": 1000, "percent": 50.0, "seconds_left": None}


def test_a_long_program_leaves_room_for_the_progress() -> None:
    program = "python trainer.py 37741 /a/folder/whose/name/is/longer/than/the/whole/line/of/a/terminal/is/wide"
    found = [
        run("run-0123456789ab", "RUNNING", program, {"global_step": 1234, "steps_per_second": 85.31}, None),
        run("run-ba9876543210", "SUCCEEDED", "python -m mnist", None, "2026-11-24T11:30:00Z"),
        run("run-ba9876543211", "FAILED", "python -m mnist", HALF, "2026-11-24T11:30:00Z"),
    ]
    console = Console(file=io.StringIO(), width=80, highlight=False)

    console.print(listed(found, NOW, 80))

    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert [line.rstrip() for line in text.splitlines()] == [
        "run               state      since   progress                   program",
        "run-0123456789ab  RUNNING    59 s    step 1,234 · 85.3 steps/s  python trainer.…",
        "run-ba9876543210  SUCCEEDED  30 min                             python -m mnist",
        "run-ba9876543211  FAILED     30 min  step 500                   python -m mnist",
    ]


@pytest.mark.parametrize(("columns", "whole"), [("", True), ("40", False), ("x", True)])
def test_what_is_not_a_terminal_gets_whole_lines_unless_columns_says_how_wide(
    columns: str, whole: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    program = "python -m trainer --a-long-list-of-flags=1,2,3 --another-one=4,5,6 --and-one-more=7,8,9"

    console = plain_console()
    console.print(listed([run("run-0123456789ab", "RUNNING", program, None, None)], NOW, console.width))

    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].rstrip().endswith(program) == whole
    assert max(map(len, lines)) <= (200 if whole else 50)
