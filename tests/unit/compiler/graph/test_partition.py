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
    from tenfold_protos.node_def_pb2 import NodeDef

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
    (send,) = (node for node in parts[PS].node if node.op == "_Send")
    assert list(send.input) == [f"{signal.name}:0"]
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


def test_frames_may_stand_in_each_other_as_deep_as_a_peer_likes() -> None:
    depth = 1100
    lines = ["e0 = Const() dtype=int32 value=0 @/job:worker/task:0"]
    lines += [f"e{n} = Enter(e{n - 1}) frame_name='f{n}' @/job:worker/task:0" for n in range(1, depth)]
    across = f"here = Neg(e{depth - 1}) @/job:worker/task:0\nbody = Neg(e{depth - 1}) @/job:ps/task:0"
    mixed = f"bad = Add(e0, e{depth - 1}) @/job:worker/task:0"

    with pytest.raises(errors.InvalidArgumentError, match=f"must have a pivot predicate: f{depth - 1}[.]"):
        cut("\n".join([*lines, across]), targets=("here", "body"))
    with pytest.raises(errors.InvalidArgumentError) as caught:
        cut("\n".join([*lines, mixed]), targets=("bad",))

    path = " > ".join(f"f{n}" for n in range(1, depth))
    assert f"The input {{{{node e{depth - 1}}}}} is in frame '{path}'. " in caught.value.message
    assert "The input {{node e0}} is in frame ''." in caught.value.message


def test_a_control_loop_is_made_once_and_a_second_inner_one_joins_it() -> None:
    inner = """
        {x}_enter = Enter(o_switch:1) frame_name='{x}'
        {x}_merge = Merge({x}_enter, {x}_next) T=int32 N=2
        {x}_limit = Const(^{x}_merge) dtype=int32 value=5
        {x}_less = Less({x}_merge, {x}_limit)
        {x}_cond = LoopCond({x}_less)
        {x}_switch = Switch({x}_merge, {x}_cond)
        {x}_body = Neg({x}_switch:1) @/job:ps/task:0
        {x}_more = Neg({x}_switch:1) @/job:ps/task:0
        {x}_sum = Add({x}_body, {x}_more) @/job:ps/task:0
        {x}_next = NextIteration({x}_sum)
        {x}_exit = Exit({x}_switch)
    """
    parts = cut(
        f"""
        start = Const() dtype=int32 value=0
        o_enter = Enter(start) frame_name='outer'
        o_merge = Merge(o_enter, o_next) T=int32 N=2
        o_limit = Const(^o_merge) dtype=int32 value=10
        o_less = Less(o_merge, o_limit)
        o_cond = LoopCond(o_less)
        o_switch = Switch(o_merge, o_cond)
        {inner.format(x="a")}
        {inner.format(x="b")}
        o_sum = Add(a_exit, b_exit)
        o_next = NextIteration(o_sum)
        o_exit = Exit(o_switch)
        """,
        targets=("o_exit",),
    )

    nodes = {node.name: node for node in parts[PS].node}
    enters = {node.attr["frame_name"].s: node for node in nodes.values() if node.op == "Enter"}
    assert sorted(enters) == [b"a", b"b", b"outer"]
    assert len([node for node in nodes.values() if node.op == "Enter"]) == 3
    assert enters[b"a"].input[:] == enters[b"b"].input[:], "both start from the Merge of the outer one"
    assert [node.op for node in nodes.values() if node.name.startswith("_cloop")].count("Merge") == 3
    for frame in (b"a", b"b", b"outer"):
        enter = enters[frame]
        (merge,) = (node for node in nodes.values() if node.op == "Merge" and node.input[0] == enter.name)
        (switch,) = (node for node in nodes.values() if node.op == "Switch" and node.input[0] == merge.name)
        again = nodes[merge.input[1]]
        assert (again.op, list(again.input)) == ("NextIteration", [f"{switch.name}:1"])
        assert {node.attr["T"].type for node in (enter, merge, switch, again)} == {1}
        assert merge.attr["N"].i == 2
        assert not enter.attr["is_constant"].b
    recvs = [list(node.input) for node in nodes.values() if node.op == "_Recv"]
    assert all(len(inputs) == 1 for inputs in recvs)


def test_devices_of_one_task_in_a_loop_wait_for_the_control_loop_there() -> None:
    """The worker cuts its part once more: what another of its devices feeds follows the loop by a control edge."""
    text = LOOP.replace("BODY", "/job:worker/task:0/device:CPU:1")
    parts = cut(text, targets=("after",))

    nodes = {node.name: node for node in parts[W0].node}
    loops = {node.device: name for name, node in nodes.items() if name.startswith("_cloop") and node.op == "Merge"}
    assert nodes["body"].input[:] == ["switch:1", f"^{loops[f'{W0}/device:CPU:1']}"]
    assert nodes["next"].input[:] == ["body", f"^{loops[f'{W0}/device:CPU:0']}"]


def test_only_keys_of_what_is_sent_in_each_iteration_are_in_loops() -> None:
    graph_def = parse_text(LOOP.replace("BODY", "/job:ps/task:0"))
    graph = place(RuntimeGraph.from_graph_def(graph_def), DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",))
    graph = prune(graph, (), (), ("after",), client_device=DEVICES.device(DEVICES.client_device))
    found = partition(graph, incarnation=DEVICES.incarnation, first_id=3)

    keys = {each.key: each for part in found.parts.values() for each in channels(part, "_Recv")}
    assert {keys[key].tensor_name.partition("_")[2].partition("_")[2] for key in found.in_loops} == {
        "cond",
        "switch",
        "body",
    }
    assert len(found.in_loops) == len(keys) - 1, "the result leaves the loop once"
    numbers = {int(name.rpartition("_S")[2]) for part in found.parts.values() for name in ops(part) if "_S" in name}
    assert min(numbers) == 3
    assert found.next_id == max(numbers) + 1


def test_a_part_leaves_out_what_is_for_people_and_takes_versions_and_functions_along() -> None:
    graph_def = parse_text("x = NoOp() @/job:ps/task:0\ny = NoOp(^x) @/job:worker/task:0")
    graph_def.versions.producer = 134
    graph_def.node[0].experimental_debug_info.original_node_names.append("there")
    graph = place(RuntimeGraph.from_graph_def(graph_def), DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",))
    parts = partition(graph, incarnation=DEVICES.incarnation).parts

    assert list(parts) == [PS, W0]
    assert all(part.versions.producer == 134 for part in parts.values())
    assert not parts[PS].node[0].HasField("experimental_debug_info")
    assert graph_def.node[0].HasField("experimental_debug_info"), "the client's own stays"
    assert not parts[PS].HasField("library")


def test_enters_and_next_iterations_go_where_they_feed_and_exits_where_they_leave() -> None:
    away = "/job:ps/task:0"
    text = LOOP.replace("BODY", "/job:worker/task:0")
    for line in ("enter = Enter(start) frame_name='count'", "next = NextIteration(body)", "exit = Exit(switch)"):
        assert f"{line} @/job:worker/task:0" in text
        text = text.replace(f"{line} @/job:worker/task:0", f"{line} @{away}")

    parts = cut(text, targets=("after",))

    assert {"enter", "next", "exit"} <= set(ops(parts[W0]))
    assert set(ops(parts[PS]).values()) == {"Const", "_Send"}


@pytest.mark.parametrize(("op", "task"), [("Enter", W0), ("RefEnter", PS)])
def test_an_enter_of_a_reference_stays_with_its_variable(op: str, task: str) -> None:
    parts = cut(
        f"""
        w = VariableV2() dtype=int32 shape=[] @/job:ps/task:0
        inside = {op}(w) frame_name='count' is_constant=true @/job:ps/task:0
        """
        + LOOP.replace("BODY", "/job:worker/task:0").replace("Identity(switch:1)", "Add(switch:1, inside)"),
        targets=("after",),
    )

    assert ops(parts[task])["inside"] == op


def test_an_enter_that_nobody_takes_stays_where_it_is() -> None:
    parts = cut(
        "start = Const() dtype=int32 value=0\nlost = Enter(start) frame_name='f' @/job:ps/task:0", targets=("lost",)
    )

    assert ops(parts[PS])["lost"] == "Enter"


def test_a_reader_of_a_reference_with_others_of_both_kinds_waits_for_all_of_them() -> None:
    """Inputs on the variable's task, on the reader's and a control input, one of each twice."""
    parts = cut(
        READS
        + """
        made = Neg(train) @/job:worker/task:0
        near = Neg(train) @/job:ps/task:0
        now = AddN(made, w, near, w, ^made, ^train) N=4 T=float @/job:worker/task:0
        """,
        targets=("now",),
    )

    ((first, *more),) = {tuple(each) for each in sends_of_w(parts)}
    (heard,) = (node.name for node in parts[PS].node if node.op == "Identity")
    assert [first, *more] == sorted([f"^{heard}", "^near", "^train"])
    now = next(node for node in parts[W0].node if node.name == "now")
    assert now.input[1] == now.input[3]
    assert now.input[0] == "made"
    assert now.input[4] == "^made"


def test_what_only_receives_tells_of_no_change() -> None:
    """A feed is stateful by its definition, and yet nothing that a reader has to see comes before it."""
    parts = cut(READS + "x = Placeholder() dtype=float @/job:worker/task:0\nsum = Add(w, x) @/job:worker/task:0",
        feeds=("x",), targets=("sum", "train"))  # fmt: skip

    assert sends_of_w(parts) == [[]]
    assert channels(parts[PS], "_Recv") == []


def test_the_first_output_is_named_without_its_number_and_another_with_it() -> None:
    parts = cut(
        "two = Unpack(pair) num=2 T=float\npair = Const() dtype=float value=[1.0,2.0]\nsum = Add(two, two:1)",
        targets=("sum",),
    )

    (node,) = (node for node in parts[W0].node if node.name == "sum")
    assert list(node.input) == ["two", "two:1"]


def test_each_output_crosses_by_itself_and_each_edge_has_its_number() -> None:
    parts = cut(
        """
        pair = Const() dtype=float value=[1.0,2.0] @/job:ps/task:0
        two = Unpack(pair) num=2 T=float @/job:ps/task:0
        sum = Add(two, two:1) @/job:worker/task:0
        late = NoOp(^two) @/job:worker/task:0
        more = Neg(two:1) @/job:worker/task:0
        """,
        targets=("sum", "late", "more"),
    )

    assert [channel.tensor_name for channel in channels(parts[PS], "_Send")] == [
        "edge_0_two", "edge_1_two", "edge_2_two"
    ]  # fmt: skip
    assert [node.input[0] for node in parts[PS].node if node.op == "_Send"][:2] == ["two:0", "two:1"]
    made = {node.name: list(node.input) for node in parts[W0].node}
    assert made["more"] == [made["sum"][1]]


def test_names_of_new_nodes_pass_over_those_that_are_taken() -> None:
    parts = cut(
        "a = Const() dtype=float value=1.0 @/job:ps/task:0\na_S0 = Neg(a) @/job:ps/task:0\n"
        "a_S2 = Neg(a) @/job:ps/task:0\nb = AddN(a, a_S0, a_S2) @/job:worker/task:0",
        targets=("b",),
    )

    made = [name for part in parts.values() for name, op in ops(part).items() if op in ("_Send", "_Recv")]
    assert made[0] == "a_S1"
    assert len(set(made)) == 6


def test_a_part_takes_along_the_functions_that_its_nodes_call() -> None:
    graph_def = parse_text("x = Const() dtype=float value=1.0 @/job:ps/task:0\ny = Neg(x) @/job:worker/task:0")
    for name in ("f", "g"):
        graph_def.library.function.add().signature.name = name
    graph_def.node[1].attr["_calls"].func.name = "g"
    graph = place(RuntimeGraph.from_graph_def(graph_def), DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",))
    parts = partition(graph, incarnation=DEVICES.incarnation).parts

    assert [each.signature.name for each in parts[W0].library.function] == ["g"]
    assert not parts[PS].library.function


def test_a_recv_says_whether_its_tensor_is_alive_in_every_step() -> None:
    """What no branch leads to is; what comes out of one is not known to be. A graph without branches says nothing."""
    parts = cut(
        """
        p = Placeholder() dtype=bool @/job:worker/task:0
        w = VariableV2() dtype=float shape=[2] @/job:ps/task:0
        read = Identity(w) colocate=w
        x = Neg(read) @/job:worker/task:0
        s = Switch(x, p) @/job:worker/task:0
        far = Neg(s:1) @/job:ps/task:0
        near = Neg(far) @/job:worker/task:0
        """,
        feeds=("p",),
        targets=("near",),
    )

    marked = {
        channel_of(node).tensor_name.partition("_")[2].partition("_")[2]: "_alive" in node.attr
        for part in parts.values()
        for node in part.node
        if node.op == "_Recv" and not channel_of(node).client_terminated
    }
    assert marked["read"]
    assert not marked["far"]
    assert not any("_alive" in node.attr for part in cut(READ_ON_TWO, targets=("b",)).values() for node in part.node)


def test_a_read_that_is_sent_after_a_branch_may_come_dead() -> None:
    parts = cut(
        """
        p = Placeholder() dtype=bool @/job:worker/task:0
        w = VariableV2() dtype=float shape=[2] @/job:ps/task:0
        one = Const() dtype=float value=1 @/job:ps/task:0
        s = Switch(one, p) @/job:ps/task:0
        update = AssignAdd(w, s:1) @/job:ps/task:0
        read = Neg(w, ^update) @/job:worker/task:0
        """,
        feeds=("p",),
        targets=("read",),
    )

    assert not any("_alive" in node.attr for node in parts[W0].node if "w" in channel_names(node))


def channel_names(node: NodeDef) -> list[str]:
    return [channel_of(node).tensor_name.rpartition("_")[2]] if node.op == "_Recv" else []
