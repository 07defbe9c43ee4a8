"""Elementwise ops on a GPU give what they give on the CPU, of every type, of odd shapes, broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors, opdefs
from tenfold_kernels import registry
from tenfold_kernels.cuda.loop_text import EXTRA, WHOLE
from tenfold_kernels.fusion import expressions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import SimpleNamespace

TYPES = ("float32", "float64", "int8", "int16", "int64", "uint8", "uint16", "bool")
SHAPES = ((), (0,), (1,), (7,), (3, 5))
BROADCAST = (((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((5,), ()), ((1, 3, 1, 2), (4, 1, 2, 1)), ((0, 3), (3,)))


def values(shape: tuple[int, ...], dtype: str, seed: int, op: str) -> Any:
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        low, high = {"Acosh": (1.0, 3.0)}.get(op, (-0.9, 0.9) if op in ("Asin", "Acos", "Atanh") else (-3.0, 3.0))
        if op in ("Log", "Sqrt", "Rsqrt", "Pow", "Lgamma", "Log1p", "SqrtGrad", "RsqrtGrad", "Xlogy"):
            low, high = 0.1, 3.0
        return random.uniform(low, high, shape).astype(dtype)
    return random.integers(1, 7, shape).astype(dtype)


def rows(types: Sequence[str] = TYPES) -> list[tuple[str, str]]:
    """(op, type) of what loops there are on a GPU."""
    found = []
    for op in sorted({*expressions.OPS, *EXTRA, *WHOLE} - {"Cast", "Select", "SelectV2", "AddN", "AccumulateNV2"}):
        if opdefs.has(op) and opdefs.family_of(op) == "math":
            has_types = any(attr.name == "T" for attr in opdefs.get(op).attrs)
            for name in types if has_types else ("bool",):
                if registry.memory_of(op, {"T": dtypes.as_dtype(name)}, "GPU") is not None:
                    found.append((op, name))
    return found


@pytest.mark.parametrize(("op", "dtype"), rows())
def test_an_op_gives_what_the_cpu_gives(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    count = len(opdefs.get(op).inputs)
    for shape in SHAPES:
        gpu.same(op, [values(shape, dtype, seed, op) for seed in range(count)], rtol=3e-5)


@pytest.mark.thorough
@pytest.mark.parametrize(("op", "dtype"), [row for row in rows(("float16", "bfloat16")) if row[1] != "bool"])
def test_an_op_of_narrow_floats_gives_what_the_cpu_gives(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    kind, rtol = dtypes.as_dtype(dtype).as_numpy_dtype, 2e-3 if dtype == "float16" else 1e-2
    for shape in SHAPES:
        inputs = [values(shape, "float32", seed, op).astype(kind) for seed in range(len(opdefs.get(op).inputs))]
        gpu.same(op, inputs, rtol=rtol, atol=rtol)


#: What arithmetic has its own rules for.
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5, 2.0, 3e38)


@pytest.mark.thorough
@pytest.mark.parametrize("op", sorted({op for op, dtype in rows() if dtype == "float32"}))
def test_what_is_not_finite_is_as_on_the_cpu(gpu: SimpleNamespace, op: str) -> None:
    special = np.array(SPECIAL, np.float32)
    count = len(opdefs.get(op).inputs)

    with np.errstate(all="ignore"):
        gpu.same(op, [np.ascontiguousarray(each).reshape(-1) for each in np.meshgrid(*[special] * count)], rtol=3e-5)


@pytest.mark.parametrize("shapes", BROADCAST, ids=str)
@pytest.mark.parametrize("op", ["Add", "Mul", "Less"])
def test_operands_are_broadcast(gpu: SimpleNamespace, op: str, shapes: Any) -> None:
    gpu.same(op, [values(shape, "float32", seed, op) for seed, shape in enumerate(shapes)])


@pytest.mark.parametrize("dtype", ["int64", pytest.param("int8", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("op", WHOLE)
def test_integers_are_divided_as_on_the_cpu(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    x = np.array([7, -7, 7, -7, 6, -6, 0, 100], dtype)
    y = np.array([2, 2, -2, -2, 3, -3, -5, -1], dtype)

    gpu.same(op, [x, y])
    assert gpu.run(op, [x, np.zeros(1, dtype)]).tolist() == [0] * 8


@pytest.mark.parametrize("op", ["Equal", "NotEqual"])
def test_shapes_that_do_not_fit_may_be_unequal(gpu: SimpleNamespace, op: str) -> None:
    x, y = np.array([1, 2, 3], np.float32), np.array([1, 2], np.float32)

    gpu.same(op, [x, y], incompatible_shape_error=False)
    gpu.same(op, [x[:, None], y], incompatible_shape_error=False)
    with pytest.raises(errors.InvalidArgumentError, match=r"Incompatible shapes: \[3\] vs. \[2\]"):
        gpu.run(op, [x, y])


@pytest.mark.parametrize("op", [op for op in sorted(expressions.NO_BROADCAST) if opdefs.family_of(op) == "math"
                                and op.endswith("Grad")])  # fmt: skip
def test_a_gradient_may_have_another_shape_of_as_many_elements(gpu: SimpleNamespace, op: str) -> None:
    y, dy = values((2, 3), "float32", 0, op), values((3, 2), "float32", 1, op)

    gpu.same(op, [y, dy], rtol=3e-5)
    with pytest.raises(errors.InvalidArgumentError, match="must have same number of elements, got 6 and 4"):
        gpu.run(op, [y, dy[:2]])
