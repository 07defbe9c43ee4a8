"""Products of float32 by our own kernels: np.matmul's numbers for all sizes, layouts and edges, alone and in chunks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.counted_pool import CountedPool
from tenfold_kernels import chunks
from tenfold_kernels.cpu import _products
from tenfold_kernels.cpu._compiled import intrinsics

pytestmark = pytest.mark.skipif(not intrinsics.MULTIPLIES, reason="this processor's products are the BLAS's")

LANES = intrinsics.lanes(np.dtype(np.float32))
ROWS = intrinsics.PRODUCT_ROWS
BLOCK_ROWS = intrinsics.BLOCK_ROWS
#: An error of a sum, as a part of the sum of the absolute values: a few roundings.
TOLERANCE = 20 * np.finfo(np.float32).eps
LAYOUTS = ("plain", "transposed", "rows apart", "transposed, rows apart", "strided", "reversed")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "shared_pool", lambda *_: None)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> CountedPool:
    counted = CountedPool()
    monkeypatch.setattr(_products, "OWN_CHUNK", 1 << 10)
    monkeypatch.setattr(_products, "OWN_SHARED", 2 << 10)
    monkeypatch.setattr(chunks, "width", lambda: 2)
    monkeypatch.setattr(chunks, "shared_pool", lambda *_: counted)
    return counted


@pytest.fixture(autouse=True)
def no_numpy(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What went to np.matmul; its numbers are taken before."""
    given: list[Any] = []
    matmul = np.matmul

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

        def matmul(self, *arguments: Any, **named: Any) -> Any:
            given.append(arguments)
            return matmul(*arguments, **named)

    own = _products._own()
    assert own is not None
    assert own.chunk(), "loaded at once, as the test runner sets it"
    monkeypatch.setattr(_products, "np", Watched())
    monkeypatch.setattr(_products, "OWN_LEAST", 0)
    return given


def sample(rows: int, columns: int, layout: str, seed: int = 0) -> Any:
    choose = np.random.default_rng(1000 * rows + columns + seed)

    def made(*shape: int) -> Any:
        return choose.standard_normal(shape).astype(np.float32)

    match layout:
        case "plain":
            return made(rows, columns)
        case "transposed":
            return made(columns, rows).T
        case "rows apart":
            return made(rows, columns + 5)[:, 3 : 3 + columns]
        case "transposed, rows apart":
            return made(columns, rows + 5)[:, 3 : 3 + rows].T
        case "strided":
            return made(2 * rows, 3 * columns)[::2, ::3]
        case _:
            return made(rows, columns)[::-1, ::-1]


def check(a: Any, b: Any) -> None:
    """Compares with a product in double, and that nothing beside the output is written."""
    m, n = a.shape[0], b.shape[1]
    margin = 4 * LANES
    memory = np.full(m * n + 2 * margin, 7, np.float32)
    out = memory[margin : margin + m * n].reshape(m, n)

    assert _products.product(a, b, out) is out

    wide = a.astype(np.float64), b.astype(np.float64)
    bound = TOLERANCE * (np.abs(wide[0]) @ np.abs(wide[1]))
    assert (np.abs(out - wide[0] @ wide[1]) <= bound).all(), (a.shape, a.strides, b.shape, b.strides)
    assert (memory[:margin] == 7).all()
    assert (memory[margin + m * n :] == 7).all()
    np.testing.assert_array_equal(_products.product(a, b), out)


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_all_layouts_at_the_edges_of_tiles(left: str, right: str, alone: None, no_numpy: list[Any]) -> None:
    rows = (2, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 3)
    columns = (2, LANES - 1, LANES, LANES + 1, 2 * LANES, 2 * LANES + 1, 5 * LANES - 1)
    inner = (1, LANES, 2 * LANES + 3, 67)
    for m, n, k in itertools.product(rows, columns, inner):
        check(sample(m, k, left), sample(k, n, right, 1))
    assert not no_numpy


@pytest.mark.parametrize("layouts", list(itertools.product(("plain", "transposed"), repeat=2)))
@pytest.mark.parametrize("sizes", [(100, 600, 40), (97, 1100, 33), (20, 1100, 70), (200, 65, 20)])
def test_inner_sizes_beyond_a_panel(sizes: tuple[int, int, int], layouts: tuple[str, str], alone: None) -> None:
    m, k, n = sizes
    check(sample(m, k, layouts[0]), sample(k, n, layouts[1], 1))


@pytest.mark.parametrize("left", ["plain", "transposed", "transposed, rows apart"])
@pytest.mark.parametrize("m", [BLOCK_ROWS + 64, 2 * BLOCK_ROWS, 2 * BLOCK_ROWS + 1, 3 * BLOCK_ROWS + 5])
@pytest.mark.parametrize(("k", "n"), [(1, 64), (530, 64), (3, 131)])
def test_more_rows_than_a_block_has(m: int, k: int, n: int, left: str, alone: None) -> None:
    check(sample(m, k, left), sample(k, n, "plain", 1))


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("sizes", [(40, 30, 300), (300, 30, 40), (100, 70, 101)])
def test_chunks_are_the_same_numbers(left: str, right: str, sizes: tuple[int, int, int], pool: CountedPool) -> None:
    m, k, n = sizes
    check(sample(m, k, left), sample(k, n, right, 1))
    assert pool.jobs == 2


def test_nans_and_infinities_stay_in_their_rows(alone: None) -> None:
    for right in LAYOUTS:
        a, b = sample(30, 70, "plain"), sample(70, 45, right, 1)
        a[3, 5], a[9, 69] = np.nan, np.inf
        got = _products.product(a, b)
        assert np.isnan(got[3]).all()
        assert not np.isfinite(got[9]).any()
        assert np.isfinite(np.delete(got, (3, 9), axis=0)).all()


def test_a_read_only_operand_and_one_that_is_broadcast(alone: None, no_numpy: list[Any]) -> None:
    a, b = sample(30, 20, "plain"), sample(20, 40, "plain", 1)
    a.flags.writeable = False
    check(a, b)
    check(np.broadcast_to(a[:1], (30, 20)), b)
    check(a, np.broadcast_to(b[:, :1], (20, 40)))
    assert not no_numpy


@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 5, 6), (6, 5, 1)])
def test_vectors_and_nothing_go_to_numpy(sizes: tuple[int, int, int], no_numpy: list[Any]) -> None:
    m, k, n = sizes
    got = _products.product(sample(m, k, "plain"), sample(k, n, "plain"))
    assert got.shape == (m, n)
    assert len(no_numpy) == 1
    if not k:
        assert not got.any()


def test_what_does_not_fit_goes_to_numpy(alone: None, no_numpy: list[Any]) -> None:
    a, b = sample(6, 5, "plain"), sample(5, 7, "plain")
    out = np.empty((6, 14), np.float32)[:, ::2]
    assert _products.product(a, b, out) is out
    np.testing.assert_allclose(out, _products.product(a, b), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="mismatch"):
        _products.product(a, sample(6, 7, "plain"))
    with pytest.raises(ValueError, match="mismatch"):
        _products.product(a, b, np.empty((6, 8), np.float32))
    assert len(no_numpy) == 3
    odd = np.zeros(6 * 5 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(6, 5)
    odd[...] = a
    np.testing.assert_allclose(_products.product(odd, b), _products.product(a, b), rtol=1e-5, atol=1e-5)
    double = _products.product(a.astype(np.float64), b.astype(np.float64))
    assert double.dtype == np.float64
    assert _products.product(a, b.astype(np.float64)).dtype == np.float64
