"""The distribution `tensorflow`, of which programs ask the version, where `import tensorflow` gives Tenfold.

as_tensorflow.py installs it. `importlib.metadata` and `pkg_resources` find it; where setuptools has no `pkg_resources`
any more, there is a small one with what programs ask of it. Its version says that DeepRec's names are there, by which
DeepRec's own programs decide whether they may use them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

from tenfold.versions import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

NAME = "tensorflow"
#: A local version, in the sense of Python's packages: that release, with DeepRec's features.
DISTRIBUTION_VERSION = f"{VERSION}+deeprec"


class _TensorFlow(importlib.metadata.Distribution):
    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {DISTRIBUTION_VERSION}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"{NAME} is answered by Tenfold, and has no file {path}")


class _Distributions(MetaPathFinder, Loader):
    """Finds the distribution, and stands before `pkg_resources`."""

    _is_looking = False

    def find_distributions(self, context: Any = None) -> Iterator[importlib.metadata.Distribution]:
        name = getattr(context, "name", None)
        if name is None or name.lower() == NAME:
            yield _TensorFlow()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "pkg_resources" or self._is_looking:
            return None
        self._is_looking = True
        try:
            real = importlib.util.find_spec(fullname)
        finally:
            self._is_looking = False
        if real is None or real.loader is None:
            return ModuleSpec(fullname, self)
        real.loader = _Adding(real.loader)
        return real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        from tenfold.compat.python import pkg_resources

        return pkg_resources

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: it was imported under its own name."""


class _Adding(Loader):
    """Loads setuptools' module, and adds the distribution to those that it knows."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._real.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._real.exec_module(module)
        found: Any = module
        if NAME not in found.working_set.by_key:
            found.working_set.add(found.Distribution(project_name=NAME, version=DISTRIBUTION_VERSION))


def install() -> None:
    """Makes later questions for the distribution find it. A second call does nothing."""
    if not any(isinstance(finder, _Distributions) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Distributions())
