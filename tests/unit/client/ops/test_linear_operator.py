"""LinearOperatorLowerTriangular against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf


def test_it_is_the_lower_triangle() -> None:
    rng = np.random.RandomState(0)
    given, x = rng.rand(2, 3, 3) + np.eye(3), rng.rand(2, 3, 4)
    lower = np.tril(given)
    with tf.Graph().as_default(), tf.Session() as session:
        operator = tf.linalg.LinearOperatorLowerTriangular(given)
        found = session.run(
            {
                "dense": operator.to_dense(),
                "matmul": operator.matmul(x),
                "matvec": operator.matvec(x[..., 0], adjoint=True),
                "solve": operator.solve(x),
                "solvevec": operator.solvevec(x[..., 0]),
                "trace": operator.trace(),
                "det": operator.determinant(),
                "log": operator.log_abs_determinant(),
                "sum": operator.add_to_tensor(given),
                "shape": operator.shape_tensor(),
            }
        )
        assert operator.shape.as_list() == [2, 3, 3]
        assert operator.dtype == tf.float64
    wanted = {
        "dense": lower,
        "matmul": lower @ x,
        "matvec": (lower.transpose(0, 2, 1) @ x[..., :1])[..., 0],
        "solve": np.linalg.solve(lower, x),
        "solvevec": np.linalg.solve(lower, x[..., :1])[..., 0],
        "trace": np.trace(given, axis1=1, axis2=2),
        "det": np.linalg.det(lower),
        "log": np.log(np.abs(np.linalg.det(lower))),
        "sum": lower + given,
        "shape": [2, 3, 3],
    }
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, err_msg=name)
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        tf.linalg.LinearOperatorLowerTriangular([1.0])
    with pytest.raises(ValueError, match="Only square"):
        tf.linalg.LinearOperatorLowerTriangular([[1.0]], is_square=False)
