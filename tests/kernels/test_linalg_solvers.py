"""Decompositions and solvers at their edges: types, adjoints, batches, empty matrices; what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels import registry
from tenfold_kernels.cpu import linalg
from tenfold_kernels.registry import KernelNode, lookup
from tenfold_kernels.resources.state import ResourceManager

RNG = np.random.default_rng(20)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
WITH_HALF = [np.float16, *DTYPES]
F = np.float32
NAN = np.nan


def cases(*ops: str) -> list[tuple[str, Any]]:
    """Each op with each of its types: those that work on batches since long have no halves."""
    return [(op, dtype) for op in ops for dtype in (DTYPES if op.startswith("Batch") else WITH_HALF)]


def sample(dtype: Any, *shape: int, diagonal: float = 0) -> Any:
    made = RNG.uniform(-1, 1, shape) + (1j * RNG.uniform(-1, 1, shape) if np.dtype(dtype).kind == "c" else 0)
    return (made + diagonal * np.eye(*shape[-2:])).astype(dtype)


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def same(found: Any, expected: Any, dtype: Any) -> None:
    assert found.dtype == dtype
    assert found.shape == np.shape(expected)
    tolerance = {np.float16: 2e-2, np.float32: 1e-4, np.complex64: 1e-4}.get(dtype, 1e-9)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def wide(x: Any) -> Any:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def refused(ops: Any, text: str, op: str, inputs: list[Any], **attrs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        ops.run(op, inputs, **attrs)
    assert error.value.message == text


def bare(op: str, types: tuple[Any, ...], outputs: tuple[Any, ...]) -> Any:
    """The compute of a node that leaves its other attrs to their defaults."""
    node = KernelNode("n", op, {"T": types[0]}, types, outputs, "/device:CPU:0", ResourceManager())
    return lookup(node, "CPU")(node)


# -- what all have in common

SQUARE = ("MatrixDeterminant", "LogMatrixDeterminant", "SelfAdjointEigV2", "Eig", "Cholesky", "MatrixInverse",
          "BatchMatrixDeterminant", "BatchSelfAdjointEigV2", "BatchCholesky", "BatchMatrixInverse",
          "SelfAdjointEig", "BatchSelfAdjointEig")  # fmt: skip
ANY_SHAPE = ("Qr", "Svd", "BatchSvd")


@pytest.mark.parametrize("op", SQUARE + ANY_SHAPE)
def test_what_is_no_matrix(ops: Any, op: str) -> None:
    attrs = {"Tout": dtypes.complex128} if op == "Eig" else {}
    refused(ops, "Input tensor 0 must have rank >= 2, got shape [3]", op, [np.zeros(3)], **attrs)
    refused(ops, "Input tensor 0 must have rank >= 2, got shape []", op, [np.zeros(())], **attrs)
    if op in SQUARE:
        refused(ops, "Input matrix must be square, got shape [5,2,3]", op, [np.zeros((5, 2, 3))], **attrs)
        refused(ops, "Input matrix must be square, got shape [3,2]", op, [np.zeros((3, 2))], **attrs)


def test_matrices_of_nothing_whose_other_size_is_beyond_all_memory(ops: Any) -> None:
    for op in ("Qr", "Svd"):
        with pytest.raises(errors.ResourceExhaustedError):
            ops.run(op, [np.zeros((0, 1 << 50))])
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("MatrixDeterminant", [np.zeros((1 << 50, 0, 0))])
    assert ops.run("MatrixDeterminant", [np.zeros((2, 0, 0))]).tolist() == [1, 1]
    assert ops.run("MatrixInverse", [np.zeros((2, 0, 0))]).shape == (2, 0, 0)
    assert ops.run("Cholesky", [np.zeros((0, 2, 2))]).shape == (0, 2, 2)


def test_halves_are_computed_in_float() -> None:
    half = np.zeros((2, 2), np.float16)
    assert linalg.matrices(half).dtype == np.float32
    for dtype in DTYPES:
        x = np.zeros((2, 2), dtype)
        assert linalg.matrices(x) is x
    real, whole = np.arange(6.0).reshape(2, 3), np.array([[1 + 2j, 3j]])
    assert linalg.adjoint(real).tolist() == real.T.tolist()
    assert np.shares_memory(linalg.adjoint(real), real)
    assert linalg.adjoint(whole).tolist() == [[1 - 2j], [-3j]]


# -- determinants


@pytest.mark.parametrize(("op", "dtype"), cases("MatrixDeterminant", "BatchMatrixDeterminant", "LogMatrixDeterminant"))
def test_determinants(ops: Any, op: str, dtype: Any) -> None:
    x = sample(dtype, 2, 3, 3, diagonal=2)
    x[1, 0] *= -1
    expected = np.linalg.det(wide(x))

    found = ops.run(op, [x])
    if op == "LogMatrixDeterminant":
        sign, log = found
        assert log.dtype == dtype
        same(sign, expected / np.abs(expected), dtype)
        same(log, np.log(np.abs(expected)), dtype)
        sign, log = ops.run(op, [x[0]])
        assert sign.shape == log.shape == ()
        assert [each.tolist() for each in ops.run(op, [np.zeros((2, 2), dtype)])] == [0, -np.inf]
    else:
        same(found, expected, dtype)
        assert ops.run(op, [x[0]]).shape == ()
    x[0, 1, 1] = NAN
    broken = ops.run(op, [x])
    for each in broken if op == "LogMatrixDeterminant" else (broken,):
        assert np.isnan(each[0])
        assert not np.isnan(each[1])


# -- solutions


@pytest.mark.parametrize(("op", "dtype"), cases("MatrixSolve", "BatchMatrixSolve"))
@pytest.mark.parametrize("turned", [False, True])
def test_solutions(ops: Any, op: str, dtype: Any, turned: bool) -> None:
    for batch in ((), (2,), (2, 3)):
        matrix, right = sample(dtype, *batch, 3, 3, diagonal=3), sample(dtype, *batch, 3, 2)
        found = ops.run(op, [matrix, right], adjoint=turned)
        left = wide(matrix)
        same(found, np.linalg.solve(adjoint(left) if turned else left, wide(right)), dtype)
    for shape in ((3, 0), (0, 2)):
        empty = ops.run(op, [np.zeros((shape[0],) * 2, dtype), np.zeros(shape, dtype)])
        assert (empty.shape, empty.dtype) == (shape, dtype)


@pytest.mark.parametrize("op", ["MatrixSolve", "BatchMatrixSolve"])
def test_what_has_no_solution(ops: Any, op: str) -> None:
    refused(ops, "Input matrix is not invertible.", op, [np.ones((2, 2)), np.ones((2, 1))])
    refused(ops, "Input tensor 1 must have rank >= 2, got shape [2]", op, [np.eye(2), np.ones(2)])
    text = "Input matrix and rhs are incompatible: [2,2] vs. [3,1]"
    refused(ops, text, op, [np.eye(2), np.ones((3, 1))])
    text = "All input tensors must have the same outer dimensions: [1,2,2] vs. [2,1]"
    refused(ops, text, op, [np.eye(2)[None], np.ones((2, 1))])
    text = "All input tensors must have the same outer dimensions: [1,2,2] vs. [3,2,1]"
    refused(ops, text, op, [np.eye(2)[None], np.ones((3, 2, 1))])
    plain = bare(op, (dtypes.float64, dtypes.float64), (dtypes.float64,))
    assert plain(np.array([[1.0, 2], [0, 1]]), np.array([[4.0], [1]])).tolist() == [[2], [1]]


@pytest.mark.parametrize(("op", "dtype"), cases("MatrixTriangularSolve", "BatchMatrixTriangularSolve"))
@pytest.mark.parametrize(("lower", "turned"), list(itertools.product([False, True], repeat=2)))
def test_solutions_of_triangles(ops: Any, op: str, dtype: Any, lower: bool, turned: bool) -> None:
    """The other triangle is not looked at; batches broadcast."""
    for left, right in (((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 2)), ((2, 1, 3, 3), (4, 3, 2)), ((3, 3), (2, 3, 1)),
                        ((1, 1), (1, 2)), ((0, 0), (0, 2)), ((3, 3), (3, 0))):  # fmt: skip
        matrix, rhs = sample(dtype, *left, diagonal=2), sample(dtype, *right)
        if left[-1] > 1:
            matrix[..., *((0, -1) if lower else (-1, 0))] = NAN
        before = rhs.copy()
        found = ops.run(op, [matrix, rhs], lower=lower, adjoint=turned)
        triangle = wide(np.tril(matrix) if lower else np.triu(matrix))
        triangle = adjoint(triangle) if turned else triangle
        batch = np.broadcast_shapes(left[:-2], right[:-2])
        expected = np.linalg.solve(
            np.broadcast_to(triangle, (*batch, *left[-2:])), np.broadcast_to(wide(rhs), (*batch, *right[-2:]))
        )
        same(found, expected, dtype)
        np.testing.assert_array_equal(rhs, before)


@pytest.mark.parametrize("op", ["MatrixTriangularSolve", "BatchMatrixTriangularSolve"])
def test_triangles_without_a_solution(ops: Any, op: str) -> None:
    for place in (0, 1):
        matrix = np.tril(np.ones((2, 2)))
        matrix[place, place] = 0
        refused(ops, "Input matrix is not invertible.", op, [matrix, np.ones((2, 1))])
    text = "In[0] and In[1] must have compatible batch dimensions: [2,2,2] vs. [3,2,1]"
    refused(ops, text, op, [np.ones((2, 2, 2)), np.ones((3, 2, 1))])
    refused(ops, "Input tensor 1 must have rank >= 2, got shape [2]", op, [np.eye(2), np.ones(2)])
    text = "Input matrix and rhs are incompatible: [2,2] vs. [1,2]"
    refused(ops, text, op, [np.eye(2), np.ones((1, 2))])
    refused(ops, "Input matrix must be square, got shape [2,3]", op, [np.ones((2, 3)), np.ones((3, 2))])
    plain = bare(op, (dtypes.float64, dtypes.float64), (dtypes.float64,))
    assert plain(np.array([[1.0, NAN], [2, 1]]), np.array([[4.0], [1]])).tolist() == [[4], [-7]]


@pytest.mark.parametrize(("op", "dtype"), cases("MatrixSolveLs", "BatchMatrixSolveLs"))
@pytest.mark.parametrize(("fast", "l2"), [(True, 0.0), (True, 0.5), (False, 0.0)])
@pytest.mark.parametrize("shape", [(4, 2), (3, 3), (2, 4)])
def test_least_squares(ops: Any, op: str, dtype: Any, fast: bool, l2: float, shape: tuple[int, int]) -> None:
    matrix, right = sample(dtype, 2, *shape, diagonal=2), sample(dtype, 2, shape[0], 3)

    found = ops.run(op, [matrix, right, np.float64(l2)], fast=fast)

    a, b = wide(matrix), wide(right)
    expected = np.linalg.solve(adjoint(a) @ a + l2 * np.eye(shape[1]), adjoint(a) @ b) if l2 else np.linalg.pinv(a) @ b
    same(found, expected, dtype)


@pytest.mark.parametrize("op", ["MatrixSolveLs", "BatchMatrixSolveLs"])
def test_what_least_squares_refuse(ops: Any, op: str) -> None:
    matrix, right, l2 = np.ones((3, 2)), np.ones((3, 1)), np.float64(0)
    what = (
        "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger "
        "l2_regularizer > 0."
    )
    refused(ops, what, op, [matrix, right, l2])
    refused(ops, what, op, [matrix.T, right[:2], l2])
    assert np.isfinite(ops.run(op, [matrix, right, l2], fast=False)).all()
    refused(ops, "l2_regularizer must be scalar, got shape [1]", op, [matrix, right, np.zeros(1)])
    refused(ops, "l2_regularizer must be >= 0.", op, [matrix, right, np.float64(-0.5)])
    refused(ops, "Input matrix and rhs are incompatible: [3,2] vs. [2,1]", op, [matrix, right[:2], l2])
    refused(ops, "Input batches do not match: [1,3,2] vs. [3,1]", op, [matrix[None], right, l2])
    refused(ops, "Input tensor 1 must have rank >= 2, got shape [3]", op, [matrix, right[:, 0], l2])
    refused(ops, "Input tensor 0 must have rank >= 2, got shape [2]", op, [matrix[0], right, l2])
    both = np.stack([np.eye(2), np.full((2, 2), NAN)])
    found = ops.run(op, [both, np.ones((2, 2, 1)), l2], fast=False)
    np.testing.assert_allclose(found[0], 1)
    assert np.isnan(found[1]).all()
    plain = bare(op, (dtypes.float64, dtypes.float64, dtypes.float64), (dtypes.float64,))
    with pytest.raises(errors.InvalidArgumentError):  # the fast way is the default
        plain(matrix, right, l2)


# -- decompositions


@pytest.mark.parametrize("dtype", WITH_HALF)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(4, 2), (3, 3), (2, 4), (2, 4, 2)])
def test_qr(ops: Any, dtype: Any, full: bool, shape: tuple[int, ...]) -> None:
    x, (rows, columns) = sample(dtype, *shape), shape[-2:]

    q, r = ops.run("Qr", [x], full_matrices=full)

    inner = rows if full else min(rows, columns)
    assert (q.shape, r.shape) == ((*shape[:-1], inner), (*shape[:-2], inner, columns))
    same((wide(q) @ wide(r)).astype(dtype), wide(x), dtype)
    same((adjoint(wide(q)) @ wide(q)).astype(dtype), np.broadcast_to(np.eye(inner), (*shape[:-2], inner, inner)), dtype)
    assert r.dtype == dtype
    assert (np.tril(r, -1) == 0).all()


@pytest.mark.parametrize("wrong", [np.inf, NAN])
def test_qr_of_what_is_not_finite(ops: Any, wrong: float) -> None:
    x = np.stack([np.eye(3, 2), np.full((3, 2), wrong)])

    q, r = ops.run("Qr", [x])

    np.testing.assert_allclose(np.abs(q[0]), np.eye(3, 2), atol=1e-12)
    np.testing.assert_allclose(np.abs(r[0]), np.eye(2), atol=1e-12)
    assert np.isnan(q[1]).all()
    assert not np.isfinite(r[1][np.triu_indices(2)]).any()
    assert r[1, 1, 0] == 0


def test_qr_leaves_the_thin_form_to_its_default() -> None:
    plain = bare("Qr", (dtypes.float64,), (dtypes.float64, dtypes.float64))
    assert [each.shape for each in plain(np.ones((3, 2)))] == [(3, 2), (2, 2)]


@pytest.mark.parametrize(("op", "dtype"), cases("Svd", "BatchSvd"))
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 3)])
def test_singular_values(ops: Any, op: str, dtype: Any, full: bool, shape: tuple[int, ...]) -> None:
    x, (rows, columns) = sample(dtype, *shape), shape[-2:]
    least = min(rows, columns)

    values, u, v = ops.run(op, [x], full_matrices=full)

    same(values, np.linalg.svd(wide(x), compute_uv=False), dtype)
    assert u.shape == (*shape[:-2], rows, rows if full else least)
    assert v.shape == (*shape[:-2], columns, columns if full else least)
    made = (wide(u)[..., :least] * wide(values)[..., None, :]) @ adjoint(wide(v)[..., :least])
    same(made.astype(dtype), wide(x), dtype)
    assert u.dtype == v.dtype == dtype
    only, *rest = ops.run(op, [x], compute_uv=False)
    same(only, wide(values), dtype)
    assert [(each.shape, each.dtype) for each in rest] == [((0,), dtype)] * 2


@pytest.mark.parametrize("op", ["Svd", "BatchSvd"])
def test_singular_values_of_what_is_not_finite(ops: Any, op: str) -> None:
    x = np.stack([np.diag([2.0, 1]), np.array([[1.0, NAN], [0, 1]])])

    for compute_uv in (False, True):
        values, *rest = ops.run(op, [x], compute_uv=compute_uv)
        np.testing.assert_allclose(values[0], [2, 1])
        for each in (values, *(rest if compute_uv else ())):
            assert np.isnan(each[1]).all()
            assert np.isfinite(each[0]).all()
    plain = bare(op, (dtypes.float64,), (dtypes.float64,) * 3)
    assert [each.shape for each in plain(np.ones((3, 2)))] == [(2,), (3, 2), (2, 2)]


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        *((op, dtype) for op in ("SelfAdjointEigV2", "BatchSelfAdjointEigV2") for dtype in DTYPES),
        *((op, dtype) for op in ("SelfAdjointEig", "BatchSelfAdjointEig") for dtype in DTYPES[:2]),
    ],
)
def test_eigenvalues_of_self_adjoint_matrices(ops: Any, op: str, dtype: Any) -> None:
    x = sample(dtype, 2, 3, 3)
    low = np.tril(x, -1) + np.triu(np.full((3, 3), NAN), 1)
    whole = np.tril(wide(x), -1) + adjoint(np.tril(wide(x), -1)) + np.diag([1, 2, 4])
    given = (low + np.diag([1, 2, 4])).astype(dtype)
    expected = np.linalg.eigvalsh(whole)

    found = ops.run(op, [given])

    if op.endswith("V2"):
        values, vectors = found
        only, nothing = ops.run(op, [given], compute_v=False)
        same(only, expected, dtype)
        assert (nothing.shape, nothing.dtype) == ((0,), dtype)
        plain = bare(op, (dtypes.as_dtype(dtype),), (dtypes.as_dtype(dtype),) * 2)
        assert plain(given)[1].shape == (2, 3, 3)
    else:
        values, vectors = found[:, 0], found[:, 1:]
        assert found.shape == (2, 4, 3)
    same(values, expected, dtype)
    same((whole @ wide(vectors)).astype(dtype), wide(vectors) * expected[:, None, :], dtype)
    what = "Self-adjoint eigen decomposition was not successful. The input might not be valid."
    given[1, 2, 0] = NAN
    refused(ops, what, op, [given])


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues(ops: Any, dtype: Any) -> None:
    out = dtypes.complex64 if dtype in (np.float32, np.complex64) else dtypes.complex128
    x = sample(dtype, 2, 3, 3)

    values, vectors = ops.run("Eig", [x], Tout=out)

    expected = np.linalg.eigvals(wide(x))
    kind = out.as_numpy_dtype
    same(np.sort_complex(values), np.sort_complex(expected).astype(kind), kind)
    same((wide(x) @ wide(vectors)).astype(kind), wide(vectors) * wide(values)[:, None, :], kind)
    only, nothing = ops.run("Eig", [x], Tout=out, compute_v=False)
    same(np.sort_complex(only), np.sort_complex(expected).astype(kind), kind)
    assert (nothing.shape, nothing.dtype) == ((0,), kind)
    plain = bare("Eig", (dtypes.as_dtype(dtype),), (out, out))
    assert plain(x)[1].shape == (2, 3, 3)
    x[0, 0, 2] = NAN
    what = "Eigen decomposition was not successful. The input might not be valid."
    refused(ops, what, "Eig", [x], Tout=out)


@pytest.mark.parametrize(("op", "dtype"), cases("Cholesky", "BatchCholesky"))
def test_cholesky_reads_the_lower_triangle(ops: Any, op: str, dtype: Any) -> None:
    factor = np.tril(sample(dtype, 2, 3, 3, diagonal=2))
    n = np.arange(3)
    factor[..., n, n] = np.abs(factor[..., n, n])
    whole = (wide(factor) @ adjoint(wide(factor))).astype(dtype)
    given = np.tril(whole)

    same(ops.run(op, [given]), np.linalg.cholesky(wide(np.tril(whole) + adjoint(np.tril(whole, -1)))), dtype)
    what = "Cholesky decomposition was not successful. The input might not be valid."
    refused(ops, what, op, [-whole])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", ["CholeskyGrad", "BatchCholeskyGrad"])
def test_gradients_of_cholesky(ops: Any, op: str, dtype: Any) -> None:
    """By differences: along a symmetric step the factor moves by so much."""
    factor = np.tril(sample(np.float64, 2, 3, 3)) + 2 * np.eye(3)
    weights = sample(np.float64, 2, 3, 3)
    matrix, step = factor @ adjoint(factor), sample(np.float64, 2, 3, 3)
    step = 1e-6 * (step + adjoint(step))
    moved = np.linalg.cholesky(matrix + step) - np.linalg.cholesky(matrix - step)

    found = ops.run(op, [(factor + np.triu(np.full((3, 3), 7.0), 1)).astype(dtype), weights.astype(dtype)])

    assert found.dtype == dtype
    same(found, adjoint(found), dtype)
    expected = (np.tril(weights) * moved).sum((-2, -1)) / 2
    np.testing.assert_allclose((found * step).sum((-2, -1)), expected, rtol=2e-3)


@pytest.mark.parametrize("op", ["CholeskyGrad", "BatchCholeskyGrad"])
def test_what_gradients_of_cholesky_refuse(ops: Any, op: str) -> None:
    text = "Inputs must have the same shape: input 0 has shape [2,2], input 1 has shape [1,2,2]"
    refused(ops, text, op, [np.eye(2), np.eye(2)[None]])
    refused(ops, "Input is not invertible.", op, [np.zeros((2, 2)), np.eye(2)])
    refused(ops, "Input matrix must be square, got shape [2,3]", op, [np.zeros((2, 3)), np.zeros((2, 3))])


@pytest.mark.parametrize(("op", "dtype"), cases("MatrixInverse", "BatchMatrixInverse"))
@pytest.mark.parametrize("turned", [False, True])
def test_inverses(ops: Any, op: str, dtype: Any, turned: bool) -> None:
    x = sample(dtype, 2, 3, 3, diagonal=3)

    expected = np.linalg.inv(wide(x))
    same(ops.run(op, [x], adjoint=turned), adjoint(expected) if turned else expected, dtype)
    refused(ops, "Input is not invertible.", op, [np.ones((2, 2), dtype)])
    plain = bare(op, (dtypes.as_dtype(dtype),), (dtypes.as_dtype(dtype),))
    assert plain(np.array([[1, 2], [0, 1]], dtype)).tolist() == [[1, -2], [0, 1]]


def test_which_op_has_no_kernel_and_why() -> None:
    found = registry.absence("MatrixExponential", "CPU")
    assert found is not None
    assert found.why == "deprecated: clients compute it from other ops"
