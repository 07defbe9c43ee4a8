"""What a part takes from elsewhere and gives away, as its program knows it."""

from __future__ import annotations

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import TASK, compile_program, compiled
from tenfold_compiler.graph.node import make_node, new_def
from tenfold_compiler.graph.send_recv import Channel, recv_node, send_node
from tenfold_core import dtypes, errors
from tenfold_core.node_names import TensorName
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos.graph_pb2 import GraphDef

HERE, THERE = f"{TASK}/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0"
F32, INT = dtypes.float32, dtypes.int32


def channel(name: str, send: str, recv: str, *, client: bool = False) -> Channel:
    return Channel(name, send, 7, recv, client_terminated=client)


FEED, OTHER_FEED = channel("x:0", HERE, HERE, client=True), channel("n:0", HERE, HERE, client=True)
RECV = channel("edge_0_a", THERE, HERE)
SENDS = [channel(f"edge_{number}_y", HERE, THERE) for number in (1, 2)]
FETCHES = [channel(f"y:{number}", HERE, HERE, client=True) for number in (0, 1)]


def transfers() -> GraphDef:
    """A feed of each type, a tensor from the ps; two sends to it and two fetches, in turn."""
    y = TensorName("y", 0)
    nodes = [
        recv_node("feed", F32, FEED),
        recv_node("count", INT, OTHER_FEED),
        recv_node("a", F32, RECV),
        make_node(new_def("Add", "y", ["feed", "a"], {"T": F32}, HERE)),
        make_node(new_def("Neg", "z", ["count"], {"T": INT}, HERE)),
        send_node("s1", y, F32, SENDS[0]),
        send_node("f1", y, F32, FETCHES[0]),
        send_node("s2", y, F32, SENDS[1]),
        send_node("f2", TensorName("z", 0), INT, FETCHES[1]),
    ]
    return GraphDef(node=[node.node_def for node in nodes])


def test_transfers_are_told_apart_by_their_ends_and_numbered() -> None:
    program = compile_program(transfers(), TASK, ResourceManager()).compiled
    found = program.transfers
    index = {node.name: node.index for node in program.part.nodes}

    assert [(feed.node.name, feed.key, feed.dtype, feed.numpy_dtype) for feed in found.feeds] == [
        ("feed", FEED.key, F32, np.dtype(np.float32)),
        ("count", OTHER_FEED.key, INT, np.dtype(np.int32)),
    ]
    assert found.recv_keys == {RECV.key}
    assert sorted(found.send_keys) == [each.key for each in SENDS]
    assert sorted(found.fetch_keys) == [each.key for each in FETCHES]
    for name, each in zip(("s1", "s2"), SENDS, strict=True):
        assert found.send_keys[found.send_of[index[name]]] == each.key
    for name, each in zip(("f1", "f2"), FETCHES, strict=True):
        assert found.fetch_keys[found.fetch_of[index[name]]] == each.key
    assert set(found.keys) == {index[name] for name in ("feed", "count", "a", "s1", "s2", "f1", "f2")}
    assert found.keys[index["a"]] == RECV.key
    assert [(slot, feed.key) for slot, feed in program.feed_slots] == [
        (program.generated.slot_of[feed.node.index], feed.key)
        for feed in found.feeds  # type: ignore[union-attr]
    ]


def test_a_program_that_receives_takes_more_than_one_call() -> None:
    waits = compile_program(transfers(), TASK, ResourceManager()).compiled
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "y", ["x"], T=F32)
    part.fetch("y")

    assert not waits.is_straight
    assert compiled(part).compiled.is_straight
    assert {node.name for node in waits.as_graph_def().node} == {node.name for node in transfers().node}


@pytest.mark.parametrize("name", ["s1", "a"])
def test_a_transfer_whose_key_cannot_be_made_is_named(name: str) -> None:
    graph_def = transfers()
    (bad,) = (node for node in graph_def.node if node.name == name)
    bad.attr["tensor_name"].s = b"\xff"

    with pytest.raises(errors.InvalidArgumentError, match="Its attributes make no key: ") as caught:
        compile_program(graph_def, TASK, ResourceManager())

    assert caught.value.node_name == name
