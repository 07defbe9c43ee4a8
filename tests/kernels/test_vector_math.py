"""The functions of fusion/vector_math.py against NumPy's in double precision, over the whole of float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pytest

from tenfold_kernels.fusion import vector_math

if TYPE_CHECKING:
    from collections.abc import Callable


def _sigmoid(x: Any) -> Any:
    """The kernel's formula, in which e⁻ˣ is infinite where float32 ends."""
    power = np.exp(-x)
    return np.where(power > np.finfo(np.float32).max, 0, 1 / (power + 1))


#: Name → the exact function, and how many units in the last place it may be missed by. NumPy's own functions for
#: float32 are promised to 4; these are closer, and stay so.
FUNCTIONS: dict[str, tuple[Callable[..., Any], float]] = {
    "exp_single": (np.exp, 1.25),
    "log_single": (np.log, 1.25),
    "log1p_single": (np.log1p, 1.75),
    "tanh_single": (np.tanh, 1.5),
    "sigmoid_single": (_sigmoid, 2.5),
}


def every_kind() -> Any:
    """Every 4,099th bit pattern of float32, and those around where something changes."""
    patterns = np.arange(0, 1 << 32, 4099, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = np.float32([0, 1, 0.5, 2, np.sqrt(2), np.sqrt(0.5), 0.625, 88.72284, -87.33655, -103.97, 1.1754944e-38, -1])
    near = [edges, *(np.nextafter(edges, np.float32(to), dtype=np.float32) for to in (np.inf, -np.inf))]
    special = np.float32([np.nan, np.inf, -np.inf, -0.0, 1e-45, -1e-45, 3.4028235e38, -3.4028235e38])
    middle = np.linspace(-20, 20, 100_001, dtype=np.float32)
    return np.concatenate([patterns, *near, special, middle])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_the_function_to_a_few_last_places(name: str) -> None:
    function = getattr(vector_math, name)
    exactly, ulps = FUNCTIONS[name]

    @numba.njit
    def run(x, y):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            y[i] = function(x[i])

    x = every_kind()
    y = np.empty_like(x)
    run(x, y)
    with np.errstate(all="ignore"):
        exact = exactly(x.astype(np.float64))
        rounded = exact.astype(np.float32)
        np.testing.assert_array_equal(np.isnan(y), np.isnan(rounded))
        is_finite = np.isfinite(rounded) & np.isfinite(y)
        # one that rounds to infinity may stand just below it, and the other way round
        apart = ~is_finite & ~np.isnan(y) & (y != rounded)
        assert np.all(np.abs(exact[apart]) > 3.4028e38)
        distance = np.abs(y[is_finite] - exact[is_finite]) / np.spacing(np.abs(rounded[is_finite]))
    worst = np.argmax(distance)
    assert distance[worst] <= ulps, f"{name}({x[is_finite][worst]!r}) = {y[is_finite][worst]!r}, {distance[worst]} ulps"


def test_only_float32_has_them() -> None:
    @numba.njit
    def run(x):  # type: ignore[no-untyped-def]
        return vector_math.exp_single(x)

    with pytest.raises(numba.TypingError):
        run(1.0)
