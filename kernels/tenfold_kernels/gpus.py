"""The GPUs that CUDA finds, or that Numba's simulator stands for. Nothing is imported where there is no CUDA driver."""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_kernels.cuda import _runtime

if TYPE_CHECKING:
    from collections.abc import Sequence

_log = logging.getLogger(__name__)
#: CUDA's own variable.
_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class GpuOptions:
    """Which GPUs a task has, and how much of their memory. The fields are ConfigProto's."""

    #: device_count["GPU"]: so many of them at most. None: all.
    count: int | None = None
    #: gpu_options.visible_device_list: numbers, in the order in which they become GPU:0, GPU:1 …; "": all.
    visible: str = ""
    #: gpu_options.per_process_gpu_memory_fraction; 0: all that there is.
    memory_fraction: float = 0.0


ALL_GPUS = GpuOptions()


def gpus(options: GpuOptions = ALL_GPUS) -> tuple[tuple[int, str], ...]:
    """(memory in bytes, description) of each GPU; () where there is no driver, no device or no CUDA for Python.

    Raises InvalidArgumentError for a `visible` that lists what is not there, AlreadyExistsError for one that differs
    from an earlier one of this process.
    """
    if options.count == 0:
        return ()
    meant = _numbers(options.visible, _seen())[: options.count]
    _runtime.name_gpus(meant, options.memory_fraction)
    return _described(meant)


def physical_gpus() -> tuple[tuple[int, str], ...]:
    """The same of all that this process sees, whatever a program says of devices."""
    return _described(_seen())


def _described(numbers: Sequence[int]) -> tuple[tuple[int, str], ...]:
    try:
        found = list(map(_runtime.runtime_of_gpu, numbers))
    except Exception as error:
        _cannot(error)
        return ()
    return tuple((each.memory, describe(each)) for each in found)


def are_there() -> bool:
    """Whether CUDA has a GPU for this process. Makes none ready."""
    return bool(_seen())


def describe(found: _runtime.Runtime) -> str:
    """As TensorFlow writes it: `device: 0, name: NVIDIA H200, compute capability: 9.0`."""
    major, minor = found.compute_capability
    return f"device: {found.index}, name: {found.name}, compute capability: {major}.{minor}"


def has_driver() -> bool:
    """Whether there is a CUDA driver on this machine."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def has_extra() -> bool:
    """Whether the packages of the extra `cuda` are installed. Imports none of them."""
    return importlib.util.find_spec("cupy") is not None


def _seen() -> tuple[int, ...]:
    """The GPUs of this process by CUDA's numbers, in its order."""
    return _simulated() if _runtime.is_simulated() else _of_driver()


def _numbers(visible: str, seen: Sequence[int]) -> list[int]:
    """CUDA's numbers of a `visible_device_list`, which counts those that are `seen`."""
    if not visible.strip() or not seen:
        return list(seen)
    numbers: list[int] = []
    for text in visible.split(","):
        try:
            number = int(text)
        except ValueError:
            raise errors.invalid_argument(
                f"Could not parse entry in 'visible_device_list': '{text}'. visible_device_list = {visible}"
            ) from None
        if not 0 <= number < len(seen):
            raise errors.invalid_argument(
                f"'visible_device_list' listed an invalid GPU id '{number}' but visible device count is {len(seen)}"
            )
        if seen[number] in numbers:
            raise errors.invalid_argument(f"visible_device_list contained a duplicate entry: {visible}")
        numbers.append(seen[number])
    return numbers


def _simulated() -> tuple[int, ...]:
    """The numbers of the simulated GPUs that CUDA_VISIBLE_DEVICES leaves, in its order: up to one that is not there."""
    count = _runtime.simulated_gpus()
    wanted = os.environ.get(_VISIBLE)
    if wanted is None:
        return tuple(range(count))
    found: list[int] = []
    for text in wanted.split(","):
        if not text.strip().isdecimal() or int(text) >= count or int(text) in found:
            break
        found.append(int(text))
    return tuple(found)


@lru_cache(maxsize=1)
def _of_driver() -> tuple[int, ...]:
    """The driver's numbers, which begin at 0 whatever is visible."""
    if os.environ.get(_VISIBLE, "0").strip() in ("", "-1") or not has_driver():
        return ()
    try:
        from tenfold_kernels.cuda._driver import device_count

        return tuple(range(device_count()))
    except Exception as error:
        _cannot(error)
        return ()


def _cannot(error: Exception) -> None:
    """A broken driver must not keep the CPU from serving."""
    _log.warning("There is a CUDA driver, but no GPU can be used: %s: %s", type(error).__name__, error)
