"""What fits the ops of products, linear algebra, Fourier transforms and special functions. See cases.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw


Attrs = dict[str, Any]
INF, NAN = math.inf, math.nan


def _turned(turn: bool, rows: int, columns: int) -> tuple[int, int]:
    return (columns, rows) if turn else (rows, columns)


def _matmul(d: Draw, a: Attrs) -> list[Any]:
    m, k, n = d.sizes(3)
    return [_turned(a["transpose_a"], m, k), _turned(a["transpose_b"], k + d.maybe(0.05), n)]


def _batch_matmul(d: Draw, a: Attrs) -> list[Any]:
    m, k, n = d.sizes(3)
    batch = d.shape(0, 2)
    other = tuple(1 if d.maybe(0.3) else size for size in batch)[d.choice((0, 0, len(batch))) :]
    if "Tout" in a:
        a["Ta"] = a["Tb"] = a["Tout"] = d.choice((dtypes.float32, dtypes.float64, dtypes.int32))
    return [(*batch, *_turned(a["adj_x"], m, k)), (*other, *_turned(a["adj_y"], k, n))]


def _einsum(d: Draw, a: Attrs) -> list[Any]:
    equation = d.choice((
        b"ab,bc->ac", b"...ij,...jk->...ik", b"ij->ji", b"ii->i", b"ij->", b"i,j->ij", b"abc,cd->abd", b"ab,ab->a",
        b"aab->b", b"...a->...", b"a...b->b...a", b"abc->cb", b"ab,cb->ca", b"abc,bcd->ad", b"i->ii", b"ab,b->a",
        b"ab,bc->ad", b"ab", b"aB,Bc->ac", b"a,a->", b"...,...->...", b"ab,ac->abc", b"ba,bc->abc", b"i->",
        b"ab...,b->a...",
    ))  # fmt: skip
    a["equation"] = equation
    sizes = {letter: max(1, d.size()) for letter in "abcdijkB"}
    batch = d.shape(0, 2)
    items: list[Any] = []
    for term in equation.decode().split("->")[0].split(","):
        shape: list[int] = []
        at = 0
        while at < len(term):
            if term[at] == ".":
                shape += [1 if d.maybe(0.2) else size for size in batch]
                at += 3
            else:
                shape.append(sizes[term[at]])
                at += 1
        items.append(tuple(shape))
    a["N"] = len(items)
    return items


def _cross(d: Draw, a: Attrs) -> list[Any]:
    shape = (*d.shape(0, 2), 3 - d.maybe(0.1))
    return [shape, shape]


def _square(d: Draw, dtype: Any, batch: tuple[int, ...], size: int, spread: float = 3.0) -> np.ndarray:
    """Matrices with a heavy diagonal: solvable without loss."""
    made = d.floats((*batch, size, size), -1, 1) + spread * np.eye(size)
    return made + 1j * d.floats((*batch, size, size), -1, 1) if dtype.is_complex else made


def _symmetric(d: Draw, dtype: Any, batch: tuple[int, ...], size: int) -> np.ndarray:
    made = _square(d, dtype, batch, size, 4.0)
    return (made + np.conj(made.swapaxes(-1, -2))) / 2 + np.diag(np.arange(size))


def _solvable(d: Draw, a: Attrs) -> list[Any]:
    return [_square(d, a["T"], d.shape(0, 1), d.randint(0, 3))]


def _positive(d: Draw, a: Attrs) -> list[Any]:
    return [_symmetric(d, a["T"], d.shape(0, 1), d.randint(0, 4))]


def _cholesky_grad(d: Draw, a: Attrs) -> list[Any]:
    batch, size = d.shape(0, 1), d.randint(0, 3)
    low = np.linalg.cholesky(_symmetric(d, dtypes.float64, batch, size)) if size else np.zeros((*batch, 0, 0))
    return [low, np.tril(d.floats(low.shape))]


def _solve(d: Draw, a: Attrs) -> list[Any]:
    batch, size = d.shape(0, 1), d.randint(0, 3)
    return [_square(d, a["T"], batch, size), (*batch, size + d.maybe(0.05), d.size())]


def _solve_ls(d: Draw, a: Attrs) -> list[Any]:
    batch, (rows, columns) = d.shape(0, 1), d.choice(((4, 2), (3, 3), (2, 4), (1, 1)))
    made = d.floats((*batch, rows, columns)) + 2 * np.eye(rows, columns)
    return [made, d.floats((*batch, rows, max(1, d.size()))), d.choice((0.0, 0.5))]


def _tall(d: Draw, a: Attrs) -> list[Any]:
    batch, (rows, columns) = d.shape(0, 1), d.choice(((4, 2), (3, 3), (2, 4), (0, 2), (1, 1)))
    made = d.floats((*batch, rows, columns)) + 2 * np.eye(rows, columns)
    return [made + 1j * d.floats(made.shape, -1, 1) if a["T"].is_complex else made]


def _tridiagonal_product(d: Draw, a: Attrs) -> list[Any]:
    batch, size = d.shape(0, 1), d.randint(1, 4)
    return [(*batch, 1, size)] * 3 + [(*batch, size, d.size())]


def _tridiagonal_solve(d: Draw, a: Attrs) -> list[Any]:
    batch, size = d.shape(0, 1), d.randint(1, 4)
    made = d.floats((*batch, 3, size), -1, 1) + np.array([[0], [4], [0]])
    if d.maybe(0.2):
        made[..., 1, 0] = 0
    return [made, (*batch, size, d.size())]


def _waves(rank: int) -> Any:
    def make(d: Draw, a: Attrs) -> list[Any]:
        return [(*d.shape(0, 1), *(max(1, size) for size in d.sizes(rank)))]

    return make


def _real_waves(rank: int) -> Any:
    def make(d: Draw, a: Attrs) -> list[Any]:
        sizes = [d.randint(1, 5) for _ in range(rank)]
        wide = "Treal" in a and a["Treal"] is dtypes.float64
        if "Tcomplex" in a:
            a["Tcomplex"] = dtypes.complex128 if wide else dtypes.complex64
        return [(*d.shape(0, 1), *sizes), [size + d.choice((0, 0, -1, 1, 2)) for size in sizes]]

    return make


def _special(low: float, high: float, count: int) -> Any:
    def make(d: Draw, a: Attrs) -> list[Any]:
        size = d.randint(1, 5)
        items: list[Any] = [d.floats((size,), low, high) for _ in range(count)]
        if d.maybe(0.3) and not d.is_plain:
            items[d.randrange(count)].ravel()[0] = d.choice((0.0, 1.0, -1.0, INF, -INF, NAN, 2.0, low, high))
        if count > 1 and d.maybe(0.2):
            items[0] = items[0][:1]
        return items

    return make


def _polygamma(d: Draw, a: Attrs) -> list[Any]:
    return [d.ints(4, 0, 3), d.choice((0.5, 1.0, 3.0, 0.0, -0.5))]


def _betainc(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 2)
    return [d.choice((d.floats(shape, 0.1, 5), 2.0)), d.choice((d.floats(shape, 0.1, 5), 0.5)), d.floats(shape, 0, 1)]


def _clipped(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 2)
    low = d.floats(shape, -2, 0)
    return [shape, *d.choice(((-1, 1.5), (low, low + 1), (0, 2), (low, 1)))]


def _complex_of(*names: str) -> Any:
    def make(d: Draw, a: Attrs) -> list[Any]:
        wide = d.maybe(0.3)
        real, both = (dtypes.float64, dtypes.complex128) if wide else (dtypes.float32, dtypes.complex64)
        a["T"], a["Tout"] = (real, both) if names == ("real",) else (both, real)
        shape = d.shape(0, 2)
        return [shape, d.choice((shape, ()))] if names == ("real",) else [shape]

    return make


def _eig(d: Draw, a: Attrs) -> list[Any]:
    a["T"], a["Tout"] = d.choice(((dtypes.float32, dtypes.complex64), (dtypes.float64, dtypes.complex128),
                                  (dtypes.complex64, dtypes.complex64)))  # fmt: skip
    size = d.randint(0, 3)
    return [_square(d, a["T"], d.shape(0, 1), size) + np.diag(3 * np.arange(size))]


RECIPES = {
    "ClipByValue": _clipped,
    "MatMul": _matmul,
    "SparseMatMul": _matmul,
    "Einsum": _einsum,
    "Cross": _cross,
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _batch_matmul),
    **dict.fromkeys(
        (
            "MatrixDeterminant",
            "BatchMatrixDeterminant",
            "LogMatrixDeterminant",
            "MatrixInverse",
            "BatchMatrixInverse",
            "Lu",
            "MatrixSquareRoot",
            "MatrixLogarithm",
        ),
        _solvable,
    ),
    **dict.fromkeys(
        (
            "Cholesky",
            "BatchCholesky",
            "SelfAdjointEig",
            "BatchSelfAdjointEig",
            "SelfAdjointEigV2",
            "BatchSelfAdjointEigV2",
        ),
        _positive,
    ),
    **dict.fromkeys(("CholeskyGrad", "BatchCholeskyGrad"), _cholesky_grad),
    **dict.fromkeys(("MatrixSolve", "BatchMatrixSolve", "MatrixTriangularSolve", "BatchMatrixTriangularSolve"), _solve),
    **dict.fromkeys(("MatrixSolveLs", "BatchMatrixSolveLs"), _solve_ls),
    **dict.fromkeys(("Qr", "Svd", "BatchSvd"), _tall),
    "Eig": _eig,
    "TridiagonalMatMul": _tridiagonal_product,
    "TridiagonalSolve": _tridiagonal_solve,
    **{
        f"{batch}{way}FFT{rank if rank > 1 else ''}{'D' if rank > 1 else ''}": _waves(rank)
        for batch in ("", "Batch")
        for way in ("", "I")
        for rank in (1, 2, 3)
    },
    **{
        f"{way}FFT{rank if rank > 1 else ''}{'D' if rank > 1 else ''}": _real_waves(rank)
        for way in ("R", "IR")
        for rank in (1, 2, 3)
    },
    "Igamma": _special(0.1, 9, 2),
    "Igammac": _special(0.1, 9, 2),
    "IgammaGradA": _special(0.2, 9, 2),
    "Zeta": _special(1.1, 9, 2),
    "Polygamma": _polygamma,
    "Betainc": _betainc,
    "RandomGammaGrad": _special(0.3, 5, 2),
    "Complex": _complex_of("real"),
    "ComplexAbs": _complex_of("both"),
    "Real": _complex_of("both"),
    "Imag": _complex_of("both"),
    "Angle": _complex_of("both"),
}
