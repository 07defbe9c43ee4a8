"""Writes what Numba compiles as an object file that object_code.py loads: the loop, and what calls it from Python.

    entry(self, arguments, count)     each argument is looked at, and taken apart into what Numba's function takes:
                                      of an array its memory, sizes and strides, of a number the number
       └─► Numba's function           without the interpreter's lock

If an argument is anything else than the loop's signature says, all are handed to `self`. Numba's runtime,
which counts references to memory that a loop asks for, is three functions here (`_RUNTIME`). Imports Numba: called
where loops are compiled.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.np import numpy_support

from .object_code import BYTE_ORDER, DATA, DTYPE, FLAGS, RANK, SIZES, STRIDES, TYPE, TYPE_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_I64, _I32, _I8, _I1 = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.IntType(1)
_DOUBLE, _VOID = ir.DoubleType(), ir.VoidType()
#: NumPy's flags of an array: lies in order, may be written to, each element at its place.
_IN_ORDER, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
#: Functions of Python's C interface: what they give, and what they take; objects are addresses.
_PYTHON: dict[str, tuple[Any, list[Any]]] = {
    "PyObject_Vectorcall": (_I64, [_I64, _I64, _I64, _I64]),
    "PyLong_AsLongLong": (_I64, [_I64]),
    "PyLong_AsUnsignedLongLongMask": (_I64, [_I64]),
    "PyLong_FromLongLong": (_I64, [_I64]),
    "PyBool_FromLong": (_I64, [_I64]),
    "PyFloat_AsDouble": (_DOUBLE, [_I64]),
    "PyObject_IsTrue": (_I32, [_I64]),
    "PyErr_Occurred": (_I64, []),
    "PyErr_Clear": (_VOID, []),
    "PyErr_NoMemory": (_I64, []),
    "PyEval_SaveThread": (_I64, []),
    "PyEval_RestoreThread": (_VOID, [_I64]),
    "Py_IncRef": (_VOID, [_I64]),
}


class _Entry:
    """The function that Python calls, as it is written."""

    def __init__(self, module: ir.Module, name: str, native: ir.Function, signature: Any, releases: bool) -> None:
        self._module, self._native, self._signature, self._releases = module, native, signature, releases
        function = ir.Function(module, ir.FunctionType(_I64, [_I64, _I64, _I64]), name)
        self._self, self._arguments, self._count = function.args
        self._objects = ir.GlobalVariable(module, ir.ArrayType(_I64, 2), f"{name}_objects")
        self._objects.initializer = ir.Constant(self._objects.value_type, [0, 0])
        self._builder = ir.IRBuilder(function.append_basic_block("entry"))
        #: Where an argument is none that the loop takes.
        self._other = function.append_basic_block("other")

    def _call(self, name: str, *arguments: Any) -> Any:
        result, parameters = _PYTHON[name]
        function = self._module.globals.get(name)
        if function is None:
            function = ir.Function(self._module, ir.FunctionType(result, parameters), name)
        return self._builder.call(function, arguments)

    def _read(self, address: Any, offset: int, kind: Any = _I64) -> Any:
        place = self._builder.add(address, ir.Constant(_I64, offset))
        return self._builder.load(self._builder.inttoptr(place, kind.as_pointer()))

    def _object(self, place: int) -> Any:
        zero = ir.Constant(_I32, 0)
        return self._builder.load(self._builder.gep(self._objects, [zero, ir.Constant(_I32, place)]))

    def _require(self, is_met: Any) -> None:
        """Goes on only where it is met."""
        there = self._builder.append_basic_block("met")
        self._builder.cbranch(is_met, there, self._other)
        self._builder.position_at_end(there)

    def _equal(self, value: Any, wanted: int) -> Any:
        return self._builder.icmp_signed("==", value, ir.Constant(value.type, wanted))

    def write(self) -> None:
        """Writes all of it. Raises NotImplementedError for an argument of another kind."""
        self._require(self._equal(self._count, len(self._signature.args)))
        given: list[Any] = []
        for place, kind in enumerate(self._signature.args):
            value = self._read(self._arguments, 8 * place)
            if isinstance(kind, types.Array):
                given += self._array(value, kind)
            else:
                given.append(self._number(value, kind))
        builder = self._builder
        wanted = self._native.function_type.args
        result = builder.alloca(_I64)
        error = builder.alloca(_I64)
        builder.store(ir.Constant(_I64, 0), error)
        arguments = [builder.bitcast(result, wanted[0]), builder.bitcast(error, wanted[1])]
        for value, parameter in zip(given, wanted[2:], strict=True):
            arguments.append(self._as(value, parameter))
        state = self._call("PyEval_SaveThread") if self._releases else None
        status = builder.call(self._native, arguments)
        if state is not None:
            self._call("PyEval_RestoreThread", state)
        with builder.if_then(builder.icmp_signed("!=", status, ir.Constant(status.type, 0))):
            # nothing raises but what asks for memory
            builder.ret(self._call("PyErr_NoMemory"))
        if self._signature.return_type == types.void:
            none = self._object(1)
            self._call("Py_IncRef", none)
            builder.ret(none)
        elif self._signature.return_type == types.boolean:
            found = builder.load(builder.bitcast(result, wanted[0]))
            builder.ret(self._call("PyBool_FromLong", builder.zext(found, _I64)))
        else:
            builder.ret(self._call("PyLong_FromLongLong", builder.load(result)))
        builder.position_at_end(self._other)
        builder.ret(self._call("PyObject_Vectorcall", self._self, self._arguments, self._count, ir.Constant(_I64, 0)))

    def _as(self, value: Any, wanted: Any) -> Any:
        if isinstance(wanted, ir.PointerType):
            return self._builder.inttoptr(value, wanted)
        if isinstance(wanted, ir.IntType) and wanted.width < value.type.width:
            return self._builder.trunc(value, wanted)
        if isinstance(wanted, ir.FloatType):
            return self._builder.fptrunc(value, wanted)
        return value

    def _array(self, value: Any, kind: types.Array) -> list[Any]:
        builder = self._builder
        self._require(builder.icmp_signed("==", self._read(value, TYPE), self._object(0)))
        flags = _ALIGNED | (_IN_ORDER if kind.layout == "C" else 0) | (_WRITEABLE if kind.mutable else 0)
        found = builder.and_(self._read(value, FLAGS, _I32), ir.Constant(_I32, flags))
        self._require(self._equal(found, flags))
        self._require(self._equal(self._read(value, RANK, _I32), kind.ndim))
        dtype, wanted = self._read(value, DTYPE), np.dtype(numpy_support.as_dtype(kind.dtype))
        self._require(self._equal(self._read(dtype, TYPE_NUMBER, _I32), wanted.num))
        self._require(self._equal(self._read(dtype, BYTE_ORDER, _I8), ord("|" if wanted.itemsize == 1 else "=")))
        sizes, strides = self._read(value, SIZES), self._read(value, STRIDES)
        lengths = [self._read(sizes, 8 * axis) for axis in range(kind.ndim)]
        count: Any = ir.Constant(_I64, 1)
        for length in lengths:
            count = builder.mul(count, length)
        nothing = ir.Constant(_I64, 0)
        itemsize = ir.Constant(_I64, wanted.itemsize)
        apart = [self._read(strides, 8 * axis) for axis in range(kind.ndim)]
        # who holds the memory, and what Python object it is: the caller sees to it
        return [nothing, nothing, count, itemsize, self._read(value, DATA), *lengths, *apart]

    def _number(self, value: Any, kind: Any) -> Any:
        builder = self._builder
        if isinstance(kind, types.Boolean):
            name = "PyObject_IsTrue"
        elif isinstance(kind, types.Float) and kind.bitwidth >= 32:
            name = "PyFloat_AsDouble"
        elif isinstance(kind, types.Integer):
            is_signed: bool = getattr(kind, "signed")  # noqa: B009  # not in the types of Numba's stubs
            name = "PyLong_AsLongLong" if is_signed else "PyLong_AsUnsignedLongLongMask"
        else:
            raise NotImplementedError(f"an argument of type {kind}")
        found = self._call(name, value)
        failed = ir.Constant(found.type, -1)
        bad = builder.fcmp_ordered("==", found, failed) if found.type == _DOUBLE else self._equal(found, -1)
        maybe, error, there = (builder.append_basic_block(block) for block in ("maybe", "error", "number"))
        builder.cbranch(bad, maybe, there)
        builder.position_at_end(maybe)
        builder.cbranch(self._equal(self._call("PyErr_Occurred"), 0), there, error)
        builder.position_at_end(error)
        self._call("PyErr_Clear")
        builder.branch(self._other)
        builder.position_at_end(there)
        return found


def _define_memory(module: ir.Module) -> None:
    """NRT_MemInfo_alloc_aligned(size, align): memory behind what counts its references, as Numba's nrt.h lays it out:
    the count, two words that are not used here, the memory's address, its size, and another word that is not used.
    """
    pointer = _I8.as_pointer()
    malloc = ir.Function(module, ir.FunctionType(pointer, [_I64]), "malloc")
    function = ir.Function(module, ir.FunctionType(pointer, [_I64, _I32]), "NRT_MemInfo_alloc_aligned")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    size, align = function.args[0], builder.zext(function.args[1], _I64)
    made = builder.call(malloc, [builder.add(builder.add(size, align), ir.Constant(_I64, 8 * _HEAD_WORDS))])
    with builder.if_then(builder.icmp_unsigned("==", made, ir.Constant(pointer, None))):
        builder.ret(made)
    start = builder.ptrtoint(made, _I64)
    past = builder.add(builder.add(start, ir.Constant(_I64, 8 * _HEAD_WORDS - 1)), align)
    memory = builder.sub(past, builder.urem(past, align))
    for word, value in enumerate((1, 0, 0, memory, size, 0)):
        place = builder.inttoptr(builder.add(start, ir.Constant(_I64, 8 * word)), _I64.as_pointer())
        builder.store(ir.Constant(_I64, value) if isinstance(value, int) else value, place)
    builder.ret(made)


def _define_release(module: ir.Module) -> None:
    """NRT_MemInfo_call_dtor(info): nobody refers to the memory any more."""
    pointer = _I8.as_pointer()
    free = ir.Function(module, ir.FunctionType(_VOID, [pointer]), "free")
    function = ir.Function(module, ir.FunctionType(_VOID, [pointer]), "NRT_MemInfo_call_dtor")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    builder.call(free, function.args)
    builder.ret_void()


def _define_reshape(module: ir.Module) -> None:
    """numba_attempt_nocopy_reshape(rank, sizes, strides, new rank, new sizes, new strides, itemsize, is Fortran's) of
    what lies in order: writes the new strides; 1.
    """
    words = _I64.as_pointer()
    kind = ir.FunctionType(_I32, [_I64, words, words, _I64, words, words, _I64, _I32])
    function = ir.Function(module, kind, "numba_attempt_nocopy_reshape")
    _, _, _, rank, sizes, strides, itemsize, _ = function.args
    entry, head, body, end = (function.append_basic_block(name) for name in ("entry", "head", "body", "end"))
    builder = ir.IRBuilder(entry)
    builder.branch(head)
    builder.position_at_end(head)
    left, stride = builder.phi(_I64), builder.phi(_I64)
    left.add_incoming(rank, entry)
    stride.add_incoming(itemsize, entry)
    builder.cbranch(builder.icmp_signed(">", left, ir.Constant(_I64, 0)), body, end)
    builder.position_at_end(body)
    axis = builder.sub(left, ir.Constant(_I64, 1))
    builder.store(stride, builder.gep(strides, [axis]))
    left.add_incoming(axis, body)
    stride.add_incoming(builder.mul(stride, builder.load(builder.gep(sizes, [axis]))), body)
    builder.branch(head)
    builder.position_at_end(end)
    builder.ret(ir.Constant(_I32, 1))


#: What of Numba's runtime an object has of its own.
_RUNTIME: dict[str, Callable[[ir.Module], None]] = {
    "NRT_MemInfo_alloc_aligned": _define_memory,
    "NRT_MemInfo_call_dtor": _define_release,
}
_RESHAPE = "numba_attempt_nocopy_reshape"
#: Words before the memory that a loop asks for.
_HEAD_WORDS = 6


def _compiled(dispatcher: Any, signature: Any) -> Any:
    """Numba's CompileResult, of a dispatcher that is used for nothing else: without what calls it from Python, and no
    machine code yet."""

    def alone(flags: Any) -> Any:
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags

    with global_compiler_lock:
        dispatcher._compiler._customize_flags = alone
        return dispatcher._compiler.compile(signature.args, signature.return_type)


def object_of(dispatcher: Any, signature: Any, name: str, *, releases: bool = True) -> bytes | None:
    """The object file of a function that Numba has not compiled yet, and compiles now; it is called `name` there. None
    where it needs more of Numba than is in one. `releases`: the interpreter's lock, while it runs. Blocks.
    """
    if signature.return_type not in (types.void, types.int64, types.boolean):
        return None
    compiled = _compiled(dispatcher, signature)

    def write(module: ir.Module, native: ir.Function) -> None:
        _Entry(module, name, native, signature, releases).write()

    return _linked(compiled, name, write)


def object_of_callback(dispatcher: Any, signature: Any, name: str) -> bytes | None:
    """The same of a C function of the loop's own int64s, that gives nothing."""

    def write(module: ir.Module, native: ir.Function) -> None:
        given = native.function_type.args
        function = ir.Function(module, ir.FunctionType(_VOID, [_I64] * (len(given) - 2)), name)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        result, error = builder.alloca(_I64), builder.alloca(_I64)
        first = [builder.bitcast(result, given[0]), builder.bitcast(error, given[1])]
        builder.call(native, [*first, *function.args])
        builder.ret_void()

    return _linked(_compiled(dispatcher, signature), name, write)


def _linked(compiled: Any, name: str, write: Any) -> bytes | None:
    library, context = compiled.library, compiled.target_context
    module = ir.Module(name)
    kind = context.call_conv.get_function_type(compiled.fndesc.restype, compiled.fndesc.argtypes)
    native = ir.Function(module, kind, compiled.fndesc.llvm_func_name)
    # linked with what it calls and optimized, but not handed to Numba's own loader
    library._finalize_final_module = lambda: None
    with global_compiler_lock:
        library.finalize()
    final = library._final_module
    module.triple, module.data_layout = final.triple, str(final.data_layout)
    try:
        write(module, native)
    except NotImplementedError:
        return None
    wanted = set(_wanted(final))
    for each in wanted & _RUNTIME.keys():
        _RUNTIME[each](module)
    if _RESHAPE in wanted and all(getattr(kind, "layout", "C") == "C" for kind in compiled.signature.args):
        _define_reshape(module)
    linked = llvm.parse_bitcode(final.as_bitcode())
    linked.link_in(llvm.parse_assembly(str(module)))
    for each in (*linked.functions, *linked.global_variables):
        if not each.is_declaration and each.name not in (name, f"{name}_objects"):
            each.linkage = "internal"
    machine = library.codegen._tm
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(linked, builder)
    if not all(map(_is_here, _wanted(linked))):
        return None
    linked.verify()
    return bytes(machine.emit_object(linked))


def _wanted(module: Any) -> Iterable[str]:
    """The names of what is not in the module."""
    for each in (*module.functions, *module.global_variables):
        if each.is_declaration and not each.name.startswith("llvm."):
            yield each.name


def _is_here(name: str) -> bool:
    """Whether every process of Python has the symbol: its own, the C library's, and that of mathematics."""
    return hasattr(ctypes.CDLL(None), name)
