"""LazyModule: the type of modules whose names are loaded at their first use, by a `__getattr__` of theirs.

A look at all names of such a module, by `vars`, `from … import *`, `inspect.getmembers` or `__dict__`, finds
all that `dir` lists, as in TensorFlow, whose modules are full when they are imported: they are loaded then. A module
becomes one by `make_lazy(__name__)`; namespaces.py and compat/as_tensorflow.py make modules of this type.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

_plain_dict = vars(ModuleType)["__dict__"].__get__


def loaded_names(module: ModuleType) -> dict[str, Any]:
    """The module's `__dict__` as it is now. Loads nothing."""
    names: dict[str, Any] = _plain_dict(module)
    return names


class LazyModule(ModuleType):
    """A module that fills itself when its `__dict__` is looked at; reading one attribute loads only that one."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The module's names. Loads those that `dir` lists; leaves out those whose packages are not installed."""
        names = loaded_names(self)
        # while a module is being imported its own classes may look here
        being_imported = getattr(names.get("__spec__"), "_initializing", False)
        if not names.get("_is_full") and not being_imported:
            names["_is_full"] = True
            for name in dir(self):
                if name not in names:
                    try:
                        value = getattr(self, name)
                    except (AttributeError, ImportError):
                        continue
                    names.setdefault(name, value)
        return names

    def __dir__(self) -> list[str]:
        """Loads nothing. Python's own would look at `__dict__` first."""
        names = loaded_names(self)
        listed: list[str] = names["__dir__"]() if "__dir__" in names else [*names]
        return listed


def make_lazy(name: str) -> None:
    """Makes the module of that name, which has `__getattr__` and `__dir__`, a LazyModule."""
    sys.modules[name].__class__ = LazyModule
