"""Gradients of neural-network ops: slopes of slopes, equal values, old ops, what has several outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(67)
#: On both sides of 0 and of 6.
FEATURES = np.array([[-1.4, 0.3, 2.0], [7.5, -0.2, 5.1]])


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


@pytest.mark.parametrize("op", ["Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "LeakyRelu"])
def test_activation(op: str) -> None:
    assert directional_error(lambda x: apply_op(op, features=x), [FEATURES]) < 1e-6


def test_a_leak_of_another_size() -> None:
    assert directional_error(lambda x: apply_op("LeakyRelu", features=x, alpha=0.7), [FEATURES]) < 1e-6


@pytest.mark.parametrize("op", ["ReluGrad", "Relu6Grad"])
def test_slope_of_a_slope(op: str) -> None:
    assert directional_error(lambda g, x: apply_op(op, gradients=g, features=x), [normal(2, 3), FEATURES]) < 1e-6


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op: str) -> None:
    assert directional_error(lambda x: apply_op(op, logits=x), [normal(3, 4)]) < 1e-6
    assert directional_error(lambda x: tf.gradients(apply_op(op, logits=x)[:, 1], x)[0], [normal(3, 4)]) < 1e-6


CROSS_ENTROPIES = {
    "SoftmaxCrossEntropyWithLogits": np.array([[0.1, 0.2, 0.7, 0.0], [0.25, 0.25, 0.4, 0.1], [0.5, 0.1, 0.1, 0.3]]),
    "SparseSoftmaxCrossEntropyWithLogits": np.array([2, 0, 3]),
}


@pytest.mark.parametrize("op", CROSS_ENTROPIES)
def test_both_outputs_of_a_cross_entropy_have_gradients(op: str) -> None:
    """The second is the derivative of the first; a program may use it, alone or beside the loss."""

    def parts(x: Any) -> Any:
        return apply_op(op, features=x, labels=CROSS_ENTROPIES[op])

    weights = np.array([1.0, -2.0, 3.0])
    assert directional_error(lambda x: parts(x)[0] * weights, [normal(3, 4)]) < 1e-6
    assert directional_error(lambda x: tf.gradients(parts(x)[0] * weights, x)[0], [normal(3, 4)]) < 1e-6
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(normal(3, 4))
        loss, slope = parts(x)
        both = session.run(tf.gradients([loss, slope], x, grad_ys=[tf.constant(weights), tf.ones_like(slope) * x])[0])
        first = session.run(tf.gradients(loss, x, grad_ys=tf.constant(weights))[0])
        second = session.run(tf.gradients(slope, x, grad_ys=tf.ones_like(slope) * x)[0])
        np.testing.assert_allclose(both, first + second)


def test_a_loss_alone_has_no_part_of_its_slope() -> None:
    for op, labels in CROSS_ENTROPIES.items():
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float64, [3, 4])
            tf.gradients(apply_op(op, features=x, labels=labels)[0], x)
            assert "Softmax" not in [each.type for each in graph.get_operations()]


def test_labels_have_gradients() -> None:
    def build(x: Any, labels: Any) -> Any:
        return apply_op("SoftmaxCrossEntropyWithLogits", features=x, labels=labels)[0]

    labels = CROSS_ENTROPIES["SoftmaxCrossEntropyWithLogits"]
    assert directional_error(build, [normal(3, 4), labels], differentiate=[0]) < 1e-6
    assert directional_error(build, [normal(3, 4), labels], differentiate=[1]) < 1e-6


@pytest.mark.parametrize(("layout", "shape"), [("NHWC", (2, 3, 5, 4)), ("NCHW", (2, 4, 3, 5))])
def test_bias(layout: str, shape: tuple[int, ...]) -> None:
    def add(x: Any, b: Any) -> Any:
        return apply_op("BiasAdd", value=x, bias=b, data_format=layout)

    assert directional_error(add, [normal(*shape), normal(4)]) < 1e-6
    assert (
        directional_error(lambda g: apply_op("BiasAddGrad", out_backprop=g, data_format=layout), [normal(*shape)])
        < 1e-6
    )


def test_bias_of_the_first_version() -> None:
    def add(x: Any, b: Any) -> Any:
        return apply_op("BiasAddV1", value=x, bias=b)

    assert directional_error(add, [normal(2, 3, 4), normal(4)]) < 1e-6
    unranked = [normal(2, 3, 4), normal(4)]
    assert directional_error(lambda x, b: add(tf.placeholder_with_default(x, None), b), unranked) < 1e-6


def test_half_the_sum_of_squares() -> None:
    assert directional_error(lambda x: 3.0 * apply_op("L2Loss", t=x), [normal(3, 4)]) < 1e-6


def test_local_response_normalization() -> None:
    def build(x: Any) -> Any:
        return apply_op("LRN", input=x, depth_radius=1, bias=1.7, alpha=0.6, beta=0.8)

    assert directional_error(build, [normal(2, 2, 3, 5).astype(np.float32)], step=1e-2) < 1e-2


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 4)])
def test_largest(shape: tuple[int, ...], static: bool) -> None:
    """A place gives its gradient to the one that was there, row by row."""
    build = lambda x: apply_op("TopKV2", input=x, k=2)[0]  # noqa: E731
    assert directional_error(build, [normal(*shape)], static_shapes=static) < 1e-6


def test_largest_of_old_graphs() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        old = tf.GraphDef()
        old.versions.producer = 1
        tf.import_graph_def(old)
        x = tf.constant([[1.0, 5.0, 3.0], [9.0, 2.0, 4.0]])
        y = apply_op("TopK", input=x, k=2)[0]
        found = session.run(tf.gradients(y, x, grad_ys=tf.constant([[1.0, 2.0], [3.0, 4.0]]))[0])
    assert found.tolist() == [[0, 1, 2], [3, 0, 4]]


def test_equal_ones_share_the_gradient_of_a_rank() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([[1.0, 2.0, 2.0, 3.0], [4.0, 3.0, 2.0, 1.0]])
        y = apply_op("NthElement", input=x, n=1)
        found = session.run(tf.gradients(y, x, grad_ys=tf.constant([10.0, 7.0]))[0])
    assert found.tolist() == [[0, 5, 5, 0], [0, 0, 7, 0]]


@pytest.mark.parametrize("scaled", [True, False])
def test_old_batch_normalization(scaled: bool) -> None:
    """Only old graphs have it: what the rule builds is what TensorFlow's own formula says of each input."""
    x, mean, variance, gamma = normal(2, 3, 1, 2), normal(2), np.abs(normal(2)) + 0.5, normal(2)
    g, epsilon = normal(2, 3, 1, 2), 0.25
    with tf.Graph().as_default() as graph:
        inputs = [tf.constant(each) for each in (x, mean, variance, normal(2), gamma)]
        y = apply_op(
            "BatchNormWithGlobalNormalization", **dict(zip(("t", "m", "v", "beta", "gamma"), inputs, strict=True)),
            variance_epsilon=epsilon, scale_after_normalization=scaled,
        )  # fmt: skip
        found = tf.gradients(y, inputs, grad_ys=tf.constant(g))
        (back,) = {each.op for each in found}
        assert back.type == "BatchNormWithGlobalNormalizationGrad"
        assert [each.value_index for each in found] == [0, 1, 2, 3, 4]
        assert list(back.inputs)[:4] == [inputs[0], inputs[1], inputs[2], inputs[4]]
        assert back.get_attr("scale_after_normalization") is scaled
        assert back.get_attr("variance_epsilon") == epsilon
        assert graph is back.graph


@pytest.mark.parametrize("function", [tf.nn.softsign, tf.nn.softplus, tf.nn.elu, tf.nn.selu, tf.nn.leaky_relu])
def test_activations_have_second_derivatives(function: Any) -> None:
    x = np.array([-3.0, -0.5, 0.25, 2.0])
    assert directional_error(lambda x: tf.gradients(function(x), x)[0] * x, [x]) < 1e-8
