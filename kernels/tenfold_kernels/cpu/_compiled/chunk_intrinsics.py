"""Atomic cells and calls of C functions by their addresses, for loops that work without the interpreter: intrinsics of
chunk_loops.py and gemm.py, named in intrinsics.py. No address is checked.

After an edit here touch those files too, for the disk cache of their loops watches nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types

if TYPE_CHECKING:
    from collections.abc import Callable

_I64, _I32 = ir.IntType(64), ir.IntType(32)
#: What it makes is called without the typing context that its definition takes, so it has no type of its own.
_intrinsic: Callable[[Any], Any] = extending.intrinsic


@_intrinsic
def load(typingctx: Any, address: Any) -> Any:
    """The cell at an address, read in one order with all other atomic accesses."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(args[0], _I64.as_pointer()), "seq_cst", 8)

    return types.int64(types.int64), build


@_intrinsic
def store(typingctx: Any, address: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], builder.inttoptr(args[0], _I64.as_pointer()), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), build


@_intrinsic
def fetch_add(typingctx: Any, address: Any, value: Any) -> Any:
    """Adds to the cell; what it was before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", builder.inttoptr(args[0], _I64.as_pointer()), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), build


@_intrinsic
def exchange(typingctx: Any, address: Any, value: Any) -> Any:
    """Sets the cell; what it was before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("xchg", builder.inttoptr(args[0], _I64.as_pointer()), args[1], "seq_cst")

    return types.int64(types.int64, types.int64), build


def _caller_of(result: Any, parameters: list[Any]) -> Any:
    """An intrinsic that calls the C function at an address with int64s, each cut to the type that it takes."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(result, parameters)
        function = builder.inttoptr(args[0], kind.as_pointer())
        values = [
            value if wanted.width == 64 else builder.trunc(value, wanted)
            for value, wanted in zip(args[1:], parameters, strict=True)
        ]
        builder.call(function, values)
        return context.get_dummy_value()

    return build


@_intrinsic
def call_0(typingctx: Any, function: Any) -> Any:
    """int function(void); what it gives is not looked at, here and below."""
    return types.void(types.int64), _caller_of(_I32, [])


@_intrinsic
def call_1(typingctx: Any, function: Any, a: Any) -> Any:
    """int function(void *)"""
    return types.void(types.int64, types.int64), _caller_of(_I32, [_I64])


@_intrinsic
def call_2(typingctx: Any, function: Any, a: Any, b: Any) -> Any:
    """void function(int64, int64), or of two pointers"""
    return types.void(types.int64, types.int64, types.int64), _caller_of(ir.VoidType(), [_I64, _I64])


@_intrinsic
def call_clock(typingctx: Any, function: Any, clock: Any, timespec: Any) -> Any:
    """int clock_gettime(clockid_t, struct timespec *)"""
    return types.void(types.int64, types.int64, types.int64), _caller_of(_I32, [_I32, _I64])


@_intrinsic
def two_words(typingctx: Any) -> Any:
    """The address of 16 bytes on the stack, until the function returns."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        with builder.goto_entry_block():
            memory = builder.alloca(ir.ArrayType(_I64, 2))
        return builder.ptrtoint(memory, _I64)

    return types.int64(), build


_ROW_MAJOR = 101


def _gemm(element: Any) -> Any:
    """An intrinsic: cblas_?gemm(order, trans_a, trans_b, m, n, k, 1, a, lda, b, ldb, 0, c, ldc) at an address."""

    @_intrinsic
    def call(
        typingctx: Any, gemm: Any, ta: Any, tb: Any, m: Any, n: Any, k: Any,
        a: Any, lda: Any, b: Any, ldb: Any, c: Any, ldc: Any,
    ) -> Any:  # fmt: skip
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(
                ir.VoidType(),
                [_I32, _I32, _I32, _I64, _I64, _I64, element, _I64, _I64, _I64, _I64, element, _I64, _I64],
            )
            function = builder.inttoptr(args[0], kind.as_pointer())
            ta, tb = (builder.trunc(value, _I32) for value in args[1:3])
            one, zero = ir.Constant(element, 1.0), ir.Constant(element, 0.0)
            builder.call(
                function, [ir.Constant(_I32, _ROW_MAJOR), ta, tb, *args[3:6], one, *args[6:10], zero, *args[10:12]]
            )
            return context.get_dummy_value()

        return types.void(*[types.int64] * 12), build

    return call


sgemm, dgemm = _gemm(ir.FloatType()), _gemm(ir.DoubleType())
