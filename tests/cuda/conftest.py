"""Kernels of a GPU: on a GPU where there is one, else in Numba's simulator, which must be chosen before its CUDA part
is imported.

The fixture `gpu` runs ops on both devices: `gpu.same("Add", [x, y])` asserts that the GPU gives what the CPU gives.
"""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import pytest

from support import dry_gpu, gpu_runs
from tenfold_kernels.cuda import _runtime


def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.fixture(scope="session")
def simulated() -> bool:
    """Whether these tests run in the simulator."""
    return not (dry_gpu.is_on() or _has_driver())


@pytest.fixture(autouse=True)
def simulator(simulated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives this process a simulated GPU, and takes it away again: other tests share the process."""
    if simulated:
        monkeypatch.setenv(_runtime.SIMULATOR, "1")
        if "numba.cuda" not in sys.modules:
            from numba.core import config

            monkeypatch.setattr(config, "ENABLE_CUDASIM", 1)
            import numba.cuda  # noqa: F401


@pytest.fixture(scope="session")
def gpu() -> SimpleNamespace:
    """What runs one op on a GPU."""
    return SimpleNamespace(run=gpu_runs.run_op, same=gpu_runs.same, device=gpu_runs.GPU, to_host=gpu_runs.to_host)
