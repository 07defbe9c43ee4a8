"""What `tenfold runs` prints: golden output at 80 columns."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from tenfold.cli.run_views import listed
from tenfold.cli.tables import WIDTH

NOW = datetime(2026, 11, 24, 12, 0, 0, tzinfo=UTC)


def run(name: str, state: str, program: str, progress: dict[str, Any] | None, ended: str | None) -> dict[str, Any]:
    times = {"created": "2026-11-24T11:00:00Z", "started": "2026-11-24T11:59:01Z", "ended": ended}
    return {"name": name, "state": state, "entrypoint": program.split(), "progress": progress, **times}


def test_a_long_program_leaves_room_for_the_progress() -> None:
    program = "python trainer.py 37741 /a/folder/whose/name/is/longer/than/the/whole/line/of/a/terminal/is/wide"
    found = [
        run("run-0123456789ab", "RUNNING", program, {"global_step": 1234, "steps_per_second": 85.31}, None),
        run("run-ba9876543210", "SUCCEEDED", "python -m mnist", None, "2026-11-24T11:30:00Z"),
    ]
    console = Console(file=io.StringIO(), width=WIDTH, highlight=False)

    console.print(listed(found, NOW, WIDTH))

    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert [line.rstrip() for line in text.splitlines()] == [
        "run               state      since   progress                   program",
        "run-0123456789ab  RUNNING    59 s    step 1,234 · 85.3 steps/s  python trainer.…",
        "run-ba9876543210  SUCCEEDED  30 min                             python -m mnist",
    ]
