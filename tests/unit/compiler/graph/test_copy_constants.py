"""Small constants are copied to who uses them."""

from __future__ import annotations

import pytest

from support.fake_cluster import fake_device
from support.graph_text import parse_text
from support.verify_graph import verify, verify_parts
from tenfold_compiler.graph.copy_constants import MAX_BYTES, copy_constants
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core.node_names import TensorName

PS, W0 = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
DEVICES = DeviceSet([fake_device(PS), fake_device(W0)], f"{W0}/device:CPU:0")


def copied(text: str, fetches: tuple[str, ...] = (), targets: tuple[str, ...] = ()) -> RuntimeGraph:
    graph = RuntimeGraph.from_graph_def(parse_text(text))
    graph = place(graph, DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",))
    graph = prune(graph, (), fetches, targets, client_device=DEVICES.device(DEVICES.client_device))
    graph = verify(copy_constants(graph), after="prune")
    verify_parts(partition(graph, incarnation=DEVICES.incarnation).parts)
    return graph


def devices(graph: RuntimeGraph) -> dict[str, str]:
    return {name: node.device.removesuffix("/device:CPU:0") for name, node in graph.nodes.items()}


def test_a_constant_moves_to_its_only_user() -> None:
    graph = copied("c = Const() dtype=float value=1.0 @/job:ps/task:0\ny = Add(c, c) @/job:worker/task:0", ("y",))

    assert devices(graph) == {"c/copy_0": W0, "y": W0, "_send_y_0": W0}
    assert graph.nodes["y"].inputs == (TensorName("c/copy_0", 0), TensorName("c/copy_0", 0))


def test_a_constant_that_is_also_used_at_home_stays() -> None:
    graph = copied(
        "c = Const() dtype=float value=1.0 @/job:ps/task:0\ny = Neg(c) @/job:worker/task:0\nz = Neg(c) @/job:ps/task:0",
        targets=("y", "z"),
    )

    assert devices(graph) == {"c/copy_0": W0, "c": PS, "y": W0, "z": PS}


def test_what_the_client_fetches_stays_where_the_program_put_it() -> None:
    graph = copied("c = Const() dtype=float value=1.0 @/job:ps/task:0", ("c",))

    assert devices(graph) == {"c": PS, "_send_c_0": W0}


def test_a_constant_of_a_branch_or_loop_stays() -> None:
    text = """
        a = NoOp() @/job:ps/task:0
        c = Const(^a) dtype=float value=1.0 @/job:ps/task:0
        y = Neg(c) @/job:worker/task:0
    """

    assert devices(copied(text, targets=("y",)))["c"] == PS


def test_a_large_constant_is_sent() -> None:
    values = ",".join(f"{i}.5" for i in range(2000))
    text = f"c = Const() dtype=float value=[{values}] @/job:ps/task:0\ny = Neg(c) @/job:worker/task:0"

    assert devices(copied(text, targets=("y",)))["c"] == PS


def test_who_only_waits_for_a_constant_waits_for_the_copy() -> None:
    graph = copied(
        "c = Const() dtype=float value=1.0 @/job:ps/task:0\ny = NoOp(^c) @/job:worker/task:0", targets=("y",)
    )

    assert graph.nodes["y"].control_inputs == ("c/copy_0",)


def test_a_graph_without_crossing_constants_is_left_alone() -> None:
    graph = RuntimeGraph.from_graph_def(parse_text("c = Const() dtype=float value=1.0\ny = Neg(c)"))
    graph = place(graph, DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",))

    assert copy_constants(graph) is graph


@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_an_update_that_needs_no_message_any_more_comes_after_the_reads_before_it(kind: str) -> None:
    """Its constant came from the worker, once the reads had begun; TensorFlow's ps runs what is ready at once."""
    if kind == "resource":
        text = """
            r = VarHandleOp() dtype=float shape=[] @/job:ps/task:0
            early = ReadVariableOp(r) dtype=float @/job:ps/task:0
            one = Const() dtype=float value=1.0 @/job:worker/task:0
            up = AssignSubVariableOp(r, one) dtype=float @/job:ps/task:0
            late = ReadVariableOp(r) dtype=float @/job:ps/task:0
        """
    else:
        text = """
            r = VariableV2() dtype=float shape=[] @/job:ps/task:0
            early = Identity(r) @/job:ps/task:0
            one = Const() dtype=float value=1.0 @/job:worker/task:0
            up = AssignSub(r, one) @/job:ps/task:0
            late = Identity(r) @/job:ps/task:0
        """
    graph = copied(text, ("early", "late"), ("up",))

    assert graph.nodes["up"].control_inputs == ("early",)
    assert graph.nodes["late"].control_inputs == ()


def unpruned(text: str, devices: DeviceSet = DEVICES, kernels: tuple[str, ...] = ("CPU",)) -> RuntimeGraph:
    graph = place(RuntimeGraph.from_graph_def(parse_text(text)), devices, devices_with_kernel=lambda op, attrs: kernels)
    return copy_constants(graph)


@pytest.mark.parametrize(("size", "moves"), [(MAX_BYTES - 1, True), (MAX_BYTES, True), (MAX_BYTES + 1, False)])
def test_the_bytes_of_a_node_decide_whether_it_is_small(size: int, moves: bool) -> None:
    graph_def = parse_text("c = Const() dtype=string value='' @/job:ps/task:0\ny = Identity(c) @/job:worker/task:0")
    value = graph_def.node[0].attr["value"].tensor.string_val
    value[0] = b"a" * MAX_BYTES
    value[0] = b"a" * (2 * MAX_BYTES + (size - MAX_BYTES) - graph_def.node[0].ByteSize())
    assert graph_def.node[0].ByteSize() == size
    graph = place(RuntimeGraph.from_graph_def(graph_def), DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",))

    assert ("c/copy_0" in copy_constants(graph).nodes) is moves


def test_each_task_gets_one_copy_and_names_meet_no_old_ones() -> None:
    graph = unpruned(
        """
        c = Const() dtype=float value=1.0 @/job:ps/task:0
        d = Const() dtype=float value=2.0 @/job:ps/task:0
        c/copy_0 = NoOp()
        y = Add(c, d) @/job:worker/task:0
        z = Neg(c) @/job:worker/task:0
        """
    )

    assert list(graph.nodes) == ["c/copy_5", "d/copy_1", "c/copy_0", "y", "z"]
    assert graph.nodes["y"].inputs == (TensorName("c/copy_5", 0), TensorName("d/copy_1", 0))
    assert graph.nodes["z"].inputs == (TensorName("c/copy_5", 0),)
    assert graph.nodes["c/copy_5"].device == f"{W0}/device:CPU:0"


def test_a_constant_that_is_a_target_stays_next_to_its_copy_elsewhere() -> None:
    graph = unpruned(
        "c = Const() dtype=float value=1.0 @/job:ps/task:0\nt = Const() dtype=float value=1.0 @/job:ps/task:0\n"
        "y = Neg(c) @/job:worker/task:0"
    )

    assert list(graph.nodes) == ["c/copy_0", "t", "y"]


def test_a_constant_crosses_to_no_other_type_of_device_and_to_no_device_of_its_own_task() -> None:
    devices = DeviceSet([fake_device(PS), fake_device(W0), fake_device(W0, "GPU")], f"{W0}/device:CPU:0")
    text = """
        c = Const() dtype=float value=1.0 @/job:ps/task:0
        y = Neg(c) @/job:worker/task:0/device:GPU:0
        d = Const() dtype=float value=1.0 @/job:worker/task:0/device:CPU:0
        z = Neg(d) @/job:worker/task:0/device:GPU:0
    """

    assert list(unpruned(text, devices, ("GPU", "CPU")).nodes) == ["c", "y", "d", "z"]


def test_other_sources_are_sent() -> None:
    text = "p = Placeholder() dtype=float @/job:ps/task:0\ny = Neg(p) @/job:worker/task:0"

    assert list(unpruned(text).nodes) == ["p", "y"]


ONE = "one = Const() dtype=float value=1.0 @/job:worker/task:0\n"


@pytest.mark.parametrize(
    ("before", "waits"),
    [
        ("read = Identity(v) @/job:ps/task:0", True),
        ("read = Neg(v) @/job:ps/task:0", True),
        ("read = Identity(v, ^start) @/job:ps/task:0", False),
        ("read = Identity(v) @/job:worker/task:0", False),
        ("read = Add(v, v) @/job:ps/task:0", False),
        ("read = Identity(other) @/job:ps/task:0", False),
        ("read = AssignAdd(v, own) @/job:ps/task:0", False),
        ("read = Switch(v, sure) @/job:ps/task:0", False),
    ],
)
def test_an_update_waits_for_what_only_reads_its_variable(before: str, waits: bool) -> None:
    graph = unpruned(
        f"""
        start = NoOp() @/job:ps/task:0
        own = Const() dtype=float value=1.0 @/job:ps/task:0
        sure = Const() dtype=bool value=True @/job:ps/task:0
        v = VariableV2() dtype=float shape=[] @/job:ps/task:0
        other = VariableV2() dtype=float shape=[] @/job:ps/task:0
        {before}
        {ONE}
        up = AssignSub(v, one, ^start) @/job:ps/task:0
        """
    )

    assert graph.nodes["up"].control_inputs == (("start", "read") if waits else ("start",))


def test_what_only_reads_waits_for_no_other_read() -> None:
    graph = unpruned(
        f"""
        r = VarHandleOp() dtype=float shape=[2] @/job:ps/task:0
        early = ReadVariableOp(r) dtype=float @/job:ps/task:0
        at = Const() dtype=int32 value=1 @/job:worker/task:0
        row = ResourceGather(r, at) dtype=float Tindices=int32 @/job:ps/task:0
        {ONE}
        up = AssignAddVariableOp(r, one) dtype=float @/job:ps/task:0
        """
    )

    assert graph.nodes["row"].control_inputs == ()
    assert graph.nodes["up"].control_inputs == ("early",)
