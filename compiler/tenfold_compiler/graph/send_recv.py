"""The nodes that carry a tensor over the cut: _Send on one side, _Recv on the other, joined by their rendezvous key.

Made by prune.py for what a client feeds and fetches, and by partition.py for edges between tasks; read by the master
(which keys belong to which feed). Attributes are those of TensorFlow's sendrecv_ops.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .node import make_node, new_def

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType
    from tenfold_core.node_names import TensorName
    from tenfold_protos.node_def_pb2 import NodeDef

    from .node import Node


@dataclass(frozen=True, slots=True)
class Channel:
    """One tensor's way over the cut."""

    tensor_name: str
    send_device: str
    #: Of the sending device, as the unsigned number of DeviceAttributes. It changes when the task restarts.
    send_incarnation: int
    recv_device: str
    #: The other end is the client (a feed or a fetch), not another partition.
    client_terminated: bool = False

    @property
    def key(self) -> str:
        """The rendezvous key outside of loops."""
        return f"{self.send_device};{self.send_incarnation:016x};{self.recv_device};{self.tensor_name};0:0"


def signed(incarnation: int) -> int:
    """The number as an int64 attribute carries it."""
    incarnation &= 0xFFFFFFFFFFFFFFFF
    return incarnation - (1 << 64) if incarnation >= 1 << 63 else incarnation


def send_node(
    name: str, source: TensorName, dtype: DType, channel: Channel, control_inputs: tuple[str, ...] = ()
) -> Node:
    """A _Send of `source` on the sending device."""
    inputs = [source, *(f"^{control}" for control in control_inputs)]
    attrs = {"T": dtype.base_dtype, **_attrs_of(channel)}
    return make_node(new_def("_Send", name, inputs, attrs, channel.send_device))


def recv_node(name: str, dtype: DType, channel: Channel) -> Node:
    """A _Recv on the receiving device."""
    attrs = {"tensor_type": dtype.base_dtype, **_attrs_of(channel)}
    return make_node(new_def("_Recv", name, (), attrs, channel.recv_device))


def _attrs_of(channel: Channel) -> dict[str, str | int]:
    return {
        "tensor_name": channel.tensor_name,
        "send_device": channel.send_device,
        "send_device_incarnation": signed(channel.send_incarnation),
        "recv_device": channel.recv_device,
        # Written although it is the default: TensorFlow before 2 refuses a node without it.
        "client_terminated": channel.client_terminated,
    }


def channel_of(node_def: NodeDef) -> Channel:
    """The channel of a _Send or _Recv."""
    attr = node_def.attr
    return Channel(
        attr["tensor_name"].s.decode(),
        attr["send_device"].s.decode(),
        attr["send_device_incarnation"].i & 0xFFFFFFFFFFFFFFFF,
        attr["recv_device"].s.decode(),
        attr["client_terminated"].b,
    )
