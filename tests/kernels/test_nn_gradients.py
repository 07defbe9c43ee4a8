"""Gradients of the neural-network ops against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(13)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


ACTIVATIONS = ["Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign"]


@pytest.mark.parametrize("op_type", ACTIVATIONS)
def test_activation(op_type):
    assert directional_error(lambda x: apply_op(op_type, features=x), [normal(4, 5)]) < 1e-6


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
def test_softmax(op_type):
    assert directional_error(lambda x: apply_op(op_type, logits=x), [normal(4, 5)]) < 1e-6


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_softmax_cross_entropy_by_logits_and_by_labels(static):
    labels = np.exp(normal(4, 5))
    labels /= labels.sum(axis=1, keepdims=True)

    def build(logits, labels):
        return apply_op("SoftmaxCrossEntropyWithLogits", features=logits, labels=labels)[0]

    assert directional_error(build, [normal(4, 5), labels], static_shapes=static) < 1e-6


def test_softmax_cross_entropy_second_derivative():
    from tenfold.gradients import walker

    labels = np.full((3, 4), 0.25)

    def build(logits, labels):
        loss = apply_op("SoftmaxCrossEntropyWithLogits", features=logits, labels=labels)[0]
        return walker.gradients(loss, [logits])[0]

    assert directional_error(build, [normal(3, 4), labels], differentiate=[0]) < 1e-5


def test_sparse_softmax_cross_entropy():
    labels = np.array([0, 3, 4, 1], np.int64)

    def build(logits, labels):
        return apply_op("SparseSoftmaxCrossEntropyWithLogits", features=logits, labels=labels)[0]

    assert directional_error(build, [normal(4, 5), labels]) < 1e-6


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_bias_add(data_format):
    x, bias = (normal(2, 3, 3, 4), normal(4)) if data_format == "NHWC" else (normal(2, 4, 3, 3), normal(4))

    assert (
        directional_error(lambda v, b: apply_op("BiasAdd", value=v, bias=b, data_format=data_format), [x, bias]) < 1e-6
    )


def test_l2_loss():
    assert directional_error(lambda x: apply_op("L2Loss", t=x), [normal(3, 4)]) < 1e-6


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_conv2d(padding):
    def build(x, w):
        return apply_op("Conv2D", input=x, filter=w, strides=[1, 2, 2, 1], padding=padding)

    assert directional_error(build, [normal(2, 5, 5, 2), normal(3, 3, 2, 3)]) < 1e-6


@pytest.mark.parametrize("op_type", ["MaxPool", "AvgPool"])
def test_pooling(op_type):
    argument = "input" if op_type == "MaxPool" else "value"

    def build(x):
        return apply_op(op_type, **{argument: x}, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")

    assert directional_error(build, [normal(2, 4, 4, 2)]) < 1e-6


_POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}


def _conv(x, w):
    return apply_op("Conv2D", input=x, filter=w, strides=[1, 2, 1, 1], padding="SAME")


def _conv_input(w, g):
    sizes = [2, 5, 5, 3]
    return apply_op(
        "Conv2DBackpropInput", input_sizes=sizes, filter=w, out_backprop=g, strides=[1, 1, 1, 1], padding="VALID"
    )


def _conv_filter(x, g):
    sizes = [3, 3, 3, 2]
    return apply_op(
        "Conv2DBackpropFilter", input=x, filter_sizes=sizes, out_backprop=g, strides=[1, 1, 1, 1], padding="VALID"
    )


#: name → (builder, shapes of its inputs)
IMAGES = {
    "Conv2D": (_conv, [(2, 5, 5, 3), (3, 3, 3, 2)]),
    "Conv2DBackpropInput": (_conv_input, [(3, 3, 3, 2), (2, 3, 3, 2)]),
    "Conv2DBackpropFilter": (_conv_filter, [(2, 5, 5, 3), (2, 3, 3, 2)]),
    "DepthwiseConv2dNative": (
        lambda x, w: apply_op("DepthwiseConv2dNative", input=x, filter=w, strides=[1, 1, 1, 1], padding="SAME"),
        [(2, 4, 5, 3), (2, 3, 3, 2)],
    ),
    "Conv3D": (
        lambda x, w: apply_op("Conv3D", input=x, filter=w, strides=[1, 1, 2, 1, 1], padding="SAME"),
        [(1, 3, 4, 4, 2), (2, 2, 2, 2, 3)],
    ),
    "AvgPool3D": (
        lambda x: apply_op("AvgPool3D", input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 2, 2, 1], padding="SAME"),
        [(1, 3, 4, 5, 2)],
    ),
    "AvgPoolGrad": (
        lambda g: apply_op("AvgPoolGrad", orig_input_shape=[1, 4, 4, 2], grad=g, **_POOL),
        [(1, 2, 2, 2)],
    ),
    "MaxPoolWithArgmax": (lambda x: apply_op("MaxPoolWithArgmax", input=x, **_POOL)[0], [(2, 4, 4, 3)]),
    "MaxPoolV2": (
        lambda x: apply_op("MaxPoolV2", input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
        [(2, 4, 4, 3)],
    ),
    "TopKV2": (lambda x: apply_op("TopKV2", input=x, k=2)[0], [(2, 3, 5)]),
    "SpaceToBatchND": (
        lambda x: apply_op("SpaceToBatchND", input=x, block_shape=[2, 2], paddings=[[1, 1], [0, 2]]),
        [(1, 4, 4, 2)],
    ),
    "MirrorPad": (lambda x: apply_op("MirrorPad", input=x, paddings=[[1, 2], [2, 1]], mode="REFLECT"), [(4, 5)]),
    "MatrixDiagV3": (
        lambda d: apply_op(
            "MatrixDiagV3", diagonal=d, k=[-1, 1], num_rows=-1, num_cols=-1, padding_value=np.float64(0)
        ),
        [(2, 3, 4)],
    ),
    "MatrixSetDiagV3": (
        lambda x, d: apply_op("MatrixSetDiagV3", input=x, diagonal=d, k=[-1, 1]),
        [(2, 4, 4), (2, 3, 4)],
    ),
    "MatrixDeterminant": (lambda x: apply_op("MatrixDeterminant", input=x), [(2, 3, 3)]),
    "MatrixInverse": (lambda x: apply_op("MatrixInverse", input=x), [(2, 3, 3)]),
    "MatrixInverse adjoint": (lambda x: apply_op("MatrixInverse", input=x, adjoint=True), [(2, 3, 3)]),
    "MatrixSolve": (lambda m, r: apply_op("MatrixSolve", matrix=m, rhs=r), [(2, 3, 3), (2, 3, 2)]),
    "MatrixSolve adjoint": (
        lambda m, r: apply_op("MatrixSolve", matrix=m, rhs=r, adjoint=True),
        [(2, 3, 3), (2, 3, 2)],
    ),
    "SparseTensorDenseMatMul": (
        lambda v, b: apply_op(
            "SparseTensorDenseMatMul",
            a_indices=np.array([[0, 1], [2, 0]], np.int64),
            a_values=v,
            a_shape=np.array([3, 2], np.int64),
            b=b,
        ),
        [(2,), (2, 4)],
    ),
    "Cross": (lambda a, b: apply_op("Cross", a=a, b=b), [(2, 3), (2, 3)]),
}


@pytest.mark.parametrize("name", IMAGES)
def test_images_and_matrices(name):
    build, shapes = IMAGES[name]

    assert directional_error(build, [normal(*shape) for shape in shapes]) < 1e-5
