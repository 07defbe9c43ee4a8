"""A kernel's Python function with the types of its arguments: what Runtime.launch compiles once (_ptx.py) and launches.

The same function runs in the simulator, where an array argument is a flat NumPy array, and on a GPU, where it is a
pointer: so it indexes with one number, asks for no shape, and gets all sizes as arguments. `float32*` is an array of
float32, `boolean*` one of bytes that are 0 or 1; a number is `int64`, `float32` and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from tenfold_kernels.cuda._arrays import DeviceArray


@dataclass(frozen=True, eq=False)
class Kernel:
    """One function for one choice of types. Made once and kept by its caller."""

    function: Callable[..., None]
    #: Of the arguments, in order.
    types: tuple[str, ...]
    #: What a runtime has made of it, by the runtime's own key.
    compiled: dict[Any, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.function.__name__


def pointer(dtype: np.dtype[Any]) -> str:
    """The type of an array argument."""
    return f"{type_name(dtype)}*"


def type_name(dtype: np.dtype[Any]) -> str:
    """Numba's name of an element type: a bool is a byte."""
    return "boolean" if dtype.kind == "b" else dtype.name


def blocks_for(count: int, threads: int, most_threads: int) -> int:
    """How many blocks of so many threads a loop over `count` elements is launched with: at least one."""
    return max(1, min(-(-count // threads), max(1, most_threads // threads)))


def launch_over(kernel: Kernel, count: int, numbers: Sequence[Any], arrays: Sequence[DeviceArray]) -> None:
    """Launches a loop over `count` elements, which is the kernel's first argument; arrays are its last, one at least.
    Nothing is launched for none.
    """
    if count:
        runtime = arrays[0].runtime
        threads = runtime.block_threads
        blocks = blocks_for(count, threads, runtime.most_threads)
        runtime.launch(kernel, blocks, threads, (count, *numbers, *arrays))
