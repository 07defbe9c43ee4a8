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
