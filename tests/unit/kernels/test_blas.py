"""NumPy's own OpenBLAS: its entries, its number of threads, and what there is without it."""

from __future__ import annotations

import numpy as np
import pytest

from tenfold_kernels import blas, threads


@pytest.fixture
def own() -> int:
    """How many threads it has; put back by `threads` afterwards."""
    if not blas.gemm(np.float32):
        pytest.skip("NumPy here has another BLAS")
    return blas.threads()


def test_there_are_entries_for_floats_only(own: int) -> None:
    assert blas.gemm(np.float32) != blas.gemm(np.float64) != 0
    assert blas.gemm(np.complex64) == blas.gemm(np.int32) == 0


def test_its_number_is_what_threadpoolctl_sees(own: int) -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    try:
        for count in (1, own):
            assert blas.set_threads(count)
            seen = [info["num_threads"] for info in threadpoolctl.threadpool_info() if "numpy" in info["filepath"]]
            assert seen == [count]
            assert threads.blas_threads() == count
    finally:
        blas.set_threads(own)


def test_another_blas_has_no_entry_and_threadpoolctl_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    blas.gemm.cache_clear()
    monkeypatch.setattr(blas, "_library", lambda: None)
    monkeypatch.setattr(threads, "_set_by_threadpoolctl", given.append)
    try:
        assert blas.gemm(np.float32) == blas.threads() == 0
        threads._set(3)
    finally:
        blas.gemm.cache_clear()
    assert given == [3]
