"""Small constants are copied to who uses them."""

from __future__ import annotations

import pytest

from support.fake_cluster import fake_device
from support.graph_text import parse_text
from support.verify_graph import verify, verify_parts
from tenfold_compiler.graph.copy_constants import copy_constants
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
