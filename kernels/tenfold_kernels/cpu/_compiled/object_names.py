"""Which object file (tenfold_kernels/object_code.py) holds which loop: what the loop is made of, as a name. Known
without importing Numba.

Used by objects.py, which loads them, and machine_code.py, which leaves them.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from tenfold_kernels import object_code

from .intrinsics import Intrinsic
from .loop_spec import CALLBACK, Inlined

if TYPE_CHECKING:
    from collections.abc import Callable

    from .loop_spec import LoopSpec

#: What a callback takes and gives, unless it is said.
OF_CHUNKS = "void(int64, int64)"


def bytecode(code: CodeType) -> tuple[Any, ...]:
    """What `code` does, without its file and lines."""
    constants = (bytecode(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, tuple(constants)


def inlined(function: Callable[..., Any], found: list[Inlined]) -> list[Inlined]:
    """The functions that `function` calls and LLVM inlines, and those that these call; some call themselves."""
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        if isinstance(called, Inlined) and called not in found:
            found.append(called)
            if not isinstance(called, Intrinsic):
                inlined(called.py_func, found)
    return found


def _changed(source: Path) -> int:
    return source.stat().st_mtime_ns if source.exists() else 0


def _made_of(function: Callable[..., Any]) -> tuple[object, ...]:
    """What the machine code of a loop depends on, but for its types: as Numba's cache sees it, its own file, and what
    it inlines."""
    source = Path(function.__code__.co_filename)
    parts = [
        each.made_of if isinstance(each, Intrinsic) else bytecode(each.py_func.__code__)
        for each in inlined(function, [])
    ]
    sizes = Path(__file__).with_name("intrinsics.py")
    return function.__module__, function.__qualname__, _changed(source), _changed(sizes), parts


def _file(function: Callable[..., Any], of_types: object) -> tuple[Path, str]:
    """The object's file, beside the sources or where Numba is told to keep its own, and its name. Of a function that is
    in no file it is one that cannot be written."""
    name = object_code.name_of((_made_of(function), of_types))
    named, source = os.environ.get("NUMBA_CACHE_DIR"), Path(function.__code__.co_filename)
    folder = Path(named) / "tenfold" if named else source.parent / "__pycache__"
    if not source.exists():
        source, folder = Path("none"), Path(os.devnull)
    return object_code.path_of(folder, name, of=f"{source.stem}.{function.__name__}"), name


def file_of(spec: LoopSpec) -> tuple[Path, str]:
    """Where the object of a loop is, or will be, and what it is called."""
    types = spec.codes, spec.element.str, spec.index.str, spec.result, sorted(spec.fastmath)
    return _file(spec.function, OF_CHUNKS if spec.codes == CALLBACK else types)


def file_of_callback(function: Callable[..., Any], signature: str = OF_CHUNKS) -> tuple[Path, str]:
    """The same of a function that others call by its address."""
    return _file(function, signature)
