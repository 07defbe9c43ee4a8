"""What the CPU's kernel would do with an array that it only makes a view of, done with an array of a GPU.

A slice, a split, a transpose is a view in NumPy: which elements, in which order, is all that its kernel works out, with
all its checks. So it is called with an array that has a shape and no memory, and where the view would be says what to
copy; nothing, where it is one piece of its input.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels import registry
from tenfold_kernels.arrays import is_frozen
from tenfold_kernels.cuda import _moves

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.registry import Compute, KernelNode


@functools.lru_cache(1024)
def ghost(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of that shape whose elements nobody may read: for its strides, and those of its views."""
    strides = _moves.whole_of(shape, dtype.itemsize).strides
    return np.lib.stride_tricks.as_strided(np.zeros(1, dtype), shape, strides, writeable=False)


def place_of(view: Array, of: Array) -> _moves.Place:
    """Where the elements of a view of a ghost are in it."""
    begin = view.__array_interface__["data"][0] - of.__array_interface__["data"][0] if view.size else 0
    assert 0 <= begin <= of.nbytes, "the kernel copied"
    return _moves.Place(view.shape, view.strides, begin)


def build_view(node: KernelNode) -> Compute:
    """A kernel with one input in the GPU's memory, of which the CPU's gives views without reading an element."""
    views = registry.lookup(node, "CPU")(node)
    memory = registry.memory_of(node.op, node.attrs, "GPU")
    assert memory is not None
    at = memory[0].index(True)
    #: Shape and other inputs of the last call whose other inputs were constants, and the places of its outputs.
    last: tuple[tuple[int, ...], tuple[Array, ...], tuple[_moves.Place, ...]] | None = None

    def compute(*inputs: Any) -> Any:
        nonlocal last
        x, others = inputs[at], (*inputs[:at], *inputs[at + 1 :])
        known = last
        if known is None or known[0] != x.shape or any(a is not b for a, b in zip(known[1], others, strict=True)):
            of = ghost(x.shape, x.dtype)
            found = views(*inputs[:at], of, *inputs[at + 1 :])
            found = found if isinstance(found, tuple) else (found,)
            known = x.shape, others, tuple([place_of(view, of) for view in found])
            if all(map(is_frozen, others)):
                last = known
        outputs = tuple([_moves.take(x, place) for place in known[2]])
        return outputs[0] if len(outputs) == 1 else outputs

    return compute
