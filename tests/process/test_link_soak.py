"""A short run of benchmarks/soak_link.py: memory, descriptors and shared memory of both ends stay flat."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "soak_link.py"


@pytest.mark.thorough
def test_links_do_not_leak() -> None:
    command = [sys.executable, str(SCRIPT), "--small", "3000", "--large", "300"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=100)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "flat"
