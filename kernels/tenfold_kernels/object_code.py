"""Machine code that Numba made, kept on disk as object files of our own and called without Numba.

To import Numba costs a process 0.4 s, and its first steps more, for it holds the interpreter. What was compiled before
needs LLVM's loader alone: object_writer.py puts a loop and a function of Python's C interface, which takes its
arguments apart, into one object file; `load` makes a built-in function of it.

A file holds what it depends on: a digest of its content, in its name the versions, this processor, and all that the
loop is made of. Used by cpu/_compiled/machine_code.py and fusion/cache.py.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import logging
import os
import platform
import sys
import sysconfig
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

#: Says where Numba keeps its files, and does not change what is in them.
_FOLDER = "NUMBA_CACHE_DIR"
#: Goes up when files of the same name would mean something else.
_FORMAT = 1
_MAGIC = b"tenfold object 1\n"
_DIGEST_BYTES = 32
#: METH_FASTCALL of Python's methodobject.h: (self, arguments, how many).
_FASTCALL = 0x80
#: Where the fields of an array lie in memory: NumPy's ndarraytypes.h, the same in 1.x and 2.x.
DATA, RANK, SIZES, STRIDES, DTYPE, FLAGS = 16, 24, 32, 40, 56, 64
#: And of its dtype: the byte order, a character, and the number of the type.
BYTE_ORDER, TYPE_NUMBER = 26, 28
TYPE = 8

_lock = threading.Lock()


class _Method(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@functools.cache
def is_supported() -> bool:
    """Whether objects are written and read here: CPython with its lock, on Linux and x86-64, arrays as we know them."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return False
    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.implementation.name != "cpython":
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED") or sysconfig.get_config_var("Py_DEBUG"):
        return False
    example = np.zeros((2, 3), np.float32)
    at = id(example)

    def word(address: int) -> int:
        return ctypes.c_int64.from_address(address).value

    def number(address: int) -> int:
        return ctypes.c_int32.from_address(address).value

    dtype = word(at + DTYPE)
    return (
        word(at + TYPE) == id(np.ndarray)
        and word(at + DATA) == example.__array_interface__["data"][0]
        and number(at + RANK) == 2
        and [word(word(at + SIZES) + 8 * i) for i in range(2)] == [2, 3]
        and [word(word(at + STRIDES) + 8 * i) for i in range(2)] == [12, 4]
        and dtype == id(example.dtype)
        and number(dtype + TYPE_NUMBER) == example.dtype.num
        and ctypes.c_char.from_address(dtype + BYTE_ORDER).value == b"="
        and number(at + FLAGS) & 0x501 == 0x501
    )


@functools.cache
def _here() -> tuple[object, ...]:
    """What machine code depends on besides what it is made of: versions, by their files, and the processor."""
    packages = []
    for name in ("numba", "llvmlite", "numpy"):
        found = importlib.util.find_spec(name)
        origin = Path(str(found.origin)) if found is not None else None
        packages.append((str(origin), origin.stat().st_mtime_ns if origin is not None and origin.exists() else 0))
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_") and item[0] != _FOLDER)
    writer = Path(__file__).with_name("object_writer.py").stat().st_mtime_ns
    return _FORMAT, writer, sys.version, packages, settings, _processor()


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    kept = [line for line in lines if line.startswith(("model name", "cpu family", "model\t", "stepping", "flags"))]
    return "\n".join(sorted(set(kept)))


def name_of(made_of: object) -> str:
    """What an object is called: of the function that it holds, and of its file."""
    return f"tenfold_{hashlib.sha256(repr((made_of, _here())).encode()).hexdigest()[:32]}"


def path_of(folder: Path, name: str, of: str = "loop") -> Path:
    """Where an object is, named too by what it is `of`."""
    return folder / f"{of}.{name}.object"


class Otherwise:
    """What is called with arguments that an object does not take: another class or number of the same type is made what
    it takes; all else is a TypeError.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        #: The function of the object.
        self.function: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        plain = [_plain(each) for each in arguments]
        if self.function is not None and any(one is not other for one, other in zip(plain, arguments, strict=True)):
            return self.function(*plain)
        raise TypeError(f"{self._what} does not take ({', '.join(map(_described, arguments))})")


def _plain(value: Any) -> Any:
    """An array of NumPy's own class, and its type by the first of the numbers that it has: int64 has two."""
    if not isinstance(value, np.ndarray):
        return value
    dtype = np.dtype(value.dtype.str) if value.dtype.kind in "iufb" else value.dtype
    if type(value) is np.ndarray and value.dtype.num == dtype.num:
        return value
    return value.view(dtype, np.ndarray)


def _described(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    order = "" if value.flags.c_contiguous else f" in strides of {list(value.strides)}"
    rest = "" if value.flags.aligned else ", not aligned"
    return f"{value.dtype}{list(value.shape)}{order}{rest}{'' if value.flags.writeable else ', read-only'}"


def is_there(path: Path) -> bool:
    """Whether there is an object, or word that there can be none."""
    return path.exists()


def write(path: Path, content: bytes) -> bool:
    """Leaves an object on disk, whole or not at all; whether it could."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(content).digest() + content)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError:
        return False
    return True


def _read(path: Path) -> bytes | None:
    """None where there is none, or one that is damaged."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    digest, content = whole[len(_MAGIC) : len(_MAGIC) + _DIGEST_BYTES], whole[len(_MAGIC) + _DIGEST_BYTES :]
    if not whole.startswith(_MAGIC) or hashlib.sha256(content).digest() != digest:
        _log.warning("%s is damaged; it is made again.", path)
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    return content


@functools.cache
def _engine() -> Any:
    """LLVM's loader. It stays for good: at the interpreter's end, threads may still run what it loaded."""
    import llvmlite.binding as llvm  # type: ignore[import-untyped]

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(codemodel="jitdefault")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    return engine


def _loaded(path: Path, content: bytes | None) -> Any:
    """LLVM's loader with the object in it, or None."""
    if content is None and is_supported():
        content = _read(path)
    if not content:
        return None
    import llvmlite.binding as llvm

    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    return engine


#: What built-in functions are made of must stay as long as they do, and they for as long as the process.
_methods: list[_Method] = []


def load(path: Path, name: str, what: str, content: bytes | None = None) -> Callable[..., Any] | None:
    """The function of an object file, or of the content that one has or would have; None where there is none that can
    be used. It raises TypeError for arguments that it does not take, in which it is called `what`. Blocks, for about a
    millisecond.
    """
    with _lock:
        engine = _loaded(path, content)
        if engine is None:
            return None
        objects = (ctypes.c_int64 * 2).from_address(engine.get_global_value_address(f"{name}_objects"))
        objects[0], objects[1] = id(np.ndarray), id(None)
        method = _Method(name.encode(), engine.get_function_address(name), _FASTCALL, None)
        _methods.append(method)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = [ctypes.POINTER(_Method), ctypes.py_object, ctypes.c_void_p], ctypes.py_object
    otherwise = Otherwise(what)
    made: Callable[..., Any] = make(ctypes.byref(method), otherwise, None)
    otherwise.function = made
    return made


def load_address(path: Path, name: str, content: bytes | None = None) -> int | None:
    """The address of the C function of an object file; None where there is none that can be used. Blocks, as `load`."""
    with _lock:
        engine = _loaded(path, content)
        return None if engine is None else int(engine.get_function_address(name))
