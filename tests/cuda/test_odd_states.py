"""Every op that changes a variable, an array or a stack of a GPU, in every type, of no, one and a prime number of rows.

What it gives and leaves is what the CPU gives and leaves. The rows and stories are in tests/support/gpu_states.py;
test_census.py fails for an op without one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support import dry_gpu, gpu_kernels, gpu_runs, gpu_states, kernel_runs
from tenfold_core import dtypes, opdefs
from tenfold_kernels import optimizer_rules

#: Dry, test_types.py compiles enough: see test_ptx.py.
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(dry_gpu.is_on(), reason="would compile for many minutes")]

LENGTHS, MANY = (0, 1, 7), 61


def check(found: Any, wanted: Any, dtype: Any, what: str) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), what
    close = gpu_kernels.CLOSE.get(dtype.name if dtype else "bool", 1e-9)
    if wanted.dtype.kind in "biuO":
        np.testing.assert_array_equal(found, wanted, err_msg=what)
    else:
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(found.astype(wide), wanted.astype(wide), rtol=close, atol=close, err_msg=what)


def cases(op: str) -> list[tuple[Any, int]]:
    """(type, n) of what is run: many only in the first type and float32."""
    types = [dtype for dtype, _ in gpu_kernels.types_of(op)]
    assert types
    return [
        (dtype, n)
        for dtype in types
        for n in (LENGTHS if dtype not in (types[0], dtypes.float32) else (*LENGTHS, MANY))
    ]


@pytest.mark.parametrize("op", gpu_states.VARIABLES)
def test_an_op_on_a_variable_leaves_what_the_cpu_leaves(op: str) -> None:
    for dtype, n in cases(op):
        inputs = gpu_states.VARIABLES[op](gpu_kernels.maker(op, dtype or dtypes.float32), n)
        names = {attr.name for attr in opdefs.get(op).attrs}
        attrs = {"dtype": dtype} if "dtype" in names and dtype else {}

        for found, wanted in gpu_states.on_variables(op, inputs, (0,), **attrs):
            check(found, wanted, dtype, f"{op} of {n} rows of {dtype}")


@pytest.mark.parametrize("op", optimizer_rules.OPS)
def test_an_update_leaves_what_the_cpu_leaves(op: str) -> None:
    for dtype, n in cases(op):
        inputs, places = gpu_states.update(op, gpu_kernels.maker(op, dtype), n)

        for found, wanted in gpu_states.on_variables(op, inputs, places):
            check(found, wanted, dtype, f"{op} of {n} rows of {dtype}")


@pytest.mark.parametrize("name", gpu_states.STORIES)
def test_a_story_is_the_cpus(name: str) -> None:
    for dtype, n in cases(gpu_states.STORIES[name][1][0]):
        if name.startswith("summed") and dtype == dtypes.bool_:
            continue  # has no sum, see test_data_flow.py
        there, here = (
            gpu_states.tell(name, device, dtype, gpu_kernels.maker(name, dtype), n)
            for device in (gpu_runs.GPU, kernel_runs.DEVICE)
        )

        for found, wanted in zip(there, here, strict=True):
            check(found, wanted, dtype, f"{name} of {n} rows of {dtype}")
