"""The table from TensorFlow's module paths to ours, for programs that import `tensorflow.python.…` and its like.

Read by as_tensorflow.py. A row names the modules that have a path's names, in the order in which they are asked; what
none of them has is looked up among the names of `tf`. What only TensorFlow's own code has is in compat/python. Paths of
`tensorflow.contrib` that are not in the table follow a rule, and so do protos and generated ops.
"""

from __future__ import annotations

import re

_NN = (
    "tenfold.nn tenfold.ops.nn tenfold.ops.nn_conv tenfold.ops.nn_losses tenfold.ops.nn_norm tenfold.ops.nn_pool "
    "tenfold.ops.generated_ops"
)
_CELLS = "tenfold.ops.rnn_cell tenfold.ops.rnn_cell_layer tenfold.ops.rnn_cell_wrappers tenfold.compat.python.rnn_cell"
_ARRAY = (
    "tenfold.ops.array tenfold.ops.slicing tenfold.ops.array_batches tenfold.ops.array_blocks tenfold.ops.array_diag "
    "tenfold.ops.array_repeat tenfold.ops.array_sort tenfold.compat.python.array_ops tenfold.ops.generated_ops"
)
_MATH = (
    "tenfold.ops.math tenfold.ops.products tenfold.ops.confusion_matrix tenfold.ops.math_complex "
    "tenfold.ops.math_histogram tenfold.ops.math_segments tenfold.ops.math_special tenfold.ops.linalg "
    "tenfold.ops.generated_ops"
)
_CONTROL_FLOW = (
    "tenfold.ops.control_flow tenfold.ops.control_flow_cond tenfold.ops.control_flow_while "
    "tenfold.ops.control_flow_case tenfold.ops.control_flow_primitives tenfold.ops.while_context"
)
_VARIABLES = "tenfold.ops.variables tenfold.ops.variable_lists tenfold.ops.partitioned_variable"
_IMAGE = "tenfold.image tenfold.ops.image tenfold.ops.image_resize tenfold.ops.generated_ops"
_HOOKS = (
    "tenfold.train tenfold.train.hooks tenfold.train.saving_hooks tenfold.train.hook_timer "
    "tenfold.train.session_run_hook tenfold.train.training_util"
)
_SESSIONS = (
    "tenfold.train tenfold.train.monitored_session tenfold.train.wrapped_sessions tenfold.train.session_creators "
    "tenfold.train.scaffold"
)
_CHECKPOINTS = "tenfold.train.checkpoint_utils tenfold.train.checkpoint_management"
_OPS = (
    "tenfold.graph tenfold.graph.graph tenfold.graph.default_stack tenfold.graph.collections "
    "tenfold.graph.default_scopes tenfold.graph.scope_names tenfold.gradients tenfold.compat.python.ops"
)
_PYTHON = "tenfold.compat.python"
_OLD_COLUMNS = (
    "tenfold.contrib.feature_columns tenfold.contrib.feature_columns.sparse tenfold.contrib.feature_columns.dense "
    "tenfold.contrib.feature_columns.crossed tenfold.contrib.feature_columns.inputs"
)
#: Names that are all public names of `tf`.
_PUBLIC = "tenfold"

#: TensorFlow modules whose functions are public names of `tf.data.experimental` and of `tf.contrib.data`.
_DATA = (
    *("batching", "cardinality", "counter", "enumerate_ops", "error_ops", "get_single_element", "grouping"),
    *("interleave_ops", "iterator_ops", "optimization_options", "parsing_ops", "prefetching_ops", "random_ops"),
    *("readers", "resampling", "scan_ops", "shuffle_ops", "stats_aggregator", "stats_ops", "stats_options"),
    *("take_while_ops", "threading_options", "unique", "writers"),
)
_CONTRIB_DATA = (*_DATA, "sliding")

#: Path after "tensorflow." → modules of ours; "" is `tf` itself. The longest prefix of a path counts.
HOMES: dict[str, str] = {
    "": "tenfold",
    "compat.v1": "tenfold",
    "contrib.framework.python.ops.audio_ops": "tenfold.ops.generated_ops",
    "python": "tenfold",
    # -- data
    **dict.fromkeys((f"contrib.data.python.ops.{module}" for module in _CONTRIB_DATA), "tenfold.contrib.data"),
    "python.data": "tenfold.data",
    "contrib.data.python.ops.threadpool": "tenfold.compat.python.threadpool",
    "python.data.experimental.ops": "tenfold.data.experimental",
    # of DeepRec
    "python.data.experimental.ops.dataframe": "tenfold.data.dataframe",
    "python.data.experimental.ops.parquet_dataset_ops": "tenfold.data.parquet",
    "python.data.experimental.ops.parquet_pybind": "tenfold.data.parquet",
    "python.data.experimental.ops.threadpool": "tenfold.compat.python.threadpool",
    **dict.fromkeys((f"python.data.experimental.ops.{module}" for module in _DATA), "tenfold.data.experimental"),
    "python.data.ops": "tenfold.data",
    "python.data.ops.dataset_ops": "tenfold.data",
    "python.data.ops.iterator_ops": "tenfold.data",
    "python.data.ops.multi_device_iterator_ops": "tenfold.compat.python.multi_device_iterator_ops",
    "python.data.ops.optional_ops": "tenfold.data.optionals",
    "python.data.ops.readers": "tenfold.data.readers",
    "python.data.util": "tenfold.data",
    # -- framework
    "python.framework": "tenfold_core",
    "core.framework.embedding.config_pb2": "tenfold.compat.python.embedding_config",
    "python.framework.common_shapes": "tenfold.compat.python.common_shapes",
    "python.framework.composite_tensor": "tenfold.compat.python.ops",
    "python.framework.config": "tenfold.config tenfold.compat.python.config",
    "python.framework.constant_op": "tenfold.ops.array",
    "python.framework.device": "tenfold_core.device tenfold.compat.python.device",
    "python.framework.dtypes": "tenfold_core.dtypes",
    "python.framework.errors": "tenfold_core.errors",
    "python.framework.errors_impl": "tenfold_core.errors",
    "python.framework.function": "tenfold.compat.python.function",
    "python.framework.graph_io": "tenfold.train.write_graph",
    "python.framework.graph_util": "tenfold.graph_util",
    "python.framework.graph_util_impl": "tenfold.graph_util",
    "python.framework.importer": "tenfold.graph.importer",
    "python.framework.indexed_slices": "tenfold.graph.indexed_slices",
    "python.framework.load_library": "tenfold.load_library",
    "python.framework.meta_graph": "tenfold.train.meta_graph tenfold.compat.python.meta_graph",
    "python.framework.op_def_registry": "tenfold.compat.python.op_def_registry",
    "python.framework.ops": _OPS,
    "python.framework.random_seed": "tenfold.ops.random_seed",
    "python.framework.smart_cond": "tenfold.ops.control_flow_cond",
    "python.framework.sparse_tensor": "tenfold.graph.sparse_tensor",
    "python.framework.tensor_conversion_registry": "tenfold.graph.conversion",
    "python.framework.tensor_shape": "tenfold_core.tensor_shape tenfold.compat.python.tensor_shape",
    # One module has the three versions.
    **dict.fromkeys(
        (f"contrib.slim.python.slim.nets.inception_v{version}" for version in (1, 2, 3)),
        "tenfold.contrib.slim.nets.inception",
    ),
    "python.framework.tensor_util": "tenfold_core.tensor_util tenfold.graph.constant_value tenfold.compat.python.ops",
    "python.framework.test_util": "tenfold.test tenfold.compat.python.test_util",
    "python.framework.versions": "tenfold.versions tenfold.graph.graph",
    # -- ops
    "python.ops": "tenfold.ops",
    "python.ops.array_ops": _ARRAY,
    "python.ops.bitwise_ops": "tenfold.bitwise",
    "python.ops.candidate_sampling_ops": "tenfold.ops.candidate_sampling",
    "python.ops.check_ops": "tenfold.ops.check_ops",
    "python.ops.clip_ops": "tenfold.ops.clip",
    "python.ops.collective_ops": "tenfold.compat.python.collective_ops",
    "python.ops.confusion_matrix": "tenfold.ops.confusion_matrix",
    "python.ops.control_flow_ops": _CONTROL_FLOW,
    "python.ops.control_flow_util": "tenfold.compat.python.control_flow_util",
    "python.ops.critical_section_ops": "tenfold.ops.critical_section",
    "python.ops.ctc_ops": "tenfold.nn",
    "python.ops.custom_gradient": "tenfold.ops.custom_gradient",
    "python.ops.data_flow_ops": (
        "tenfold.ops.queues tenfold.ops.accumulators tenfold.ops.staging tenfold.ops.slicing tenfold.ops.generated_ops"
    ),
    "python.ops.embedding_ops": (
        "tenfold.ops.embedding tenfold.ops.embedding_groups tenfold.compat.python.embedding_ops"
    ),
    "python.ops.functional_ops": "tenfold.ops.functional",
    "python.ops.kv_variable_ops": (
        "tenfold.ops.embedding_variables tenfold.ops.composite_embeddings tenfold.compat.python.kv_variable_ops"
    ),
    "python.ops.work_queue": "tenfold.train.work_queue tenfold.train.local_works",
    "python.ops.gradient_checker": "tenfold.test.gradient_checker",
    "python.ops.gradients": "tenfold.gradients tenfold.gradients.hessians",
    "python.ops.gradients_impl": "tenfold.gradients tenfold.gradients.hessians",
    "python.ops.gradients_util": "tenfold.gradients",
    "python.ops.histogram_ops": "tenfold.ops.math_histogram",
    "python.ops.image_ops": _IMAGE,
    "python.ops.image_ops_impl": _IMAGE,
    "python.ops.init_ops": "tenfold.ops.init_ops",
    "python.ops.inplace_ops": "tenfold.compat.python.inplace_ops",
    "python.ops.io_ops": "tenfold.ops.io tenfold.ops.readers tenfold.ops.generated_ops",
    "python.ops.linalg_ops": "tenfold.ops.linalg tenfold.linalg tenfold.ops.generated_ops",
    "python.ops.linalg_ops_impl": "tenfold.ops.linalg",
    "python.ops.linalg.linalg": "tenfold.linalg",
    "python.ops.linalg.linalg_impl": "tenfold.linalg",
    "python.ops.logging_ops": "tenfold.ops.control_flow tenfold.ops.print_ops tenfold.ops.deprecated_names",
    "python.ops.lookup_ops": "tenfold.ops.lookup tenfold.lookup",
    "python.ops.losses": "tenfold.losses",
    "python.ops.losses.losses": "tenfold.losses",
    "python.ops.losses.losses_impl": "tenfold.losses",
    "python.ops.losses.util": "tenfold.losses",
    "python.ops.manip_ops": "tenfold.manip",
    "python.ops.map_fn": "tenfold.ops.functional",
    "python.ops.math_ops": _MATH,
    "python.ops.metrics": "tenfold.metrics",
    "python.ops.metrics_impl": "tenfold.metrics",
    "python.ops.nn": _NN,
    "python.ops.nn_impl": _NN,
    "python.ops.nn_ops": _NN,
    "python.ops.numerics": "tenfold.ops.numerics",
    "python.ops.nccl_ops": "tenfold.contrib.nccl",
    "python.ops.parsing_ops": (
        "tenfold.ops.parsing tenfold.ops.parsing_sequences tenfold.ops.io tenfold.io tenfold.ops.generated_ops"
    ),
    "python.ops.partitioned_variables": "tenfold.ops.partitioned_variables",
    "python.ops.random_ops": "tenfold.ops.random",
    "python.ops.resource_variable_ops": "tenfold.ops.resource_variables tenfold.ops.generated_ops",
    "python.ops.resources": "tenfold.ops.resources",
    "python.ops.rnn": "tenfold.ops.rnn tenfold.ops.rnn_static tenfold.compat.python.rnn",
    "python.ops.rnn.rnn_cell_impl": _CELLS,
    "python.ops.rnn_cell": _CELLS,
    "python.ops.rnn_cell_impl": _CELLS,
    "python.ops.script_ops": "tenfold.ops.script_ops",
    "python.ops.session_ops": "tenfold.session.tensor_handles",
    "python.ops.sets": "tenfold.ops.sets",
    "python.ops.sets_impl": "tenfold.ops.sets",
    "python.ops.signal": "tenfold.signal",
    **dict.fromkeys(
        (
            f"python.ops.signal.{family}_ops"
            for family in ("dct", "fft", "mel", "mfcc", "reconstruction", "shape", "spectral", "window")
        ),
        "tenfold.signal",
    ),
    "python.ops.signal.signal": "tenfold.signal",
    "python.ops.sparse_ops": "tenfold.ops.sparse tenfold.ops.sparse_math tenfold.sparse",
    "python.ops.special_math_ops": "tenfold.ops.math_special tenfold.ops.products",
    "python.ops.spectral_ops": "tenfold.ops.spectral tenfold.spectral",
    "python.ops.standard_ops": _PUBLIC,
    "python.ops.state_ops": "tenfold.ops.state_ops tenfold.compat.python.state_ops",
    "python.ops.string_ops": "tenfold.ops.string tenfold.ops.string_split tenfold.strings tenfold.ops.generated_ops",
    "python.ops.summary_op_util": "tenfold.compat.python.summary_op_util",
    "python.ops.summary_ops": "tenfold.summary",
    "python.ops.summary_ops_v2": "tenfold.contrib.summary",
    "python.ops.template": "tenfold.ops.template",
    "python.ops.tensor_array_ops": "tenfold.ops.tensor_array",
    "python.ops.variable_scope": f"tenfold.ops.variable_scope tenfold.ops.variable_store {_PYTHON}.variables",
    "python.ops.variable_v1": _VARIABLES,
    "python.ops.variables": f"{_VARIABLES} tenfold.compat.python.variables",
    "python.ops.while_v2": "tenfold.ops.control_flow_while",
    # -- ops of names that only the public table has
    **dict.fromkeys(
        (
            *("python.ops.batch_ops", "python.ops.cond_v2", "python.ops.math_grad", "python.ops.nn_grad"),
            *("python.ops.array_grad", "python.ops.sort_ops", "python.ops.weights_broadcast_ops"),
            *("python.ops.stateless_random_ops", "python.ops.sdca_ops", "python.ops.quantized_ops"),
        ),
        "tenfold.ops.generated_ops tenfold.ops.weights",
    ),
    # -- layers
    "python.layers": "tenfold.layers",
    "python.layers.base": "tenfold.layers.base tenfold.layers.input_spec",
    "python.layers.core": "tenfold.layers.core tenfold.layers",
    "python.layers.convolutional": "tenfold.layers.convolutional tenfold.layers.separable tenfold.layers",
    "python.layers.layers": "tenfold.layers",
    "python.layers.normalization": "tenfold.layers.normalization tenfold.layers",
    "python.layers.pooling": "tenfold.layers.pooling tenfold.layers",
    "python.layers.utils": "tenfold.compat.python.layers_utils",
    # -- training
    "python.training": "tenfold.train",
    "python.training.basic_session_run_hooks": _HOOKS,
    "python.training.checkpoint_management": _CHECKPOINTS,
    "python.training.checkpoint_ops": "tenfold.train.vocab_remapping",
    "python.training.checkpoint_utils": _CHECKPOINTS,
    "python.training.evaluation": "tenfold.train.evaluation",
    "python.training.experimental.loss_scale": "tenfold.train.loss_scale",
    "python.training.experimental.loss_scale_optimizer": "tenfold.train.loss_scale_optimizer",
    "python.training.experimental.mixed_precision": "tenfold.train.loss_scale_optimizer",
    "python.training.gen_training_ops": "tenfold.ops.generated_ops",
    "python.training.monitored_session": _SESSIONS,
    "python.training.queue_runner_impl": "tenfold.train.queue_runner",
    "python.training.saveable_object": "tenfold.train.saveable",
    "python.training.saver": (
        "tenfold.train.saver tenfold.train tenfold.train.meta_graph tenfold.train.saveable "
        "tenfold.train.partial_restore"
    ),
    "python.training.server_lib": "tenfold.train.server_lib tenfold.train",
    "python.training.summary_io": "tenfold.compat.python.summary_io tenfold.summary",
    "python.training.sync_replicas_optimizer": "tenfold.train.sync_replicas tenfold.train",
    "python.training.training": "tenfold.train",
    "python.training.training_ops": "tenfold.ops.generated_ops",
    "python.training.warm_starting_util": "tenfold.train.warm_starting",
    # -- contrib, where a rule does not find it
    "contrib.layers.python.layers.feature_column": _OLD_COLUMNS,
    "contrib.layers.python.layers.feature_column_ops": _OLD_COLUMNS,
    "contrib.learn.python.learn.basic_session_run_hooks": "tenfold.train",
    "contrib.learn.python.learn.ops.losses_ops": "tenfold.contrib.learn.ops",
    "contrib.learn.python.learn.session_run_hook": "tenfold.train",
    "contrib.session_bundle.manifest_pb2": "tenfold_protos.manifest_pb2",
    # -- the rest
    "python.client": "tenfold.session",
    "python.client.device_lib": "tenfold.compat.python.device_lib",
    "python.client.session": "tenfold.session.session tenfold.session.base_session",
    "python.client.timeline": "tenfold.profiler.timeline",
    "python.compat.compat": "tenfold.compat.forward_compatibility",
    "python.debug": "tenfold.compat.python.debug",
    "python.debug.cli": "tenfold.compat.python.debug",
    "python.debug.lib": "tenfold.compat.python.debug",
    "python.debug.lib.debug_utils": "tenfold.compat.python.debug",
    "python.debug.wrappers": "tenfold.compat.python.debug",
    "python.debug.wrappers.framework": "tenfold.compat.python.debug",
    "python.debug.wrappers.hooks": "tenfold.compat.python.debug",
    "python.debug.wrappers.local_cli_wrapper": "tenfold.compat.python.debug",
    "python.distribute": "tenfold.distribute",
    "python.distribute.all_reduce": "tenfold.contrib.all_reduce",
    "python.eager.context": "tenfold.compat.python.context",
    "python.estimator": "tenfold.estimator",
    "python.estimator.estimator": "tenfold.estimator.estimator tenfold.estimator.warm_start_settings",
    "python.estimator.estimator_lib": "tenfold.estimator",
    "python.estimator.export.export_lib": (
        "tenfold.estimator.export.export tenfold.estimator.export.export_output tenfold.estimator.export.signatures"
    ),
    "python.estimator.hooks.hooks": "tenfold.estimator.hooks",
    "python.estimator.inputs.inputs": "tenfold.estimator.inputs",
    "python.estimator.inputs.queues": "tenfold.estimator.inputs",
    "python.estimator.training": "tenfold.estimator.training tenfold.estimator.train_specs",
    "python.feature_column": "tenfold.feature_column",
    "python.feature_column.feature_column": "tenfold.feature_column tenfold.compat.python.feature_column",
    "python.feature_column.feature_column_lib": "tenfold.feature_column",
    "python.feature_column.feature_column_v2": "tenfold.feature_column tenfold.compat.python.feature_column",
    "python.feature_column.sequence_feature_column": "tenfold.feature_column",
    "python.feature_column.utils": "tenfold.compat.python.feature_column",
    "python.ops.prefetch": "tenfold.train.staged",
    "python.training.async_embedding_stage": "tenfold.ops.lookup_marks",
    "python.lib.io.file_io": "tenfold.compat.python.file_io",
    "python.lib.io.python_io": "tenfold.python_io",
    "python.lib.io.tf_record": "tenfold.python_io",
    "python.module.module": "tenfold.module",
    "python.platform": "tenfold",
    "python.platform.benchmark": "tenfold.test.benchmark",
    "python.platform.build_info": "tenfold.compat.python.build_info",
    "python.platform.googletest": "tenfold.test tenfold.compat.python.test_util",
    "python.platform.resource_loader": "tenfold.resource_loader",
    "python.platform.sysconfig": "tenfold.sysconfig",
    "python.platform.test": "tenfold.test",
    "python.platform.tf_logging": "tenfold.logging",
    "python.profiler": "tenfold.profiler",
    "python.profiler.model_analyzer": "tenfold.profiler.model_analyzer",
    "python.profiler.option_builder": "tenfold.profiler.option_builder",
    "python.profiler.tfprof_logger": "tenfold.profiler.model_analyzer tenfold.profiler.option_builder",
    "python.pywrap_tensorflow": "tenfold.compat.python.pywrap_tensorflow",
    "python.saved_model": "tenfold.saved_model",
    "python.saved_model.main_op_impl": "tenfold.saved_model.main_op",
    "python.saved_model.saved_model": "tenfold.saved_model",
    "python.saved_model.signature_def_utils_impl": "tenfold.saved_model.signature_def_utils",
    "python.saved_model.utils_impl": "tenfold.saved_model.utils",
    "python.summary": "tenfold.summary",
    "python.summary.summary": "tenfold.summary",
    "python.summary.summary_iterator": "tenfold.summary.summary_iterator",
    "python.summary.writer": "tenfold.summary",
    "python.summary.writer.event_file_writer": "tenfold.summary.file_writer",
    "python.summary.writer.writer": "tenfold.summary.file_writer tenfold.summary",
    "python.summary.writer.writer_cache": "tenfold.summary.file_writer tenfold.summary",
    "python.tf2": "tenfold.compat.python.tf2",
    "python.tools.freeze_graph": "tenfold.compat.python.freeze_graph",
    "python.tools.inspect_checkpoint": "tenfold.compat.python.inspect_checkpoint",
    "python.tools.optimize_for_inference_lib": "tenfold.compat.python.freeze_graph",
    "python.tools.strip_unused_lib": "tenfold.compat.python.freeze_graph",
    "python.util.all_util": "tenfold.compat.python.decorators",
    "python.util.compat": "tenfold.compat tenfold.compat.python.collections_abc",
    "python.util.deprecation": "tenfold.compat.python.deprecation",
    "python.util.function_utils": "tenfold.compat.python.function_utils",
    "python.util.keyword_args": "tenfold.compat.python.decorators",
    "python.util.lazy_loader": "tenfold.compat.python.lazy_loader",
    "python.util.nest": "tenfold.nest",
    "python.util.object_identity": "tenfold.compat.python.object_identity",
    "python.util.tf_contextlib": "tenfold.compat.python.decorators",
    "python.util.tf_decorator": "tenfold.compat.python.decorators",
    "python.util.tf_export": "tenfold.compat.python.decorators",
    "python.util.tf_inspect": "tenfold.compat.python.tf_inspect",
    "python.util.tf_should_use": "tenfold.compat.python.decorators",
}

#: Modules that contain only other modules.
HOLDERS = frozenset(
    {
        *(
            "core",
            "core.example",
            "core.framework",
            "core.framework.embedding",
            "core.protobuf",
            "core.util",
            "python.compat",
            "python.eager",
        ),
        *("python.lib", "python.lib.io", "python.ops.linalg", "python.tools", "python.util"),
    }
)
#: Protos of which some messages were in another file when TensorFlow 1 was new.
_MOVED = {"config_pb2": ("rpc_options_pb2", "cluster_pb2"), "tensorflow_server_pb2": ("cluster_pb2",)}
_PROTO = re.compile(r"core\.\w+(?:\.\w+)*\.(\w+_pb2)")
_GENERATED = re.compile(r"python\.ops\.gen_\w+")
_CONTRIB = re.compile(r"contrib\.(\w+(?:\.\w+)+)")


def homes_of(path: str) -> tuple[str, ...]:
    """The modules that have the names of `tensorflow.<path>`; none if neither the table nor a rule has it."""
    if path in HOMES:
        return tuple(HOMES[path].split())
    if proto := _PROTO.fullmatch(path):
        return tuple(f"tenfold_protos.{name}" for name in (proto[1], *_MOVED.get(proto[1], ())))
    if _GENERATED.fullmatch(path):
        return ("tenfold.ops.generated_ops",)
    if contrib := _CONTRIB.fullmatch(path):
        return _contrib_homes(contrib[1])
    return ()


def _contrib_homes(path: str) -> tuple[str, ...]:
    """`rnn.python.ops.core_rnn_cell`, `slim.python.slim.nets.vgg`: the module of that path, that name, the namespace.

    Packages named `python` and repeated names stand for themselves alone in TensorFlow's source tree. Where none is,
    `framework.nothing` names a public name, which the namespace must not answer for.
    """
    parts: list[str] = []
    for part in path.split("."):
        if part != "python" and parts[-1:] != [part]:
            parts.append(part)
    whole, last, namespace = ".".join(parts), f"{parts[0]}.{parts[-1]}", parts[0]
    homes = (whole, last, namespace) if "python" in path.split(".") or path == namespace else (whole,)
    return tuple(f"tenfold.contrib.{name}" for name in dict.fromkeys(homes))
