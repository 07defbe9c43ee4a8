"""The nodes of a cut: keys, attributes, and that a channel is read as it was written."""

from __future__ import annotations

import pytest

from tenfold_compiler.graph.send_recv import Channel, channel_of, recv_node, send_node, signed
from tenfold_core import dtypes
from tenfold_core.node_names import TensorName

PS, WORKER = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:1/device:CPU:0"


def channel(incarnation: int = 0xAB, *, client: bool = False) -> Channel:
    return Channel("edge_5_x", PS, incarnation, WORKER, client_terminated=client)


@pytest.mark.parametrize(
    ("incarnation", "number"),
    [
        (0, 0),
        ((1 << 63) - 1, (1 << 63) - 1),
        (1 << 63, -(1 << 63)),
        ((1 << 63) + 1, 1 - (1 << 63)),
        ((1 << 64) - 1, -1),
        (1 << 64, 0),
        (-1, -1),
    ],
)
def test_an_incarnation_as_a_signed_number(incarnation: int, number: int) -> None:
    assert signed(incarnation) == number


def test_the_key_names_both_ends_and_the_tensor() -> None:
    assert channel().key == f"{PS};00000000000000ab;{WORKER};edge_5_x;0:0"
    assert not Channel("edge_5_x", PS, 1, WORKER).client_terminated
    assert channel((1 << 64) - 1).key == f"{PS};ffffffffffffffff;{WORKER};edge_5_x;0:0"


@pytest.mark.parametrize("client", [False, True])
@pytest.mark.parametrize("incarnation", [0, 7, 1 << 63, (1 << 64) - 1])
def test_both_nodes_carry_their_channel(incarnation: int, client: bool) -> None:
    given = channel(incarnation, client=client)
    for node in (send_node("s", TensorName("x", 0), dtypes.float32, given), recv_node("r", dtypes.float32, given)):
        assert channel_of(node.node_def) == given
        # TensorFlow 1.x refuses a node that leaves the default out
        assert "client_terminated" in node.node_def.attr


def test_a_send_is_on_the_sending_device_with_its_inputs() -> None:
    node = send_node("s", TensorName("x", 1), dtypes.float32.as_ref, channel(), ("before", "too"))

    assert (node.name, node.op, node.device, node.node_def.device) == ("s", "_Send", PS, PS)
    assert list(node.node_def.input) == ["x:1", "^before", "^too"]
    assert (node.inputs, node.control_inputs) == ((TensorName("x", 1),), ("before", "too"))
    assert node.attrs["T"] == dtypes.float32
    assert list(send_node("s", TensorName("x", 0), dtypes.int32, channel()).node_def.input) == ["x:0"]


def test_a_receive_is_on_the_receiving_device_and_has_no_inputs() -> None:
    node = recv_node("r", dtypes.float32.as_ref, channel())

    assert (node.name, node.op, node.device, node.node_def.device) == ("r", "_Recv", WORKER, WORKER)
    assert not node.node_def.input
    assert node.attrs["tensor_type"] == dtypes.float32
    assert node.output_types == (dtypes.float32,)
