"""Sums over neighbouring axes: how an array is seen, who adds it up, and that each way gives NumPy's sums."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_kernels.cpu import _sums


@pytest.mark.parametrize(
    ("shape", "axes", "view", "sums", "kept"),
    [
        ((10, 20), (1,), (10, 20), (10,), (10, 1)),
        ((10, 20), (0,), (1, 10, 20), (20,), (1, 20)),
        ((10, 20), (0, 1), (1, 200), (), (1, 1)),
        ((10, 20), (1, 0), (1, 200), (), (1, 1)),
        ((4, 5, 30), (1,), (4, 5, 30), (4, 30), (4, 1, 30)),
        ((4, 5, 30), (0, 1), (1, 20, 30), (30,), (1, 1, 30)),
        ((4, 5, 30), (1, 2), (4, 150), (4,), (4, 1, 1)),
        ((4, 5, 30), (2,), (20, 30), (4, 5), (4, 5, 1)),
        ((4, 1, 30), (0, 2), (1, 120), (1,), (1, 1, 1)),
        ((4, 5, 1), (0, 2), (1, 4, 5), None, None),
        ((4, 20, 1), (0, 2), (1, 4, 20), (20,), (1, 20, 1)),
        ((3, 1, 16), (0,), (1, 3, 16), (1, 16), (1, 1, 16)),
        ((2, 15), (1,), None, None, None),
        ((2, 16), (1,), (2, 16), (2,), (2, 1)),
        ((2, 15), (0,), None, None, None),
        ((2, 16), (0,), (1, 2, 16), (16,), (1, 16)),
        ((1, 16), (0,), None, None, None),
        ((16, 1), (1,), None, None, None),
        ((10, 20), (), None, None, None),
        ((4, 5, 30), (0, 2), None, None, None),
        ((4, 2, 3, 20), (0, 2), None, None, None),
        ((4, 16, 2), (0, 2), None, None, None),
        ((30, 5, 2), (0,), None, None, None),
        ((5, 16, 2), (0, 1), None, None, None),
    ],
)
def test_how_an_array_is_seen(shape: Any, axes: Any, view: Any, sums: Any, kept: Any) -> None:
    """As outer, added and inner elements, of which neither rows nor what is added is short; else NumPy adds up."""
    if sums is None:
        view = None
    assert _sums._plan(shape, axes, False) == (None if view is None else (view, sums))
    assert _sums._plan(shape, axes, True) == (None if view is None else (view, kept))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which loops ran; from sixteen elements on they do."""
    ran: list[str] = []
    loops = _sums._loops

    def watched(dtype: Any) -> Any:
        along, down, zero = loops(dtype)
        return (
            lambda *given: (ran.append("along"), along(*given)),
            lambda *given: (ran.append("down"), down(*given)),
            zero,
        )

    monkeypatch.setattr(_sums, "OWN_LEAST", 64)
    monkeypatch.setattr(_sums, "_loops", watched)
    return ran


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(64,), (4, 16), (2, 4, 16), (16, 2, 4), (3, 5, 20), (8, 8), (1, 64)])
def test_sums_are_numpys(seen: list[str], shape: tuple[int, ...], dtype: Any) -> None:
    x = np.random.default_rng(1).integers(-9, 10, shape).astype(dtype)
    for count in range(len(shape) + 1):
        for axes, keep in itertools.product(itertools.combinations(range(len(shape)), count), (False, True)):
            found = _sums.add_up(x, axes, keep)
            np.testing.assert_array_equal(found, x.sum(axes, keepdims=keep))
            assert (type(found), found.dtype) == (np.ndarray, dtype)
            assert not np.shares_memory(found, x)


def test_who_adds_up(seen: list[str]) -> None:
    x = np.arange(1.0, 129).reshape(8, 16)

    def ran(array: Any, axis: int) -> list[str]:
        seen.clear()
        np.testing.assert_array_equal(_sums.add_up(array, (axis,)), array.sum(axis))
        return seen[:]

    assert ran(x, 1) == ["along"]
    assert ran(x, 0) == ["down"]
    assert ran(x[:4], 1) == ["along"], "as many as pay"
    assert ran(x[:3], 1) == [], "one row less"
    assert ran(x.astype(np.float16), 1) == ran(x.astype(np.int64), 1) == ran(x.astype(np.complex64), 1) == []
    assert ran(x[:, ::-1], 1) == ran(np.asfortranarray(x), 1) == ran(np.tile(x, 2)[:, :16], 0) == []
    unaligned = np.zeros(8 * 128 + 1, np.uint8)[1:].view(np.float64).reshape(8, 16)
    unaligned[...] = x
    assert ran(unaligned, 1) == []
