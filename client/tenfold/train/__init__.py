"""`tf.train`: servers, optimizers, savers, monitored sessions, input queues; each module is loaded on first use.

One table from public name to the module that has it; nothing is imported with the package itself. Names are those of
TF 1.15's tf.train.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tenfold.lazy_module import make_lazy as _make_lazy
from tenfold.left_out import hint as _hint

_make_lazy(__name__)

#: Module → names that tf.train takes from it.
_MODULES: dict[str, tuple[str, ...]] = {
    "tenfold_core.cluster_spec": ("ClusterSpec",),
    "tenfold.train.server_lib": ("Server",),
    "tenfold.train.optimizer": ("Optimizer",),
    "tenfold.train.gradient_descent": ("GradientDescentOptimizer",),
    "tenfold.train.momentum": ("MomentumOptimizer",),
    "tenfold.train.adagrad": ("AdagradOptimizer",),
    "tenfold.train.adagrad_decay": ("AdagradDecayOptimizer",),
    "tenfold.train.adagrad_decay_v2": ("AdagradDecayOptimizerV2",),
    "tenfold.train.adam": ("AdamOptimizer",),
    "tenfold.train.adam_async": ("AdamAsyncOptimizer",),
    "tenfold.train.weight_decay": ("AdamWOptimizer",),
    "tenfold.train.adadelta": ("AdadeltaOptimizer",),
    "tenfold.train.adagrad_da": ("AdagradDAOptimizer",),
    "tenfold.train.ftrl": ("FtrlOptimizer",),
    "tenfold.train.proximal_adagrad": ("ProximalAdagradOptimizer",),
    "tenfold.train.proximal_gradient_descent": ("ProximalGradientDescentOptimizer",),
    "tenfold.train.rmsprop": ("RMSPropOptimizer",),
    "tenfold.train.moving_averages": ("ExponentialMovingAverage",),
    "tenfold.train.learning_rate_decay": (
        "cosine_decay",
        "cosine_decay_restarts",
        "exponential_decay",
        "inverse_time_decay",
        "linear_cosine_decay",
        "natural_exp_decay",
        "noisy_linear_cosine_decay",
        "piecewise_constant",
        "piecewise_constant_decay",
        "polynomial_decay",
    ),
    "tenfold.ops.generated_ops": ("sdca_fprint", "sdca_optimizer", "sdca_shrink_l1"),
    "tenfold.train.sync_replicas": ("SyncReplicasOptimizer",),
    "tenfold.train.input": (
        "batch",
        "batch_join",
        "input_producer",
        "limit_epochs",
        "match_filenames_once",
        "maybe_batch",
        "maybe_batch_join",
        "maybe_shuffle_batch",
        "maybe_shuffle_batch_join",
        "range_input_producer",
        "shuffle_batch",
        "shuffle_batch_join",
        "slice_input_producer",
        "string_input_producer",
    ),
    "tenfold_protos.example_pb2": ("Example", "SequenceExample"),
    "tenfold_protos.feature_pb2": (
        "BytesList",
        "Feature",
        "FeatureList",
        "FeatureLists",
        "Features",
        "FloatList",
        "Int64List",
    ),
    "tenfold.train.device_setter": ("replica_device_setter",),
    "tenfold.train.training_util": (
        "assert_global_step",
        "create_global_step",
        "get_global_step",
        "get_or_create_global_step",
        "global_step",
    ),
    "tenfold.train.coordinator": ("Coordinator", "LooperThread"),
    "tenfold.train.queue_runner": ("QueueRunner", "add_queue_runner", "start_queue_runners"),
    "tenfold.train.session_manager": ("SessionManager",),
    "tenfold.train.supervisor": ("Supervisor",),
    "tenfold.train.basic_loops": ("basic_train_loop",),
    "tenfold.summary.summary_iterator": ("summary_iterator",),
    "tenfold.train.scaffold": ("Scaffold",),
    "tenfold.train.session_creators": ("ChiefSessionCreator", "SessionCreator", "WorkerSessionCreator"),
    "tenfold.train.monitored_session": ("MonitoredSession", "MonitoredTrainingSession", "SingularMonitoredSession"),
    "tenfold.train.session_run_hook": ("SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues"),
    "tenfold.train.hooks": (
        "CheckpointSaverHook",
        "CheckpointSaverListener",
        "FeedFnHook",
        "FinalOpsHook",
        "GlobalStepWaiterHook",
        "LoggingTensorHook",
        "NanLossDuringTrainingError",
        "NanTensorHook",
        "ProfilerHook",
        "SecondOrStepTimer",
        "StepCounterHook",
        "StopAtStepHook",
        "SummarySaverHook",
    ),
    "tenfold.train.checkpoint_management": (
        "checkpoint_exists",
        "generate_checkpoint_state_proto",
        "get_checkpoint_mtimes",
        "get_checkpoint_state",
        "latest_checkpoint",
        "remove_checkpoint",
        "update_checkpoint_state",
    ),
    "tenfold.train.checkpoint_utils": (
        "NewCheckpointReader",
        "checkpoints_iterator",
        "init_from_checkpoint",
        "list_variables",
        "load_checkpoint",
        "load_variable",
    ),
    "tenfold.train.warm_starting": ("VocabInfo", "warm_start"),
    "tenfold.train.saver": ("Saver", "import_meta_graph"),
    "tenfold.train.meta_graph": ("export_meta_graph",),
    "tenfold.train.write_graph": ("write_graph",),
    # not in TensorFlow
    "tenfold.train.safetensors_files": ("export_safetensors", "load_safetensors", "restore_safetensors"),
    "tenfold_protos.cluster_pb2": ("ClusterDef", "JobDef"),
    "tenfold_protos.tensorflow_server_pb2": ("ServerDef",),
    "tenfold_protos.saver_pb2": ("SaverDef",),
}

_HOME: dict[str, str] = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name == "experimental":
        return import_module("tenfold.train.experimental")
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(f'train.{name}')}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, "experimental"})
