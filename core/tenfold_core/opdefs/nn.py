"""Op definitions: activations, losses, convolutions, pooling, normalisation.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import nn_cells, nn_windows, nn_words  # noqa: F401 - more of the family
from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_nn as w
from tenfold_core.opdefs.table import family

op = family("nn")

op(
    "AvgPool",
    "value: T",
    "output: T",
    "ksize: list(int) >= 4",
    "strides: list(int) >= 4",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "T: {half_floats}",
    shape=w.pool,
)
op(
    "AvgPool3D",
    "input: T",
    "output: T",
    "ksize: list(int) >= 5",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "T: {half_floats}",
    shape=w.pool,
)
op(
    "AvgPool3DGrad",
    "orig_input_shape: int32, grad: T",
    "output: T",
    "ksize: list(int) >= 5",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "T: {half_floats}",
    shape=w.of_sizes,
    sized_by="orig_input_shape",
)
op(
    "AvgPoolGrad",
    "orig_input_shape: int32, grad: T",
    "output: T",
    "ksize: list(int) >= 4",
    "strides: list(int) >= 4",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "T: {half_floats}",
    shape=w.of_sizes,
    sized_by="orig_input_shape",
)
op(
    "BatchNormWithGlobalNormalization",
    "t: T, m: T, v: T, beta: T, gamma: T",
    "result: T",
    "T: {numeric}",
    "variance_epsilon: float",
    "scale_after_normalization: bool",
    shape=w.global_batch_norm,
)
op(
    "BatchNormWithGlobalNormalizationGrad",
    "t: T, m: T, v: T, gamma: T, backprop: T",
    "dx: T, dm: T, dv: T, db: T, dg: T",
    "T: {numeric}",
    "variance_epsilon: float",
    "scale_after_normalization: bool",
    shape=w.global_batch_norm_grad,
)
op(
    "BiasAdd",
    "value: T, bias: T",
    "output: T",
    "T: {numeric}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    shape=w.bias_add,
)
op(
    "BiasAddGrad",
    "out_backprop: T",
    "output: T",
    "T: {numeric}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    shape=w.bias_add_grad,
)
op("BiasAddV1", "value: T, bias: T", "output: T", "T: {numeric}", shape=w.bias_add)
op(
    "Conv2D",
    "input: T, filter: T",
    "output: T",
    "T: {half, bfloat16, float, double, int32}",
    "strides: list(int)",
    "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
    shape=w.conv2d,
)
op(
    "Conv2DBackpropFilter",
    "input: T, filter_sizes: int32, out_backprop: T",
    "output: T",
    "T: {half_floats}",
    "strides: list(int)",
    "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
    shape=w.of_filter_sizes,
    sized_by="filter_sizes",
)
op(
    "Conv2DBackpropInput",
    "input_sizes: int32, filter: T, out_backprop: T",
    "output: T",
    "T: {half, bfloat16, float, double, int32}",
    "strides: list(int)",
    "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
    shape=w.of_input_sizes,
    sized_by="input_sizes",
)
op(
    "Conv",
    "input: T, filter: T",
    "output: T",
    "T: {half, bfloat16, float, double, int32}",
    "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'",
    "dilations: list(int) = []",
    "batch_dims: int = 1",
    "groups: int = 1",
)
op(
    "Conv3D",
    "input: T, filter: T",
    "output: T",
    "T: {half_floats}",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "dilations: list(int) = [1, 1, 1, 1, 1]",
    shape=w.conv3d,
)
op(
    "Conv3DBackpropFilter",
    "input: T, filter: T, out_backprop: T",
    "output: T",
    "T: {half, float, double}",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "dilations: list(int) = [1, 1, 1, 1, 1]",
    shape=w.second_image,
)
op(
    "Conv3DBackpropFilterV2",
    "input: T, filter_sizes: int32, out_backprop: T",
    "output: T",
    "T: {half_floats}",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "dilations: list(int) = [1, 1, 1, 1, 1]",
    shape=w.of_filter_sizes,
    sized_by="filter_sizes",
)
op(
    "Conv3DBackpropInput",
    "input: T, filter: T, out_backprop: T",
    "output: T",
    "T: {half, float, double}",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "dilations: list(int) = [1, 1, 1, 1, 1]",
    shape=w.image,
)
op(
    "Conv3DBackpropInputV2",
    "input_sizes: Tshape, filter: T, out_backprop: T",
    "output: T",
    "T: {half_floats}",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "dilations: list(int) = [1, 1, 1, 1, 1]",
    "Tshape: {index} = int32",
    shape=w.of_sizes,
    sized_by="input_sizes",
)
op(
    "DataFormatDimMap",
    "x: T",
    "y: T",
    "T: {index} = int32",
    "src_format: string = 'NHWC'",
    "dst_format: string = 'NCHW'",
    shape=s.unchanged,
)
op(
    "DataFormatVecPermute",
    "x: T",
    "y: T",
    "T: {index} = int32",
    "src_format: string = 'NHWC'",
    "dst_format: string = 'NCHW'",
    shape=s.unchanged,
)
op(
    "DepthwiseConv2dNative",
    "input: T, filter: T",
    "output: T",
    "T: {half_floats}",
    "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
    shape=w.depthwise,
)
op(
    "DepthwiseConv2dNativeBackpropFilter",
    "input: T, filter_sizes: int32, out_backprop: T",
    "output: T",
    "T: {half_floats}",
    "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
    shape=w.of_filter_sizes,
    sized_by="filter_sizes",
)
op(
    "DepthwiseConv2dNativeBackpropInput",
    "input_sizes: int32, filter: T, out_backprop: T",
    "output: T",
    "T: {half_floats}",
    "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
    shape=w.of_sizes,
    sized_by="input_sizes",
)
op(
    "Dilation2D",
    "input: T, filter: T",
    "output: T",
    "T: {real}",
    "strides: list(int) >= 4",
    "rates: list(int) >= 4",
    "padding: {'SAME', 'VALID'}",
    shape=w.dilation,
)
op("Elu", "features: T", "activations: T", "T: {half_floats}", shape=s.unchanged)
op("EluGrad", "gradients: T, outputs: T", "backprops: T", "T: {half_floats}", shape=s.add_n)
op(
    "FusedBatchNorm",
    "x: T, scale: T, offset: T, mean: T, variance: T",
    "y: T, batch_mean: T, batch_variance: T, reserve_space_1: T, reserve_space_2: T",
    "T: {float}",
    "epsilon: float = 0.0001",
    "exponential_avg_factor: float = 1.0",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "is_training: bool = true",
    shape=w.batch_norm,
)
op(
    "FusedBatchNormGrad",
    "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T",
    "x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T",
    "T: {float}",
    "epsilon: float = 0.0001",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "is_training: bool = true",
    shape=w.batch_norm_grad,
)
op(
    "FusedBatchNormGradV2",
    "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U",
    "x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_3: U, reserve_space_4: U",
    "T: {half, bfloat16, float}",
    "U: {float}",
    "epsilon: float = 0.0001",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "is_training: bool = true",
    shape=w.batch_norm_grad,
)
op(
    "FusedBatchNormGradV3",
    "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U",
    "x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_4: U, reserve_space_5: U",
    "T: {half, bfloat16, float}",
    "U: {float}",
    "epsilon: float = 0.0001",
    "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'",
    "is_training: bool = true",
    shape=w.batch_norm_grad,
)
op(
    "FusedBatchNormV2",
    "x: T, scale: U, offset: U, mean: U, variance: U",
    "y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U",
    "T: {half, bfloat16, float}",
    "U: {float}",
    "epsilon: float = 0.0001",
    "exponential_avg_factor: float = 1.0",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "is_training: bool = true",
    shape=w.batch_norm,
)
op(
    "FusedBatchNormV3",
    "x: T, scale: U, offset: U, mean: U, variance: U",
    "y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U",
    "T: {half, bfloat16, float}",
    "U: {bfloat16, float}",
    "epsilon: float = 0.0001",
    "exponential_avg_factor: float = 1.0",
    "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'",
    "is_training: bool = true",
    shape=w.batch_norm,
)
op(
    "GatherTree",
    "step_ids: T, parent_ids: T, max_sequence_lengths: int32, end_token: T",
    "beams: T",
    "T: {int32}",
    shape=w.gather_tree,
)
op("InTopK", "predictions: float, targets: T", "precision: bool", "k: int", "T: {index} = int32", shape=w.in_top_k)
op("InTopKV2", "predictions: float, targets: T, k: T", "precision: bool", "T: {index} = int32", shape=w.in_top_k)
op("L2Loss", "t: T", "output: T", "T: {half_floats}", shape=s.scalar)
op("LeakyRelu", "features: T", "activations: T", "alpha: float = 0.2", "T: {half_floats} = float", shape=s.unchanged)
op(
    "LeakyReluGrad",
    "gradients: T, features: T",
    "backprops: T",
    "alpha: float = 0.2",
    "T: {half_floats} = float",
    shape=s.add_n,
)
op("LogSoftmax", "logits: T", "logsoftmax: T", "T: {half_floats}", shape=s.unchanged)
op(
    "LRN",
    "input: T",
    "output: T",
    "depth_radius: int = 5",
    "bias: float = 1.0",
    "alpha: float = 1.0",
    "beta: float = 0.5",
    "T: {half, bfloat16, float} = float",
    shape=w.image,
)
op(
    "LRNGrad",
    "input_grads: T, input_image: T, output_image: T",
    "output: T",
    "depth_radius: int = 5",
    "bias: float = 1.0",
    "alpha: float = 1.0",
    "beta: float = 0.5",
    "T: {half, bfloat16, float} = float",
    shape=w.image,
)
op(
    "MaxPool",
    "input: T",
    "output: T",
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float",
    "ksize: list(int) >= 4",
    "strides: list(int) >= 4",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    shape=w.pool,
)
op(
    "MaxPool3D",
    "input: T",
    "output: T",
    "ksize: list(int) >= 5",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "T: {half, bfloat16, float}",
    shape=w.pool,
)
op(
    "MaxPool3DGrad",
    "orig_input: TInput, orig_output: TInput, grad: T",
    "output: T",
    "ksize: list(int) >= 5",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "T: {half, bfloat16, float} = float",
    "TInput: {half, bfloat16, float} = float",
    shape=w.image,
)
op(
    "MaxPool3DGradGrad",
    "orig_input: T, orig_output: T, grad: T",
    "output: T",
    "ksize: list(int) >= 5",
    "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "T: {real}",
    shape=w.second_image,
)
op(
    "MaxPoolGrad",
    "orig_input: T, orig_output: T, grad: T",
    "output: T",
    "ksize: list(int) >= 4",
    "strides: list(int) >= 4",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "T: {real} = float",
    shape=w.image,
)
op(
    "MaxPoolGradGrad",
    "orig_input: T, orig_output: T, grad: T",
    "output: T",
    "ksize: list(int) >= 4",
    "strides: list(int) >= 4",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "T: {real}",
    shape=w.second_image,
)
op(
    "MaxPoolGradGradV2",
    "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32",
    "output: T",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "T: {real}",
    shape=w.pool_v2,
    sized_by="",
)
op(
    "MaxPoolGradGradWithArgmax",
    "input: T, grad: T, argmax: Targmax",
    "output: T",
    "ksize: list(int) >= 4",
    "strides: list(int) >= 4",
    "padding: {'SAME', 'VALID'}",
    "include_batch_in_index: bool = false",
    "Targmax: {index}",
    "T: {real}",
    shape=w.third_input,
)
op(
    "MaxPoolGradV2",
    "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32",
    "output: T",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "T: {real} = float",
    shape=w.image,
)
op(
    "MaxPoolGradWithArgmax",
    "input: T, grad: T, argmax: Targmax",
    "output: T",
    "ksize: list(int) >= 4",
    "strides: list(int) >= 4",
    "padding: {'SAME', 'VALID'}",
    "include_batch_in_index: bool = false",
    "Targmax: {index}",
    "T: {real}",
    shape=w.image,
)
op(
    "MaxPoolV2",
    "input: T, ksize: int32, strides: int32",
    "output: T",
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float",
    "padding: {'SAME', 'VALID'}",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    shape=w.pool_v2,
    sized_by="",
)
op(
    "MaxPoolWithArgmax",
    "input: T",
    "output: T, argmax: Targmax",
    "ksize: list(int) >= 4",
    "strides: list(int) >= 4",
    "Targmax: {index} = int64",
    "padding: {'SAME', 'VALID'}",
    "include_batch_in_index: bool = false",
    "T: {real}",
    shape=w.pool,
)
op(
    "NthElement",
    "input: T, n: int32",
    "values: T",
    "reverse: bool = false",
    "T: {real}",
    shape=w.nth_element,
    sized_by="",
)
op(
    "Relu",
    "features: T",
    "activations: T",
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8}",
    shape=s.unchanged,
)
op("Relu6", "features: T", "activations: T", "T: {real}", shape=s.unchanged)
op("Relu6Grad", "gradients: T, features: T", "backprops: T", "T: {real}", shape=s.add_n)
op("ReluGrad", "gradients: T, features: T", "backprops: T", "T: {real}", shape=s.add_n)
op("Selu", "features: T", "activations: T", "T: {half_floats}", shape=s.unchanged)
op("SeluGrad", "gradients: T, outputs: T", "backprops: T", "T: {half_floats}", shape=s.add_n)
op("Softmax", "logits: T", "softmax: T", "T: {half_floats}", shape=s.unchanged)
op(
    "SoftmaxCrossEntropyWithLogits",
    "features: T, labels: T",
    "loss: T, backprop: T",
    "T: {half_floats}",
    shape=w.softmax_cross_entropy,
)
op("Softplus", "features: T", "activations: T", "T: {half_floats}", shape=s.unchanged)
op("SoftplusGrad", "gradients: T, features: T", "backprops: T", "T: {half_floats}", shape=s.add_n)
op("Softsign", "features: T", "activations: T", "T: {half_floats}", shape=s.unchanged)
op("SoftsignGrad", "gradients: T, features: T", "backprops: T", "T: {half_floats}", shape=s.add_n)
op(
    "SparseSoftmaxCrossEntropyWithLogits",
    "features: T, labels: Tlabels",
    "loss: T, backprop: T",
    "T: {half_floats}",
    "Tlabels: {index} = int64",
    shape=w.sparse_softmax_cross_entropy,
)
op(
    "TopK",
    "input: T",
    "values: T, indices: int32",
    "k: int >= 0",
    "sorted: bool = true",
    "T: {real}",
    shape=w.top_k,
    sized_by="",
)
op(
    "TopKV2",
    "input: T, k: Tk",
    "values: T, indices: index_type",
    "sorted: bool = true",
    "T: {real}",
    "Tk: {int16, int32, int64} = int32",
    "index_type: {int16, int32, int64} = int32",
    shape=w.top_k,
    sized_by="",
)
