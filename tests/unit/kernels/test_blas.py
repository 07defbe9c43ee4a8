"""NumPy's own OpenBLAS: its entries, its number of threads, and what there is without it."""

from __future__ import annotations

import ctypes
import io
from types import SimpleNamespace

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


@pytest.mark.parametrize(
    ("maps", "loads", "found"),
    [
        ("7f00-7f01 r-xp 0000 08:01 12  /venv/numpy.libs/libscipy_openblas64_-1a.so\n", True, True),
        ("7f00-7f01 r-xp 0000 08:01 12  /venv/numpy libs/libscipy_openblas64_-1a.so\n", True, True),
        ("7f00-7f01 r-xp 0000 08:01 12  /venv/numpy.libs/libscipy_openblas64_-1a.so\n", False, False),
        ("7f00-7f01 r-xp 0000 08:01 12  /venv/scipy.libs/libscipy_openblas64_-1a.so\n", True, False),
        ("7f00-7f01 r-xp 0000 08:01 12  /venv/numpy.libs/libother.so\n", True, False),
        ("", True, False),
        (None, True, False),
    ],
)
def test_the_library_is_numpys_among_those_that_are_mapped(
    maps: str | None, loads: bool, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Library:
        def __init__(self, path: str) -> None:
            self.path = path
            if loads:
                self.scipy_openblas_set_num_threads64_ = None

    def opened(path: str, **_: object) -> io.StringIO:
        assert path == "/proc/self/maps"
        if maps is None:
            raise FileNotFoundError(path)
        return io.StringIO("7f00-7f01 r-xp 0000 08:01 12  /usr/lib/libc.so\n" + maps)

    monkeypatch.setattr(blas, "open", opened, raising=False)
    monkeypatch.setattr(blas.ctypes, "CDLL", Library)
    library = blas._library.__wrapped__()
    assert (library is not None) is found
    if library is not None:
        assert library.path == maps.split("12  ")[1].rstrip("\n")  # type: ignore[union-attr, attr-defined]


def test_where_there_is_no_entry_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "_library", lambda: None)
    assert blas.set_threads(3) is False
    function = ctypes.CFUNCTYPE(None)(lambda: None)
    entries = SimpleNamespace(scipy_cblas_sgemm64_=function, scipy_cblas_dgemm64_=ctypes.CFUNCTYPE(None)())
    monkeypatch.setattr(blas, "_library", lambda: entries)
    gemm = blas.gemm.__wrapped__
    assert gemm(np.float32) == ctypes.cast(function, ctypes.c_void_p).value
    assert [gemm(np.float64), gemm(np.int32)] == [0, 0]
    monkeypatch.setattr(blas, "_library", lambda: SimpleNamespace())
    assert blas.gemm.__wrapped__(np.float32) == 0, "the library has no such function"
