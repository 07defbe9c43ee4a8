"""Softmax and the cross-entropies on a GPU: values as the CPU's, gradients against finite differences too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors

if TYPE_CHECKING:
    from types import SimpleNamespace

#: B, C: of fewer classes than threads, of more, of many rows for each block.
SHAPES = ((1, 1), (3, 2), (2, 7), (0, 3), (9, 5), (2, 67))


def logits(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    return np.random.default_rng(0).normal(0, 3, shape).astype(dtype)


def shares(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    return np.random.default_rng(1).dirichlet(np.ones(shape[1]), shape[0]).astype(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    for shape in (*SHAPES, (5,), (2, 3, 4), (3, 0)):
        gpu.same(op, [logits(shape, dtype)])


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_of_what_is_large_or_no_number(gpu: SimpleNamespace, op: str) -> None:
    inf, nan = np.inf, np.nan
    rows = [[1000, 1001, -1000, 0, 1], [-inf, 0, -inf, 1, 2], [inf, 0, 1, 2, 3], [nan, 0, 1, 2, 3], [-inf] * 5]

    gpu.same(op, [np.array(rows, np.float32)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cross_entropy(gpu: SimpleNamespace, dtype: str) -> None:
    for shape in SHAPES:
        gpu.same("SoftmaxCrossEntropyWithLogits", [logits(shape, dtype), shares(shape, dtype)])


@pytest.mark.parametrize(
    "shapes", [((3, 4), (1, 4)), ((3, 4), (3, 1)), ((1, 4), (3, 4)), ((3, 1), (1, 4)), ((3, 4), (4,))]
)
def test_logits_and_labels_are_broadcast(gpu: SimpleNamespace, shapes: Any) -> None:
    gpu.same("SoftmaxCrossEntropyWithLogits", [logits(shapes[0]), np.abs(logits(shapes[1]))])


@pytest.mark.parametrize("label", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_cross_entropy(gpu: SimpleNamespace, dtype: str, label: str) -> None:
    for shape in SHAPES:
        labels = np.random.default_rng(2).integers(0, shape[1], shape[0]).astype(label)
        gpu.same("SparseSoftmaxCrossEntropyWithLogits", [logits(shape, dtype), labels])


def test_a_label_that_is_no_class_gives_nan(gpu: SimpleNamespace) -> None:
    x, labels = logits((3, 4)), np.array([1, 4, -1], np.int64)

    loss, backprop = gpu.run("SparseSoftmaxCrossEntropyWithLogits", [x, labels])

    assert np.isnan(loss).tolist() == [False, True, True]
    assert np.isnan(backprop).all(axis=1).tolist() == [False, True, True]


def test_shapes_are_checked_as_on_the_cpu(gpu: SimpleNamespace) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="labels must be 1-D"):
        gpu.run("SparseSoftmaxCrossEntropyWithLogits", [logits((2, 3)), np.zeros((2, 1), np.int64)])
    with pytest.raises(errors.InvalidArgumentError, match="must be broadcastable"):
        gpu.run("SoftmaxCrossEntropyWithLogits", [logits((2, 3)), logits((2, 4))])
    with pytest.raises(errors.InvalidArgumentError, match="2-dimensional"):
        gpu.run("SoftmaxCrossEntropyWithLogits", [logits((3,)), logits((3,))])


def test_backprop_is_the_slope_of_the_loss(gpu: SimpleNamespace) -> None:
    x, y = logits((3, 5), "float64"), shares((3, 5), "float64")
    step = 1e-5 * np.random.default_rng(3).normal(size=x.shape)

    up, _ = gpu.run("SoftmaxCrossEntropyWithLogits", [x + step, y])
    down, _ = gpu.run("SoftmaxCrossEntropyWithLogits", [x - step, y])
    _, backprop = gpu.run("SoftmaxCrossEntropyWithLogits", [x, y])

    np.testing.assert_allclose((up - down) / 2, (backprop * step).sum(axis=1), rtol=1e-6, atol=1e-12)
