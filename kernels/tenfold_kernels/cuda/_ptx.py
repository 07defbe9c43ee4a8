"""A kernel's machine code: PTX made by Numba for one capability, linked by nvJitLink, kept on disk by the hash of what
it was made of.

Nothing of an array's shape is compiled in, so that a kernel is compiled once for a type. A driver takes PTX of its own
version of CUDA or an older one, but machine code of any minor version: so it gets PTX only where nvJitLink is not
installed. A compilation is logged, because it takes a tenth of a second or more; the first of a process as a warning,
which a program shows.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
import os
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenfold_kernels.fusion.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.cuda._launch import Kernel

_log = logging.getLogger(__name__)
#: Goes up when the same text must be compiled anew.
_FORMAT = 2
_CODE = Path(__file__).parent / "_code"
_ENTRY = re.compile(rb"\.entry\s+([A-Za-z_$][\w$]*)")


def of(kernel: Kernel, capability: tuple[int, int]) -> tuple[bytes, str]:
    """(what the driver loads, the name of its entry). Blocks while it compiles."""
    path = _path(kernel, capability)
    kept = _read(path)
    if kept is None:
        _say_once(str(path.parent) if path is not None else "")
        _log.info("Compiling the CUDA kernel %s(%s).", kernel.name, ", ".join(kernel.types))
        text = compile_ptx(kernel, capability)
        found = _ENTRY.search(text)
        assert found is not None, f"the PTX of {kernel.name} has no entry"
        kept = found[1] + b"\n" + (link(text, capability) or text)
        _write(path, kept)
    name, _, code = kept.partition(b"\n")
    return code, name.decode()


@functools.cache
def _say_once(folder: str) -> None:
    """A first step may take a minute: who waits for it is told why."""
    kept = f"kept in {folder}" if folder else "not kept"
    _log.warning("Compiling CUDA kernels: first steps take longer. They are %s.", kept)


def link(text: bytes, capability: tuple[int, int]) -> bytes | None:
    """Machine code of PTX; None without nvJitLink."""
    try:
        from cuda.bindings import nvjitlink  # type: ignore[import-not-found, unused-ignore]

        nvjitlink.version()
    except (ImportError, RuntimeError):
        return None
    major, minor = capability
    handle = nvjitlink.create(1, [f"-arch=sm_{major}{minor}"])
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, text, len(text), "kernel")
        nvjitlink.complete(handle)
        code = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, code)
    finally:
        nvjitlink.destroy(handle)
    return bytes(code)


def compile_ptx(kernel: Kernel, capability: tuple[int, int]) -> bytes:
    """Compiles it, whatever is kept."""
    from numba import cuda

    compiler: Any = cuda
    text, _ = compiler.compile(
        kernel.function, signature(kernel.types), device=False, cc=capability, output="ptx", abi="numba"
    )
    return text.encode() if isinstance(text, str) else bytes(text)


def signature(types: tuple[str, ...]) -> Any:
    """Numba's signature of a kernel whose arguments have those types."""
    import numba.types

    numba_types: Any = numba.types

    def argument(name: str) -> Any:
        if name == "boolean*":
            # a bool in memory is a byte, which Numba stores no truth value to
            return numba_types.CPointer(numba_types.uint8)
        if name == "bfloat16*":
            # its bits, which narrow_text.py converts
            return numba_types.CPointer(numba_types.uint16)
        if name.endswith("*"):
            return numba_types.CPointer(_element(name[:-1]))
        return _element(name)

    def _element(name: str) -> Any:
        return numba_types.boolean if name == "boolean" else getattr(numba_types, name)

    return numba_types.void(*map(argument, types))


def text_of(function: Callable[..., Any]) -> str:
    """What a function is made of, for a hash: its own text where it was generated; else that of all bodies, its name,
    and what its maker compiled in: a closure's numbers, types and functions.
    """
    generated = getattr(function, "generated_text", None)
    if generated is not None:
        return str(generated)
    function = getattr(function, "py_func", function)
    held = [_held_text(cell.cell_contents) for cell in function.__closure__ or ()]
    return "\n".join((_bodies(), f"{function.__module__}.{function.__qualname__}", *held))


def _held_text(value: Any) -> str:
    is_ours = inspect.isfunction(getattr(value, "py_func", value))
    return text_of(value) if is_ours else getattr(value, "__qualname__", "") or repr(value)


@functools.cache
def _bodies() -> str:
    """The text of all of _code/, whose functions call each other."""
    return "\n".join(path.read_text() for path in sorted(_CODE.glob("*.py")))


def _path(kernel: Kernel, capability: tuple[int, int]) -> Path | None:
    folder = cache_folder(os.environ)
    if folder is None:
        return None
    versions = [_version(name) for name in ("numba", "numba-cuda", "llvmlite", "nvidia-nvjitlink")]
    made_of = (_FORMAT, text_of(kernel.function), kernel.types, capability, versions)
    return folder / f"cuda_{hashlib.sha256(repr(made_of).encode()).hexdigest()[:32]}.bin"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _read(path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path is not None else None
    except OSError:
        return None


def _write(path: Path | None, text: bytes) -> None:
    """All of it or nothing: another process may read the file now."""
    if path is None:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_bytes(text)
        os.replace(part, path)
    except OSError as error:
        _log.warning("The compiled kernel could not be kept in %s: %s", path, error)
