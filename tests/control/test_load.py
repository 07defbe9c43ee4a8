"""Many tasks on one control service for a moment: the benchmark with small numbers, and bounds for a busy machine."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "control_load.py"
#: Milliseconds, on a machine that does other things as well; the benchmark itself demands 50 and 200.
HEARTBEAT_MS, LISTING_MS = 1000.0, 3000.0


@pytest.mark.thorough
def test_two_hundred_tasks_send_heartbeats_and_more_are_listed(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    options = ["--tasks=200", "--seconds=3", "--registered=600", "--no-limits", f"--json={figures}"]

    done = subprocess.run(
        [sys.executable, "-W", "error", str(BENCHMARK), *options], capture_output=True, text=True, timeout=110
    )

    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(figures.read_text())
    assert found["heartbeat"]["count"] == 200 * 3
    assert found["heartbeat"]["p99_ms"] < HEARTBEAT_MS
    assert found["listing"]["p99_ms"] < LISTING_MS
    assert (found["registered"], found["pages"]["count"]) == (600, 6)
    assert found["memory_mib"][-1] < found["memory_mib"][0] + 50


def test_what_is_over_a_limit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # the folder holds scripts and is no package
    monkeypatch.syspath_prepend(str(BENCHMARK.parent))
    over = importlib.import_module("control_load").over
    monkeypatch.delitem(sys.modules, "control_load")
    times = {"p99_ms": 10.0}
    good = {"heartbeat": times, "listing": times, "page": times, "growth_mib_per_minute": 0.5}

    assert list(over(good)) == []
    assert list(over({**good, "heartbeat": {"p99_ms": 51.0}})) == ["p99 of a heartbeat is 51.0 ms; the limit is 50 ms"]
    assert list(over({**good, "growth_mib_per_minute": 3.0})) == ["memory grows by 3.0 MiB a minute"]
