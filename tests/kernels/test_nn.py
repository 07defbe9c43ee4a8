"""Bias, activations and losses, compiled and plain, against twins in float64."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

RNG = np.random.default_rng(5)
FLOATS = (np.float16, np.float32, np.float64)
SHAPES = [(3, 4), (2, 3, 4), (0, 4), (1, 1)]


def close(actual: np.ndarray, expected: Any) -> None:
    tolerance = {2: 1e-2, 4: 2e-5, 8: 1e-12}[actual.dtype.itemsize]
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def sample(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return RNG.uniform(-3, 3, shape).astype(dtype)


@pytest.mark.parametrize(("dtype", "shape"), list(itertools.product((*FLOATS, np.int32), SHAPES)))
def test_bias_add_and_its_gradient(ops: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    x, bias = sample(shape, dtype), sample(shape[-1:], dtype)
    wide = x.astype(np.float64)

    close(ops.run("BiasAdd", [x, bias]).astype(np.float64 if dtype == np.int32 else dtype), wide + bias)
    total = ops.run("BiasAddGrad", [x])
    close(total.astype(np.float64 if dtype == np.int32 else dtype), wide.sum(tuple(range(x.ndim - 1))))


def test_bias_of_channels_first(ops: Any) -> None:
    x, bias = sample((2, 3, 4, 5), np.float32), sample((3,), np.float32)

    close(ops.run("BiasAdd", [x, bias], data_format=b"NCHW"), x + bias.reshape(3, 1, 1))
    close(ops.run("BiasAddGrad", [x], data_format=b"NCHW"), x.astype(np.float64).sum((0, 2, 3)))


def test_compiled_kernels_take_strided_inputs(ops: Any) -> None:
    x = sample((6, 8), np.float32)

    close(ops.run("Relu", [x[::2, ::-1]]), np.maximum(x[::2, ::-1], 0))
    close(ops.run("BiasAdd", [x.T, x[0, :6]]), x.T + x[0, :6])
    close(ops.run("SigmoidGrad", [x.T, x.T]), x.T * x.T * (1 - x.T))
    close(ops.run("Softmax", [x.T]), np.exp(x.T) / np.exp(x.T).sum(-1, keepdims=True))


def test_compiled_kernels_take_unaligned_inputs(ops: Any) -> None:
    message = b"x" + sample((12,), np.float32).tobytes()
    x = np.frombuffer(message, np.float32, offset=1).reshape(3, 4)
    labels = np.frombuffer(b"x" + np.array([0, 3, 1]).tobytes(), np.int64, offset=1)

    assert not x.flags.aligned
    close(ops.run("Relu", [x]), np.maximum(x, 0))
    close(ops.run("BiasAdd", [x, x[0]]), x + x[0])
    close(ops.run("Softmax", [x]), softmax(x.astype(np.float64)))
    close(ops.run("SparseSoftmaxCrossEntropyWithLogits", [x, labels])[1], softmax(x) - np.eye(4)[labels])
    close(ops.run("GatherV2", [x, labels[2:], 0]), x[[1]])


#: op, twin of (x, attrs as default).
ACTIVATIONS = [
    ("Relu", lambda v: max(v, 0)),
    ("Relu6", lambda v: min(max(v, 0), 6)),
    ("LeakyRelu", lambda v: v if v > 0 else 0.2 * v),
    ("Elu", lambda v: math.expm1(v) if v < 0 else v),
    ("Selu", lambda v: 1.7580993408473768 * math.expm1(v) if v < 0 else 1.0507009873554805 * v),
    ("Softplus", lambda v: math.log1p(math.exp(v))),
    ("Softsign", lambda v: v / (1 + abs(v))),
    ("Sigmoid", lambda v: 1 / (1 + math.exp(-v))),
]

#: op, twin of (gradient, other).
GRADIENTS = [
    ("ReluGrad", lambda g, x: g if x > 0 else 0),
    ("Relu6Grad", lambda g, x: g if 0 < x < 6 else 0),
    ("LeakyReluGrad", lambda g, x: g if x > 0 else 0.2 * g),
    ("EluGrad", lambda g, y: g * (y + 1) if y < 0 else g),
    ("SeluGrad", lambda g, y: g * (y + 1.7580993408473768) if y < 0 else g * 1.0507009873554805),
    ("SoftplusGrad", lambda g, x: g / (math.exp(-x) + 1)),
    ("SoftsignGrad", lambda g, x: g / (1 + abs(x)) ** 2),
]


@pytest.mark.parametrize(("op", "function"), ACTIVATIONS, ids=lambda v: v if isinstance(v, str) else "")
def test_activation(ops: Any, op: str, function: Any) -> None:
    for dtype, shape in itertools.product(FLOATS, [*SHAPES, ()]):
        x = sample(shape, dtype)
        close(ops.run(op, [x]), np.array([function(v) for v in x.ravel().tolist()]).reshape(shape))


@pytest.mark.parametrize(("op", "function"), GRADIENTS, ids=lambda v: v if isinstance(v, str) else "")
def test_activation_gradient(ops: Any, op: str, function: Any) -> None:
    for dtype, shape in itertools.product(FLOATS, [*SHAPES, ()]):
        g, x = sample(shape, dtype), sample(shape, dtype)
        pairs = zip(g.ravel().tolist(), x.ravel().tolist(), strict=True)
        close(ops.run(op, [g, x]), np.array([function(a, b) for a, b in pairs]).reshape(shape))


def test_relu_keeps_nan(ops: Any) -> None:
    assert np.isnan(ops.run("Relu", [np.array([math.nan], np.float32)])[0])
    assert ops.run("Relu", [np.array([-2, 3], np.int32)]).tolist() == [0, 3]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax(ops: Any, dtype: Any) -> None:
    for shape in ((3, 4), (2, 3, 5), (4,), (2, 1), (3, 37)):
        x = sample(shape, dtype)
        wide = x.astype(np.float64)
        close(ops.run("Softmax", [x]), softmax(wide))
        close(ops.run("LogSoftmax", [x]), np.log(softmax(wide)))
    assert ops.run("Softmax", [np.zeros((0, 3), dtype)]).shape == (0, 3)
    assert ops.run("LogSoftmax", [np.zeros((3, 0), dtype)]).shape == (3, 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_dense_cross_entropy(ops: Any, dtype: Any) -> None:
    for rows, classes in ((4, 3), (1, 1), (5, 33), (0, 3)):
        x, labels = (
            sample((rows, classes), dtype),
            softmax(sample((rows, classes), np.float64) if rows else np.ones((1, 3))),
        )
        labels = labels[:rows].astype(dtype)
        wide, target = x.astype(np.float64), labels.astype(np.float64)
        p = softmax(wide) if rows else wide
        loss, backprop = ops.run("SoftmaxCrossEntropyWithLogits", [x, labels])
        close(loss, -(target * np.log(p)).sum(-1))
        close(backprop, p - target)


def test_dense_cross_entropy_broadcasts(ops: Any) -> None:
    logits = np.array([[0.0, -100.0], [1.0, 1.0]], np.float32)

    loss, _ = ops.run("SoftmaxCrossEntropyWithLogits", [logits, np.array([[1.0, 0.0]], np.float32)])

    close(loss, [0.0, math.log(2)])


@pytest.mark.parametrize("label", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", FLOATS)
def test_sparse_cross_entropy(ops: Any, dtype: Any, label: Any) -> None:
    for rows, classes in ((4, 3), (1, 1), (5, 33), (0, 3)):
        x, labels = sample((rows, classes), dtype), RNG.integers(0, classes, rows).astype(label)
        wide = x.astype(np.float64)
        p = softmax(wide) if rows else wide
        loss, backprop = ops.run("SparseSoftmaxCrossEntropyWithLogits", [x, labels])
        close(loss, -np.log(p[np.arange(rows), labels]))
        close(backprop, p - np.eye(classes)[labels])


@pytest.mark.parametrize("shape", [(700, 100), (5, 40_000), (2, 70_000), (4000, 80)], ids=str)
def test_many_rows_are_taken_in_blocks_and_give_what_each_gives_alone(ops: Any, shape: tuple[int, int]) -> None:
    logits, classes = sample(shape, np.float32), shape[1]
    labels = RNG.integers(classes, size=shape[0])
    dense = np.eye(classes, dtype=np.float32)[labels] if shape[0] < 1000 and classes < 1000 else softmax(logits)
    places = [0, shape[0] // 2, shape[0] - 1]

    for op, inputs in (("Softmax", [logits]), ("LogSoftmax", [logits])):
        whole = ops.run(op, inputs)
        for row in places:
            np.testing.assert_array_equal(whole[row], ops.run(op, [logits[row : row + 1]])[0])
    for op, second in ((SPARSE, labels), ("SoftmaxCrossEntropyWithLogits", dense)):
        loss, backprop = ops.run(op, [logits, second])
        for row in places:
            alone, gradient = ops.run(op, [logits[row : row + 1], second[row : row + 1]])
            assert loss[row] == alone[0]
            np.testing.assert_array_equal(backprop[row], gradient[0])
    labels[-1] = classes
    with pytest.raises(errors.InvalidArgumentError, match=rf"label value of {classes} which is outside"):
        ops.run(SPARSE, [logits, labels])


def test_huge_logits_do_not_overflow(ops: Any) -> None:
    x = np.array([[1e4, 0.0, -1e4]], np.float32)

    loss, backprop = ops.run("SparseSoftmaxCrossEntropyWithLogits", [x, np.array([1], np.int32)])

    assert loss.tolist() == [1e4]
    assert backprop.tolist() == [[1, -1, 0]]


def test_l2_loss(ops: Any) -> None:
    for dtype in FLOATS:
        close(ops.run("L2Loss", [np.array([[3, 4]], dtype)]), 12.5)
    assert ops.run("L2Loss", [np.zeros((0,), np.float32)]) == 0


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


SPARSE = "SparseSoftmaxCrossEntropyWithLogits"
DENSE = "SoftmaxCrossEntropyWithLogits"

#: op, inputs, text.
WRONG = [
    ("BiasAdd", [zeros(2, 3), zeros(4)], r"^Must provide as many biases as the last dimension.*: \[4\] vs\. \[2,3\]$"),
    ("BiasAdd", [zeros(2, 3), zeros(4, 1)], r"^Biases must be 1D: \[4,1\]$"),
    ("BiasAdd", [zeros(2), zeros(2)], r"^Input tensor must be at least 2D: \[2\]$"),
    ("BiasAddGrad", [zeros(2)], r"^Input tensor must be at least 2D: \[2\]$"),
    (SPARSE, [zeros(2, 3), [0, 3]], r"value of 3 which is outside the valid range of \[0, 3\)\.  Label values: 0 3$"),
    (SPARSE, [zeros(2, 3), [0, -1]], "value of -1 which is outside"),
    (SPARSE, [zeros(2, 3), [0]], r"same first dimension, got logits shape \[2,3\] and labels shape \[1\]$"),
    (SPARSE, [zeros(3), [0]], r"^logits must be 2-D, but got shape \[3\]$"),
    (SPARSE, [zeros(2, 0), [0, 0]], r"^Must have at least one class, but got logits shape \[2,0\]$"),
    (DENSE, [zeros(2, 3), zeros(2, 4)], r"must be broadcastable: logits_size=\[2,3\] labels_size=\[2,4\]$"),
    (DENSE, [zeros(3), zeros(3)], "must be either 2-dimensional"),
    ("LogSoftmax", [np.float32(1).reshape(())], r"^logits must have >= 1 dimension, got \[\]$"),
    ("ReluGrad", [zeros(2, 3), zeros(2, 4)], r"Input 0: \[2,3\] != input 1: \[2,4\]$"),
]


@pytest.mark.parametrize(("op", "inputs", "text"), WRONG, ids=lambda v: v if isinstance(v, str) else "")
def test_wrong_inputs(ops: Any, op: str, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs)


def test_half_is_not_compiled_but_there(ops: Any) -> None:
    assert ops.run("Relu", [np.array([-1, 2], np.float16)]).dtype == dtypes.float16.as_numpy_dtype


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32])
@pytest.mark.parametrize("layout", [b"NHWC", b"NCHW"])
def test_there_is_a_bias_for_each_channel(ops: Any, dtype: Any, layout: bytes) -> None:
    which = {b"NHWC": "last", b"NCHW": "channel"}[layout]
    for value, bias, text in (
        ((3, 2, 4), (1,), f"as many biases as the {which} dimension of the input tensor"),
        ((3, 2, 4), (3,), f"as many biases as the {which} dimension of the input tensor"),
        ((4,), (4,), "at least 2D"),
        ((4, 4), (1, 4), "Biases must be 1D"),
        ((4, 4), (), "Biases must be 1D"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ops.run("BiasAdd", [sample(value, dtype), sample(bias, dtype)], data_format=layout)
    with pytest.raises(errors.InvalidArgumentError, match="at least 2D"):
        ops.run("BiasAddGrad", [sample((4,), dtype)], data_format=layout)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32])
@pytest.mark.parametrize("op", ["ReluGrad", "Relu6Grad"])
def test_both_inputs_of_a_gradient_have_one_shape(ops: Any, op: str, dtype: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="must have the same size and shape"):
        ops.run(op, [sample((2, 3), dtype), sample((1, 3), dtype)])


def test_sums_are_as_exact_as_their_types(ops: Any) -> None:
    """Halves are summed in float, everything else in its own type."""
    assert ops.run("BiasAddGrad", [np.ones((3000, 2), np.float16)]).tolist() == [3000, 3000]
    assert ops.run("BiasAddGrad", [np.ones((3000, 1, 2), np.float16)], data_format=b"NCHW").tolist() == [6000]
    for wide, big in ((np.int32, 1 << 24), (np.int64, 1 << 53)):
        assert ops.run("BiasAddGrad", [np.array([[big], [1]], wide)]).tolist() == [big + 1]
    thin = 1 + 1e-9 * np.ones((1, 1, 1, 1))
    assert ops.run("BiasAddGrad", [thin], data_format=b"NCHW").tolist() == [1 + 1e-9]
    assert ops.run("L2Loss", [np.float16([300])]) == np.float16(45000)
    assert ops.run("L2Loss", [np.float64([1 + 1e-9])]) == pytest.approx(0.5 + 1e-9, abs=1e-15)


def test_biases_of_nothing(ops: Any) -> None:
    for dtype, layout, channels in itertools.product((np.float32, np.int32), (b"NHWC", b"NCHW"), (4, 0)):
        shape = (0, 3, channels) if layout == b"NHWC" else (0, channels, 3)
        found = ops.run("BiasAddGrad", [np.zeros(shape, dtype)], data_format=layout)
        assert (found.tolist(), found.dtype) == ([0] * channels, dtype)
        assert ops.run("BiasAdd", [np.zeros(shape, dtype), np.ones(channels, dtype)], data_format=layout).shape == shape
        shape = (3, 0)
        assert ops.run("BiasAdd", [np.zeros(shape, dtype), np.ones(0, dtype)], data_format=layout).shape == shape


#: op, attrs, the first input or None, the other one, what is given.
EDGES: list[tuple[str, dict[str, Any], list[float] | None, list[float], list[float]]] = [
    ("Relu", {}, None, [-1, 0, 0.5, 1], [0, 0, 0.5, 1]),
    ("Relu6", {}, None, [-1, 0, 0.5, 1, 6, 6.5, 7, 8], [0, 0, 0.5, 1, 6, 6, 6, 6]),
    ("LeakyRelu", {"alpha": 0.5}, None, [-2, 0, 0.5, 1], [-1, 0, 0.5, 1]),
    ("ReluGrad", {}, [2, 2, 2, 2], [-1, 0, 0.5, 1], [0, 0, 2, 2]),
    ("Relu6Grad", {}, [2] * 7, [-1, 0, 0.5, 1, 5.5, 6, 6.5], [0, 0, 2, 2, 2, 0, 0]),
    ("LeakyReluGrad", {"alpha": 0.5}, [2, 2, 2, 2], [-1, 0, 0.5, 1], [1, 1, 2, 2]),
    ("EluGrad", {}, [2, 2, 2, 2], [-0.5, 0, 0.5, 1], [1, 2, 2, 2]),
    ("SeluGrad", {}, [2, 2], [-0.5, 0], [2 * (1.7580993408473766 - 0.5), 2 * 1.0507009873554805]),
]


@pytest.mark.parametrize("dtype", FLOATS)
def test_activations_where_they_bend(ops: Any, dtype: Any) -> None:
    for op, attrs, gradients, x, expected in EDGES:
        inputs = [np.array(each, dtype) for each in (gradients, x) if each is not None]
        found = ops.run(op, inputs, **attrs)
        np.testing.assert_allclose(found, np.array(expected, dtype), rtol=1e-3, err_msg=op)
    assert ops.run("ReluGrad", [np.int32([2, 2, 2]), np.int32([-1, 0, 1])]).tolist() == [0, 0, 2]


def test_softplus_neither_overflows_nor_loses_small_numbers(ops: Any) -> None:
    found = ops.run("Softplus", [np.float64([1000, -1000, -40, 0])])
    np.testing.assert_allclose(found, [1000, 0, math.exp(-40), math.log(2)], rtol=1e-14)


def test_losses_of_no_classes_and_of_no_rows(ops: Any) -> None:
    for op in ("Softmax", "LogSoftmax"):
        assert ops.run(op, [zeros(3, 0)]).shape == (3, 0)
    loss, backprop = ops.run(DENSE, [zeros(3, 0), zeros(3, 0)])
    assert (loss.tolist(), backprop.shape) == ([0, 0, 0], (3, 0))
    loss, backprop = ops.run(DENSE, [zeros(1, 0), zeros(3, 1)])
    assert (loss.tolist(), backprop.shape) == ([0, 0, 0], (3, 0))
    loss, backprop = ops.run(SPARSE, [zeros(0, 3), np.zeros(0, np.int32)])
    assert (loss.shape, backprop.shape) == ((0,), (0, 3))


def test_either_input_of_a_dense_cross_entropy_is_broadcast(ops: Any) -> None:
    logits, labels = sample((3, 4), np.float32), softmax(sample((3, 4), np.float32))
    for x, y in ((logits, labels[:1]), (logits[:1], labels), (logits[0], labels), (logits, labels[0])):
        whole = [np.broadcast_to(each, (3, 4)).copy() for each in (x, y)]
        for found, expected in zip(ops.run(DENSE, [x, y]), ops.run(DENSE, whole), strict=True):
            np.testing.assert_array_equal(found, expected)
    for wrong in ([logits[0], labels[0]], [zeros(1, 2, 3), zeros(1, 2, 3)], [zeros(1, 2, 3), zeros(2, 3)]):
        with pytest.raises(errors.InvalidArgumentError, match="must be either 2-dimensional, or broadcasted to be"):
            ops.run(DENSE, wrong)


def test_labels_that_are_no_classes(ops: Any) -> None:
    for labels, bad in (([3, 0], 3), ([0, 3], 3), ([-1, 0], -1), ([0, -1], -1), ([7, -2], -2), ([4, 7], 7)):
        values = " ".join(map(str, labels))
        text = (
            rf"^Received a label value of {bad} which is outside the valid range of \[0, 3\)\.  Label values: {values}$"
        )
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ops.run(SPARSE, [zeros(2, 3), labels])
    with pytest.raises(errors.InvalidArgumentError, match=r"^labels must be 1-D, but got shape \[2,1\]$"):
        ops.run(SPARSE, [zeros(2, 3), [[0], [1]]])
