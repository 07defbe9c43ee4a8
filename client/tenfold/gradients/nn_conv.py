"""Gradient rows of convolutions, pools and batch normalisation; the op definitions are in tenfold_core/opdefs/nn.py.

Second derivatives are other convolutions and pools of the same family. Follows TensorFlow's ops/nn_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_implemented
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor

_CONV2D = ("strides", "padding", "use_cudnn_on_gpu", "data_format", "dilations", "explicit_paddings")
_DEPTHWISE = ("strides", "padding", "data_format", "dilations", "explicit_paddings")
_CONV3D = ("strides", "padding", "data_format", "dilations")

#: Forward op, gradient of the input, gradient of the filter, and the attrs that all three have.
_FAMILIES = (
    ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", _CONV2D),
    (
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter",
        _DEPTHWISE,
    ),
    ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", _CONV3D),
)


def _attrs(op: Operation, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in names}


def _register_family(forward: str, back_input: str, back_filter: str, names: tuple[str, ...]) -> None:
    @gradient(forward)
    def _forward(op: Operation, g: Tensor) -> Any:
        image, kernel = op.inputs
        shapes = apply_op("ShapeN", input=[image, kernel])
        attrs = _attrs(op, names)
        return (
            apply_op(back_input, input_sizes=shapes[0], filter=kernel, out_backprop=g, **attrs),
            apply_op(back_filter, input=image, filter_sizes=shapes[1], out_backprop=g, **attrs),
        )

    @gradient(back_input)
    def _input(op: Operation, g: Tensor) -> Any:
        _, kernel, out = op.inputs
        attrs = _attrs(op, names)
        return (
            None,
            apply_op(back_filter, input=g, filter_sizes=array_ops.shape(kernel), out_backprop=out, **attrs),
            apply_op(forward, input=g, filter=kernel, **attrs),
        )

    @gradient(back_filter)
    def _filter(op: Operation, g: Tensor) -> Any:
        image, _, out = op.inputs
        attrs = _attrs(op, names)
        return (
            apply_op(back_input, input_sizes=array_ops.shape(image), filter=g, out_backprop=out, **attrs),
            None,
            apply_op(forward, input=image, filter=g, **attrs),
        )


for _family in _FAMILIES:
    _register_family(*_family)


_POOL = ("ksize", "strides", "padding", "data_format")


@gradient("MaxPool")
def _max_pool(op: Operation, g: Tensor) -> Any:
    attrs = _attrs(op, (*_POOL, "explicit_paddings"))
    return apply_op("MaxPoolGrad", orig_input=op.inputs[0], orig_output=op.outputs[0], grad=g, **attrs)


@gradient("MaxPoolV2")
def _max_pool_v2(op: Operation, g: Tensor) -> Any:
    image, ksize, strides = op.inputs
    attrs = _attrs(op, ("padding", "data_format"))
    grad = apply_op(
        "MaxPoolGradV2", orig_input=image, orig_output=op.outputs[0], grad=g, ksize=ksize, strides=strides, **attrs
    )
    return grad, None, None


@gradient("MaxPool3D")
def _max_pool_3d(op: Operation, g: Tensor) -> Any:
    return apply_op("MaxPool3DGrad", orig_input=op.inputs[0], orig_output=op.outputs[0], grad=g, **_attrs(op, _POOL))


def _second(op: Operation, g: Tensor, back: str) -> Any:
    """Second derivative of a max pool: no gradient for the inputs that chose the maxima."""
    image, out = op.inputs[:2]
    zeros = apply_op("ZerosLike", x=image), apply_op("ZerosLike", x=out)
    return (*zeros, apply_op(back, orig_input=image, orig_output=out, grad=g, **_attrs(op, _POOL)))


@gradient("MaxPoolGrad")
def _max_pool_grad(op: Operation, g: Tensor) -> Any:
    return _second(op, g, "MaxPoolGradGrad")


@gradient("MaxPool3DGrad")
def _max_pool_3d_grad(op: Operation, g: Tensor) -> Any:
    return _second(op, g, "MaxPool3DGradGrad")


@gradient("MaxPoolGradGrad")
def _max_pool_grad_grad(op: Operation, g: Tensor) -> Any:
    return _second(op, g, "MaxPoolGrad")


@gradient("MaxPoolGradV2")
def _max_pool_grad_v2(op: Operation, g: Tensor) -> Any:
    image, out, _, ksize, strides = op.inputs
    attrs = _attrs(op, ("padding", "data_format"))
    grad = apply_op(
        "MaxPoolGradGradV2", orig_input=image, orig_output=out, grad=g, ksize=ksize, strides=strides, **attrs
    )
    return apply_op("ZerosLike", x=image), apply_op("ZerosLike", x=out), grad, None, None


@gradient("MaxPoolWithArgmax")
def _max_pool_with_argmax(op: Operation, g: Tensor, _: Any) -> Any:
    attrs = _attrs(op, ("ksize", "strides", "padding", "include_batch_in_index"))
    return apply_op("MaxPoolGradWithArgmax", input=op.inputs[0], grad=g, argmax=op.outputs[1], **attrs)


@gradient("AvgPool", "AvgPool3D")
def _avg_pool(op: Operation, g: Tensor) -> Any:
    shape = array_ops.shape(op.inputs[0])
    return apply_op(op.type + "Grad", orig_input_shape=shape, grad=g, **_attrs(op, _POOL))


@gradient("AvgPoolGrad", "AvgPool3DGrad")
def _avg_pool_grad(op: Operation, g: Tensor) -> Any:
    forward: dict[str, Any] = {"value" if op.type == "AvgPoolGrad" else "input": g}
    return None, apply_op(op.type.removesuffix("Grad"), **forward, **_attrs(op, _POOL))


@gradient("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _fused_batch_norm(op: Operation, g: Tensor, *_: Any) -> Any:
    x, scale, _offset, mean, variance = op.inputs
    attrs = _attrs(op, ("epsilon", "data_format", "is_training"))
    training = attrs["is_training"]
    # Training uses the batch statistics that the op saved; inference uses the given mean and variance.
    spaces: dict[str, Any] = {
        "reserve_space_1": op.outputs[3] if training else mean,
        "reserve_space_2": op.outputs[4] if training else variance,
    }
    if op.type == "FusedBatchNormV3":
        spaces["reserve_space_3"] = op.outputs[5]
    back = op.type.replace("Norm", "NormGrad")
    grads = apply_op(back, y_backprop=g, x=x, scale=scale, **spaces, **attrs)
    return grads[0], grads[1], grads[2], None, None


not_implemented("Conv")


@gradient("Dilation2D")
def _dilation(op: Operation, g: Tensor) -> Any:
    image, kernel = op.inputs
    given = {"input": image, "filter": kernel, "out_backprop": g, **_attrs(op, ("strides", "rates", "padding"))}
    return apply_op("Dilation2DBackpropInput", **given), apply_op("Dilation2DBackpropFilter", **given)


@gradient("FractionalMaxPool")
def _fractional_max_pool(op: Operation, g: Tensor, *_: Any) -> Any:
    out, rows, columns = op.outputs
    return apply_op(
        "FractionalMaxPoolGrad",
        orig_input=op.inputs[0],
        orig_output=out,
        out_backprop=g,
        row_pooling_sequence=rows,
        col_pooling_sequence=columns,
        overlapping=op.get_attr("overlapping"),
    )


@gradient("FractionalAvgPool")
def _fractional_avg_pool(op: Operation, g: Tensor, *_: Any) -> Any:
    rows, columns = op.outputs[1:]
    return apply_op(
        "FractionalAvgPoolGrad",
        orig_input_tensor_shape=array_ops.shape(op.inputs[0], out_type=dtypes.int64),
        out_backprop=g,
        row_pooling_sequence=rows,
        col_pooling_sequence=columns,
        overlapping=op.get_attr("overlapping"),
    )


not_implemented("Dilation2DBackpropFilter", "Dilation2DBackpropInput", "FractionalAvgPoolGrad", "FractionalMaxPoolGrad")
