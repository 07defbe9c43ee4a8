"""Kernels of a GPU: on a GPU where there is one, else in Numba's simulator, which must be chosen before its CUDA part
is imported.

The fixture `gpu` runs ops on both devices: `gpu.same("Add", [x, y])` asserts that the GPU gives what the CPU gives.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from support import dry_gpu, gpu_runs
from tenfold.session import inprocess
from tenfold_kernels.cuda import _runtime
from tenfold_kernels.gpus import has_driver

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Types whose kernels are the same text as float32's: `make test-thorough` and `make test-cuda` try them.
_OTHER_TYPES = re.compile(r"\b(float64|u?int8|u?int16|complex64|complex128)\b")


@pytest.hookimpl(tryfirst=True)  # what is marked here is skipped by the folder above
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a table of types one type is enough for `make test`, where the table has float32."""
    folder = f"{Path(__file__).parent}{os.sep}"
    here = [item for item in items if str(item.path).startswith(folder)]
    float32 = {getattr(item, "originalname", "") for item in here if "float32" in item.name}
    for item in here:
        if _OTHER_TYPES.search(item.name) and getattr(item, "originalname", "") in float32:
            item.add_marker(pytest.mark.thorough)


@pytest.fixture(scope="session")
def simulated() -> bool:
    """Whether these tests run in the simulator."""
    return not (dry_gpu.is_on() or has_driver())


@pytest.fixture(autouse=True)
def simulator(simulated: bool, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Gives this process a simulated GPU, and takes it away again: other tests share the process, and the server that
    sessions of a process share has the GPUs that there were when it started.
    """
    inprocess.stop_shared_server()
    if simulated:
        monkeypatch.setenv(_runtime.SIMULATOR, "1")
        if "numba.cuda" not in sys.modules:
            from numba.core import config

            monkeypatch.setattr(config, "ENABLE_CUDASIM", 1)
            import numba.cuda  # noqa: F401
    yield
    inprocess.stop_shared_server()


@pytest.fixture(scope="session")
def gpu() -> SimpleNamespace:
    """What runs one op on a GPU."""
    return SimpleNamespace(run=gpu_runs.run_op, same=gpu_runs.same, device=gpu_runs.GPU, to_host=gpu_runs.to_host)
