"""Logs of runs by hand: bounded for each task, and only those of the newest runs stay."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tenfold.runs.kept_logs import KEPT, kept_logs

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_output_stays_within_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "tenfold" / "runs" / "run-1" / "logs"

    with kept_logs("run-1", 64 << 10) as logs:
        for number in range(20_000):
            logs.write("worker/0", f"line {number} {'x' * 50}")

    files = sorted(folder.iterdir())
    assert sum(each.stat().st_size for each in files) <= 64 << 10
    assert files[-1].read_text().splitlines()[-1].split()[3:5] == ["line", "19999"]


def test_the_newest_runs_stay_and_those_that_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    runs = tmp_path / "tenfold" / "runs"
    with kept_logs("written", 1 << 20):
        os.utime(runs / "written", (1, 1))
        for number in range(KEPT + 3):
            with kept_logs(f"run-{number}", 1 << 20):
                pass
            os.utime(runs / f"run-{number}", (1000 + number, 1000 + number))
        with kept_logs("last", 1 << 20):
            left = {each.name for each in runs.iterdir()}

    assert left == {"written", "last", *(f"run-{number}" for number in range(4, KEPT + 3))}
