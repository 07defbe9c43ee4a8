"""What a worker's own copies do: from the host's memory to a GPU's, back, and between two GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._runtime import runtime_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from tenfold_kernels.cuda._begun import BegunCopy, RecordedCopy


def kernel(device: str) -> Callable[[Any], Any]:
    """(a value) → its copy on the GPU of that full name, or in the host's memory for none. The latter blocks until the
    value has been computed; it may have begun already.
    """
    return _to_device(device) if device else _to_host


def begin(value: DeviceArray) -> BegunCopy | RecordedCopy:
    """Begins the copy to the host's memory. Does not block."""
    return value.runtime.begin_to_host(value)


def _to_host(value: DeviceArray | BegunCopy) -> np.ndarray[Any, np.dtype[Any]]:
    return value.to_host()


def _to_device(device: str) -> Callable[[Any], DeviceArray]:
    runtime = runtime_of(device)

    def compute(value: Any) -> DeviceArray:
        if type(value) is not DeviceArray:
            return runtime.keep(value)
        if value.runtime is runtime:
            return value
        out = runtime.empty(value.shape, value.dtype)
        runtime.copy(value, out)
        return out

    return compute
