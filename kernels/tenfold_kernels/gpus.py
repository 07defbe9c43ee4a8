"""The GPUs that CUDA finds, or that Numba's simulator stands for. Nothing is imported where there is no CUDA driver."""

from __future__ import annotations

import ctypes
import logging
import os
from functools import lru_cache

from tenfold_kernels.cuda import _runtime

_log = logging.getLogger(__name__)


def gpus() -> tuple[tuple[int, str], ...]:
    """(memory in bytes, description) of each GPU; () where there is no driver, no device or no CUDA for Python."""
    if _runtime.is_simulated():
        return tuple((found.memory, describe(found)) for found in map(_runtime.runtime, range(_runtime.simulated_gpus())))
    return _of_driver()


def describe(found: _runtime.Runtime) -> str:
    """As TensorFlow writes it: `device: 0, name: NVIDIA H200, compute capability: 9.0`."""
    major, minor = found.compute_capability
    return f"device: {found.index}, name: {found.name}, compute capability: {major}.{minor}"


@lru_cache(maxsize=1)
def _of_driver() -> tuple[tuple[int, str], ...]:
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return ()
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:  # no driver: do not even import CuPy
        return ()
    try:
        from tenfold_kernels.cuda._driver import device_count

        return tuple((found.memory, describe(found)) for found in map(_runtime.runtime, range(device_count())))
    except Exception as error:  # a broken driver must not keep the CPU from serving
        _log.warning("There is a CUDA driver, but no GPU can be used: %s: %s", type(error).__name__, error)
        return ()
