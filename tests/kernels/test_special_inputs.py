"""Special functions of all shapes and types: how inputs broadcast, what is rounded to, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels import registry
from tenfold_kernels.cpu import special

FLOATS = (np.float16, np.float32, np.float64)
EULER = 0.57721566490153286
#: Op → inputs, and what they give.
VALUES: dict[str, tuple[tuple[float, ...], float]] = {
    "BesselI0": ((0.0,), 1.0),
    "BesselI0e": ((1.0,), 1.2660658777520084 / math.e),
    "BesselI1": ((1.0,), 0.5651591039924851),
    "BesselI1e": ((1.0,), 0.5651591039924851 / math.e),
    "Digamma": ((2.0,), 1 - EULER),
    "Erfinv": ((0.5,), 0.4769362762044699),
    "Ndtri": ((0.75,), 0.6744897501960817),
    "Igamma": ((2.0, 1.0), 1 - 2 / math.e),
    "Igammac": ((2.0, 1.0), 2 / math.e),
    "IgammaGradA": ((1.0, 0.0), 0.0),
    "Zeta": ((2.0, 2.0), math.pi**2 / 6 - 1),
    "Polygamma": ((1.0, 2.0), math.pi**2 / 6 - 1),
    "Betainc": ((1.0, 2.0, 0.5), 0.75),
}


@pytest.mark.parametrize(
    ("op", "dtype"), [(op, dtype) for op, (x, _) in VALUES.items() for dtype in (FLOATS if len(x) == 1 else FLOATS[1:])]
)
def test_each_function_in_each_type(ops: Any, op: str, dtype: Any) -> None:
    inputs, expected = VALUES[op]
    tolerance = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-12}[dtype]

    for shape in ((), (3,), (2, 2), (0, 2)):
        found = ops.run(op, [np.full(shape, value, dtype) for value in inputs])
        np.testing.assert_allclose(found, np.full(shape, expected), rtol=tolerance, atol=tolerance)
        assert (found.shape, found.dtype) == (shape, dtype)
    turned = ops.run(op, [np.broadcast_to(np.array(value, dtype), (2, 3)).T for value in inputs])
    assert turned.shape == (3, 2)


def test_two_inputs_broadcast(ops: Any) -> None:
    a, x = np.float64([[1], [2]]), np.float64([0.5, 1, 3])

    found = ops.run("Igamma", [a, x])

    expected = [[1 - math.exp(-v) for v in x], [1 - (1 + v) * math.exp(-v) for v in x]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run("Zeta", [np.ones((2, 3)), np.ones(2)])
    assert refused.value.message == "Incompatible shapes: [2,3] vs. [2]"


def test_of_three_inputs_scalars_repeat_and_nothing_else(ops: Any) -> None:
    one, x = np.array(1.0), np.float64([[0.25, 0.5, 1]])
    assert ops.run("Betainc", [one, one, x]).tolist() == x.tolist()
    np.testing.assert_allclose(ops.run("Betainc", [one, np.full((1, 3), 2.0), x]), [[0.4375, 0.75, 1]], rtol=1e-12)
    np.testing.assert_allclose(ops.run("Betainc", [np.full((1, 3), 2.0), one, x[0, 1]]), [[0.25] * 3], rtol=1e-12)
    assert ops.run("Betainc", [one, one, x[0, 1]]).tolist() == 0.5
    for a, b in ((x[0], one), (one, np.ones(1)), (np.ones((3, 1)), one)):
        with pytest.raises(errors.InvalidArgumentError, match=r"^Shapes of a, b and x are inconsistent: "):
            ops.run("Betainc", [a, b, x])
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run("Betainc", [x[0], one, x])
    assert refused.value.message == "Shapes of a, b and x are inconsistent: [3], [], [1,3]"


def test_the_error_function_for_kernels_that_fuse_it() -> None:
    for dtype in FLOATS:
        x = np.array([[-1, 0, 0.5], [2, 9, -9]], dtype)
        found = special.erf(x)
        np.testing.assert_allclose(found, np.vectorize(math.erf)(x), rtol=1e-3 if dtype is np.float16 else 1e-6)
        assert found.dtype == dtype


@pytest.mark.parametrize("dtype", [*FLOATS, np.complex64, np.complex128])
def test_a_logarithm_times_nothing_is_nothing(ops: Any, dtype: Any) -> None:
    x, y = np.array([[0, 2, 0, 1]], dtype), np.array([[-1], [1]], dtype)

    with np.errstate(all="ignore"):
        found = ops.run("Xlog1py", [x, y])

    assert found.dtype == dtype
    assert found[0, [0, 2]].tolist() == [0, 0]
    assert not np.isfinite(found[0, [1, 3]]).any()
    np.testing.assert_allclose(found[1], [0, 2 * math.log(2), 0, math.log(2)], rtol=1e-3)
    assert ops.run("Xlog1py", [x[0, 1], y[1, 0]]).shape == ()
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run("Xlog1py", [np.ones((2, 3), dtype), np.ones(2, dtype)])
    assert refused.value.message == "Incompatible shapes: [2,3] vs. [2]"


@pytest.mark.parametrize(
    "op",
    ["BesselJ0", "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Dawsn",
     "Expint", "FresnelCos", "FresnelSin", "Spence"],
)  # fmt: skip
def test_which_functions_have_no_kernel_and_why(op: str) -> None:
    found = registry.absence(op, "CPU")
    assert found is not None
    assert found.why == "no program of the op census uses it"
