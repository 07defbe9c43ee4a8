"""A kernel's PTX: compiled by Numba for one capability, kept on disk by the hash of what it was made of.

Nothing of an array's shape is compiled in, so that a kernel is compiled once for a type. The driver turns PTX into
machine code and keeps that itself. The first compilation is logged, because it takes a tenth of a second or more.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import re
from typing import TYPE_CHECKING, Any

from tenfold_kernels.fusion.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tenfold_kernels.cuda._launch import Kernel

_log = logging.getLogger(__name__)
#: Goes up when the same text must be compiled anew.
_FORMAT = 1
_ENTRY = re.compile(rb"\.entry\s+([A-Za-z_$][\w$]*)")


def of(kernel: Kernel, capability: tuple[int, int]) -> tuple[bytes, str]:
    """(PTX, the name of its entry). Blocks while it compiles."""
    path = _path(kernel, capability)
    text = _read(path)
    if text is None:
        _log.info("Compiling the CUDA kernel %s(%s).", kernel.name, ", ".join(kernel.types))
        text = compile_ptx(kernel, capability)
        _write(path, text)
    found = _ENTRY.search(text)
    assert found is not None, f"the PTX of {kernel.name} has no entry"
    return text, found[1].decode()


def compile_ptx(kernel: Kernel, capability: tuple[int, int]) -> bytes:
    """Compiles it, whatever is kept."""
    from numba import cuda

    compiler: Any = cuda
    text, _ = compiler.compile(kernel.function, signature(kernel.types), cc=capability, output="ptx", abi="numba")
    return text.encode() if isinstance(text, str) else bytes(text)


def signature(types: tuple[str, ...]) -> Any:
    """Numba's signature of a kernel whose arguments have those types."""
    from numba import types as numba_types

    def argument(name: str) -> Any:
        if name.endswith("*"):
            return numba_types.CPointer(_element(name[:-1]))  # type: ignore[no-untyped-call]
        return _element(name)

    def _element(name: str) -> Any:
        return numba_types.boolean if name == "boolean" else getattr(numba_types, name)

    return numba_types.void(*map(argument, types))


def text_of(function: Callable[..., Any]) -> str:
    """What a function is made of, for a hash: its own text, generated or of a file, with its name, that of its module,
    and what its maker gave it.
    """
    generated = getattr(function, "generated_text", None)
    if generated is not None:
        return str(generated)
    module = inspect.getmodule(function)
    text = inspect.getsource(module) if module is not None else inspect.getsource(function)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    given = [f"{name} = {_constant(cell.cell_contents)}" for name, cell in cells]
    return "\n".join([text, function.__qualname__, *given])


def _constant(value: Any) -> str:
    """What a kernel is compiled with, as text that is the same in every process."""
    function = getattr(value, "py_func", value)
    return text_of(function) if inspect.isfunction(function) else repr(value)


def _path(kernel: Kernel, capability: tuple[int, int]) -> Path | None:
    folder = cache_folder(os.environ)
    if folder is None:
        return None
    from importlib.metadata import version

    made_of = (_FORMAT, text_of(kernel.function), kernel.types, capability, version("numba"))
    return folder / f"cuda_{hashlib.sha256(repr(made_of).encode()).hexdigest()[:32]}.ptx"


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
