"""Many tensors as one vector of bytes, on their way to another task, and the tensors out of it.

    how many words follow │ rank and sizes of each tensor, int64 words │ elements of each, from a multiple of 64 on

The ops are Tenfold's own; compiler/graph/bundles.py puts them into graphs. What is taken out is views of the vector.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD, _ALIGNED = 8, 64


def _places(words: int, sizes: Iterable[int]) -> list[int]:
    """Where the elements of each tensor begin, and where a bundle with so many words and bytes ends."""
    return [*itertools.accumulate(map(_aligned, sizes), initial=_aligned(_WORD * words))]


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


@kernel("_Bundle")
def build_bundle(node: KernelNode) -> Compute:
    def compute(*tensors: Array) -> Array:
        words = [size for each in tensors for size in (each.ndim, *each.shape)]
        *places, end = _places(1 + len(words), (each.nbytes for each in tensors))
        allow((end,), np.uint8)
        bundle = np.empty(end, np.uint8)
        bundle[: places[0]] = 0
        bundle[: _WORD * (1 + len(words))].view(np.int64)[:] = (len(words), *words)
        for each, at in zip(tensors, places, strict=True):
            np.ndarray(each.shape, each.dtype, bundle, at)[...] = each
            bundle[at + each.nbytes : at + _aligned(each.nbytes)] = 0
        return bundle

    return compute


@kernel("_Unbundle", views=True)
def build_unbundle(node: KernelNode) -> Compute:
    types = [np.dtype(kind.base_dtype.as_numpy_dtype) for kind in node.output_types]

    def compute(bundle: Array) -> Any:
        shapes, words = _read(bundle, len(types))
        sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in zip(shapes, types, strict=True)]
        *places, end = _places(words, sizes)
        if end != bundle.size:
            raise invalid(f"The tensors of a bundle come to {end} bytes, but it has {bundle.size}")
        for shape, dtype in zip(shapes, types, strict=True):
            # with no elements, any sizes come to nothing
            allow(shape, dtype)
        rows = zip(shapes, types, places, strict=True)
        tensors = tuple(np.ndarray(shape, dtype, bundle, at) for shape, dtype, at in rows)
        return tensors[0] if len(tensors) == 1 else tensors

    return compute


def _read(bundle: Array, count: int) -> tuple[list[list[int]], int]:
    """The shapes in a bundle of so many tensors, and the number of its words. Raises InvalidArgumentError."""
    if bundle.ndim != 1:
        raise invalid(f"A bundle is a vector, but this has shape {shape_text(bundle.shape)}")
    words = bundle[: bundle.size // _WORD * _WORD].view(np.int64)
    total = int(words[0]) if words.size else -1
    if not count <= total < words.size:
        raise invalid(f"A bundle of {count} tensors and {bundle.size} bytes cannot have {total} words of shapes")
    told = words[1 : 1 + total].tolist()
    shapes: list[list[int]] = []
    at = 0
    for _ in range(count):
        rank = told[at] if at < total else -1
        shape = told[at + 1 : at + 1 + rank]
        if rank < 0 or len(shape) < rank or min(shape, default=0) < 0:
            raise invalid(f"Tensor {len(shapes)} of a bundle of {count} has no shape")
        shapes.append(shape)
        at += 1 + rank
    if at != total:
        raise invalid(f"A bundle has the shapes of {count} tensors in {at} words, but says that there are {total}")
    return shapes, 1 + total
