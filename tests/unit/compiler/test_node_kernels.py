"""Which kernel a node gets, and the values of constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import TASK
from tenfold_compiler.node_kernels import Target
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes, errors, tensor_util
from tenfold_kernels import registry
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_compiler.part.part_graph import PartGraph
    from tenfold_kernels.registry import KernelNode

F32 = dtypes.float32


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[tuple[KernelNode, str]]:
    """What was looked up, and for which device type; each look-up builds a kernel of its own."""
    found: list[tuple[KernelNode, str]] = []

    def lookup(node: KernelNode, device_type: str) -> Callable[[KernelNode], Callable[..., Any]]:
        found.append((node, device_type))
        return lambda node: lambda *args: node.name

    monkeypatch.setattr(registry, "lookup", lookup)
    return found


def part_of(*nodes: tuple[str, str], device: str = "") -> PartGraph:
    """A random node for each name, or a Neg of one."""
    part = PartBuilder()
    part.const("shape", np.array([2], np.int32))
    for op, name in nodes:
        if op == "RandomUniform":
            part.node(op, name, ["shape"], T=dtypes.int32, dtype=F32)
        else:
            part.node(op, name, ["shape"], T=dtypes.int32)
    for node in part.graph_def.node:
        node.device = device
    return read_part(part.graph_def, TASK, 100)


def by_name(part: PartGraph, name: str) -> Any:
    return next(node for node in part.nodes if node.name == name)


def test_a_kernel_is_built_for_what_the_target_has(built: list[tuple[KernelNode, str]]) -> None:
    functions, resources = cast("Any", object()), ResourceManager()
    target = Target(TASK, resources, 10, functions=functions, is_own_session=True)
    node = by_name(part_of(("Neg", "y"), device=f"{TASK}/device:GPU:1"), "y")

    target.kernel(node)
    target.kernel(node, "CPU")

    asked, device_type = built[0]
    assert (asked.name, asked.op, asked.attrs) == ("y", "Neg", node.attrs)
    assert (asked.input_types, asked.output_types) == ((dtypes.int32,), (dtypes.int32,))
    assert (asked.device, device_type) == (f"{TASK}/device:GPU:1", "GPU")
    assert asked.resources is resources
    assert asked.functions is functions
    assert asked.is_own_session
    assert built[1][1] == "CPU"


def test_a_node_without_a_device_is_on_the_tasks_own_cpu(built: list[tuple[KernelNode, str]]) -> None:
    node = by_name(part_of(("Neg", "y")), "y")
    node.node_def.device = ""

    Target(TASK, ResourceManager(), 10).kernel(node)

    assert (built[0][0].device, built[0][1]) == (f"{TASK}/device:CPU:0", "CPU")
    assert not built[0][0].is_own_session


def test_a_session_keeps_the_kernels_of_its_stateful_ops_by_name_op_and_device(
    built: list[tuple[KernelNode, str]],
) -> None:
    kept: dict[tuple[str, str, str], Any] = {}
    target = Target(TASK, ResourceManager(), 10, stateful=kept)
    part, again = (part_of(("RandomUniform", "r"), ("RandomUniform", "s"), ("Neg", "y")) for _ in range(2))

    first, second, plain = (target.kernel(by_name(part, name)) for name in "rsy")

    assert target.kernel(by_name(again, "r")) is first
    assert target.kernel(by_name(again, "s")) is second
    assert first is not second
    assert target.kernel(by_name(again, "y")) is not plain
    assert set(kept.values()) == {first, second}
    elsewhere = by_name(part_of(("RandomUniform", "r"), device=f"{TASK}/device:CPU:1"), "r")
    assert target.kernel(elsewhere) is not first


def test_without_a_session_each_part_has_kernels_of_its_own(built: list[tuple[KernelNode, str]]) -> None:
    target = Target(TASK, ResourceManager(), 10)
    node = by_name(part_of(("RandomUniform", "r")), "r")

    assert target.kernel(node) is not target.kernel(node)


def test_two_graphs_that_build_at_once_use_the_first_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[str, str, str], Any] = {}
    part = part_of(("RandomUniform", "r"))

    def build(node: KernelNode) -> str:
        kept[node.name, node.op, node.device] = "the other's"
        return "ours"

    monkeypatch.setattr(registry, "lookup", lambda node, device_type: build)

    assert Target(TASK, ResourceManager(), 10, stateful=kept).kernel(by_name(part, "r")) == "the other's"


def test_constants_are_read_only_and_no_session_keeps_them() -> None:
    kept: dict[tuple[str, str, str], Any] = {}
    part = part_of(("Neg", "y"))

    ((value,),) = Target(TASK, ResourceManager(), 10, stateful=kept).constants(part).values()

    np.testing.assert_array_equal(value, [2])
    assert not value.flags.writeable
    assert not kept


def test_a_number_that_fills_nothing_but_variables_is_held_once() -> None:
    part = PartBuilder()
    half = tensor_util.make_tensor_proto(0.5, F32, [256, 256])
    for name in ("first", "read", "asked"):
        part.node("Const", name, value=half, dtype=F32)
        part.node("VariableV2", f"{name}_variable", shape=[256, 256], dtype=F32)
        part.node("Assign", f"{name}_assign", [f"{name}_variable", name], T=F32)
    part.node("Neg", "neg", ["read"], T=F32)
    part.fetch("asked")

    graph = read_part(part.graph_def, TASK, 100)
    constants = Target(TASK, ResourceManager(), 10).constants(graph)

    first, read, asked = (constants[by_name(graph, name).index][0] for name in ("first", "read", "asked"))
    assert (first.strides, first.shape) == ((0, 0), (256, 256))
    for value in (first, read, asked):
        np.testing.assert_array_equal(value, np.full([256, 256], 0.5, np.float32))
        assert not value.flags.writeable
    assert read.flags.c_contiguous
    assert asked.flags.c_contiguous


def test_a_kernel_that_cannot_be_had_names_its_node() -> None:
    node = by_name(part_of(("Neg", "y")), "y")

    with pytest.raises(errors.OpError) as caught:
        Target(TASK, ResourceManager(), 10).kernel(node, "XPU")

    assert caught.value.node_name == "y"
