"""Einsum on a GPU: sums, diagonals, products and ellipses give what they give on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors

if TYPE_CHECKING:
    from types import SimpleNamespace

#: Equation, shapes of the operands.
CASES: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...] = (
    ("ij->ji", ((2, 3),)),
    ("ij->", ((2, 3),)),
    ("ij->i", ((2, 3),)),
    ("ji", ((2, 3),)),
    ("ii->i", ((3, 3),)),
    ("ii->", ((3, 3),)),
    ("iij->j", ((2, 2, 3),)),
    ("i->ii", ((3,),)),
    ("ab->aba", ((2, 3),)),
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("ij,kj->ki", ((2, 3), (4, 3))),
    ("ji,jk->ik", ((3, 2), (3, 4))),
    ("ij,jk->ik", ((2, 0), (0, 4))),
    ("i,j->ij", ((2,), (3,))),
    ("i,i->", ((3,), (3,))),
    ("ij,ij->ij", ((2, 3), (2, 3))),
    ("ijl,kjm->kim", ((2, 3, 2), (4, 3, 2))),
    ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))),
    ("bhqd,bkhd->bhqk", ((2, 2, 3, 2), (2, 4, 2, 2))),
    ("abcd,cad->cb", ((2, 3, 2, 2), (2, 2, 2))),
    ("...ij,...jk->...ik", ((2, 1, 2, 3), (3, 3, 2))),
    ("...ij,jk->...ik", ((2, 2, 3), (3, 2))),
    ("...i->...", ((1, 2, 3),)),
    ("i...,i...->i...", ((2, 3), (2, 1))),
    ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 4))),
    ("i,j,k->kji", ((2,), (3,), (2,))),
)


def values(shape: tuple[int, ...], seed: int, dtype: str = "float32") -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


@pytest.mark.parametrize(("equation", "shapes"), CASES, ids=[equation for equation, _ in CASES])
def test_an_equation_gives_what_it_gives_on_the_cpu(gpu: SimpleNamespace, equation: str, shapes: Any) -> None:
    gpu.same("Einsum", [values(shape, seed) for seed, shape in enumerate(shapes)], equation=equation, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_types(gpu: SimpleNamespace, dtype: str) -> None:
    gpu.same("Einsum", [values((2, 3), 0, dtype), values((3, 2), 1, dtype)], equation="ij,jk->ki", rtol=1e-2, atol=1e-2)


def test_what_does_not_fit_is_refused(gpu: SimpleNamespace) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"Expected dimension 3 at axis 0 of the input shaped"):
        gpu.run("Einsum", [values((2, 3), 0), values((2, 4), 1)], equation="ij,jk->ik")
    with pytest.raises(errors.InvalidArgumentError, match="'ijk' do not fit"):
        gpu.run("Einsum", [values((2, 3), 0)], equation="ijk->i")
    with pytest.raises(errors.InvalidArgumentError, match="it spells 2 operands, and 1 are given"):
        gpu.run("Einsum", [values((2, 3), 0)], equation="ij,jk->i")
    with pytest.raises(errors.InvalidArgumentError, match="those of the result are some operand's"):
        gpu.run("Einsum", [values((2, 3), 0)], equation="ij->k")
