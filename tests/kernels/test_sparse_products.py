"""Large products with a sparse matrix, which several threads share: each way of sharing gives the product.

Small ones and their errors: test_sparse.py; loops whose indices others change meanwhile: test_loops_and_writers.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels import chunks
from tenfold_kernels.cpu import _sparse_products
from tenfold_kernels.registry import KernelNode, lookup
from tenfold_kernels.resources.state import ResourceManager

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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.int16])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_ways_to_share_give_what_one_thread_gives(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, index: Any, width: int
) -> None:
    """However many columns there are; types without a loop of their own are NumPy's."""
    types = dtypes.as_dtype(dtype), dtypes.as_dtype(index)
    multiply = _sparse_products.multiplier(*types)
    monkeypatch.setattr(_sparse_products, "_SHARED", 64)
    monkeypatch.setattr(chunks, "width", lambda: width)
    monkeypatch.setattr(chunks, "is_crowded", lambda: False)
    draw, wide = np.random.default_rng(2), _sparse_products.wide_type(dtype)
    places = np.stack([np.sort(draw.integers(0, 30, 200)), draw.integers(0, 8, 200)], 1).astype(index)
    values = draw.integers(-3, 4, 200).astype(wide)
    for columns in (1, 4, 15, 16, 31, 32, 33, 70):
        for row_at, rows, inner in ((0, 30, 8), (1, 8, 30)):
            dense = draw.integers(-3, 4, (inner, columns)).astype(wide)
            out, expected = np.full((rows, columns), 77, wide), np.zeros((rows, columns), wide)
            for at, value in zip(places.tolist(), values, strict=True):
                expected[at[row_at]] += value * dense[at[1 - row_at]]
            assert multiply(places, values, dense, row_at, out) == -1
            np.testing.assert_array_equal(out, expected)
            for bad in (0, 7, 199):
                wrong = places.copy()
                wrong[bad, bad % 2] = 30
                assert multiply(wrong, values, dense, row_at, out) == bad


def test_little_and_crowded_products_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[str] = []
    ways = {name: getattr(_sparse_products, name) for name in ("_by_rows", "_by_entries", "_by_columns")}
    for name, way in ways.items():
        monkeypatch.setattr(_sparse_products, name, lambda *given, n=name, w=way: (shared.append(n), w(*given))[1])
    state = {"width": 2, "crowded": False}
    monkeypatch.setattr(chunks, "width", lambda: state["width"])
    monkeypatch.setattr(chunks, "is_crowded", lambda: state["crowded"])
    multiply = _sparse_products.multiplier(dtypes.float32, dtypes.int64)

    def ways_of(entries: int, columns: int, row_at: int = 0, ordered: bool = True) -> list[str]:
        monkeypatch.setattr(_sparse_products, "_SHARED", 400)
        shared.clear()
        at = np.arange(entries) * 10 // entries
        places = np.stack([at if ordered else at[::-1], at % 3], 1)
        values, rows = np.ones(entries, np.float32), 10 if row_at == 0 else 3
        inner = 3 if row_at == 0 else 10
        out = np.empty((rows, columns), np.float32)
        assert multiply(places, values, np.ones((inner, columns), np.float32), row_at, out) == -1
        assert out.sum() == entries * columns
        return shared[:]

    assert ways_of(100, 4) == ["_by_rows"]
    assert ways_of(100, 1) == ["_by_rows"], "an entry counts as four multiplications"
    assert ways_of(99, 4) == ways_of(99, 1) == []
    assert ways_of(100, 5) == ways_of(80, 5) == ["_by_rows"]
    assert ways_of(79, 5) == []
    assert ways_of(100, 4, ordered=False) == []
    assert ways_of(100, 31, ordered=False) == []
    assert ways_of(100, 32, ordered=False) == ["_by_columns"]
    assert ways_of(200, 4, row_at=1) == ["_by_entries"]
    assert ways_of(193, 4, row_at=1) == ["_by_entries"]
    assert ways_of(192, 4, row_at=1) == [], "16 for each element of the result"
    assert ways_of(100, 40, row_at=1) == ["_by_columns"]
    state["crowded"] = True
    assert ways_of(100, 4) == ways_of(100, 40) == ways_of(100, 40, row_at=1) == []
    assert ways_of(200, 4, row_at=1) == ["_by_entries"], "as the numbers must not depend on who is free"
    state["crowded"], state["width"] = False, 1
    assert ways_of(100, 4) == ways_of(100, 40, row_at=1) == ways_of(200, 4, row_at=1) == []


def test_rows_that_somebody_changes_meanwhile_are_noticed() -> None:
    """The parts were made of what the indices were before."""
    given: list[Any] = []

    def alone(indices: Any, values: Any, dense: Any, row_at: int, base: int, out: Any) -> int:
        given.append((indices.tolist(), values.tolist(), row_at, base, out.shape))
        return -1

    indices, values, out = np.array([[0, 0], [1, 0], [2, 0]]), np.array([5, 6, 7]), np.zeros((3, 1))
    whole = [(0, 2, 0, 2), (2, 2, 2, 2), (2, 3, 2, 3)]

    assert _sparse_products._by_rows(alone, whole, indices, values, out, 0, out) == -1
    assert sorted(given) == [([[0, 0], [1, 0]], [5, 6], 0, 0, (2, 1)), ([[2, 0]], [7], 0, 2, (1, 1))]
    assert _sparse_products._by_rows(alone, [(0, 2, 0, 2), (2, 3, 2, 2)], indices, values, out, 0, out) == 2
    assert _sparse_products._by_rows(alone, [(0, 1, 2, 2), (1, 1, 2, 2)], indices, values, out, 0, out) == 0


@pytest.mark.parametrize("bad", [0, 5, 15, 16, 99])
def test_the_first_bad_entry_of_all_parts_is_told(bad: int) -> None:
    """Eight parts of thirteen entries or twelve; what is added to a bad one's part does not count."""

    def alone(indices: Any, values: Any, dense: Any, row_at: int, base: int, out: Any) -> int:
        out.fill(0)
        wrong = np.flatnonzero(indices[:, 0] < 0)
        out[0, 0] = values.sum()
        return int(wrong[0]) if wrong.size else -1

    indices, values, out = np.zeros((100, 2), int), np.arange(100), np.full((1, 1), 7)
    assert _sparse_products._by_entries(alone, indices, values, out, 1, out) == -1
    assert out.tolist() == [[4950]]
    indices[bad:, 0] = -1
    assert _sparse_products._by_entries(alone, indices, values, out, 1, out) == bad


def row_products(dtype: Any, left: Any, right: Any, **attrs: Any) -> Any:
    """The compute of the node that the optimizer makes of a sum over the product of two gathers."""
    types = dtype, dtypes.as_dtype(left), dtype, dtypes.as_dtype(right), dtypes.int32
    node = KernelNode("n", "Sum", {"T": dtype, **attrs}, types, (dtype,), "/device:CPU:0", ResourceManager())
    return lookup(node, "CPU")(node)


@pytest.mark.parametrize("index", [(np.int32, np.int32), (np.int64, np.int32), (np.int64, np.int64)])
@pytest.mark.parametrize("shared", [1, 1 << 19])
def test_products_of_rows_are_summed_by_entries(index: Any, shared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sparse_products, "_SHARED", shared)
    monkeypatch.setattr(chunks, "width", lambda: 2)
    draw = np.random.default_rng(4)
    left, right = (draw.integers(-4, 5, (rows, 6)).astype(np.float32) for rows in (3, 7))
    at, other = draw.integers(0, 3, 40).astype(index[0]), draw.integers(0, 7, 40).astype(index[1])
    for keep in (False, True):
        compute = row_products(dtypes.float32, *index, keep_dims=keep)
        for axes in ([1], [-1], [0], [0, 1], [-2, -1], []):
            found = compute(left, at, right, other, np.int32(axes))
            np.testing.assert_array_equal(found, (left[at] * right[other]).sum(tuple(axes), keepdims=keep))
            assert found.dtype == np.float32
    plain = row_products(dtypes.float32, *index)
    np.testing.assert_array_equal(plain(left[:, ::-1], at[::2], right[:, ::-1], other[1::2], np.int32(1)),
                                  (left[at[::2]] * right[other[1::2]]).sum(1))  # fmt: skip


@pytest.mark.parametrize(
    ("left", "at", "right", "other", "axes"),
    [
        ((3, 4), [0, 2], (5, 1), [1, 4], [1]),
        ((3, 4), [0, 2], (5, 4), [1], [1]),
        ((3, 4), [2], (5, 4), [1, 4, 0], [1]),
        ((3, 4), [[0, 2], [1, 1]], (5, 4), [[1, 4], [0, 0]], [1]),
        ((3, 4), [[0, 2], [1, 1]], (5, 4), [1, 4], [1]),
        ((3, 4), [0, 2], (5, 4), [[1, 4]], [1]),
        ((3, 4, 2), [0, 2], (5, 4, 2), [1, 4], [1]),
        ((3, 4, 2), [0, 2, 1, 1], (5, 2), [1, 4, 0, 0], [-1]),
        ((3,), [0, 2], (5,), [1, 4], [0]),
        ((3, 4), [0, 2], (5,), [1, 4, 0, 0], [1]),
        ((3, 0), [0, 2], (5, 0), [1, 4], [1]),
        ((3, 4), [], (5, 4), [], [1]),
        ((0, 4), [], (5, 4), [], [1]),
        ((3, 4), [], (0, 4), [], [1]),
        ((3, 4), 1, (5, 4), 2, [0]),
        ((3, 4), [0, 2], (5, 4), [1, 4], [[1]]),
    ],
)
def test_other_shapes_are_multiplied_in_steps(left: Any, at: Any, right: Any, other: Any, axes: Any) -> None:
    draw = np.random.default_rng(4)
    x, y = draw.integers(-4, 5, left).astype(np.float32), draw.integers(-4, 5, right).astype(np.float32)
    i, j = np.array(at, np.int32), np.array(other, np.int32)

    found = row_products(dtypes.float32, np.int32, np.int32)(x, i, y, j, np.array(axes, np.int32))

    np.testing.assert_array_equal(found, (x[i] * y[j]).sum(tuple(np.array(axes).reshape(-1))))


@pytest.mark.parametrize(
    ("left", "at", "right", "other", "text"),
    [
        ((), [0], (5, 4), [1], "params must be at least 1 dimensional"),
        ((3, 4), [0], (), [1], "params must be at least 1 dimensional"),
        ((3, 4), [0, 1], (5, 4), [1, 2, 3], "Incompatible shapes: [2,4] vs. [3,4]"),
        ((3, 4), [0, 3], (5, 4), [1, 2], "indices[1] = 3 is not in [0, 3)"),
        ((3, 4), [3, 0], (5, 4), [1, 2], "indices[0] = 3 is not in [0, 3)"),
        ((3, 4), [0, 1], (5, 4), [-1, 2], "indices[0] = -1 is not in [0, 5)"),
        ((3, 4), [0, 1], (5, 4), [1, 5], "indices[1] = 5 is not in [0, 5)"),
    ],
)
def test_what_are_no_rows(left: Any, at: Any, right: Any, other: Any, text: str) -> None:
    compute = row_products(dtypes.float32, np.int32, np.int32)

    with pytest.raises(errors.InvalidArgumentError) as refused:
        compute(np.ones(left, np.float32), np.int32(at), np.ones(right, np.float32), np.int32(other), np.int32([1]))
    assert refused.value.message == text
