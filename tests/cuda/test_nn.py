"""Activations with their gradients, bias and L2Loss on a GPU give what they give on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors

if TYPE_CHECKING:
    from types import SimpleNamespace

ACTIVATIONS = ("Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign")


def values(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return random.normal(0, 4, shape).astype(dtype)
    return random.integers(0, 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ACTIVATIONS)
def test_activations_and_their_gradients(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    for shape in ((), (0,), (1,), (7,), (3, 5)):
        gpu.same(op, [values(shape, dtype)], rtol=3e-5)
        gpu.same(f"{op}Grad", [values(shape, dtype, 1), values(shape, dtype, 2)], rtol=3e-5)


@pytest.mark.parametrize("op", ACTIVATIONS)
def test_activations_of_what_is_no_number(gpu: SimpleNamespace, op: str) -> None:
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 6.0], np.float32)

    gpu.same(op, [odd])
    gpu.same(f"{op}Grad", [np.ones(6, np.float32), odd])


def test_the_slope_of_a_leaky_relu(gpu: SimpleNamespace) -> None:
    gpu.same("LeakyRelu", [values((7,))], alpha=0.5)
    gpu.same("LeakyReluGrad", [values((7,)), values((7,), seed=1)], alpha=0.5)


def test_a_gradient_wants_two_of_one_shape(gpu: SimpleNamespace) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="must have the same size and shape"):
        gpu.run("ReluGrad", [values((3,)), values((3, 1))])
    with pytest.raises(errors.InvalidArgumentError, match="must have the same size and shape"):
        gpu.run("SoftsignGrad", [values((3,)), values((1,))])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_bias_and_its_gradient(gpu: SimpleNamespace, dtype: str) -> None:
    for shape in ((2, 3), (0, 3), (5, 1), (2, 2, 3, 4), (67, 3), (2, 3, 67)):
        gpu.same("BiasAdd", [values(shape, dtype), values(shape[-1:], dtype)])
        gpu.same("BiasAdd", [values(shape, dtype), values(shape[1:2], dtype)], data_format=b"NCHW")
        gpu.same("BiasAddGrad", [values(shape, dtype)], rtol=1e-5, atol=1e-5)
        gpu.same("BiasAddGrad", [values(shape, dtype)], data_format=b"NCHW", rtol=1e-5, atol=1e-5)
    gpu.same("BiasAddV1", [values((2, 3), dtype), values((3,), dtype)])


def test_a_bias_is_checked_as_on_the_cpu(gpu: SimpleNamespace) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"as many biases as the last dimension.*\[2\] vs. \[2,3\]"):
        gpu.run("BiasAdd", [values((2, 3)), values((2,))])
    with pytest.raises(errors.InvalidArgumentError, match="must be at least 2D"):
        gpu.run("BiasAddGrad", [values((2,))])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_half_the_squares(gpu: SimpleNamespace, dtype: str) -> None:
    for shape in ((), (0,), (7,), (3, 5), (131,)):
        gpu.same("L2Loss", [values(shape, dtype)])
