"""The one load of an index that is checked and then used: an intrinsic of every loop that indexes memory by data.

A loop that reads an element twice, to check it and to use it, may find two numbers there: a reference variable is
assigned to by another step, a block of shared memory is written to by a peer. In a local variable it is one number for
Python, but LLVM may read memory again for it; not what was loaded atomically. On common machines that is the same
instruction as any other load. Named in intrinsics.py; the loops are listed in docs/compiled_loops.md. TensorFlow has
SubtleMustCopy for it. After an edit here, touch the modules of the loops: the disk cache watches nothing else.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .memory_views import ask_for

_I64 = ir.IntType(64)


def _load(array: Any, context: Any, builder: Any, value: Any, places: list[Any]) -> Any:
    pointer = cgutils.get_item_pointer(
        context, builder, array, context.make_array(array)(context, builder, value), places, wraparound=False
    )  # type: ignore[no-untyped-call]
    return builder.load_atomic(pointer, "unordered", array.dtype.bitwidth // 8)


@intrinsic
def once(typing_context, array, i):  # type: ignore[no-untyped-def]
    """`array[i]` of a vector of numbers, read from memory exactly once; i is not checked."""

    def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
        return _load(array, context, builder, args[0], [args[1]])

    return array.dtype(array, types.intp), generate


@intrinsic
def once_2(typing_context, array, i, j):  # type: ignore[no-untyped-def]
    """`array[i, j]` of a matrix, as `once`."""

    def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
        return _load(array, context, builder, args[0], [args[1], args[2]])

    return array.dtype(array, types.intp, types.intp), generate


@intrinsic
def fetch_ahead(typing_context, table, row):  # type: ignore[no-untyped-def]
    """Has the beginning of a row of a matrix, or an element of a vector, come into the cache. Any number will do: a
    prefetch never faults."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, args[0])
        apart = builder.extract_value(array.strides, 0)
        ask_for(builder, builder.add(builder.ptrtoint(array.data, _I64), builder.mul(args[1], apart)))
        return context.get_dummy_value()

    return types.void(table, types.int64), generate
