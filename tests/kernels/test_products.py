"""Which products are shared, by whom, and what a BLAS is told of a matrix; that the numbers are NumPy's either way.

Our own kernels at all sizes: test_math_products.py; chunks for the BLAS: test_math_matmul_shared.py.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.counted_pool import CountedPool
from tenfold_kernels import blas, chunks
from tenfold_kernels.cpu import _products
from tenfold_kernels.cpu._compiled import intrinsics

F, D = np.float32, np.float64
needs_own = pytest.mark.skipif(not intrinsics.MULTIPLIES, reason="this processor's products are the BLAS's")


def whole(seed: int, *shape: int, dtype: Any = F) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def strided(shape: tuple[int, int], strides: tuple[int, int]) -> Any:
    return np.lib.stride_tricks.as_strided(np.zeros(1000, np.uint8).view(F), shape, strides)


@pytest.mark.parametrize(
    ("matrix", "line"),
    [
        (np.zeros((3, 4), F), (111, 4)),
        (np.zeros((3, 4), F).T, (112, 4)),
        (np.zeros((3, 4), D), (111, 4)),
        (np.zeros((3, 4), F)[:, 1:3], (111, 4)),
        (np.zeros((4, 3), F)[:, 1:3].T, (112, 3)),
        (np.zeros((6, 4), F)[::2], (111, 8)),
        (np.zeros((6, 4), F)[::2].T, (112, 8)),
        (np.zeros((3, 1), F), (111, 1)),
        (np.zeros((6, 2), F)[:, :1], (111, 2)),
        (np.zeros((3, 8), F)[:, ::2], None),
        (np.zeros((3, 4), F)[::-1], None),
        (np.zeros((3, 4), F)[:, ::-1], None),
        (np.broadcast_to(np.zeros((1, 4), F), (3, 4)), None),
        (np.broadcast_to(np.zeros((3, 1), F), (3, 4)), None),
        (strided((3, 4), (18, 4)), None),
        (strided((4, 3), (4, 18)), None),
        (strided((3, 4), (8, 4)), None),
        (strided((4, 3), (4, 8)), None),
        (strided((3, 4), (20, 4)), (111, 5)),
        (strided((4, 3), (4, 20)), (112, 5)),
    ],
)
def test_what_the_blas_is_told_of_a_matrix(matrix: Any, line: Any) -> None:
    assert _products._line(matrix) == line


class BusyPool:
    """A pool that another caller has."""

    def __init__(self) -> None:
        self.asked = 0

    def share(self, *given: Any) -> bool:
        self.asked += 1
        return False


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Small products are worth sharing; none is our own kernels'."""
    if not blas.gemm(F):
        pytest.skip("NumPy's BLAS has no entry with integers of 64 bits")
    state = SimpleNamespace(pool=CountedPool())
    monkeypatch.setattr(_products, "_own", lambda: None)
    monkeypatch.setattr(_products, "CHUNK", 1 << 10)
    monkeypatch.setattr(_products, "OWN_LEAST", 0)
    monkeypatch.setattr(chunks, "width", lambda: 2)
    monkeypatch.setattr(chunks, "shared_pool", lambda *_: state.pool)
    for dtype in (F, D):
        gemm = _products._gemm(np.dtype(dtype))
        assert gemm is not None
        gemm.load()
    return state


@pytest.mark.parametrize("dtype", [F, D])
@pytest.mark.parametrize("sizes", [(64, 16, 64), (160, 3, 20), (20, 3, 160), (33, 33, 33)])
def test_chunks_of_products(shared: SimpleNamespace, dtype: Any, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b = whole(1, m, k, dtype=dtype), whole(2, k, n, dtype=dtype)
    out = np.full((m, n), np.nan, dtype)

    np.testing.assert_array_equal(_products.product(a, b), a @ b)
    assert _products.product(a, b, out) is out
    np.testing.assert_array_equal(out, a @ b)
    assert shared.pool.jobs == 2
    shared.pool = BusyPool()
    np.testing.assert_array_equal(_products.product(a, b), a @ b)
    assert shared.pool.asked == 1
    shared.pool = None
    np.testing.assert_array_equal(_products.product(a, b), a @ b)


def test_products_that_are_not_shared(shared: SimpleNamespace) -> None:
    """… of vectors, of little, of one chunk, of types that the BLAS has not or into what it cannot write."""
    a, b = whole(1, 64, 64), whole(2, 64, 64)
    wide = np.zeros((64, 128), F)
    column = np.zeros((64, 64), F).T

    for out in (wide[:, ::2], column, np.zeros((64, 64), D)):
        assert _products.product(a, b, out) is out
        np.testing.assert_array_equal(out, a @ b)
    np.testing.assert_array_equal(_products.product(a, b.astype(D)), a @ b)
    np.testing.assert_array_equal(_products.product(a.astype(np.int64), b.astype(np.int64)), a @ b)
    np.testing.assert_array_equal(_products.product(a[:, ::2], b[::2]), a[:, ::2] @ b[::2])
    np.testing.assert_array_equal(_products.product(a[::2].T, b[:32, ::-1]), a[::2].T @ b[:32, ::-1])
    np.testing.assert_array_equal(_products.product(a[0], b), a[0] @ b)
    np.testing.assert_array_equal(_products.product(a, b[:, 0]), a @ b[:, 0])
    np.testing.assert_array_equal(_products.product(a[:4], b[:, :15]), a[:4] @ b[:, :15])
    np.testing.assert_array_equal(_products.product(a[:16], b[:, :16]), a[:16] @ b[:, :16])
    with pytest.raises(ValueError, match="mismatch"):
        _products.product(a, b[:63])
    with pytest.raises(ValueError, match="mismatch"):
        _products.product(a, b, np.zeros((64, 63), F))
    assert shared.pool.jobs == 0


def test_a_product_goes_to_numpy_until_there_is_machine_code(
    shared: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = whole(1, 64, 64, dtype=D), whole(2, 64, 64, dtype=D)
    for gemm in (None, SimpleNamespace(chunk=0, entry=1)):
        monkeypatch.setattr(_products, "_gemm", lambda _, gemm=gemm: gemm)
        np.testing.assert_array_equal(_products.product(a, b), a @ b)
    assert shared.pool.jobs == 0


def test_what_loads_a_product_for_the_blas() -> None:
    """Asked for once for each type; its address is there once it is loaded."""
    if not blas.gemm(F):
        pytest.skip("NumPy's BLAS has no entry with integers of 64 bits")
    first, other = _products._gemm(np.dtype(F)), _products._gemm(np.dtype(D))
    assert first is not None
    assert other is not None
    assert first is _products._gemm(np.dtype(F))
    assert (first.entry, other.entry) == (blas.gemm(np.dtype(F)), blas.gemm(np.dtype(D)))
    first.load()
    assert first.chunk
    assert _products._gemm(np.dtype(np.int32)) is None


def test_a_product_for_the_blas_is_loaded_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(chunks, "begin_loading", begun.append)

    made = _products._Gemm(np.dtype(F), 5)

    assert begun == [made.load]
    assert (made.entry, made.chunk) == (5, 0)


def test_a_product_that_is_prepared_has_the_blas_on_its_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    monkeypatch.setattr(_products.threads, "keep_blas_on_callers", lambda: kept.append(1))
    for entry, times in ((1, 1), (0, 1)):
        monkeypatch.setattr(_products.blas, "gemm", lambda _, entry=entry: entry)
        _products.prepare()
        assert len(kept) == times


# -- our own kernels


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Any:
    """They do the smallest products, too."""
    made = _products._own()
    assert made is not None
    assert made.chunk()
    monkeypatch.setattr(_products, "OWN_LEAST", 1 << 10)
    return made


@needs_own
def test_what_is_added_where_it_is(own: Any) -> None:
    a, b = whole(1, 16, 8), whole(2, 8, 16)
    total = whole(3, 16, 16)
    before = total.copy()

    assert _products.add_product(total, a, b) is total
    np.testing.assert_array_equal(total, before + a @ b)
    before = total.copy()
    for refused in (
        (total, a[0], b),
        (total, a, b[:, 0]),
        (total, a.astype(D), b),
        (total, a, b.astype(D)),
        (total.astype(D), a, b),
        (total, a[:, :3], b[:3]),  # too little
        (total[:15], a, b),
        (total[:1], a[:1], np.tile(b, 16)),
        (total, a, b[:7]),
        (np.zeros((16, 32), F)[:, ::2], a, b),
    ):
        old = refused[0].copy()
        assert _products.add_product(*refused) is None
        np.testing.assert_array_equal(refused[0], old)
    np.testing.assert_array_equal(total, before)


@needs_own
def test_nothing_is_added_where_there_is_no_machine_code(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, total = whole(1, 16, 8), whole(2, 8, 16), whole(3, 16, 16)
    for missing in (None, SimpleNamespace(chunk=lambda: 0)):
        monkeypatch.setattr(_products, "_own", lambda missing=missing: missing)
        assert _products.add_product(total, a, b) is None
        np.testing.assert_array_equal(_products.product(a, b), a @ b)
    np.testing.assert_array_equal(total, whole(3, 16, 16))


@needs_own
@pytest.mark.parametrize("sizes", [(30, 40, 300), (300, 40, 30), (64, 64, 64), (13, 100, 33), (12, 100, 32)])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_own_products_in_chunks(
    own: Any, sizes: tuple[int, int, int], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, (m, k, n) = CountedPool(), sizes
    own._jobs.clear()
    monkeypatch.setattr(_products, "OWN_CHUNK", 1 << 10)
    monkeypatch.setattr(_products, "OWN_SHARED", 2 << 10)
    monkeypatch.setattr(chunks, "width", lambda: width)
    monkeypatch.setattr(chunks, "shared_pool", lambda *_: pool)
    a, b, total = whole(1, m, k), whole(2, k, n), whole(3, m, n)
    expected = total + a @ b

    for _ in range(2):
        np.testing.assert_array_equal(_products.product(a, b), a @ b)
    assert _products.add_product(total, a, b) is total
    np.testing.assert_array_equal(total, expected)
    assert pool.jobs == (3 if sizes != (12, 100, 32) else 0)
    assert len(own._jobs) == (sizes != (12, 100, 32)), "the memory of a job is used again"
    busy = BusyPool()
    monkeypatch.setattr(chunks, "shared_pool", lambda *_: busy)
    np.testing.assert_array_equal(_products.product(a, b), a @ b)
    assert busy.asked == (sizes != (12, 100, 32))
    monkeypatch.setattr(chunks, "shared_pool", lambda *_: None)
    np.testing.assert_array_equal(_products.product(a, b), a @ b)


@needs_own
@pytest.mark.parametrize(("terms", "times"), [(15, 1), (16, 2), (17, 3), (24, 3)])
def test_a_long_sum_takes_its_terms_in_turn_and_in_order(
    own: Any, terms: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(terms)
    a, b = draw.standard_normal((5, terms), F), draw.standard_normal((terms, 7), F)
    at_once, total = own.product(a, b, None, own.chunk()), draw.standard_normal((5, 7), F)
    added = own.product(a, b, total.copy(), own.chunk(), True)
    asked: list[int] = []
    monkeypatch.setattr(_products, "OWN_DEPTH", 8)
    monkeypatch.setattr(_products, "SMALL", 0)
    monkeypatch.setattr(_products, "OWN_SHARED", 0)
    monkeypatch.setattr(own, "_shared", lambda *_: bool(asked.append(1)))

    np.testing.assert_array_equal(own.product(a, b, None, own.chunk()), at_once)
    assert len(asked) == times
    np.testing.assert_array_equal(own.product(a.T.copy().T, b, total, own.chunk(), True), added)


@needs_own
@pytest.mark.parametrize("terms", [4096, 4097, 5000])
@pytest.mark.parametrize("is_turned", [False, True])
def test_long_sums_of_a_small_matrix_are_cut_and_added_up(
    own: Any, terms: int, is_turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(terms)
    a, b = draw.standard_normal((terms, 13), F).T, draw.standard_normal((terms, 21), F)
    a = np.ascontiguousarray(a) if is_turned else a
    cut = _products.SMALL_DEPTH
    parts = [a[:, i : i + cut].astype(D) @ b[i : i + cut] for i in range(0, terms, cut)]
    given = np.full((13, 21), np.nan, F)

    alone = own.product(a, b, given, own.chunk())

    assert alone is given
    np.testing.assert_allclose(alone, np.sum(parts, 0), rtol=1e-5, atol=2e-4)
    counted = CountedPool()
    monkeypatch.setattr(_products, "OWN_SHARED", 0)
    monkeypatch.setattr(chunks, "width", lambda: 2)
    monkeypatch.setattr(chunks, "shared_pool", lambda *_: counted)
    np.testing.assert_array_equal(own.product(a, b, None, own.chunk()), alone)
    assert counted.jobs
    monkeypatch.setattr(own, "_batch", lambda: 0)  # not loaded yet
    np.testing.assert_allclose(own.product(a, b, None, own.chunk()), alone, rtol=1e-4, atol=2e-4)


# -- batches


@pytest.mark.parametrize("dtype", [F, D, np.int64])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4, 5), (3, 5, 6)), ((3, 4, 5), (5, 6)), ((4, 5), (3, 5, 6)), ((3, 1, 4, 5), (2, 5, 6)),
        ((3, 4, 1), (3, 1, 6)), ((3, 4, 1), (1, 6)), ((4, 1), (1, 6)),
        ((0, 4, 5), (0, 5, 6)), ((3, 4, 0), (3, 0, 6)), ((2, 3, 4, 5), (2, 3, 5, 6)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("part", [1, 4 << 22])
def test_batches_are_numpys(monkeypatch: pytest.MonkeyPatch, a: Any, b: Any, dtype: Any, part: int) -> None:
    monkeypatch.setattr(_products, "BATCH_PART", part)
    x, y = whole(1, *a, dtype=dtype), whole(2, *b, dtype=dtype)

    found = _products.batched(x, y)

    np.testing.assert_array_equal(found, np.matmul(x, y))
    assert found.dtype == dtype


@needs_own
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("bmhk", "bnhk"),  # of heads that lie beside each other
        ("bhmk", "bnhk"),
        ("bhkm", "bhkn"),
        ("bhmk", "bhkn"),
        ("hmk", "hnk"),
    ],
)
@pytest.mark.parametrize("sizes", [(3, 4, 16, 8, 17), (2, 3, 130, 70, 65), (1, 2, 2, 40, 2)])
@pytest.mark.parametrize("is_shared", [True, False])
def test_own_batches(own: Any, a: str, b: str, sizes: Any, is_shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = CountedPool()
    own._jobs.clear()
    for name in ("OWN_CHUNK", "OWN_SHARED", "OWN_LEAST"):
        monkeypatch.setattr(_products, name, 1)
    monkeypatch.setattr(chunks, "width", lambda: 2)
    monkeypatch.setattr(chunks, "shared_pool", lambda *_: pool if is_shared else None)
    size = dict(zip("bhmkn", sizes, strict=True))
    x, y = (whole(i, *(size[each] for each in names)) for i, names in enumerate((a, b)))
    x = np.einsum(f"{a}->{'b' * ('b' in a)}hmk", x)
    y = np.einsum(f"{b}->{'b' * ('b' in b)}hkn", y)

    for _ in range(2):
        found = _products.batched(x, y)
        np.testing.assert_array_equal(found, np.matmul(x, y))
        assert found.flags.c_contiguous
    assert pool.jobs == 2 * is_shared
    assert len(own._jobs) == 1, "the memory of a job is used again"


@needs_own
def test_batches_that_our_own_kernels_leave_to_numpy(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = whole(1, 3, 4, 16, 8), whole(2, 3, 4, 8, 16)
    for one, other in (
        (x, y[:1]),
        (x, y[0]),
        (x[:, :, :1], y),
        (x, y[..., :1]),
        (x[:0], y[:0]),
        (x[None], y[None]),
        (x.astype(D), y),
    ):
        assert _products._own_batch(one, other) is None
        np.testing.assert_array_equal(_products.batched(one, other), np.matmul(one, other))
    monkeypatch.setattr(_products, "OWN_DEPTH", 4)
    assert _products._own_batch(x, y) is None
    for name, missing in (("_batch", lambda: 0), ("_describe_batch", lambda *_: 0), ("_run", lambda *_: 0)):
        monkeypatch.undo()
        monkeypatch.setattr(_products, "OWN_LEAST", 1)
        monkeypatch.setattr(own, name, missing)
        assert _products._own_batch(x, y) is None


def test_products_of_a_column_and_a_row_lie_in_rows() -> None:
    x, y = whole(1, 4, 3, 1).transpose(1, 0, 2), whole(2, 6, 3, 1).transpose(1, 2, 0)

    found = _products.batched(x, y)

    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, np.matmul(x, y))


def test_batches_of_two_types_and_of_sizes_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_products, "BATCH_PART", 1)
    shared: list[int] = []
    monkeypatch.setattr(_products, "in_parts", lambda work, total, least: (shared.append(least), work(0, total)))
    x, y = whole(1, 3, 4, 5), whole(2, 3, 5, 6)

    for one, other in ((x.astype(D), y), (x, y.astype(D)), (x.astype(np.int32), y.astype(np.int32))):
        np.testing.assert_array_equal(_products.batched(one, other), np.matmul(x, y))
    with pytest.raises(ValueError, match="mismatch"):
        _products.batched(x, y[:, :4])
    with pytest.raises(ValueError, match="mismatch"):
        _products.batched(x, y[:, :1])
    assert shared == []
    np.testing.assert_array_equal(_products.batched(x, y), np.matmul(x, y))
    monkeypatch.setattr(_products, "BATCH_PART", 180)
    np.testing.assert_array_equal(_products.batched(x, y), np.matmul(x, y))
    assert shared == [1, 2], "120 multiplications a matrix"


# -- how large products are cut


class Recorder:
    """A pool that only says what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []

    def share(self, *given: int) -> bool:
        self.asked.append(given)
        return True


@needs_own
@pytest.mark.parametrize(
    ("width", "sizes", "cut"),
    [
        (4, (100, 1024, 1024), (True, 32, 32)),
        (2, (100, 1024, 1024), (True, 64, 16)),
        (1, (100, 1024, 1024), (True, 128, 8)),
        (4, (2000, 1024, 300), (False, 72, 28)),
        (4, (400, 64, 400), (True, 32, 13)),
        (4, (2000, 64, 512), (True, 32, 16)),
        (4, (2000, 64, 511), (False, 72, 28)),
        (4, (600, 64, 200), (False, 48, 13)),
        (4, (1000, 18, 160), (True, 32, 5)),
        (4, (40, 10, 192), (True, 96, 2)),
        (4, (40, 10, 33), (False, 24, 2)),
        (4, (12, 10, 11), None),
        (4, (10, 10, 32), None),
    ],
)
def test_how_own_products_are_cut(
    own: Any, width: int, sizes: tuple[int, int, int], cut: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns or rows, how many of them, and how many chunks that makes: eight for a thread at most, of whole tiles."""
    m, k, n = sizes
    pool, counts, described = Recorder(), list[Any](), list[Any]()
    monkeypatch.setattr(chunks, "width", lambda: width)
    monkeypatch.setattr(chunks, "shared_pool", lambda address, count: (counts.append((address, count)), pool)[1])
    monkeypatch.setattr(own, "_describe", lambda *given: (described.append(given[3:5]), 9)[1])

    done = own._shared(np.empty((m, k), F), np.empty((k, n), F), np.empty((m, n), F), 77, False)

    assert done is (cut is not None)
    assert described == ([cut[:2]] if cut else [])
    assert counts == ([(77, cut[2])] if cut else [])
    assert pool.asked == ([(77, 9, cut[2], width - 1)] if cut else [])


@pytest.mark.parametrize(
    ("width", "sizes", "cut"),
    [
        (4, (100, 4096, 1000), (True, 32, 32)),
        (1, (100, 4096, 1000), (True, 128, 8)),
        (4, (1000, 4096, 100), (False, 32, 32)),
        (4, (300, 300, 300), (False, 64, 5)),
        (4, (96, 10, 40), (False, 48, 2)),
        (4, (16, 10, 16), None),
    ],
)
def test_how_products_of_the_blas_are_cut(
    width: int, sizes: tuple[int, int, int], cut: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k, n = sizes
    counts: list[Any] = []
    asked: list[Any] = []

    def share(function: int, arguments: int, count: int, helpers: int) -> bool:
        given = list((ctypes.c_int64 * 14).from_address(arguments))
        asked.append((function, bool(given[12]), given[13], count, helpers, given[:1], given[3:6]))
        return True

    pool = SimpleNamespace(share=share)
    monkeypatch.setattr(_products, "_gemm", lambda _: SimpleNamespace(chunk=5, entry=7))
    monkeypatch.setattr(chunks, "width", lambda: width)
    monkeypatch.setattr(chunks, "shared_pool", lambda address, count: (counts.append((address, count)), pool)[1])

    found = _products._shared(np.empty((m, k)), np.empty((k, n)), None)

    assert counts == ([(5, cut[2])] if cut else [])
    assert asked == ([(5, *cut, width - 1, [7], [m, n, k])] if cut else [])
    assert (found is None) if cut is None else (found is not None and found.shape == (m, n))


# -- from which size on


def test_the_least_product_that_is_shared(shared: SimpleNamespace) -> None:
    """Two chunks of 1,024 multiplications."""
    for sizes, jobs in (((32, 2, 32), 1), ((31, 2, 33), 0), ((32, 1, 33), 0)):
        shared.pool.jobs = 0
        a, b = whole(1, *sizes[:2], dtype=D), whole(2, *sizes[1:], dtype=D)
        np.testing.assert_array_equal(_products.product(a, b), a @ b)
        assert shared.pool.jobs == jobs, sizes


def test_the_least_product_that_our_own_kernels_take(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def product(a: Any, b: Any, out: Any, address: int, add: bool = False) -> Any:
        asked.append("add" if add else "product")
        return out if add else None

    monkeypatch.setattr(_products, "_own", lambda: SimpleNamespace(chunk=lambda: 5, product=product))
    monkeypatch.setattr(_products, "OWN_LEAST", 24)
    a, b = whole(1, 2, 3), whole(2, 3, 4)
    total = np.zeros((2, 4), F)

    np.testing.assert_array_equal(_products.product(a, b), a @ b)
    assert _products.add_product(total, a, b) is total
    assert asked == ["product", "add"]
    monkeypatch.setattr(_products, "OWN_LEAST", 25)
    np.testing.assert_array_equal(_products.product(a, b), a @ b)
    assert _products.add_product(total, a, b) is None
    assert asked == ["product", "add"]


@needs_own
def test_what_our_own_kernels_leave_to_the_blas(own: Any) -> None:
    address = own.chunk()
    for m, k, n, takes in ((2, 3, 2, True), (1, 3, 2, False), (2, 3, 1, False), (2, 0, 2, False), (2, 1, 2, True)):
        a, b = whole(1, m, k), whole(2, k, n)
        found = own.product(a, b, None, address)
        assert (found is not None) is takes, (m, k, n)
        if takes:
            np.testing.assert_array_equal(found, a @ b)
    a, b = whole(1, 2, 3), whole(2, 3, 4)
    assert own.product(a, whole(2, 2, 4), None, address) is None
    for out in (np.zeros((2, 3), F), np.zeros((3, 4), F), np.zeros((2, 8), F)[:, ::2], np.zeros((2, 4), D)):
        assert own.product(a, b, out, address) is None
        assert not out.any()
    out = np.ones((2, 4), F)
    assert own.product(a, b, out, address, True) is out
    np.testing.assert_array_equal(out, 1 + a @ b)
    assert own.product(a, b, out, address) is out
    np.testing.assert_array_equal(out, a @ b)


@needs_own
def test_the_least_product_of_our_own_kernels_that_is_shared(own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(own, "_shared", lambda *_: bool(asked.append(1)))
    a, b = whole(1, 2, 3), whole(2, 3, 4)
    for least, times in ((25, 0), (24, 1), (23, 1)):
        asked.clear()
        monkeypatch.setattr(_products, "OWN_SHARED", least)
        np.testing.assert_array_equal(own.product(a, b, None, own.chunk()), a @ b)
        assert len(asked) == times
