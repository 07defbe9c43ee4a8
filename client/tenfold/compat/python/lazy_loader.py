"""`tensorflow.python.util.lazy_loader`: a module that is imported at its first use."""

from __future__ import annotations

import importlib
import types
from typing import Any


class LazyLoader(types.ModuleType):
    """Stands for the module `name`; once imported, it takes this one's place under `local_name` in the globals."""

    def __init__(self, local_name: str, parent_module_globals: dict[str, Any], name: str, warning: Any = None) -> None:
        super().__init__(name)
        self.__dict__.update(_local_name=local_name, _globals=parent_module_globals)

    def __getattr__(self, name: str) -> Any:
        module = importlib.import_module(self.__name__)
        self.__dict__["_globals"][self.__dict__["_local_name"]] = module
        return getattr(module, name)
