"""Pruning to one run signature: feeds cut, fetches leave, the rest goes."""

from __future__ import annotations

import pytest

from support.fake_cluster import fake_device
from support.graph_text import parse_text
from support.verify_graph import verify
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_compiler.graph.send_recv import channel_of
from tenfold_core import dtypes, errors
from tenfold_core.node_names import TensorName

MASTER = fake_device("/job:worker/task:0", incarnation=0xF00000000000000D)

GRAPH = """
    x = Placeholder() dtype=float
    w = VariableV2() dtype=float shape=[]
    read = Identity(w)
    product = Mul(read, x)
    loss = Neg(product)
    update = Assign(w, loss)
    unused = Const() dtype=float value=1.0
    init_value = Const() dtype=float value=0.0
    init = Assign(w, init_value)
    train = NoOp(^update)
    after_x = NoOp(^x)
    after_read = NoOp(^read)
    two = Unpack(pair) num=2 T=float
    pair = Const() dtype=float value=[1.0,2.0]
"""


def placed(text: str = GRAPH) -> RuntimeGraph:
    devices = DeviceSet([MASTER], MASTER.name)
    graph = RuntimeGraph.from_graph_def(parse_text(text))
    return place(graph, devices, devices_with_kernel=lambda op, attrs: ("CPU",))


def pruned(
    *,
    feeds: tuple[str, ...] = (),
    fetches: tuple[str, ...] = (),
    targets: tuple[str, ...] = (),
    connections: tuple[tuple[str, str], ...] = (),
) -> RuntimeGraph:
    graph = prune(placed(), feeds, fetches, targets, client_device=MASTER, connections=connections)
    return verify(graph, after="prune")


def test_only_what_a_target_needs_is_kept() -> None:
    assert list(pruned(targets=("init",)).nodes) == ["w", "init_value", "init"]


def test_a_reference_is_fetched_after_what_writes_through_it() -> None:
    graph = pruned(feeds=("x",), fetches=("w", "update"), targets=("train",))

    assert graph.nodes["_send_w_0"].control_inputs == ("update",)
    assert graph.nodes["_send_update_0"].control_inputs == ()


def test_a_reference_is_fetched_before_what_may_not_run() -> None:
    text = (
        GRAPH
        + """
    sometimes = Const() dtype=bool value=True
    value = Const() dtype=float value=2.0
    switch = Switch(value, sometimes)
    branch = Assign(w, switch:1)
    """
    )
    graph = prune(placed(text), (), ("w",), ("branch",), client_device=MASTER)

    assert graph.nodes["_send_w_0"].control_inputs == ()


def test_a_partial_run_fetches_a_reference_at_once() -> None:
    graph = prune(placed(), ("x",), ("w", "update"), (), client_device=MASTER, is_partial=True)

    assert graph.nodes["_send_w_0"].control_inputs == ()


def test_a_fetch_leaves_through_a_client_terminated_send() -> None:
    graph = pruned(fetches=("read",))

    send = graph.nodes["_send_read_0"]
    assert (send.op, send.inputs, send.device) == ("_Send", (TensorName("read", 0),), MASTER.name)
    channel = channel_of(send.node_def)
    assert channel.client_terminated
    assert channel.key == f"{MASTER.name};f00000000000000d;{MASTER.name};read:0;0:0"
    assert send.node_def.attr["send_device_incarnation"].i == 0xF00000000000000D - (1 << 64)


def test_a_reference_is_fetched_by_value() -> None:
    assert pruned(fetches=("w",)).nodes["_send_w_0"].input_types == (dtypes.float32,)


def test_a_feed_replaces_what_computed_it() -> None:
    graph = pruned(feeds=("product",), fetches=("loss:0",))

    assert list(graph.nodes) == ["_recv_product_0", "loss", "_send_loss_0"]
    assert graph.nodes["loss"].inputs == (TensorName("_recv_product_0", 0),)
    assert graph.nodes["_recv_product_0"].output_types == (dtypes.float32,)


def test_a_feed_that_nobody_needs_is_dropped() -> None:
    assert list(pruned(feeds=("x",), fetches=("read",)).nodes) == ["w", "read", "_send_read_0"]


def test_feeding_one_output_keeps_the_node_for_the_other() -> None:
    graph = prune(placed(GRAPH + "\n    s = Add(two, two:1)"), ["two:1"], ["s"], [], client_device=MASTER)

    assert graph.nodes["s"].inputs == (TensorName("two", 0), TensorName("_recv_two_1", 0))


def test_who_waits_for_a_fed_placeholder_waits_for_the_feed() -> None:
    assert pruned(feeds=("x",), targets=("after_x",)).nodes["after_x"].control_inputs == ("_recv_x_0",)


def test_who_waits_for_another_fed_node_still_waits_for_that_node() -> None:
    assert pruned(feeds=("read",), targets=("after_read",)).nodes["after_read"].control_inputs == ("read",)


def test_a_target_may_be_written_as_a_tensor() -> None:
    assert "init" in pruned(targets=("init:0",)).nodes


@pytest.mark.parametrize(
    ("feeds", "fetches", "targets", "cls", "text"),
    [
        ((), (), (), errors.InvalidArgumentError, "Must specify at least one target to fetch or execute."),
        (("y:0",), ("loss",), (), errors.NotFoundError, "FeedInputs: unable to find feed output y:0"),
        (("x:1",), ("loss",), (), errors.InvalidArgumentError, "FeedInputs: x:1 should have output index < 1"),
        (("x", "x:0"), ("loss",), (), errors.InvalidArgumentError, 'Endpoint "x:0" fed more than once.'),
        (("x",), ("x:0",), (), errors.InvalidArgumentError, "x:0 is both fed and fetched."),
        ((), ("los:0",), (), errors.NotFoundError, "FetchOutputs node los:0: not found; did you mean 'loss'?"),
        ((), ("loss:3",), (), errors.InvalidArgumentError, "FetchOutputs loss:3: output index too large, must be < 1"),
        (
            (),
            ("train:0",),
            (),
            errors.InvalidArgumentError,
            "Tried to fetch data for 'train:0', which produces no output.",
        ),
        ((), (), ("a", "train", "b"), errors.NotFoundError, "PruneForTargets: Some target nodes not found: a b"),
        ((), ("",), (), errors.NotFoundError, "FetchOutputs node : not found"),
        (("w",), (), ("update",), errors.InvalidArgumentError, "'update' (Assign) writes to 'w:0', which is fed"),
    ],
)
def test_wrong_names_are_refused_as_tensorflow_does(
    feeds: tuple[str, ...], fetches: tuple[str, ...], targets: tuple[str, ...], cls: type[errors.OpError], text: str
) -> None:
    with pytest.raises(errors.OpError) as caught:
        pruned(feeds=feeds, fetches=fetches, targets=targets)

    assert type(caught.value) is cls
    assert text in caught.value.message


# -- connections: `to` is what `from` is ------------------------------------------------------------------------------


def test_a_connection_stands_for_the_tensor_that_it_leads_to() -> None:
    graph = pruned(fetches=("loss",), connections=(("init_value", "product"),))

    assert set(graph.nodes) == {"init_value", "_identity_product_0", "loss", "_send_loss_0"}
    assert graph.nodes["_identity_product_0"].inputs == (TensorName("init_value", 0),)
    assert graph.nodes["_identity_product_0"].device == MASTER.name
    assert graph.nodes["loss"].inputs == (TensorName("_identity_product_0", 0),)


def test_the_source_of_a_connection_can_be_fetched_too() -> None:
    graph = pruned(fetches=("init_value", "loss"), connections=(("init_value", "product"),))

    assert graph.nodes["_send_init_value_0"].inputs == (TensorName("init_value", 0),)


def test_who_waits_for_a_connected_placeholder_waits_for_what_it_is() -> None:
    assert list(pruned(targets=("after_x",), connections=(("unused", "x"),)).nodes) == [
        "_identity_x_0",
        "unused",
        "after_x",
    ]


def test_a_later_connection_changes_the_source_of_an_earlier_one() -> None:
    graph = pruned(fetches=("loss",), connections=(("read", "product"), ("init_value", "read")))

    assert graph.nodes["_identity_product_0"].inputs == (TensorName("_identity_read_0", 0),)
    assert graph.nodes["_identity_read_0"].inputs == (TensorName("init_value", 0),)


def test_a_feed_does_not_change_the_source_of_a_connection() -> None:
    graph = pruned(feeds=("read",), fetches=("loss",), connections=(("read", "product"),))

    assert graph.nodes["_identity_product_0"].inputs == (TensorName("read", 0),)


def test_a_feed_cuts_what_would_be_a_cycle() -> None:
    graph = pruned(feeds=("product",), targets=("update",), connections=(("loss", "read"),))

    assert "_recv_product_0" in graph.nodes


CONNECTION_ERRORS = [
    ({"connections": (("q", "x"),)}, errors.InvalidArgumentError, 'connection from unknown node: "x"'),
    (
        {"connections": (("pair:17", "x"),)},
        errors.InvalidArgumentError,
        r'from unknown edge: "x" \(actual number of outputs = 1\)',
    ),
    ({"connections": (("pair", "q:0"),)}, errors.NotFoundError, "FeedInputs: unable to find feed output q:0"),
    ({"connections": (("pair", "two:2"),)}, errors.InvalidArgumentError, "should have output index < 2"),
    (
        {"connections": (("unused", "x"), ("init_value", "x"))},
        errors.InvalidArgumentError,
        'Endpoint "x:0" fed more than once',
    ),
    (
        {"feeds": ("x",), "connections": (("unused", "x"),)},
        errors.InvalidArgumentError,
        'Endpoint "x:0" fed more than once',
    ),
    ({"connections": (("unused", "loss"),)}, errors.InvalidArgumentError, "loss:0 is both fed and fetched"),
    (
        {"connections": (("product", "w"),)},
        errors.InvalidArgumentError,
        'between nodes "w" and "product" would create a cycle',
    ),
    (
        {"connections": (("product", "product"),)},
        errors.InvalidArgumentError,
        'between nodes "product" and "product" would create a cycle',
    ),
    (
        {"connections": (("unused", "x"), ("product", "unused"))},
        errors.InvalidArgumentError,
        'between nodes "unused" and "product" would create a cycle',
    ),
    ({"connections": (("unused", "x"),) * 257}, errors.ResourceExhaustedError, "257 tensor connections"),
]


@pytest.mark.parametrize(("asked", "kind", "says"), CONNECTION_ERRORS)
def test_connections_that_cannot_be(asked: dict[str, tuple[str, ...]], kind: type[errors.OpError], says: str) -> None:
    with pytest.raises(kind, match=says):
        pruned(fetches=("loss",), **asked)  # type: ignore[arg-type]


def test_a_connection_keeps_the_type() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="a float, and count:0, a int32: their types differ"):
        prune(
            placed(GRAPH + "    count = Const() dtype=int32 value=1\n    next = Neg(count) T=int32\n"),
            (),
            ("next",),
            (),
            client_device=MASTER,
            connections=(("x", "count"),),
        )


def test_a_connection_and_a_feed_each_get_the_tensor_that_is_theirs() -> None:
    graph = pruned(
        feeds=("x", "init_value"), fetches=("product", "init"), connections=(("unused", "read"), ("pair", "two:1"))
    )

    assert graph.nodes["product"].inputs == (TensorName("_identity_read_0", 0), TensorName("_recv_x_0", 0))
    assert graph.nodes["init"].inputs[1] == TensorName("_recv_init_value_0", 0)
    assert list(graph.nodes)[:2] == ["_recv_x_0", "_recv_init_value_0"]
    assert "_identity_two_1" not in graph.nodes


@pytest.mark.parametrize("count", [256, 257])
def test_so_many_connections_may_be_made(count: int) -> None:
    lines = [f"a{n} = Const() dtype=float value=1.0\nb{n} = Neg(a{n})" for n in range(count)]
    graph = placed("\n".join(["x = Const() dtype=float value=2.0", *lines]))
    connections = [("x", f"a{n}") for n in range(count)]

    if count == 256:
        found = prune(graph, (), ("b255",), (), client_device=MASTER, connections=connections)
        assert list(found.nodes) == ["_identity_a255_0", "x", "b255", "_send_b255_0"]
    else:
        with pytest.raises(errors.ResourceExhaustedError, match="has 257 tensor connections; this server takes 256"):
            prune(graph, (), ("b0",), (), client_device=MASTER, connections=connections)


def test_the_last_output_can_be_fed_fetched_and_connected_and_none_behind_it() -> None:
    graph = pruned(feeds=("two:1",), fetches=("two:0",))
    assert list(graph.nodes) == ["two", "pair", "_send_two_0"]
    assert "_send_two_1" in pruned(fetches=("two:1",)).nodes
    assert pruned(fetches=("loss",), connections=(("two:1", "product"),)).nodes["_identity_product_0"].inputs == (
        TensorName("two", 1),
    )
    for wrong in ({"feeds": ("two:2",), "fetches": ("loss",)}, {"fetches": ("two:2",)}):
        with pytest.raises(errors.InvalidArgumentError, match="< 2"):
            pruned(**wrong)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidArgumentError, match="actual number of outputs = 2"):
        pruned(fetches=("loss",), connections=(("two:2", "product"),))


def test_an_identity_of_a_connection_is_on_the_device_of_what_it_stands_for() -> None:
    ps = fake_device("/job:ps/task:0")
    devices = DeviceSet([MASTER, ps], MASTER.name)
    text = "a = Placeholder() dtype=float @/job:ps\nb = Placeholder() dtype=float\nc = Neg(b) @/job:ps\nd = Neg(b)"
    graph = place(RuntimeGraph.from_graph_def(parse_text(text)), devices, devices_with_kernel=lambda *_: ("CPU",))

    def made(source: str, to: str, fetch: str) -> dict[str, str]:
        found = prune(graph, (), (fetch,), (), client_device=MASTER, connections=((source, to),))
        return {name: node.device for name, node in found.nodes.items()}

    assert made("a", "b", "c") == {
        "_identity_b_0": MASTER.name, "a": ps.name, "c": ps.name, "_send_c_0": MASTER.name
    }  # fmt: skip


def test_a_reference_can_be_connected_to_a_value_of_its_type() -> None:
    graph = pruned(fetches=("loss",), connections=(("w", "product"),))

    assert graph.nodes["_identity_product_0"].inputs == (TensorName("w", 0),)
    assert graph.nodes["_identity_product_0"].attrs["T"] is dtypes.float32


def test_a_reference_elsewhere_is_fetched_at_once_and_one_here_after_writers_that_are_here() -> None:
    ps = fake_device("/job:ps/task:0")
    devices = DeviceSet([MASTER, ps], MASTER.name)
    text = """
        one = Const() dtype=float value=1.0
        away = VariableV2() dtype=float shape=[] @/job:ps
        far = AssignAdd(away, one) @/job:ps
        here = VariableV2() dtype=float shape=[] @/job:worker
        near = AssignAdd(here, one)
        next = AssignAdd(near, one)
        reads = Identity(next)
    """
    graph = place(RuntimeGraph.from_graph_def(parse_text(text)), devices, devices_with_kernel=lambda *_: ("CPU",))
    found = prune(graph, (), ("away", "here", "near"), ("far", "reads"), client_device=MASTER)

    after = {name: node.control_inputs for name, node in found.nodes.items() if node.op == "_Send"}
    assert after == {"_send_away_0": (), "_send_here_0": ("near", "next"), "_send_near_0": ("next",)}


@pytest.mark.parametrize("op", ["Switch", "Merge", "Enter"])
def test_a_reference_is_not_fetched_after_what_may_run_never_or_often(op: str) -> None:
    lines = {
        "Switch": "s = Switch(one, sure)\nbranch = Assign(w, s:1)",
        "Merge": "s = Merge(one, one) T=float N=2\nbranch = Assign(w, s)",
        "Enter": "s = Enter(one) frame_name='f'\nbranch = Assign(w, s)",
    }
    text = f"{GRAPH}\none = Const() dtype=float value=1.0\nsure = Const() dtype=bool value=True\n{lines[op]}"
    graph = prune(placed(text), (), ("w",), ("branch", "init"), client_device=MASTER)

    assert graph.nodes["_send_w_0"].control_inputs == ("init",)


def test_who_waits_for_two_fed_placeholders_waits_for_each_feed_once() -> None:
    text = GRAPH + "    z = Placeholder() dtype=float\n    both = NoOp(^x, ^z, ^read, ^x)"
    graph = prune(placed(text), ("x", "z"), (), ("both",), client_device=MASTER)

    assert graph.nodes["both"].control_inputs == ("_recv_x_0", "_recv_z_0", "read")


def test_a_node_that_no_feed_touches_stays_the_same_object() -> None:
    graph = placed()
    found = prune(graph, ("x",), ("loss", "read"), ("after_x",), client_device=MASTER)

    assert found.nodes["read"] is graph.nodes["read"]
    assert found.nodes["loss"] is graph.nodes["loss"]
    assert found.nodes["product"] is not graph.nodes["product"]


def test_a_target_whose_name_looks_like_a_tensors_is_found_and_one_missing_gets_a_hint() -> None:
    assert list(pruned(targets=("init:7",)).nodes) == ["w", "init_value", "init"]
    with pytest.raises(errors.NotFoundError, match=r"not found: inti; did you mean 'init'\?"):
        pruned(targets=("inti",))
    with pytest.raises(errors.NotFoundError, match=r"not found: inti trian$"):
        pruned(targets=("inti", "trian"))


def test_a_connection_may_come_from_behind_a_loop() -> None:
    """Its edges back go round: each node is looked at once."""
    text = """
        start = Const() dtype=int32 value=0
        enter = Enter(start) frame_name='f'
        merge = Merge(enter, next) T=int32 N=2
        sure = Const(^merge) dtype=bool value=False
        cond = LoopCond(sure)
        switch = Switch(merge, cond)
        next = NextIteration(switch:1)
        exit = Exit(switch)
        count = Placeholder() dtype=int32
        more = Neg(count)
    """
    graph = prune(placed(text), (), ("more",), (), client_device=MASTER, connections=(("exit", "count"),))

    assert graph.nodes["_identity_count_0"].inputs == (TensorName("exit", 0),)
    assert "count" not in graph.nodes
