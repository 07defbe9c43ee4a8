"""Benchmarks, end to end on Tenfold alone: processes, rounds, figures, report. Their times are not looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
QUICK = ["--quick", "--rounds=2", "--seconds=0.02", "--sides=tenfold"]


def run(script: str, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """One of the scripts, to its end."""
    command = [sys.executable, str(BENCHMARKS / script), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env={**os.environ, **env})


@pytest.mark.thorough
def test_a_subject_runs_and_its_figures_become_a_report(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"

    done = run("cross_task.py", *QUICK, "--only=tiny variable ps", f"--json={figures}")

    assert done.returncode == 0, done.stderr
    found = json.loads(figures.read_text())
    assert str(tmp_path) not in found["command"]
    (row,) = found["subjects"][0]["rows"]
    assert row["failures"] == {}
    assert len(row["figures"]["tenfold"]["rounds_us"]) == 2

    page = run("report.py", str(figures), "--folder", str(tmp_path / "reports"))
    assert page.returncode == 0, page.stderr
    assert "tiny variable ps → worker" in next((tmp_path / "reports").glob("*.md")).read_text()


@pytest.mark.thorough
def test_programs_are_measured_with_their_memory_and_first_steps(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"

    done = run("programs.py", *QUICK, "--only=small,mlp", "--mode=single", f"--json={figures}")

    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(figures.read_text())["subjects"][0]["rows"]
    assert [each["case"] for each in rows] == ["mlp", "small"]
    for each in rows:
        assert each["failures"] == {}
        assert each["figures"]["tenfold"]["peak_mib"] > 0
        assert each["figures"]["tenfold"]["first_s"] > 0


@pytest.mark.thorough
def test_what_reporting_costs_is_told(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"

    options = ("--quick", "--rounds=2", "--seconds=0.02", "--sides=tenfold,tenfold reporting", f"--json={figures}")
    done = run("reporting.py", *options, "--only=null step")

    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(figures.read_text())["subjects"][0]["rows"]
    assert (row["failures"], set(row["figures"])) == ({}, {"tenfold", "tenfold reporting"})
    assert row["times"]["clock"] > 0


@pytest.mark.thorough
def test_all_of_them_in_a_row_keep_their_caches_and_say_so(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    options = (*QUICK, "--subjects=hello,footprint", "--only=with a server", f"--json={figures}")

    done = run("bench.py", *options, PYTHONDONTWRITEBYTECODE="1")

    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(figures.read_text())
    assert "PYTHONDONTWRITEBYTECODE is set" in found["doubts"][0]
    assert [each["module"] for each in found["subjects"]] == ["hello", "footprint"]
    (hello,) = found["subjects"][0]["rows"]
    assert hello["case"] == "hello program with a server, whole process"
    assert hello["peak_mib"]["tenfold"] > 0


@pytest.mark.long
def test_what_being_let_in_costs_is_told(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"

    done = run("gate.py", *QUICK[:3], "--only=op on the ps", f"--json={figures}")

    assert done.returncode == 0, done.stdout + done.stderr
    entry, encrypted = json.loads(figures.read_text())["subjects"][0]["rows"]
    assert (entry["failures"], encrypted["failures"]) == ({}, {})
    assert set(entry["times"]) == {"tenfold token", "tenfold grpc token"}
    assert encrypted["times"]["tenfold tcp tls"]["best"] > 0


@pytest.mark.long
def test_what_a_rest_step_costs_with_a_token_is_told(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"

    done = run("gate.py", *QUICK[:3], "--only=REST step", f"--json={figures}")

    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(figures.read_text())["subjects"][0]["rows"]
    assert set(row["times"]) == {"the same user", "a token"}


def test_a_subject_that_there_is_not_is_refused() -> None:
    done = run("bench.py", "--subjects=null_step,hallo")

    assert done.returncode == 2
    assert "there is no subject 'hallo'; there are null_step, remote_null_step" in done.stderr


@pytest.mark.long
def test_kills_are_noticed_and_training_goes_on(tmp_path: Path) -> None:
    figures = tmp_path / "faults.json"

    done = run("faults.py", "--kills=1", "--lease=2", "--heartbeat=0.5", "--steps-per-kill=1000", f"--json={figures}")

    assert done.returncode == 0, done.stdout
    found = json.loads(figures.read_text())
    assert (found["kills"], found["hangs"], found["wrong_sums"]) == (1, [], [])
    assert 0 < found["detection"][0] < found["recovery"][0]


@pytest.mark.thorough
def test_a_gpu_is_measured_in_the_simulator_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    figures = tmp_path / "cuda.json"

    done = run("cuda_speed.py", "--small", f"--json={figures}")

    assert done.returncode == 0, done.stdout + done.stderr
    names = [row["name"] for row in json.loads(figures.read_text())["rows"]]
    assert names[:3] == ["copy", "fused Adam", "softmax cross-entropy"]
    assert names[-3:] == ["mlp", "cnn", "lstm"]
