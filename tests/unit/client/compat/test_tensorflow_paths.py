"""The table of TensorFlow's module paths: every row is there, and programs find in it what they ask for."""

from __future__ import annotations

import importlib
import subprocess
import sys

from tenfold.compat import as_tensorflow
from tenfold.compat.tensorflow_paths import HOLDERS, HOMES, homes_of

#: What programs import of each path; the commonest of public programs of TensorFlow 1.
IMPORTS = """
tensorflow.contrib.framework.python.ops: arg_scope add_arg_scope variables
tensorflow.contrib.framework.python.ops.variables: get_or_create_global_step
tensorflow.contrib.layers.python.layers: layers
tensorflow.contrib.session_bundle: bundle_shim constants exporter gc manifest_pb2 session_bundle
tensorflow.contrib.session_bundle.exporter: Exporter generic_signature
tensorflow.contrib.session_bundle.manifest_pb2: Signatures
tensorflow.core.example: example_pb2 feature_pb2
tensorflow.core.framework: graph_pb2 types_pb2 attr_value_pb2 summary_pb2 node_def_pb2 step_stats_pb2 variable_pb2
tensorflow.core.framework.summary_pb2: Summary
tensorflow.core.protobuf: config_pb2 saver_pb2 meta_graph_pb2 rewriter_config_pb2 cluster_pb2 tensorflow_server_pb2
tensorflow.core.protobuf.tensorflow_server_pb2: ClusterDef
tensorflow.core.util: event_pb2
tensorflow.python: debug pywrap_tensorflow tf2
tensorflow.python.client: device_lib session timeline
tensorflow.python.client.device_lib: list_local_devices
tensorflow.python.compat.compat: forward_compatible forward_compatibility_horizon
tensorflow.python.debug: LocalCLIDebugHook LocalCLIDebugWrapperSession has_inf_or_nan
tensorflow.python.eager: context
tensorflow.python.eager.context: executing_eagerly graph_mode in_graph_mode
tensorflow.python.framework: constant_op dtypes errors errors_impl graph_util importer indexed_slices load_library
tensorflow.python.framework: meta_graph op_def_registry ops random_seed smart_cond sparse_tensor tensor_shape
tensorflow.python.framework: tensor_util test_util common_shapes device
tensorflow.python.framework.constant_op: constant
tensorflow.python.framework.errors_impl: OutOfRangeError UnknownError
tensorflow.python.framework.ops: convert_to_tensor Graph GraphKeys Tensor name_scope RegisterGradient RegisterShape
tensorflow.python.framework.ops: control_dependencies get_collection add_to_collection colocate_with IndexedSlices
tensorflow.python.framework.ops: internal_convert_to_tensor get_default_graph reset_default_graph NotDifferentiable
tensorflow.python.framework.test_util: TensorFlowTestCase run_in_graph_and_eager_modes run_v1_only
tensorflow.python.framework.tensor_shape: TensorShape Dimension as_shape unknown_shape dimension_value
tensorflow.python.framework.tensor_util: constant_value make_tensor_proto is_tensor
tensorflow.python.framework.smart_cond: smart_cond smart_constant_value
tensorflow.python.layers: base core convolutional layers normalization pooling utils
tensorflow.python.layers.base: Layer InputSpec
tensorflow.python.layers.convolutional: Conv2D conv2d SeparableConv2D
tensorflow.python.layers.core: Dense dense
tensorflow.python.layers.utils: smart_cond constant_value normalize_tuple conv_output_length
tensorflow.python.lib.io: file_io tf_record python_io
tensorflow.python.lib.io.file_io: FileIO file_exists read_file_to_string recursive_create_dir
tensorflow.python.ops: array_ops check_ops clip_ops control_flow_ops data_flow_ops embedding_ops functional_ops
tensorflow.python.ops: gen_array_ops gen_math_ops gen_nn_ops gradients gradients_impl image_ops init_ops inplace_ops
tensorflow.python.ops: io_ops linalg_ops logging_ops lookup_ops losses math_ops metrics nn nn_impl nn_ops parsing_ops
tensorflow.python.ops: partitioned_variables random_ops resource_variable_ops resources rnn rnn_cell rnn_cell_impl
tensorflow.python.ops: script_ops sparse_ops standard_ops state_ops string_ops summary_op_util template
tensorflow.python.ops: tensor_array_ops variable_scope variables control_flow_util array_grad
tensorflow.python.ops.array_ops: shape_internal reshape concat expand_dims where gather placeholder rank zeros
tensorflow.python.ops.control_flow_ops: cond while_loop group switch merge with_dependencies tuple no_op
tensorflow.python.ops.data_flow_ops: StagingArea RecordInput FIFOQueue QueueBase dynamic_stitch
tensorflow.python.ops.gen_array_ops: fill reshape
tensorflow.python.ops.gradients: gradients
tensorflow.python.ops.gradients_impl: gradients AggregationMethod
tensorflow.python.ops.init_ops: Initializer zeros_initializer
tensorflow.python.ops.lookup_ops: index_table_from_tensor index_table_from_file HashTable tables_initializer
tensorflow.python.ops.losses.losses: softmax_cross_entropy compute_weighted_loss
tensorflow.python.ops.math_ops: matmul reduce_sum tanh cast add_n sigmoid square
tensorflow.python.ops.nn_ops: conv2d bias_add softmax dropout
tensorflow.python.ops.partitioned_variables: variable_axis_size_partitioner
tensorflow.python.ops.resource_variable_ops: ResourceVariable
tensorflow.python.ops.rnn: dynamic_rnn static_rnn _transpose_batch_time rnn_cell_impl
tensorflow.python.ops.rnn_cell: LSTMCell LSTMStateTuple
tensorflow.python.ops.rnn_cell_impl: RNNCell _Linear _linear _concat assert_like_rnncell GRUCell
tensorflow.python.ops.standard_ops: tensordot
tensorflow.python.ops.state_ops: assign init_variable
tensorflow.python.ops.tensor_array_ops: TensorArray
tensorflow.python.ops.variable_scope: get_variable variable_scope VariableScope variable
tensorflow.python.ops.variables: Variable VariableV1 RefVariable trainable_variables
tensorflow.python.platform: gfile flags app test googletest tf_logging resource_loader sysconfig benchmark
tensorflow.python.platform.app: run
tensorflow.python.pywrap_tensorflow: NewCheckpointReader
tensorflow.python.saved_model: builder loader tag_constants signature_constants signature_def_utils utils constants
tensorflow.python.saved_model: saved_model builder_impl loader_impl utils_impl
tensorflow.python.summary: summary summary_iterator
tensorflow.python.summary.writer.writer: FileWriter
tensorflow.python.tools: freeze_graph inspect_checkpoint optimize_for_inference_lib strip_unused_lib
tensorflow.python.tools.freeze_graph: freeze_graph
tensorflow.python.tools.inspect_checkpoint: print_tensors_in_checkpoint_file
tensorflow.python.estimator: estimator estimator_lib export exporter inputs model_fn run_config training util
tensorflow.python.estimator.estimator: Estimator WarmStartSettings
tensorflow.python.estimator.export.export: ServingInputReceiver build_raw_serving_input_receiver_fn
tensorflow.python.estimator.export.export_output: PredictOutput
tensorflow.python.estimator.inputs: numpy_io pandas_io
tensorflow.python.estimator.inputs.queues.feeding_functions: _enqueue_data
tensorflow.python.estimator.model_fn: EstimatorSpec
tensorflow.python.estimator.run_config: RunConfig TaskType
tensorflow.python.estimator.training: TrainSpec EvalSpec train_and_evaluate
tensorflow_estimator.python.estimator.canned: dnn head linear
tensorflow_estimator.python.estimator.estimator: Estimator
tensorflow.python.training: adam basic_session_run_hooks checkpoint_management checkpoint_utils coordinator
tensorflow.python.training: device_setter evaluation gradient_descent learning_rate_decay monitored_session momentum
tensorflow.python.training: optimizer queue_runner queue_runner_impl saver server_lib session_manager session_run_hook
tensorflow.python.training: slot_creator supervisor sync_replicas_optimizer training training_ops training_util input
tensorflow.python.training: moving_averages saveable_object summary_io warm_starting_util
tensorflow.python.training.basic_session_run_hooks: StopAtStepHook SecondOrStepTimer
tensorflow.python.training.monitored_session: MonitoredSession Scaffold ChiefSessionCreator
tensorflow.python.training.moving_averages: assign_moving_average ExponentialMovingAverage
tensorflow.python.training.optimizer: Optimizer
tensorflow.python.training.training_util: get_or_create_global_step
tensorflow.python.training.training_ops: resource_apply_adam
tensorflow.python.util: compat deprecation function_utils keyword_args nest tf_contextlib tf_decorator tf_export
tensorflow.python.util: tf_inspect all_util lazy_loader object_identity tf_should_use
tensorflow.python.util.compat: as_bytes as_str as_text collections_abc
tensorflow.python.util.deprecation: deprecated deprecated_args deprecated_arg_values
tensorflow.python.util.nest: flatten map_structure pack_sequence_as is_sequence
tensorflow.python.util.tf_export: tf_export
"""

PROGRAM = """
import importlib, sys
from tenfold.compat import as_tensorflow
as_tensorflow.install()
missing = []
for line in sys.stdin.read().strip().splitlines():
    module, _, names = line.partition(": ")
    for name in names.split():
        scope = {}
        try:
            exec(f"from {module} import {name}", scope)
        except ImportError as error:
            missing.append(f"{module}.{name}: {error}")
print("\\n".join(missing))
"""


def test_the_modules_of_every_row_are_there() -> None:
    named = sorted({home for row in HOMES.values() for home in row.split()})

    assert [home for home in named if as_tensorflow._module(home) is None] == []
    assert not HOLDERS & HOMES.keys()


def test_programs_find_what_they_import() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=IMPORTS, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_rules_for_what_is_in_no_row() -> None:
    assert homes_of("core.framework.graph_pb2") == ("tenfold_protos.graph_pb2",)
    assert homes_of("core.protobuf.config_pb2")[0] == "tenfold_protos.config_pb2"
    assert homes_of("python.ops.gen_array_ops") == ("tenfold.ops.generated_ops",)
    assert homes_of("contrib.slim.python.slim.nets.vgg") == (
        *("tenfold.contrib.slim.nets.vgg", "tenfold.contrib.slim.vgg", "tenfold.contrib.slim"),
    )
    assert homes_of("contrib.slim.python.slim.nets.inception_v3") == ("tenfold.contrib.slim.nets.inception",)
    assert homes_of("contrib.rnn") == ()
    assert as_tensorflow._module("tenfold.nothing.at_all") is None
    assert as_tensorflow._module("tenfold.nn") is importlib.import_module("tenfold").nn
