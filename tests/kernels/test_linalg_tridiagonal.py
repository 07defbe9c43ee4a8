"""Tridiagonal matrices: their products and solutions for each shape of a batch, and what is refused in which words."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.registry import KernelNode, lookup
from tenfold_kernels.resources.state import ResourceManager

RNG = np.random.default_rng(21)


def refused(ops: Any, text: str, op: str, inputs: list[Any], **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        ops.run(op, inputs, **attrs)
    assert error.value.message == text


def of_diagonals(above: Any, middle: Any, below: Any) -> Any:
    """The first of the lower diagonal and the last of the upper one lie outside."""
    size = len(middle)
    out = np.zeros((size, size), middle.dtype)
    for i in range(size):
        out[i, i] = middle[i]
        if i + 1 < size:
            out[i, i + 1], out[i + 1, i] = above[i], below[i + 1]
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (0,)])
@pytest.mark.parametrize(("size", "columns"), [(1, 1), (1, 3), (2, 1), (4, 3), (4, 0)])
def test_products(ops: Any, dtype: Any, batch: tuple[int, ...], size: int, columns: int) -> None:
    diagonals = [RNG.integers(-4, 5, (*batch, 1, size)).astype(dtype) for _ in range(3)]
    right = RNG.integers(-4, 5, (*batch, size, columns)).astype(dtype)

    found = ops.run("TridiagonalMatMul", [*diagonals, right])

    assert (found.shape, found.dtype) == (right.shape, dtype)
    for place in np.ndindex(*batch):
        matrix = of_diagonals(*(each[(*place, 0)] for each in diagonals))
        np.testing.assert_array_equal(found[place], matrix @ right[place])


def test_what_products_refuse(ops: Any) -> None:
    good = [np.ones((2, 1, 3)) for _ in range(3)] + [np.ones((2, 3, 4))]
    for i in range(4):
        inputs = list(good)
        inputs[i] = np.ones(3)
        refused(ops, f"Input tensor {i} must have rank >= 2, got shape [3]", "TridiagonalMatMul", inputs)
        if i:
            inputs[i] = good[i][0]
            text = f"All input tensors must have the same outer dimensions: [2,1,3] vs. [{'3,4' if i == 3 else '1,3'}]"
            refused(ops, text, "TridiagonalMatMul", inputs)
    for i, what in enumerate(("superdiagonal", "main diagonal", "subdiagonal")):
        for shape, said in (((2, 1, 2), "[2,1,2]"), ((2, 2, 3), "[2,2,3]")):
            inputs = list(good)
            inputs[i] = np.ones(shape)
            refused(ops, f"Invalid {what} shape: [1,3] is expected, got {said}.", "TridiagonalMatMul", inputs)


@pytest.mark.parametrize(("batch", "pivoting"), list(itertools.product([(), (2,), (2, 3)], [False, True])))
@pytest.mark.parametrize(("size", "columns"), [(1, 2), (2, 1), (3, 2), (5, 3)])
def test_solutions(ops: Any, batch: tuple[int, ...], pivoting: bool, size: int, columns: int) -> None:
    diagonals, right = RNG.uniform(-1, 1, (*batch, 3, size)), RNG.uniform(-1, 1, (*batch, size, columns))
    diagonals[..., 1, :] += 3

    found = ops.run("TridiagonalSolve", [diagonals, right], partial_pivoting=pivoting)

    for place in np.ndindex(*batch):
        np.testing.assert_allclose(of_diagonals(*diagonals[place]) @ found[place], right[place], rtol=1e-9, atol=1e-12)
    turned = ops.run("TridiagonalSolve", [diagonals, right[..., ::-1]], partial_pivoting=pivoting)
    np.testing.assert_allclose(turned[..., ::-1], found, rtol=1e-12)


def test_rows_change_places_by_default(ops: Any) -> None:
    diagonals, right = np.array([[1.0, 0], [0, 0], [0, 1]]), np.array([[2.0], [3]])
    node = KernelNode("n", "TridiagonalSolve", {"T": dtypes.float64}, (dtypes.float64,) * 2, (dtypes.float64,),
                      "/device:CPU:0", ResourceManager())  # fmt: skip

    assert lookup(node, "CPU")(node)(diagonals, right).tolist() == [[3], [2]]
    text = "The matrix is either not invertible, or requires pivoting. Try setting partial_pivoting = True."
    refused(ops, text, "TridiagonalSolve", [diagonals, right], partial_pivoting=False)


def test_systems_of_nothing(ops: Any) -> None:
    for shape in ((0, 3, 2), (2, 0, 4)):
        diagonals = np.zeros((shape[0], 3, shape[1]), np.float32)
        found = ops.run("TridiagonalSolve", [diagonals, np.zeros(shape, np.float32)])
        assert (found.shape, found.dtype) == (shape, np.float32)
    assert ops.run("TridiagonalSolve", [np.zeros((3, 2)), np.zeros((2, 0))]).shape == (2, 0)


def test_what_solutions_refuse(ops: Any) -> None:
    op, good, right = "TridiagonalSolve", np.ones((3, 2)), np.ones((2, 1))
    refused(ops, "Input tensor 0 must have rank >= 2, got shape [3]", op, [np.ones(3), right])
    refused(ops, "Input tensor 1 must have rank >= 2, got shape [2]", op, [good, np.ones(2)])
    text = "All input tensors must have the same outer dimensions: [3,2] vs. [4,2,1]"
    refused(ops, text, op, [good, np.ones((4, 2, 1))])
    text = "Expected diagonals to be provided as a matrix with 3 rows, got {} rows."
    for rows in (2, 4):
        refused(ops, text.format(rows), op, [np.ones((rows, 2)), right])
    text = "Expected the same number of left-hand sides and right-hand sides, got 2 and 3."
    refused(ops, text, op, [good, np.ones((3, 1))])
    refused(ops, "The matrix is not invertible.", op, [np.zeros((3, 2)), right])
    both = np.stack([np.array([[0.0, 0], [1, 1], [0, 0]]), np.zeros((3, 2))])
    refused(ops, "The matrix is not invertible.", op, [both, np.ones((2, 2, 1))])
