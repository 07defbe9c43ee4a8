"""Decompositions and solvers: what they give is multiplied together again; matrices without one are errors or nan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

RNG = np.random.default_rng(10)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def sample(dtype: Any, *shape: int) -> Any:
    values = RNG.standard_normal((*shape, 2))
    return (values[..., 0] + (1j * values[..., 1] if np.dtype(dtype).kind == "c" else 0)).astype(dtype)


def same(actual: Any, expected: Any) -> None:
    assert actual.dtype == expected.dtype
    single = actual.dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(actual, expected, rtol=1e-3 if single else 1e-9, atol=1e-3 if single else 1e-9)


def adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_multiply_to_the_matrix(ops: Any, dtype: Any) -> None:
    x = sample(dtype, 2, 3, 3)
    positive = x @ adjoint(x) + 3 * np.eye(3, dtype=dtype)

    root = ops.run("Cholesky", [positive])
    same(root @ adjoint(root), positive)
    assert (np.triu(root, 1) == 0).all()
    q, r = ops.run("Qr", [x])
    same(q @ r, x)
    values, left, right = ops.run("Svd", [x])
    same(left * values[..., None, :].astype(dtype) @ adjoint(right), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_solve(ops: Any, dtype: Any) -> None:
    matrix, rhs = sample(dtype, 2, 3, 3) + 3 * np.eye(3, dtype=dtype), sample(dtype, 2, 3, 2)

    same(matrix @ ops.run("MatrixSolve", [matrix, rhs]), rhs)
    same(adjoint(matrix) @ ops.run("MatrixSolve", [matrix, rhs], adjoint=True), rhs)
    same(np.tril(matrix) @ ops.run("MatrixTriangularSolve", [matrix, rhs]), rhs)
    same(matrix @ ops.run("MatrixInverse", [matrix]), np.broadcast_to(np.eye(3, dtype=dtype), (2, 3, 3)))


def test_determinants(ops: Any) -> None:
    x = np.array([[[2.0, 1], [1, 3]], [[0, 1], [1, 0]]])

    same(ops.run("MatrixDeterminant", [x]), np.array([5.0, -1]))
    sign, logarithm = ops.run("LogMatrixDeterminant", [x])
    same(sign * np.exp(logarithm), np.array([5.0, -1]))


def test_half_least_squares_of_more_unknowns_than_equations(ops: Any) -> None:
    solved = ops.run("MatrixSolveLs", [np.ones((1, 2), np.float16), np.ones((1, 1), np.float16), np.float64(0)])

    assert solved.dtype == np.float16
    np.testing.assert_allclose(solved, [[0.5], [0.5]])


@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_matrices_without_a_decomposition(ops: Any, wrong: float) -> None:
    """LAPACK's iterations may not end with such: one request must not hold a thread for ever."""
    matrices = np.stack([np.eye(3, dtype=np.float32), np.full((3, 3), wrong, np.float32)])

    for compute_uv in (True, False):
        values, u, _ = ops.run("Svd", [matrices], compute_uv=compute_uv)
        assert values[0].tolist() == [1, 1, 1]
        assert np.isnan(values[1]).all()
        assert not compute_uv or np.isnan(u[1]).all()
    solved = ops.run("MatrixSolveLs", [matrices, matrices, np.float64(0)], fast=False)
    assert np.isnan(solved[1]).all()
    for op in ("SelfAdjointEigV2", "Eig"):
        with pytest.raises(errors.InvalidArgumentError, match=r"decomposition was not successful\."):
            ops.run(op, [matrices], **({"Tout": dtypes.complex64} if op == "Eig" else {}))


def test_eigenvalues_read_the_lower_triangle_only(ops: Any) -> None:
    values, vectors = ops.run("SelfAdjointEigV2", [np.float32([[2, np.nan], [1, 3]])])

    np.testing.assert_allclose(values, [1.381966, 3.618034], rtol=1e-6)
    np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T, [[2, 1], [1, 3]], rtol=1e-5)
