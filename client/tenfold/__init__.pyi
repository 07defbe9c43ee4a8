# Written by `make stubs` from the table of tenfold/__init__.py.

from tenfold import app
from tenfold import compat
from tenfold import config
from tenfold import contrib
from tenfold import control
from tenfold import data
from tenfold import distribute
from tenfold import distributions
from tenfold import estimator
from tenfold import examples
from tenfold import feature_column
from tenfold import flags
from tenfold import gfile
from tenfold import graph_util
from tenfold import keras
from tenfold import layers
from tenfold import logging
from tenfold import losses
from tenfold import metrics
from tenfold import nest
from tenfold import profiler
from tenfold import python_io
from tenfold import resource_loader
from tenfold import saved_model
from tenfold import sparse
from tenfold import summary
from tenfold import sysconfig
from tenfold import test
from tenfold import train
from tenfold import versions
from tenfold.compat import control_flow_v2_enabled
from tenfold.compat import dimension_at_index
from tenfold.compat import disable_control_flow_v2
from tenfold.compat import disable_eager_execution
from tenfold.compat import disable_tensor_equality
from tenfold.compat import disable_v2_behavior
from tenfold.compat import disable_v2_tensorshape
from tenfold.compat import enable_control_flow_v2
from tenfold.compat import enable_eager_execution
from tenfold.compat import enable_tensor_equality
from tenfold.compat import enable_v2_behavior
from tenfold.compat import enable_v2_tensorshape
from tenfold.compat import executing_eagerly
from tenfold.compat.python import pywrap_tensorflow
from tenfold.data.optionals import OptionalSpec
from tenfold.gradients import AggregationMethod
from tenfold.gradients import NoGradient
from tenfold.gradients import NotDifferentiable
from tenfold.gradients import NotDifferentiable as no_gradient
from tenfold.gradients import RegisterGradient
from tenfold.gradients import UnconnectedGradients
from tenfold.gradients import gradients
from tenfold.gradients.hessians import hessians
from tenfold.graph import Graph
from tenfold.graph import GraphKeys
from tenfold.graph import IndexedSlices
from tenfold.graph import Operation
from tenfold.graph import Tensor
from tenfold.graph import add_to_collection
from tenfold.graph import add_to_collections
from tenfold.graph import colocate_with
from tenfold.graph import constant_value as get_static_value
from tenfold.graph import container
from tenfold.graph import control_dependencies
from tenfold.graph import convert_to_tensor
from tenfold.graph import convert_to_tensor_or_indexed_slices
from tenfold.graph import device
from tenfold.graph import get_collection
from tenfold.graph import get_collection_ref
from tenfold.graph import get_default_graph
from tenfold.graph import get_default_session
from tenfold.graph import import_graph_def
from tenfold.graph import init_scope
from tenfold.graph import name_scope
from tenfold.graph import op_scope
from tenfold.graph import register_tensor_conversion_function
from tenfold.graph import reset_default_graph
from tenfold.graph.graph import GRAPH_DEF_VERSION
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.graph.sparse_tensor import SparseTensorValue
from tenfold.graph.sparse_tensor import convert_to_tensor_or_sparse_tensor
from tenfold.load_library import load_file_system_library
from tenfold.load_library import load_library
from tenfold.load_library import load_op_library
from tenfold.logging import get_logger
from tenfold.module import Module
from tenfold.namespace_types import audio
from tenfold.namespace_types import bitwise
from tenfold.namespace_types import debugging
from tenfold.namespace_types import dtypes
from tenfold.namespace_types import image
from tenfold.namespace_types import initializers
from tenfold.namespace_types import io
from tenfold.namespace_types import linalg
from tenfold.namespace_types import lookup
from tenfold.namespace_types import manip
from tenfold.namespace_types import math
from tenfold.namespace_types import nn
from tenfold.namespace_types import quantization
from tenfold.namespace_types import queue
from tenfold.namespace_types import random
from tenfold.namespace_types import signal
from tenfold.namespace_types import spectral
from tenfold.namespace_types import strings
from tenfold.namespace_types import version
from tenfold.ops import raw_ops
from tenfold.ops import sets
from tenfold.ops.accumulators import Barrier
from tenfold.ops.accumulators import ConditionalAccumulator
from tenfold.ops.accumulators import ConditionalAccumulatorBase
from tenfold.ops.accumulators import SparseConditionalAccumulator
from tenfold.ops.array import broadcast_dynamic_shape
from tenfold.ops.array import broadcast_static_shape
from tenfold.ops.array import broadcast_to
from tenfold.ops.array import concat
from tenfold.ops.array import constant
from tenfold.ops.array import expand_dims
from tenfold.ops.array import fill
from tenfold.ops.array import identity
from tenfold.ops.array import identity_n
from tenfold.ops.array import is_tensor
from tenfold.ops.array import ones
from tenfold.ops.array import ones_like
from tenfold.ops.array import pad
from tenfold.ops.array import placeholder
from tenfold.ops.array import placeholder_with_default
from tenfold.ops.array import rank
from tenfold.ops.array import reshape
from tenfold.ops.array import shape
from tenfold.ops.array import shape_n
from tenfold.ops.array import size
from tenfold.ops.array import squeeze
from tenfold.ops.array import stack
from tenfold.ops.array import stop_gradient
from tenfold.ops.array import tile
from tenfold.ops.array import transpose
from tenfold.ops.array import zeros
from tenfold.ops.array import zeros_like
from tenfold.ops.array_batches import batch_gather
from tenfold.ops.array_batches import batch_scatter_update
from tenfold.ops.array_batches import parallel_stack
from tenfold.ops.array_blocks import batch_to_space
from tenfold.ops.array_blocks import depth_to_space
from tenfold.ops.array_blocks import extract_image_patches
from tenfold.ops.array_blocks import required_space_to_batch_paddings
from tenfold.ops.array_blocks import space_to_batch
from tenfold.ops.array_blocks import space_to_depth
from tenfold.ops.array_diag import matrix_diag
from tenfold.ops.array_diag import matrix_diag_part
from tenfold.ops.array_diag import matrix_set_diag
from tenfold.ops.array_diag import matrix_transpose
from tenfold.ops.array_repeat import meshgrid
from tenfold.ops.array_repeat import repeat
from tenfold.ops.array_sort import argsort
from tenfold.ops.array_sort import searchsorted
from tenfold.ops.array_sort import sort
from tenfold.ops.array_sort import unique_with_counts
from tenfold.ops.casts import to_bfloat16
from tenfold.ops.casts import to_complex128
from tenfold.ops.casts import to_complex64
from tenfold.ops.check_ops import assert_equal
from tenfold.ops.check_ops import assert_greater
from tenfold.ops.check_ops import assert_greater_equal
from tenfold.ops.check_ops import assert_integer
from tenfold.ops.check_ops import assert_less
from tenfold.ops.check_ops import assert_less_equal
from tenfold.ops.check_ops import assert_near
from tenfold.ops.check_ops import assert_negative
from tenfold.ops.check_ops import assert_non_negative
from tenfold.ops.check_ops import assert_non_positive
from tenfold.ops.check_ops import assert_none_equal
from tenfold.ops.check_ops import assert_positive
from tenfold.ops.check_ops import assert_proper_iterable
from tenfold.ops.check_ops import assert_rank
from tenfold.ops.check_ops import assert_rank_at_least
from tenfold.ops.check_ops import assert_rank_in
from tenfold.ops.check_ops import assert_same_float_dtype
from tenfold.ops.check_ops import assert_scalar
from tenfold.ops.check_ops import assert_type
from tenfold.ops.check_ops import is_non_decreasing
from tenfold.ops.check_ops import is_numeric_tensor
from tenfold.ops.check_ops import is_strictly_increasing
from tenfold.ops.clip import clip_by_average_norm
from tenfold.ops.clip import clip_by_global_norm
from tenfold.ops.clip import clip_by_norm
from tenfold.ops.clip import clip_by_value
from tenfold.ops.clip import global_norm
from tenfold.ops.composite_embeddings import get_dynamic_dimension_embedding_variable
from tenfold.ops.composite_embeddings import get_multihash_variable
from tenfold.ops.confusion_matrix import confusion_matrix
from tenfold.ops.control_flow import Assert
from tenfold.ops.control_flow import Print
from tenfold.ops.control_flow import group
from tenfold.ops.control_flow import no_op
from tenfold.ops.control_flow import tuple
from tenfold.ops.control_flow_case import case
from tenfold.ops.control_flow_case import switch_case
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.control_flow_while import while_loop
from tenfold.ops.critical_section import CriticalSection
from tenfold.ops.custom_gradient import custom_gradient
from tenfold.ops.custom_gradient import grad_pass_through
from tenfold.ops.custom_gradient import recompute_grad
from tenfold.ops.deprecated_names import audio_summary
from tenfold.ops.deprecated_names import batch_cholesky
from tenfold.ops.deprecated_names import batch_fft
from tenfold.ops.deprecated_names import batch_ifft
from tenfold.ops.deprecated_names import batch_matmul
from tenfold.ops.deprecated_names import batch_matrix_band_part
from tenfold.ops.deprecated_names import batch_matrix_determinant
from tenfold.ops.deprecated_names import batch_matrix_diag
from tenfold.ops.deprecated_names import batch_matrix_diag_part
from tenfold.ops.deprecated_names import batch_matrix_inverse
from tenfold.ops.deprecated_names import batch_matrix_solve
from tenfold.ops.deprecated_names import batch_matrix_triangular_solve
from tenfold.ops.deprecated_names import complex_abs
from tenfold.ops.deprecated_names import histogram_summary
from tenfold.ops.deprecated_names import image_summary
from tenfold.ops.deprecated_names import initialize_all_tables
from tenfold.ops.deprecated_names import inv
from tenfold.ops.deprecated_names import listdiff
from tenfold.ops.deprecated_names import merge_all_summaries
from tenfold.ops.deprecated_names import merge_summary
from tenfold.ops.deprecated_names import mul
from tenfold.ops.deprecated_names import neg
from tenfold.ops.deprecated_names import pack
from tenfold.ops.deprecated_names import scalar_summary
from tenfold.ops.deprecated_names import select
from tenfold.ops.deprecated_names import sub
from tenfold.ops.deprecated_names import unpack
from tenfold.ops.embedding_options import CBFFilter
from tenfold.ops.embedding_options import CounterFilter
from tenfold.ops.embedding_options import EmbeddingVariableOption
from tenfold.ops.embedding_options import GlobalStepEvict
from tenfold.ops.embedding_options import InitializerOption
from tenfold.ops.embedding_options import L2WeightEvict
from tenfold.ops.embedding_options import StorageOption
from tenfold.ops.embedding_variables import get_embedding_variable
from tenfold.ops.functional import foldl
from tenfold.ops.functional import foldr
from tenfold.ops.functional import map_fn
from tenfold.ops.functional import scan
from tenfold.ops.generated_ops import batch_to_space_nd
from tenfold.ops.generated_ops import betainc
from tenfold.ops.generated_ops import check_numerics
from tenfold.ops.generated_ops import cholesky
from tenfold.ops.generated_ops import cross
from tenfold.ops.generated_ops import decode_compressed
from tenfold.ops.generated_ops import decode_json_example
from tenfold.ops.generated_ops import diag
from tenfold.ops.generated_ops import diag_part
from tenfold.ops.generated_ops import ensure_shape
from tenfold.ops.generated_ops import extract_volume_patches
from tenfold.ops.generated_ops import fake_quant_with_min_max_args
from tenfold.ops.generated_ops import fake_quant_with_min_max_args_gradient
from tenfold.ops.generated_ops import fake_quant_with_min_max_vars
from tenfold.ops.generated_ops import fake_quant_with_min_max_vars_gradient
from tenfold.ops.generated_ops import fake_quant_with_min_max_vars_per_channel
from tenfold.ops.generated_ops import fake_quant_with_min_max_vars_per_channel_gradient
from tenfold.ops.generated_ops import fft
from tenfold.ops.generated_ops import fft2d
from tenfold.ops.generated_ops import fft3d
from tenfold.ops.generated_ops import guarantee_const
from tenfold.ops.generated_ops import ifft
from tenfold.ops.generated_ops import ifft2d
from tenfold.ops.generated_ops import ifft3d
from tenfold.ops.generated_ops import igamma
from tenfold.ops.generated_ops import igammac
from tenfold.ops.generated_ops import matrix_band_part
from tenfold.ops.generated_ops import matrix_determinant
from tenfold.ops.generated_ops import matrix_inverse
from tenfold.ops.generated_ops import matrix_solve
from tenfold.ops.generated_ops import matrix_square_root
from tenfold.ops.generated_ops import matrix_triangular_solve
from tenfold.ops.generated_ops import parse_tensor
from tenfold.ops.generated_ops import polygamma
from tenfold.ops.generated_ops import qr
from tenfold.ops.generated_ops import roll
from tenfold.ops.generated_ops import segment_max
from tenfold.ops.generated_ops import segment_mean
from tenfold.ops.generated_ops import segment_min
from tenfold.ops.generated_ops import segment_prod
from tenfold.ops.generated_ops import serialize_tensor
from tenfold.ops.generated_ops import space_to_batch_nd
from tenfold.ops.generated_ops import string_to_hash_bucket_strong
from tenfold.ops.generated_ops import tensor_scatter_add
from tenfold.ops.generated_ops import tensor_scatter_add as tensor_scatter_nd_add
from tenfold.ops.generated_ops import tensor_scatter_sub
from tenfold.ops.generated_ops import tensor_scatter_sub as tensor_scatter_nd_sub
from tenfold.ops.generated_ops import tensor_scatter_update
from tenfold.ops.generated_ops import tensor_scatter_update as tensor_scatter_nd_update
from tenfold.ops.generated_ops import timestamp
from tenfold.ops.generated_ops import unravel_index
from tenfold.ops.generated_ops import unsorted_segment_max
from tenfold.ops.generated_ops import unsorted_segment_min
from tenfold.ops.generated_ops import unsorted_segment_prod
from tenfold.ops.generated_ops import zeta
from tenfold.ops.init_ops import constant_initializer
from tenfold.ops.init_ops import glorot_normal_initializer
from tenfold.ops.init_ops import glorot_uniform_initializer
from tenfold.ops.init_ops import ones_initializer
from tenfold.ops.init_ops import orthogonal_initializer
from tenfold.ops.init_ops import random_normal_initializer
from tenfold.ops.init_ops import random_uniform_initializer
from tenfold.ops.init_ops import truncated_normal_initializer
from tenfold.ops.init_ops import uniform_unit_scaling_initializer
from tenfold.ops.init_ops import variance_scaling_initializer
from tenfold.ops.init_ops import zeros_initializer
from tenfold.ops.io import decode_csv
from tenfold.ops.io import decode_raw
from tenfold.ops.io import matching_files
from tenfold.ops.io import read_file
from tenfold.ops.io import write_file
from tenfold.ops.linalg import cholesky_solve
from tenfold.ops.linalg import eye
from tenfold.ops.linalg import matrix_solve_ls
from tenfold.ops.linalg import norm
from tenfold.ops.linalg import self_adjoint_eig
from tenfold.ops.linalg import self_adjoint_eigvals
from tenfold.ops.linalg import svd
from tenfold.ops.linalg import trace
from tenfold.ops.lookup import tables_initializer
from tenfold.ops.math import abs
from tenfold.ops.math import accumulate_n
from tenfold.ops.math import acos
from tenfold.ops.math import acosh
from tenfold.ops.math import add
from tenfold.ops.math import add_n
from tenfold.ops.math import argmax
from tenfold.ops.math import argmax as arg_max
from tenfold.ops.math import argmin
from tenfold.ops.math import argmin as arg_min
from tenfold.ops.math import asin
from tenfold.ops.math import asinh
from tenfold.ops.math import atan
from tenfold.ops.math import atan2
from tenfold.ops.math import atanh
from tenfold.ops.math import bitcast
from tenfold.ops.math import cast
from tenfold.ops.math import ceil
from tenfold.ops.math import cos
from tenfold.ops.math import cosh
from tenfold.ops.math import count_nonzero
from tenfold.ops.math import cumprod
from tenfold.ops.math import cumsum
from tenfold.ops.math import digamma
from tenfold.ops.math import div
from tenfold.ops.math import div_no_nan
from tenfold.ops.math import divide
from tenfold.ops.math import equal
from tenfold.ops.math import erf
from tenfold.ops.math import erfc
from tenfold.ops.math import exp
from tenfold.ops.math import expm1
from tenfold.ops.math import floor
from tenfold.ops.math import floor_div
from tenfold.ops.math import floordiv
from tenfold.ops.math import floormod
from tenfold.ops.math import greater
from tenfold.ops.math import greater_equal
from tenfold.ops.math import is_finite
from tenfold.ops.math import is_inf
from tenfold.ops.math import is_nan
from tenfold.ops.math import less
from tenfold.ops.math import less_equal
from tenfold.ops.math import lgamma
from tenfold.ops.math import linspace
from tenfold.ops.math import linspace as lin_space
from tenfold.ops.math import log
from tenfold.ops.math import log1p
from tenfold.ops.math import logical_and
from tenfold.ops.math import logical_not
from tenfold.ops.math import logical_or
from tenfold.ops.math import logical_xor
from tenfold.ops.math import matmul
from tenfold.ops.math import maximum
from tenfold.ops.math import minimum
from tenfold.ops.math import mod
from tenfold.ops.math import multiply
from tenfold.ops.math import negative
from tenfold.ops.math import not_equal
from tenfold.ops.math import pow
from tenfold.ops.math import range
from tenfold.ops.math import realdiv
from tenfold.ops.math import reciprocal
from tenfold.ops.math import reduce_all
from tenfold.ops.math import reduce_any
from tenfold.ops.math import reduce_logsumexp
from tenfold.ops.math import reduce_max
from tenfold.ops.math import reduce_mean
from tenfold.ops.math import reduce_min
from tenfold.ops.math import reduce_prod
from tenfold.ops.math import reduce_sum
from tenfold.ops.math import rint
from tenfold.ops.math import round
from tenfold.ops.math import rsqrt
from tenfold.ops.math import saturate_cast
from tenfold.ops.math import scalar_mul
from tenfold.ops.math import segment_sum
from tenfold.ops.math import sigmoid
from tenfold.ops.math import sign
from tenfold.ops.math import sin
from tenfold.ops.math import sinh
from tenfold.ops.math import sqrt
from tenfold.ops.math import square
from tenfold.ops.math import squared_difference
from tenfold.ops.math import subtract
from tenfold.ops.math import tan
from tenfold.ops.math import tanh
from tenfold.ops.math import to_double
from tenfold.ops.math import to_float
from tenfold.ops.math import to_int32
from tenfold.ops.math import to_int64
from tenfold.ops.math import truediv
from tenfold.ops.math import truncatediv
from tenfold.ops.math import truncatemod
from tenfold.ops.math import unsorted_segment_sum
from tenfold.ops.math_complex import angle
from tenfold.ops.math_complex import complex
from tenfold.ops.math_complex import conj
from tenfold.ops.math_complex import imag
from tenfold.ops.math_complex import real
from tenfold.ops.math_histogram import bincount
from tenfold.ops.math_histogram import histogram_fixed_width
from tenfold.ops.math_histogram import histogram_fixed_width_bins
from tenfold.ops.math_segments import unsorted_segment_mean
from tenfold.ops.math_segments import unsorted_segment_sqrt_n
from tenfold.ops.math_special import lbeta
from tenfold.ops.math_special import log_sigmoid
from tenfold.ops.numerics import add_check_numerics_ops
from tenfold.ops.numerics import verify_tensor_all_finite
from tenfold.ops.parsing import FixedLenFeature
from tenfold.ops.parsing import FixedLenSequenceFeature
from tenfold.ops.parsing import SparseFeature
from tenfold.ops.parsing import VarLenFeature
from tenfold.ops.parsing import parse_example
from tenfold.ops.parsing import parse_single_example
from tenfold.ops.parsing_sequences import parse_single_sequence_example
from tenfold.ops.partitioned_variables import create_partitioned_variables
from tenfold.ops.partitioned_variables import fixed_size_partitioner
from tenfold.ops.partitioned_variables import min_max_variable_partitioner
from tenfold.ops.partitioned_variables import variable_axis_size_partitioner
from tenfold.ops.print_ops import print
from tenfold.ops.products import einsum
from tenfold.ops.products import tensordot
from tenfold.ops.queues import FIFOQueue
from tenfold.ops.queues import PaddingFIFOQueue
from tenfold.ops.queues import PriorityQueue
from tenfold.ops.queues import QueueBase
from tenfold.ops.queues import RandomShuffleQueue
from tenfold.ops.random import multinomial
from tenfold.ops.random import random_crop
from tenfold.ops.random import random_gamma
from tenfold.ops.random import random_normal
from tenfold.ops.random import random_poisson
from tenfold.ops.random import random_shuffle
from tenfold.ops.random import random_uniform
from tenfold.ops.random import truncated_normal
from tenfold.ops.random_seed import get_seed
from tenfold.ops.random_seed import set_random_seed
from tenfold.ops.readers import FixedLengthRecordReader
from tenfold.ops.readers import IdentityReader
from tenfold.ops.readers import ReaderBase
from tenfold.ops.readers import TFRecordReader
from tenfold.ops.readers import TextLineReader
from tenfold.ops.readers import WholeFileReader
from tenfold.ops.script_ops import numpy_function
from tenfold.ops.script_ops import py_func
from tenfold.ops.script_ops import py_function
from tenfold.ops.slicing import boolean_mask
from tenfold.ops.slicing import dynamic_partition
from tenfold.ops.slicing import dynamic_stitch
from tenfold.ops.slicing import gather
from tenfold.ops.slicing import gather_nd
from tenfold.ops.slicing import invert_permutation
from tenfold.ops.slicing import one_hot
from tenfold.ops.slicing import reverse
from tenfold.ops.slicing import reverse as reverse_v2
from tenfold.ops.slicing import reverse_sequence
from tenfold.ops.slicing import scatter_nd
from tenfold.ops.slicing import sequence_mask
from tenfold.ops.slicing import setdiff1d
from tenfold.ops.slicing import slice
from tenfold.ops.slicing import split
from tenfold.ops.slicing import strided_slice
from tenfold.ops.slicing import unique
from tenfold.ops.slicing import unstack
from tenfold.ops.slicing import where
from tenfold.ops.slicing import where_v2
from tenfold.ops.sparse import deserialize_many_sparse
from tenfold.ops.sparse import serialize_many_sparse
from tenfold.ops.sparse import serialize_sparse
from tenfold.ops.sparse import sparse_concat
from tenfold.ops.sparse import sparse_fill_empty_rows
from tenfold.ops.sparse import sparse_mask
from tenfold.ops.sparse import sparse_merge
from tenfold.ops.sparse import sparse_placeholder
from tenfold.ops.sparse import sparse_reorder
from tenfold.ops.sparse import sparse_reset_shape
from tenfold.ops.sparse import sparse_reshape
from tenfold.ops.sparse import sparse_retain
from tenfold.ops.sparse import sparse_slice
from tenfold.ops.sparse import sparse_split
from tenfold.ops.sparse import sparse_tensor_to_dense
from tenfold.ops.sparse import sparse_to_dense
from tenfold.ops.sparse import sparse_to_indicator
from tenfold.ops.sparse import sparse_transpose
from tenfold.ops.sparse_math import edit_distance
from tenfold.ops.sparse_math import sparse_add
from tenfold.ops.sparse_math import sparse_matmul
from tenfold.ops.sparse_math import sparse_maximum
from tenfold.ops.sparse_math import sparse_minimum
from tenfold.ops.sparse_math import sparse_reduce_max
from tenfold.ops.sparse_math import sparse_reduce_max_sparse
from tenfold.ops.sparse_math import sparse_reduce_sum
from tenfold.ops.sparse_math import sparse_reduce_sum_sparse
from tenfold.ops.sparse_math import sparse_segment_mean
from tenfold.ops.sparse_math import sparse_segment_sqrt_n
from tenfold.ops.sparse_math import sparse_segment_sum
from tenfold.ops.sparse_math import sparse_softmax
from tenfold.ops.sparse_math import sparse_tensor_dense_matmul
from tenfold.ops.state_ops import assign
from tenfold.ops.state_ops import assign_add
from tenfold.ops.state_ops import assign_sub
from tenfold.ops.state_ops import count_up_to
from tenfold.ops.state_ops import scatter_add
from tenfold.ops.state_ops import scatter_div
from tenfold.ops.state_ops import scatter_max
from tenfold.ops.state_ops import scatter_min
from tenfold.ops.state_ops import scatter_mul
from tenfold.ops.state_ops import scatter_nd_add
from tenfold.ops.state_ops import scatter_nd_sub
from tenfold.ops.state_ops import scatter_nd_update
from tenfold.ops.state_ops import scatter_sub
from tenfold.ops.state_ops import scatter_update
from tenfold.ops.string import as_string
from tenfold.ops.string import decode_base64
from tenfold.ops.string import encode_base64
from tenfold.ops.string import fingerprint
from tenfold.ops.string import reduce_join
from tenfold.ops.string import regex_replace
from tenfold.ops.string import string_join
from tenfold.ops.string import string_strip
from tenfold.ops.string import string_to_hash_bucket
from tenfold.ops.string import string_to_hash_bucket_fast
from tenfold.ops.string import string_to_number
from tenfold.ops.string import substr
from tenfold.ops.string_split import string_split
from tenfold.ops.template import make_template
from tenfold.ops.tensor_array import TensorArray
from tenfold.ops.type_specs import SparseTensorSpec
from tenfold.ops.type_specs import TensorArraySpec
from tenfold.ops.type_specs import TensorSpec
from tenfold.ops.type_specs import TypeSpec
from tenfold.ops.variable_scope import AUTO_REUSE
from tenfold.ops.variable_scope import VariableScope
from tenfold.ops.variable_scope import disable_resource_variables
from tenfold.ops.variable_scope import enable_resource_variables
from tenfold.ops.variable_scope import get_local_variable
from tenfold.ops.variable_scope import get_variable
from tenfold.ops.variable_scope import get_variable_scope
from tenfold.ops.variable_scope import no_regularizer
from tenfold.ops.variable_scope import resource_variables_enabled
from tenfold.ops.variable_scope import variable_creator_scope
from tenfold.ops.variable_scope import variable_op_scope
from tenfold.ops.variable_scope import variable_scope
from tenfold.ops.variables import Variable
from tenfold.ops.variables import VariableAggregation
from tenfold.ops.variables import VariableSynchronization
from tenfold.ops.variables import all_variables
from tenfold.ops.variables import assert_variables_initialized
from tenfold.ops.variables import global_variables
from tenfold.ops.variables import global_variables_initializer
from tenfold.ops.variables import initialize_all_variables
from tenfold.ops.variables import initialize_local_variables
from tenfold.ops.variables import initialize_variables
from tenfold.ops.variables import is_variable_initialized
from tenfold.ops.variables import local_variables
from tenfold.ops.variables import local_variables_initializer
from tenfold.ops.variables import model_variables
from tenfold.ops.variables import moving_average_variables
from tenfold.ops.variables import report_uninitialized_variables
from tenfold.ops.variables import trainable_variables
from tenfold.ops.variables import variables_initializer
from tenfold.session.session import InteractiveSession
from tenfold.session.session import Session
from tenfold.session.tensor_handles import delete_session_tensor
from tenfold.session.tensor_handles import get_session_handle
from tenfold.session.tensor_handles import get_session_tensor
from tenfold.train.staged import make_prefetch_hook
from tenfold.train.staged import staged
from tenfold.versions import COMPILER_VERSION
from tenfold.versions import COMPILER_VERSION as __compiler_version__
from tenfold.versions import CXX11_ABI_FLAG
from tenfold.versions import CXX11_ABI_FLAG as __cxx11_abi_flag__
from tenfold.versions import GIT_VERSION
from tenfold.versions import GIT_VERSION as __git_version__
from tenfold.versions import GRAPH_DEF_VERSION_MIN_CONSUMER
from tenfold.versions import GRAPH_DEF_VERSION_MIN_PRODUCER
from tenfold.versions import MONOLITHIC_BUILD
from tenfold.versions import MONOLITHIC_BUILD as __monolithic_build__
from tenfold.versions import VERSION
from tenfold_core import errors
from tenfold_core.device import DeviceSpec
from tenfold_core.dtypes import DType
from tenfold_core.dtypes import QUANTIZED_DTYPES
from tenfold_core.dtypes import as_dtype
from tenfold_core.dtypes import bfloat16
from tenfold_core.dtypes import bool_ as bool
from tenfold_core.dtypes import complex128
from tenfold_core.dtypes import complex64
from tenfold_core.dtypes import double
from tenfold_core.dtypes import float16
from tenfold_core.dtypes import float32
from tenfold_core.dtypes import float64
from tenfold_core.dtypes import half
from tenfold_core.dtypes import int16
from tenfold_core.dtypes import int32
from tenfold_core.dtypes import int64
from tenfold_core.dtypes import int8
from tenfold_core.dtypes import qint16
from tenfold_core.dtypes import qint32
from tenfold_core.dtypes import qint8
from tenfold_core.dtypes import quint16
from tenfold_core.dtypes import quint8
from tenfold_core.dtypes import resource
from tenfold_core.dtypes import string
from tenfold_core.dtypes import uint16
from tenfold_core.dtypes import uint32
from tenfold_core.dtypes import uint64
from tenfold_core.dtypes import uint8
from tenfold_core.dtypes import variant
from tenfold_core.errors import OpError
from tenfold_core.tensor_shape import Dimension
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.tensor_shape import dimension_value
from tenfold_core.tensor_util import make_ndarray
from tenfold_core.tensor_util import make_tensor_proto
from tenfold_protos.attr_value_pb2 import AttrValue
from tenfold_protos.attr_value_pb2 import NameAttrList
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_protos.config_pb2 import ExecutorPolicy
from tenfold_protos.config_pb2 import GPUOptions
from tenfold_protos.config_pb2 import GraphOptions
from tenfold_protos.config_pb2 import OptimizerOptions
from tenfold_protos.config_pb2 import RunMetadata
from tenfold_protos.config_pb2 import RunOptions
from tenfold_protos.event_pb2 import Event
from tenfold_protos.event_pb2 import LogMessage
from tenfold_protos.event_pb2 import SessionLog
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_protos.histogram_pb2 import HistogramProto
from tenfold_protos.meta_graph_pb2 import MetaGraphDef
from tenfold_protos.meta_graph_pb2 import TensorInfo
from tenfold_protos.node_def_pb2 import NodeDef
from tenfold_protos.op_def_pb2 import OpDef
from tenfold_protos.op_def_pb2 import OpList
from tenfold_protos.summary_pb2 import Summary
from tenfold_protos.summary_pb2 import SummaryMetadata
from tenfold_protos.tensor_pb2 import TensorProto
from tenfold_protos.tensor_shape_pb2 import TensorShapeProto
from tenfold_protos.variable_pb2 import VariableDef

__version__: str
newaxis: None

__all__ = [
    "AUTO_REUSE",
    "AggregationMethod",
    "Assert",
    "AttrValue",
    "Barrier",
    "CBFFilter",
    "COMPILER_VERSION",
    "CXX11_ABI_FLAG",
    "ConditionalAccumulator",
    "ConditionalAccumulatorBase",
    "ConfigProto",
    "CounterFilter",
    "CriticalSection",
    "DType",
    "DeviceSpec",
    "Dimension",
    "EmbeddingVariableOption",
    "Event",
    "ExecutorPolicy",
    "FIFOQueue",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "FixedLengthRecordReader",
    "GIT_VERSION",
    "GPUOptions",
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "GlobalStepEvict",
    "Graph",
    "GraphDef",
    "GraphKeys",
    "GraphOptions",
    "HistogramProto",
    "IdentityReader",
    "IndexedSlices",
    "InitializerOption",
    "InteractiveSession",
    "L2WeightEvict",
    "LogMessage",
    "MONOLITHIC_BUILD",
    "MetaGraphDef",
    "Module",
    "NameAttrList",
    "NoGradient",
    "NodeDef",
    "NotDifferentiable",
    "OpDef",
    "OpError",
    "OpList",
    "Operation",
    "OptimizerOptions",
    "OptionalSpec",
    "PaddingFIFOQueue",
    "Print",
    "PriorityQueue",
    "QUANTIZED_DTYPES",
    "QueueBase",
    "RandomShuffleQueue",
    "ReaderBase",
    "RegisterGradient",
    "RunMetadata",
    "RunOptions",
    "Session",
    "SessionLog",
    "SparseConditionalAccumulator",
    "SparseFeature",
    "SparseTensor",
    "SparseTensorSpec",
    "SparseTensorValue",
    "StorageOption",
    "Summary",
    "SummaryMetadata",
    "TFRecordReader",
    "Tensor",
    "TensorArray",
    "TensorArraySpec",
    "TensorInfo",
    "TensorProto",
    "TensorShape",
    "TensorShapeProto",
    "TensorSpec",
    "TextLineReader",
    "TypeSpec",
    "UnconnectedGradients",
    "VERSION",
    "VarLenFeature",
    "Variable",
    "VariableAggregation",
    "VariableDef",
    "VariableScope",
    "VariableSynchronization",
    "WholeFileReader",
    "__compiler_version__",
    "__cxx11_abi_flag__",
    "__git_version__",
    "__monolithic_build__",
    "abs",
    "accumulate_n",
    "acos",
    "acosh",
    "add",
    "add_check_numerics_ops",
    "add_n",
    "add_to_collection",
    "add_to_collections",
    "all_variables",
    "angle",
    "app",
    "arg_max",
    "arg_min",
    "argmax",
    "argmin",
    "argsort",
    "as_dtype",
    "as_string",
    "asin",
    "asinh",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_type",
    "assert_variables_initialized",
    "assign",
    "assign_add",
    "assign_sub",
    "atan",
    "atan2",
    "atanh",
    "audio",
    "audio_summary",
    "batch_cholesky",
    "batch_fft",
    "batch_gather",
    "batch_ifft",
    "batch_matmul",
    "batch_matrix_band_part",
    "batch_matrix_determinant",
    "batch_matrix_diag",
    "batch_matrix_diag_part",
    "batch_matrix_inverse",
    "batch_matrix_solve",
    "batch_matrix_triangular_solve",
    "batch_scatter_update",
    "batch_to_space",
    "batch_to_space_nd",
    "betainc",
    "bfloat16",
    "bincount",
    "bitcast",
    "bitwise",
    "bool",
    "boolean_mask",
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "broadcast_to",
    "case",
    "cast",
    "ceil",
    "check_numerics",
    "cholesky",
    "cholesky_solve",
    "clip_by_average_norm",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "colocate_with",
    "compat",
    "complex",
    "complex128",
    "complex64",
    "complex_abs",
    "concat",
    "cond",
    "config",
    "confusion_matrix",
    "conj",
    "constant",
    "constant_initializer",
    "container",
    "contrib",
    "control",
    "control_dependencies",
    "control_flow_v2_enabled",
    "convert_to_tensor",
    "convert_to_tensor_or_indexed_slices",
    "convert_to_tensor_or_sparse_tensor",
    "cos",
    "cosh",
    "count_nonzero",
    "count_up_to",
    "create_partitioned_variables",
    "cross",
    "cumprod",
    "cumsum",
    "custom_gradient",
    "data",
    "debugging",
    "decode_base64",
    "decode_compressed",
    "decode_csv",
    "decode_json_example",
    "decode_raw",
    "delete_session_tensor",
    "depth_to_space",
    "deserialize_many_sparse",
    "device",
    "diag",
    "diag_part",
    "digamma",
    "dimension_at_index",
    "dimension_value",
    "disable_control_flow_v2",
    "disable_eager_execution",
    "disable_resource_variables",
    "disable_tensor_equality",
    "disable_v2_behavior",
    "disable_v2_tensorshape",
    "distribute",
    "distributions",
    "div",
    "div_no_nan",
    "divide",
    "double",
    "dtypes",
    "dynamic_partition",
    "dynamic_stitch",
    "edit_distance",
    "einsum",
    "enable_control_flow_v2",
    "enable_eager_execution",
    "enable_resource_variables",
    "enable_tensor_equality",
    "enable_v2_behavior",
    "enable_v2_tensorshape",
    "encode_base64",
    "ensure_shape",
    "equal",
    "erf",
    "erfc",
    "errors",
    "estimator",
    "examples",
    "executing_eagerly",
    "exp",
    "expand_dims",
    "expm1",
    "extract_image_patches",
    "extract_volume_patches",
    "eye",
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
    "feature_column",
    "fft",
    "fft2d",
    "fft3d",
    "fill",
    "fingerprint",
    "fixed_size_partitioner",
    "flags",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_div",
    "floordiv",
    "floormod",
    "foldl",
    "foldr",
    "gather",
    "gather_nd",
    "get_collection",
    "get_collection_ref",
    "get_default_graph",
    "get_default_session",
    "get_dynamic_dimension_embedding_variable",
    "get_embedding_variable",
    "get_local_variable",
    "get_logger",
    "get_multihash_variable",
    "get_seed",
    "get_session_handle",
    "get_session_tensor",
    "get_static_value",
    "get_variable",
    "get_variable_scope",
    "gfile",
    "global_norm",
    "global_variables",
    "global_variables_initializer",
    "glorot_normal_initializer",
    "glorot_uniform_initializer",
    "grad_pass_through",
    "gradients",
    "graph_util",
    "greater",
    "greater_equal",
    "group",
    "guarantee_const",
    "half",
    "hessians",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
    "histogram_summary",
    "identity",
    "identity_n",
    "ifft",
    "ifft2d",
    "ifft3d",
    "igamma",
    "igammac",
    "imag",
    "image",
    "image_summary",
    "import_graph_def",
    "init_scope",
    "initialize_all_tables",
    "initialize_all_variables",
    "initialize_local_variables",
    "initialize_variables",
    "initializers",
    "int16",
    "int32",
    "int64",
    "int8",
    "inv",
    "invert_permutation",
    "io",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_numeric_tensor",
    "is_strictly_increasing",
    "is_tensor",
    "is_variable_initialized",
    "keras",
    "layers",
    "lbeta",
    "less",
    "less_equal",
    "lgamma",
    "lin_space",
    "linalg",
    "linspace",
    "listdiff",
    "load_file_system_library",
    "load_library",
    "load_op_library",
    "local_variables",
    "local_variables_initializer",
    "log",
    "log1p",
    "log_sigmoid",
    "logging",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lookup",
    "losses",
    "make_ndarray",
    "make_prefetch_hook",
    "make_template",
    "make_tensor_proto",
    "manip",
    "map_fn",
    "matching_files",
    "math",
    "matmul",
    "matrix_band_part",
    "matrix_determinant",
    "matrix_diag",
    "matrix_diag_part",
    "matrix_inverse",
    "matrix_set_diag",
    "matrix_solve",
    "matrix_solve_ls",
    "matrix_square_root",
    "matrix_transpose",
    "matrix_triangular_solve",
    "maximum",
    "merge_all_summaries",
    "merge_summary",
    "meshgrid",
    "metrics",
    "min_max_variable_partitioner",
    "minimum",
    "mod",
    "model_variables",
    "moving_average_variables",
    "mul",
    "multinomial",
    "multiply",
    "name_scope",
    "neg",
    "negative",
    "nest",
    "nn",
    "no_gradient",
    "no_op",
    "no_regularizer",
    "norm",
    "not_equal",
    "numpy_function",
    "one_hot",
    "ones",
    "ones_initializer",
    "ones_like",
    "op_scope",
    "orthogonal_initializer",
    "pack",
    "pad",
    "parallel_stack",
    "parse_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "placeholder",
    "placeholder_with_default",
    "polygamma",
    "pow",
    "print",
    "profiler",
    "py_func",
    "py_function",
    "python_io",
    "pywrap_tensorflow",
    "qint16",
    "qint32",
    "qint8",
    "qr",
    "quantization",
    "queue",
    "quint16",
    "quint8",
    "random",
    "random_crop",
    "random_gamma",
    "random_normal",
    "random_normal_initializer",
    "random_poisson",
    "random_shuffle",
    "random_uniform",
    "random_uniform_initializer",
    "range",
    "rank",
    "raw_ops",
    "read_file",
    "real",
    "realdiv",
    "reciprocal",
    "recompute_grad",
    "reduce_all",
    "reduce_any",
    "reduce_join",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "regex_replace",
    "register_tensor_conversion_function",
    "repeat",
    "report_uninitialized_variables",
    "required_space_to_batch_paddings",
    "reset_default_graph",
    "reshape",
    "resource",
    "resource_loader",
    "resource_variables_enabled",
    "reverse",
    "reverse_sequence",
    "reverse_v2",
    "rint",
    "roll",
    "round",
    "rsqrt",
    "saturate_cast",
    "saved_model",
    "scalar_mul",
    "scalar_summary",
    "scan",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd",
    "scatter_nd_add",
    "scatter_nd_sub",
    "scatter_nd_update",
    "scatter_sub",
    "scatter_update",
    "searchsorted",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "select",
    "self_adjoint_eig",
    "self_adjoint_eigvals",
    "sequence_mask",
    "serialize_many_sparse",
    "serialize_sparse",
    "serialize_tensor",
    "set_random_seed",
    "setdiff1d",
    "sets",
    "shape",
    "shape_n",
    "sigmoid",
    "sign",
    "signal",
    "sin",
    "sinh",
    "size",
    "slice",
    "sort",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse",
    "sparse_add",
    "sparse_concat",
    "sparse_fill_empty_rows",
    "sparse_mask",
    "sparse_matmul",
    "sparse_maximum",
    "sparse_merge",
    "sparse_minimum",
    "sparse_placeholder",
    "sparse_reduce_max",
    "sparse_reduce_max_sparse",
    "sparse_reduce_sum",
    "sparse_reduce_sum_sparse",
    "sparse_reorder",
    "sparse_reset_shape",
    "sparse_reshape",
    "sparse_retain",
    "sparse_segment_mean",
    "sparse_segment_sqrt_n",
    "sparse_segment_sum",
    "sparse_slice",
    "sparse_softmax",
    "sparse_split",
    "sparse_tensor_dense_matmul",
    "sparse_tensor_to_dense",
    "sparse_to_dense",
    "sparse_to_indicator",
    "sparse_transpose",
    "spectral",
    "split",
    "sqrt",
    "square",
    "squared_difference",
    "squeeze",
    "stack",
    "staged",
    "stop_gradient",
    "strided_slice",
    "string",
    "string_join",
    "string_split",
    "string_strip",
    "string_to_hash_bucket",
    "string_to_hash_bucket_fast",
    "string_to_hash_bucket_strong",
    "string_to_number",
    "strings",
    "sub",
    "substr",
    "subtract",
    "summary",
    "svd",
    "switch_case",
    "sysconfig",
    "tables_initializer",
    "tan",
    "tanh",
    "tensor_scatter_add",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tensor_scatter_sub",
    "tensor_scatter_update",
    "tensordot",
    "test",
    "tile",
    "timestamp",
    "to_bfloat16",
    "to_complex128",
    "to_complex64",
    "to_double",
    "to_float",
    "to_int32",
    "to_int64",
    "trace",
    "train",
    "trainable_variables",
    "transpose",
    "truediv",
    "truncated_normal",
    "truncated_normal_initializer",
    "truncatediv",
    "truncatemod",
    "tuple",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "uniform_unit_scaling_initializer",
    "unique",
    "unique_with_counts",
    "unpack",
    "unravel_index",
    "unsorted_segment_max",
    "unsorted_segment_mean",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sqrt_n",
    "unsorted_segment_sum",
    "unstack",
    "variable_axis_size_partitioner",
    "variable_creator_scope",
    "variable_op_scope",
    "variable_scope",
    "variables_initializer",
    "variance_scaling_initializer",
    "variant",
    "verify_tensor_all_finite",
    "version",
    "versions",
    "where",
    "where_v2",
    "while_loop",
    "write_file",
    "zeros",
    "zeros_initializer",
    "zeros_like",
    "zeta",
]
