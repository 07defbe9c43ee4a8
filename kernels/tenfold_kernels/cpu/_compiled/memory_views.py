"""Arrays over memory that the kernels know by its address, and asking for memory ahead of its use: intrinsics of loops
that are told where their tables lie. Named in intrinsics.py. Nobody checks an address: it is of an array that the
caller holds. After an edit here, touch the modules of the loops: the disk cache watches nothing else.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

_I32, _I64, _BYTE_POINTER = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()


def _viewed(element: Any, rank: int) -> Any:
    """The type of such an array, and what generates it of (address, length of each axis …)."""
    result = types.Array(element, rank, "C")
    size = element.bitwidth // 8

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(result)(context, builder)  # type: ignore[no-untyped-call]
        strides = [context.get_constant(types.intp, size)]
        for length in reversed(args[2:]):
            strides.insert(0, builder.mul(strides[0], length))
        populate_array(  # type: ignore[no-untyped-call]
            array,
            data=builder.inttoptr(args[0], array.data.type),
            shape=list(args[1:]),
            strides=strides,
            itemsize=context.get_constant(types.intp, size),
            meminfo=None,
        )
        return array._getvalue()

    return result(*[types.int64] * (1 + rank)), generate


@intrinsic
def int64s(typing_context, address, count):  # type: ignore[no-untyped-def]
    """A vector of so many int64s."""
    return _viewed(types.int64, 1)


@intrinsic
def int32s(typing_context, address, count):  # type: ignore[no-untyped-def]
    """A vector of so many int32s."""
    return _viewed(types.int32, 1)


@intrinsic
def floats(typing_context, address, rows, columns):  # type: ignore[no-untyped-def]
    """A matrix of float32s."""
    return _viewed(types.float32, 2)


@intrinsic
def number(typing_context, address):  # type: ignore[no-untyped-def]
    """The float64 there, as float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = builder.load(builder.inttoptr(args[0], ir.DoubleType().as_pointer()))
        return builder.fptrunc(found, ir.FloatType())

    return types.float32(types.int64), generate


@intrinsic
def copy_bytes(typing_context, source, to, count):  # type: ignore[no-untyped-def]
    """Copies so many bytes from an address to another that is none of them."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, to = (builder.inttoptr(value, _BYTE_POINTER) for value in args[:2])
        cgutils.raw_memcpy(builder, to, source, args[2], 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def ask_for(builder: Any, address: Any) -> None:
    """Generates what has the cache line at an address, an int64, come: an address of nothing will do as well."""
    kind = ir.FunctionType(ir.VoidType(), [_BYTE_POINTER, _I32, _I32, _I32])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", (_BYTE_POINTER,), kind)
    # to be read, into all caches, data
    builder.call(fetch, [builder.inttoptr(address, _BYTE_POINTER), _I32(0), _I32(3), _I32(1)])


@intrinsic
def prefetch(typing_context, address):  # type: ignore[no-untyped-def]
    """Asks for the cache line there, which need not be memory at all. Never blocks."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        ask_for(builder, args[0])
        return context.get_dummy_value()

    return types.void(types.int64), generate
