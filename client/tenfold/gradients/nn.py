"""Gradient rows of the neural-network ops; the op definitions are in tenfold_core/opdefs/nn.py.

Follows TensorFlow's ops/nn_grad.py, including second derivatives where they are cheap. The cross-entropy
ops compute their derivative as a second output, which the rules only scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("Relu")
def _relu(op: Operation, g: Tensor) -> Any:
    return apply_op("ReluGrad", gradients=g, features=op.outputs[0])


@gradient("ReluGrad")
def _relu_grad(op: Operation, g: Tensor) -> Any:
    features = op.inputs[1]
    return apply_op("ReluGrad", gradients=g, features=features), apply_op("ZerosLike", x=features)


@gradient("Relu6")
def _relu6(op: Operation, g: Tensor) -> Any:
    return apply_op("Relu6Grad", gradients=g, features=op.outputs[0])


@gradient("Elu")
def _elu(op: Operation, g: Tensor) -> Any:
    return apply_op("EluGrad", gradients=g, outputs=op.outputs[0])


@gradient("Selu")
def _selu(op: Operation, g: Tensor) -> Any:
    return apply_op("SeluGrad", gradients=g, outputs=op.outputs[0])


@gradient("LeakyRelu")
def _leaky_relu(op: Operation, g: Tensor) -> Any:
    return apply_op("LeakyReluGrad", gradients=g, features=op.inputs[0], alpha=op.get_attr("alpha"))


@gradient("Softplus")
def _softplus(op: Operation, g: Tensor) -> Any:
    return apply_op("SoftplusGrad", gradients=g, features=op.inputs[0])


@gradient("Softsign")
def _softsign(op: Operation, g: Tensor) -> Any:
    return apply_op("SoftsignGrad", gradients=g, features=op.inputs[0])


@gradient("Softmax")
def _softmax(op: Operation, g: Tensor) -> Any:
    y = op.outputs[0]
    weighted = apply_op("Sum", input=g * y, reduction_indices=[-1], keep_dims=True)
    return (g - weighted) * y


@gradient("LogSoftmax")
def _log_softmax(op: Operation, g: Tensor) -> Any:
    probabilities = apply_op("Exp", x=op.outputs[0])
    return g - apply_op("Sum", input=g, reduction_indices=[-1], keep_dims=True) * probabilities


def _times_column(column: Tensor, matrix: Tensor) -> Tensor:
    """column [B] times each row of matrix [B, C]."""
    scaled: Tensor = apply_op("ExpandDims", input=column, dim=-1) * matrix
    return scaled


def _is_zero(g: Any) -> bool:
    """Whether the graph says so: what the walk through it fills in for an output that no loss depends on."""
    return g is None or g.op.type == "ZerosLike"


def _through_softmax(logits: Tensor, g_backprop: Tensor) -> Tensor:
    """Second derivatives: what the gradient of the derivative, softmax − labels, is by the logits."""
    probabilities = apply_op("Softmax", logits=logits)
    mean = apply_op("Sum", input=g_backprop * probabilities, reduction_indices=[1], keep_dims=True)
    result: Tensor = (g_backprop - mean) * probabilities
    return result


@gradient("SoftmaxCrossEntropyWithLogits")
def _softmax_cross_entropy(op: Operation, g_loss: Tensor, g_backprop: Any) -> Any:
    logits = op.inputs[0]
    grad = _times_column(g_loss, op.outputs[1])
    if not _is_zero(g_backprop):
        grad = grad + _through_softmax(logits, g_backprop)
    minus_log = apply_op("Neg", x=apply_op("LogSoftmax", logits=logits))
    return grad, _times_column(g_loss, minus_log)


@gradient("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_softmax_cross_entropy(op: Operation, g_loss: Tensor, g_backprop: Any) -> Any:
    grad = _times_column(g_loss, op.outputs[1])
    if not _is_zero(g_backprop):
        grad = grad + _through_softmax(op.inputs[0], g_backprop)
    return grad, None


@gradient("BiasAdd", "BiasAddV1")
def _bias_add(op: Operation, g: Tensor) -> Any:
    layout = op.get_attr("data_format") if op.type == "BiasAdd" else b"NHWC"
    return g, apply_op("BiasAddGrad", out_backprop=g, data_format=layout)


@gradient("BiasAddGrad")
def _bias_add_grad(op: Operation, g: Tensor) -> Any:
    # g [C]; the derivative repeats it over every other dimension of the incoming gradient.
    like = apply_op("ZerosLike", x=op.inputs[0])
    return apply_op("BiasAdd", value=like, bias=g, data_format=op.get_attr("data_format"))


@gradient("L2Loss")
def _l2_loss(op: Operation, g: Tensor) -> Any:
    return op.inputs[0] * g


@gradient("LRN")
def _lrn(op: Operation, g: Tensor) -> Any:
    attrs = {name: op.get_attr(name) for name in ("depth_radius", "bias", "alpha", "beta")}
    return apply_op("LRNGrad", input_grads=g, input_image=op.inputs[0], output_image=op.outputs[0], **attrs)


@gradient("Relu6Grad")
def _relu6_grad(op: Operation, g: Tensor) -> Any:
    features = op.inputs[1]
    return apply_op("Relu6Grad", gradients=g, features=features), apply_op("ZerosLike", x=features)


@gradient("TopK", "TopKV2")
def _top_k(op: Operation, g: Tensor, _: Any) -> Any:
    # Scatter each value's gradient to its index: rows [R, C], values [R, k].
    shape = array_ops.shape(op.inputs[0])
    columns = apply_op("GatherV2", params=shape, indices=array_ops.size(shape) - 1, axis=0)
    places = apply_op("Reshape", tensor=op.outputs[1], shape=array_ops.stack([-1, array_ops.shape(op.outputs[1])[-1]]))
    starts = apply_op("Range", start=0, limit=array_ops.shape(places)[0], delta=1) * columns
    flat = apply_op("Reshape", tensor=places + apply_op("ExpandDims", input=starts, dim=-1), shape=[-1])
    spread = apply_op(
        "ScatterNd",
        indices=apply_op("ExpandDims", input=flat, dim=-1),
        updates=apply_op("Reshape", tensor=g, shape=[-1]),
        shape=array_ops.reshape(apply_op("Prod", input=shape, reduction_indices=[0], keep_dims=False), [1]),
    )
    inputs = apply_op("Reshape", tensor=spread, shape=shape)
    return inputs if op.type == "TopK" else (inputs, None)


@gradient("NthElement")
def _nth_element(op: Operation, g: Tensor) -> Any:
    # Equal ones share the gradient evenly.
    x = op.inputs[0]
    found = apply_op("ExpandDims", input=op.outputs[0], dim=-1)
    chosen = apply_op("Cast", x=apply_op("Equal", x=found, y=x), DstT=g.dtype)
    count = apply_op("Sum", input=chosen, reduction_indices=[-1], keep_dims=True)
    return chosen / count * apply_op("ExpandDims", input=g, dim=-1), None


@gradient("MaxPool3DGradGrad")
def _max_pool_3d_grad_grad(op: Operation, g: Tensor) -> Any:
    image, pooled, _ = op.inputs
    names = ("ksize", "strides", "padding", "data_format")
    back = apply_op(
        "MaxPool3DGrad", orig_input=image, orig_output=pooled, grad=g, **{name: op.get_attr(name) for name in names}
    )
    return apply_op("ZerosLike", x=image), apply_op("ZerosLike", x=pooled), back


@gradient("BatchNormWithGlobalNormalization")
def _global_batch_norm(op: Operation, g: Tensor) -> Any:
    # only in graphs of before version 9, which the gradient's op is of, too
    x, mean, variance, _, gamma = op.inputs
    attrs = {name: op.get_attr(name) for name in ("variance_epsilon", "scale_after_normalization")}
    return tuple(
        apply_op("BatchNormWithGlobalNormalizationGrad", t=x, m=mean, v=variance, gamma=gamma, backprop=g, **attrs)
    )


not_differentiable("NegTrain", why="it has no output")
not_differentiable("Skipgram", why="it has no input")
not_differentiable("GatherTree", why="numbers of beams")
not_differentiable("InTopK", "InTopKV2", why="a decision per row")
not_implemented(
    "BatchNormWithGlobalNormalizationGrad",
    "Conv3DBackpropFilter",
    "Conv3DBackpropInput",
    "LRNGrad",
    "MaxPoolGradGradV2",
    "MaxPoolGradGradWithArgmax",
    "MaxPoolGradWithArgmax",
)
not_differentiable("DataFormatDimMap", "DataFormatVecPermute", why="dimension numbers and sizes")
