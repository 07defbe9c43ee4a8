"""Names of TensorFlow 1.15 that Tenfold leaves out, and why: one table.

The error for such a name gives its reason, and docs/compatibility.md lists them all (`make compatibility`). A name here
covers what is below it: the reason of `lite` is that of `lite.TFLiteConverter`. Packages of `tf.contrib` have tables of
their own (contrib/__init__.py), and raw operations have docs/missing_ops.md.
"""

from __future__ import annotations

_KERAS = "or run Keras in TensorFlow against Tenfold's servers"
_MODELS = f"use tf.keras.Model, {_KERAS}"
_OBJECTS = "it is for objects of TensorFlow 2, and Tenfold has graphs"
_QUANTIZED = (
    "arithmetic in eight bits is for models that were trained; tf.quantization.fake_quant_… and "
    "quantize_and_dequantize train them"
)

#: Reason → the names below `tf` that it is for.
_TABLE: dict[str, str] = {
    "it needs eager execution, and Tenfold builds and runs graphs: use tf.gradients, tf.Session and tf.py_func": """
        GradientTape experimental function wrap_function
    """,
    "it sets how operations run eagerly, and Tenfold runs graphs: use tf.Session and its tf.ConfigProto": """
        config.experimental.get_device_policy config.experimental.set_device_policy
        config.experimental_run_functions_eagerly debugging.get_log_device_placement debugging.set_log_device_placement
    """,
    "it joins a program to servers for eager execution: use tf.train.Server and tf.Session(target)": """
        config.experimental_connect_to_cluster config.experimental_connect_to_host
    """,
    "functions are not rewritten: branch with tf.cond, repeat with tf.while_loop": "autograph",
    "it is made by a rewriter of loops that is not here: use tf.map_fn": "vectorized_map",
    "there are no ragged tensors: use tf.SparseTensor, or tf.sequence_mask with padded tensors": """
        RaggedTensor RaggedTensorSpec data.experimental.RaggedTensorStructure ragged
    """,
    "its result or input is a ragged tensor: use tf.strings.split, tf.strings.unicode_transcode and tf.py_func": """
        strings.bytes_split strings.ngrams strings.unicode_decode strings.unicode_decode_with_offsets
        strings.unicode_encode strings.unicode_split strings.unicode_split_with_offsets
    """,
    "Python has no table of the scripts of characters": "strings.unicode_script",
    "neither datasets nor functions take IndexedSlices here: use tf.TensorSpec": "IndexedSlicesSpec",
    "strategies are left out: use tf.train.replica_device_setter and tf.train.SyncReplicasOptimizer": """
        distribute.CrossDeviceOps distribute.HierarchicalCopyAllReduce distribute.InputContext
        distribute.InputReplicationMode distribute.MirroredStrategy distribute.NcclAllReduce
        distribute.OneDeviceStrategy distribute.ReduceOp distribute.ReductionToOneDevice distribute.ReplicaContext
        distribute.Strategy distribute.StrategyExtended distribute.experimental distribute.experimental_set_strategy
        distribute.get_loss_reduction distribute.get_replica_context distribute.get_strategy distribute.has_strategy
        distribute.in_cross_replica_context
    """,
    "it asks a service of one provider: use SimpleClusterResolver, or have tasks register with the control service": """
        distribute.cluster_resolver.GCEClusterResolver
    """,
    "there are kernels for CPUs and GPUs, none for TPUs": "distribute.cluster_resolver.TPUClusterResolver tpu",
    "TPUs are not served: use tf.estimator.Estimator": "estimator.TPUEstimator estimator.tpu",
    "boosted trees are not served: use a library of their own, such as XGBoost": """
        estimator.BoostedTreesClassifier estimator.BoostedTreesEstimator estimator.BoostedTreesRegressor
    """,
    "write a model function, with tf.layers": "estimator.model_to_estimator",
    "export with tf.saved_model and convert with TensorFlow": "lite",
    "programs are compiled without being asked to": "xla",
    _QUANTIZED: """
        dequantize nn.quantized_avg_pool nn.quantized_conv2d nn.quantized_max_pool nn.quantized_relu_x
        quantization.dequantize quantization.quantize quantization.quantized_concat quantize quantize_v2
        quantized_concat
    """,
    "models are not rewritten for integers": "train.do_quantize_training_on_graphdef",
    "it gathers requests of a serving process: tf.train.batch and tf.data gather examples": """
        nondifferentiable_batch_function
    """,
    "messages are parsed in Python: use tf.py_func, or tf.parse_example for tf.train.Example": """
        io.decode_proto io.encode_proto
    """,
    "LMDB's library follows pointers in a file, and a crafted file ends the server: write TFRecords": "LMDBReader",
    "generators with a state of their own are not here: use tf.random.stateless_… with a seed for each step": """
        random.experimental
    """,
    "matrices are tensors here, except LinearOperatorLowerTriangular: use tf.linalg.matmul, solve and kin": """
        linalg.LinearOperator linalg.LinearOperatorAdjoint linalg.LinearOperatorBlockDiag linalg.LinearOperatorCirculant
        linalg.LinearOperatorCirculant2D linalg.LinearOperatorCirculant3D linalg.LinearOperatorComposition
        linalg.LinearOperatorDiag linalg.LinearOperatorFullMatrix linalg.LinearOperatorHouseholder
        linalg.LinearOperatorIdentity linalg.LinearOperatorInversion linalg.LinearOperatorKronecker
        linalg.LinearOperatorLowRankUpdate linalg.LinearOperatorScaledIdentity linalg.LinearOperatorToeplitz
        linalg.LinearOperatorZeros
    """,
    "use tf.contrib.lookup.MutableDenseHashTable, which is the same table": "lookup.experimental",
    "use tf.debugging.assert_rank, tf.assert_equal on tf.shape, and tf.ensure_shape": "debugging.assert_shapes",
    f"{_OBJECTS}: use tf.train.Saver": "train.Checkpoint train.CheckpointManager train.experimental.PythonState",
    f"{_OBJECTS}: use tf.saved_model.simple_save or tf.saved_model.Builder": """
        saved_model.experimental saved_model.save
    """,
    f"{_OBJECTS}: use tf.saved_model.load(sess, tags, export_dir)": "saved_model.load_v2",
    "it wraps calls of TensorFlow's C library, which is not here: Tenfold raises tf.errors itself": """
        errors.raise_exception_on_not_ok_status
    """,
    "it holds operations of TensorFlow's build, and one example: see tf.load_op_library": "user_ops",
    "use tf.test.mock": "test.StubOutForTesting",
    "it switches tf.layers to Keras's way of naming": "layers.experimental",
    f"Tenfold has a part of Keras: use tf.nn, tf.layers and tf.train, {_KERAS}": "keras",
    _MODELS: "keras.Sequential keras.models",
    f"use tf.nn, {_KERAS}": "keras.activations",
    f"use tf.contrib.slim, {_KERAS}": "keras.applications",
    f"use the functions of tf itself, {_KERAS}": "keras.backend",
    f"use hooks of tf.train.MonitoredTrainingSession, {_KERAS}": "keras.callbacks",
    f"use the argument constraint of tf.get_variable, {_KERAS}": "keras.constraints",
    f"use tf.keras.utils.get_file and numpy.load, {_KERAS}": "keras.datasets",
    f"use tf.estimator.Estimator, {_KERAS}": "keras.estimator",
    "use the classes, or tf.initializers": "keras.initializers",
    f"use tf.layers, {_KERAS}": "keras.layers",
    f"use tf.losses, {_KERAS}": "keras.losses",
    f"use tf.metrics, {_KERAS}": "keras.metrics",
    f"use tf.train.experimental.enable_mixed_precision_graph_rewrite, {_KERAS}": "keras.mixed_precision",
    f"use tf.train's optimizers, {_KERAS}": "keras.optimizers",
    f"use tf.data and tf.image, {_KERAS}": "keras.preprocessing",
    f"use tf.contrib.layers.l2_regularizer and its like, {_KERAS}": "keras.regularizers",
}

#: Name below `tf` → why it is left out.
REASONS: dict[str, str] = {}
for _reason, _names in _TABLE.items():
    for _name in _names.split():
        if _name in REASONS:
            raise ValueError(f"tf.{_name} is left out for two reasons")
        REASONS[_name] = _reason
del _reason, _names, _name


def why(name: str) -> str:
    """Why `tf.<name>`, or what has it, is left out; empty for a name that is not."""
    while name:
        if name in REASONS:
            return REASONS[name]
        name = name.rpartition(".")[0]
    return ""


def hint(name: str) -> str:
    """What an error for `tf.<name>` adds: a colon and the reason, or nothing."""
    return f": {reason}" if (reason := why(name)) else ""
