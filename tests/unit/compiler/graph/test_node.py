"""Nodes that passes add, the order of nodes, and how a cycle is shown."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from support.graph_text import parse_text
from tenfold_compiler.graph.node import check_acyclic, in_order, is_back_edge, make_node, new_def, no_floats, node_of
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import dtypes, errors
from tenfold_core.node_names import TensorName
from tenfold_core.tensor_util import proto_to_tensor

if TYPE_CHECKING:
    from tenfold_compiler.graph.node import Node

F32 = dtypes.float32
DEVICE = "/job:ps/replica:0/task:0/device:CPU:0"


def nodes(text: str) -> RuntimeGraph:
    return RuntimeGraph.from_graph_def(parse_text(text))


def test_a_definition_has_its_inputs_as_they_print_and_bools_for_what_the_op_does_not_have() -> None:
    made = new_def("Neg", "n", [TensorName("x", 1), "^c"], {"T": F32, "_mark": True}, DEVICE)

    assert (made.name, made.op, made.device, list(made.input)) == ("n", "Neg", DEVICE, ["x:1", "^c"])
    assert made.attr["T"].type == 1
    assert made.attr["_mark"].b is True
    assert new_def("NoOp", "n").attr == {}


def test_a_constant_of_no_elements() -> None:
    made = no_floats("c", DEVICE, ["^a"])

    value = proto_to_tensor(made.attr["value"].tensor)
    assert (value.shape, value.dtype) == ((0,), np.float32)
    assert (made.op, made.device, list(made.input), made.attr["dtype"].type) == ("Const", DEVICE, ["^a"], 1)


def test_a_node_of_a_definition_has_its_inputs_or_others() -> None:
    node_def = new_def("Add", "s", ["x", "y:1", "^c", "^d"], {"T": F32}, DEVICE)

    made = make_node(node_def)
    other = node_of(node_def, (TensorName("a", 0),) * 2, ("b",), "/job:ps", "")

    assert (made.inputs, made.control_inputs) == ((TensorName("x", 0), TensorName("y", 1)), ("c", "d"))
    assert (made.device, made.requested_device) == (DEVICE, "")
    assert (made.input_types, made.output_types, made.attrs["T"]) == ((F32, F32), (F32,), F32)
    assert list(made.sources) == ["x", "y", "c", "d"]
    assert (other.inputs, other.control_inputs) == ((TensorName("a", 0),) * 2, ("b",))
    assert (other.device, other.requested_device) == ("", "/job:ps")


LOOP = """
    start = Const() dtype=int32 value=0
    enter = Enter(start) frame_name='f'
    merge = Merge(enter, next) T=int32 N=2
    next = NextIteration(merge)
    other = Identity(next)
"""


def test_only_a_next_iteration_into_a_merge_goes_back() -> None:
    found = nodes(LOOP).nodes

    pairs = [(a, b) for a in found for b in found if is_back_edge(found[a], found[b])]

    assert pairs == [("next", "merge")]


def test_nodes_come_after_their_sources_and_otherwise_as_they_are() -> None:
    graph = nodes("d = NoOp(^c, ^a, ^c)\nc = NoOp(^b)\nb = NoOp()\na = NoOp()\ne = NoOp(^a)" + LOOP)

    order = in_order(graph.nodes, graph.nodes)

    assert [node.name for node in order] == ["b", "a", "start", "c", "e", "enter", "d", "merge", "next", "other"]
    # what is not among those asked for is there already
    assert [node.name for node in in_order(["d", "c"], graph.nodes)] == ["c", "d"]


def ring(count: int) -> dict[str, Node]:
    made = [node_of(new_def("NoOp", f"n{n}"), (), (f"n{(n + 1) % count}",)) for n in range(count)]
    made += [node_of(new_def("NoOp", "behind"), (), ("n0",)), node_of(new_def("NoOp", "before"), (), ())]
    return {node.name: node for node in made}


@pytest.mark.parametrize("count", [1, 2, 9, 10, 11, 30])
def test_a_cycle_is_shown_whole_up_to_ten_names(count: int) -> None:
    found = ring(count)

    order = in_order(found, found)
    with pytest.raises(errors.InvalidArgumentError) as caught:
        check_acyclic(found, list(found))

    assert [node.name for node in order] == ["before"]
    message = caught.value.message
    assert f"{count} nodes in a cycle: " in message
    names = message.partition("cycle: ")[2].partition(". Only")[0].split(" -> ")
    assert names[0] == names[-1] == caught.value.node_name
    assert len(names) == (count + 1 if count <= 9 else 11)
    assert ("..." in names) == (count > 9)
    assert names.index("...") == 9 if count > 9 else len({*names}) == count
    # in the direction of the data: each takes the next one
    shown = [int(name[1:]) for name in names[: min(count, 9)]]
    assert all((a - b) % count == 1 % count for a, b in pairwise(shown))


def test_old_nodes_are_not_looked_at_for_cycles() -> None:
    found = ring(3)

    check_acyclic(found, ["before"])
    check_acyclic(found, ["behind"])
    check_acyclic(found, [])
