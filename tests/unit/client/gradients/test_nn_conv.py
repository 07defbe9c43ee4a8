"""Gradients of convolutions and pools, first and second: strides, dilations, paddings and layouts are handed on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(71)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


#: name → forward op, image, filter, attributes
CONVOLUTIONS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "same": ("Conv2D", (2, 5, 4, 2), (3, 2, 2, 3), {"strides": [1, 2, 1, 1], "padding": "SAME"}),
    "valid, dilated": (
        "Conv2D", (1, 6, 5, 2), (2, 2, 2, 3), {"strides": [1, 1, 1, 1], "padding": "VALID", "dilations": [1, 2, 3, 1]},
    ),
    "explicit": (
        "Conv2D", (1, 4, 5, 2), (2, 3, 2, 1),
        {"strides": [1, 1, 2, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 2, 1, 0, 3, 0, 0]},
    ),
    "depthwise": (
        "DepthwiseConv2dNative", (2, 5, 5, 2), (2, 3, 2, 2), {"strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    "volumes": ("Conv3D", (1, 3, 4, 5, 2), (2, 1, 3, 2, 2), {"strides": [1, 1, 2, 2, 1], "padding": "VALID"}),
}  # fmt: skip
BACKWARD = {
    "Conv2D": ("Conv2DBackpropInput", "Conv2DBackpropFilter"),
    "DepthwiseConv2dNative": ("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
    "Conv3D": ("Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_and_its_gradients_have_gradients(name: str) -> None:
    op, image, kernel, attrs = CONVOLUTIONS[name]

    def forward(x: Any, w: Any) -> Any:
        return apply_op(op, input=x, filter=w, **attrs)

    with tf.Graph().as_default():
        out = forward(tf.placeholder(tf.float64, image), tf.placeholder(tf.float64, kernel)).shape.as_list()
    of_input, of_filter = BACKWARD[op]

    def back_input(w: Any, g: Any) -> Any:
        return apply_op(of_input, input_sizes=image, filter=w, out_backprop=g, **attrs)

    def back_filter(x: Any, g: Any) -> Any:
        return apply_op(of_filter, input=x, filter_sizes=kernel, out_backprop=g, **attrs)

    assert directional_error(forward, [normal(*image), normal(*kernel)]) < 1e-6
    assert directional_error(back_input, [normal(*kernel), normal(*out)]) < 1e-6
    assert directional_error(back_filter, [normal(*image), normal(*out)]) < 1e-6


POOLS: dict[str, tuple[str, str, tuple[int, ...], dict[str, Any]]] = {
    "MaxPool": (
        "MaxPool", "input", (2, 5, 6, 2), {"ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    "MaxPool valid": (
        "MaxPool", "input", (1, 5, 6, 2), {"ksize": [1, 3, 2, 1], "strides": [1, 1, 2, 1], "padding": "VALID"},
    ),
    "MaxPool explicit": (
        "MaxPool", "input", (1, 4, 5, 2),
        {
            "ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": "EXPLICIT",
            "explicit_paddings": [0, 0, 2, 0, 1, 1, 0, 0],
        },
    ),
    "MaxPool3D": (
        "MaxPool3D", "input", (1, 3, 4, 5, 2),
        {"ksize": [1, 1, 2, 3, 1], "strides": [1, 2, 2, 1, 1], "padding": "SAME"},
    ),
    "AvgPool": (
        "AvgPool", "value", (2, 5, 6, 2), {"ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    "AvgPool3D": (
        "AvgPool3D", "input", (1, 3, 4, 5, 2),
        {"ksize": [1, 1, 2, 3, 1], "strides": [1, 2, 2, 1, 1], "padding": "VALID"},
    ),
    "MaxPoolWithArgmax": (
        "MaxPoolWithArgmax", "input", (2, 5, 6, 2),
        {"ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME", "include_batch_in_index": True},
    ),
    "MaxPoolWithArgmax of each image": (
        "MaxPoolWithArgmax", "input", (2, 4, 4, 1),
        {"ksize": [1, 2, 2, 1], "strides": [1, 1, 2, 1], "padding": "VALID"},
    ),
    "MaxPoolV2": (
        "MaxPoolV2", "input", (2, 5, 6, 2),
        {"ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"},
    ),
    "Dilation2D": (
        "Dilation2D", "input", (2, 5, 6, 2), {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": "VALID"},
    ),
}  # fmt: skip


def pooled(name: str, x: Any) -> Any:
    op, argument, _, attrs = POOLS[name]
    if op == "Dilation2D":
        attrs = {**attrs, "filter": FILTER}
    if op == "MaxPool3D":  # of narrow numbers only
        return tf.cast(apply_op(op, **{argument: tf.cast(x, tf.float32)}, **attrs), tf.float64)
    made = apply_op(op, **{argument: x}, **attrs)
    return made[0] if op == "MaxPoolWithArgmax" else made


FILTER = normal(2, 3, 2)


@pytest.mark.parametrize("name", POOLS)
def test_pool(name: str) -> None:
    # a shuffled row: no two are so near each other that a step changes which is the largest
    shape = POOLS[name][2]
    image = RNG.permutation(np.prod(shape)).reshape(shape) / 8
    assert directional_error(lambda x: pooled(name, x), [image], step=1e-3) < 1e-3


def test_the_filter_of_a_dilation() -> None:
    _, _, shape, attrs = POOLS["Dilation2D"]
    image = normal(*shape)
    assert directional_error(lambda w: apply_op("Dilation2D", input=image, filter=w, **attrs), [FILTER]) < 1e-6


@pytest.mark.parametrize("name", ["MaxPool", "MaxPool valid", "MaxPool3D", "AvgPool", "AvgPool3D", "MaxPoolV2"])
def test_gradient_of_a_pools_gradient(name: str) -> None:
    """Linear in what comes in, whose gradient pools it at the same places."""
    image = normal(*POOLS[name][2])
    with tf.Graph().as_default():
        out = pooled(name, tf.constant(image)).shape.as_list()

    def back(g: Any) -> Any:
        x = tf.constant(image)
        return tf.gradients(pooled(name, x), x, grad_ys=g)[0]

    assert directional_error(back, [normal(*out)], step=0.5) < 1e-5
    if name not in ("AvgPool", "AvgPool3D"):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.constant(image, tf.float32)
            y = apply_op(POOLS[name][0], input=x, **POOLS[name][3])
            slope = tf.gradients(y, x, grad_ys=tf.ones_like(y))[0].op
            zeros = tf.gradients(slope.outputs[0], list(slope.inputs[:2]))
            assert not any(each.any() for each in session.run(zeros))


@pytest.mark.parametrize("op", ["MaxPoolGradGrad", "MaxPool3DGradGrad"])
def test_third_gradients_of_pools_scatter_again(op: str) -> None:
    sizes = [1, 1, 2, 2, 1] if "3D" in op else [1, 2, 2, 1]
    window = {"ksize": sizes, "strides": sizes, "padding": "VALID"}
    image = normal(*{5: (1, 2, 4, 4, 1), 4: (1, 4, 4, 2)}[len(sizes)])
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(image, tf.float32)
        out = session.run(apply_op(op.removesuffix("GradGrad"), input=x, **window))

    def gathered(g: Any) -> Any:
        narrow = tf.cast(g, tf.float32)
        return apply_op(op, orig_input=image.astype(np.float32), orig_output=out, grad=narrow, **window)

    assert directional_error(gathered, [normal(*image.shape)], step=0.5) < 1e-5


@pytest.mark.parametrize("op", ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_batch_normalization(op: str, training: bool, layout: str) -> None:
    values = normal(3, 4, 5, 2).astype(np.float32)
    image = values if layout == "NHWC" else values.transpose(0, 3, 1, 2).copy()
    statistics = [np.zeros(0, np.float32)] * 2 if training else [np.float32([0.3, -1.0]), np.float32([2.0, 0.5])]

    def build(x: Any, scale: Any, offset: Any) -> Any:
        return apply_op(
            op, x=x, scale=scale, offset=offset, mean=statistics[0], variance=statistics[1], epsilon=0.3,
            data_format=layout, is_training=training,
        )[0]  # fmt: skip

    inputs = [image, np.float32([1.5, -0.7]), np.float32([0.1, 0.2])]
    assert directional_error(build, inputs, step=3e-3) < 5e-3
    assert directional_error(build, inputs, differentiate=[0], step=3e-3) < 5e-3


@pytest.mark.parametrize("op", ["FractionalMaxPool", "FractionalAvgPool"])
@pytest.mark.parametrize("overlapping", [True, False])
def test_fractional_pools(op: str, overlapping: bool) -> None:
    def build(x: Any) -> Any:
        return apply_op(
            op, value=x, pooling_ratio=[1.0, 1.4, 1.7, 1.0], pseudo_random=True, overlapping=overlapping,
            deterministic=True, seed=3, seed2=4,
        )[0]  # fmt: skip

    assert directional_error(build, [normal(2, 7, 8, 2)]) < 1e-6


@pytest.mark.parametrize(
    ("op", "shape"), [("MaxPool", [1, 2, 4, 4]), ("AvgPool", [1, 2, 4, 4]), ("Conv2D", [1, 2, 4, 4])]
)
def test_channels_first(op: str, shape: list[int]) -> None:
    """Every op of the gradient is told the layout, and what else the first one was told."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, shape)
        if op == "Conv2D":
            w = tf.placeholder(tf.float32, [2, 2, 2, 3])
            y = apply_op(op, input=x, filter=w, strides=[1, 1, 1, 1], padding="SAME", data_format="NCHW")
        else:
            name = "value" if op == "AvgPool" else "input"
            window = {"ksize": [1, 1, 2, 2], "strides": [1, 1, 2, 1], "padding": "VALID"}
            y = apply_op(op, **{name: x}, data_format="NCHW", **window)
        (slope,) = tf.gradients(y, x)
        tf.gradients(slope, slope.op.inputs[-1])
        told = [each.get_attr("data_format") for each in graph.get_operations() if op in each.type]
        assert len(told) > 2
        assert set(told) == {b"NCHW"}


@pytest.mark.parametrize("training", [True, False])
def test_batch_normalization_goes_back_by_the_statistics_that_it_used(training: bool) -> None:
    """Those of the batch, which the op saved, or the given ones."""
    with tf.Graph().as_default():
        given = [tf.placeholder(tf.float32, shape) for shape in ([3, 4, 5, 2], [2], [2], [2], [2])]
        names = ("x", "scale", "offset", "mean", "variance")
        made = apply_op("FusedBatchNormV3", **dict(zip(names, given, strict=True)), is_training=training)
        back = tf.gradients(made[0], given[0])[0].op
        saved = list(made[0].op.outputs)
        assert list(back.inputs)[3:] == [*(saved[3:5] if training else given[3:]), saved[5]]
        assert tf.gradients(made[0], given[3:]) == [None, None]
