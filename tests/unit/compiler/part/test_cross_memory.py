"""Where values are, and where copies go: every rule of cross_memory.py, with kernels that the test makes up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.parts import PartBuilder
from tenfold_compiler.part.cross_memory import HOST, device_type_of, insert_copies, note_memory
from tenfold_compiler.part.loop_tree import loop_tree
from tenfold_compiler.part.node_facts import views_of_references
from tenfold_compiler.part.part_graph import is_back_edge, node_error
from tenfold_compiler.part.read_part import read_part
from tenfold_core import dtypes, errors
from tenfold_core.opdefs.runtime_ops import CONSTANT_OPS
from tenfold_kernels import registry
from tenfold_kernels.cuda import copies

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_compiler.part.part_graph import PartGraph, PartNode

TASK = "/job:localhost/replica:0/task:0"
CPU, GPU, GPU1 = (f"{TASK}/device:{name}" for name in ("CPU:0", "GPU:0", "GPU:1"))
F32, I32, BOOL = dtypes.float32, dtypes.int32, dtypes.bool_
#: Op → which inputs and which outputs of its kernel are a GPU's; what is not here is all on the host.
KERNELS = {
    "MatMul": ((True, True), (True,)),
    "Neg": ((True,), (True,)),
    "Less": ((True, True), (True,)),
    "Sum": ((True, False), (True,)),
    "Shape": ((True,), (False,)),
    "VariableV2": ((), (True,)),
    "Assign": ((True, True), (True,)),
    "ReadVariableOp": ((True,), (True,)),
    # asked of the registry like any other, but the executor hands it on
    "Identity": ((True,), (True,)),
}


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of KERNELS, and copies that say what they do."""

    def memory_of(op: str, attrs: Any, device_type: str) -> Any:
        assert device_type == "GPU"
        return None if attrs.get("T") is I32 and op != "Shape" else KERNELS.get(op)

    def copied(place: str) -> Callable[[Any], Any]:
        return lambda value: ("copy", place, value)

    monkeypatch.setattr(registry, "memory_of", memory_of)
    monkeypatch.setattr(copies, "kernel", copied)


class Builder(PartBuilder):
    """A part of nodes on several devices: the GPU where nothing else is said."""

    def __init__(self) -> None:
        super().__init__(CPU)

    def on(self, device: str, op: str, name: str, inputs: Any = (), **attrs: Any) -> str:
        self.device = device
        self.node(op, name, inputs, **attrs)
        self.device = CPU
        return name

    def gpu(self, op: str, name: str, inputs: Any = (), **attrs: Any) -> str:
        return self.on(GPU, op, name, inputs, **attrs)

    def neg(self, name: str, source: str, device: str = GPU) -> str:
        return self.on(device, "Neg", name, [source], T=F32)

    def copied(self) -> tuple[PartGraph, dict[int, tuple[Any, ...]]]:
        """The part with its copies, checked, and its constants."""
        part = read_part(self.graph_def, TASK, 1000)
        assert note_memory(part)
        constants: dict[int, tuple[Any, ...]] = {
            node.index: (np.zeros(2, np.float32),) for node in part.nodes if node.op in CONSTANT_OPS
        }
        insert_copies(part, constants, views_of_references(part, constants))
        check(part)
        return part, constants

    def shown(self) -> list[str]:
        return show(self.copied()[0])


def check(part: PartGraph) -> None:
    """Numbers are places, nothing is read before it is there, and every value is where its reader wants it."""
    for index, node in enumerate(part.nodes):
        assert node.index == index
        assert len(node.inputs) == len(node.deref)
        for position, (source, port) in enumerate(node.inputs):
            assert source < index or is_back_edge(part.nodes, node, source)
            wanted = wants(node, position)
            assert wanted is None or wanted == place_of(part, source, port), f"{node.name}:{position}"
        for source in node.controls:
            assert source < index


def wants(node: PartNode, position: int) -> str | None:
    if node.input_types[position].is_ref_dtype or node.copy_of is not None:
        return None
    if node.memory is not None:
        return node.node_def.device if node.memory[0][position] else HOST
    if node.op in ("_Send", "LoopCond", "StringJoin", "Print") or (node.op == "Switch" and position == 1):
        return HOST
    return None


def place_of(part: PartGraph, source: int, port: int) -> str:
    node = part.nodes[source]
    if node.op == "_CopyToDevice":
        return node.node_def.device
    if node.memory is not None:
        return node.node_def.device if node.memory[1][port] else HOST
    if node.op in ("Identity", "Switch", "Enter", "Exit", "NextIteration") or (node.op == "Merge" and port == 0):
        places = {place_of(part, *edge) for edge in node.inputs[: 1 if node.op == "Switch" else None][:1]}
        return places.pop()
    return HOST


def show(part: PartGraph) -> list[str]:
    """A line a node but for constants: what it reads, what it waits for behind a ^."""
    lines = []
    for node in part.nodes:
        read = [part.nodes[source].name for source, _ in node.inputs]
        read += [f"^{part.nodes[source].name}" for source in node.controls]
        if node.op != "Const":
            lines.append(f"{node.name}({', '.join(read)})")
    return lines


def test_a_feed_and_a_fetch_of_a_gpus_node() -> None:
    b = Builder()
    b.feed("x")
    b.gpu("MatMul", "y", ["x", "x"], T=F32)
    b.fetch("y")

    part, _ = b.copied()

    assert show(part) == [
        "x()",
        "x_CopyToDevice(x)",
        "y(x_CopyToDevice, x_CopyToDevice)",
        "y_CopyToHost(y)",
        "send_fetch_y(y_CopyToHost)",
    ]
    to_gpu, back = part.nodes[1], part.nodes[3]
    assert (to_gpu.op, to_gpu.node_def.device, to_gpu.input_types, to_gpu.output_types) == (
        "_CopyToDevice",
        GPU,
        (F32,),
        (F32,),
    )
    assert (back.op, back.node_def.device, back.memory) == ("_CopyToHost", GPU, None)


def test_a_copy_serves_all_who_want_it_there_and_stands_before_the_first() -> None:
    b = Builder()
    b.feed("x")
    b.neg("a", "x")
    b.neg("b", "a")
    b.neg("c", "x")
    b.neg("d", "x", GPU1)
    b.neg("e", "c", GPU1)
    for name in "bde":
        b.fetch(name)

    lines = b.shown()

    assert [line for line in lines if line.startswith("x_Copy")] == ["x_CopyToDevice(x)"] * 2
    assert "c_CopyToDevice(c)" in lines
    assert not any(line.startswith(("a_Copy", "c_CopyToHost")) for line in lines)


def test_what_hands_a_value_on_leaves_it_where_it_is() -> None:
    b = Builder()
    b.feed("x")
    b.gpu("Identity", "same", ["x"], T=F32)
    b.gpu("Identity", "same_again", ["same"], T=F32)
    b.fetch("same_again")
    b.neg("y", "x")
    b.on(CPU, "Identity", "of_gpu", ["y"], T=F32)
    b.neg("z", "of_gpu")
    b.fetch("z")

    lines = b.shown()

    assert [line for line in lines if "_Copy" in line] == [
        "x_CopyToDevice(x)",
        "y(x_CopyToDevice)",
        "z_CopyToHost(z)",
        "send_fetch_z(z_CopyToHost)",
    ]


def test_what_a_kernel_wants_on_the_host_stays_there() -> None:
    b = Builder()
    b.feed("x")
    b.feed("axis", I32)
    b.neg("y", "x")
    b.gpu("Sum", "sum", ["y", "axis"], T=F32, Tidx=I32)
    b.gpu("Shape", "shape", ["y"], T=F32, out_type=I32)
    b.gpu("Neg", "count", ["shape"], T=I32)
    b.fetch("sum")
    b.fetch("count", I32)

    assert [line for line in b.shown() if "_Copy" in line.partition("(")[0]] == [
        "x_CopyToDevice(x)",
        "sum_CopyToHost(sum)",
    ]


def test_strings_and_handles_are_never_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KERNELS, "StringJoin", ((True,), (True,)))
    b = Builder()
    b.feed("text", dtypes.string)
    b.gpu("StringJoin", "joined", ["text"], N=1)
    b.fetch("joined", dtypes.string)
    b.gpu("VarHandleOp", "v", dtype=F32, shape=[2])
    b.gpu("ReadVariableOp", "read", ["v"], dtype=F32)
    b.neg("y", "read")
    b.fetch("y")

    assert [line for line in b.shown() if "_Copy" in line.partition("(")[0]] == ["y_CopyToHost(y)"]


def test_tensors_of_other_tasks_are_in_the_hosts_memory() -> None:
    other = "/job:ps/replica:0/task:0/device:GPU:0"
    b = Builder()
    b.device = GPU
    b.recv("x", F32, other, 1)
    b.neg("y", "x")
    b.device = GPU
    b.send("y", F32, other, "edge_y")

    assert b.shown() == [
        "x()",
        "x_CopyToDevice(x)",
        "y(x_CopyToDevice)",
        "y_BeginCopyToHost(y)",
        "y_CopyToHost(y_BeginCopyToHost)",
        "send_edge_y(y_CopyToHost)",
    ]


def test_what_goes_to_other_tasks_is_copied_behind_its_kernel_and_waited_for_last() -> None:
    b = Builder()
    b.feed("x")
    for name, source in (("a", "x"), ("b", "a"), ("c", "b")):
        b.neg(name, source)
    for name in "ba":
        b.device = GPU
        b.send(name, F32, CPU, f"edge_{name}")
    b.fetch("c")

    assert b.shown() == [
        "x()",
        "x_CopyToDevice(x)",
        "a(x_CopyToDevice)",
        "a_BeginCopyToHost(a)",
        "b(a)",
        "b_BeginCopyToHost(b)",
        "c(b)",
        "c_CopyToHost(c)",
        "send_fetch_c(c_CopyToHost)",
        "a_CopyToHost(a_BeginCopyToHost)",
        "send_edge_a(a_CopyToHost)",
        "b_CopyToHost(b_BeginCopyToHost)",
        "send_edge_b(b_CopyToHost)",
    ]


def test_what_others_read_on_the_host_or_an_assignment_may_change_is_copied_at_once() -> None:
    b = Builder()
    b.feed("x")
    b.neg("a", "x")
    b.fetch("a")
    b.gpu("VariableV2", "v", dtype=F32, shape=[2])
    b.gpu("Identity", "read", ["v"], T=F32)
    for name in ("a", "read"):
        b.device = GPU
        b.send(name, F32, CPU, f"edge_{name}")

    lines = b.shown()

    assert not any("_Begin" in line for line in lines)
    assert "send_edge_a(a_CopyToHost)" in lines
    assert "send_edge_read(read_CopyToHost)" in lines


def test_a_constant_is_copied_once_and_now() -> None:
    b = Builder()
    b.feed("x")
    b.on(GPU, "Identity", "before", ["x"], T=F32)
    b.const("c", np.zeros(2, np.float32))
    b.gpu("MatMul", "y", ["before", "c"], T=F32)
    b.gpu("MatMul", "z", ["y", "c"], T=F32)
    b.fetch("z")

    part, constants = b.copied()

    by_name = {node.name: node for node in part.nodes}
    copy = by_name["c_CopyToDevice"]
    assert constants[copy.index][0][:2] == ("copy", GPU)
    assert constants[copy.index][0][2] is constants[by_name["c"].index][0]
    assert (copy.inputs, copy.controls, copy.input_types) == ([], [by_name["c"].index], ())
    assert by_name["y"].inputs[1] == by_name["z"].inputs[1] == (copy.index, 0)
    assert set(constants) == {copy.index, by_name["c"].index}


def test_no_room_for_a_constant_names_it_and_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(place: str) -> Callable[[Any], Any]:
        def copy(value: Any) -> Any:
            raise errors.ResourceExhaustedError(None, None, "OOM")

        return copy

    monkeypatch.setattr(copies, "kernel", full)
    b = Builder()
    b.const("c", np.zeros(2, np.float32))
    b.neg("y", "c")
    b.fetch("y")

    with pytest.raises(errors.ResourceExhaustedError, match=rf"OOM \(on {GPU}\)\n\t \[\[{{{{node c}}}}\]\]"):
        b.copied()


def test_a_reference_is_read_where_its_reader_stands() -> None:
    b = Builder()
    b.feed("x")
    b.gpu("VariableV2", "v", dtype=F32, shape=[2])
    b.gpu("Assign", "set", ["v", "x"], T=F32)
    b.neg("y", "v")
    b.gpu("Identity", "read", ["v", "^set"], T=F32)
    b.fetch("read", F32)
    b.fetch("y", F32)
    b.fetch("v", F32, inputs=["^set"])

    part, _ = b.copied()

    by_name = {node.name: node for node in part.nodes}
    lines = show(part)
    # the assignment takes the reference, and a copy of the value
    assert "set(v, x_CopyToDevice)" in lines
    assert by_name["set"].deref == [False, False]
    # a reader on the same GPU needs no copy
    assert by_name["y"].deref == [True]
    # one that reads the variable itself reads it late: when the fetch would
    assert "v_CopyToHost(v, ^set)" in lines
    assert by_name["v_CopyToHost"].deref == [True]
    assert by_name["send_fetch_v"].deref == [False]
    assert "read_CopyToHost(read)" in lines
    assert by_name["read_CopyToHost"].deref == [False]


def test_each_reader_of_a_reference_elsewhere_reads_for_itself() -> None:
    b = Builder()
    b.gpu("VariableV2", "v", dtype=F32, shape=[2])
    b.neg("y", "v", GPU1)
    b.neg("z", "v", GPU1)
    b.fetch("y")
    b.fetch("z")

    assert [line for line in b.shown() if line.startswith("v_Copy")] == ["v_CopyToDevice(v)"] * 2


def conditional(b: Builder) -> None:
    """cond(x < x, -x on the GPU, x as it is), of a feed."""
    b.feed("x")
    b.gpu("Less", "p", ["x", "x"], T=F32)
    b.gpu("Switch", "switch", ["x", "p"], T=F32)
    b.neg("taken", "switch:1")
    b.gpu("Merge", "merge", ["switch:0", "taken"], T=F32, N=2)


def test_a_branch_takes_its_value_where_it_is_and_its_predicate_on_the_host() -> None:
    b = Builder()
    conditional(b)
    b.fetch("merge")
    b.fetch("merge:1", I32)

    lines = b.shown()

    assert "p_CopyToHost(p)" in lines
    assert "switch(x, p_CopyToHost)" in lines
    # in the branch that is taken only, each
    assert "switch_CopyToDevice_1(switch)" in lines or "switch_CopyToDevice(switch)" in lines
    assert "taken(switch_CopyToDevice_1)" in lines
    assert "merge(switch_CopyToDevice, taken)" in lines
    assert "merge_CopyToHost(merge)" in lines
    assert "send_fetch_merge_1(merge)" in lines


def test_a_merge_that_reads_a_variable_does_not_wait_for_its_other_inputs() -> None:
    b = Builder()
    b.gpu("VariableV2", "v", dtype=F32, shape=[2])
    b.feed("x")
    b.gpu("Less", "p", ["x", "x"], T=F32)
    b.gpu("Switch", "switch", ["x", "p"], T=F32)
    b.neg("taken", "switch:1", GPU)
    b.gpu("Merge", "merge", ["taken", "v"], T=F32, N=2)
    b.on(GPU1, "Merge", "other", ["taken", "v"], T=F32, N=2)
    b.fetch("merge")

    part, _ = b.copied()

    merge = next(node for node in part.nodes if node.name == "merge")
    assert merge.deref == [False, True]
    assert not any(node.controls for node in part.nodes if node.copy_of is not None)


def loop(b: Builder, body: Callable[[str], str], begins_on_gpu: bool = False) -> None:
    """A loop over one variable that begins with a feed, while it is less than another feed."""
    b.feed("start")
    if begins_on_gpu:
        b.neg("begin", "start")
    b.feed("limit")
    attrs: dict[str, Any] = {"T": F32, "frame_name": "f"}
    b.gpu("Enter", "enter", ["begin" if begins_on_gpu else "start"], **attrs)
    b.gpu("Enter", "enter_limit", ["limit"], is_constant=True, **attrs)
    b.gpu("Merge", "merge", ["enter", "next"], T=F32, N=2)
    b.gpu("Less", "less", ["merge", "enter_limit"], T=F32)
    b.gpu("LoopCond", "cond", ["less"])
    b.gpu("Switch", "switch", ["merge", "cond"], T=F32)
    result = body("switch:1")
    b.gpu("NextIteration", "next", [result], T=F32)
    b.gpu("Exit", "exit", ["switch:0"], T=F32)
    b.fetch("exit")


def test_a_loop_takes_its_values_to_the_gpu_once() -> None:
    b = Builder()
    loop(b, lambda value: b.neg("body", value))

    part, constants = b.copied()

    lines = show(part)
    assert "enter(start_CopyToDevice)" in lines
    assert "enter_limit(limit_CopyToDevice)" in lines
    assert "less(merge, enter_limit)" in lines
    assert "cond(less_CopyToHost)" in lines
    assert "body(switch)" in lines
    assert "next(body)" in lines
    assert "exit_CopyToHost(exit)" in lines
    # still a loop as flow_writer.py writes it
    (found,) = loop_tree(part, constants).loops
    assert [node.name for node in found.variables] == ["merge"]


def test_what_the_host_computes_in_a_loop_goes_back_before_the_next_turn() -> None:
    b = Builder()
    loop(b, lambda value: b.on(CPU, "Neg", "host", [b.neg("body", value)], T=F32), begins_on_gpu=True)

    lines = b.shown()

    assert "enter(begin)" in lines
    assert "body_CopyToHost(body)" in lines
    assert "host(body_CopyToHost)" in lines
    assert "host_CopyToDevice(host)" in lines
    assert "next(host_CopyToDevice)" in lines


def test_a_loop_of_the_host_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(KERNELS, "Less")
    b = Builder()
    loop(b, lambda value: b.on(CPU, "Neg", "host", [value], T=F32))
    b.neg("y", "exit")
    b.fetch("y")

    assert [line for line in b.shown() if "_Copy" in line.partition("(")[0]] == [
        "exit_CopyToDevice(exit)",
        "y_CopyToHost(y)",
    ]


def test_a_part_without_values_on_a_gpu_is_left_alone() -> None:
    b = Builder()
    b.feed("x")
    b.gpu("Identity", "y", ["x"], T=F32)
    b.gpu("Neg", "z", ["n"], T=I32)
    b.feed("n", I32)
    b.fetch("y")

    part = read_part(b.graph_def, TASK, 100)

    assert not note_memory(part)
    assert all(node.memory is None for node in part.nodes)


def test_an_error_of_a_copy_is_that_of_the_node_whose_value_it_copies() -> None:
    b = Builder()
    b.feed("x")
    b.neg("y", "x")
    b.fetch("y")
    part, _ = b.copied()
    by_name = {node.name: node for node in part.nodes}

    lost = node_error(by_name["y_CopyToHost"], errors.internal("the GPU is lost"))
    refused = node_error(by_name["y"], errors.invalid_argument("no such shape"))
    bug = node_error(by_name["y"], TypeError("what"))

    assert lost.message == f"the GPU is lost (on {GPU})\n\t [[{{{{node y}}}}]]"
    assert refused.message == "no such shape\n\t [[{{node y}}]]"
    assert bug.message == f"Neg failed with TypeError: what (on {GPU})\n\t [[{{{{node y}}}}]]"
    assert isinstance(bug, errors.InternalError)


@pytest.mark.parametrize(("device", "kind"), [(CPU, "CPU"), (GPU1, "GPU"), ("", "CPU"), (TASK, "CPU")])
def test_the_type_of_a_device(device: str, kind: str) -> None:
    assert device_type_of(device) == kind
