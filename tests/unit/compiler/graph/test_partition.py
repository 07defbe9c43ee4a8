"""Cutting a graph by task: which pairs of _Send and _Recv join the parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.fake_cluster import fake_device
from support.graph_text import parse_text
from support.verify_graph import verify_parts
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_compiler.graph.send_recv import Channel, channel_of, signed
from tenfold_core import errors

if TYPE_CHECKING:
    from tenfold_protos.graph_pb2 import GraphDef

PS, W0, W1 = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"
DEVICES = DeviceSet(
    [
        fake_device(PS, incarnation=0xAAAAAAAAAAAAAAAA),
        fake_device(W0, incarnation=0xB),
        fake_device(W0, "CPU", 1, incarnation=0xB1),
        fake_device(W1, incarnation=0xC),
    ],
    f"{W0}/device:CPU:0",
)


def cut(
    text: str, feeds: tuple[str, ...] = (), fetches: tuple[str, ...] = (), targets: tuple[str, ...] = ()
) -> dict[str, GraphDef]:
    graph_def = parse_text(text)
    graph_def.versions.producer = 134
    graph = place(RuntimeGraph.from_graph_def(graph_def), DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",))
    graph = prune(graph, feeds, fetches, targets, client_device=DEVICES.device(DEVICES.client_device))
    parts = partition(graph, incarnation=DEVICES.incarnation).parts
    verify_parts(parts)
    return parts


def ops(part: GraphDef) -> dict[str, str]:
    return {node.name: node.op for node in part.node}


def channels(part: GraphDef, op: str) -> list[Channel]:
    found = [channel_of(node) for node in part.node if node.op == op]
    return [channel for channel in found if not channel.client_terminated]


READ_ON_TWO = """
    w = VariableV2() dtype=float shape=[2] @/job:ps/task:0
    read = Identity(w) colocate=w
    a = Neg(read) @/job:worker/task:0
    b = Mul(read, a) @/job:worker/task:0
    c = Exp(read) @/job:worker/task:1
"""


def test_a_graph_on_one_task_is_not_cut() -> None:
    parts = cut("a = Const() dtype=float value=1.0\nb = Neg(a)", fetches=("b",))

    assert list(parts) == [W0]
    assert ops(parts[W0]) == {"a": "Const", "b": "Neg", "_send_b_0": "_Send"}


def test_one_pair_for_each_receiving_device() -> None:
    parts = cut(READ_ON_TWO, targets=("b", "c"))

    assert set(parts) == {PS, W0, W1}
    sent = channels(parts[PS], "_Send")
    assert [channel.recv_device for channel in sent] == [f"{W0}/device:CPU:0", f"{W1}/device:CPU:0"]
    assert len({channel.tensor_name for channel in sent}) == 2
    assert all(channel.tensor_name.startswith("edge_") and channel.tensor_name.endswith("_read") for channel in sent)
    assert channels(parts[W0], "_Recv") == [sent[0]]
    assert channels(parts[W1], "_Recv") == [sent[1]]


def test_the_incarnation_is_the_sending_devices_and_signed() -> None:
    parts = cut(READ_ON_TWO, targets=("b",))

    send = next(node for node in parts[PS].node if node.op == "_Send")
    assert send.attr["send_device_incarnation"].i == signed(0xAAAAAAAAAAAAAAAA) < 0
    assert channel_of(send).send_incarnation == 0xAAAAAAAAAAAAAAAA
    assert send.attr["client_terminated"].WhichOneof("value") == "b"


def test_every_node_has_its_full_device_and_no_colocation() -> None:
    parts = cut(READ_ON_TWO, targets=("b",))

    assert all(
        node.device.startswith(task) and node.device.endswith("/device:CPU:0")
        for task, p in parts.items()
        for node in p.node
    )
    assert not any("_class" in node.attr for part in parts.values() for node in part.node)
    assert all(part.versions.producer == 134 for part in parts.values())


def test_a_control_edge_crosses_as_an_empty_float() -> None:
    parts = cut("a = NoOp() @/job:ps/task:0\nb = NoOp(^a) @/job:worker/task:0", targets=("b",))

    signal = next(node for node in parts[PS].node if node.op == "Const")
    assert list(signal.input) == ["^a"]
    assert [dim.size for dim in signal.attr["value"].tensor.tensor_shape.dim] == [0]
    identity = next(node for node in parts[W0].node if node.op == "Identity")
    b = next(node for node in parts[W0].node if node.name == "b")
    assert list(b.input) == [f"^{identity.name}"]


def test_a_reference_crosses_by_value() -> None:
    parts = cut("w = VariableV2() dtype=int64 shape=[] @/job:ps/task:0\nn = Neg(w) @/job:worker/task:0", targets=("n",))

    send = next(node for node in parts[PS].node if node.op == "_Send")
    recv = next(node for node in parts[W0].node if node.op == "_Recv")
    assert send.attr["T"].type == recv.attr["tensor_type"].type == 9


READS = """
    w = VariableV2() dtype=float shape=[] @/job:ps/task:0
    one = Const() dtype=float value=1.0 @/job:ps/task:0
    train = AssignAdd(w, one) @/job:ps/task:0
"""


def sends_of_w(parts: dict[str, GraphDef]) -> list[list[str]]:
    """What each _Send of the variable itself waits for."""
    sends = [node.input for node in parts[PS].node if node.op == "_Send"]
    return [list(inputs[1:]) for inputs in sends if inputs[0].split(":")[0] == "w"]


def test_a_reference_is_sent_after_all_else_that_its_reader_waits_for() -> None:
    parts = cut(READS + "now = Identity(w, ^train) @/job:worker/task:0", targets=("now",))

    assert sends_of_w(parts) == [["^train"]]


def test_a_reader_that_waits_for_a_value_reads_after_it() -> None:
    graph = "done = Neg(one, ^train) @/job:ps/task:0\nsum = Add(w, done) @/job:worker/task:0"
    parts = cut(READS + graph, targets=("sum",))

    assert sends_of_w(parts) == [["^done"]]


def test_readers_that_wait_for_the_same_share_a_value() -> None:
    parts = cut(
        READS
        + """
        early = Identity(w) @/job:worker/task:0
        too = Neg(w) @/job:worker/task:0
        late = Identity(w, ^train) @/job:worker/task:0
        last = Neg(w, ^train) @/job:worker/task:0
        """,
        targets=("early", "too", "late", "last"),
    )

    assert sends_of_w(parts) == [[], ["^train"]]


def test_the_reader_tells_that_what_it_has_made_is_there() -> None:
    parts = cut(
        READS
        + """
        made = NoOp(^train) @/job:worker/task:0
        now = Identity(w, ^made) @/job:worker/task:0
        """,
        targets=("now",),
    )

    ((told,),) = sends_of_w(parts)
    heard = next(node for node in parts[PS].node if f"^{node.name}" == told)
    (channel,) = channels(parts[PS], "_Recv")
    assert (heard.op, channel.send_device) == ("Identity", f"{W0}/device:CPU:0")


@pytest.mark.parametrize("other", ["Placeholder() dtype=float", "Const() dtype=float value=1.0"])
def test_a_read_does_not_wait_for_what_nothing_can_have_happened_before(other: str) -> None:
    parts = cut(
        READS + f"x = {other} @/job:worker/task:0\nn = Neg(x) @/job:worker/task:0\nsum = Add(w, n) @/job:worker/task:0",
        feeds=("x",) if other.startswith("P") else (),
        targets=("sum", "train"),
    )

    assert sends_of_w(parts) == [[]]
    assert channels(parts[PS], "_Recv") == []


def test_a_value_that_a_reader_waits_for_is_sent_at_once() -> None:
    parts = cut(
        READS + "read = Identity(w) @/job:ps/task:0\nnow = Identity(read, ^train) @/job:worker/task:0",
        targets=("now",),
    )

    sends = {node.input[0]: list(node.input[1:]) for node in parts[PS].node if node.op == "_Send"}
    assert sends["read:0"] == []


def test_in_a_loop_the_recv_of_a_reference_waits() -> None:
    parts = cut(
        """
        w = VariableV2() dtype=int32 shape=[] @/job:ps/task:0
        inside = RefEnter(w) frame_name='count' is_constant=true @/job:ps/task:0
        """
        + LOOP.replace("BODY", "/job:worker/task:0").replace("Identity(switch:1)", "Add(switch:1, inside)"),
        targets=("after",),
    )

    (recv,) = (node for node in parts[W0].node if node.op == "_Recv" and b"_inside" in node.attr["tensor_name"].s)
    (merge,) = (node for node in parts[W0].node if node.op == "Merge" and node.name.startswith("_cloop"))
    assert list(recv.input) == ["^switch", f"^{merge.name}"]


def test_devices_of_one_task_are_not_cut_apart() -> None:
    parts = cut(
        "a = Const() dtype=float value=1.0 @/job:worker/task:0/cpu:1\nb = Neg(a) @/job:worker/task:0/cpu:0",
        targets=("b",),
    )

    assert list(parts) == [W0]
    assert [node.device[-5:] for node in parts[W0].node] == ["CPU:1", "CPU:0"]


def test_new_names_meet_no_old_ones() -> None:
    parts = cut(
        """
        r = Const() dtype=float value=1.0 @/job:ps/task:0
        r_S0 = Neg(r) @/job:ps/task:0
        b = Add(r, r_S0) @/job:worker/task:0
        """,
        targets=("b",),
    )

    assert ops(parts[PS])["r_S0"] == "Neg"


def test_the_same_graph_and_number_give_the_same_parts() -> None:
    assert cut(READ_ON_TWO, targets=("b", "c")) == cut(READ_ON_TWO, targets=("b", "c"))


def test_switch_moves_to_its_data() -> None:
    """Only the branch that is taken should read the variable of another task."""
    parts = cut(
        """
        w = VariableV2() dtype=float shape=[] @/job:ps/task:0
        read = Identity(w) colocate=w
        pred = Placeholder() dtype=bool @/job:worker/task:0
        s = Switch(read, pred) @/job:worker/task:0
        n = Neg(s:1) @/job:worker/task:0
        """,
        feeds=("pred",),
        targets=("n",),
    )

    assert ops(parts[PS])["s"] == "Switch"


LOOP = """
    start = Const() dtype=int32 value=0
    enter = Enter(start) frame_name='count' @/job:worker/task:0
    merge = Merge(enter, next) T=int32 N=2 @/job:worker/task:0
    limit = Const(^merge) dtype=int32 value=10 @/job:worker/task:0
    less = Less(merge, limit) @/job:worker/task:0
    cond = LoopCond(less) @/job:worker/task:0
    switch = Switch(merge, cond) @/job:worker/task:0
    body = Identity(switch:1) @BODY
    next = NextIteration(body) @/job:worker/task:0
    exit = Exit(switch) @/job:worker/task:0
    after = Neg(exit) @/job:worker/task:1
"""


def test_a_loop_on_one_task_may_hand_its_result_to_another() -> None:
    parts = cut(LOOP.replace("BODY", "/job:worker/task:0"), targets=("after",))

    assert set(parts) == {W0, W1}


def test_each_task_of_a_loop_follows_the_one_condition() -> None:
    parts = cut(LOOP.replace("BODY", "/job:ps/task:0"), targets=("after",))

    there = {node.name: node for node in parts[PS].node}
    (enter,) = (node for node in parts[PS].node if node.op == "Enter")
    (merge,) = (node for node in parts[PS].node if node.op == "Merge")
    (switch,) = (node for node in parts[PS].node if node.op == "Switch")
    assert all(node.name.startswith("_cloop") for node in (enter, merge, switch))
    assert enter.attr["frame_name"].s == b"count"
    assert enter.attr["parallel_iterations"].i == 10
    assert "is_constant" in enter.attr
    condition = there[switch.input[1]]
    assert condition.attr["tensor_name"].s.endswith(b"_cond")
    assert [list(node.input) for node in parts[PS].node if node.op == "_Recv"] == [[f"^{merge.name}"]] * 2


def test_an_inner_loop_starts_from_the_outer_one() -> None:
    parts = cut(
        """
        start = Const() dtype=int32 value=0
        o_enter = Enter(start) frame_name='outer' parallel_iterations=3
        o_merge = Merge(o_enter, o_next) T=int32 N=2
        limit = Const(^o_merge) dtype=int32 value=10
        o_less = Less(o_merge, limit)
        o_cond = LoopCond(o_less)
        o_switch = Switch(o_merge, o_cond)
        i_enter = Enter(o_switch:1) frame_name='inner' parallel_iterations=7
        i_merge = Merge(i_enter, i_next) T=int32 N=2
        i_limit = Const(^i_merge) dtype=int32 value=5
        i_less = Less(i_merge, i_limit)
        i_cond = LoopCond(i_less)
        i_switch = Switch(i_merge, i_cond)
        body = Neg(i_switch:1) @/job:ps/task:0
        i_next = NextIteration(body)
        i_exit = Exit(i_switch)
        o_next = NextIteration(i_exit)
        o_exit = Exit(o_switch)
        """,
        targets=("o_exit",),
    )

    nodes = {node.name: node for node in parts[PS].node}
    enters = {node.attr["frame_name"].s: node for node in nodes.values() if node.op == "Enter"}
    assert {name: node.attr["parallel_iterations"].i for name, node in enters.items()} == {b"outer": 3, b"inner": 7}
    assert nodes[enters[b"outer"].input[0]].op == "Const"
    outer_merge = nodes[enters[b"inner"].input[0]]
    assert outer_merge.op == "Merge"
    assert outer_merge.input[0] == enters[b"outer"].name


def test_a_loop_over_tasks_needs_a_condition() -> None:
    graph = LOOP.replace("BODY", "/job:ps/task:0").replace("cond = LoopCond(less)", "cond = Identity(less)")

    with pytest.raises(errors.InvalidArgumentError, match="must have a pivot predicate: count") as caught:
        cut(graph, targets=("after",))

    assert caught.value.node_name == "body"


def test_inputs_of_different_frames_are_refused() -> None:
    graph = LOOP.replace("BODY", "/job:worker/task:0") + "\n    bad = Add(start, body) @/job:worker/task:0"

    with pytest.raises(errors.InvalidArgumentError, match=r"\{\{node bad\}\} has inputs from different frames"):
        cut(graph, targets=("bad",))
