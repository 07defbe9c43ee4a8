"""Products by cuBLAS, called directly: CuPy's call refuses a stream that is being recorded. Imported with _driver.py
only, after CuPy, which loads the library.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_int, c_longlong, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_kernels.cuda._pointers import pointer_of
from tenfold_kernels.cuda._precision import allows_tf32

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

#: Bytes that cuBLAS may work in; what NVIDIA recommends for an H100. One for all calls: they are on one stream.
_WORKSPACE = 32 << 20
_BYTES = np.dtype(np.uint8)
#: cudaDataType_t and cublasComputeType_t of an element type, and the type of the two factors. Sums of float32 are of
#: 32 bits throughout: no TF32, unless it is asked for.
_TYPES = {
    "float32": (0, 68, np.float32),
    "float64": (1, 70, np.float64),
    "float16": (2, 68, np.float32),
    "bfloat16": (14, 68, np.float32),
    "complex64": (4, 68, np.complex64),
    "complex128": (5, 70, np.complex128),
}
#: cublasComputeType_t, of float32 and complex64.
_ROUNDED_TO_TF32 = 77
#: cublasOperation_t
_AS_IT_IS, _TRANSPOSED, _ADJOINT = 0, 1, 2
_DEFAULT_ALGORITHM = -1
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasCreate_v2": (c_void_p,),
    "cublasSetStream_v2": (c_void_p, c_void_p),
    "cublasSetWorkspace_v2": (c_void_p, c_void_p, c_size_t),
    # handle, two operations, m, n, k, a factor; operands, each with type, leading dimension and step; the other factor
    "cublasGemmStridedBatchedEx": (
        c_void_p, c_int, c_int, c_int, c_int, c_int, c_void_p,
        c_void_p, c_int, c_int, c_longlong,
        c_void_p, c_int, c_int, c_longlong, c_void_p,
        c_void_p, c_int, c_int, c_longlong,
        c_int, c_int, c_int,
    ),
}  # fmt: skip


class Products:
    """Of one GPU."""

    def __init__(self, runtime: Any, major: int) -> None:
        """`major` is the version of CUDA. Takes no memory before the first product."""
        self._of, self._major = runtime, major
        self._tf32 = allows_tf32()
        self._library: Any = None
        self._handle = c_void_p()
        self._workspace: Any = None
        #: Where the handle works.
        self._stream = 0
        #: A handle serves one thread at a time.
        self._lock = threading.Lock()

    def matmul(
        self,
        a: DeviceArray,
        b: DeviceArray,
        out: DeviceArray,
        transpose_a: bool = False,
        transpose_b: bool = False,
        accumulate: bool = False,
        conjugate: bool = False,
    ) -> None:
        rows, columns = out.shape[-2:]
        inner = a.shape[-2 if transpose_a else -1]
        if not out.size:
            return
        if not inner:
            if not accumulate:
                self._of.zero(out)
            return
        element, sums, factor = _TYPES[out.dtype.name]
        if self._tf32 and out.dtype.name in ("float32", "complex64"):
            sums = _ROUNDED_TO_TF32
        # read before the call returns, or kept by what is recorded
        one, beta = np.ones(1, factor), np.full(1, accumulate, factor)
        turned = _ADJOINT if conjugate else _TRANSPOSED
        of_a, of_b = (turned if transpose else _AS_IT_IS for transpose in (transpose_a, transpose_b))
        step_a, step_b = (each.shape[-2] * each.shape[-1] if each.ndim > 2 else 0 for each in (a, b))
        with self._lock, self._of.current():
            self._prepare()
            # cuBLAS reads rows as columns: it gets the transposed of all three, whose product has the factors swapped
            self._call(
                "cublasGemmStridedBatchedEx", self._handle, of_b, of_a, columns, rows, inner, one.ctypes.data,
                pointer_of(b), element, b.shape[-1], step_b,
                pointer_of(a), element, a.shape[-1], step_a, beta.ctypes.data,
                pointer_of(out), element, columns, rows * columns,
                out.size // (rows * columns), sums, _DEFAULT_ALGORITHM,
            )  # fmt: skip

    def _prepare(self) -> None:
        """The handle works on this thread's stream, in memory of ours: each recording would get its own for good."""
        if self._library is None:
            # CuPy knows where it is, and loads it
            from cupy_backends.cuda.libs import cublas  # type: ignore[import-not-found, unused-ignore] # noqa: F401

            library = ctypes.CDLL(f"libcublas.so.{self._major}")
            for name, types in _SIGNATURES.items():
                getattr(library, name).argtypes = types
            # first what there may be no room for: the next product tries again
            self._workspace = self._workspace or self._of.lasting(_WORKSPACE)
            self._call("cublasCreate_v2", byref(self._handle), library=library)
            self._library = library
        stream = self._of.current_stream().ptr
        if stream != self._stream:
            self._call("cublasSetStream_v2", self._handle, stream)
            self._call("cublasSetWorkspace_v2", self._handle, pointer_of(self._workspace), _WORKSPACE)
            self._stream = stream

    def _call(self, name: str, *arguments: Any, library: Any = None) -> None:
        status = getattr(library or self._library, name)(*arguments)
        if status:
            raise errors.internal(f"{name} failed with status {status} on {self._of.name}")
