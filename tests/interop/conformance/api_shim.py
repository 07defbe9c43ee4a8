"""Answers the `tensorflow.python.…` modules that TensorFlow's test files import with Tenfold. Used by in_tenfold.py.

A module's names are looked up in api_extras.py (what only tests ask for), then in the modules of HOMES, then in the
public tables of tenfold, then where users' imports of the module lead. A module that Tenfold has no part of is answered
by one whose names raise when they are used, so that the other tests of a file run. What users import is answered by
client/tenfold/compat/as_tensorflow.py instead.
"""

from __future__ import annotations

import importlib
import re
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import api_contrib
import api_contrib_files
import api_extras
import api_stand_ins
import api_test_util

from tenfold.compat import as_tensorflow, tensorflow_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HOOKS = (
    "tenfold.train.hooks tenfold.train.saving_hooks tenfold.train.hook_timer tenfold.train.session_run_hook "
    "tenfold.train.training_util"
)
_SESSIONS = "tenfold.train.monitored_session tenfold.train.wrapped_sessions tenfold.train.session_creators"

_IMAGE = (
    "tenfold.ops.image tenfold.ops.image_boxes tenfold.ops.image_crop tenfold.ops.image_files tenfold.ops.image_flip "
    "tenfold.ops.image_quality tenfold.ops.image_resize tenfold.ops.generated_ops tenfold.ops.array_blocks "
    "tenfold.ops.random"
)
_NN = (
    "tenfold.ops.nn tenfold.ops.nn_conv tenfold.ops.nn_losses tenfold.ops.nn_norm tenfold.ops.nn_pool "
    "tenfold.ops.sampled_losses tenfold.ops.candidate_sampling tenfold.ops.embedding"
)

#: Modules of tensorflow_estimator, whose names are looked up as those of tensorflow itself.
_ESTIMATOR = {
    "python.estimator.estimator": (
        "tenfold.estimator.estimator tenfold.estimator.warm_start_settings tenfold.estimator.eval_summaries "
        "tenfold.estimator.checks"
    ),
    "python.estimator.estimator_lib": "tenfold.estimator",
    "python.estimator.exporter": "tenfold.estimator.exporter",
    "python.estimator.export.export": "tenfold.estimator.export.export tenfold.estimator.export.signatures",
    "python.estimator.export.export_lib": (
        "tenfold.estimator.export.export tenfold.estimator.export.export_output tenfold.estimator.export.signatures"
    ),
    "python.estimator.export.export_output": "tenfold.estimator.export.export_output",
    "python.estimator.canned.linear": "tenfold.estimator.canned.linear tenfold.estimator.canned.sdca",
    **dict.fromkeys(
        (
            f"python.estimator.canned.linear_optimizer.python.utils.{name}"
            for name in ("sdca_ops", "sharded_mutable_dense_hashtable")
        ),
        "tenfold.estimator.canned.sdca_model tenfold.estimator.canned.sdca_table",
    ),
    **dict.fromkeys(
        (
            f"python.estimator.head.{name}"
            for name in (
                *("base_head", "binary_class_head", "head_utils", "multi_class_head", "multi_head"),
                *("multi_label_head", "regression_head"),
            )
        ),
        "tenfold.estimator.canned.public_heads tenfold.estimator.canned.multi_head tenfold.estimator.canned.base_head "
        "tenfold.estimator.canned.head_checks",
    ),
    "python.estimator.hooks.hooks": "tenfold.estimator.hooks",
    "python.estimator.inputs.numpy_io": "tenfold.estimator.inputs.numpy_io",
    "python.estimator.inputs.pandas_io": "tenfold.estimator.inputs.pandas_io",
    "python.estimator.inputs.queues.feeding_functions": "tenfold.estimator.inputs.feeding_functions",
    "python.estimator.inputs.queues.feeding_queue_runner": "tenfold.estimator.inputs.feeding_queue_runner",
    "python.estimator.canned.parsing_utils": "tenfold.estimator.parsing_utils",
    "python.estimator.run_config": "tenfold.estimator.run_config",
    "python.estimator.training": "tenfold.estimator.training tenfold.estimator.evaluator tenfold.estimator.train_specs",
}

_COLUMNS = (
    "tenfold.feature_column tenfold.feature_column.base tenfold.feature_column.categorical "
    "tenfold.feature_column.crossed tenfold.feature_column.embedding tenfold.feature_column.model "
    "tenfold.feature_column.numeric tenfold.feature_column.sequence"
)
_OLD_COLUMNS = (
    "tenfold.contrib.feature_columns tenfold.contrib.feature_columns.sparse tenfold.contrib.feature_columns.dense "
    "tenfold.contrib.feature_columns.crossed "
    "tenfold.contrib.feature_columns.inputs"
)
_LEARN = "contrib.learn.python.learn"

#: Of canned estimators, feature columns and contrib.learn.
_MODELS = {
    "contrib.feature_column.python.feature_column.sequence_feature_column": "tenfold.feature_column.sequence",
    "contrib.layers.python.layers.feature_column": _OLD_COLUMNS,
    "contrib.layers.python.layers.feature_column_ops": _OLD_COLUMNS,
    "contrib.learn": "tenfold.contrib.learn",
    **dict.fromkeys(
        (
            "contrib.linear_optimizer.python.sdca_optimizer",
            *(
                f"contrib.linear_optimizer.python.ops.{name}"
                for name in ("sdca_ops", "sparse_feature_column", "sharded_mutable_dense_hashtable")
            ),
        ),
        "tenfold.contrib.linear_optimizer",
    ),
    "contrib.estimator.python.estimator.head": "tenfold.contrib.estimator.head",
    "contrib.estimator.python.estimator.multi_head": "tenfold.contrib.estimator.head",
    "contrib.estimator.python.estimator.logit_fns": "tenfold.contrib.estimator",
    f"{_LEARN}.estimators._sklearn": "tenfold.contrib.learn.estimator",
    f"{_LEARN}.estimators.estimator": (
        "tenfold.contrib.learn.estimator tenfold.contrib.learn.sk_compat tenfold.estimator.estimator"
    ),
    f"{_LEARN}.estimators.constants": "tenfold.contrib.learn.keys",
    f"{_LEARN}.estimators.metric_key": "tenfold.contrib.learn.keys",
    f"{_LEARN}.estimators.prediction_key": "tenfold.contrib.learn.keys",
    f"{_LEARN}.evaluable": "tenfold.contrib.learn.interfaces",
    f"{_LEARN}.learn_io": "tenfold.contrib.learn.io tenfold.contrib.learn",
    f"{_LEARN}.learn_io.pandas_io": "tenfold.contrib.learn.data_feeder tenfold.contrib.learn.io",
    f"{_LEARN}.monitors": "tenfold.contrib.learn.monitors tenfold.contrib.learn.validation_monitor",
    f"{_LEARN}.ops": "tenfold.contrib.learn.ops",
    f"{_LEARN}.trainable": "tenfold.contrib.learn.interfaces",
    "python.feature_column.feature_column": _COLUMNS,
    "python.feature_column.feature_column_lib": _COLUMNS,
    "python.feature_column.feature_column_v2": _COLUMNS,
    "python.feature_column.sequence_feature_column": "tenfold.feature_column.sequence",
}

#: Module behind "tensorflow." → the modules of Tenfold that have its names; "" alone: only the fallbacks.
HOMES = {
    **api_contrib.OF_CONTRIB,
    "contrib.framework.python.framework.checkpoint_utils": "tenfold.contrib.framework",
    "contrib.framework.python.ops.variables": "tenfold.contrib.framework",
    "python.client.session": (
        "tenfold.session.session tenfold.session.base_session tenfold.session.devices tenfold.session.composite_values"
    ),
    "python.client.timeline": "tenfold.profiler.timeline",
    "contrib.data.python.ops.batching": "tenfold.contrib.data",
    "contrib.data.python.ops.readers": "tenfold.contrib.data",
    "contrib.data.python.ops.sliding": "tenfold.contrib.data",
    "contrib.lookup": "tenfold.contrib.lookup",
    "python.data.ops.dataset_ops": "tenfold.data.dataset tenfold.data.node tenfold.data.options",
    "python.data.ops.iterator_ops": "tenfold.data.iterators",
    "python.data.ops.multi_device_iterator_ops": "tenfold.compat.python.multi_device_iterator_ops",
    "python.data.ops.optional_ops": "tenfold.data.optionals",
    "python.data.ops.readers": "tenfold.data.readers",
    "python.data.util.nest": "tenfold.data.nest",
    "python.data.util.options": "tenfold.data.options",
    "python.data.util.structure": "tenfold.data.structure",
    **dict.fromkeys(
        (f"python.data.experimental.ops.{module}" for module in tensorflow_paths._DATA), "tenfold.data.experimental"
    ),
    "python.data.experimental.ops.threadpool": "tenfold.compat.python.threadpool",
    "python.distribute.cluster_resolver": "tenfold.distribute.cluster_resolver",
    "python.framework.constant_op": "tenfold.ops.array",
    "python.framework.device": "tenfold_core.device",
    "python.framework.dtypes": "tenfold_core.dtypes",
    "python.framework.errors": "tenfold_core.errors",
    "python.framework.errors_impl": "tenfold_core.errors",
    "python.framework.graph_util": "tenfold.graph_util",
    "python.framework.graph_util_impl": "tenfold.graph_util",
    "python.framework.graph_io": "tenfold.train.write_graph",
    "python.framework.importer": "tenfold.graph.importer",
    "python.framework.meta_graph": "tenfold.train.meta_graph",
    "python.framework.ops": (
        "tenfold.graph tenfold.graph.graph tenfold.graph.default_stack tenfold.graph.collections "
        "tenfold.graph.indexed_slices"
    ),
    "python.framework.function": "tenfold.compat.python.function",
    "python.framework.random_seed": "tenfold.ops.random_seed",
    "python.framework.sparse_tensor": "tenfold.graph.sparse_tensor",
    "python.framework.tensor_shape": "tenfold_core.tensor_shape",
    "python.framework.tensor_util": "tenfold_core.tensor_util tenfold.graph.constant_value",
    "python.framework.versions": "tenfold.graph.graph",
    "python.lib.io.file_io": "tenfold.gfile",
    "python.lib.io.python_io": "tenfold.python_io",
    "python.lib.io.tf_record": "tenfold.python_io",
    "python.ops.array_ops": (
        "tenfold.ops.array tenfold.ops.slicing tenfold.ops.array_batches tenfold.ops.array_blocks "
        "tenfold.ops.array_diag tenfold.ops.array_repeat tenfold.ops.array_sort"
    ),
    "python.ops.clip_ops": "tenfold.ops.clip",
    "python.ops.control_flow_ops": (
        "tenfold.ops.control_flow tenfold.ops.control_flow_cond tenfold.ops.control_flow_while "
        "tenfold.ops.while_context tenfold.ops.control_flow_primitives"
    ),
    "python.ops.data_flow_ops": "tenfold.ops.queues tenfold.ops.accumulators",
    "python.ops.embedding_ops": "tenfold.ops.embedding",
    "python.ops.functional_ops": "tenfold.ops.functional",
    "python.ops.gradient_checker": "tenfold.test.gradient_checker",
    "python.ops.gradients": "tenfold.gradients",
    "python.ops.gradients_impl": "tenfold.gradients tenfold.gradients.hessians",
    "python.ops.gradients_util": "tenfold.gradients",
    "contrib.framework.python.ops.audio_ops": "tenfold.ops.generated_ops",
    "python.ops.gen_audio_ops": "tenfold.ops.generated_ops",
    "python.ops.gen_image_ops": "tenfold.ops.generated_ops",
    "python.ops.image_grad": "tenfold.gradients.image",
    "python.ops.image_ops": _IMAGE,
    "python.ops.image_ops_impl": _IMAGE,
    "python.ops.init_ops": "tenfold.ops.init_ops",
    "python.ops.io_ops": "tenfold.ops.io tenfold.ops.readers",
    "python.ops.linalg_ops": "tenfold.ops.linalg",
    "python.ops.lookup_ops": "tenfold.ops.lookup",
    "python.ops.losses.losses": "tenfold.losses",
    "python.ops.map_fn": "tenfold.ops.functional",
    "python.ops.math_ops": (
        "tenfold.ops.math tenfold.ops.confusion_matrix tenfold.ops.linalg tenfold.ops.math_complex "
        "tenfold.ops.math_histogram tenfold.ops.math_segments tenfold.ops.math_special"
    ),
    "python.ops.nn_ops": _NN,
    "python.ops.parsing_ops": "tenfold.ops.io",
    "python.ops.partitioned_variables": "tenfold.ops.partitioned_variables",
    "python.ops.random_ops": "tenfold.ops.random",
    "python.ops.resource_variable_ops": "tenfold.ops.resource_variables",
    "python.ops.script_ops": "tenfold.ops.script_ops",
    **dict.fromkeys(
        (
            f"python.ops.signal.{family}_ops"
            for family in ("dct", "fft", "mel", "mfcc", "reconstruction", "shape", "spectral", "util", "window")
        ),
        "tenfold.ops.spectral_frames tenfold.ops.spectral_scales tenfold.ops.spectral",
    ),
    "python.ops.session_ops": "tenfold.session.tensor_handles",
    "python.ops.sparse_ops": "tenfold.ops.sparse tenfold.ops.sparse_math",
    "python.ops.state_ops": "tenfold.ops.state_ops",
    "python.ops.summary_ops_v2": "tenfold.summary.task_writers tenfold.summary.writer_ops",
    "python.ops.tensor_array_ops": "tenfold.ops.tensor_array",
    "python.ops.variable_scope": "tenfold.ops.variable_scope tenfold.ops.variable_store",
    "python.ops.variables": (
        "tenfold.ops.variables tenfold.ops.variable_lists tenfold.ops.partitioned_variable "
        "tenfold.compat.python.variables"
    ),
    "python.platform.benchmark": "tenfold.test.benchmark",
    "python.platform.gfile": "tenfold.gfile",
    "python.platform.tf_logging": "tenfold.logging",
    "python.pywrap_tensorflow": "tenfold.train.checkpoint_utils",
    "python.summary.plugin_asset": "tenfold.summary.plugin_asset",
    "python.summary.summary": "tenfold.summary",
    "python.summary.summary_iterator": "tenfold.summary.summary_iterator",
    "python.summary.writer.writer": "tenfold.summary.file_writer tenfold.summary.plugin_asset",
    "python.summary.writer.writer_cache": "tenfold.summary.file_writer",
    "python.training.basic_loops": "tenfold.train.basic_loops",
    "python.training.basic_session_run_hooks": _HOOKS,
    "python.training.checkpoint_management": "tenfold.train.checkpoint_management",
    "python.training.checkpoint_utils": "tenfold.train.checkpoint_utils",
    "python.training.device_setter": "tenfold.train.device_setter",
    "python.training.input": "tenfold.train.input tenfold.train.batching",
    "python.training.learning_rate_decay": "tenfold.train.learning_rate_decay",
    "python.training.monitored_session": _SESSIONS,
    "python.training.queue_runner_impl": "tenfold.train.queue_runner",
    "python.training.saver": "tenfold.train.saver tenfold.train.checkpoint_management tenfold.train.meta_graph",
    "python.training.server_lib": "tenfold.train.server_lib tenfold_core.cluster_spec",
    "python.training.session_manager": "tenfold.train.session_manager",
    "python.training.slot_creator": "tenfold.train.slot_creator",
    "python.training.supervisor": "tenfold.train.supervisor tenfold.train.supervisor_services",
    "python.training.sync_replicas_optimizer": "tenfold.train.sync_replicas",
    "python.training.training": "tenfold.train",
    "python.training.training_util": "tenfold.train.training_util",
    "python.layers.layers": "tenfold.layers",
    "python.ops.metrics": "tenfold.metrics",
    "python.training.evaluation": "tenfold.train.evaluation",
    "python.util.function_utils": "tenfold.estimator.util",
    **_ESTIMATOR,
    **_MODELS,
    "python.training.warm_starting_util": "tenfold.train.warm_starting",
    "python.util.compat": "tenfold.compat",
    "python.util.nest": "tenfold.nest",
}

#: Proto file of 1.15 → files that have some of its messages since.
_MOVED = {"config_pb2": ("rpc_options_pb2",)}

#: Where any public name is looked up at last.
_FALLBACKS = ("tenfold", "tenfold.train", *_NN.split())

#: Packages that a test file imports by name; their other submodules are found by the rules of `_Finder`.
_PACKAGES = re.compile(
    r"(python(\.\w+)?|core(\.\w+)*|contrib(\.\w+)*"
    r"|python\.data\.(ops|util|kernel_tests|experimental(\.(ops|kernel_tests(\.\w+)?))?)"
    r"|python\.(summary\.writer|lib\.io|estimator\.canned(\.v1)?)"
    r"|python\.ops\.(losses|ragged|distributions|signal)|python\.keras\.utils"
    r"|python\.estimator\.(canned\.linear_optimizer(\.python(\.utils)?)?|export|head|hooks|inputs\.queues))$"
)


#: The folder of the test file, which may import what lies beside it.
beside: str | None = None


def install(folder: str) -> None:
    """Makes `import tensorflow.…`, in this process, an import of what stands for it here, for a file in `folder`."""
    global beside
    beside = folder
    from tenfold.contrib.learn.datasets import base

    base.FOLDER = folder  # small data sets lie in TensorFlow's repository
    for name, module in api_stand_ins.stand_ins().items():
        sys.modules.setdefault(name, module)
    sys.meta_path.insert(0, _Finder())
    api_extras.give_private_names()
    api_extras.let_clocks_be_turned()


class _Answer(ModuleType):
    """A module whose names are those of several others; what a test patches is patched where it lives."""

    def __init__(self, name: str, homes: Sequence[str]) -> None:
        super().__init__(name)
        self.__dict__["_homes"] = homes
        self.__dict__["_patched"] = {}

    def _sources(self) -> Iterator[Any]:
        short = self.__name__.partition(".")[2]
        if not self.__dict__["_homes"] and api_extras.names_of(short) is None and _PACKAGES.match(short):
            return
        yield api_extras.names_of(short)
        for home in self.__dict__["_homes"]:
            yield importlib.import_module(home)
        generated = short.startswith("python.ops.gen_") or short == "python.training.training_ops"
        yield _GeneratedOps if generated else None
        for home in _FALLBACKS:
            yield importlib.import_module(home)
        for home in tensorflow_paths.HOMES.get(short, "").split():
            yield as_tensorflow._module(home)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return api_extras.names_of(self.__name__.partition(".")[2]).__all__
        if name == "__path__" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        if f"{self.__name__.partition('.')[2]}.{name}" in HOMES:
            # A module there may have the name of a function here.
            return importlib.import_module(f"{self.__name__}.{name}")
        # What is private there is often the public name of a private module here.
        for spelt in dict.fromkeys((name, name.lstrip("_"))):
            for source in self._sources():
                try:
                    found = getattr(source, spelt)
                except AttributeError:
                    continue
                if isinstance(found, ModuleType) and self.__name__.startswith("tensorflow.contrib."):
                    # One of several that answer for it.
                    return importlib.import_module(f"{self.__name__}.{name}")
                return found
        if _PACKAGES.match(self.__name__.partition(".")[2]):
            return importlib.import_module(f"{self.__name__}.{name}")
        return Absent(f"{self.__name__}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}":
            # The import of a submodule, which may have the name of a function here.
            self.__dict__[name] = value
            return
        home = next((source for source in self._sources() if hasattr(source, name)), None)
        if home is None or name.startswith("__"):
            self.__dict__[name] = value
            return
        self.__dict__["_patched"].setdefault(name, (home, getattr(home, name)))
        setattr(self.__dict__["_patched"][name][0], name, value)

    def __call__(self, *args: Any, **named: Any) -> Any:
        # Taken for a module, as nothing here has the name.
        raise NotImplementedError(f"Tenfold has no {self.__name__}")

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__["_patched"]:
            setattr(self.__dict__["_patched"][name][0], name, self.__dict__["_patched"][name][1])
        else:
            del self.__dict__[name]


class Absent:
    """A name of TensorFlow's that Tenfold does not have: any use raises. As a base class it is nothing."""

    def __init__(self, name: str) -> None:
        self._absent = name

    def _refuse(self) -> NotImplementedError:
        return NotImplementedError(f"Tenfold has no {self._absent}")

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise self._refuse()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._absent}.{name}")

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __enter__(self) -> Any:
        raise self._refuse()

    def __exit__(self, *args: Any) -> None:
        raise self._refuse()


class _GeneratedOps:
    """`gen_…_ops`: an op's function under its name in lower case."""

    def __getattr__(self, name: str) -> Any:
        from tenfold.ops.generated_ops import function_of
        from tenfold_core import opdefs

        plain = name.lstrip("_").replace("_", "")
        for op_type in opdefs.names():
            if op_type.lower() == plain:
                return function_of(name, op_type)
        raise AttributeError(name)


_GeneratedOps = _GeneratedOps()  # type: ignore[assignment,misc]


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in ("tensorflow", "tensorflow_estimator"):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        short = spec.name.partition(".")[2]
        last = short.rpartition(".")[2]
        if last.endswith("_pb2"):
            return _protos(spec.name, last)
        if beside is not None and Path(beside, f"{last}.py").exists():
            return importlib.import_module(last)
        if last in ("test_util", "test", "googletest") and short.startswith("python."):
            return _Also(spec.name, api_test_util)
        homes = HOMES.get(short)
        if homes is None:
            homes = api_contrib_files.homes_of(short)
        if homes is None and short.startswith("python.training."):
            homes = f"tenfold.train.{last}"
        if homes is None and short.startswith("python.estimator.") and not _PACKAGES.match(short):
            homes = f"tenfold.estimator.{short.removeprefix('python.estimator.')}"
        if homes is None and short.startswith(f"{_LEARN}.") and last != "estimators":
            # Folders of estimators and of inputs are one package here.
            tail = re.sub(r"^(estimators|learn_io)\.", "", short.removeprefix(f"{_LEARN}."))
            homes = f"tenfold.contrib.learn.{tail}"
        if homes is None and short.startswith("python.saved_model."):
            homes = "tenfold.saved_model" if last == "saved_model" else f"tenfold.saved_model.{last}"
            homes = homes if _exists(homes) else homes.removesuffix("_impl")
        if homes is None or not _exists(homes.split()[0]):
            return _Answer(spec.name, ())
        return _Answer(spec.name, [home for home in homes.split() if _exists(home)])

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the module's attributes are looked up when they are asked for."""


class _Also(_Answer):
    """api_test_util under another name."""

    def __init__(self, name: str, module: ModuleType) -> None:
        super().__init__(name, (module.__name__,))


def _exists(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError:
        return False
    return True


def _protos(fullname: str, last: str) -> ModuleType:
    """The messages of one file; some were in another file when 1.15 was new."""
    homes = [f"tenfold_protos.{name}" for name in (last, *_MOVED.get(last, ()))]
    return _Answer(fullname, [home for home in homes if _exists(home)])
