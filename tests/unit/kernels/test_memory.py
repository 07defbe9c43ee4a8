"""Freed memory is kept for the next step, unless the user has a say in it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

#: Faults of a process that takes and frees 16 MB a hundred times, after the first time.
SCRIPT = """
import resource
import numpy as np
from tenfold_kernels import memory
print(memory.keep_freed())
count = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    [np.ones(4 << 18) for _ in range(2)]
before = count()
for _ in range(10):
    [np.ones(4 << 18) for _ in range(2)]
print(count() - before)
"""


def run(**variables: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC", "GLIBC"))}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment | variables, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's own setting")
def test_freed_arrays_cost_no_page_faults_again() -> None:
    did, faults = run()

    assert did == "True"
    assert int(faults) < 1000  # 2048 pages each, where every one is taken anew


def test_a_user_who_has_set_something_keeps_it() -> None:
    assert run(MALLOC_TRIM_THRESHOLD_="131072")[0] == "False"
