"""Makes `import tensorflow as tf` import Tenfold, so that a program runs unchanged.

`tenfold run --as-tensorflow` installs it, and so may a program itself: `tenfold.compat.as_tensorflow.install()`.
Modules are mapped by name: `tensorflow.a.b` is `tenfold.a.b`; `tensorflow.compat.v1.…` and
`tensorflow.python.…` are looked up in the table below. What Tenfold lacks raises ModuleNotFoundError or AttributeError
with the name.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tenfold import versions
from tenfold.compat import old_numpy

if TYPE_CHECKING:
    from collections.abc import Sequence

#: TensorFlow modules whose functions are all public names of `tenfold`.
_OP_FAMILIES = (
    *("array", "clip", "control_flow", "data_flow", "embedding", "io", "linalg", "logging", "math", "parsing"),
    *("random", "script", "sparse", "state", "string"),
)
_TRAINING = (
    "basic_session_run_hooks",
    "input",
    "monitored_session",
    "queue_runner_impl",
    "saver",
    "server_lib",
    "session_run_hook",
    "sync_replicas_optimizer",
    "training",
)

#: TensorFlow modules whose functions are public names of `tf.data.experimental` and of `tf.contrib.data`.
_DATA = (
    *("batching", "cardinality", "counter", "enumerate_ops", "error_ops", "get_single_element", "grouping"),
    *("interleave_ops", "iterator_ops", "optimization_options", "parsing_ops", "prefetching_ops", "random_ops"),
    *("readers", "resampling", "scan_ops", "shuffle_ops", "stats_aggregator", "stats_ops", "stats_options"),
    *("take_while_ops", "threading_options", "unique", "writers"),
)
_CONTRIB_DATA = (*_DATA, "sliding")

#: Prefix of a module's name after "tensorflow" → Tenfold's module; the longest prefix counts, "" is tenfold.
HOMES = {
    "compat.v1": "tenfold",
    "contrib.framework.python": "tenfold.contrib.framework",
    "contrib.framework.python.ops": "tenfold.contrib.framework",
    "contrib.framework.python.ops.audio_ops": "tenfold.ops.generated_ops",
    "python.client": "tenfold.session",
    "python.client.timeline": "tenfold.profiler.timeline",
    "contrib.data.python.ops": "tenfold.contrib.data",
    **dict.fromkeys(
        (f"contrib.data.python.ops.{module}" for module in _CONTRIB_DATA), "tenfold.contrib.data"
    ),
    "python.data": "tenfold.data",
    "python.data.experimental.ops": "tenfold.data.experimental",
    **dict.fromkeys((f"python.data.experimental.ops.{module}" for module in _DATA), "tenfold.data.experimental"),
    "python.data.ops": "tenfold.data",
    "python.data.ops.dataset_ops": "tenfold.data",
    "python.data.ops.iterator_ops": "tenfold.data",
    "python.data.ops.optional_ops": "tenfold.data.optionals",
    "python.data.ops.readers": "tenfold.data.readers",
    "python.data.util": "tenfold.data",
    "python.framework": "tenfold_core",
    "python.framework.ops": "tenfold.graph",
    "python.framework.constant_op": "tenfold",
    "python.framework.graph_util": "tenfold.graph_util",
    "python.framework.graph_util_impl": "tenfold.graph_util",
    "python.ops": "tenfold.ops",
    **dict.fromkeys((f"python.ops.{family}_ops" for family in _OP_FAMILIES), "tenfold"),
    "python.ops.gen_audio_ops": "tenfold.ops.generated_ops",
    "python.ops.gen_image_ops": "tenfold.ops.generated_ops",
    "python.ops.gradients_impl": "tenfold",
    "python.ops.nn": "tenfold.nn",
    "python.ops.nn_ops": "tenfold.nn",
    "python.platform": "tenfold",
    "python.platform.googletest": "tenfold.test",
    "python.platform.test": "tenfold.test",
    "python.platform.tf_logging": "tenfold.logging",
    "python.summary": "tenfold.summary",
    "python.training": "tenfold.train",
    **dict.fromkeys((f"python.training.{module}" for module in _TRAINING), "tenfold.train"),
    "core.example": "tenfold_protos",
    "core.framework": "tenfold_protos",
    "core.protobuf": "tenfold_protos",
    "core.util": "tenfold_protos",
    "": "tenfold",
}

#: Modules that contain only other modules.
_HOLDERS = frozenset({"python", "core"})


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


class _Alias(ModuleType):
    """A module with the attributes of another object of Tenfold, which stays unchanged."""

    def __init__(self, name: str, target: Any) -> None:
        super().__init__(name, getattr(target, "__doc__", None))
        self.__path__: list[str] = []
        self.__dict__["_target"] = target

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self.__dict__["_target"], name)
        except AttributeError as error:
            raise AttributeError(f"module {self.__name__!r}, answered by Tenfold, has no attribute {name!r}") from error

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_target"])


class _Finder(MetaPathFinder, Loader):
    """Finds `tensorflow` and its submodules; leaves everything else to the other finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "tensorflow" and not fullname.startswith("tensorflow."):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _Alias(spec.name, _find(spec.name.partition(".")[2]))
        if spec.name == "tensorflow":
            # Programs compare it to decide what to call; Tenfold's own is tf.versions.tenfold.
            module.__dict__["__version__"] = versions.VERSION
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the module looks up each attribute at its first use."""


def _find(name: str) -> Any:
    """Tenfold's object for tensorflow.`name`. Raises ModuleNotFoundError."""
    if name in _HOLDERS:
        return ModuleType(f"tensorflow.{name}", "Holds other modules.")
    parts = name.split(".") if name else []
    for length in range(len(parts), -1, -1):
        home = HOMES.get(".".join(parts[:length]))
        if home is None:
            continue
        try:
            package, *rest = home.split(".")
            found: Any = importlib.import_module(package)
            for part in (*rest, *parts[length:]):
                found = _member(found, part)
        except (ImportError, AttributeError):
            break
        return found
    raise ModuleNotFoundError(f"No module named 'tensorflow.{name}': Tenfold answers for TensorFlow here, and has none")


def _member(module: Any, name: str) -> Any:
    """`module.name`: a submodule or an attribute, such as a namespace that is loaded at its first use."""
    try:
        return getattr(module, name)
    except AttributeError:
        return importlib.import_module(f"{module.__name__}.{name}")
