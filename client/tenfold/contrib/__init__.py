"""`tf.contrib`: the parts that programs use. Each namespace is a module here, loaded at its first use.

A namespace that is left out says why, and what to use instead; see decision 0105.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from tenfold.lazy_module import make_lazy

make_lazy(__name__)

#: Modules here that are not namespaces of TensorFlow's.
_OUR_OWN = ("arg_scope", "feature_columns", "image_colors", "lazy")

_LEFT_OUT = {
    "autograph": "functions are not rewritten: branch with tf.cond, repeat with tf.while_loop",
    "batching": "it gathers requests of a server; tf.train.batch and tf.data gather examples",
    "bayesflow": "it was moved out of TensorFlow into TensorFlow Probability",
    "bigtable": "it reads a service of one provider; tf.data.Dataset.from_generator reads any",
    "boosted_trees": "trees are not trained here; use a library of their own, such as XGBoost",
    "cloud": "it is for services of one provider",
    "cudnn_rnn": "it is for GPUs; tf.nn.rnn_cell.LSTMCell and GRUCell under tf.nn.dynamic_rnn compute the same",
    "decision_trees": "trees are not trained here; use a library of their own, such as XGBoost",
    "deprecated": "use tf.summary",
    "distribute": "strategies are left out: use tf.train.replica_device_setter and tf.train.SyncReplicasOptimizer",
    "eager": "execution is by graphs only; see tf.enable_eager_execution",
    "ffmpeg": "decode audio before, or use tf.contrib.framework.python.ops.audio_ops",
    "gan": "its functions are short: write the generator's and the discriminator's loss with tf.losses",
    "graph_editor": "edit the GraphDef, and import it with tf.import_graph_def and its input_map",
    "grid_rnn": "use the cells of tf.nn.rnn_cell and tf.contrib.rnn",
    "input_pipeline": "use tf.data",
    "integrate": "odeint is not served; scipy.integrate runs in tf.py_func",
    "kernel_methods": "use tf.contrib.layers and random features of your own",
    "labeled_tensor": "name dimensions in comments",
    "lite": "models are not converted for devices",
    "memory_stats": "RunMetadata and `tenfold status` say what memory is used",
    "model_pruning": "masks on weights are a product of two variables",
    "optimizer_v2": "use tf.train's optimizers",
    "periodic_resample": "use tf.reshape and tf.transpose",
    "quantize": "models are not rewritten for integers",
    "receptive_field": "it reads graphs of models; it needs TensorFlow",
    "resampler": "its kernel is not served; tf.contrib.image.transform, or tf.gather_nd and four weights, resample",
    "rpc": "tasks of a cluster talk by sessions",
    "solvers": "use tf.linalg.solve",
    "specs": "use tf.contrib.layers",
    "stat_summarizer": "use tf.train.ProfilerHook or client.timeline.Timeline",
    "tensor_forest": "its trees grow in ops of their own, which are not served; use scikit-learn's forests",
    "tensorrt": "it is for GPUs",
    "timeseries": "use tf.nn.dynamic_rnn on windows of tf.data",
    "verbs": "the one protocol of a tf.train.Server is grpc; Tenfold's tasks find their fast links themselves",
    "xla": "programs are compiled without being asked to; tf.contrib.compiler.xla passes on what it is given",
}


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        why = f": {_LEFT_OUT[name]}" if name in _LEFT_OUT else ""
        raise AttributeError(f"tf.contrib.{name} is not part of Tenfold{why}") from None


def __dir__() -> list[str]:
    return sorted(module.name for module in iter_modules(__path__) if module.name not in _OUR_OWN)
