"""What graph optimizers put in place of other ops gives what those ops give one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors

RNG = np.random.default_rng(9)


def sample(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def test_a_product_with_its_bias_and_activation(ops: Any) -> None:
    a, b, bias = sample(3, 4), sample(4, 5), sample(5)

    fused = ops.run("_FusedMatMul", [a, b, bias], fused_ops=[b"BiasAdd", b"Relu"])

    apart = ops.run("Relu", [ops.run("BiasAdd", [ops.run("MatMul", [a, b]), bias])])
    np.testing.assert_allclose(fused, apart, rtol=1e-6, atol=1e-6)


def test_a_convolution_with_its_bias(ops: Any) -> None:
    image, filter_, bias = sample(1, 5, 5, 2), sample(3, 3, 2, 4), sample(4)
    attrs = {"strides": [1, 1, 1, 1], "padding": b"SAME"}

    fused = ops.run("_FusedConv2D", [image, filter_, bias], fused_ops=[b"BiasAdd"], num_args=1, TArgs=[], **attrs)

    np.testing.assert_allclose(fused, ops.run("Conv2D", [image, filter_], **attrs) + bias, rtol=1e-5, atol=1e-5)


def test_a_chain_of_functions(ops: Any) -> None:
    x = np.float32([[0.5, 4]])

    chain = ops.run("_UnaryOpsComposition", [x], op_names=[b"Sqrt", b"Neg", b"Exp"])

    np.testing.assert_allclose(chain, np.exp(-np.sqrt(x)), rtol=1e-6)
    with pytest.raises(errors.InvalidArgumentError, match="'MatMul' is no op of one input"):
        ops.run("_UnaryOpsComposition", [x], op_names=[b"MatMul"])


def test_batch_normalisation_with_activation_and_side_input(ops: Any) -> None:
    x, side, ones = sample(2, 3, 3, 4), sample(2, 3, 3, 4), np.ones(4, np.float32)

    y, *_ = ops.run(
        "_FusedBatchNormEx", [x, ones, ones, 0 * ones, ones, side], is_training=False, activation_mode=b"Relu",
        num_side_inputs=1, epsilon=0.0,
    )  # fmt: skip

    np.testing.assert_allclose(y, np.maximum(x + 1 + side, 0), rtol=1e-5, atol=1e-6)


def test_a_fused_op_that_is_not_known_is_named(ops: Any) -> None:
    a, b = sample(3, 4), sample(4, 5)
    with pytest.raises(errors.InvalidArgumentError, match=r"fused op 'Frobnicate' is not known; known are .*BiasAdd"):
        ops.run("_FusedMatMul", [a, b], fused_ops=[b"Frobnicate"])


@pytest.mark.parametrize("at", [-2, -1, 0, 1])
def test_a_row_of_a_value_is_replaced(ops: Any, at: int) -> None:
    value, update = np.arange(4, dtype=np.float32).reshape(2, 2), np.array([[8, 9]], np.float32)
    wanted = value.copy()
    wanted[at] = update[0]
    found = ops.run("_ParallelConcatUpdate", [value, update], loc=at)
    assert found.tolist() == wanted.tolist()
    assert value.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("shape", "row", "at"),
    [
        *(((), (1,), 0), ((2, 2), (1, 3), 0), ((2, 2), (1, 2), 2), ((2, 2), (1, 2), -3)),
        *(((2, 2), (0, 2), 0), ((2, 2), (2, 2), 0), ((2, 2), (2,), 0), ((2, 2), (1, 2, 1), 0), ((2,), (), 0)),
    ],
)
def test_a_row_that_is_none_of_the_value_is_refused(ops: Any, shape: Any, row: Any, at: int) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=rf"row {at} of \(.*\) cannot hold"):
        ops.run("_ParallelConcatUpdate", [np.zeros(shape, np.float32), np.zeros(row, np.float32)], loc=at)
