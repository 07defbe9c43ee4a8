"""The machine code of denormals.py for x86-64: two functions that Python calls without ctypes, built with llvmlite.

Each is a C function (self, argument) as a PyMethodDef describes it, called with the GIL held. MXCSR, the register that
they read and write, has the mode of the thread: whether results are flushed, whether operands are, how to round.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from tenfold_kernels.native_code import compile_module

if TYPE_CHECKING:
    from collections.abc import Callable

#: MXCSR's bits for denormal results and operands. Of a thread's mode, these and rounding to nearest are set.
FLUSHES = 0x8040
_ROUNDING = 0x6000
_NO_ARGUMENT, _ONE_ARGUMENT = 0x4, 0x8


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _module(from_long: int, as_long: int) -> Any:
    """The two functions. The arguments are addresses of PyLong_FromLong and PyLong_AsLong."""
    from llvmlite import ir  # type: ignore[import-untyped]

    word, bits, byte = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
    module = ir.Module("denormals")
    moves = ir.FunctionType(ir.VoidType(), [byte])
    read = ir.Function(module, moves, "llvm.x86.sse.stmxcsr")
    write = ir.Function(module, moves, "llvm.x86.sse.ldmxcsr")
    converts = ir.FunctionType(word, [word]).as_pointer()

    def begin(name: str) -> Any:
        return ir.IRBuilder(ir.Function(module, ir.FunctionType(word, [word, word]), name).append_basic_block("entry"))

    def call(at: Any, address: int, value: Any) -> Any:
        return at.call(at.inttoptr(ir.Constant(word, address), converts), [value])

    at = begin("flush")
    held = at.alloca(bits)
    place = at.bitcast(held, byte)
    at.call(read, [place])
    before = at.load(held)
    flushes = ir.Constant(bits, FLUSHES)
    with at.if_then(at.icmp_unsigned("==", at.and_(before, flushes), flushes)):
        at.ret(call(at, from_long, ir.Constant(word, 0)))
    at.store(at.or_(at.and_(before, ir.Constant(bits, ~_ROUNDING & 0xFFFFFFFF)), flushes), held)
    at.call(write, [place])
    at.ret(call(at, from_long, at.zext(before, word)))

    at = begin("restore")
    held = at.alloca(bits)
    at.store(at.trunc(call(at, as_long, at.function.args[1]), bits), held)
    at.call(write, [at.bitcast(held, byte)])
    at.ret(call(at, from_long, ir.Constant(word, 0)))
    return module


#: What the functions stand on: it stays as long as the process.
_kept: list[Any] = []


def flush_and_restore() -> tuple[Callable[[], int], Callable[[int], int]]:
    """As denormals.Mode. Blocks for 0.1 s. Raises what llvmlite raises where there can be no code."""
    python = ctypes.pythonapi
    address = [ctypes.cast(each, ctypes.c_void_p).value for each in (python.PyLong_FromLong, python.PyLong_AsLong)]
    engine = compile_module(_module(*map(int, filter(None, address))))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCFunction_NewEx", python)
    )
    functions = []
    for name, flags in (("flush", _NO_ARGUMENT), ("restore", _ONE_ARGUMENT)):
        method = _MethodDef(name.encode(), engine.get_function_address(name), flags, None)
        _kept.extend((engine, method))
        functions.append(new(ctypes.addressof(method), None, None))
    flush, restore = functions
    return flush, restore
