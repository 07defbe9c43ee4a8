"""Products of two matrices, the large ones cut into chunks that helper threads may take: what np.matmul is elsewhere.

float32 has kernels of our own on processors with wide vectors (_compiled/products.py, decision 0049); all else goes to
the BLAS, and everything does until they are loaded. The BLAS computes on the thread that calls it: its own threads get
fixed shares and wait for each other awake, and one whose core another process has holds up all (decision 0037). Chunks
are rows or columns of the output, so no sum depends on how it was cut. Used by math_matmul.py and others; the BLAS's
chunk function: _compiled/gemm.py; helpers: chunks.py.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels import blas, chunks, threads
from tenfold_kernels.parallel import in_parts

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array

#: Multiplications of one chunk: 40–80 µs. Below two of them a product is done alone.
CHUNK = 4 << 20
#: The same for our own kernels: 5 µs, and 30 µs below which sharing costs more than it saves.
OWN_CHUNK, OWN_SHARED = 1 << 19, 3 << 19
#: Terms of a sum that they take at a time where there are at least twice as many: a chunk copies a panel of B of all
#: its terms, which must stay in the cache.
OWN_DEPTH = 2048
#: The same of a small matrix of long sums, a gradient of weights by many rows, and how small it is: chunks are cut
#: along the sums, each reads its part of both operands once, and what they give is added up in their order.
SMALL_DEPTH, SMALL = 512, 1 << 15
#: What the columns or rows of a chunk of theirs are a multiple of.
_OWN_COLUMNS, _OWN_ROWS = 32, 12
#: Multiplications below which np.matmul is as fast, and a program of nothing else need not load Numba.
OWN_LEAST = 1 << 15
#: The same where B is not transposed, which the BLAS is slow at, and only the call's own cost is saved.
OWN_LEAST_PLAIN = 3 << 16
#: Multiplications of one part of a batch: NumPy's own loop over it is handed over with the GIL, 60 µs.
BATCH_PART = 4 * CHUNK
#: Rows or columns of the output that BLAS kernels like.
_STEP = 16
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_PLAIN, _TRANSPOSED = 111, 112


class _Own:
    """Products of float32 by our own kernels, loaded in the background."""

    def __init__(self) -> None:
        from tenfold_kernels.cpu._compiled import products
        from tenfold_kernels.cpu._compiled.intrinsics import JOB_WORDS

        #: Gives the address of the chunk function; 0 until it is there.
        self.chunk = products.chunk_address()
        self._alone, self._describe, self._words = products.alone(), products.describe_job(), JOB_WORDS
        self._batch, self._describe_batch = products.batch_chunk_address(), products.describe_batch()
        self._run, self._step = products.run(), int(products.Job.STEP)
        #: Memory of jobs that no caller has just now.
        self._jobs: list[Array] = []

    def product(self, a: Array, b: Array, out: Array | None, address: int, add: bool = False) -> Array | None:
        """None for what the BLAS does better or alone can: vectors, and outputs that are not contiguous."""
        (m, k), n = a.shape, b.shape[1]
        if m < 2 or n < 2 or not k or b.shape[0] != k:
            return None
        if out is None:
            out = np.empty((m, n), _F32)
        elif out.shape != (m, n):
            return None
        try:
            if k < 2 * OWN_DEPTH:
                self._add_terms(a, b, out, address, add)
            elif add or m * n > SMALL or not self._add_parts(a, b, out, address):
                # the same terms in the same order
                for first in range(0, k, OWN_DEPTH):
                    terms = slice(first, first + OWN_DEPTH)
                    self._add_terms(a[:, terms], b[terms], out, address, add or first > 0)
        except TypeError:
            return None
        return out

    def _add_parts(self, a: Array, b: Array, out: Array, address: int) -> bool:
        """The product of long sums, part by part; False until all that it needs is loaded."""
        count = a.shape[1] // SMALL_DEPTH
        whole = count * SMALL_DEPTH
        parts = self.batch(
            a[:, :whole].reshape(-1, count, SMALL_DEPTH).swapaxes(0, 1)[None],
            b[:whole].reshape(count, SMALL_DEPTH, -1)[None],
        )
        if parts is None:
            return False
        np.add.reduce(parts[0], 0, out=out)
        if whole < a.shape[1]:
            self._add_terms(a[:, whole:], b[whole:], out, address, True)
        return True

    def batch(self, a: Array, b: Array) -> Array | None:
        """The products of [G, I, M, K] and [G, I, K, N], each of its own; None for what the BLAS does better, and until
        all that they need is loaded."""
        (groups, each, m, k), n = a.shape, b.shape[3]
        address = self._batch()
        if not address or m < 2 or n < 2 or not 0 < k < 2 * OWN_DEPTH or b.shape != (groups, each, k, n) or not a.size:
            return None
        step = max(1, OWN_CHUNK // (m * n * k))
        count = -(-groups * each // step)
        out = np.empty((groups, each, m, n), _F32)
        job = self._taken_job()
        try:
            described = self._describe_batch(a, b, out, step, job)
            if not described:
                return None
            helpers = chunks.width() - 1
            pool = chunks.shared_pool(address, count) if count > 1 and out.size * k >= OWN_SHARED else None
            if pool is not None and pool.share(address, described, count, helpers):
                return out
            job[self._step] = groups * each
            return out if self._run(address, described) else None
        finally:
            self._jobs.append(job)

    def _taken_job(self) -> Array:
        try:
            return self._jobs.pop()
        except IndexError:
            return np.empty(self._words, np.int64)

    def _add_terms(self, a: Array, b: Array, out: Array, address: int, add: bool) -> None:
        """Raises TypeError for what it cannot, and has done nothing then."""
        if a.size * b.shape[1] < OWN_SHARED or not self._shared(a, b, out, address, add):
            self._alone(a, b, out, add, address)

    def _shared(self, a: Array, b: Array, out: Array, address: int, add: bool) -> bool:
        (m, k), n = a.shape, b.shape[1]
        helpers = chunks.width() - 1
        wanted = max(2, min(m * n * k // OWN_CHUNK, 8 * (helpers + 1)))
        # A panel of B is copied once for each chunk of rows, so columns are cut where there are enough of them.
        by_columns = n >= min(wanted, 4 * (helpers + 1)) * _OWN_COLUMNS or n >= m
        side, least = (n, _OWN_COLUMNS) if by_columns else (m, _OWN_ROWS)
        step = -(-side // wanted)
        step = -(-step // least) * least
        count = -(-side // step)
        if count < 2 or (pool := chunks.shared_pool(address, count)) is None:
            return False
        job = self._taken_job()
        described = self._describe(a, b, out, by_columns, step, add, job)
        done = bool(described) and pool.share(address, described, count, helpers)
        self._jobs.append(job)
        return done


@functools.cache
def _own() -> _Own | None:
    from tenfold_kernels.cpu._compiled.intrinsics import MULTIPLIES

    return _Own() if MULTIPLIES else None


class _Gemm:
    """What a shared product of one element type calls, loaded in the background the first time it is asked for."""

    def __init__(self, dtype: Any, entry: int) -> None:
        self.entry = entry
        #: The address of the chunk function; 0 until it is there.
        self.chunk = 0
        self._dtype = dtype
        chunks.begin_loading(self.load)

    def load(self) -> None:
        """Blocks while Numba loads or compiles it."""
        from tenfold_kernels.cpu._compiled.gemm import chunk_address

        self.chunk = chunk_address(self._dtype)


@functools.cache
def _gemm(dtype: Any) -> _Gemm | None:
    entry = blas.gemm(dtype)
    return _Gemm(dtype, entry) if entry else None


def prepare() -> None:
    """Called when a kernel that multiplies is built: the BLAS leaves threads to us from then on."""
    if blas.gemm(_F32):
        threads.keep_blas_on_callers()


def product(a_MK: Array, b_KN: Array, out: Array | None = None) -> Any:
    """np.matmul(a, b, out=out), its large products of two matrices shared. `out` must not overlap the operands."""
    if a_MK.ndim == 2 == b_KN.ndim and (work := a_MK.size * b_KN.shape[1]) >= OWN_LEAST:
        own = _own()
        if own is not None and (address := own.chunk()) and a_MK.dtype == _F32 == b_KN.dtype:
            done = own.product(a_MK, b_KN, out, address)
            if done is not None:
                return done
        elif work >= 2 * CHUNK:
            shared = _shared(a_MK, b_KN, out)
            if shared is not None:
                return shared
    return np.matmul(a_MK, b_KN, out=out) if out is not None else np.matmul(a_MK, b_KN)


def add_product(total_MN: Array, a_MK: Array, b_KN: Array) -> Array | None:
    """total += a·b in place, by our own kernels; the total. None, and the total as it was, where they cannot."""
    if a_MK.ndim != 2 or b_KN.ndim != 2 or not a_MK.dtype == b_KN.dtype == total_MN.dtype == _F32:
        return None
    own = _own() if a_MK.size * b_KN.shape[1] >= OWN_LEAST else None
    address = own.chunk() if own is not None else 0
    return own.product(a_MK, b_KN, total_MN, address, add=True) if own is not None and address else None


def batched(a_BMK: Array, b_BKN: Array) -> Any:
    """np.matmul(a, b) of matrices, those of a large batch of floats shared; fresh. Raises what np.matmul raises."""
    if a_BMK.shape[-1] == 1 == b_BKN.shape[-2]:
        # np.matmul calls the BLAS for each matrix of the batch; the product of a column and a row needs no sums.
        return np.multiply(a_BMK, b_BKN, order="C")
    made = _own_batch(a_BMK, b_BKN)
    if made is not None:
        return made
    if a_BMK.size * b_BKN.shape[-1] < 2 * BATCH_PART or a_BMK.ndim < 3 or a_BMK.shape[:-2] != b_BKN.shape[:-2]:
        return product(a_BMK, b_BKN)
    if a_BMK.dtype != b_BKN.dtype or a_BMK.dtype not in (_F32, _F64) or a_BMK.shape[-1] != b_BKN.shape[-2]:
        return np.matmul(a_BMK, b_BKN)
    out = np.empty((*a_BMK.shape[:-1], b_BKN.shape[-1]), a_BMK.dtype)

    def part(first: int, last: int) -> None:
        # NumPy's settings belong to a thread; a helper's would warn of what the caller's leave alone.
        with np.errstate(all="ignore"):
            np.matmul(a_BMK[first:last], b_BKN[first:last], out=out[first:last])

    count = a_BMK.shape[0]
    each = a_BMK.size * b_BKN.shape[-1] // count
    in_parts(part, count, -(-BATCH_PART // each))
    return out


def _own_batch(a: Array, b: Array) -> Array | None:
    """By our own kernels; None where they cannot."""
    if not 3 <= a.ndim == b.ndim <= 4 or not a.dtype == _F32 == b.dtype or a.size * b.shape[-1] < OWN_LEAST:
        return None
    own = _own()
    if own is None:
        return None
    if a.ndim == 4:
        return own.batch(a, b)
    made = own.batch(a[None], b[None])
    return None if made is None else made[0]


def _line(matrix: Array) -> tuple[int, int] | None:
    """How cblas reads it: plain or transposed, and elements from one line to the next; None if it cannot."""
    size = matrix.itemsize
    (rows, columns), (down, across) = matrix.shape, matrix.strides
    if across == size and down % size == 0 and down >= columns * size:
        return _PLAIN, down // size
    if down == size and across % size == 0 and across >= rows * size:
        return _TRANSPOSED, across // size
    return None


def _shared(a: Array, b: Array, out: Array | None) -> Array | None:
    """None where it cannot be shared, or is not now."""
    dtype = a.dtype
    if b.dtype != dtype or dtype not in (_F32, _F64) or a.shape[1] != b.shape[0]:
        return None
    gemm = _gemm(dtype)
    if gemm is None or not gemm.chunk:
        return None
    (m, k), n = a.shape, b.shape[1]
    left, right = _line(a), _line(b)
    if left is None or right is None:
        return None
    if out is not None and (out.dtype != dtype or out.shape != (m, n) or not out.flags.c_contiguous):
        return None
    # Each chunk packs the whole of the operand that is not cut: the smaller one.
    by_columns = n > m
    side = n if by_columns else m
    helpers = chunks.width() - 1
    wanted = max(2, min(m * n * k // CHUNK, 8 * (helpers + 1)))
    step = -(-side // wanted)
    step = -(-step // _STEP) * _STEP
    count = -(-side // step)
    if count < 2 or (pool := chunks.shared_pool(gemm.chunk, count)) is None:
        return None
    if out is None:
        out = np.empty((m, n), dtype)
    at = chunks.address_of
    given = gemm.entry, left[0], right[0], m, n, k, at(a), left[1], at(b), right[1], at(out), n, by_columns, step
    arguments = np.array(given, np.int64)
    return out if pool.share(gemm.chunk, at(arguments), count, helpers) else None
