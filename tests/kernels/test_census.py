"""Every op that the programs of the op census run has a kernel of every type that they use."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenfold.gradients import registry as gradients
from tenfold_core import dtypes, opdefs
from tenfold_kernels import families, registry
from tenfold_kernels.resources.state import ResourceManager


@dataclass(frozen=True, slots=True)
class Used:
    tier: int
    op: str
    #: Attr → types.
    types: dict[str, list[dtypes.DType]]


def census() -> list[Used]:
    lines = Path(__file__).parents[1].joinpath("op_census.txt").read_text(encoding="utf-8").splitlines()
    rows = []
    for line in lines:
        if not line.startswith("#"):
            tier, op, *attrs = line.split()
            pairs = (attr.split("=") for attr in attrs)
            types = {attr: [dtypes.as_dtype(name) for name in names.split(",")] for attr, names in pairs}
            rows.append(Used(int(tier), op, types))
    return rows


CENSUS = census()


@pytest.mark.parametrize("used", CENSUS, ids=lambda used: f"{used.op}-tier{used.tier}")
def test_an_op_that_programs_run_has_a_kernel_of_every_type(used: Used) -> None:
    placed = registry.devices_with_kernel(used.op, {})
    assert "CPU" in placed, f"tier {used.tier}: {registry.absence(used.op, 'CPU') or 'no kernel, and no reason'}"
    if not registry.has_kernel(used.op, "CPU"):
        return  # the executor's own

    for attr, types in used.types.items():
        for dtype in types:
            device = "/job:a/replica:0/task:0/device:CPU:0"
            node = registry.KernelNode("n", used.op, {attr: dtype}, (), (), device, ResourceManager())
            assert registry.lookup(node, "CPU"), (attr, dtype)


def test_kernels_are_found_whichever_family_is_asked_first() -> None:
    for device_type in families.FOLDERS:
        for modules in families.modules_of(device_type).values():
            for module in modules:
                importlib.import_module(module)

    hidden = [
        f"{op}: {row.builder.__module__} is not of the family {opdefs.family_of(op)}"
        for (op, device), rows in registry._rows.items()
        if opdefs.has(op)  # not the ops that other tests make up
        for row in rows
        if row.builder.__module__ not in families.modules_of(device)[opdefs.family_of(op)]
    ]

    assert hidden == []


def test_every_family_has_a_test_of_its_name() -> None:
    tests = [path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")]

    assert set(opdefs.FAMILIES) - {opdefs.family_of_module(test) for test in tests} == set()


def test_rules_of_gradients_lie_in_their_family() -> None:
    gradients.ensure_loaded()
    strays = [
        f"{op}: {row.rule.function.__module__} is not of the family {opdefs.family_of(op)}"
        for op, row in gradients._rows.items()
        if row.rule is not None and opdefs.has(op)
        if row.rule.function.__module__ != gradients.__name__  # a row that says that the rule is not written yet
        if opdefs.family_of_module(row.rule.function.__module__.rpartition(".")[2]) != opdefs.family_of(op)
    ]

    assert strays == []
