"""Which stretches of a schedule a GPU can record, without a GPU: the memory of nodes is made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.parts import PartBuilder
from tenfold_compiler.fuse.captures import LEAST, Stretch, device_of, is_nothing, looks_into, stretches
from tenfold_compiler.fuse.fusion import Group
from tenfold_compiler.fuse.levels import Levels
from tenfold_compiler.fuse.nodes import nodes_of_shapes
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import CONSTANT_OPS
from tenfold_kernels import registry
from tenfold_kernels.cuda.fused_runs import DeviceRun
from tenfold_kernels.cuda.fused_updates import DeviceUpdates
from tenfold_kernels.fusion.remembered import Remembered

TASK = "/job:localhost/replica:0/task:0"
GPU, GPU1 = f"{TASK}/device:GPU:0", f"{TASK}/device:GPU:1"
F32, I32 = dtypes.float32, dtypes.int32


@pytest.fixture(autouse=True)
def _replays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "may_replay", lambda op, attrs, device: op != "MatMul")


class Schedule(PartBuilder):
    """A part on one GPU but for what stands on the host."""

    def __init__(self) -> None:
        super().__init__(GPU)
        self.on_host: set[str] = set()
        self.ops: dict[str, str] = {}
        self.devices: dict[str, str] = {}

    def neg(self, name: str, *inputs: str, host: bool = False, gpu: str = GPU) -> None:
        self.node("Neg", name, inputs, T=F32)
        self.devices[name] = gpu
        if host:
            self.on_host.add(name)

    def copy(self, name: str, source: str, op: str) -> None:
        self.node("Neg", name, [source], T=F32)
        self.on_host.add(name)
        self.ops[name] = op

    def levels(self) -> tuple[Levels, dict[str, Any]]:
        part = read_part(self.graph_def, TASK, 1000)
        for node in part.nodes:
            node.node_def.device = self.devices.get(node.name, node.node_def.device)
            if node.op not in ("_Recv", "_Send", "Const", "Identity", "NoOp") and node.name not in self.on_host:
                node.memory = (True,) * len(node.inputs), (node.op != "Shape",) * len(node.output_types)
            node.op = self.ops.get(node.name, node.op)
        constants: Any = {node.index: () for node in part.nodes if node.op in CONSTANT_OPS}
        program: Any = SimpleNamespace(part=part, region_of=[0] * len(part.nodes), constants=constants, flow=None)
        levels = Levels(program, [], {}, nodes_of_shapes(part, constants))
        return levels, {node.name: node for node in part.nodes}

    def written(self) -> list[Any]:
        """The schedule: names, and lists of them for stretches."""
        levels, _ = self.levels()
        found = stretches(levels.part.nodes, levels)
        return [
            [node.name for node in item.items if not isinstance(node, Group)]
            if isinstance(item, Stretch)
            else cast("Any", item).name
            for item in found
        ]


def small() -> Schedule:
    part = Schedule()
    part.feed("x")
    part.copy("in", "x", "_CopyToDevice")
    return part


def test_what_runs_on_a_gpu_is_one_stretch() -> None:
    part = small()
    for number, source in enumerate(("in", "n0", "n1")):
        part.neg(f"n{number}", source)
    part.copy("out", "n2", "_CopyToHost")
    part.neg("last", "out", host=True)
    assert part.written() == ["x", "in", ["n0", "n1", "n2"], "out", "last"]


def test_the_host_runs_first_and_what_waits_for_the_gpu_last() -> None:
    part = small()
    part.neg("a", "in")
    part.copy("out", "a", "_CopyToHost")
    part.neg("b", "in")
    part.neg("host", "x", host=True)
    part.neg("c", "b")
    assert part.written() == ["x", "in", "host", ["a", "b", "c"], "out"]


def test_what_costs_nothing_ends_no_stretch() -> None:
    part = small()
    part.neg("a", "in")
    part.node("Identity", "alias", ["a"], T=F32)
    part.node("NoOp", "order", ["^a"])
    part.neg("b", "alias", "^order")
    assert part.written() == ["x", "in", "order", "alias", ["a", "b"]]


def test_the_host_s_work_between_ends_a_stretch() -> None:
    part = small()
    part.neg("a", "in")
    part.neg("between", "a", host=True)
    part.neg("b", "in", "^between")
    assert part.written() == ["x", "in", ["a"], "between", ["b"]]


def test_each_gpu_has_its_stretches() -> None:
    part = small()
    part.neg("a", "in")
    part.neg("other", "in", gpu=GPU1)
    part.neg("b", "a")
    part.neg("c", "other", gpu=GPU1)
    assert part.written() == ["x", "in", ["a", "b"], ["other", "c"]]


def test_what_is_computed_of_shapes_is_recorded_too() -> None:
    part = small()
    part.neg("a", "in")
    part.node("Shape", "shape", ["a"], T=F32, out_type=I32)
    part.on_host.add("shape")
    part.neg("b", "a", "^shape")
    levels, at = part.levels()
    assert looks_into(Stretch(GPU, [at["a"]]), at["shape"], levels)
    assert not looks_into(Stretch(GPU, [at["b"]]), at["shape"], levels)
    assert not looks_into(Stretch(GPU, [at["a"]]), at["b"], levels)
    assert part.written() == ["x", "in", ["a", "shape", "b"]]


def group(members: list[Any], run: Any) -> Group:
    return Group(0, members, run, [], [], cast("Any", None))


def test_the_gpu_of_an_item() -> None:
    part = small()
    part.neg("a", "in")
    part.neg("host", "x", host=True)
    part.node("VariableV2", "v", dtype=F32, shape=[2])
    part.node("Identity", "read", ["v"], T=F32)
    part.node("VariableV2", "w", dtype=F32, shape=[2])
    part.on_host.add("w")
    part.node("Identity", "read_host", ["w"], T=F32)
    part.node("MatMul", "product", ["in", "in"], T=F32)
    part.node("Shape", "shape", ["a"], T=F32, out_type=I32)
    part.on_host.add("shape")
    part.copy("sizes", "a", "_CopyToDevice")
    part.copy("begin", "a", "_BeginCopyToHost")
    part.copy("out", "a", "_CopyToHost")
    part.neg("blocks", "a")
    part.neg("of_host", "host")
    part.neg("to_host", "a")
    levels, at = part.levels()
    at["blocks"].blocking = True
    at["of_host"].memory = (False,), (True,)
    at["to_host"].memory = (True,), (False,)
    at["sizes"].inputs = [(at["shape"].index, 0)]
    wanted = {
        "a": GPU, "host": "", "v": GPU, "read": GPU, "read_host": "", "product": "", "sizes": GPU, "in": "",
        "begin": GPU, "out": "", "blocks": "", "of_host": "", "to_host": "", "x": "",
    }  # fmt: skip
    assert {name: device_of(at[name], levels) for name in wanted} == wanted
    at["of_host"].inputs = [(at["shape"].index, 0)]
    assert device_of(at["of_host"], levels) == GPU, "what shapes say is as good as constant"
    at["sizes"].inputs = []
    assert device_of(at["sizes"], levels) == ""

    run: Any = DeviceRun(cast("Any", None))
    updates: Any = DeviceUpdates((), ())
    assert device_of(group([at["host"]], run), levels) == at["host"].node_def.device
    assert device_of(group([at["a"], at["v"]], updates), levels) == GPU
    assert device_of(group([at["a"], at["host"]], updates), levels) == ""
    assert device_of(group([at["a"]], Remembered(1, 1)), levels) == ""


def test_nothing_is_written_for_orders_constants_and_aliases() -> None:
    part = small()
    part.node("NoOp", "order", ["^x"])
    part.const("c", 1.0)
    part.node("Identity", "alias", ["x"], T=F32)
    part.neg("n", "in")
    levels, at = part.levels()
    assert [name for name in ("order", "c", "alias", "n", "x") if is_nothing(at[name], levels)] == [
        "order",
        "c",
        "alias",
    ]
    assert not is_nothing(group([at["c"]], Remembered(1, 1)), levels)


@pytest.mark.parametrize(("count", "worth"), [(LEAST - 1, False), (LEAST, True)])
def test_launches_are_counted(count: int, worth: bool) -> None:
    part = small()
    part.node("VariableV2", "v", dtype=F32, shape=[2])
    part.neg("n", "in")
    part.neg("host", "x", host=True)
    _, at = part.levels()
    items: list[Any] = [at["v"], at["host"], group([at["n"]], Remembered(1, 1))]
    items += [at["n"], group([at["n"]], DeviceRun(cast("Any", None)))][: count % 2 + 1]
    items += [at["n"]] * (count - (count % 2 + 1))
    assert Stretch(GPU, items).is_worth_it is worth
