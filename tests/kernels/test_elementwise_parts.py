"""Ops of one loop over many elements: in parts and alone they give the same bits, near what NumPy gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_kernels import chunks, denormals, parallel

if TYPE_CHECKING:
    from collections.abc import Iterator

F = np.float32
#: Units in the last place, as fused runs have it (test_fusion.py).
ULPS = 4
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 88.0, -88.0, -104.5, 100.0, -1000.0, 1000.0]


def values(seed: int, count: int = 300_001) -> Any:
    made = np.random.default_rng(seed).normal(scale=4, size=count).astype(F)
    made[: len(SPECIAL)] = SPECIAL
    return made


@pytest.fixture(params=[1, 2], ids=["alone", "two threads"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(parallel, "_width", lambda: request.param)
    monkeypatch.setattr(chunks, "is_crowded", lambda: False)
    return int(request.param)


@pytest.fixture(autouse=True)
def as_helpers_do() -> Iterator[None]:
    """Denormal numbers, such as the sigmoid of -88, are zero on this thread too, whichever computes a part."""
    flush, restore = denormals.mode
    before = flush()
    yield
    if before:
        restore(before)


def sigmoid(x: Any) -> Any:
    # the kernel's formula: e¹⁰⁰ is infinite
    return 1 / (np.exp(-x.astype(np.float64)).astype(F).astype(np.float64) + 1)


@pytest.mark.parametrize(("op", "function"), [("Sigmoid", sigmoid), ("Tanh", lambda x: np.tanh(x.astype(np.float64)))])
def test_functions_are_near_those_of_the_real_numbers(ops: Any, op: str, function: Any, parts: int) -> None:
    x = values(1)
    with np.errstate(all="ignore"):
        expected = function(x).astype(F)

    for given in (x, values(1, 600_002)[::2], x[:5000].reshape(50, 100).T):
        result = ops.run(op, [given])
        with np.errstate(all="ignore"):
            wanted = function(given).astype(F)
        assert (result.dtype, result.shape) == (F, given.shape)
        same = (result == wanted) | (np.isnan(result) & np.isnan(wanted))
        far = np.abs(result - wanted)[~same] / np.spacing(np.abs(wanted)[~same])
        assert far.max(initial=0) <= ULPS
    # element by element, whatever the parts and the size: small arrays are NumPy's
    np.testing.assert_array_equal(
        ops.run(op, [x]), np.concatenate([ops.run(op, [part]) for part in np.split(x, [70_000, 200_000])])
    )
    np.testing.assert_allclose(ops.run(op, [x[:100]]), expected[:100], rtol=ULPS * 1.2e-7, atol=1e-44)


def test_gradients_and_relu_are_the_formulas(ops: Any, parts: int) -> None:
    x, y, dy = values(1)[len(SPECIAL) :], values(2)[len(SPECIAL) :], values(3)[len(SPECIAL) :]

    np.testing.assert_array_equal(ops.run("Relu", [x]), np.maximum(x, 0))
    np.testing.assert_array_equal(ops.run("ReluGrad", [dy, x]), np.where(x > 0, dy, F(0)))
    np.testing.assert_array_equal(ops.run("SigmoidGrad", [y, dy]), dy * y * (1 - y))
