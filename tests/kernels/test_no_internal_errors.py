"""No kernel fails with an error of Python's, which a client would see as InternalError, whatever the shapes it gets.

Ops and attributes are drawn as for the comparison of static shapes (tests/interop/shape_cases.py), values by chance.
Ops whose input is a queue, a variable or another resource are left out, and what the graph passes alone make.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.interop import shape_cases

from tenfold_core import errors, opdefs
from tenfold_core.node_signature import signature
from tenfold_kernels import registry
from tenfold_kernels.resources.state import ResourceManager

#: Parts of names: what waits, has an effect outside of its outputs, or belongs to the executors.
LEFT_OUT = (
    "Abort", "Accumulator", "Barrier", "Case", "Dataset", "Enter", "Exit", "File", "For", "If", "Iterator", "MapDefun",
    "Merge", "Partitioned", "PyFunc", "Queue", "Read", "Recv", "RemoteCall", "Restore", "Save", "Send", "Session",
    "Stack", "Stage", "Summary", "Switch", "SymbolicGradient", "Table", "TensorArray", "While", "Writer",
)  # fmt: skip
OPS = [
    op
    for op in opdefs.names()
    if opdefs.get(op).inputs and not op.startswith("_") and not any(part in op for part in LEFT_OUT)
]
#: Ops are asked in so many groups, a test each.
GROUPS = 16


def value(item: Any, chance: random.Random) -> Any:
    """An array for an input, or None for a type that has none."""
    dtype = item.dtype
    if dtype.is_ref_dtype or dtype.name in ("resource", "variant") or dtype.is_carried:
        return None
    if item.value is not None:
        return np.array(item.value).astype(dtype.as_numpy_dtype)
    shape = chance.choice(([], [2], [2, 3], [1, 2, 2, 1], [0])) if item.shape is None else item.shape
    sizes = [chance.choice((0, 1, 2, 3)) if size is None else size for size in shape]
    draw = np.random.default_rng(chance.randrange(1 << 30))
    if dtype.name == "string":
        return np.full(sizes, b"ab", object)
    if dtype.is_bool or dtype.is_integer:
        low, high = (0, 2) if dtype.is_bool else (0 if dtype.is_unsigned else -2, 4)
        return draw.integers(low, high, sizes).astype(dtype.as_numpy_dtype)
    numbers = np.asarray(draw.normal(size=sizes) * 2)
    if numbers.size and chance.random() < 0.3:
        numbers.flat[0] = chance.choice((np.nan, np.inf, 0.0))
    return numbers.astype(dtype.as_numpy_dtype)


def failure(case: Any, chance: random.Random) -> str | None:
    """What is wrong with the error that a kernel raises, if it raises one."""
    inputs = [value(item, chance) for item in case.inputs]
    if any(each is None for each in inputs):
        return None
    types = signature(opdefs.get(case.op), case.attrs)
    node = registry.KernelNode(
        "n", case.op, case.attrs, types.input_types, types.output_types, "/device:CPU:0", ResourceManager()
    )
    try:
        compute = registry.lookup(node, "CPU")(node)
        with registry.quiet():
            compute(*inputs)
    except errors.OpError:
        return None
    except Exception as error:
        return f"{case}: {type(error).__name__}: {error}, of {[(each.shape, str(each.dtype)) for each in inputs]}"
    return None


@pytest.mark.parametrize("group", range(GROUPS))
def test_wrong_shapes_are_said_to_be_wrong(group: int, capfd: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(group)

    failed = [failure(case, chance) for op in OPS[group::GROUPS] for case in shape_cases.cases_of(op)]

    capfd.readouterr()  # Print writes
    assert [text for text in failed if text] == []
