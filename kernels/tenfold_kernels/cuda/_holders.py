"""What holds a GPU's memory: for the error when there is no more. Of both runtimes.

Nothing is kept for it, so that memory costs nothing to take: Python's collector knows all arrays and variables.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from tenfold_core import memory_limits
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.resources.state import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from tenfold_core.errors import ResourceExhaustedError
    from tenfold_kernels.cuda._runtime import Runtime

#: Holders that the error names.
_NAMED = 8


def out_of_memory(runtime: Runtime, shape: Iterable[int], dtype: np.dtype[Any]) -> ResourceExhaustedError:
    """The error for a tensor that there is no room for: what is in use, and who has it, the largest first.

    Takes time: it looks at all objects of the process. It keeps none.
    """
    sizes = tuple(shape)
    nbytes = dtype.itemsize
    for size in sizes:
        nbytes *= size
    used, kept = runtime.memory_info()
    text = f"{nbytes} bytes are asked for on {runtime.name}, {used} of {runtime.memory} are in use"
    if kept > used:
        text += f", {kept} are kept by this process"
    found = holders(runtime)
    if found:
        named = [f"{size} by {what}" for size, what in found[:_NAMED]]
        rest = sum(size for size, _ in found[_NAMED:])
        if rest:
            named.append(f"{rest} by {len(found) - _NAMED} others")
        text += f": {', '.join(named)}"
    unknown = used - sum(size for size, _ in found)
    if unknown > 0:
        text += f"; {unknown} by recorded steps and what is being copied"
    return memory_limits.exhausted(sizes, dtype, text)


def holders(runtime: Runtime) -> list[tuple[int, str]]:
    """(bytes, what has them) of each piece of the GPU's memory that a variable or a tensor has, the largest first."""
    names: dict[int, str] = {}
    sizes: dict[int, int] = {}
    for each in gc.get_objects():
        kind = type(each)
        if issubclass(kind, Variable):
            # one of the host has none, nor has one that another thread is making
            held = getattr(each, "_held", None)
            if held is not None and each.runtime is runtime:
                names[id(held.buffer.memory)] = f"variable {each.name}"
        elif kind is DeviceArray and getattr(each, "offset", None) is not None and each.runtime is runtime:
            # several may be parts of one piece; recordings have names of their own for a variable's
            place = id(each.buffer.memory)
            sizes[place] = each.buffer.nbytes
            names.setdefault(place, f"a tensor of shape {list(each.shape)} and type {each.dtype.name}")
    return sorted(((size, names[place]) for place, size in sizes.items() if size), reverse=True)
