"""Updates of small variables on a GPU that run as one, without a GPU: the memory of nodes is made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.parts import PartBuilder
from tenfold_compiler.fuse import updates
from tenfold_compiler.fuse.levels import Levels
from tenfold_compiler.fuse.updates import join_updates, updates_of
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import CONSTANT_OPS
from tenfold_kernels.cuda.fused_updates import DeviceUpdates
from tenfold_kernels.resources.state import ResourceManager

TASK = "/job:localhost/replica:0/task:0"
GPU, GPU1 = f"{TASK}/device:GPU:0", f"{TASK}/device:GPU:1"
F32 = dtypes.float32


class Updates(PartBuilder):
    """Updates of variables by gradients g0, g1, …, which are fed."""

    def __init__(self) -> None:
        super().__init__(GPU)
        self.feed("rate")
        self.on_host: set[str] = set()

    def update(self, number: int, shape: Any = (4,), after: str = "", rate: str = "rate", **attrs: Any) -> None:
        self.node("VariableV2", f"v{number}", dtype=F32, shape=list(shape))
        self.feed(f"g{number}")
        inputs = [f"v{number}", rate, f"g{number}", *([f"^{after}"] if after else [])]
        self.node("ApplyGradientDescent", f"u{number}", inputs, T=F32, **attrs)

    def levels(self, places: dict[str, int] | None = None) -> tuple[Levels, dict[str, Any]]:
        part = read_part(self.graph_def, TASK, 1000)
        for node in part.nodes:
            if node.op.startswith("Apply") and node.name not in self.on_host:
                node.memory = (True, False, True), (True,)
        constants: Any = {node.index: () for node in part.nodes if node.op in CONSTANT_OPS}
        regions = [(places or {}).get(node.name, 0) for node in part.nodes]
        program: Any = SimpleNamespace(part=part, region_of=regions, constants=constants, flow=None)
        return Levels(program, [], {}), {node.name: node for node in part.nodes}

    def joined(self, places: dict[str, int] | None = None) -> list[Any]:
        """The schedule's updates: names, and lists of them that run as one."""
        levels, _ = self.levels(places)
        found: list[Any] = []
        for item in join_updates(levels.part.nodes, levels):
            names = [node.name for node in item] if isinstance(item, list) else item.name
            if isinstance(names, list) or names.startswith("u"):
                found.append(names)
        return found


def test_updates_of_one_kind_run_as_one_when_nothing_else_is_left() -> None:
    part = Updates()
    for number in range(3):
        part.update(number)
    part.feed("late")
    levels, _ = part.levels()
    order = join_updates(levels.part.nodes, levels)
    assert [node.name for node in cast("Any", order[-1])] == ["u0", "u1", "u2"]
    assert len(order) == len(levels.part.nodes) - 2
    assert part.joined() == [["u0", "u1", "u2"]]


def test_one_update_alone_leaves_the_order_as_it_is() -> None:
    part = Updates()
    part.update(0)
    levels, _ = part.levels()
    assert join_updates(levels.part.nodes, levels) == levels.part.nodes


def test_updates_that_wait_for_others_run_later() -> None:
    part = Updates()
    part.update(0)
    part.update(1, after="u0")
    part.update(2)
    part.update(3, after="u1")
    assert part.joined() == [["u0", "u2"], "u1", "u3"]


@pytest.mark.parametrize(
    ("shape", "joined"), [((256, 256), True), ((256, 257), False), ((), True)], ids=["just", "over", "a scalar"]
)
def test_only_small_variables(shape: Any, joined: bool) -> None:
    part = Updates()
    part.update(0, shape)
    part.update(1, shape)
    assert part.joined() == ([["u0", "u1"]] if joined else ["u0", "u1"])


def test_what_updates_of_one_launch_have_in_common() -> None:
    part = Updates()
    part.feed("other_rate")
    part.update(0)
    part.update(1, rate="other_rate")
    assert part.joined() == ["u0", "u1"]

    part = Updates()
    part.update(0)
    part.update(1)
    assert part.joined({"u0": 0, "u1": 1}) == ["u0", "u1"], "other places"
    part.on_host = {"u1"}
    assert part.joined() == ["u0", "u1"]

    part = Updates()
    part.update(0)
    part.device = GPU1
    part.update(1)
    assert part.joined() == ["u0", "u1"], "other devices"


def test_flags_tell_updates_apart_but_not_that_of_a_lock() -> None:
    part = Updates()
    part.update(0, use_locking=True)
    part.update(1, use_locking=False)
    assert part.joined() == [["u0", "u1"]]


def test_a_gradient_that_is_read_from_a_variable_is_launched_alone() -> None:
    part = Updates()
    part.node("VariableV2", "g", dtype=F32, shape=[4])
    for number in range(2):
        part.node("VariableV2", f"v{number}", dtype=F32, shape=[4])
        part.node("ApplyGradientDescent", f"u{number}", [f"v{number}", "rate", "g"], T=F32)
    assert part.joined() == ["u0", "u1"]


def test_rates_that_are_read_from_one_resource_are_one() -> None:
    part = Updates()
    part.node("VarHandleOp", "handle", dtype=F32, shape=[])
    for number in range(2):
        part.node("ReadVariableOp", f"rate{number}", ["handle"], dtype=F32)
        part.update(number, rate=f"rate{number}")
    assert part.joined() == [["u0", "u1"]]


@pytest.mark.parametrize(("count", "sizes"), [(4, [2, 2]), (5, [2, 2, 1]), (3, [2, 1])])
def test_a_launch_takes_so_many(count: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "MOST", 2)
    part = Updates()
    for number in range(count):
        part.update(number)
    found = part.joined()
    assert [len(item) if isinstance(item, list) else 1 for item in found] == sizes


def test_updates_in_a_branch_are_launched_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Levels, "always_runs", lambda levels, node: node.name != "u1")
    part = Updates()
    for number in range(3):
        part.update(number)
    assert part.joined() == ["u1", ["u0", "u2"]]


def test_what_runs_them_knows_its_operands_and_results() -> None:
    part = Updates()
    part.update(0)
    part.update(1)
    part.node("Identity", "read", ["u1"], T=F32)
    part.node("Neg", "reader", ["read"], T=F32)
    levels, at = part.levels()
    resources = ResourceManager()
    run, inputs, outputs = updates_of([at["u0"], at["u1"]], levels, resources)
    assert isinstance(run, DeviceUpdates)
    names = [levels.part.nodes[index].name for index, _ in inputs]
    assert names == ["v0", "rate", "g0", "v1", "g1"]
    assert [(each.variables, each.gradient, each.scalars) for each in run.members] == [
        ((0,), 2, ((1, False),)),
        ((3,), 4, ((1, False),)),
    ]
    assert [each.node.name for each in run.members] == ["u0", "u1"]
    assert run.members[0].node.resources is resources
    assert run.members[0].node.device == GPU
    assert outputs == [(at["u1"].index, 0)]
    assert run.outputs == (1,)
