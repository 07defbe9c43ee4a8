"""Functions of matrices, LU and tridiagonal systems: what they give is multiplied together again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu._compiled import schur

RNG = np.random.default_rng(11)
#: One type stands for the others, each of which compiles its loops anew.
DTYPES = [np.float32, *(pytest.param(t, marks=pytest.mark.thorough) for t in (np.float64, np.complex64, np.complex128))]


def sample(dtype: Any, *shape: int) -> Any:
    values = RNG.standard_normal((*shape, 2))
    return (values[..., 0] + (1j * values[..., 1] if np.dtype(dtype).kind == "c" else 0)).astype(dtype)


def same(actual: Any, expected: Any) -> None:
    assert actual.dtype == expected.dtype
    tolerance = 1e-3 if actual.dtype in (np.float32, np.complex64) else 1e-9
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_factors_of_lu_are_the_matrix_with_its_rows_in_order(ops: Any, dtype: Any) -> None:
    x = sample(dtype, 2, 3, 5, 5)

    lu, rows = ops.run("Lu", [x])

    low = np.tril(lu, -1) + np.eye(5, dtype=dtype)
    same(low @ np.triu(lu), np.take_along_axis(x, rows[..., None], axis=-2))
    assert (np.abs(np.tril(lu, -1)) <= 1 + 1e-6).all()


def test_a_singular_matrix_has_no_lu(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Input is not invertible"):
        ops.run("Lu", [np.ones((2, 2))])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_root_squared_is_the_matrix(ops: Any, dtype: Any, size: int) -> None:
    factor = sample(dtype, 2, size, size)
    x = factor @ factor.conj().swapaxes(-1, -2) + np.eye(size, dtype=dtype) + np.triu(sample(dtype, size, size), 1) / 8

    root = ops.run("MatrixSquareRoot", [x])

    same(root @ root, x)


def test_roots_of_matrices_that_have_few_eigenvectors_or_none_that_are_real(ops: Any) -> None:
    block = np.array([[4.0, 1], [0, 4]])
    turn = np.array([[0.0, -1], [1, 0]])

    same(ops.run("MatrixSquareRoot", [block]), np.array([[2.0, 0.25], [0, 2]]))
    same(ops.run("MatrixSquareRoot", [turn]), (np.eye(2) + turn) / np.sqrt(2))
    assert np.isnan(ops.run("MatrixSquareRoot", [-np.eye(2)])).all()
    assert ops.run("MatrixSquareRoot", [np.zeros((0, 0))]).shape == (0, 0)
    assert ops.run("MatrixSquareRoot", [np.zeros((2, 2))]).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("size", [1, 3, 8])
def test_the_logarithm_of_what_has_these_eigenvalues(ops: Any, size: int) -> None:
    vectors = sample(np.complex128, size, size)
    values = sample(np.complex128, size) / 2

    logarithm = ops.run("MatrixLogarithm", [vectors @ np.diag(np.exp(values)) @ np.linalg.inv(vectors)])

    same(logarithm, vectors @ np.diag(values) @ np.linalg.inv(vectors))


def test_a_turn_that_a_step_of_qr_leaves_as_it_is(ops: Any) -> None:
    # e1 to e2 to e3 to e1: a turn by a third about (1, 1, 1), whose axis is known as a matrix
    turn = np.roll(np.eye(3), 1, axis=0)
    axis = np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
    third = 2 * np.pi / 3

    same(ops.run("MatrixLogarithm", [turn.astype(np.complex128)]), (third * axis).astype(np.complex128))
    half = np.eye(3) + np.sin(third / 2) * axis + (1 - np.cos(third / 2)) * axis @ axis
    same(ops.run("MatrixSquareRoot", [turn]), half)


def test_an_eigenvalue_takes_three_steps_of_qr(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    shift = schur._shift
    monkeypatch.setattr(schur, "_shift", lambda a, last, step: asked.append(last) or shift(a, last, step))

    def factored(x: Any) -> int:
        """How many steps it took. As Python, which sees an index that is outside."""
        before, (t, q) = len(asked), (x.copy(), np.eye(len(x), dtype=x.dtype))
        assert schur._schur(t, q, np.empty(len(x), x.dtype)) == 0
        same(q @ t @ q.conj().T, x)
        return len(asked) - before

    rng = np.random.default_rng(5)
    drawn = [rng.standard_normal((6, 6)) + 1j * rng.standard_normal((6, 6)) for _ in range(4)]
    assert sum(map(factored, drawn)) <= 3 * 6 * 4
    # its own next one but for the tenth step, which takes another shift
    assert 10 < factored(2 * np.roll(np.eye(3), 1, axis=0).astype(np.complex128)) < 20

    asked.clear()
    nothing = np.full((2, 2), np.nan + 0j)
    with np.errstate(all="ignore"):
        assert schur._schur(nothing, np.eye(2) + 0j, np.empty(2, np.complex128)) == 1
    assert len(asked) == schur._MOST_STEPS


def of_diagonals(diagonals: Any) -> Any:
    above, middle, below = (diagonals[..., i, :] for i in range(3))
    shape = (*middle.shape, middle.shape[-1])
    out = np.zeros(shape, diagonals.dtype)
    n = np.arange(shape[-1])
    out[..., n, n] = middle
    out[..., n[:-1], n[1:]] = above[..., :-1]
    out[..., n[1:], n[:-1]] = below[..., 1:]
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 2, 3, 6])
@pytest.mark.parametrize("pivoting", [True, False])
def test_tridiagonal_systems(ops: Any, dtype: Any, count: int, pivoting: bool) -> None:
    diagonals, right = sample(dtype, 2, 3, count), sample(dtype, 2, count, 4)
    if pivoting:
        diagonals[..., 1, ::2] *= 0.01
    else:
        diagonals[..., 1, :] += 4
    if count == 3:
        diagonals[..., 1, 0] = 1
    dense = of_diagonals(diagonals)

    product = ops.run("TridiagonalMatMul", [diagonals[..., i : i + 1, :] for i in range(3)] + [right])
    solved = ops.run("TridiagonalSolve", [diagonals, right], partial_pivoting=pivoting)

    same(product, dense @ right)
    np.testing.assert_allclose(dense @ solved, right, rtol=1e-2, atol=2e-2 if product.itemsize < 9 else 1e-7)


@pytest.mark.parametrize(("pivoting", "what"), [(True, "not invertible"), (False, "requires pivoting")])
def test_a_tridiagonal_system_that_cannot_be_solved(ops: Any, pivoting: bool, what: str) -> None:
    diagonals = np.array([[1.0, 0], [0, 1], [0, 0]])

    with pytest.raises(errors.InvalidArgumentError, match=what):
        ops.run("TridiagonalSolve", [diagonals, np.ones((2, 1))], partial_pivoting=pivoting)
    with pytest.raises(errors.InvalidArgumentError, match="3 rows, got 2"):
        ops.run("TridiagonalSolve", [diagonals[:2], np.ones((2, 1))])
    with pytest.raises(errors.InvalidArgumentError, match="Invalid superdiagonal shape"):
        ops.run("TridiagonalMatMul", [np.ones((1, 3)), np.ones((1, 2)), np.ones((1, 2)), np.ones((2, 1))])


def test_functions_of_what_is_not_finite(ops: Any) -> None:
    """One such matrix of a batch leaves the others as they are."""
    for wrong in (np.inf, np.nan):
        x = np.stack([4 * np.eye(3), 4 * np.eye(3)])
        x[0, 2, 0] = wrong
        root = ops.run("MatrixSquareRoot", [x])
        logarithm = ops.run("MatrixLogarithm", [x.astype(np.complex128)])
        assert np.isnan(root[0]).all()
        assert np.isnan(logarithm[0]).all()
        np.testing.assert_allclose(root[1], 2 * np.eye(3), atol=1e-12)
        np.testing.assert_allclose(logarithm[1], np.log(4) * np.eye(3), atol=1e-12)


def test_of_a_batch_each_root_is_real_or_not(ops: Any) -> None:
    for size in (2, 3):
        x = np.stack([np.eye(size), -np.eye(size), 9 * np.eye(size)])

        root = ops.run("MatrixSquareRoot", [x])

        np.testing.assert_allclose(root[[0, 2]], [np.eye(size), 3 * np.eye(size)], atol=1e-12)
        assert np.isnan(root[1]).all()
        whole = ops.run("MatrixSquareRoot", [x.astype(np.complex64)])
        assert whole.dtype == np.complex64
        np.testing.assert_allclose(whole[1] @ whole[1], -np.eye(size), atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 2, 2), (2, 3, 1, 1)])
def test_functions_of_batches_of_all_shapes(ops: Any, shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.complex128)

    assert ops.run("MatrixSquareRoot", [x]).tolist() == x.tolist()
    assert ops.run("MatrixLogarithm", [x]).tolist() == (x - 1).tolist()
    lu, rows = ops.run("Lu", [x])
    assert lu.shape[:-1] == rows.shape


def test_logarithms_of_what_is_near_the_unit_matrix_and_far_from_it(ops: Any) -> None:
    for scale in (1.01, 1.5, 1.6, 7.0, 1e9, 1e-9):
        turn = np.array([[1, 0.01], [0, 1]], np.complex128)
        found = ops.run("MatrixLogarithm", [scale * turn])
        np.testing.assert_allclose(found, [[np.log(scale), 0.01], [0, np.log(scale)]], rtol=1e-9, atol=1e-12)


def test_a_matrix_without_a_schur_form(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schur, "schur", lambda: lambda *_: 1)

    for op in ("MatrixSquareRoot", "MatrixLogarithm"):
        with pytest.raises(errors.InvalidArgumentError) as refused:
            ops.run(op, [np.ones((2, 2), np.complex128)])
        assert refused.value.message == "Schur decomposition was not successful. The input might not be valid."


@pytest.mark.parametrize("op", ["MatrixSquareRoot", "MatrixLogarithm", "Lu"])
def test_functions_are_of_square_matrices(ops: Any, op: str) -> None:
    for shape, text in (
        ((2, 3), "Input matrix must be square, got shape [2,3]"),
        ((2,), "Input tensor 0 must have rank >= 2, got shape [2]"),
    ):
        with pytest.raises(errors.InvalidArgumentError) as refused:
            ops.run(op, [np.ones(shape, np.complex64)])
        assert refused.value.message == text


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("index", [dtypes.int32, dtypes.int64])
def test_lu_takes_the_largest_pivot(ops: Any, dtype: Any, index: Any) -> None:
    x = np.array([[[0, 2, 1], [0.25, 1, 0], [0.5, 4, 2]], [[1, 0, 0], [0, 0.5, 0], [0, 0, 0.25]]], dtype)

    lu, rows = ops.run("Lu", [x], output_idx_type=index)

    assert rows.tolist() == [[2, 0, 1], [0, 1, 2]]
    assert (lu.dtype, rows.dtype) == (dtype, index.as_numpy_dtype)
    low, high = np.tril(lu, -1) + np.eye(3), np.triu(lu)
    np.testing.assert_allclose(low @ high, np.take_along_axis(x, rows[..., None], -2), atol=1e-3)


def test_a_matrix_that_is_singular_in_a_batch_has_no_lu(ops: Any) -> None:
    for wrong in (np.zeros((2, 2)), np.full((2, 2), np.nan)):
        with pytest.raises(errors.InvalidArgumentError, match=r"^Input is not invertible\.$"):
            ops.run("Lu", [np.stack([np.eye(2), wrong])])
