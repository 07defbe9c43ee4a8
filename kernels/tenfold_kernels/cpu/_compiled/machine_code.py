"""Machine code for a loop of this package, by Numba, kept on disk beside the sources or in NUMBA_CACHE_DIR.

Imported by compiling.py and loading.py only when a loop is to be compiled or loaded: it imports Numba. cache_lock.py
keeps processes out of each other's way on disk. Release of the GIL, and IEEE division (error_model="numpy"), are
settings of every loop. Numba's cache knows a loop by its name and notices when the loop's own file has changed; a loop
that inlines functions gets a name with their hash in it, so that an edit of those is noticed too.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

import numba
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.core.sigutils import normalize_signature

from tenfold_kernels import object_code
from tenfold_kernels.code_on_disk import compile_once
from tenfold_kernels.object_writer import object_of, object_of_callback

from .cache_lock import cache_lock
from .loop_spec import Inlined
from .object_names import bytecode, file_of, file_of_callback, inlined

if TYPE_CHECKING:
    from collections.abc import Callable

    from .loop_spec import LoopSpec

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def _argument(code: str, element: Any, index: Any) -> Any:
    """The type of one argument; the letters are in compile_loop."""
    kind, rank = code[0], int(code[1:] or 0)
    match kind:
        case "r":
            return types.Array(element, rank, "C", readonly=True)
        case "v":
            return types.Array(element, rank, "A", readonly=True)
        case "w":
            return types.Array(element, rank, "C")
        case "i":
            return types.Array(index, rank, "C", readonly=True)
        case "x":
            return types.Array(index, rank, "C")
        case "s":
            return element
        case "n":
            return types.int64
        case "b":
            return types.boolean
    raise ValueError(f"no argument code {code!r}")


def _bound(function: Callable[..., Any]) -> FunctionType:
    """A copy of `function` that sees Numba's dispatchers in place of what it inlines, and is named by these."""
    bound = _copy(function)
    _bind(bound)
    if found := inlined(function, []):
        text = repr([bytecode(called.py_func.__code__) for called in found])
        bound.__qualname__ += f"_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return bound


def _copy(function: Callable[..., Any]) -> FunctionType:
    copied = FunctionType(function.__code__, dict(function.__globals__), function.__name__, function.__defaults__)
    copied.__qualname__ = function.__qualname__
    return copied


def _bind(bound: FunctionType) -> None:
    for name in bound.__code__.co_names:
        called = bound.__globals__.get(name)
        if isinstance(called, Inlined):
            bound.__globals__[name] = _dispatcher_of(called)


def _dispatcher_of(inlined: Inlined) -> Any:
    if inlined.dispatcher is None:
        body = _copy(inlined.py_func)
        inlined.dispatcher = numba.njit(**_OPTIONS)(body)
        _bind(body)  # after that: a body may call itself
    return inlined.dispatcher


def _signature(spec: LoopSpec) -> Any:
    element, index = numba.from_dtype(spec.element), numba.from_dtype(spec.index)
    returned = types.int64 if spec.result == "n" else types.void
    return returned(*(_argument(code, element, index) for code in spec.codes.split()))


def _dispatcher(spec: LoopSpec) -> Any:
    """Numba's object for the loop, nothing compiled. Raises RuntimeError without a cache folder."""
    return numba.njit(cache=True, **_options(spec))(_bound(spec.function))


def _options(spec: LoopSpec) -> dict[str, Any]:
    return {**_OPTIONS, "fastmath": set(spec.fastmath)} if spec.fastmath else dict(_OPTIONS)


@functools.cache
def _versions() -> list[str]:
    return [importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")]


def _mark(spec: LoopSpec, dispatcher: Any) -> Path:
    """The file that says: machine code of this loop, these types and versions is on disk. A hint, it may be wrong."""
    function = spec.function
    source = Path(function.__code__.co_filename)
    types_ = spec.codes, spec.element.str, spec.index.str, spec.result, sorted(spec.fastmath)
    key = repr((types_, _versions(), source.stat().st_mtime_ns if source.exists() else 0))
    name = f"{function.__module__}.{dispatcher.__qualname__}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.ready"
    return Path(str(dispatcher.stats.cache_path)) / name


def is_on_disk(spec: LoopSpec) -> bool:
    """Whether `compile_spec` will probably load machine code, not make it."""
    try:
        dispatcher = _dispatcher(spec)
    except RuntimeError:
        return False
    return not isinstance(dispatcher, Dispatcher) or _mark(spec, dispatcher).exists()


def compile_spec(spec: LoopSpec) -> Callable[..., Any]:
    """Numba's function of the loop, from its cache where it can. Blocks: milliseconds to load, a second to compile."""
    try:
        compiled = _dispatcher(spec)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        # Neither the sources' folder nor the user's cache folder can be written to: compile in every process.
        uncached: Callable[..., Any] = numba.njit(_signature(spec), **_options(spec))(_bound(spec.function))
        return uncached
    if isinstance(compiled, Dispatcher):  # not so with NUMBA_DISABLE_JIT
        function = spec.function
        with cache_lock(Path(str(compiled.stats.cache_path)) / f"{function.__module__}.{function.__qualname__}.lock"):
            compile_once(compiled, _signature(spec))
            _leave_mark(_mark(spec, compiled))
    return cast("Callable[..., Any]", compiled)


def _leave_mark(path: Path) -> None:
    try:
        if not path.exists():
            path.touch()
    except OSError:  # a full disk: the next process finds no mark, and compiles elsewhere
        return


def make_object(spec: LoopSpec) -> bytes | None:
    """Compiles the loop and leaves it on disk as an object file: its content, which is empty where a call needs Numba.
    None if another process has made the file meanwhile. Blocks.
    """
    dispatcher = numba.njit(**_options(spec))(_bound(spec.function))
    path, name = file_of(spec)
    return _made(path, spec.function, lambda: object_of(dispatcher, _signature(spec), name))


def _made(path: Path, function: Callable[..., Any], make: Callable[[], bytes | None]) -> bytes | None:
    with cache_lock(path.parent / f"{function.__module__}.{function.__qualname__}.lock"):
        if path.exists():
            return None
        content = make() or b""
        object_code.write(path, content)
        return content


def make_object_of_callback(function: Callable[..., Any], signature: str) -> bytes | None:
    """The same of a function that others call by its address."""
    dispatcher = numba.njit(**_OPTIONS)(_bound(function))
    arguments, _ = normalize_signature(signature)  # type: ignore[no-untyped-call]
    path, name = file_of_callback(function, signature)
    return _made(path, function, lambda: object_of_callback(dispatcher, types.void(*arguments), name))


def compile_callback(function: Callable[..., Any], signature: str) -> int:
    """The address of `function` as a C function of Numba's, which stays. Blocks."""
    try:
        made = numba.cfunc(signature, cache=True, error_model="numpy")(_bound(function))
    except RuntimeError:  # nowhere to keep it
        made = numba.cfunc(signature, error_model="numpy")(_bound(function))
    _callbacks.append(made)
    return cast("int", made.address)


#: Numba frees the code of those that nobody holds.
_callbacks: list[Any] = []
