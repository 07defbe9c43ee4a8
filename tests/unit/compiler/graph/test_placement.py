"""Why nodes are where they are, and what lies on each task. The commonest reasons are in the story
tests/golden/placement_reasons.txt."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_cluster import fake_device
from support.graph_text import parse_text
from tenfold_compiler.graph import placement as placement_module
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.placement import placement, placement_reasons
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.placement_pb2 import GetPlacementResponse

PS0, W0, W1 = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"


def gpu_for_matmul(op: str, attrs: Mapping[str, Any]) -> tuple[str, ...]:
    return ("GPU", "CPU") if op == "MatMul" else ("CPU",)


def devices() -> DeviceSet:
    """The master is worker 0; only worker 1 has a GPU."""
    found = [fake_device(PS0), fake_device(W0), fake_device(W1), fake_device(W1, "GPU")]
    return DeviceSet(found, fake_device(W0).name)


def placed(*texts: str, soft: bool = False) -> RuntimeGraph:
    """A graph that grew by each text, and was placed each time."""
    graph = RuntimeGraph()
    for text in texts:
        graph = place(graph.extend(parse_text(text)), devices(), devices_with_kernel=gpu_for_matmul, soft=soft)
    return graph


def reasons(*texts: str, soft: bool = False) -> dict[str, str]:
    return placement_reasons(placed(*texts, soft=soft), devices(), devices_with_kernel=gpu_for_matmul, soft=soft)


def told(graph: RuntimeGraph) -> GetPlacementResponse:
    return placement(graph, devices(), devices_with_kernel=gpu_for_matmul, soft=False)


X = "x = Placeholder() dtype=float"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("/job:ps/task:0/cpu:0", "as requested"),
        ("/job:ps", "as requested"),
        ("/job:worker", "as requested; first of 2 devices within /job:worker"),
        ("/task:1", "as requested; the only device within /task:1 with a kernel"),
    ],
)
def test_a_request_is_the_reason(asked: str, reason: str) -> None:
    assert reasons(f"y = NoOp() @{asked}") == {"y": reason}


def test_what_soft_placement_gave_up_is_said() -> None:
    found = reasons(f"{X} @/job:ps/gpu:0\ny = Neg(x) @/job:worker/task:1/gpu:0", soft=True)

    assert found == {
        "x": "soft placement: the tasks of job 'ps' have CPU:0 only",
        "y": "soft placement: Neg ('y') has kernels for CPU only",
    }


def test_members_of_a_group_that_ask_for_different_types() -> None:
    graph = f"{X} @/job:worker/task:1/gpu:0\ny = MatMul(x, x) colocate=x @/job:worker/task:1/cpu:0"

    found = reasons(graph, soft=True)

    assert found["x"] == "soft placement: nodes that share its device ask for different ones"
    assert found["y"] == "colocated with x (loc:@x)"


def test_a_request_that_a_reference_overrules_is_given_up() -> None:
    graph = "w = VariableV2() dtype=float shape=[2] @/job:ps\nr = Identity(w)\nd = RefIdentity(w) @/job:worker"

    assert reasons(graph)["d"] == "reference edge from w; its own request is given up"


def test_the_member_that_asked_binds_the_others() -> None:
    assert reasons(f"{X}\ny = Neg(x) colocate=x @/job:ps") == {
        "x": "colocated with y, which is bound to it",
        "y": "as requested",
    }


def test_a_device_of_an_earlier_graph_stays_and_says_so() -> None:
    # alone the constant goes to the master; with its one consumer it would have gone to ps
    grown = ("c = Const() dtype=float value=1.0", "y = Neg(c) T=float @/job:ps")

    assert placed(*grown).nodes["c"].device == fake_device(W0).name
    assert reasons(*grown)["c"] == "placed when it was added to the graph, before others joined it"
    assert reasons("\n".join(grown))["c"] == "beside y: a source is made where it is used"


def test_a_graph_that_could_not_be_placed_now_says_when_it_was() -> None:
    graph, fewer = placed(f"a = NoOp() @{PS0}\nb = NoOp()"), DeviceSet([fake_device(W0)], fake_device(W0).name)

    found = placement_reasons(graph, fewer, devices_with_kernel=gpu_for_matmul, soft=False)

    assert found == dict.fromkeys("ab", "placed when it was added to the graph")


def test_nodes_and_variables_are_counted_by_task() -> None:
    graph = "w = VariableV2() dtype=float shape=[3,5] @/job:ps\nv = VarHandleOp() dtype=double shape=[2] @/job:worker"

    answer = told(placed(f"{graph}\n{X}"))

    counted = {task.task: (task.nodes, task.variables, task.variable_bytes) for task in answer.task}
    assert counted == {
        "/job:worker/replica:0/task:0": (2, 1, 16),
        "/job:ps/replica:0/task:0": (1, 1, 60),
        "/job:worker/replica:0/task:1": (0, 0, 0),
    }
    text = answer.text
    assert [(node.name, text[node.op], text[node.requested]) for node in answer.node] == [
        ("w", "VariableV2", "/job:ps"),
        ("v", "VarHandleOp", "/job:worker"),
        ("x", "Placeholder", ""),
    ]


def test_a_variable_of_an_unknown_shape_counts_no_bytes() -> None:
    answer = told(placed("v = VarHandleOp() dtype=double shape=[-1,2] @/job:worker"))

    assert [(task.variables, task.variable_bytes) for task in answer.task] == [(1, 0), (0, 0), (0, 0)]


def test_a_graph_that_steps_place_has_no_devices_yet() -> None:
    answer = told(RuntimeGraph.from_graph_def(parse_text(X)))

    node = answer.node[0]
    assert answer.text[node.assigned] == ""
    assert answer.text[node.reason] == "placed anew for each step (place_pruned_graph)"


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        (X, "x", "default: first of 3 devices with a kernel for Placeholder, the master's own task"),
        ("a = Placeholder() dtype=float\ny = MatMul(a, a)", "y", "default: first of 4 devices, the master's own task"),
        (f"{X}\ny = Neg(x)", "y", "default: first of 3 devices with a kernel for Neg, the master's own task"),
        (
            "v = VarHandleOp() dtype=float shape=[2]",
            "v",
            "default: first of 3 devices with a kernel for VarHandleOp by name, where every session finds it",
        ),
        (
            "v = VarHandleOp() dtype=float shape=[2] @/job:worker",
            "v",
            "as requested; first of 2 devices within /job:worker by name",
        ),
        (
            f"{X} @/job:ps\ny = Shape(x) @/replica:0",
            "y",
            "as requested; beside x, of which it reads the shape alone",
        ),
        (f"{X} @/job:ps\ny = Shape(x)", "y", "beside x, of which it reads the shape alone"),
        ("v = VarHandleOp() dtype=float shape=[2]\nr = ReadVariableOp(v) dtype=float", "r", "resource edge from v"),
        (f"{X}\ny = Neg(x) colocate=no\nz = Neg(x) colocate=no", "z", "colocated with no (loc:@no)"),
    ],
)
def test_what_decides_where_nothing_was_asked_for(text: str, name: str, reason: str) -> None:
    assert reasons(text)[name] == reason


def test_a_group_that_has_the_node_s_own_name_does_not_bind_it() -> None:
    graph = "w = VariableV2() dtype=float shape=[2] @/job:ps\nr = RefIdentity(w) colocate=r\nz = Identity(w) colocate=r"

    found = reasons(graph)

    assert (found["r"], found["z"]) == ("reference edge from w", "colocated with r (loc:@r)")


def test_a_name_of_another_group_does_not_bind_with_soft_placement() -> None:
    graph = f"a = NoOp() @{PS0}\nv = VarHandleOp() dtype=float shape=[2] @{W0}\n"
    graph += f"r = ReadVariableOp(v) dtype=float colocate=a @{W0}"

    assert reasons(graph, soft=True)["r"] == "resource edge from v"


def test_one_device_is_the_only_one() -> None:
    def only(*found: str, of: str = "NoOp()") -> str:
        there = DeviceSet([fake_device(W1, kind) for kind in found], fake_device(W1, found[0]).name)
        graph = place(RuntimeGraph().extend(parse_text(f"y = {of}")), there, devices_with_kernel=gpu_for_matmul)
        return placement_reasons(graph, there, devices_with_kernel=gpu_for_matmul, soft=False)["y"]

    assert only("CPU") == "the only device"
    assert only("CPU", "GPU") == "the only device with a kernel"
    source = "Placeholder() dtype=float\nz = Neg(y)\ns = Shape(y)"
    assert only("CPU", of=source) == "the only device", "and not that of its consumer"
    assert only("CPU", "GPU", of=source) == "the only device with a kernel"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (fake_device(PS0), "default: first of 2 devices by name, where every session finds it"),
        (fake_device(W0, "CPU", 1), "default: first of 2 devices, the master's own task"),
    ],
)
def test_what_sessions_share_is_found_by_name_among_tasks_alone(other: DeviceAttributes, reason: str) -> None:
    there = DeviceSet([fake_device(W0), other], fake_device(W0).name)
    text = "v = VarHandleOp() dtype=float shape=[2]"
    graph = place(RuntimeGraph().extend(parse_text(text)), there, devices_with_kernel=gpu_for_matmul)

    assert placement_reasons(graph, there, devices_with_kernel=gpu_for_matmul, soft=False)["v"] == reason


def test_the_bytes_of_a_variable_are_those_of_its_shape_and_type() -> None:
    for attrs, count in (
        ({"shape": TensorShape([3, 5]), "dtype": dtypes.float64}, 120),
        ({"shape": TensorShape([]), "dtype": dtypes.float32}, 4),
        ({"shape": TensorShape([0]), "dtype": dtypes.float32}, 0),
        ({"shape": TensorShape(None), "dtype": dtypes.float32}, 0),
        ({"dtype": dtypes.float32}, 0),
        ({"shape": TensorShape([3])}, 0),
    ):
        variable: Any = SimpleNamespace(attrs=attrs)
        assert placement_module._variable_bytes(variable) == count, attrs
