"""CheckNumerics on a GPU. The host waits for what it finds, because only the host can raise an error."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import text_attr
from tenfold_kernels.cpu.math_bounds import bad_values
from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer
from tenfold_kernels.cuda._types import ANY_FLOATS
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

_BYTE = np.dtype(np.uint8)


@kernel("CheckNumerics", device="GPU", views=True, replays=False, T=ANY_FLOATS)
def build_check_numerics(node: KernelNode) -> Compute:
    """Hands its input on. Waits until it is computed. Raises InvalidArgumentError for infinities and NaN."""
    message = text_attr(node, "message")
    launched = _kernel(np.dtype(node.attrs["T"].as_numpy_dtype))

    def compute(x: DeviceArray) -> DeviceArray:
        count = x.size
        if count:
            found = x.runtime.empty((2,), _BYTE)
            x.runtime.zero(found)
            launch_over(launched, count, (), (x, found))
            inf, nan = found.to_host().tolist()
            if inf or nan:
                raise bad_values(message, bool(inf), bool(nan))
        return x

    return compute


@functools.cache
def _kernel(dtype: np.dtype[Any]) -> Kernel:
    from tenfold_kernels.cuda._code import numerics

    return Kernel(numerics.find(dtype), ("int64", pointer(dtype), "uint8*"))
