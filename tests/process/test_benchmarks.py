"""One benchmark, end to end on Tenfold alone: processes, rounds, figures, report. Its times are not looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_subject_runs_and_its_figures_become_a_report(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    options = ["--quick", "--rounds=2", "--seconds=0.02", "--only=tiny variable ps", "--sides=tenfold"]
    subject = [sys.executable, str(BENCHMARKS / "cross_task.py"), *options, f"--json={figures}"]

    done = subprocess.run(subject, capture_output=True, text=True, timeout=100)

    assert done.returncode == 0, done.stderr
    found = json.loads(figures.read_text())
    assert str(tmp_path) not in found["command"]
    (row,) = found["subjects"][0]["rows"]
    assert row["failures"] == {}
    assert len(row["figures"]["tenfold"]["rounds_us"]) == 2

    page = [sys.executable, str(BENCHMARKS / "report.py"), str(figures), "--folder", str(tmp_path / "reports")]
    assert subprocess.run(page, capture_output=True, timeout=100).returncode == 0
    assert "tiny variable ps → worker" in next((tmp_path / "reports").glob("*.md")).read_text()
