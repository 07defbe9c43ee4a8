"""Which test files of TensorFlow are run, which of their tests say nothing about a server, and why others do not pass.

Read by run.py and report.py. Paths are those of TensorFlow's repository at 2.21.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_K = "tensorflow/python/kernel_tests"

_LIB = "tensorflow/core/lib"
#: Test file → folders of files that it reads by their paths.
DATA = {
    "tensorflow/python/ops/image_ops_test.py": tuple(
        f"{_LIB}/{kind}/testdata" for kind in ("bmp", "gif", "jpeg", "png", "psnr", "ssim")
    ),
    "tensorflow/contrib/framework/python/ops/checkpoint_ops_test.py": ("tensorflow/contrib/framework/testdata",),
    "tensorflow/contrib/data/python/kernel_tests/lmdb_dataset_op_test.py": (f"{_LIB}/lmdb/testdata",),
    "tensorflow/python/feature_column/feature_column_v2_test.py": ("tensorflow/python/feature_column/testdata",),
    **dict.fromkeys(
        (f"{_K}/decode_image_op_test.py", f"{_K}/image_ops/decode_image_op_test.py"),
        tuple(f"{_LIB}/{kind}/testdata" for kind in ("bmp", "gif", "jpeg", "png")),
    ),
}

#: Path of each test file, by family. The families of REQUIRED are held to 95 %.
REQUIRED = (
    "tensorflow/python/client/session_test.py",
    "tensorflow/python/client/session_partial_run_test.py",
    "tensorflow/python/client/session_list_devices_test.py",
    "tensorflow/python/training/server_lib_test.py",
    f"{_K}/variables/variables_test.py",
    f"{_K}/variables/variable_ops_test.py",
    f"{_K}/data_structures/fifo_queue_test.py",
    f"{_K}/control_flow/control_flow_ops_py_test.py",
    "tensorflow/python/training/gradient_descent_test.py",
    "tensorflow/python/training/adam_test.py",
    "tensorflow/python/training/momentum_test.py",
)

#: Twenty of the files that were in neither list: the first of them all, put in an order by a seed, that send something
#: and need no operation that is not here.
_DRAWN = (
    "tensorflow/python/ops/parallel_for/gradients_test.py",
    f"{_K}/linalg/linear_operator_composition_test.py",
    f"{_K}/nn_ops/conv_ops_3d_test.py",
    "tensorflow/python/ops/nn_loss_scaling_utilities_test.py",
    "tensorflow/python/ops/nn_fused_batchnorm_d9m_test.py",
    f"{_K}/math_ops/bincount_op_test.py",
    "tensorflow/python/framework/meta_graph_test.py",
    f"{_K}/distributions/identity_bijector_test.py",
    "tensorflow/python/training/experimental/mixed_precision_test.py",
    "tensorflow/python/ops/bincount_ops_test.py",
    f"{_K}/array_ops/identity_op_py_test.py",
    f"{_K}/distributions/gamma_test.py",
    f"{_K}/array_ops/diag_op_test.py",
    "tensorflow/python/training/experimental/loss_scale_test.py",
    "tensorflow/python/ops/clip_ops_test.py",
    f"{_K}/math_ops/cumulative_logsumexp_test.py",
    "tensorflow/python/ops/ragged/ragged_segment_ids_to_row_splits_op_test.py",
    f"{_K}/nn_ops/pool_test.py",
    f"{_K}/distributions/normal_test.py",
    f"{_K}/math_ops/division_past_test.py",
)

FURTHER = (
    "tensorflow/python/client/timeline_test.py",
    "tensorflow/python/training/server_lib_multiple_containers_test.py",
    "tensorflow/python/training/server_lib_same_variables_clear_container_test.py",
    "tensorflow/python/training/server_lib_same_variables_clear_test.py",
    "tensorflow/python/training/server_lib_same_variables_no_clear_test.py",
    "tensorflow/python/training/server_lib_sparse_job_test.py",
    f"{_K}/data_structures/padding_fifo_queue_test.py",
    f"{_K}/random/random_shuffle_queue_test.py",
    f"{_K}/data_structures/priority_queue_test.py",
    f"{_K}/data_structures/conditional_accumulator_test.py",
    f"{_K}/sparse_ops/sparse_conditional_accumulator_test.py",
    f"{_K}/data_structures/tensor_array_ops_test.py",
    f"{_K}/data_structures/stack_ops_test.py",
    f"{_K}/data_structures/barrier_ops_test.py",
    f"{_K}/data_structures/stage_op_test.py",
    f"{_K}/data_structures/map_stage_op_test.py",
    f"{_K}/data_structures/list_ops_test.py",
    f"{_K}/data_structures/lookup_ops_test.py",
    f"{_K}/variables/resource_variable_ops_test.py",
    f"{_K}/array_ops/scatter_ops_test.py",
    f"{_K}/array_ops/array_ops_test.py",
    f"{_K}/math_ops/cwise_ops_test.py",
    f"{_K}/math_ops/cwise_ops_binary_test.py",
    f"{_K}/math_ops/cwise_ops_unary_test.py",
    f"{_K}/math_ops/reduction_ops_test.py",
    f"{_K}/nn_ops/conv_ops_test.py",
    f"{_K}/nn_ops/pooling_ops_test.py",
    f"{_K}/nn_ops/pooling_ops_3d_test.py",
    f"{_K}/control_flow/cond_v2_test.py",
    f"{_K}/control_flow/while_v2_test.py",
    f"{_K}/control_flow/functional_ops_test.py",
    "tensorflow/python/framework/function_test.py",
    "tensorflow/python/training/queue_runner_test.py",
    "tensorflow/python/training/input_test.py",
    "tensorflow/python/training/saver_test.py",
    "tensorflow/python/training/monitored_session_test.py",
    "tensorflow/python/training/sync_replicas_optimizer_test.py",
    f"{_K}/io_ops/reader_ops_test.py",
    f"{_K}/io_ops/save_restore_ops_test.py",
    f"{_K}/io_ops/decode_csv_op_test.py",
    f"{_K}/io_ops/parsing_ops_test.py",
    f"{_K}/io_ops/parse_single_example_op_test.py",
    f"{_K}/strings_ops/as_string_op_test.py",
    f"{_K}/strings_ops/reduce_join_op_test.py",
    f"{_K}/strings_ops/string_join_op_test.py",
    f"{_K}/strings_ops/string_to_number_op_test.py",
    f"{_K}/strings_ops/string_split_op_test.py",
    f"{_K}/strings_ops/string_to_hash_bucket_op_test.py",
    f"{_K}/strings_ops/substr_op_test.py",
    f"{_K}/random/random_ops_test.py",
    f"{_K}/math_ops/segment_reduction_ops_test.py",
    f"{_K}/math_ops/matmul_op_test.py",
    f"{_K}/math_ops/batch_matmul_op_test.py",
    f"{_K}/sparse_ops/sparse_ops_test.py",
    f"{_K}/sparse_ops/sparse_matmul_op_test.py",
    f"{_K}/nn_ops/softmax_op_test.py",
    f"{_K}/nn_ops/xent_op_test.py",
    f"{_K}/nn_ops/bias_op_test.py",
    f"{_K}/nn_ops/relu_op_test.py",
    f"{_K}/nn_ops/embedding_ops_test.py",
    "tensorflow/python/ops/nn_fused_batchnorm_test.py",
    f"{_K}/image_ops/decode_png_op_test.py",
    f"{_K}/image_ops/decode_bmp_op_test.py",
    f"{_K}/image_ops/decode_image_op_test.py",
    f"{_K}/image_ops/draw_bounding_box_op_test.py",
    f"{_K}/image_ops/attention_ops_test.py",
    f"{_K}/image_ops/extract_image_patches_op_test.py",
    "tensorflow/python/ops/image_grad_test.py",
    "tensorflow/python/ops/image_ops_test.py",
    f"{_K}/array_ops/fingerprint_op_test.py",
    f"{_K}/array_ops/cast_op_test.py",
    f"{_K}/array_ops/concat_op_test.py",
    f"{_K}/array_ops/gather_nd_op_test.py",
    f"{_K}/array_ops/gather_op_test.py",
    f"{_K}/array_ops/one_hot_op_test.py",
    f"{_K}/array_ops/pad_op_test.py",
    f"{_K}/array_ops/reverse_sequence_op_test.py",
    f"{_K}/array_ops/scatter_nd_ops_test.py",
    f"{_K}/array_ops/shape_ops_test.py",
    f"{_K}/array_ops/slice_op_test.py",
    f"{_K}/array_ops/stack_op_test.py",
    f"{_K}/array_ops/split_op_test.py",
    f"{_K}/array_ops/unique_op_test.py",
    f"{_K}/array_ops/where_op_test.py",
    f"{_K}/data_structures/dynamic_partition_op_test.py",
    f"{_K}/data_structures/dynamic_stitch_op_test.py",
    f"{_K}/data_structures/listdiff_op_test.py",
    f"{_K}/math_ops/in_topk_op_test.py",
    f"{_K}/math_ops/topk_op_test.py",
    f"{_K}/nn_ops/rnn_test.py",
    f"{_K}/sparse_ops/sparse_add_op_test.py",
    f"{_K}/sparse_ops/sparse_concat_op_test.py",
    f"{_K}/sparse_ops/sparse_reshape_op_test.py",
    f"{_K}/sparse_ops/sparse_serialization_ops_test.py",
    f"{_K}/sparse_ops/sparse_slice_op_test.py",
    f"{_K}/sparse_ops/sparse_to_dense_op_py_test.py",
    *_DRAWN,
)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A test that passes against TensorFlow's server, and why it is left out or does not pass here."""

    file: str
    test: str  #: the end of the test's id, "Class.method"; a "*" stands for anything
    reason: str

    def covers(self, file: str, test: str) -> bool:
        own = test.split(".", 1)[-1]
        return file == self.file and re.fullmatch(".*".join(map(re.escape, self.test.split("*"))), own) is not None


#: Tests that say nothing about a server.
EXCLUDED: tuple[Exclusion, ...] = (
    Exclusion(
        f"{_K}/array_ops/array_ops_test.py",
        "ConcatSliceResourceTest.testConcatSlice",
        "its ops are in TensorFlow's library of test doubles, which no server of a release has",
    ),
)

_LOWERED = (
    "a branch or loop stays one node only if the client says so; otherwise its parts may be on several tasks; "
    "here it leaves the attribute out"
)

#: Tests that count, and do not pass, for a reason that their error does not tell.
EXPLAINED: tuple[Exclusion, ...] = (
    Exclusion(
        "tensorflow/python/framework/function_test.py",
        "FunctionInlineControlTest.testFoo0 (True)",
        "every function is put in place where it is called, also one marked _noinline: no trace shows the call",
    ),
    Exclusion(
        f"{_K}/control_flow/while_v2_test.py",
        "WhileV2Test.testDisableLowering",
        _LOWERED,
    ),
    Exclusion(f"{_K}/control_flow/cond_v2_test.py", "CondV2Test.testLoweringDisabledInXLA", _LOWERED),
    Exclusion(
        f"{_K}/data_structures/tensor_array_ops_test.py",
        "TensorArrayTest.testSkipEagerTensorArrayGetsDeviceFromFirstWrite",
        "the statistics of a task that receives a tensor name the transfer by the node that sent it",
    ),
    Exclusion(
        f"{_K}/array_ops/array_ops_test.py",
        "OperatorShapeTest.testReshapeWithManyDims",
        "a tensor of 254 dimensions: NumPy's have 64 at most",
    ),
    Exclusion(
        f"{_K}/array_ops/stack_op_test.py",
        "StackOpTest.testQTypes",
        "numbers of quantized types are only moved about here: it compares some",
    ),
)


def resolve(name: str) -> str:
    """The path of a file named by its path, its name or its stem. Raises KeyError with what there is."""
    known = (*REQUIRED, *FURTHER)
    for path in known:
        if name == path or name.removesuffix(".py") == path.rsplit("/", 1)[-1].removesuffix(".py"):
            return path
    if "/" in name:
        return name
    raise KeyError(f"no test file {name!r}; give its path in TensorFlow's repository or one of {', '.join(known)}")
