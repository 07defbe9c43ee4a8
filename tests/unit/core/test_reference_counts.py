"""Counts of references: exact on this interpreter, and not relied upon where they are not."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tenfold_core import reference_counts
from tenfold_core.reference_counts import reference_counts_are_exact

#: A variable of each size whose value is held by a reader, and by nothing else: is it lent, is it written in place?
WITHOUT_EXACT_COUNTS = """
import sys
{change}
import numpy as np
from tenfold_core import dtypes, reference_counts, variable_memory
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.state import Variable

assert not reference_counts.reference_counts_are_exact()
for size in (1, 1 << 18):
    variable = Variable("v", dtypes.float32, TensorShape([size]))
    variable.assign(np.ones(size, np.float32))
    assert variable_memory.lend(variable.value) is None
    snapshot = variable.snapshot()
    with variable.lock:
        variable.buffer(exclusive=True)[:] = 2
    variable.assign(np.full(size, 3, np.float32), in_place=False)
    variable.adopt(np.full(size, 4, np.float32))
    assert variable_memory.lend(variable.value) is None
    assert (snapshot.max(), variable.value.min()) == (1, 4)
    before = variable.value.ctypes.data
    with variable.lock:
        assert variable.buffer(exclusive=True).ctypes.data != before, "written where a reader may be"
    with variable.lock:
        buffer = variable.buffer()
        buffer += 1
    assert variable.value.min() == 5
"""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="other interpreters need not count")
@pytest.mark.skipif("t" in sys.abiflags, reason="without the global lock counts are not exact")
def test_this_interpreter_counts_exactly() -> None:
    assert reference_counts_are_exact()


def test_a_build_without_the_global_lock_is_not_relied_upon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "abiflags", "t")
    assert not reference_counts_are_exact()


def test_an_unknown_interpreter_is_not_relied_upon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="pypy"))
    assert not reference_counts_are_exact()


def test_counts_that_miss_references_are_not_relied_upon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_counts, "reference_count", lambda _: 2)
    assert not reference_counts_are_exact()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("sys.abiflags += 't'", id="free-threaded"),
        pytest.param("del sys.getrefcount", id="no counts"),
    ],
)
def test_without_exact_counts_nothing_is_lent_or_written_under_a_reader(change: str) -> None:
    program = WITHOUT_EXACT_COUNTS.format(change=change)

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
