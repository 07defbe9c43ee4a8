"""Large products in chunks for the BLAS: the numbers of np.matmul, for both types, both layouts of both operands."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.counted_pool import CountedPool
from tenfold_kernels import blas, chunks, parallel
from tenfold_kernels.cpu import _products
from tenfold_kernels.parallel import in_parts

#: In units of the type's precision, for sums of 60 products around 1.
TOLERANCE = 60.0


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> CountedPool:
    if not blas.gemm(np.float32):
        pytest.skip("NumPy's BLAS has no entry with integers of 64 bits")
    counted = CountedPool()
    monkeypatch.setattr(_products, "_own", lambda: None)
    monkeypatch.setattr(_products, "CHUNK", 1 << 10)
    monkeypatch.setattr(chunks, "width", lambda: 2)
    monkeypatch.setattr(chunks, "shared_pool", lambda *_: counted)
    for dtype in (np.float32, np.float64):
        gemm = _products._gemm(np.dtype(dtype))
        assert gemm is not None
        gemm.load()
        assert gemm.chunk
    return counted


def sample(shape: tuple[int, int], dtype: Any, is_transposed: bool) -> Any:
    made = np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)
    return np.ascontiguousarray(made.T).T if is_transposed else made


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(100, 60, 40), (40, 60, 100), (33, 7, 257), (17, 200, 16)])
def test_a_product_in_chunks_is_np_matmul(
    dtype: Any, sizes: tuple[int, int, int], pool: CountedPool, capfd: pytest.CaptureFixture[str]
) -> None:
    m, k, n = sizes
    for turn_a, turn_b in itertools.product((False, True), repeat=2):
        a, b = sample((m, k), dtype, turn_a), sample((k, n), dtype, turn_b)
        expected = np.matmul(a.astype(np.float64), b.astype(np.float64))
        bound = TOLERANCE * np.finfo(dtype).eps
        np.testing.assert_allclose(_products.product(a, b), expected, rtol=bound, atol=bound)
        out = np.full((m, n), np.nan, dtype)
        assert _products.product(a, b, out) is out
        np.testing.assert_allclose(out, expected, rtol=bound, atol=bound)
    assert pool.jobs == 8
    assert "".join(capfd.readouterr()) == "", "the BLAS tells of sizes below 0 there, of chunks beyond the end"


def test_rows_of_a_larger_matrix_are_read_in_place(pool: CountedPool) -> None:
    whole = sample((64, 100), np.float32, False)
    a, b = whole[:, 10:70], sample((60, 48), np.float32, False)
    np.testing.assert_allclose(_products.product(a, b), np.matmul(a, b), rtol=1e-4, atol=1e-4)
    assert pool.jobs == 1


@pytest.mark.parametrize("dtype", [np.int32, np.complex64, np.float16])
def test_other_types_go_to_numpy(dtype: Any, pool: CountedPool) -> None:
    a, b = np.ones((64, 64), dtype), np.ones((64, 64), dtype)
    np.testing.assert_array_equal(_products.product(a, b), np.full((64, 64), 64, dtype))
    assert pool.jobs == 0


def test_strided_columns_and_wrong_sizes_go_to_numpy(pool: CountedPool) -> None:
    a, b = sample((64, 128), np.float32, False)[:, ::2], sample((64, 64), np.float32, False)
    np.testing.assert_allclose(_products.product(a, b), np.matmul(a.copy(), b), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="mismatch"):
        _products.product(sample((64, 63), np.float32, False), b)
    assert pool.jobs == 0


def test_nans_and_infinities_stay(pool: CountedPool) -> None:
    a, b = sample((64, 64), np.float32, False), sample((64, 64), np.float32, False)
    a[3, 5], a[9, 0] = np.nan, np.inf
    got = _products.product(a, b)
    assert np.isnan(got[3]).all()
    assert np.isinf(got[9]).all()
    assert np.isfinite(np.delete(got, (3, 9), axis=0)).all()


@pytest.mark.parametrize("turned", [False, True])
def test_the_matrices_of_a_batch_are_shared(turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = np.random.default_rng(3)
    a, b = (choose.standard_normal(shape).astype(np.float64) for shape in ((7, 3, 16, 20), (7, 3, 20, 12)))
    if turned:
        b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    a[2, 1, 0, 0] = np.inf
    b[2, 1, 0, 0] = 0.0  # an invalid product, of which no thread warns
    monkeypatch.setattr(_products, "BATCH_PART", 1)
    monkeypatch.setattr(parallel, "_width", lambda: 2)
    parts: list[int] = []

    def counted(work: Any, total: int, least: int) -> None:
        parts.append(total)
        in_parts(work, total, least)

    monkeypatch.setattr(_products, "in_parts", counted)

    got = _products.batched(a, b)

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, np.matmul(a, b))
    assert parts == [7]
    with np.errstate(all="ignore"):
        assert _products.batched(a, b[:1]).shape == (7, 3, 16, 12), "a batch that is broadcast"
    with pytest.raises(ValueError, match="mismatch"):
        _products.batched(a, a)
    assert parts == [7]
