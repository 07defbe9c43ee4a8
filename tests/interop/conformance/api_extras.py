"""Names that only TensorFlow's test files ask for: other spellings, switches of modes, helpers of its contrib.testing.

One class per module, in the table at the end; api_shim.py looks them up after the modules of Tenfold themselves.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import importlib
import inspect
import itertools
import os
import time
import unittest
from types import SimpleNamespace
from typing import Any

import api_data
import api_fake_writer
import api_rnn
import numpy as np

import tenfold as tf
from tenfold.graph.indexed_slices import IndexedSlicesValue
from tenfold.ops import raw_ops
from tenfold.train import saveable
from tenfold_core import saved_model


class _Context:
    """tensorflow.python.eager.context: everything is in graph mode."""

    @staticmethod
    def executing_eagerly() -> bool:
        return False

    @staticmethod
    def in_eager_execution() -> bool:
        return False

    @staticmethod
    def graph_mode() -> Any:
        return contextlib.nullcontext()

    @staticmethod
    def eager_mode() -> Any:
        raise unittest.SkipTest("runs eagerly")

    @staticmethod
    def num_gpus() -> int:
        return 0

    @staticmethod
    def list_devices() -> list[str]:
        return []


class _Ops:
    """Of tensorflow.python.framework.ops."""

    @staticmethod
    def RegisterShape(op_type: str) -> Any:
        return lambda function: function

    class EagerTensor:
        """No value is one."""

    @staticmethod
    def executing_eagerly_outside_functions() -> bool:
        return False

    @staticmethod
    def get_name_scope() -> str:
        return tf.get_default_graph().get_name_scope()

    @staticmethod
    def init_scope() -> Any:
        return tf.control_dependencies(None)

    @staticmethod
    def enable_eager_execution() -> None:
        raise unittest.SkipTest("runs eagerly")

    @staticmethod
    def get_all_collection_keys() -> list[str]:
        return tf.get_default_graph().get_all_collection_keys()

    uid = functools.partial(next, itertools.count())


class _EventFiles:
    """Of contrib.testing's util_test."""

    @staticmethod
    def latest_events(base_dir: str) -> Any:
        from tenfold.summary.summary_iterator import summary_iterator

        files = sorted(glob.glob(os.path.join(base_dir, "events.*")))
        return list(summary_iterator(files[-1])) if files else []

    @staticmethod
    def latest_summaries(base_dir: str) -> list[Any]:
        return [event for event in _EventFiles.latest_events(base_dir) if event.HasField("summary")]

    @staticmethod
    def simple_values_from_events(events: Any, tags: Any) -> dict[str, float]:
        values = [(event.step, value) for event in events if event.HasField("summary") for value in event.summary.value]
        newest = sorted(values, key=lambda each: each[0])
        return {value.tag: value.simple_value for _, value in newest if value.tag in tags}


class _ControlFlowUtil:
    ENABLE_CONTROL_FLOW_V2 = False
    EnableControlFlowV2 = staticmethod(lambda graph: False)


class _TensorSpec:
    @staticmethod
    def MakeNdarray(proto: Any) -> Any:
        return tf.make_ndarray(proto)

    @staticmethod
    def is_tensor(value: Any) -> bool:
        return isinstance(value, (tf.Tensor, tf.Variable, tf.SparseTensor))


class _Constant:
    @staticmethod
    def constant_v1(*args: Any, **named: Any) -> Any:
        return tf.constant(*args, **named)


class _Variables:
    @property
    def VariableV1(self) -> Any:
        return tf.Variable

    @property
    def RefVariable(self) -> Any:
        from tenfold.ops.reference_variables import RefVariable

        return RefVariable


class _Wrapped:
    """Of tensorflow.python.pywrap_tensorflow."""

    @staticmethod
    def TF_bfloat16_type() -> Any:
        return tf.bfloat16.as_numpy_dtype


class _LoggingOps:
    print_v2 = staticmethod(tf.print)

    @staticmethod
    def scalar_summary(tags: Any, values: Any, collections: Any = None, name: Any = None) -> Any:
        return raw_ops.ScalarSummary(tags=tags, values=values, name=name)

    @staticmethod
    def merge_summary(inputs: Any, collections: Any = None, name: Any = None) -> Any:
        return tf.summary.merge(inputs, collections, name)


class _Resources:
    """Of tensorflow.python.ops.resources: variables are the resources of these tests."""

    @staticmethod
    def initialize_resources(resource_list: Any, name: str = "init") -> Any:
        return tf.group(*[each.initializer for each in resource_list], name=name)


class _Saver:
    """Of tensorflow.python.training.saver."""

    class BaseSaverBuilder:
        SaveSpec = saveable.SaveSpec
        SaveableObject = saveable.SaveableObject
        ResourceVariableSaveable = VariableSaveable = saveable.VariableSaveable


class _EmbeddingOps:
    @staticmethod
    def safe_embedding_lookup_sparse_v2(
        embedding_weights: Any,
        sparse_ids: Any,
        sparse_weights: Any = None,
        combiner: str = "mean",
        default_id: Any = None,
        max_norm: Any = None,
        name: Any = None,
    ) -> Any:
        return tf.nn.safe_embedding_lookup_sparse(
            embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name, "div", max_norm
        )


class _DataFlowOps:
    @staticmethod
    def parallel_dynamic_stitch(indices: Any, data: Any, name: Any = None) -> Any:
        return raw_ops.ParallelDynamicStitch(indices=indices, data=data, name=name)


class _Inspect:
    """tensorflow.python.util.tf_inspect."""

    @staticmethod
    def getargspec(function: Any) -> Any:
        return inspect.getfullargspec(function)

    @staticmethod
    def getmembers(thing: Any) -> Any:
        return inspect.getmembers(thing)


class _VariableScope:
    @staticmethod
    def variable(*args: Any, **named: Any) -> Any:
        return tf.Variable(*args, **named)


class _FileIO:
    """Of tensorflow.python.lib.io.file_io."""

    @staticmethod
    def read_file_to_string(filename: str, binary_mode: bool = False) -> Any:
        with tf.gfile.GFile(filename, "rb" if binary_mode else "r") as file:
            return file.read()

    @staticmethod
    def write_string_to_file(filename: str, file_content: Any) -> None:
        with tf.gfile.GFile(filename, "w") as file:
            file.write(file_content)


#: Function of file_io → the one of tf.gfile.
_FILE_IO = {
    "file_exists": "Exists",
    "delete_file": "Remove",
    "delete_recursively": "DeleteRecursively",
    "create_dir": "MkDir",
    "recursive_create_dir": "MakeDirs",
    "list_directory": "ListDirectory",
    "get_matching_files": "Glob",
    "is_directory": "IsDirectory",
    "rename": "Rename",
    "copy": "Copy",
    "stat": "Stat",
}


def _gfile(short: str, *args: Any, **named: Any) -> Any:
    return getattr(tf.gfile, short)(*args, **named)


for _name, _short in _FILE_IO.items():
    setattr(_FileIO, _name, staticmethod(functools.partial(_gfile, _short)))


class _CheckpointManagement:
    @staticmethod
    def update_checkpoint_state_internal(*args: Any, save_relative_paths: bool = False, **named: Any) -> None:
        tf.train.update_checkpoint_state(*args, save_relative_paths=save_relative_paths, **named)


class _MetaGraph:
    @staticmethod
    def export_scoped_meta_graph(filename: Any = None, **named: Any) -> tuple[Any, dict[str, Any]]:
        """The message, and the scope's variables by name, as TensorFlow's function behind export_meta_graph."""
        graph, scope = named.get("graph") or tf.get_default_graph(), named.get("export_scope")
        definition = tf.train.export_meta_graph(filename, **named)
        inside = [
            variable
            for key in (tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES)
            for variable in graph.get_collection(key)
            if not scope or variable.name.startswith(f"{scope}/")
        ]
        prefix = len(scope) + 1 if scope else 0
        return definition, {variable.name[prefix:]: variable for variable in inside}

    @staticmethod
    def copy_scoped_meta_graph(
        from_scope: str, to_scope: str, from_graph: Any = None, to_graph: Any = None
    ) -> dict[str, Any]:
        """The part of one graph under a scope, again under another scope or in another graph."""
        source, target = from_graph or tf.get_default_graph(), to_graph or tf.get_default_graph()
        if source is target and from_scope == to_scope:
            raise ValueError(f"'from_scope' and 'to_scope' need to be different: '{from_scope}' == '{to_scope}'")
        definition, _ = _MetaGraph.export_scoped_meta_graph(graph=source, export_scope=from_scope)
        return _MetaGraph.import_scoped_meta_graph(definition, graph=target, import_scope=to_scope)

    @staticmethod
    def import_scoped_meta_graph(*args: Any, **named: Any) -> dict[str, Any]:
        from tenfold.train.meta_graph import import_scoped_meta_graph

        return import_scoped_meta_graph(*args, **named)[1]


class _Estimator:
    """Of the estimator's own module."""

    @property
    def EstimatorV2(self) -> Any:
        return tf.estimator.Estimator


class _BaseHead:
    """Of the estimator's head.base_head."""

    @staticmethod
    def call_loss_fn(loss_fn: Any, labels: Any, logits: Any, features: Any, expected_loss_dim: int = 1) -> Any:
        from tenfold.estimator.canned.head_checks import called

        return called(loss_fn, labels, logits, features, expected_loss_dim)


class _KerasLosses:
    """tensorflow.python.keras.utils.losses_utils: the names of reductions, which heads take."""

    ReductionV2 = SimpleNamespace(AUTO="auto", NONE="none", SUM="sum", SUM_OVER_BATCH_SIZE="sum_over_batch_size")


class _ParsingUtils:
    """tensorflow_estimator's canned.parsing_utils: its functions take every column."""

    @property
    def classifier_parse_example_spec_v2(self) -> Any:
        return tf.estimator.classifier_parse_example_spec

    @property
    def regressor_parse_example_spec_v2(self) -> Any:
        return tf.estimator.regressor_parse_example_spec


class _Sklearn:
    """contrib.learn's stand-in for scikit-learn."""

    @staticmethod
    def accuracy_score(y_true: Any, y_pred: Any) -> float:
        return float(np.mean(np.asarray(y_true) == np.asarray(y_pred)))

    @staticmethod
    def mean_squared_error(y_true: Any, y_pred: Any) -> float:
        return float(np.mean(np.square(np.asarray(y_true) - np.asarray(y_pred))))

    @staticmethod
    def train_test_split(*arrays: Any, test_size: float = 0.25, random_state: int | None = None) -> list[Any]:
        """Each array's two parts, in one order."""
        order = np.random.RandomState(random_state).permutation(len(arrays[0]))
        cut = len(order) - round(test_size * len(order))
        return [np.asarray(array)[part] for array in arrays for part in (order[:cut], order[cut:])]


class _WideAndDeep:
    """Of contrib.learn's estimators.dnn_linear_combined."""

    @property
    def _dnn_linear_combined_model_fn(self) -> Any:
        from tenfold.contrib.learn import dnn_linear_combined

        return dnn_linear_combined._model_fn

    @staticmethod
    def _get_embedding_variable(column: Any, collection_key: str, input_layer_scope: str) -> Any:
        return tf.get_collection(collection_key, f"{input_layer_scope}/{column.name}")


class _LearnIO:
    """Of contrib.learn's learn_io, which test files import with a star."""

    HAS_DASK, HAS_PANDAS = False, True

    @property
    def __all__(self) -> list[str]:
        return ["HAS_DASK", "HAS_PANDAS", "data_feeder", *importlib.import_module("tenfold.contrib.learn.io").__all__]


class _ControlFlowOps:
    """Of tensorflow.python.ops.control_flow_ops: ops under their own names."""

    @staticmethod
    def ref_switch(data: Any, pred: Any, name: Any = None) -> Any:
        return raw_ops.RefSwitch(data=data, pred=pred, name=name)

    @staticmethod
    def ref_merge(inputs: Any, name: Any = None) -> Any:
        return raw_ops.RefMerge(inputs=inputs, name=name)

    @staticmethod
    def ref_select(index: Any, inputs: Any, name: Any = None) -> Any:
        return raw_ops.RefSelect(index=index, inputs=inputs, name=name)


class _ModelFn:
    """Of tensorflow_estimator's model_fn: what mocks of heads make."""

    @staticmethod
    def _TPUEstimatorSpec(**given: Any) -> Any:
        return SimpleNamespace(as_estimator_spec=lambda: tf.estimator.EstimatorSpec(**given))


class _FeatureColumns:
    """Of feature_column_v2: one function takes all columns here."""

    @staticmethod
    def make_parse_example_spec_v2(feature_columns: Any) -> Any:
        return tf.feature_column.make_parse_example_spec(feature_columns)


class _SpectralTests:
    """tensorflow.python.ops.spectral_ops_test_util: TensorFlow chooses a kernel there."""

    @staticmethod
    def fft_kernel_label_map() -> Any:
        return contextlib.nullcontext()


class _Canned:
    """Of a module of canned estimators: a class for TensorFlow 2 is the one of its name."""

    def __getattr__(self, name: str) -> Any:
        if not name.endswith("V2"):
            raise AttributeError(name)
        return getattr(tf.estimator, name.removesuffix("V2"))


class _Tests:
    """tensorflow.python.framework.config and others that a test only switches."""

    @staticmethod
    def list_physical_devices(kind: Any = None) -> list[Any]:
        return []


class _Compat:
    """tensorflow.python.compat.compat: what a later release changes is changed."""

    @staticmethod
    def forward_compatible(year: int, month: int, day: int) -> bool:
        return True

    @staticmethod
    def forward_compatibility_horizon(year: int, month: int, day: int) -> Any:
        return contextlib.nullcontext()


class _GradientCheckerV2:
    """tensorflow.python.ops.gradient_checker_v2: a function of tensors in the place of a tensor."""

    @staticmethod
    def compute_gradient(f: Any, x: Any, delta: float = 1e-3) -> Any:
        """Jacobians as [analytic, …] and [numeric, …], elements of y by elements of each x; as its own, of rank 2."""
        with tf.Session() as session:
            points = [np.asarray(session.run(tf.convert_to_tensor(value))) for value in x]
        inputs = [tf.placeholder(tf.as_dtype(point.dtype), point.shape) for point in points]
        output = f(*inputs)
        with tf.Session():
            found = tf.test.compute_gradient(
                inputs, [list(point.shape) for point in points], output, output.shape.as_list(), points, delta
            )
        return [pair[0].T for pair in found], [pair[1].T for pair in found]

    @staticmethod
    def _to_numpy(value: Any) -> Any:
        """Slices as the whole array, a tensor as its value in the default session; else the value."""
        if isinstance(value, IndexedSlicesValue):
            whole = np.zeros(value.dense_shape)
            np.add.at(whole, value.indices, value.values)
            return whole
        return tf.get_default_session().run(value) if isinstance(value, tf.Tensor) else value

    @staticmethod
    def max_error(analytic: Any, numeric: Any) -> float:
        """The largest difference of the two lists."""
        pairs = zip(analytic, numeric, strict=True)
        return max((float(np.abs(a - n).max(initial=0)) for a, n in pairs), default=0.0)


class _LayersSparseOps:
    """Of contrib.layers.python.ops.sparse_ops, which contrib.layers' public function stands on."""

    @staticmethod
    def dense_to_sparse_tensor(dense_tensor: Any, ignore_value: Any = None) -> Any:
        tensor = tf.convert_to_tensor(dense_tensor)
        nothing = "" if tensor.dtype == tf.string else 0
        return tf.contrib.layers.dense_to_sparse(tensor, nothing if ignore_value is None else ignore_value)


class _ResourceVariableOps:
    @staticmethod
    def assign_variable_op(resource: Any, value: Any, name: Any = None) -> Any:
        return raw_ops.AssignVariableOp(resource=resource, value=value, name=name)


#: Module behind "tensorflow." → its further names.
_NAMES: dict[str, Any] = {
    "contrib.layers.python.ops.sparse_ops": _LayersSparseOps(),
    "contrib.learn.python.learn.learn_io": _LearnIO(),
    "contrib.rnn.python.kernel_tests.benchmarking": api_rnn.Benchmarking(),
    "contrib.rnn.python.ops.lstm_ops": api_rnn.LstmOps(),
    "contrib.seq2seq.python.ops.beam_search_decoder": api_rnn.BeamSearch(),
    "contrib.testing": api_fake_writer,
    "contrib.testing.python.framework.fake_summary_writer": api_fake_writer,
    "contrib.learn.python.learn.estimators._sklearn": _Sklearn(),
    "contrib.learn.python.learn.estimators.dnn_linear_combined": _WideAndDeep(),
    "contrib.testing.python.framework.util_test": _EventFiles(),
    "python.compat.compat": _Compat(),
    "python.data.experimental.ops.cardinality": api_data.Cardinality(),
    "python.data.experimental.ops.interleave_ops": api_data.InterleaveOps(),
    "python.data.experimental.ops.matching_files": api_data.MatchingFiles(),
    "python.data.experimental.ops.optimization": api_data.Optimization(),
    "python.data.experimental.ops.sleep": api_data.Sleep(),
    "python.data.experimental.ops.stats_aggregator": api_data.StatsAggregators(),
    "python.data.ops.dataset_ops": api_data.DatasetOps(),
    "python.data.ops.iterator_ops": api_data.IteratorOps(),
    "python.data.ops.optional_ops": api_data.OptionalOps(),
    "python.data.ops.readers": api_data.Readers(),
    "python.data.util.options": api_data.DataOptions(),
    "python.data.util.random_seed": api_data.RandomSeed(),
    "python.eager.context": _Context(),
    "python.estimator.canned.linear": _Canned(),
    "python.estimator.canned.parsing_utils": _ParsingUtils(),
    "python.estimator.estimator": _Estimator(),
    "python.estimator.head.base_head": _BaseHead(),
    "python.estimator.model_fn": _ModelFn(),
    "python.feature_column.feature_column_lib": _FeatureColumns(),
    "python.feature_column.feature_column_v2": _FeatureColumns(),
    "python.framework.combinations": api_data.Combinations(),
    "python.tf2": api_data.Tf2(),
    "python.framework.config": _Tests(),
    "python.framework.constant_op": _Constant(),
    "python.framework.dtypes": api_rnn.Dtypes(),
    "python.framework.ops": _Ops(),
    "python.framework.tensor_util": _TensorSpec(),
    "python.keras.initializers": api_rnn.Initializers(),
    "python.keras.testing_utils": api_rnn.KerasTesting(),
    "python.keras.utils": api_rnn.KerasUtils(),
    "python.keras.utils.losses_utils": _KerasLosses(),
    "python.lib.io.file_io": _FileIO(),
    "python.saved_model.utils_impl": SimpleNamespace(get_variables_path=saved_model.variables_path),
    "python.ops.data_flow_ops": _DataFlowOps(),
    "python.ops.embedding_ops": _EmbeddingOps(),
    "python.ops.spectral_ops_test_util": _SpectralTests(),
    "python.ops.gradient_checker_v2": _GradientCheckerV2(),
    "python.util.tf_inspect": _Inspect(),
    "python.ops.variable_scope": _VariableScope(),
    "python.ops.control_flow_ops": _ControlFlowOps(),
    "python.ops.control_flow_util": _ControlFlowUtil(),
    "python.framework.meta_graph": _MetaGraph(),
    "python.ops.logging_ops": _LoggingOps(),
    "python.ops.ragged.ragged_tensor": api_data.Ragged(),
    "python.ops.ragged.ragged_tensor_value": api_data.Ragged(),
    "python.ops.resource_variable_ops": _ResourceVariableOps(),
    "python.ops.resources": _Resources(),
    "python.ops.variables": _Variables(),
    "python.pywrap_tensorflow": _Wrapped(),
    "python.training.saver": _Saver(),
    "python.training.checkpoint_management": _CheckpointManagement(),
}


def names_of(module: str) -> Any:
    """The object with the further names of a module; one without any for most."""
    return _NAMES.get(module)


class _TurnedClock:
    """The module `time` of what measures time here by `monotonic`, while tests turn the clock of `time.time`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, "time" if name == "monotonic" else name)


def let_clocks_be_turned() -> None:
    """Hooks and estimators follow `time.time`, as TensorFlow's do."""
    for name in ("train.hook_timer", "train.supervisor_services", "estimator.training", "contrib.learn.experiment"):
        importlib.import_module(f"tenfold.{name}").time = _TurnedClock()  # type: ignore[attr-defined]


def give_private_names() -> None:
    """Private attributes that tests of public behaviour use to name a slot or a device."""
    from tenfold.feature_column.base import FeatureColumn
    from tenfold.ops.variable_store import VariableStore

    VariableStore._vars = property(lambda self: self.variables)  # type: ignore[attr-defined]
    tf.Graph._building_function = property(lambda self: self.building_function)
    # Each column here is one of feature_column_v2.
    FeatureColumn._is_v2_column = True  # type: ignore[attr-defined]
    tf.Variable._shared_name = property(lambda self: self.op.name)
    from tenfold.session import devices

    devices._DeviceAttributes = (  # type: ignore[attr-defined]
        lambda name, device_type, memory, incarnation: devices.SessionDevice(name, device_type, memory, incarnation)
    )
