"""How much work a graph is: where it is compiled, and whether values that a step brings settle how long it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.parts import PartBuilder
from tenfold_compiler.part import graph_sizes
from tenfold_compiler.part.graph_sizes import constant_size, is_small, sized_by_values, small_size
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes
from tenfold_core.opdefs.runtime_ops import CONSTANT_OPS

if TYPE_CHECKING:
    from collections.abc import Callable

TASK = "/job:localhost/replica:0/task:0"
FAR = "/job:worker/replica:0/task:0/device:CPU:0"
F32, I32, BOOL = dtypes.float32, dtypes.int32, dtypes.bool_


def test_a_graph_is_small_by_nodes_bytes_and_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    part = PartBuilder()
    part.const("a", [1.0] * 8)
    part.const("b", [1.0] * 8)
    graph = part.graph_def
    size = graph.ByteSize()
    assert small_size(graph) == size
    assert is_small(graph)
    monkeypatch.setattr(graph_sizes, "SMALL_BYTES", size + 1)
    assert is_small(graph)
    monkeypatch.setattr(graph_sizes, "SMALL_BYTES", size)
    assert not is_small(graph)
    monkeypatch.setattr(graph_sizes, "SMALL_BYTES", 1 << 20)
    monkeypatch.setattr(graph_sizes, "SMALL_NODES", 3)
    assert is_small(graph)
    monkeypatch.setattr(graph_sizes, "SMALL_NODES", 2)
    assert small_size(graph) is None
    monkeypatch.setattr(graph_sizes, "SMALL_NODES", 1_000)
    graph.library.function.add()
    assert not is_small(graph)


def test_a_large_constant_is_seen_before_the_message_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    part = PartBuilder()
    part.const("a", 1.0)
    part.graph_def.node[0].attr["value"].tensor.tensor_shape.dim.add(size=64)
    monkeypatch.setattr(graph_sizes, "SMALL_BYTES", 256)
    assert not is_small(part.graph_def)
    monkeypatch.setattr(graph_sizes, "SMALL_BYTES", 257)
    assert is_small(part.graph_def)


@pytest.mark.parametrize(
    ("dtype", "extents", "size"),
    [(F32, (3, 5), 60), (F32, (), 4), (I32, (-2,), 0), (99, (3,), 0), (F32, (1,) * 254, 4), (F32, (1,) * 255, 0)],
)
def test_bytes_of_a_constant(dtype: Any, extents: tuple[int, ...], size: int) -> None:
    part = PartBuilder()
    part.const("a", 1.0)
    node = part.graph_def.node[0]
    tensor = node.attr["value"].tensor
    tensor.dtype = int(getattr(dtype, "as_datatype_enum", dtype))
    for extent in extents:
        tensor.tensor_shape.dim.add(size=extent)
    assert constant_size(node) == size
    node.op = "Other"
    assert constant_size(node) == 0


def test_a_constant_without_a_value_has_no_size() -> None:
    part = PartBuilder()
    part.const("a", 1.0)
    del part.graph_def.node[0].attr["value"]
    assert constant_size(part.graph_def.node[0]) == 0


def part_of(build: Callable[[PartBuilder], Any]) -> bool:
    part = PartBuilder()
    part.feed("x")
    part.feed("n", I32)
    part.const("c", [3], I32)
    part.const("zero", 0.0)
    build(part)
    read = read_part(part.graph_def, TASK, 100)
    blocking = [node for node in read.nodes if node.op == "QueueDequeueV2"]
    for node in blocking:
        node.blocking = True
    return sized_by_values(read, {node.index for node in read.nodes if node.op in CONSTANT_OPS})


def fill(part: PartBuilder, dims: str) -> None:
    part.node("Fill", "fill", [dims, "zero"], T=F32, index_type=I32)


def through(op: str, inputs: list[str], port: int = 0, **attrs: Any) -> Callable[[PartBuilder], None]:
    def build(part: PartBuilder) -> None:
        part.node(op, "between", inputs, **attrs)
        fill(part, f"between:{port}" if port else "between")

    return build


def loop(part: PartBuilder) -> None:
    part.node("Enter", "enter", ["c"], T=I32, frame_name="f")
    part.node("Merge", "merge", ["enter", "next"], T=I32, N=2)
    part.node("NextIteration", "next", ["merge"], T=I32)
    fill(part, "merge")


def branch(part: PartBuilder) -> None:
    part.feed("p", BOOL)
    part.node("Switch", "switch", ["c", "p"], T=I32)
    part.node("Merge", "merge", ["switch:0", "switch:1"], T=I32, N=2)
    fill(part, "merge")


SIZED: dict[str, tuple[Callable[[PartBuilder], Any], bool]] = {
    "nothing": (lambda p: None, False),
    "a constant": (lambda p: fill(p, "c"), False),
    "a feed": (lambda p: fill(p, "n"), True),
    "another task": (lambda p: (p.recv("r", I32, FAR, 7), fill(p, "r")), True),
    "a shape": (through("Shape", ["x"], T=F32, out_type=I32), False),
    "an alias of a feed": (through("Identity", ["n"], T=I32), True),
    "an alias of a constant": (through("Identity", ["c"], T=I32), False),
    "a sum with a feed": (through("Add", ["c", "n"], T=I32), True),
    "a sum of constants": (through("Add", ["c", "c"], T=I32), False),
    "a variable": (
        lambda p: (p.node("VariableV2", "v", dtype=I32, shape=[1]), p.node("Neg", "m", ["v"], T=I32), fill(p, "m")),
        True,
    ),
    "elements of a Unique": (through("Unique", ["n"], T=I32, out_idx=I32), True),
    "places of a Unique": (through("Unique", ["n"], 1, T=I32, out_idx=I32), False),
    "places of a Unique of constants": (through("Unique", ["c"], 0, T=I32, out_idx=I32), False),
    "what a loop goes on with": (loop, True),
    "a branch of constants": (branch, False),
    "random numbers": (through("RandomUniformInt", ["c", "k", "k"], T=I32, Tout=I32), True),
    "another place than the size": (
        lambda p: p.node("Fill", "fill", ["c", "x"], T=F32, index_type=I32),
        False,
    ),
    "a TensorArray that grows": (
        lambda p: p.node("TensorArrayV3", "array", ["k"], dtype=F32, dynamic_size=True),
        True,
    ),
    "a TensorArray that does not": (
        lambda p: p.node("TensorArrayV3", "array", ["k"], dtype=F32, dynamic_size=False),
        False,
    ),
}


@pytest.mark.parametrize("name", SIZED)
def test_what_settles_the_work(name: str) -> None:
    build, expected = SIZED[name]

    def with_scalar(part: PartBuilder) -> None:
        part.const("k", 3, I32)
        build(part)

    assert part_of(with_scalar) is expected
