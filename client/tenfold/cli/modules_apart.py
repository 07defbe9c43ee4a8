"""Keeps the modules of a program's folder apart from those that Python, Tenfold and what it needs have under one name.

A program may have a `statistics.py` of its own: Python looks in its folder first for every importer, and keeps one
module for a name. So where the folder has a module named like one of Python's, or of a package that Tenfold imports,
`import` asks who imports: what lies in the folder gets the folder's, everything else the other. sys.modules has the
others', which is what compiled modules look at; the program's are in it while the program imports one of them. A folder
without such a name changes nothing. Used by child.py, before the program runs.
"""

from __future__ import annotations

import builtins
import importlib
import os
import sys
import threading
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

#: Packages, not of Python, that Tenfold imports once a program runs and that TensorFlow 1 does not.
PACKAGES = frozenset(
    (
        *("aiosqlite", "alembic", "annotated_types", "anyio", "asyncpg", "certifi", "click", "cloudpickle"),
        *("cryptography", "cuda", "cudnn", "cupy", "cupy_backends", "fastapi", "fsspec", "google_crc32c", "greenlet"),
        *("h11", "hpack", "httpcore", "httptools", "httpx", "idna", "kubernetes", "llvmlite", "mako", "ml_dtypes"),
        *("numba", "opentelemetry", "prometheus_client", "pyarrow", "pydantic", "pydantic_core", "ray", "re2"),
        *("rich", "simplejpeg", "sniffio", "sqlalchemy", "starlette", "threadpoolctl", "tqdm", "urllib3", "uvicorn"),
        *("uvloop", "websockets", "yaml"),
    )
)
_SUFFIXES = ("py", "pyc", "so")


def keep_apart(folder: str) -> frozenset[str]:
    """The names that the folder shares with Python or with packages of ours; from now on each side has its own."""
    shared = _names_in(folder) & (frozenset(sys.stdlib_module_names) | PACKAGES)
    shared -= frozenset(sys.builtin_module_names) | {"__main__"}
    if shared:
        _Apart(folder, shared).install()
    return shared


def _names_in(folder: str) -> frozenset[str]:
    found = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name, dot, rest = entry.name.partition(".")
                package = os.path.join(entry.path, "__init__.py")
                if rest.rpartition(".")[2] in _SUFFIXES if dot else os.path.isfile(package):
                    found.add(name)
    except OSError:
        pass  # a program whose folder cannot be read has other problems
    return frozenset(found)


class _Apart(MetaPathFinder):
    """The import of names that a folder shares with others."""

    def __init__(self, folder: str, names: frozenset[str]) -> None:
        self._folder, self._names = os.path.abspath(folder), names
        self._import, self._import_module = builtins.__import__, importlib.import_module
        #: Held by who looks at modules of the names, or exchanges them.
        self._lock = threading.RLock()
        #: Modules of the names, and below them, of the side that sys.modules has not: the program's, as a rule.
        self._hidden: dict[str, ModuleType] = {}
        #: The thread that has the program's in sys.modules; None as a rule.
        self._programs_thread: int | None = None

    def install(self) -> None:
        sys.meta_path.insert(0, self)
        builtins.__import__ = self._import_for
        importlib.import_module = self._import_module_for

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or fullname not in self._names:
            return None
        if self._programs_thread == threading.get_ident():
            return PathFinder.find_spec(fullname, [self._folder])
        found = PathFinder.find_spec(fullname, [each for each in sys.path if os.path.abspath(each) != self._folder])
        if found is None:
            # the next finder would look in the folder
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return found

    def _import_for(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        top = (str((globals or {}).get("__package__") or "") if level else name).partition(".")[0]
        with self._side(top, globals):
            return self._import(name, globals, locals, fromlist, level)

    def _import_module_for(self, name: str, package: str | None = None) -> ModuleType:
        top = ((package or "") if name.startswith(".") else name).partition(".")[0]
        with self._side(top, sys._getframe(1).f_globals):
            return self._import_module(name, package)

    @contextmanager
    def _side(self, top: str, importer: Mapping[str, Any] | None) -> Iterator[None]:
        """sys.modules has the modules of who imports something below `top`, as long as it does."""
        here = self._programs_thread == threading.get_ident()
        if top not in self._names and not here:
            yield
            return
        with self._lock:
            programs = top in self._names and self._is_programs(importer)
            if programs == here:
                yield
                return
            self._exchange(programs)
            try:
                yield
            finally:
                self._exchange(not programs)

    def _exchange(self, programs: bool) -> None:
        found = [name for name in list(sys.modules) if name.partition(".")[0] in self._names]
        taken_out = {name: sys.modules.pop(name) for name in found}
        sys.modules.update(self._hidden)
        self._hidden = taken_out
        self._programs_thread = threading.get_ident() if programs else None

    def _is_programs(self, importer: Mapping[str, Any] | None) -> bool:
        """Whether the module with these globals is one of the program's folder, or the program."""
        name = str((importer or {}).get("__name__", "__main__"))
        if name == "__main__" or name.partition(".")[0].startswith("tenfold"):
            return name == "__main__"
        file = (importer or {}).get("__file__")
        if not isinstance(file, str) or file.startswith(_LIBRARY):
            return False
        below = os.path.relpath(os.path.abspath(file), self._folder).split(os.sep)
        return below[0] != os.pardir and "site-packages" not in below


#: Where Python's own modules lie.
_LIBRARY = os.path.dirname(os.__file__) + os.sep
