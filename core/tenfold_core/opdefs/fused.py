"""Op definitions: what graph optimizers put in place of other ops.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns_nn as w
from tenfold_core.opdefs.table import family

op = family("fused")

op(
    "FusedPadConv2D",
    "input: T, paddings: int32, filter: T",
    "output: T",
    "T: {half, bfloat16, float, double}",
    "mode: {'REFLECT', 'SYMMETRIC'}",
    "strides: list(int)",
    "padding: {'SAME', 'VALID'}",
    shape=w.padded_conv2d,
    sized_by="paddings",
)
op(
    "FusedResizeAndPadConv2D",
    "input: T, size: int32, paddings: int32, filter: T",
    "output: T",
    "T: {half, float, double}",
    "resize_align_corners: bool = false",
    "mode: {'REFLECT', 'SYMMETRIC'}",
    "strides: list(int)",
    "padding: {'SAME', 'VALID'}",
    shape=w.padded_conv2d,
    sized_by="size paddings",
)
op("ParallelConcat", "values: N * T", "output: T", "N: int >= 1", "T: type", "shape: shape", shape=w.attr_shape)
op("_ArrayToList", "input: N * T", "output: out_types", "T: type", "N: int >= 1", "out_types: list(type) >= 1")
op(
    "_FusedBatchNormEx",
    "x: T, scale: U, offset: U, mean: U, variance: U, side_input: num_side_inputs * T",
    "y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U",
    "T: {half, float, bfloat16}",
    "U: {float}",
    "epsilon: float = 1e-04",
    "exponential_avg_factor: float = 1.0",
    "num_side_inputs: int >= 0 = 0",
    "activation_mode: string = 'Identity'",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "is_training: bool = true",
    shape=w.batch_norm,
)
op(
    "_FusedConv2D",
    "input: T, filter: T, args: TArgs, host_args: num_host_args * float",
    "output: T",
    "T: {half, float, double, int8, qint8}",
    "TArgs: list(type) >= 1",
    "num_args: int >= 0",
    "num_host_args: int >= 0 = 0",
    "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    "filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'",
    "dilations: list(int) = [1, 1, 1, 1]",
    "use_cudnn_on_gpu: bool = true",
    "fused_ops: list(string) = []",
    "epsilon: float = 1e-04",
    "leakyrelu_alpha: float = 0.2",
    shape=w.fused_conv2d,
)
op(
    "_FusedDepthwiseConv2dNative",
    "input: T, filter: T, args: num_args * T",
    "output: T",
    "T: {half_floats}",
    "num_args: int >= 0",
    "strides: list(int)",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
    "fused_ops: list(string) = []",
    "epsilon: float = 1e-04",
    "leakyrelu_alpha: float = 0.2",
    shape=w.depthwise,
)
op(
    "_FusedMatMul",
    "a: T, b: T, args: num_args * T",
    "product: T",
    "transpose_a: bool = false",
    "transpose_b: bool = false",
    "T: {bfloat16, half, float}",
    "num_args: int >= 0",
    "fused_ops: list(string) = []",
    "epsilon: float = 1e-04",
    "leakyrelu_alpha: float = 0.2",
    shape=w.matmul,
)
op("_ListToArray", "input: Tin", "output: N * T", "Tin: list(type) >= 1", "T: type", "N: int >= 1")
op("_ParallelConcatStart", "", "output: dtype", "shape: shape", "dtype: type", stateful=True, shape=w.attr_shape)
op("_ParallelConcatUpdate", "value: T, update: T", "output: T", "T: type", "loc: int", shape=w.unchanged)
op("_UnaryOpsComposition", "x: T", "y: T", "T: {float, half, double}", "op_names: list(string)", shape=w.unchanged)
