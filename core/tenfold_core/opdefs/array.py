"""Op definitions: constants, shapes, slicing, gathering, joining and splitting.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_array as a
from tenfold_core.opdefs import shape_fns_reshape as h
from tenfold_core.opdefs import shape_fns_slices as k
from tenfold_core.opdefs.table import family

op = family("array")

op("BatchMatrixBandPart", "input: T, num_lower: int64, num_upper: int64", "band: T", "T: type", shape=s.unchanged)
op("BatchMatrixDiag", "diagonal: T", "output: T", "T: type", shape=h.matrix_diag)
op("BatchMatrixDiagPart", "input: T", "diagonal: T", "T: type", shape=a.matrix_diag_part)
op("BatchMatrixSetDiag", "input: T, diagonal: T", "output: T", "T: type", shape=a.matrix_set_diag)
op(
    "BatchToSpace",
    "input: T, crops: Tidx",
    "output: T",
    "T: type",
    "block_size: int >= 2",
    "Tidx: {index} = int32",
    shape=a.batch_to_space,
    sized_by="",
)
op(
    "BatchToSpaceND",
    "input: T, block_shape: Tblock_shape, crops: Tcrops",
    "output: T",
    "T: type",
    "Tblock_shape: {index} = int32",
    "Tcrops: {index} = int32",
    shape=a.batch_to_space_nd,
    sized_by="",
)
op("Concat", "concat_dim: int32, values: N * T", "output: T", "N: int >= 2", "T: type", shape=k.concat, sized_by="")
op(
    "ConcatOffset",
    "concat_dim: int32, shape: N * shape_type",
    "offset: N * shape_type",
    "N: int >= 2",
    "shape_type: {index} = int32",
    shape=k.concat_offset,
)
op(
    "ConcatV2",
    "values: N * T, axis: Tidx",
    "output: T",
    "N: int >= 2",
    "T: type",
    "Tidx: {index} = int32",
    shape=k.concat_v2,
    sized_by="",
)
op(
    "ConjugateTranspose",
    "x: T, perm: Tperm",
    "y: T",
    "T: type",
    "Tperm: {index} = int32",
    shape=h.transpose,
    sized_by="",
)
op("Const", "", "output: dtype", "value: tensor", "dtype: type", shape=s.const)
op("DebugGradientIdentity", "input: T", "output: T", "T: type", allows_uninitialized_input=True, shape=s.unchanged)
op("DeepCopy", "x: T", "y: T", "T: type", stateful=True, shape=s.unchanged)
op(
    "DepthToSpace",
    "input: T",
    "output: T",
    "T: type",
    "block_size: int >= 2",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    shape=a.depth_to_space,
)
op(
    "Diag",
    "diagonal: T",
    "output: T",
    "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    shape=h.diag,
)
op(
    "DiagPart",
    "input: T",
    "diagonal: T",
    "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    shape=a.diag_part,
)
op(
    "DynamicPartition",
    "data: T, partitions: int32",
    "outputs: num_partitions * T",
    "num_partitions: int >= 1",
    "T: type",
    shape=h.dynamic_partition,
)
op(
    "DynamicStitch",
    "indices: N * int32, data: N * T",
    "merged: T",
    "N: int >= 1",
    "T: type",
    shape=h.dynamic_stitch,
    sized_by="indices",
)
op(
    "EditDistance",
    "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: int64, truth_values: T, truth_shape: int64",
    "output: float",
    "normalize: bool = true",
    "T: type",
    shape=a.edit_distance,
    sized_by="hypothesis_shape truth_shape",
)
op(
    "Empty",
    "shape: int32",
    "output: dtype",
    "dtype: type",
    "init: bool = false",
    stateful=True,
    shape=h.random_shape,
    sized_by="shape",
)
op("EnsureShape", "input: T", "output: T", "shape: shape", "T: type", shape=h.ensure_shape)
op(
    "ExpandDims",
    "input: T, dim: Tdim",
    "output: T",
    "T: type",
    "Tdim: {index} = int32",
    shape=h.expand_dims,
    sized_by="",
)
op(
    "ExtractImagePatches",
    "images: T",
    "patches: T",
    "ksizes: list(int) >= 4",
    "strides: list(int) >= 4",
    "rates: list(int) >= 4",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, bool}",
    "padding: {'SAME', 'VALID'}",
    shape=a.patches,
)
op(
    "ExtractVolumePatches",
    "input: T",
    "patches: T",
    "ksizes: list(int) >= 5",
    "strides: list(int) >= 5",
    "T: {real}",
    "padding: {'SAME', 'VALID'}",
    shape=a.volume_patches,
)
op(
    "FakeQuantWithMinMaxArgs",
    "inputs: float",
    "outputs: float",
    "min: float = -6.0",
    "max: float = 6.0",
    "num_bits: int = 8",
    "narrow_range: bool = false",
    shape=s.unchanged,
)
op(
    "FakeQuantWithMinMaxArgsGradient",
    "gradients: float, inputs: float",
    "backprops: float",
    "min: float = -6.0",
    "max: float = 6.0",
    "num_bits: int = 8",
    "narrow_range: bool = false",
    shape=s.unchanged,
)
op(
    "FakeQuantWithMinMaxVars",
    "inputs: float, min: float, max: float",
    "outputs: float",
    "num_bits: int = 8",
    "narrow_range: bool = false",
    shape=s.unchanged,
)
op(
    "FakeQuantWithMinMaxVarsGradient",
    "gradients: float, inputs: float, min: float, max: float",
    "backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float",
    "num_bits: int = 8",
    "narrow_range: bool = false",
    shape=a.quantize_range,
)
op(
    "FakeQuantWithMinMaxVarsPerChannel",
    "inputs: float, min: float, max: float",
    "outputs: float",
    "num_bits: int = 8",
    "narrow_range: bool = false",
    shape=s.unchanged,
)
op(
    "FakeQuantWithMinMaxVarsPerChannelGradient",
    "gradients: float, inputs: float, min: float, max: float",
    "backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float",
    "num_bits: int = 8",
    "narrow_range: bool = false",
    shape=a.quantize_channels,
)
op(
    "Fill",
    "dims: index_type, value: T",
    "output: T",
    "T: type",
    "index_type: {index} = int32",
    shape=h.fill,
    sized_by="dims",
)
op("Fingerprint", "data: T, method: string", "fingerprint: uint8", "T: type", shape=a.fingerprint, sized_by="")
op(
    "Gather",
    "params: Tparams, indices: Tindices",
    "output: Tparams",
    "validate_indices: bool = true",
    "Tparams: type",
    "Tindices: {index}",
    shape=k.gather,
)
op(
    "GatherNd",
    "params: Tparams, indices: Tindices",
    "output: Tparams",
    "Tparams: type",
    "Tindices: {int16, int32, int64}",
    "bad_indices_policy: string = ''",
    shape=k.gather_nd,
)
op(
    "GatherV2",
    "params: Tparams, indices: Tindices, axis: Taxis",
    "output: Tparams",
    "batch_dims: int = 0",
    "Tparams: type",
    "Tindices: {int16, int32, int64}",
    "Taxis: {index}",
    shape=k.gather_v2,
    sized_by="",
)
op("GuaranteeConst", "input: T", "output: T", "T: type", stateful=True, shape=s.unchanged)
op("Identity", "input: T", "output: T", "T: type", shape=s.unchanged)
op("IdentityN", "input: T", "output: T", "T: list(type) >= 1", shape=s.identity_n)
op("InplaceAdd", "x: T, i: int32, v: T", "y: T", "T: type", shape=s.unchanged)
op("InplaceSub", "x: T, i: int32, v: T", "y: T", "T: type", shape=s.unchanged)
op("InplaceUpdate", "x: T, i: int32, v: T", "y: T", "T: type", shape=s.unchanged)
op("InvertPermutation", "x: T", "y: T", "T: {index} = int32", shape=a.invert_permutation)
op("ListDiff", "x: T, y: T", "out: T, idx: out_idx", "T: type", "out_idx: {index} = int32", shape=h.list_diff)
op(
    "LowerBound",
    "sorted_inputs: T, values: T",
    "output: out_type",
    "T: type",
    "out_type: {index} = int32",
    shape=a.search,
)
op(
    "MatrixBandPart",
    "input: T, num_lower: Tindex, num_upper: Tindex",
    "band: T",
    "T: type",
    "Tindex: {index} = int64",
    shape=s.unchanged,
)
op("MatrixDiag", "diagonal: T", "output: T", "T: type", shape=h.matrix_diag)
op("MatrixDiagPart", "input: T", "diagonal: T", "T: type", shape=a.matrix_diag_part)
op(
    "MatrixDiagPartV2",
    "input: T, k: int32, padding_value: T",
    "diagonal: T",
    "T: type",
    shape=a.matrix_diag_part_v2,
    sized_by="k",
)
op(
    "MatrixDiagPartV3",
    "input: T, k: int32, padding_value: T",
    "diagonal: T",
    "T: type",
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
    shape=a.matrix_diag_part_v2,
    sized_by="k",
)
op(
    "MatrixDiagV2",
    "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T",
    "output: T",
    "T: type",
    shape=a.matrix_diag_v2,
    sized_by="k num_rows num_cols",
)
op(
    "MatrixDiagV3",
    "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T",
    "output: T",
    "T: type",
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
    shape=a.matrix_diag_v2,
    sized_by="k num_rows num_cols",
)
op("MatrixSetDiag", "input: T, diagonal: T", "output: T", "T: type", shape=a.matrix_set_diag)
op(
    "MatrixSetDiagV2",
    "input: T, diagonal: T, k: int32",
    "output: T",
    "T: type",
    shape=a.matrix_set_diag_v2,
    sized_by="",
)
op(
    "MatrixSetDiagV3",
    "input: T, diagonal: T, k: int32",
    "output: T",
    "T: type",
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
    shape=a.matrix_set_diag_v2,
    sized_by="",
)
op(
    "MirrorPad",
    "input: T, paddings: Tpaddings",
    "output: T",
    "T: type",
    "Tpaddings: {index} = int32",
    "mode: {'REFLECT', 'SYMMETRIC'}",
    shape=h.pad,
    sized_by="paddings",
)
op(
    "MirrorPadGrad",
    "input: T, paddings: Tpaddings",
    "output: T",
    "T: type",
    "Tpaddings: {index} = int32",
    "mode: {'REFLECT', 'SYMMETRIC'}",
    shape=a.mirror_pad_grad,
    sized_by="",
)
op(
    "OneHot",
    "indices: TI, depth: int32, on_value: T, off_value: T",
    "output: T",
    "axis: int = -1",
    "T: type",
    "TI: {uint8, int8, int32, int64} = int64",
    shape=h.one_hot,
    sized_by="depth",
)
op(
    "OnesLike",
    "x: T",
    "y: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, complex128, bool}",
    shape=s.unchanged,
)
op("Pack", "values: N * T", "output: T", "N: int >= 1", "T: type", "axis: int = 0", shape=k.pack)
op(
    "Pad",
    "input: T, paddings: Tpaddings",
    "output: T",
    "T: type",
    "Tpaddings: {index} = int32",
    shape=h.pad,
    sized_by="paddings",
)
op(
    "PadV2",
    "input: T, paddings: Tpaddings, constant_values: T",
    "output: T",
    "T: type",
    "Tpaddings: {index} = int32",
    shape=h.pad,
    sized_by="paddings",
)
op(
    "ParallelDynamicStitch",
    "indices: N * int32, data: N * T",
    "merged: T",
    "N: int >= 1",
    "T: type",
    shape=h.dynamic_stitch,
    sized_by="indices",
)
op("Placeholder", "", "output: dtype", "dtype: type", "shape: shape = unknown", shape=s.placeholder)
op("PlaceholderV2", "", "output: dtype", "dtype: type", "shape: shape", shape=s.attr_shape)
op(
    "PlaceholderWithDefault",
    "input: dtype",
    "output: dtype",
    "dtype: type",
    "shape: shape",
    shape=s.placeholder_with_default,
)
op("PreventGradient", "input: T", "output: T", "T: type", "message: string = ''", shape=s.unchanged)
op(
    "QuantizeAndDequantize",
    "input: T",
    "output: T",
    "signed_input: bool = true",
    "num_bits: int = 8",
    "range_given: bool = false",
    "input_min: float = 0",
    "input_max: float = 0",
    "T: {floats}",
    shape=s.unchanged,
)
op(
    "QuantizeAndDequantizeV2",
    "input: T, input_min: T, input_max: T",
    "output: T",
    "signed_input: bool = true",
    "num_bits: int = 8",
    "range_given: bool = false",
    "T: {floats}",
    "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'",
    "narrow_range: bool = false",
    "axis: int = -1",
    shape=s.unchanged,
)
op(
    "QuantizeAndDequantizeV3",
    "input: T, input_min: T, input_max: T, num_bits: int32",
    "output: T",
    "signed_input: bool = true",
    "range_given: bool = true",
    "T: {floats}",
    "narrow_range: bool = false",
    "axis: int = -1",
    shape=s.unchanged,
)
op(
    "QuantizeAndDequantizeV4",
    "input: T, input_min: T, input_max: T",
    "output: T",
    "signed_input: bool = true",
    "num_bits: int = 8",
    "range_given: bool = false",
    "T: {floats}",
    "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'",
    "narrow_range: bool = false",
    "axis: int = -1",
    shape=s.unchanged,
)
op(
    "QuantizeAndDequantizeV4Grad",
    "gradients: T, input: T, input_min: T, input_max: T",
    "input_backprop: T, input_min_backprop: T, input_max_backprop: T",
    "T: {floats}",
    "axis: int = -1",
    shape=a.quantize_gradient,
)
op("Rank", "input: T", "output: int32", "T: type", shape=s.scalar)
op("RefIdentity", "input: Ref(T)", "output: Ref(T)", "T: type", allows_uninitialized_input=True, shape=s.unchanged)
op(
    "Reshape",
    "tensor: T, shape: Tshape",
    "output: T",
    "T: type",
    "Tshape: {index} = int32",
    shape=h.reshape,
    sized_by="",
)
op(
    "Reverse",
    "tensor: T, dims: bool",
    "output: T",
    "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, complex64, complex128, string}",
    shape=a.flipped,
)
op(
    "ReverseSequence",
    "input: T, seq_lengths: Tlen",
    "output: T",
    "seq_dim: int",
    "batch_dim: int = 0",
    "T: type",
    "Tlen: {index} = int64",
    shape=a.reverse_sequence,
)
op(
    "ReverseV2",
    "tensor: T, axis: Tidx",
    "output: T",
    "Tidx: {index} = int32",
    "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, complex64, complex128, string}",
    shape=a.reverse,
    sized_by="",
)
op(
    "Roll",
    "input: T, shift: Tshift, axis: Taxis",
    "output: T",
    "T: type",
    "Tshift: {index}",
    "Taxis: {index}",
    shape=s.unchanged,
)
op(
    "ScatterNd",
    "indices: Tindices, updates: T, shape: Tindices",
    "output: T",
    "T: type",
    "Tindices: {int16, int32, int64}",
    "bad_indices_policy: string = ''",
    shape=h.scatter_nd,
    sized_by="shape",
)
op(
    "ScatterNdNonAliasingAdd",
    "input: T, indices: Tindices, updates: T",
    "output: T",
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool}",
    "Tindices: {index}",
    "bad_indices_policy: string = ''",
    shape=s.unchanged,
)
op("Shape", "input: T", "output: out_type", "T: type", "out_type: {index} = int32", shape=h.shape_of)
op(
    "ShapeN",
    "input: N * T",
    "output: N * out_type",
    "N: int >= 1",
    "T: type",
    "out_type: {index} = int32",
    shape=h.shape_n,
)
op("Size", "input: T", "output: out_type", "T: type", "out_type: {index} = int32", shape=s.scalar)
op(
    "Slice",
    "input: T, begin: Index, size: Index",
    "output: T",
    "T: type",
    "Index: {index}",
    shape=k.slice_,
    sized_by="",
)
op("Snapshot", "input: T", "output: T", "T: type", shape=s.unchanged)
op(
    "SpaceToBatch",
    "input: T, paddings: Tpaddings",
    "output: T",
    "T: type",
    "Tpaddings: {index} = int32",
    "block_size: int >= 2",
    shape=a.space_to_batch,
    sized_by="paddings",
)
op(
    "SpaceToBatchND",
    "input: T, block_shape: Tblock_shape, paddings: Tpaddings",
    "output: T",
    "T: type",
    "Tblock_shape: {index} = int32",
    "Tpaddings: {index} = int32",
    shape=a.space_to_batch_nd,
    sized_by="block_shape paddings",
)
op(
    "SpaceToDepth",
    "input: T",
    "output: T",
    "T: type",
    "block_size: int >= 2",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    shape=a.space_to_depth,
)
op(
    "SparseToDense",
    "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T",
    "dense: T",
    "validate_indices: bool = true",
    "T: type",
    "Tindices: {index}",
    shape=h.sparse_to_dense,
    sized_by="output_shape",
)
op(
    "Split",
    "split_dim: int32, value: T",
    "output: num_split * T",
    "num_split: int >= 1",
    "T: type",
    shape=k.split,
    sized_by="",
)
op(
    "SplitV",
    "value: T, size_splits: Tlen, split_dim: int32",
    "output: num_split * T",
    "num_split: int >= 1",
    "T: type",
    "Tlen: {int8, int32, int64} = int64",
    shape=k.split_v,
    sized_by="",
)
op("Squeeze", "input: T", "output: T", "T: type", "squeeze_dims: list(int) >= 0 = []", shape=h.squeeze)
op("StopGradient", "input: T", "output: T", "T: type", shape=s.unchanged)
op(
    "StridedSlice",
    "input: T, begin: Index, end: Index, strides: Index",
    "output: T",
    "T: type",
    "Index: {int16, int32, int64}",
    "begin_mask: int = 0",
    "end_mask: int = 0",
    "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0",
    "shrink_axis_mask: int = 0",
    shape=k.strided_slice,
    sized_by="",
)
op(
    "StridedSliceAssign",
    "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T",
    "output_ref: Ref(T)",
    "T: type",
    "Index: {index}",
    "begin_mask: int = 0",
    "end_mask: int = 0",
    "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0",
    "shrink_axis_mask: int = 0",
    shape=s.unchanged,
)
op(
    "StridedSliceGrad",
    "shape: Index, begin: Index, end: Index, strides: Index, dy: T",
    "output: T",
    "T: type",
    "Index: {index}",
    "begin_mask: int = 0",
    "end_mask: int = 0",
    "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0",
    "shrink_axis_mask: int = 0",
    shape=k.strided_slice_grad,
    sized_by="shape",
)
op(
    "ResourceStridedSliceAssign",
    "ref: resource, begin: Index, end: Index, strides: Index, value: T",
    "",
    "T: type",
    "Index: {index}",
    "begin_mask: int = 0",
    "end_mask: int = 0",
    "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0",
    "shrink_axis_mask: int = 0",
    stateful=True,
)
op(
    "TensorScatterAdd",
    "tensor: T, indices: Tindices, updates: T",
    "output: T",
    "T: type",
    "Tindices: {index}",
    "bad_indices_policy: string = ''",
    shape=s.first_input,
)
op(
    "TensorScatterMax",
    "tensor: T, indices: Tindices, updates: T",
    "output: T",
    "T: type",
    "Tindices: {index}",
    "bad_indices_policy: string = ''",
    shape=s.unchanged,
)
op(
    "TensorScatterMin",
    "tensor: T, indices: Tindices, updates: T",
    "output: T",
    "T: type",
    "Tindices: {index}",
    "bad_indices_policy: string = ''",
    shape=s.unchanged,
)
op(
    "TensorScatterSub",
    "tensor: T, indices: Tindices, updates: T",
    "output: T",
    "T: type",
    "Tindices: {index}",
    "bad_indices_policy: string = ''",
    shape=s.unchanged,
)
op(
    "TensorScatterUpdate",
    "tensor: T, indices: Tindices, updates: T",
    "output: T",
    "T: type",
    "Tindices: {int16, int32, int64, uint16}",
    "bad_indices_policy: string = ''",
    shape=s.first_input,
)
op(
    "TensorStridedSliceUpdate",
    "input: T, begin: Index, end: Index, strides: Index, value: T",
    "output: T",
    "T: type",
    "Index: {index}",
    "begin_mask: int = 0",
    "end_mask: int = 0",
    "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0",
    "shrink_axis_mask: int = 0",
    shape=s.unchanged,
)
op(
    "Tile",
    "input: T, multiples: Tmultiples",
    "output: T",
    "T: type",
    "Tmultiples: {index} = int32",
    shape=h.tile,
    sized_by="multiples",
)
op("TileGrad", "input: T, multiples: int32", "output: T", "T: type", shape=h.tile_grad, sized_by="")
op("Transpose", "x: T, perm: Tperm", "y: T", "T: type", "Tperm: {index} = int32", shape=h.transpose, sized_by="")
op("Unique", "x: T", "y: T, idx: out_idx", "T: type", "out_idx: {index} = int32", shape=h.unique)
op(
    "UniqueV2",
    "x: T, axis: Taxis",
    "y: T, idx: out_idx",
    "T: type",
    "Taxis: {index} = int64",
    "out_idx: {index} = int32",
    shape=a.unique_v2,
    sized_by="",
)
op(
    "UniqueWithCounts",
    "x: T",
    "y: T, idx: out_idx, count: out_idx",
    "T: type",
    "out_idx: {index} = int32",
    shape=a.unique_with_counts,
)
op(
    "UniqueWithCountsV2",
    "x: T, axis: Taxis",
    "y: T, idx: out_idx, count: out_idx",
    "T: type",
    "Taxis: {index} = int64",
    "out_idx: {index} = int32",
    shape=a.unique_v2,
    sized_by="",
)
op("Unpack", "value: T", "output: num * T", "num: int >= 0", "T: type", "axis: int = 0", shape=k.unpack)
op("UnravelIndex", "indices: Tidx, dims: Tidx", "output: Tidx", "Tidx: {index} = int32", shape=a.unravel_index)
op(
    "UpperBound",
    "sorted_inputs: T, values: T",
    "output: out_type",
    "T: type",
    "out_type: {index} = int32",
    shape=a.search,
)
op(
    "Where",
    "input: T",
    "index: int64",
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = bool",
    shape=k.where,
)
op("ZerosLike", "x: T", "y: T", "T: type", shape=s.unchanged)
