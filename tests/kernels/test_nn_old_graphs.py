"""Operations that only graphs of 2015 to 2017 have, against NumPy and against the operations that came after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.graph.op_builder import apply_op
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

RNG = np.random.default_rng(2015)


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape)


@pytest.fixture
def old_graph() -> Iterator[Any]:
    """A graph that is read as one of version 1 is."""
    with tf.Graph().as_default() as graph:
        made = tf.GraphDef()
        made.versions.producer = 1
        tf.import_graph_def(made)
        yield graph


def test_the_gradient_of_tile_sums_the_copies(ops: SimpleNamespace) -> None:
    x = normal(4, 6, 5).astype(np.float32)

    found = ops.run("TileGrad", [x, np.array([2, 3, 1], np.int32)])

    np.testing.assert_allclose(found, x.reshape(2, 2, 3, 2, 5).sum((0, 2)), rtol=1e-6)
    assert ops.run("TileGrad", [np.float32(3), np.zeros(0, np.int32)]) == 3


@pytest.mark.parametrize(
    ("multiples", "words"),
    [([2], "length 2 but got length 1"), ([0, 1], r"multiples\[0\] > 0, but got 0"), ([1, 4], "6 % 4 != 0")],
)
def test_copies_that_tile_cannot_have_made(ops: SimpleNamespace, multiples: list[int], words: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=words):
        ops.run("TileGrad", [np.ones((4, 6), np.float32), np.array(multiples, np.int32)])


@pytest.mark.parametrize("op", ["SelfAdjointEig", "BatchSelfAdjointEig"])
def test_eigenvalues_stand_over_their_vectors(ops: SimpleNamespace, op: str) -> None:
    m = normal(2, 3, 3)
    m += m.swapaxes(1, 2)

    found = ops.run(op, [m])

    assert found.shape == (2, 4, 3)
    values, vectors = found[:, 0], found[:, 1:]
    np.testing.assert_allclose(m @ vectors, vectors * values[:, None, :], atol=1e-9)


@pytest.mark.parametrize("what", ["Input", "Filter"])
def test_gradients_of_a_volume_take_a_tensor_for_its_shape(ops: SimpleNamespace, what: str) -> None:
    volume, cube, g = normal(2, 4, 5, 6, 3), normal(2, 3, 2, 3, 4), normal(2, 2, 5, 3, 4)
    attrs = {"strides": [1, 2, 1, 2, 1], "padding": b"SAME"}
    sized = [volume, cube, g]
    place = 0 if what == "Input" else 1
    sized[place] = np.array(sized[place].shape, np.int32)

    found = ops.run(f"Conv3DBackprop{what}", [volume, cube, g], **attrs)

    np.testing.assert_array_equal(found, ops.run(f"Conv3DBackprop{what}V2", sized, **attrs))


@pytest.mark.parametrize("scaled", [False, True])
def test_the_gradient_of_a_batch_normalization(old_graph: Any, scaled: bool) -> None:
    """Of the sum of what each pixel weighs, against finite differences in one direction."""
    values = [normal(2, 3, 2, 4), *(RNG.uniform(0.5, 2, 4) for _ in range(4))]
    weights = normal(2, 3, 2, 4)
    fed = [tf.placeholder(tf.float64, value.shape) for value in values]
    y = apply_op(
        "BatchNormWithGlobalNormalization",
        **dict(zip(("t", "m", "v", "beta", "gamma"), fed, strict=True)),
        variance_epsilon=2.0**-7,
        scale_after_normalization=scaled,
    )
    loss = tf.reduce_sum(y * weights)
    slopes = tf.gradients(loss, fed)
    ways, far = [normal(*value.shape) for value in values], 1e-6

    with tf.Session() as session:

        def at(distance: float) -> float:
            moved = [value + distance * way for value, way in zip(values, ways, strict=True)]
            return float(session.run(loss, dict(zip(fed, moved, strict=True))))

        found = session.run(slopes, dict(zip(fed, values, strict=True)))
        wanted = (at(far) - at(-far)) / (2 * far)

    along = sum(float(np.sum(slope * way)) for slope, way in zip(found, ways, strict=True))
    assert along == pytest.approx(wanted, rel=1e-6)


def test_a_batch_normalization_whose_vectors_do_not_fit(ops: SimpleNamespace) -> None:
    x, vector = np.ones((1, 2, 2, 3), np.float32), np.ones(3, np.float32)
    attrs = {"variance_epsilon": 0.1, "scale_after_normalization": True}
    for place in (1, 2, 3):
        given = [x, vector, vector, vector, x]
        given[place] = np.ones(2, np.float32)
        with pytest.raises(errors.InvalidArgumentError, match=r"must be a vector of 3 channels, got shape \[2\]"):
            ops.run("BatchNormWithGlobalNormalizationGrad", given, **attrs)
    with pytest.raises(errors.InvalidArgumentError, match="out_backprop must have the shape of the input"):
        ops.run("BatchNormWithGlobalNormalizationGrad", [x, vector, vector, vector, x[:, :1]], **attrs)


def test_numbers_outside_of_a_range_that_was_not_given_are_rounded_only(ops: SimpleNamespace) -> None:
    x = np.array([-1.2, -0.3, 0.4, 1.0], np.float32)
    step = np.float32(1 / 7)

    found = ops.run("QuantizeAndDequantize", [x], signed_input=False, num_bits=3)

    np.testing.assert_allclose(found, np.rint(x / step) * step, rtol=1e-6)


def test_a_range_in_attributes_cuts(ops: SimpleNamespace) -> None:
    x = np.array([-9, -0.3, 0.4, 9], np.float32)

    found = ops.run("QuantizeAndDequantize", [x], num_bits=3, range_given=True, input_min=-4.0, input_max=1.0)

    assert found.tolist() == [-4, 0, 0, 3]


def test_rounding_passes_its_gradient_through() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.GraphDef()
        made.versions.producer = 21
        tf.import_graph_def(made)
        x = tf.constant([0.1, 0.7])
        y = apply_op("QuantizeAndDequantize", input=x)
        assert session.run(tf.gradients(3.0 * y, x)[0]).tolist() == [3, 3]


def test_batches_of_matrices_as_single_ones(ops: SimpleNamespace) -> None:
    tall, right = normal(2, 5, 3), normal(2, 5, 2)
    solved = ops.run("BatchMatrixSolveLs", [tall, right, np.float64(0)])
    for i in range(2):
        np.testing.assert_allclose(solved[i], np.linalg.lstsq(tall[i], right[i], rcond=None)[0], rtol=1e-8)

    low = np.linalg.cholesky(tall.swapaxes(1, 2) @ tall)
    back = np.tril(normal(2, 3, 3))
    found = ops.run("BatchCholeskyGrad", [low, back])
    np.testing.assert_array_equal(found[1], ops.run("CholeskyGrad", [low[1], back[1]]))


def test_shapes_that_are_known_before_a_step(old_graph: Any) -> None:
    square = tf.placeholder(tf.float32, [7, 3, 3])
    assert apply_op("BatchSelfAdjointEig", input=square).shape.as_list() == [7, 4, 3]
    assert apply_op("TileGrad", input=square, multiples=[7, 1, 3]).shape.as_list() == [1, 3, 1]
    image, vector = tf.placeholder(tf.float32, [2, 3, 4, None]), tf.placeholder(tf.float32, [5])
    any_vector = tf.placeholder(tf.float32)
    made = apply_op(
        "BatchNormWithGlobalNormalizationGrad", t=image, m=vector, v=any_vector, gamma=any_vector, backprop=image,
        variance_epsilon=0.1, scale_after_normalization=True,
    )  # fmt: skip
    assert [each.shape.as_list() for each in made] == [[2, 3, 4, 5], [5], [5], [5], [5]]
    volume, cube = tf.placeholder(tf.float32, [1, 4, 4, 4, 2]), tf.placeholder(tf.float32, [2, 2, 2, 2, 3])
    for op, wanted in (("Conv3DBackpropInput", volume), ("Conv3DBackpropFilter", cube)):
        back = apply_op(op, input=volume, filter=cube, out_backprop=volume, strides=[1] * 5, padding="SAME")
        assert back.shape == wanted.shape
