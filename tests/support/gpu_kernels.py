"""The kernels that there are for a GPU, by what the registry says: ops, types, and values of them. For tests/cuda/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, opdefs
from tenfold_kernels import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_core.dtypes import DType

#: Attributes that say the type in question, the first of a row that there is.
KINDS = ("T", "dtype", "Tparams", "elem_type", "SrcT", "Tout")
#: How far sums in another order are apart, by type.
CLOSE = {"float16": 5e-3, "bfloat16": 3e-2, "float32": 3e-5, "complex64": 3e-5}
#: Where a function of one number has values, if not between nothing and one.
DOMAINS = {"Acosh": (1.1, 3.0)}


def maker(op: str, dtype: DType | None) -> Any:
    """What makes values of the type, others at each call; those of an op of one type are its own."""
    random = np.random.default_rng(len(op))
    if dtype is None:
        dtype = dtypes.float32 if op.startswith("InTop") else dtypes.bool_
    kind: Any = dtype.as_numpy_dtype

    def v(*shape: int) -> Any:
        if dtype == dtypes.bool_ or np.dtype(kind).kind in "iu":
            return random.integers(*((0, 2) if dtype == dtypes.bool_ else (1, 6)), shape).astype(kind)
        numbers = random.uniform(*DOMAINS.get(op, (0.1, 0.9)), shape)
        if np.dtype(kind).kind == "c":
            numbers = numbers + 1j * random.uniform(0.1, 0.9, shape)
        return np.array(numbers).astype(kind)

    return v


def gpu_rows(op: str) -> list[Any]:
    """The op's rows for a GPU that leave something in the GPU's memory."""
    return [row for row in registry._rows_of(op, "GPU") if registry.EVERYTHING not in row.host]


def gpu_ops() -> list[str]:
    """Every op with such a row."""
    return [op for op in sorted(opdefs.names()) if gpu_rows(op)]


def types_of(op: str) -> Iterator[tuple[DType | None, dict[str, Any]]]:
    """(type, the attributes that go with it) for every type that a kernel of the op on a GPU takes; None where the
    op's inputs have one type only.
    """
    allowed = {attr.name: attr.allowed for attr in opdefs.get(op).attrs}
    for row in gpu_rows(op):
        kind = next((name for name in KINDS if name in row.types and name in allowed), None)
        others = {name: min(types, key=str) for name, types in row.types.items() if name == "Tout" != kind}
        for dtype in sorted(row.types[kind], key=str) if kind else [None]:
            if dtype is None or not allowed[kind] or dtype in allowed[kind]:
                yield dtype, others


def type_attrs(op: str, dtype: DType | None) -> dict[str, Any]:
    """The attribute that says the type, where the inputs do not."""
    kind = next((name for row in gpu_rows(op) for name in KINDS if name in row.types), None)
    given = {name for each in opdefs.get(op).inputs for name in (each.type_attr, each.type_list_attr)}
    return {} if kind is None or kind in given else {kind: dtype}


def inputs_of(op: str) -> tuple[Any, ...]:
    return opdefs.get(op).inputs


def elementwise(op: str) -> bool:
    """Whether all inputs of the op are of the type in question and have one shape."""
    inputs = opdefs.get(op).inputs
    rows = gpu_rows(op)
    same = all(each.type_attr == "T" and not each.number_attr and not each.is_ref for each in inputs)
    logical = op.startswith("Logical")
    return bool(rows and inputs) and (same or logical) and rows[0].builder.__module__.endswith((".math", ".nn"))


def other_types(op: str) -> Iterator[tuple[str, DType]]:
    """(attribute, type) for what else has a type: indices, axes, sizes, outputs, in every one that a GPU takes."""
    rows = gpu_rows(op)
    known = {next((name for name in KINDS if name in row.types), None) for row in rows} | {"Tout", "type"}
    for attr in opdefs.get(op).attrs:
        if attr.type == "type" and attr.name not in known:
            for dtype in attr.allowed:
                if any(dtype in row.types.get(attr.name, attr.allowed) for row in rows):
                    yield attr.name, dtype


def converted(op: str, inputs: list[Any], attr: str, dtype: DType) -> list[Any]:
    """The inputs, those of the type that the attribute says in another."""
    found: list[Any] = []
    for each in opdefs.get(op).inputs:
        count = 1
        if each.is_list:
            count = len(inputs) - len(opdefs.get(op).inputs) + 1
        part = inputs[len(found) : len(found) + count]
        found += [value.astype(dtype.as_numpy_dtype) if each.type_attr == attr else value for value in part]
    return found
