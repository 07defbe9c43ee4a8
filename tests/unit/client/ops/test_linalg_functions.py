"""Functions of matrices and tridiagonal systems by `tf.linalg`, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error

RNG = np.random.default_rng(12)


@pytest.mark.parametrize("size", [0.01, 0.2, 1.0, 30.0])
def test_exp_of_a_matrix_with_these_eigenvalues(size: float) -> None:
    vectors, values = RNG.standard_normal((2, 3, 3)) + 2 * np.eye(3), size * RNG.standard_normal((2, 3))
    made = [vectors @ (v[..., None] * np.linalg.inv(vectors)) for v in (values, np.exp(values))]

    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.linalg.expm(made[0]))
        with pytest.raises(ValueError, match="does not support matrices"):
            tf.linalg.expm([[1]])

    np.testing.assert_allclose(found, made[1], rtol=1e-6, atol=1e-9 * np.abs(made[1]).max())


def test_roots_logarithms_and_factors() -> None:
    x = RNG.standard_normal((4, 4)) / 4 + np.eye(4)
    with tf.Graph().as_default(), tf.Session() as session:
        root, logarithm = tf.linalg.sqrtm(x), tf.linalg.logm(x.astype(complex))
        again = [tf.matmul(root, root), tf.linalg.expm(logarithm)]
        factors, rows = session.run(tf.linalg.lu(x))
        for found in session.run(again):
            np.testing.assert_allclose(found, x, rtol=1e-8, atol=1e-8)

    np.testing.assert_allclose((np.tril(factors, -1) + np.eye(4)) @ np.triu(factors), x[rows], atol=1e-10)


@pytest.mark.parametrize("form", ["compact", "sequence", "matrix"])
def test_diagonals_are_given_in_three_forms(form: str) -> None:
    matrix = np.diag([4.0, 5, 6]) + np.diag([1.0, 2], 1) + np.diag([3.0, 1], -1)
    compact = np.array([[1.0, 2, 0], [4, 5, 6], [0, 3, 1]])
    given: Any = {"compact": compact, "sequence": [compact[0, :2], compact[1], compact[2, 1:]], "matrix": matrix}[form]
    right = RNG.standard_normal((3, 2))
    with tf.Graph().as_default(), tf.Session() as session:
        solved = tf.linalg.tridiagonal_solve(given, right, form)
        turned = tf.linalg.tridiagonal_solve(given, right.T, form, transpose_rhs=True)
        vector = tf.linalg.tridiagonal_solve(given, right[:, 0], form, partial_pivoting=False)
        product = tf.linalg.tridiagonal_matmul(
            [compact[i] for i in range(3)] if form == "sequence" else given, right, form
        )
        found = session.run([solved, turned, vector, product])
        with pytest.raises(ValueError, match="Unrecognized diagonals_format: best"):
            tf.linalg.tridiagonal_solve(compact, right, "best")
        with pytest.raises(ValueError, match="Expected number of left-hand sided"):
            tf.linalg.tridiagonal_solve(compact, right[:2])

    expected = np.linalg.solve(matrix, right)
    for each, wanted in zip(found, (expected, expected.T, expected[:, 0], matrix @ right), strict=True):
        np.testing.assert_allclose(each, wanted, rtol=1e-9)


def test_gradients() -> None:
    diagonals, right = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((2, 4, 3))
    diagonals[:, 1] += 5
    diagonals[:, 0, -1] = diagonals[:, 2, 0] = 0

    def inner(x: Any) -> Any:
        # what counts for nothing stays nothing
        mask = np.ones((3, 4))
        mask[0, -1] = mask[2, 0] = 0
        return x * tf.constant(mask)

    matrix = RNG.standard_normal((2, 3, 3)) / 4 + np.eye(3)
    for build, inputs in (
        (lambda d, r: tf.linalg.tridiagonal_solve(inner(d), r), [diagonals, right]),
        (lambda d, r: tf.linalg.tridiagonal_matmul(inner(d), r), [diagonals, right]),
        (tf.linalg.sqrtm, [matrix]),
        (tf.linalg.expm, [matrix]),
    ):
        assert directional_error(build, inputs) < 1e-4
