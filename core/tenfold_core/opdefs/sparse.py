"""Op definitions: sparse tensors: indices [N, rank], values [N] and a shape.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns_array as a
from tenfold_core.opdefs import shape_fns_linalg as m
from tenfold_core.opdefs import shape_fns_sparse as p
from tenfold_core.opdefs.table import family

op = family("sparse")

op(
    "DenseToDenseSetOperation",
    "set1: T, set2: T",
    "result_indices: int64, result_values: T, result_shape: int64",
    "set_operation: string",
    "validate_indices: bool = true",
    "T: {int8, int16, int32, int64, uint8, uint16, string}",
    shape=p.set_operation,
)
op(
    "DeserializeManySparse",
    "serialized_sparse: string",
    "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
    "dtype: type",
    shape=p.deserialize,
    sized_by="serialized_sparse",
)
op(
    "DeserializeSparse",
    "serialized_sparse: Tserialized",
    "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
    "dtype: type",
    "Tserialized: {string, variant} = string",
    shape=p.deserialize,
    sized_by="serialized_sparse",
)
op(
    "RaggedFillEmptyRows",
    "value_rowids: int64, values: T, nrows: int64, default_value: T",
    "output_value_rowids: int64, output_values: T, empty_row_indicator: bool, reverse_index_map: int64",
    "T: type",
    shape=p.fill_empty_ragged_rows,
    sized_by="nrows",
)
op(
    "RaggedFillEmptyRowsGrad",
    "reverse_index_map: int64, grad_values: T",
    "d_values: T, d_default_value: T",
    "T: type",
    shape=p.fill_empty_rows_grad,
)
op(
    "SerializeManySparse",
    "sparse_indices: int64, sparse_values: T, sparse_shape: int64",
    "serialized_sparse: out_type",
    "T: type",
    "out_type: {string, variant} = string",
    shape=p.serialize_many,
)
op(
    "SerializeSparse",
    "sparse_indices: int64, sparse_values: T, sparse_shape: int64",
    "serialized_sparse: out_type",
    "T: type",
    "out_type: {string, variant} = string",
    shape=p.serialize,
)
op(
    "SetSize",
    "set_indices: int64, set_values: T, set_shape: int64",
    "size: int32",
    "validate_indices: bool = true",
    "T: {int8, int16, int32, int64, uint8, uint16, string}",
)
op(
    "SparseAdd",
    "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64, thresh: Treal",
    "sum_indices: int64, sum_values: T, sum_shape: int64",
    "T: {numeric}",
    "Treal: {real}",
    shape=p.add,
)
op(
    "SparseAddGrad",
    "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64",
    "a_val_grad: T, b_val_grad: T",
    "T: {numeric}",
    shape=p.add_grad,
)
op(
    "SparseConcat",
    "indices: N * int64, values: N * T, shapes: N * int64",
    "output_indices: int64, output_values: T, output_shape: int64",
    "concat_dim: int",
    "N: int >= 2",
    "T: type",
    shape=p.concat,
)
op(
    "SparseCross",
    "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types",
    "output_indices: int64, output_values: out_type, output_shape: int64",
    "N: int >= 0",
    "hashed_output: bool",
    "num_buckets: int >= 0",
    "hash_key: int",
    "sparse_types: list({int64, string}) >= 0",
    "dense_types: list({int64, string}) >= 0",
    "out_type: {int64, string}",
    "internal_type: {int64, string}",
    shape=p.cross,
    sized_by="*",
)
op(
    "SparseDenseCwiseAdd",
    "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T",
    "output: T",
    "T: {numeric}",
    shape=p.values_of_rows,
)
op(
    "SparseDenseCwiseDiv",
    "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T",
    "output: T",
    "T: {numeric}",
    shape=p.values_of_rows,
)
op(
    "SparseDenseCwiseMul",
    "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T",
    "output: T",
    "T: {numeric}",
    shape=p.values_of_rows,
)
op(
    "SparseFillEmptyRows",
    "indices: int64, values: T, dense_shape: int64, default_value: T",
    "output_indices: int64, output_values: T, empty_row_indicator: bool, reverse_index_map: int64",
    "T: type",
    shape=p.fill_empty_rows,
    sized_by="dense_shape",
)
op(
    "SparseFillEmptyRowsGrad",
    "reverse_index_map: int64, grad_values: T",
    "d_values: T, d_default_value: T",
    "T: type",
    shape=p.fill_empty_rows_grad,
)
op(
    "SparseReduceMax",
    "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32",
    "output: T",
    "keep_dims: bool = false",
    "T: {real}",
    shape=p.reduction,
    sized_by="input_shape",
)
op(
    "SparseReduceMaxSparse",
    "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32",
    "output_indices: int64, output_values: T, output_shape: int64",
    "keep_dims: bool = false",
    "T: {real}",
    sized_by="input_shape",
)
op(
    "SparseReduceSum",
    "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32",
    "output: T",
    "keep_dims: bool = false",
    "T: {numeric}",
    shape=p.reduction,
    sized_by="input_shape",
)
op(
    "SparseReduceSumSparse",
    "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32",
    "output_indices: int64, output_values: T, output_shape: int64",
    "keep_dims: bool = false",
    "T: {numeric}",
    sized_by="input_shape",
)
op(
    "SparseReorder",
    "input_indices: int64, input_values: T, input_shape: int64",
    "output_indices: int64, output_values: T",
    "T: type",
    shape=p.reorder,
)
op(
    "SparseReshape",
    "input_indices: int64, input_shape: int64, new_shape: int64",
    "output_indices: int64, output_shape: int64",
    shape=p.reshape,
)
op(
    "SparseSlice",
    "indices: int64, values: T, shape: int64, start: int64, size: int64",
    "output_indices: int64, output_values: T, output_shape: int64",
    "T: type",
    shape=p.slice_,
)
op(
    "SparseSliceGrad",
    "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64",
    "val_grad: T",
    "T: {numeric}",
    shape=p.slice_grad,
)
op(
    "SparseSoftmax",
    "sp_indices: int64, sp_values: T, sp_shape: int64",
    "output: T",
    "T: {half, float, double}",
    shape=p.softmax,
)
op(
    "SparseSparseMaximum",
    "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64",
    "output_indices: int64, output_values: T",
    "T: {real}",
    shape=p.unknown_matrix,
)
op(
    "SparseSparseMinimum",
    "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64",
    "output_indices: int64, output_values: T",
    "T: {numeric}",
    shape=p.unknown_matrix,
)
op(
    "SparseSplit",
    "split_dim: int64, indices: int64, values: T, shape: int64",
    "output_indices: num_split * int64, output_values: num_split * T, output_shape: num_split * int64",
    "num_split: int >= 1",
    "T: type",
    shape=p.split,
)
op(
    "SparseTensorDenseAdd",
    "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T",
    "output: T",
    "T: {numeric}",
    "Tindices: {index}",
    shape=a.fourth_input,
)
op(
    "SparseTensorDenseMatMul",
    "a_indices: Tindices, a_values: T, a_shape: int64, b: T",
    "product: T",
    "T: type",
    "Tindices: {index} = int64",
    "adjoint_a: bool = false",
    "adjoint_b: bool = false",
    shape=m.sparse_matmul,
    sized_by="a_shape",
)
op(
    "AddManySparseToTensorsMap",
    "sparse_indices: int64, sparse_values: T, sparse_shape: int64",
    "sparse_handles: int64",
    "T: type",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=p.handles,
)
op(
    "AddSparseToTensorsMap",
    "sparse_indices: int64, sparse_values: T, sparse_shape: int64",
    "sparse_handle: int64",
    "T: type",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=p.handle,
)
op(
    "RaggedTensorToSparse",
    "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T",
    "sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64",
    "RAGGED_RANK: int >= 1",
    "T: type",
    "Tsplits: {index} = int64",
    shape=p.from_ragged,
)
op(
    "TakeManySparseFromTensorsMap",
    "sparse_handles: int64",
    "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
    "dtype: type",
    "container: string = ''",
    "shared_name: string = ''",
    stateful=True,
    shape=p.taken,
)
op(
    "SparseToSparseSetOperation",
    "set1_indices: int64, set1_values: T, set1_shape: int64, set2_indices: int64, set2_values: T, set2_shape: int64",
    "result_indices: int64, result_values: T, result_shape: int64",
    "set_operation: string",
    "validate_indices: bool = true",
    "T: {int8, int16, int32, int64, uint8, uint16, string}",
    shape=p.sparse_set_operation,
)
op(
    "DenseToSparseSetOperation",
    "set1: T, set2_indices: int64, set2_values: T, set2_shape: int64",
    "result_indices: int64, result_values: T, result_shape: int64",
    "set_operation: string",
    "validate_indices: bool = true",
    "T: {int8, int16, int32, int64, uint8, uint16, string}",
    shape=p.dense_sparse_set_operation,
)
op(
    "SparseCrossV2",
    "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types, sep: string",
    "output_indices: int64, output_values: string, output_shape: int64",
    "N: int >= 0",
    "sparse_types: list({int64, string}) >= 0",
    "dense_types: list({int64, string}) >= 0",
    shape=p.cross,
    sized_by="*",
)
op(
    "SparseCrossHashed",
    "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types, num_buckets: int64, strong_hash: bool, salt: int64",
    "output_indices: int64, output_values: int64, output_shape: int64",
    "N: int >= 0",
    "sparse_types: list({int64, string}) >= 0",
    "dense_types: list({int64, string}) >= 0",
    shape=p.cross,
    sized_by="*",
)
