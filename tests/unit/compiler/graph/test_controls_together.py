"""Many nodes that wait for the same many nodes wait for one NoOp on their device, and still run after all of them."""

from __future__ import annotations

import pytest

from support.fake_cluster import fake_device
from support.graph_text import parse_text
from support.verify_graph import verify, verify_parts
from tenfold_compiler.graph.controls_together import join_controls
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.runtime_graph import RuntimeGraph

PS, W0 = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
DEVICES = DeviceSet([fake_device(PS), fake_device(W0)], f"{W0}/device:CPU:0")
UPDATES = [f"u{number}" for number in range(12)]


def joined(*lines: str, updates: int = 12) -> RuntimeGraph:
    text = "\n".join([*(f"{name} = NoOp() @/job:ps/task:0" for name in UPDATES[:updates]), *lines])
    graph = place(
        RuntimeGraph.from_graph_def(parse_text(text)), DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",)
    )
    result = verify(join_controls(graph), after="prune")
    verify_parts(partition(result, incarnation=DEVICES.incarnation).parts)
    assert {name: behind(result, name) for name in graph.nodes} == {name: behind(graph, name) for name in graph.nodes}
    return result


def behind(graph: RuntimeGraph, name: str) -> set[str]:
    """The updates that the node comes after."""
    found: set[str] = set()
    left = [name]
    while left:
        for source in graph.nodes[left.pop()].sources:
            if source not in found:
                found.add(source)
                left.append(source)
    return found & set(UPDATES)


def controls(names: list[str]) -> str:
    return ", ".join(f"^{name}" for name in names)


def node(name: str, names: list[str], task: str = "worker", op: str = "NoOp") -> str:
    attributes = "" if op == "NoOp" else " dtype=float value=1.0"
    return f"{name} = {op}({controls(names)}){attributes} @/job:{task}/task:0"


def test_nodes_with_the_same_controls_wait_for_one_node_on_their_device() -> None:
    graph = joined(*(node(f"c{number}", UPDATES, op="Const") for number in range(5)), node("d", UPDATES, "ps"))

    assert [graph.nodes[f"c{number}"].control_inputs for number in range(5)] == [("c0/after",)] * 5
    assert graph.nodes["c0/after"].device.startswith(W0)
    assert graph.nodes["d"].control_inputs == ("d/after",)
    assert graph.nodes["d/after"].device.startswith(PS)


def test_order_of_the_nodes_stays_and_edges_become_few() -> None:
    lines = [node(f"c{number}", UPDATES) for number in range(100)]

    graph = joined(*lines)

    assert [name for name in graph.nodes if name != "c0/after"] == [*UPDATES, *(f"c{number}" for number in range(100))]
    assert sum(len(each.control_inputs) for each in graph.nodes.values()) == 12 + 100


def test_what_a_node_waits_for_besides_stays() -> None:
    graph = joined(node("x", []), node("a", UPDATES), node("b", UPDATES), node("c", ["x", *UPDATES]))

    assert graph.nodes["c"].control_inputs == ("x", "a/after")


@pytest.mark.parametrize("updates", [7, 8])
def test_small_sets_stay(updates: int) -> None:
    graph = joined(node("a", UPDATES[:updates]), node("b", UPDATES[:updates]), updates=updates)

    assert ("a/after" in graph.nodes) == (updates == 8)


def test_a_set_of_one_node_stays_and_names_are_free() -> None:
    alone = joined(node("a", UPDATES))
    assert list(alone.nodes) == [*UPDATES, "a"]

    graph = joined(node("a/after", []), node("a", UPDATES), node("b", UPDATES))
    assert graph.nodes["b"].control_inputs == ("a/after_1",)
