"""Op definitions: arithmetic, comparisons, reductions, matrix products, segments.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_array as a
from tenfold_core.opdefs import shape_fns_math as g
from tenfold_core.opdefs import shape_fns_reshape as h
from tenfold_core.opdefs.table import family

op = family("math")

op("Abs", "x: T", "y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64}", shape=s.unchanged)
op(
    "AccumulateNV2",
    "inputs: N * T",
    "sum: T",
    "N: int >= 1",
    "T: {numeric}",
    "shape: shape",
    commutative=True,
    aggregate=True,
    shape=a.attr_shape,
)
op("Acos", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("Acosh", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op(
    "Add",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}",
    shape=s.broadcast,
)
op(
    "AddN",
    "inputs: N * T",
    "sum: T",
    "N: int >= 1",
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, variant}",
    commutative=True,
    aggregate=True,
    shape=s.add_n,
)
op(
    "AddV2",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, complex128}",
    commutative=True,
    aggregate=True,
    shape=s.broadcast,
)
op(
    "All",
    "input: bool, reduction_indices: Tidx",
    "output: bool",
    "keep_dims: bool = false",
    "Tidx: {index} = int32",
    shape=g.reduction,
    sized_by="",
)
op(
    "Angle",
    "input: T",
    "output: Tout",
    "T: {complex64, complex128} = complex64",
    "Tout: {float, double} = float",
    shape=s.unchanged,
)
op(
    "Any",
    "input: bool, reduction_indices: Tidx",
    "output: bool",
    "keep_dims: bool = false",
    "Tidx: {index} = int32",
    shape=g.reduction,
    sized_by="",
)
op(
    "ApproximateEqual",
    "x: T, y: T",
    "z: bool",
    "T: {numeric}",
    "tolerance: float = 1e-05",
    commutative=True,
    shape=s.add_n,
)
op(
    "ArgMax",
    "input: T, dimension: Tidx",
    "output: output_type",
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, qint32, qint16, quint16, bool}",
    "Tidx: {int16, int32, int64} = int32",
    "output_type: {int16, uint16, int32, int64} = int64",
    shape=g.arg_reduction,
    sized_by="",
)
op(
    "ArgMin",
    "input: T, dimension: Tidx",
    "output: output_type",
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, qint32, qint16, quint16, bool}",
    "Tidx: {index} = int32",
    "output_type: {index} = int64",
    shape=g.arg_reduction,
    sized_by="",
)
op("Asin", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("Asinh", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("Atan", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("Atan2", "y: T, x: T", "z: T", "T: {floats}", shape=s.broadcast)
op("Atanh", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op(
    "BatchMatMul",
    "x: T, y: T",
    "output: T",
    "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    "adj_x: bool = false",
    "adj_y: bool = false",
    "grad_x: bool = false",
    "grad_y: bool = false",
    shape=g.batch_matmul_v1,
)
op(
    "BatchMatMulV2",
    "x: T, y: T",
    "output: T",
    "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
    "adj_x: bool = false",
    "adj_y: bool = false",
    "grad_x: bool = false",
    "grad_y: bool = false",
    shape=g.batch_matmul,
)
op(
    "BatchMatMulV3",
    "x: Ta, y: Tb",
    "output: Tout",
    "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
    "Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
    "Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}",
    "adj_x: bool = false",
    "adj_y: bool = false",
    "grad_x: bool = false",
    "grad_y: bool = false",
    shape=g.batch_matmul,
)
op(
    "Bincount",
    "arr: int32, size: int32, weights: T",
    "bins: T",
    "T: {int32, int64, float, double}",
    shape=a.bincount,
    sized_by="size",
)
op(
    "Bitcast",
    "input: T",
    "output: type",
    "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
    "type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
    shape=h.bitcast,
)
op(
    "BitwiseAnd",
    "x: T, y: T",
    "z: T",
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    commutative=True,
    shape=s.broadcast,
)
op(
    "BitwiseOr",
    "x: T, y: T",
    "z: T",
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    commutative=True,
    shape=s.broadcast,
)
op(
    "BitwiseXor",
    "x: T, y: T",
    "z: T",
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    commutative=True,
    shape=s.broadcast,
)
op("BroadcastArgs", "s0: T, s1: T", "r0: T", "T: {index} = int32", shape=s.broadcast_args)
op("BroadcastGradientArgs", "s0: T, s1: T", "r0: T, r1: T", "T: {index} = int32", shape=s.broadcast_gradient_args)
op(
    "BroadcastTo",
    "input: T, shape: Tidx",
    "output: T",
    "T: type",
    "Tidx: {index} = int32",
    shape=s.broadcast_to,
    sized_by="shape",
)
op(
    "Bucketize",
    "input: T",
    "output: int32",
    "T: {int32, int64, float, double}",
    "boundaries: list(float)",
    shape=s.unchanged,
)
op("Cast", "x: SrcT", "y: DstT", "SrcT: type", "DstT: type", "Truncate: bool = false", shape=s.unchanged)
op("Ceil", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("CheckNumerics", "tensor: T", "output: T", "T: {floats}", "message: string", stateful=True, shape=s.unchanged)
op("ClipByValue", "t: T, clip_value_min: T, clip_value_max: T", "output: T", "T: {numeric}", shape=s.unchanged)
op(
    "Complex",
    "real: T, imag: T",
    "out: Tout",
    "T: {float, double} = float",
    "Tout: {complex64, complex128} = complex64",
    shape=s.broadcast,
)
op(
    "ComplexAbs",
    "x: T",
    "y: Tout",
    "T: {complex64, complex128} = complex64",
    "Tout: {float, double} = float",
    shape=s.unchanged,
)
op("Conj", "input: T", "output: T", "T: {complex64, complex128, variant} = complex64", shape=s.unchanged)
op("Cos", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("Cosh", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("Cross", "a: T, b: T", "product: T", "T: {real}", shape=a.cross)
op(
    "Cumprod",
    "x: T, axis: Tidx",
    "out: T",
    "exclusive: bool = false",
    "reverse: bool = false",
    "T: {numeric}",
    "Tidx: {index} = int32",
    shape=s.unchanged,
)
op(
    "Cumsum",
    "x: T, axis: Tidx",
    "out: T",
    "exclusive: bool = false",
    "reverse: bool = false",
    "T: {numeric}",
    "Tidx: {index} = int32",
    shape=s.unchanged,
)
op(
    "CumulativeLogsumexp",
    "x: T, axis: Tidx",
    "out: T",
    "exclusive: bool = false",
    "reverse: bool = false",
    "T: {floats}",
    "Tidx: {index} = int32",
    shape=s.unchanged,
)
op(
    "DenseBincount",
    "input: Tidx, size: Tidx, weights: T",
    "output: T",
    "Tidx: {index}",
    "T: {int32, int64, float, double}",
    "binary_output: bool = false",
    shape=a.dense_bincount,
    sized_by="size",
)
op(
    "Div",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}",
    shape=s.broadcast,
)
op("DivNoNan", "x: T, y: T", "z: T", "T: {half, float, bfloat16, double, complex64, complex128}", shape=s.broadcast)
op("Einsum", "inputs: N * T", "output: T", "equation: string", "N: int >= 1", "T: type", shape=a.einsum)
op(
    "Equal",
    "x: T, y: T",
    "z: bool",
    "T: type",
    "incompatible_shape_error: bool = true",
    commutative=True,
    shape=s.equal,
)
op("Erf", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op("Erfc", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op(
    "EuclideanNorm",
    "input: T, reduction_indices: Tidx",
    "output: T",
    "keep_dims: bool = false",
    "T: {numeric}",
    "Tidx: {index} = int32",
    shape=g.reduction,
    sized_by="",
)
op("Exp", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("Expm1", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("Floor", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op(
    "FloorDiv",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}",
    shape=s.broadcast,
)
op(
    "FloorMod",
    "x: T, y: T",
    "z: T",
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}",
    shape=s.broadcast,
)
op("Greater", "x: T, y: T", "z: bool", "T: {real}", shape=s.broadcast)
op("GreaterEqual", "x: T, y: T", "z: bool", "T: {real}", shape=s.broadcast)
op(
    "HistogramFixedWidth",
    "values: T, value_range: T, nbins: int32",
    "out: dtype",
    "T: {int32, int64, float, double}",
    "dtype: {index} = int32",
    shape=a.histogram,
    sized_by="nbins",
)
op(
    "Imag",
    "input: T",
    "output: Tout",
    "T: {complex64, complex128} = complex64",
    "Tout: {float, double} = float",
    shape=s.unchanged,
)
op(
    "Inv",
    "x: T",
    "y: T",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=s.unchanged,
)
op("Invert", "x: T", "y: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", shape=s.unchanged)
op("InvGrad", "y: T, dy: T", "z: T", "T: {floats_complex}", shape=s.unchanged)
op("IsFinite", "x: T", "y: bool", "T: {floats}", shape=s.unchanged)
op("IsInf", "x: T", "y: bool", "T: {floats}", shape=s.unchanged)
op("IsNan", "x: T", "y: bool", "T: {floats}", shape=s.unchanged)
op(
    "LeftShift",
    "x: T, y: T",
    "z: T",
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=s.broadcast,
)
op("Less", "x: T, y: T", "z: bool", "T: {real}", shape=s.broadcast)
op("LessEqual", "x: T, y: T", "z: bool", "T: {real}", shape=s.broadcast)
op("Lgamma", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op(
    "LinSpace",
    "start: T, stop: T, num: Tidx",
    "output: T",
    "T: {floats}",
    "Tidx: {index} = int32",
    shape=g.lin_space,
    sized_by="num",
)
op("Log", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("Log1p", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("LogicalAnd", "x: bool, y: bool", "z: bool", commutative=True, shape=s.broadcast)
op("LogicalNot", "x: bool", "y: bool", shape=s.unchanged)
op("LogicalOr", "x: bool, y: bool", "z: bool", commutative=True, shape=s.broadcast)
op(
    "MatMul",
    "a: T, b: T",
    "product: T",
    "transpose_a: bool = false",
    "transpose_b: bool = false",
    "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
    "grad_a: bool = false",
    "grad_b: bool = false",
    shape=g.matmul,
)
op(
    "Max",
    "input: T, reduction_indices: Tidx",
    "output: T",
    "keep_dims: bool = false",
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, qint32, qint16, quint16}",
    "Tidx: {index} = int32",
    shape=g.reduction,
    sized_by="",
)
op(
    "Maximum",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
    shape=s.broadcast,
)
op(
    "Mean",
    "input: T, reduction_indices: Tidx",
    "output: T",
    "keep_dims: bool = false",
    "T: {numeric}",
    "Tidx: {index} = int32",
    shape=g.reduction,
    sized_by="",
)
op(
    "Min",
    "input: T, reduction_indices: Tidx",
    "output: T",
    "keep_dims: bool = false",
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, qint32, qint16, quint16}",
    "Tidx: {index} = int32",
    shape=g.reduction,
    sized_by="",
)
op(
    "Minimum",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
    shape=s.broadcast,
)
op("Mod", "x: T, y: T", "z: T", "T: {int32, int64, half, half, bfloat16, float, double}", shape=s.broadcast)
op(
    "Mul",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}",
    commutative=True,
    shape=s.broadcast,
)
op("MulNoNan", "x: T, y: T", "z: T", "T: {floats_complex}", shape=s.broadcast)
op(
    "Neg",
    "x: T",
    "y: T",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=s.unchanged,
)
op("NextAfter", "x1: T, x2: T", "output: T", "T: {double, float} = float", shape=s.broadcast)
op(
    "NotEqual",
    "x: T, y: T",
    "z: bool",
    "T: type",
    "incompatible_shape_error: bool = true",
    commutative=True,
    shape=s.equal,
)
op(
    "PopulationCount",
    "x: T",
    "y: uint8",
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=s.unchanged,
)
op(
    "Pow",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
    shape=s.broadcast,
)
op(
    "Prod",
    "input: T, reduction_indices: Tidx",
    "output: T",
    "keep_dims: bool = false",
    "T: {numeric}",
    "Tidx: {index} = int32",
    shape=g.reduction,
    sized_by="",
)
op(
    "RaggedRange",
    "starts: T, limits: T, deltas: T",
    "rt_nested_splits: Tsplits, rt_dense_values: T",
    "T: {bfloat16, float, double, int32, int64} = int32",
    "Tsplits: {index} = int64",
    shape=a.ragged_range,
    sized_by="starts limits deltas",
)
op(
    "Range",
    "start: Tidx, limit: Tidx, delta: Tidx",
    "output: Tidx",
    "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = int32",
    shape=g.range_,
    sized_by="start limit delta",
)
op(
    "Real",
    "input: T",
    "output: Tout",
    "T: {complex64, complex128} = complex64",
    "Tout: {float, double} = float",
    shape=s.unchanged,
)
op(
    "RealDiv",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}",
    shape=s.broadcast,
)
op(
    "Reciprocal",
    "x: T",
    "y: T",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=s.unchanged,
)
op("ReciprocalGrad", "y: T, dy: T", "z: T", "T: {floats_complex}", shape=s.unchanged)
op(
    "RightShift",
    "x: T, y: T",
    "z: T",
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=s.broadcast,
)
op("Rint", "x: T", "y: T", "T: {floats}", shape=s.unchanged)
op(
    "Round",
    "x: T",
    "y: T",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=s.unchanged,
)
op("Rsqrt", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("RsqrtGrad", "y: T, dy: T", "z: T", "T: {floats_complex}", shape=s.unchanged)
op(
    "SegmentMax",
    "data: T, segment_ids: Tindices",
    "output: T",
    "T: {real}",
    "Tindices: {index}",
    shape=g.segment,
    sized_by="segment_ids",
)
op(
    "SegmentMaxV2",
    "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
    "output: T",
    "T: {real}",
    "Tindices: {index}",
    "Tnumsegments: {index} = int32",
    shape=g.unsorted_segment,
    sized_by="num_segments",
)
op(
    "SegmentMean",
    "data: T, segment_ids: Tindices",
    "output: T",
    "T: {numeric}",
    "Tindices: {index}",
    shape=g.segment,
    sized_by="segment_ids",
)
op(
    "SegmentMin",
    "data: T, segment_ids: Tindices",
    "output: T",
    "T: {real}",
    "Tindices: {index}",
    shape=g.segment,
    sized_by="segment_ids",
)
op(
    "SegmentMinV2",
    "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
    "output: T",
    "T: {real}",
    "Tindices: {index}",
    "Tnumsegments: {index} = int32",
    shape=g.unsorted_segment,
    sized_by="num_segments",
)
op(
    "SegmentProd",
    "data: T, segment_ids: Tindices",
    "output: T",
    "T: {numeric}",
    "Tindices: {index}",
    shape=g.segment,
    sized_by="segment_ids",
)
op(
    "SegmentProdV2",
    "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
    "output: T",
    "T: {numeric}",
    "Tindices: {index}",
    "Tnumsegments: {index} = int32",
    shape=g.unsorted_segment,
    sized_by="num_segments",
)
op(
    "SegmentSum",
    "data: T, segment_ids: Tindices",
    "output: T",
    "T: {numeric}",
    "Tindices: {index}",
    shape=g.segment,
    sized_by="segment_ids",
)
op(
    "SegmentSumV2",
    "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
    "output: T",
    "T: {numeric}",
    "Tindices: {index}",
    "Tnumsegments: {index} = int32",
    shape=g.unsorted_segment,
    sized_by="num_segments",
)
op("Select", "condition: bool, t: T, e: T", "output: T", "T: type", shape=s.select)
op("SelectV2", "condition: bool, t: T, e: T", "output: T", "T: type", shape=s.select_v2)
op("Sigmoid", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("SigmoidGrad", "y: T, dy: T", "z: T", "T: {floats_complex}", shape=s.unchanged)
op(
    "Sign",
    "x: T",
    "y: T",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=s.unchanged,
)
op("Sin", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("Sinh", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op(
    "SparseMatMul",
    "a: Ta, b: Tb",
    "product: float",
    "transpose_a: bool = false",
    "transpose_b: bool = false",
    "a_is_sparse: bool = false",
    "b_is_sparse: bool = false",
    "Ta: {float, bfloat16} = float",
    "Tb: {float, bfloat16} = float",
    shape=g.matmul,
)
op(
    "SparseSegmentMean",
    "data: T, indices: Tidx, segment_ids: Tsegmentids",
    "output: T",
    "T: {floats}",
    "Tidx: {index} = int32",
    "Tsegmentids: {index} = int32",
    "sparse_gradient: bool = false",
    shape=g.sparse_segment,
    sized_by="segment_ids",
)
op(
    "SparseSegmentMeanGrad",
    "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32",
    "output: T",
    "T: {floats}",
    "Tidx: {index} = int32",
    "Tsegmentids: {index} = int32",
    shape=a.segments_of_number,
    sized_by="output_dim0",
)
op(
    "SparseSegmentMeanGradV2",
    "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32",
    "output: T, sorted_unique_indices: Tidx",
    "T: {floats}",
    "Tidx: {index} = int32",
    "Tsegmentids: {index} = int32",
    shape=a.segments_found,
)
op(
    "SparseSegmentMeanWithNumSegments",
    "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments",
    "output: T",
    "T: {floats}",
    "Tidx: {index} = int32",
    "Tnumsegments: {index} = int32",
    "Tsegmentids: {index} = int32",
    "sparse_gradient: bool = false",
    shape=a.segments_of_number,
    sized_by="num_segments",
)
op(
    "SparseSegmentSqrtN",
    "data: T, indices: Tidx, segment_ids: Tsegmentids",
    "output: T",
    "T: {floats}",
    "Tidx: {index} = int32",
    "Tsegmentids: {index} = int32",
    "sparse_gradient: bool = false",
    shape=g.sparse_segment,
    sized_by="segment_ids",
)
op(
    "SparseSegmentSqrtNGrad",
    "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32",
    "output: T",
    "T: {floats}",
    "Tidx: {index} = int32",
    "Tsegmentids: {index} = int32",
    shape=a.segments_of_number,
    sized_by="output_dim0",
)
op(
    "SparseSegmentSqrtNGradV2",
    "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32",
    "output: T, sorted_unique_indices: Tidx",
    "T: {floats}",
    "Tidx: {index} = int32",
    "Tsegmentids: {index} = int32",
    shape=a.segments_found,
)
op(
    "SparseSegmentSqrtNWithNumSegments",
    "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments",
    "output: T",
    "T: {floats}",
    "Tidx: {index} = int32",
    "Tnumsegments: {index} = int32",
    "Tsegmentids: {index} = int32",
    "sparse_gradient: bool = false",
    shape=a.segments_of_number,
    sized_by="num_segments",
)
op(
    "SparseSegmentSum",
    "data: T, indices: Tidx, segment_ids: Tsegmentids",
    "output: T",
    "T: {real}",
    "Tidx: {index} = int32",
    "Tsegmentids: {index} = int32",
    "sparse_gradient: bool = false",
    shape=g.sparse_segment,
    sized_by="segment_ids",
)
op(
    "SparseSegmentSumGrad",
    "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32",
    "output: T",
    "T: {floats}",
    "Tidx: {index} = int32",
    "Tsegmentids: {index} = int32",
    shape=a.segments_of_number,
    sized_by="output_dim0",
)
op(
    "SparseSegmentSumGradV2",
    "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32",
    "output: T, sorted_unique_indices: Tidx",
    "T: {floats}",
    "Tidx: {index} = int32",
    "Tsegmentids: {index} = int32",
    shape=a.segments_found,
)
op(
    "SparseSegmentSumWithNumSegments",
    "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments",
    "output: T",
    "T: {real}",
    "Tidx: {index} = int32",
    "Tnumsegments: {index} = int32",
    "Tsegmentids: {index} = int32",
    "sparse_gradient: bool = false",
    shape=a.segments_of_number,
    sized_by="num_segments",
)
op("Sqrt", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("SqrtGrad", "y: T, dy: T", "z: T", "T: {floats_complex}", shape=s.unchanged)
op(
    "Square",
    "x: T",
    "y: T",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
    shape=s.unchanged,
)
op(
    "SquaredDifference",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    commutative=True,
    shape=s.broadcast,
)
op(
    "Sub",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, uint32, uint64}",
    shape=s.broadcast,
)
op(
    "Sum",
    "input: T, reduction_indices: Tidx",
    "output: T",
    "keep_dims: bool = false",
    "T: {numeric}",
    "Tidx: {index} = int32",
    shape=g.reduction,
    sized_by="",
)
op("Tan", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("Tanh", "x: T", "y: T", "T: {floats_complex}", shape=s.unchanged)
op("TanhGrad", "y: T, dy: T", "z: T", "T: {floats_complex}", shape=s.unchanged)
op(
    "TruncateDiv",
    "x: T, y: T",
    "z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}",
    shape=s.broadcast,
)
op("TruncateMod", "x: T, y: T", "z: T", "T: {int32, int64, bfloat16, half, float, double}", shape=s.broadcast)
op(
    "UnsortedSegmentMax",
    "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
    "output: T",
    "T: {real}",
    "Tindices: {index}",
    "Tnumsegments: {index} = int32",
    shape=g.unsorted_segment,
    sized_by="num_segments",
)
op(
    "UnsortedSegmentMin",
    "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
    "output: T",
    "T: {real}",
    "Tindices: {index}",
    "Tnumsegments: {index} = int32",
    shape=g.unsorted_segment,
    sized_by="num_segments",
)
op(
    "UnsortedSegmentProd",
    "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
    "output: T",
    "T: {numeric}",
    "Tindices: {index}",
    "Tnumsegments: {index} = int32",
    shape=g.unsorted_segment,
    sized_by="num_segments",
)
op(
    "UnsortedSegmentSum",
    "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
    "output: T",
    "T: {numeric}",
    "Tindices: {int16, int32, int64}",
    "Tnumsegments: {index} = int32",
    shape=g.unsorted_segment,
    sized_by="num_segments",
)
op("Xdivy", "x: T, y: T", "z: T", "T: {half, bfloat16, float, double, complex64, complex128}", shape=s.broadcast)
op("Xlogy", "x: T, y: T", "z: T", "T: {half, bfloat16, float, double, complex64, complex128}", shape=s.broadcast)
op(
    "SparseBincount",
    "indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T",
    "output: T",
    "Tidx: {index}",
    "T: {int32, int64, float, double}",
    "binary_output: bool = false",
    shape=a.sparse_bincount,
    sized_by="size dense_shape",
)
op(
    "RaggedBincount",
    "splits: int64, values: Tidx, size: Tidx, weights: T",
    "output: T",
    "Tidx: {index}",
    "T: {int32, int64, float, double}",
    "binary_output: bool = false",
    shape=a.ragged_bincount,
    sized_by="size",
)
