"""Tenfold: `import tenfold as tf`. TensorFlow 1.x's graph and distributed API, name for name.

This file is the table of the public names: each is loaded from its module at its first use, so that importing the
package costs nothing and a program that only feeds a server never loads what it does not use (no grpc, no numba).
"""

from __future__ import annotations

from importlib import import_module
from os import environ as _environ
from typing import Any

from tenfold.lazy_module import make_lazy as _make_lazy

_make_lazy(__name__)

#: Module → its public names; `public=name` where the two differ.
_EXPORTS: dict[str, str] = {
    "tenfold_core.dtypes": """
        DType QUANTIZED_DTYPES as_dtype bfloat16 bool=bool_ complex128 complex64 double float16 float32 float64
        half int16 int32 int64 int8 qint16 qint32 qint8 quint16 quint8 resource string uint16 uint32 uint64 uint8
        variant
    """,
    "tenfold_core.tensor_shape": "Dimension TensorShape dimension_value",
    "tenfold_core.tensor_util": "make_ndarray make_tensor_proto",
    "tenfold_core.device": "DeviceSpec",
    "tenfold_core.errors": "OpError",
    "tenfold.graph": """
        Graph GraphKeys IndexedSlices Operation Tensor add_to_collection add_to_collections colocate_with
        container control_dependencies convert_to_tensor convert_to_tensor_or_indexed_slices device
        get_collection get_collection_ref get_default_graph get_default_session
        get_static_value=constant_value import_graph_def init_scope name_scope op_scope
        register_tensor_conversion_function reset_default_graph
    """,
    "tenfold.graph.graph": "GRAPH_DEF_VERSION",
    "tenfold.ops.array": """
        broadcast_dynamic_shape broadcast_static_shape broadcast_to concat constant expand_dims fill
        identity identity_n is_tensor ones ones_like pad placeholder placeholder_with_default rank reshape shape
        shape_n size squeeze stack stop_gradient tile transpose zeros zeros_like
    """,
    "tenfold.ops.slicing": """
        boolean_mask dynamic_partition dynamic_stitch gather gather_nd invert_permutation one_hot reverse
        reverse_sequence reverse_v2=reverse scatter_nd sequence_mask setdiff1d slice split strided_slice
        unique unstack where where_v2
    """,
    "tenfold.ops.casts": "to_bfloat16 to_complex128 to_complex64",
    "tenfold.ops.math": """
        abs accumulate_n acos acosh add add_n arg_max=argmax arg_min=argmin argmax argmin asin asinh atan
        atan2 atanh bitcast cast ceil cos cosh count_nonzero cumprod cumsum digamma div div_no_nan divide
        equal erf erfc exp expm1 floor floor_div floordiv floormod greater greater_equal is_finite is_inf
        is_nan less less_equal lgamma lin_space=linspace linspace log log1p logical_and logical_not
        logical_or logical_xor matmul maximum minimum mod multiply negative not_equal pow range realdiv
        reciprocal reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod
        reduce_sum rint round rsqrt saturate_cast scalar_mul segment_sum sigmoid sign sin sinh sqrt square
        squared_difference subtract tan tanh to_double
        to_float to_int32 to_int64 truediv truncatediv truncatemod unsorted_segment_sum
    """,
    "tenfold.ops.products": "einsum tensordot",
    "tenfold.ops.clip": """
        clip_by_average_norm clip_by_global_norm clip_by_norm clip_by_value global_norm
    """,
    "tenfold.ops.control_flow": "Assert Print group no_op tuple",
    "tenfold.ops.critical_section": "CriticalSection",
    "tenfold.ops.control_flow_case": "case switch_case",
    "tenfold.ops.control_flow_cond": "cond",
    "tenfold.ops.control_flow_while": "while_loop",
    "tenfold.ops.tensor_array": "TensorArray",
    "tenfold.ops.functional": "foldl foldr map_fn scan",
    "tenfold.ops.numerics": "add_check_numerics_ops verify_tensor_all_finite",
    "tenfold.ops.print_ops": "print",
    "tenfold.ops.custom_gradient": "custom_gradient grad_pass_through recompute_grad",
    "tenfold.ops.check_ops": """
        assert_equal assert_greater assert_greater_equal assert_integer assert_less assert_less_equal
        assert_near assert_negative assert_non_negative assert_non_positive assert_none_equal
        assert_positive assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in
        assert_same_float_dtype assert_scalar assert_type is_non_decreasing is_numeric_tensor
        is_strictly_increasing
    """,
    "tenfold.ops.queues": "FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue",
    "tenfold.ops.accumulators": """
        Barrier ConditionalAccumulator ConditionalAccumulatorBase SparseConditionalAccumulator
    """,
    "tenfold.ops.readers": """
        FixedLengthRecordReader IdentityReader ReaderBase TFRecordReader TextLineReader WholeFileReader
    """,
    "tenfold.ops.random": """
        multinomial random_crop random_gamma random_normal random_poisson random_shuffle random_uniform truncated_normal
    """,
    "tenfold.ops.random_seed": "get_seed set_random_seed",
    "tenfold.ops.script_ops": "numpy_function py_func py_function",
    "tenfold.graph.sparse_tensor": "SparseTensor SparseTensorValue convert_to_tensor_or_sparse_tensor",
    "tenfold.ops.sparse": """
        deserialize_many_sparse serialize_many_sparse serialize_sparse
        sparse_concat sparse_fill_empty_rows sparse_mask sparse_merge sparse_placeholder sparse_reorder
        sparse_reset_shape sparse_reshape sparse_retain sparse_slice sparse_split sparse_tensor_to_dense
        sparse_to_dense sparse_to_indicator sparse_transpose
    """,
    "tenfold.ops.sparse_math": """
        edit_distance sparse_add sparse_matmul sparse_maximum sparse_minimum sparse_reduce_max sparse_reduce_max_sparse
        sparse_reduce_sum sparse_reduce_sum_sparse sparse_segment_mean sparse_segment_sqrt_n sparse_segment_sum
        sparse_softmax sparse_tensor_dense_matmul
    """,
    "tenfold.ops.string": """
        as_string decode_base64 encode_base64 fingerprint reduce_join regex_replace string_join string_strip
        string_to_hash_bucket string_to_hash_bucket_fast string_to_number substr
    """,
    "tenfold.ops.io": "decode_csv decode_raw matching_files read_file write_file",
    "tenfold.ops.type_specs": "SparseTensorSpec TensorArraySpec TensorSpec TypeSpec",
    "tenfold.data.optionals": "OptionalSpec",
    "tenfold.ops.variables": """
        Variable VariableAggregation VariableSynchronization all_variables assert_variables_initialized
        global_variables global_variables_initializer initialize_all_variables initialize_local_variables
        initialize_variables is_variable_initialized local_variables local_variables_initializer
        model_variables moving_average_variables report_uninitialized_variables trainable_variables
        variables_initializer
    """,
    "tenfold.ops.embedding_options": """
        CBFFilter CounterFilter EmbeddingVariableOption GlobalStepEvict InitializerOption L2WeightEvict StorageOption
    """,
    "tenfold.ops.composite_embeddings": "get_dynamic_dimension_embedding_variable get_multihash_variable",
    "tenfold.ops.embedding_variables": "get_embedding_variable",
    "tenfold.train.staged": "make_prefetch_hook staged",
    "tenfold.ops.variable_scope": """
        AUTO_REUSE VariableScope disable_resource_variables enable_resource_variables get_local_variable
        get_variable get_variable_scope no_regularizer resource_variables_enabled variable_creator_scope
        variable_op_scope variable_scope
    """,
    "tenfold.ops.partitioned_variables": """
        create_partitioned_variables fixed_size_partitioner min_max_variable_partitioner
        variable_axis_size_partitioner
    """,
    "tenfold.ops.init_ops": """
        orthogonal_initializer uniform_unit_scaling_initializer
        constant_initializer glorot_normal_initializer glorot_uniform_initializer ones_initializer
        random_normal_initializer random_uniform_initializer truncated_normal_initializer
        variance_scaling_initializer zeros_initializer
    """,
    "tenfold.ops.state_ops": """
        assign assign_add assign_sub count_up_to scatter_add scatter_div scatter_max scatter_min scatter_mul
        scatter_nd_add scatter_nd_sub scatter_nd_update scatter_sub scatter_update
    """,
    "tenfold.gradients.hessians": "hessians",
    "tenfold.gradients": """
        AggregationMethod NoGradient NotDifferentiable RegisterGradient UnconnectedGradients gradients
        no_gradient=NotDifferentiable
    """,
    "tenfold.session.session": "InteractiveSession Session",
    "tenfold.session.tensor_handles": "delete_session_tensor get_session_handle get_session_tensor",
    "tenfold.compat": """
        control_flow_v2_enabled dimension_at_index disable_control_flow_v2 disable_eager_execution
        disable_tensor_equality disable_v2_behavior disable_v2_tensorshape enable_control_flow_v2
        enable_eager_execution enable_tensor_equality enable_v2_behavior enable_v2_tensorshape executing_eagerly
    """,
    "tenfold.load_library": "load_file_system_library load_library load_op_library",
    "tenfold.logging": "get_logger",
    "tenfold.module": "Module",
    "tenfold.ops.generated_ops": """
        batch_to_space_nd betainc check_numerics cholesky cross decode_compressed
        decode_json_example diag diag_part ensure_shape extract_volume_patches fake_quant_with_min_max_args
        fake_quant_with_min_max_args_gradient fake_quant_with_min_max_vars
        fake_quant_with_min_max_vars_gradient fake_quant_with_min_max_vars_per_channel
        fake_quant_with_min_max_vars_per_channel_gradient fft fft2d fft3d guarantee_const ifft
        ifft2d ifft3d igamma igammac matrix_band_part matrix_determinant matrix_inverse matrix_solve
        matrix_square_root matrix_triangular_solve parse_tensor polygamma qr roll segment_max segment_mean segment_min
        segment_prod serialize_tensor space_to_batch_nd string_to_hash_bucket_strong
        tensor_scatter_add tensor_scatter_nd_add=tensor_scatter_add
        tensor_scatter_nd_sub=tensor_scatter_sub tensor_scatter_nd_update=tensor_scatter_update
        tensor_scatter_sub tensor_scatter_update timestamp unravel_index unsorted_segment_max
        unsorted_segment_min unsorted_segment_prod zeta
    """,
    "tenfold.ops.array_batches": "batch_gather batch_scatter_update parallel_stack",
    "tenfold.ops.array_blocks": """
        batch_to_space depth_to_space extract_image_patches required_space_to_batch_paddings space_to_batch
        space_to_depth
    """,
    "tenfold.ops.array_diag": "matrix_diag matrix_diag_part matrix_set_diag matrix_transpose",
    "tenfold.ops.array_repeat": "meshgrid repeat",
    "tenfold.ops.array_sort": "argsort searchsorted sort unique_with_counts",
    "tenfold.ops.confusion_matrix": "confusion_matrix",
    "tenfold.ops.math_complex": "angle complex conj imag real",
    "tenfold.ops.math_histogram": "bincount histogram_fixed_width histogram_fixed_width_bins",
    "tenfold.ops.math_segments": "unsorted_segment_mean unsorted_segment_sqrt_n",
    "tenfold.ops.math_special": "lbeta log_sigmoid",
    "tenfold.ops.linalg": """
        cholesky_solve eye matrix_solve_ls norm self_adjoint_eig self_adjoint_eigvals svd trace
    """,
    "tenfold.ops.string_split": "string_split",
    "tenfold.ops.parsing": """
        FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature parse_example
        parse_single_example
    """,
    "tenfold.ops.parsing_sequences": "parse_single_sequence_example",
    "tenfold.ops.lookup": """
        tables_initializer
    """,
    "tenfold.ops.template": """
        make_template
    """,
    "tenfold.ops.deprecated_names": """
        audio_summary batch_cholesky batch_fft batch_ifft batch_matmul batch_matrix_band_part
        batch_matrix_determinant batch_matrix_diag batch_matrix_diag_part batch_matrix_inverse
        batch_matrix_solve batch_matrix_triangular_solve complex_abs histogram_summary image_summary
        initialize_all_tables inv listdiff merge_all_summaries merge_summary mul neg pack
        scalar_summary select sub unpack
    """,
    "tenfold.versions": """
        __compiler_version__=COMPILER_VERSION __cxx11_abi_flag__=CXX11_ABI_FLAG __git_version__=GIT_VERSION
        __monolithic_build__=MONOLITHIC_BUILD
        COMPILER_VERSION CXX11_ABI_FLAG GIT_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER
        GRAPH_DEF_VERSION_MIN_PRODUCER MONOLITHIC_BUILD VERSION
    """,
    "tenfold_protos.attr_value_pb2": "AttrValue NameAttrList",
    "tenfold_protos.config_pb2": (
        "ConfigProto ExecutorPolicy GPUOptions GraphOptions OptimizerOptions RunMetadata RunOptions"
    ),
    "tenfold_protos.event_pb2": "Event LogMessage SessionLog",
    "tenfold_protos.graph_pb2": "GraphDef",
    "tenfold_protos.meta_graph_pb2": "MetaGraphDef TensorInfo",
    "tenfold_protos.node_def_pb2": "NodeDef",
    "tenfold_protos.op_def_pb2": "OpDef OpList",
    "tenfold_protos.histogram_pb2": "HistogramProto",
    "tenfold_protos.summary_pb2": "Summary SummaryMetadata",
    "tenfold_protos.tensor_pb2": "TensorProto",
    "tenfold_protos.tensor_shape_pb2": "TensorShapeProto",
    "tenfold_protos.variable_pb2": "VariableDef",
}

#: Public name → the module that it stands for.
_NAMESPACES: dict[str, str] = {
    "app": "tenfold.app",
    "compat": "tenfold.compat",
    "config": "tenfold.config",
    "contrib": "tenfold.contrib",
    "control": "tenfold.control",
    "data": "tenfold.data",
    "distribute": "tenfold.distribute",
    "distributions": "tenfold.distributions",
    "errors": "tenfold_core.errors",
    "estimator": "tenfold.estimator",
    "examples": "tenfold.examples",
    "feature_column": "tenfold.feature_column",
    "flags": "tenfold.flags",
    "gfile": "tenfold.gfile",
    "graph_util": "tenfold.graph_util",
    "keras": "tenfold.keras",
    "layers": "tenfold.layers",
    "logging": "tenfold.logging",
    "losses": "tenfold.losses",
    "metrics": "tenfold.metrics",
    "nest": "tenfold.nest",
    "profiler": "tenfold.profiler",
    "python_io": "tenfold.python_io",
    "pywrap_tensorflow": "tenfold.compat.python.pywrap_tensorflow",
    "raw_ops": "tenfold.ops.raw_ops",
    "resource_loader": "tenfold.resource_loader",
    "saved_model": "tenfold.saved_model",
    "sets": "tenfold.ops.sets",
    "sparse": "tenfold.sparse",
    "summary": "tenfold.summary",
    "sysconfig": "tenfold.sysconfig",
    "test": "tenfold.test",
    "train": "tenfold.train",
    "versions": "tenfold.versions",
}

#: Namespaces that gather names of several modules; namespaces.py has their table.
_GATHERED = (
    *("audio", "bitwise", "debugging", "dtypes", "image", "initializers", "io", "linalg", "lookup", "manip", "math"),
    *("nn", "quantization", "queue", "random", "signal", "spectral", "strings", "version"),
)

_HOME: dict[str, tuple[str, str]] = {}
for _module, _names in _EXPORTS.items():
    for _name in _names.split():
        _public, _, _attribute = _name.partition("=")
        if _public in _HOME:
            raise ValueError(f"tf.{_public} is exported twice: from {_HOME[_public][0]} and from {_module}")
        _HOME[_public] = (_module, _attribute or _public)
del _module, _names, _name, _public, _attribute

#: `x[tf.newaxis]` inserts a dimension.
newaxis = None


def __getattr__(name: str) -> Any:
    if name in _HOME:
        module, attribute = _HOME[name]
        if module.startswith(("tenfold.graph", "tenfold.session")):
            # The ops register the conversions to tensors and the operators of tensors.
            import_module("tenfold.ops")
        value = getattr(import_module(module), attribute)
    elif name in _NAMESPACES:
        value = import_module(_NAMESPACES[name])
    elif name in _GATHERED:
        from tenfold.namespaces import namespace

        value = namespace(name)
    elif name == "__version__":
        from tenfold import versions

        value = versions.tenfold
    else:
        from tenfold.left_out import hint

        raise AttributeError(f"module 'tenfold' has no attribute {name!r}{hint(name) or _nearest(name)}")
    globals()[name] = value
    return value


def _nearest(name: str) -> str:
    """A hint for a name that is misspelt, or that TensorFlow 1.x has and this package does not."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    near = get_close_matches(name, [*_HOME, *_NAMESPACES, *_GATHERED], n=2)
    return f"; did you mean {' or '.join('tf.' + other for other in near)}?" if near else ""


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if not name.startswith("_")), *_HOME, *_NAMESPACES, *_GATHERED})


if _environ.get("TENFOLD_CONTROL") and not _environ.get("TENFOLD_RUN"):
    # a program by hand that will be listed as a run: what argparse parses from here on are its parameters
    import_module("tenfold.runs.recorded").watch()
