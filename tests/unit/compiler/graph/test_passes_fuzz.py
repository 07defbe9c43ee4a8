"""Malformed graphs of every kind: each is taken or refused with an error of the tree, and never crashes a pass."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.fake_cluster import fake_device
from support.verify_graph import verify, verify_parts
from tenfold_compiler.graph.copy_constants import copy_constants
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import errors
from tenfold_protos import graph_pb2

PS, W0 = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
DEVICES = DeviceSet([fake_device(PS), fake_device(W0)], f"{W0}/device:CPU:0")

NAMES = st.sampled_from(["a", "b", "c", "d", "a/b", "", "_x", "sp ace", "a:0", "^a", "\u00e9"])
OPS = st.sampled_from(
    [
        "NoOp",
        "Const",
        "Placeholder",
        "Neg",
        "Add",
        "AddN",
        "Split",
        "Concat",
        "Identity",
        "Switch",
        "Merge",
        "Enter",
        "Exit",
        "NextIteration",
        "LoopCond",
        "VariableV2",
        "Assign",
        "VarHandleOp",
        "ReadVariableOp",
        "Pack",
        "Unpack",
        "SaveV2",
        "_Send",
        "_Recv",
        "Nope",
        "If",
    ]
)
TYPES = st.sampled_from([0, 1, 3, 7, 10, 20, 101, 103, 999, -5])
DEVICE_NAMES = st.sampled_from(
    ["", "/job:ps", "/job:worker/task:0", "/cpu:0", "/gpu:0", "/job:x", "junk", "/task:-1", "/job:ps/task:*"]
)


@st.composite
def nodes(draw: st.DrawFn, node: graph_pb2.GraphDef) -> None:
    new = node.node.add(name=draw(NAMES), op=draw(OPS), device=draw(DEVICE_NAMES))
    inputs = st.sampled_from(["a", "b", "c", "d", "a:1", "b:99999999999", "^a", "^c", "^", "", ":", "a:-1"])
    new.input.extend(draw(st.lists(inputs, max_size=4)))
    for key in draw(
        st.lists(st.sampled_from(["T", "dtype", "N", "num", "value", "frame_name", "num_split", "_class"]), max_size=4)
    ):
        value = new.attr[key]
        match draw(st.integers(0, 7)):
            case 0:
                value.type = draw(TYPES)  # type: ignore[assignment]
            case 1:
                value.i = draw(st.sampled_from([0, 1, 2, -1, 1 << 40]))
            case 2:
                value.s = draw(st.sampled_from([b"x", b"", b"\xff\xfe", b"loc:@a"]))
            case 3:
                value.list.s.extend(
                    draw(st.lists(st.sampled_from([b"loc:@a", b"loc:@b", b"loc:@", b"\xff"]), max_size=2))
                )
            case 4:
                value.list.type.extend(draw(st.lists(TYPES, max_size=2)))  # type: ignore[arg-type]
            case 5:
                value.tensor.dtype = draw(TYPES)  # type: ignore[assignment]
            case 6:
                value.placeholder = "T"
            case 7:
                value.shape.dim.add().size = draw(st.sampled_from([-9, -1, 0, 1 << 62]))


@st.composite
def graphs(draw: st.DrawFn) -> graph_pb2.GraphDef:
    result = graph_pb2.GraphDef()
    for _ in range(draw(st.integers(1, 5))):
        draw(nodes(result))
    return result


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(graphs(), st.lists(NAMES, max_size=2), st.lists(NAMES, max_size=2), st.lists(NAMES, max_size=2))
def test_every_graph_is_taken_or_refused(
    graph_def: graph_pb2.GraphDef, feeds: list[str], fetches: list[str], targets: list[str]
) -> None:
    try:
        graph = verify(RuntimeGraph.from_graph_def(graph_def), after="build")
        graph = verify(place(graph, DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",)), after="place")
        client = DEVICES.device(DEVICES.client_device)
        graph = verify(prune(graph, feeds, fetches, targets, client_device=client), after="prune")
        verify_parts(partition(copy_constants(graph), incarnation=DEVICES.incarnation).parts)
    except (errors.InvalidArgumentError, errors.NotFoundError, errors.UnimplementedError):
        # Any other error fails the test; InternalError would be a pass that broke its promise.
        return
