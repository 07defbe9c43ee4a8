"""Large products with a sparse matrix, which several threads share: each way of sharing gives the product.

Small ones and their errors: test_sparse.py; loops whose indices others change meanwhile: test_loops_and_writers.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels import chunks
from tenfold_kernels.cpu import _sparse_products

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, INNER, ENTRIES = 300, 40, 9_000


@pytest.fixture(params=[False, True], ids=["alone", "shared"])
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With three threads, of which none or all are free; what is worth a helper is small enough for a test."""
    monkeypatch.setattr(_sparse_products, "_SHARED", 1 << 10)
    monkeypatch.setattr(chunks, "width", lambda: 3)
    monkeypatch.setattr(chunks, "is_crowded", lambda: not request.param)
    return bool(request.param)


def in_order(places: Any) -> Any:
    return places


def by_column(places: Any) -> Any:
    return places[np.lexsort((places[:, 0], places[:, 1]))]


def in_the_last_rows(places: Any) -> Any:
    """All but one part is empty, and most of what is left belongs to one row."""
    rows = np.where(np.arange(len(places)) < 8_000, ROWS - 2, ROWS - 1)
    return np.stack([rows, places[:, 1]], 1)


def drawn(order: Callable[[Any], Any]) -> tuple[Any, Any]:
    draw = np.random.default_rng(11)
    places = np.stack([draw.integers(0, ROWS, ENTRIES), draw.integers(0, INNER, ENTRIES)], 1)
    places = order(places[np.lexsort((places[:, 1], places[:, 0]))])
    return places, draw.integers(-3, 4, ENTRIES).astype(np.float32)


@pytest.mark.parametrize("columns", [1, 3, 33, 64])
@pytest.mark.parametrize("turned", [False, True], ids=["plain", "turned"])
@pytest.mark.parametrize("order", [in_order, by_column, in_the_last_rows])
def test_the_product(ops: Any, shared: bool, order: Any, turned: bool, columns: int) -> None:
    """Of whole numbers, so that every order of adding up gives the same."""
    places, values = drawn(order)
    dense = np.random.default_rng(5).integers(-3, 4, (ROWS if turned else INNER, columns)).astype(np.float32)
    matrix = np.zeros((ROWS, INNER), np.float32)
    np.add.at(matrix, tuple(places.T), values)

    found = ops.run("SparseTensorDenseMatMul", [places, values, np.array([ROWS, INNER]), dense], adjoint_a=turned)

    np.testing.assert_array_equal(found, (matrix.T if turned else matrix) @ dense)


@pytest.mark.parametrize("turned", [False, True], ids=["plain", "turned"])
@pytest.mark.parametrize("columns", [1, 33])
@pytest.mark.parametrize(
    "place", [(ROWS, 0), (-1, 0), (0, INNER), (0, -1), (-(1 << 63), 0), (1 << 62, 1)], ids=lambda place: str(place)
)
def test_the_first_entry_outside_is_named(
    ops: Any, shared: bool, turned: bool, columns: int, place: tuple[int, int]
) -> None:
    places, values = drawn(in_order)
    places[[4_000, 7_000]] = place
    dense = np.ones((ROWS if turned else INNER, columns), np.float32)

    with pytest.raises(errors.InvalidArgumentError, match=r"^indices\[4000\] = .* is out of bounds"):
        ops.run("SparseTensorDenseMatMul", [places, values, np.array([ROWS, INNER]), dense], adjoint_a=turned)


def test_sums_do_not_depend_on_who_is_free(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """… to the last bit: shared by rows and turned, by entries."""
    monkeypatch.setattr(_sparse_products, "_SHARED", 1 << 10)
    monkeypatch.setattr(chunks, "width", lambda: 3)
    places, _ = drawn(in_order)
    values = np.random.default_rng(3).standard_normal(ENTRIES).astype(np.float32)
    for turned in (False, True):
        dense = np.random.default_rng(4).standard_normal((ROWS if turned else INNER, 5)).astype(np.float32)
        found = []
        for crowded in (False, True):
            monkeypatch.setattr(chunks, "is_crowded", lambda crowded=crowded: crowded)
            inputs = [places, values, np.array([ROWS, INNER]), dense]
            found.append(ops.run("SparseTensorDenseMatMul", inputs, adjoint_a=turned))
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([0, 0, 1, 1, 2, 3, 3, 3], [(0, 2, 0, 1), (2, 4, 1, 2), (4, 5, 2, 3), (5, 8, 3, 5)]),
        ([2] * 8, [(0, 0, 0, 2), (0, 0, 2, 2), (0, 0, 2, 2), (0, 8, 2, 5)]),
        ([3, 3, 2, 2, 1, 1, 0, 0], []),
        ([0, 0, 1, 1, 5, 5, 5, 5], []),
        ([0, 0, -1, -1, 2, 3, 3, 3], []),
    ],
)
def test_runs_of_rows(rows: list[int], expected: list[tuple[int, int, int, int]]) -> None:
    assert _sparse_products._runs(np.array(rows), 5, 4) == expected
