"""Gradients of ops that take, set and make diagonals: one or a band, aligned to the left or the right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(47)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


NIL = np.float64(3)
PLAIN: dict[str, tuple[Any, list[np.ndarray]]] = {
    "Diag": (lambda d: apply_op("Diag", diagonal=d), [normal(2, 3)]),
    "DiagPart": (lambda x: apply_op("DiagPart", input=x), [normal(2, 3, 2, 3)]),
    "MatrixDiag": (lambda d: apply_op("MatrixDiag", diagonal=d), [normal(2, 3)]),
    "MatrixDiagPart": (lambda x: apply_op("MatrixDiagPart", input=x), [normal(2, 4, 3)]),
    "MatrixSetDiag": (lambda x, d: apply_op("MatrixSetDiag", input=x, diagonal=d), [normal(2, 4, 3), normal(2, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_the_main_diagonal(name: str) -> None:
    build, inputs = PLAIN[name]
    assert directional_error(build, inputs) < 1e-6


#: Diagonals of a matrix of 3 rows and 4 columns: numbers of them, shape of the argument.
BANDS = [(1, (2, 3)), (-1, (2, 2)), ([-1, 2], (2, 4, 3)), ([1, 3], (2, 3, 3)), ([-2, -1], (2, 2, 2))]


@pytest.mark.parametrize("align", ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT", "as in the second version"])
@pytest.mark.parametrize(("k", "shape"), BANDS)
def test_other_diagonals(k: Any, shape: tuple[int, ...], align: str) -> None:
    version, how = ("V2", {}) if align.startswith("as") else ("V3", {"align": align})

    def made(d: Any) -> Any:
        return apply_op(f"MatrixDiag{version}", diagonal=d, k=k, num_rows=3, num_cols=4, padding_value=NIL, **how)

    def taken(x: Any) -> Any:
        return apply_op(f"MatrixDiagPart{version}", input=x, k=k, padding_value=NIL, **how)

    def put(x: Any, d: Any) -> Any:
        return apply_op(f"MatrixSetDiag{version}", input=x, diagonal=d, k=k, **how)

    assert directional_error(made, [normal(*shape)]) < 1e-6
    assert directional_error(taken, [normal(2, 3, 4)]) < 1e-6
    assert directional_error(put, [normal(2, 3, 4), normal(*shape)]) < 1e-6
