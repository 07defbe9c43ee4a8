"""The GPUs that CUDA finds. Numba is imported only where there is a CUDA driver library."""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
from functools import lru_cache
from typing import Any

_log = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def gpus() -> tuple[tuple[int, str], ...]:
    """(memory in bytes, description) of each GPU; () where there is no driver, no device or no numba.cuda."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return ()
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:  # no driver: do not even import numba
        return ()
    try:
        cuda: Any = importlib.import_module("numba.cuda")

        if not cuda.is_available():
            return ()
        found = []
        for gpu in cuda.list_devices():
            with gpu:
                memory = cuda.current_context().get_memory_info().total
            found.append((int(memory), f"device: {gpu.id}, name: {gpu.name.decode()}"))
        return tuple(found)
    except Exception as error:  # a broken driver must not keep the CPU from serving
        _log.warning("There is a CUDA driver, but no GPU can be used: %s: %s", type(error).__name__, error)
        return ()
