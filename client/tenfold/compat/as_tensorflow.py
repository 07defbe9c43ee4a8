"""Makes `import tensorflow as tf` import Tenfold, so that a program runs unchanged.

`tenfold run --as-tensorflow` installs it, and so may a program itself: `tenfold.compat.as_tensorflow.install()`.
Modules are mapped by name: `tensorflow.a.b` is `tenfold.a.b`, and tensorflow_paths.py has the table of the others, such
as `tensorflow.python.…`. What Tenfold lacks raises ModuleNotFoundError or AttributeError with the name; what is left
out of `tf.contrib`, or a layer of Keras, is imported, and tells the reason once it is used (left_out.py).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tenfold import left_out, versions
from tenfold.compat import distributions, old_numpy, old_python
from tenfold.compat.left_out import LAYERS_OF_KERAS, LeftOut
from tenfold.compat.tensorflow_paths import HOLDERS, HOMES, homes_of
from tenfold.lazy_module import LazyModule, loaded_names

if TYPE_CHECKING:
    from collections.abc import Sequence


def install() -> None:
    """Makes every later `import tensorflow…` of this process import Tenfold. A second call does nothing.

    Raises ImportError if TensorFlow itself was imported already.
    """
    present = sys.modules.get("tensorflow")
    if isinstance(present, _Alias):
        return
    if present is not None:
        raise ImportError(f"TensorFlow itself was imported already, from {present.__file__}")
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        old_numpy.restore()
        old_python.restore()
        distributions.install()


class _Alias(LazyModule):
    """A module with the attributes of other objects of Tenfold, which stay unchanged; the first that has one counts."""

    def __init__(self, name: str, targets: Sequence[Any]) -> None:
        super().__init__(name, getattr(targets[0], "__doc__", None) if targets else "Holds other modules.")
        self.__path__: list[str] = []
        self._targets = targets

    def __getattr__(self, name: str) -> Any:
        if name in ("_targets", "__all__"):  # TensorFlow's modules have no list of what `import *` takes
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        path = self.__name__.partition(".")[2]
        below = f"{path}.{name}" if path else name
        if below in HOMES or below in HOLDERS:
            return importlib.import_module(f"tensorflow.{below}")
        told: AttributeError | None = None
        for target in self._targets:
            try:
                return getattr(target, name)
            except AttributeError as error:
                told = told or error
        if not name.startswith("__") and path.startswith("python"):
            import tenfold

            # what is private in TensorFlow's module may be the public name of a private module here
            for place, spelt in ((tenfold, name), *((target, name[1:]) for target in self._targets)):
                if (spelt == name or name.startswith("_")) and hasattr(place, spelt):
                    return getattr(place, spelt)
        if name in LAYERS_OF_KERAS and path.endswith("keras.layers"):
            return LeftOut(below, f"tf.{below} is not part of Tenfold: {left_out.why('keras.layers')}")
        hint = f": {told}" if told is not None and "has no attribute" not in str(told) else left_out.hint(below)
        raise AttributeError(
            f"module {self.__name__!r}, answered by Tenfold, has no attribute {name!r}{hint}"
        ) from told

    def __dir__(self) -> list[str]:
        return sorted({name for target in self._targets for name in _names_of(target)})


def _names_of(target: Any) -> Sequence[str]:
    """The names that an object of Tenfold offers: not what a module's file imports for its own use."""
    held = loaded_names(target) if isinstance(target, ModuleType) else {}
    listed: Sequence[str] = held.get("__all__", ())
    if listed and not isinstance(target, LazyModule):
        return listed
    return [name for name in dir(target) if name in listed or not _is_imported(held.get(name), target)]


def _is_imported(value: Any, into: Any) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if not isinstance(home, str) or home.partition(".")[0] in sys.stdlib_module_names:
        return isinstance(home, str)
    return isinstance(value, ModuleType) and not isinstance(into, LazyModule) and not home.startswith(into.__name__)


class _Finder(MetaPathFinder, Loader):
    """Finds `tensorflow`, `tensorflow_estimator` and their submodules; leaves everything else to the other finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # the estimator is a package of its own since TensorFlow 1.14; its paths go on as those of TensorFlow did
        if fullname.partition(".")[0] not in ("tensorflow", "tensorflow_estimator"):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        path = spec.name.partition(".")[2]
        try:
            module = _Alias(spec.name, _find(path))
        except ModuleNotFoundError:
            if path.startswith("contrib.") and (why := _why_left_out(path)):
                return LeftOut(spec.name, why)
            raise
        if spec.name == "tensorflow":
            # Programs compare it to decide what to call; Tenfold's own is tf.versions.tenfold.
            module.__dict__["__version__"] = versions.VERSION
            # Programs call urllib.request after `import urllib` alone, since TensorFlow has imported the rest.
            for each in ("urllib.request", "multiprocessing.pool"):
                importlib.import_module(each)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the module looks up each attribute at its first use."""


def _find(path: str) -> Sequence[Any]:
    """Tenfold's objects for tensorflow.`path`. Raises ModuleNotFoundError."""
    if path in HOLDERS:
        return ()
    held = {home: module for home in homes_of(path) if (module := _module(home)) is not None}
    modules = [module for module in held.values() if not _is_no_module(module)]
    # tensorflow.contrib.rnn.GRUCell is a class, though the module that has it is asked too for the names of a path
    if modules and not _is_no_module(held.get(f"tenfold.{path}")):
        return modules
    parts = path.split(".")
    for length in range(len(parts) - 1, -1, -1):
        homes = HOMES.get(".".join(parts[:length]))
        if homes is None:
            continue
        found = [member for home in homes.split() if (member := _member(_module(home), parts[length:])) is not None]
        # `pydoc.locate("tensorflow.identity")` imports before it looks for an attribute: a function is no module
        if found and not all(map(_is_no_module, found)):
            return found
        break
    why = _why_left_out(path) or left_out.why(path) or "Tenfold answers for TensorFlow here, and has none"
    raise ModuleNotFoundError(f"No module named 'tensorflow.{path}': {why}", name=f"tensorflow.{path}")


def _why_left_out(path: str) -> str:
    """What Tenfold says of tensorflow.`path`, or of what has it, where that is left out for a reason; else ""."""
    found: Any = importlib.import_module("tenfold")
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except (AttributeError, ImportError) as error:
            return str(error) if "is not part of Tenfold: " in str(error) else ""
    return ""


def _is_no_module(found: Any) -> bool:
    return inspect.isroutine(found) or isinstance(found, type)


def _module(name: str) -> Any:
    """The module of that name, or the namespace, such as tenfold.nn; None if there is none."""
    try:
        # first: tenfold.gradients is a module, and a function of tenfold
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name and not name.startswith(f"{error.name}."):
            raise  # it is there, and needs a package that is not
    package, *rest = name.split(".")
    return _member(importlib.import_module(package), rest)


def _member(found: Any, names: Sequence[str]) -> Any:
    """`found.a.b`, by attributes, such as a namespace that is loaded at its first use, or submodules; None without."""
    for name in names:
        if found is None:
            return None
        try:
            found = getattr(found, name)
            continue
        except AttributeError:
            module = getattr(found, "__name__", "")
        full = f"{module}.{name}"
        try:
            found = importlib.import_module(full)
        except ModuleNotFoundError as error:
            if error.name != full and not full.startswith(f"{error.name}."):
                raise  # it is there, and needs a package that is not
            return None
    return found
