"""Every op that the programs of the op census run has a kernel on a GPU, or a reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import gpu_kernels, gpu_shapes, gpu_states
from tenfold_core import opdefs
from tenfold_kernels import registry
from tenfold_kernels.cuda import absences

CENSUS = Path(__file__).parents[1] / "op_census.txt"
OPS = sorted({line.split()[1] for line in CENSUS.read_text(encoding="utf-8").splitlines() if line[0] != "#"})


@pytest.mark.parametrize("op", OPS)
def test_an_op_has_a_kernel_on_a_gpu_or_a_reason(op: str) -> None:
    written = registry.absence(op, "GPU")

    assert registry.has_kernel(op, "GPU") or written is not None, "no kernel and no reason"


def test_every_other_op_too() -> None:
    none = [op for op in opdefs.names() if not registry.has_kernel(op, "GPU")]
    without = [op for op in none if registry.absence(op, "GPU") is None]

    assert without == []


def test_an_op_with_a_kernel_has_no_reason() -> None:
    both = [op for op in opdefs.names() if registry.has_kernel(op, "GPU") and registry.absence(op, "GPU") is not None]

    assert both == []


def test_a_family_says_why_where_an_op_does_not() -> None:
    found = registry.absence("DecodePng", "GPU")

    assert found == registry.Absence("DecodePng", "GPU", absences.FAMILIES["image"])
    assert registry.absence("DecodePng", "CPU") is None
    assert registry.absence("NoSuchOp", "GPU") is None


def test_the_reasons_are_of_families_that_there_are() -> None:
    assert set(absences.FAMILIES) <= set(opdefs.FAMILIES)
    assert not {"array", "math", "nn", "random", "state"} & set(absences.FAMILIES)


def test_every_op_with_a_kernel_is_tried_in_all_its_types_and_odd_shapes() -> None:
    there = set(gpu_kernels.gpu_ops())
    alone = {op for op in there if gpu_kernels.elementwise(op)} | {"Cast"}  # need no row

    assert there - alone - {*gpu_shapes.SHAPED, *gpu_states.OPS} == set(), "a row in gpu_shapes.py or gpu_states.py"
    assert {*gpu_shapes.SHAPED, *gpu_states.OPS} - there == set(), "a row without a kernel"
