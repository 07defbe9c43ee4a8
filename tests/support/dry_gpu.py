"""A pytest plugin that runs the tests of a GPU's kernels dry: each kernel that a test launches is compiled, not run.

What tests assert about results is of no matter then. Used by tests/cuda/test_ptx.py in a process of its own, because
the simulator and the compiler are not there in one. The file that REPORT names gets a JSON object for each kernel.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from support import gpu_runs
from tenfold_kernels.cuda import _ptx, _runtime, _simulated

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pytest

    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.cuda._launch import Kernel

REPORT = "TENFOLD_PTX_REPORT"
CAPABILITY = (9, 0)


def is_on() -> bool:
    """Whether this process runs dry."""
    return REPORT in os.environ


class DryRuntime(_simulated.SimulatedRuntime):
    """Arrays are the host's, all zeros; a launch compiles for an H100, and does nothing."""

    block_threads, most_threads, reduce_threads = 256, 132 * 16 * 256, 256

    def __init__(self) -> None:
        super().__init__(0)
        self.found: dict[str, dict[str, Any]] = {}

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        made = super().empty(shape, dtype)
        self.zero(made)
        return made

    def launch(
        self, kernel: Kernel, blocks: int, threads: int, arguments: Sequence[Any], shared_bytes: int = 0
    ) -> None:
        assert len(arguments) == len(kernel.types), (kernel.name, kernel.types)
        if "dry" in kernel.compiled:
            return
        kernel.compiled["dry"] = True
        key = repr((_ptx.text_of(kernel.function), kernel.types))
        if key in self.found:
            return
        row: dict[str, Any] = {"name": f"{kernel.function.__module__}.{kernel.function.__qualname__}"}
        row |= {"types": kernel.types, "text": getattr(kernel.function, "generated_text", "")}
        try:
            text = _ptx.compile_ptx(kernel, CAPABILITY)
            linked = _ptx.link(text, CAPABILITY)
            row |= {"ptx": text.decode(), "linked": linked is not None}
        except Exception as error:  # whatever the compiler says
            row["error"] = f"{type(error).__name__}: {error}"
        self.found[key] = row


def _same(op: str, inputs: list[Any], *, rtol: float = 0.0, atol: float = 0.0, **attrs: Any) -> Any:
    """Runs the op; gives what the CPU gives, for what the test does with it."""
    gpu_runs.run_op(op, inputs, **attrs)
    return gpu_runs.run_on_cpu(op, inputs, **attrs)


_dry: list[DryRuntime] = []


def _compile_without_a_gpu() -> None:
    """Numba asks the GPU what functions that kernels call are to be compiled for."""
    from numba.cuda import dispatcher

    asked: Any = dispatcher
    asked.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITY)


def pytest_configure(config: pytest.Config) -> None:
    _compile_without_a_gpu()
    _dry.append(DryRuntime())
    _runtime._runtimes[0] = _dry[0]
    gpu_runs.same = _same


def pytest_unconfigure(config: pytest.Config) -> None:
    Path(os.environ[REPORT]).write_text(json.dumps(list(_dry[0].found.values())))
