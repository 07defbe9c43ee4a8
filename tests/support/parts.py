"""What the tests of the services share: hand-made partitions, as a master would register them.

Not used by the services themselves. Partitions made here carry only the attrs that a TensorFlow master sends: defaults
are stripped, every node has its full device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import attr_value, dtypes, opdefs, tensor_util
from tenfold_core.rendezvous_key import make_key
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_protos.node_def_pb2 import NodeDef

if TYPE_CHECKING:
    from collections.abc import Sequence


class PartBuilder:
    """Builds the GraphDef of one partition on one device.

    `part.node("Add", "sum", ["a", "b"], T=dtypes.float32)`; `feed` and `fetch` make the client-terminated ends and
    return their rendezvous keys, `send` and `recv` the ends of an edge to another device.
    """

    def __init__(self, device: str = "/job:localhost/replica:0/task:0/device:CPU:0", incarnation: int = 1) -> None:
        self.device, self.incarnation = device, incarnation
        self.graph_def = GraphDef()

    def node(self, op: str, name: str, inputs: Sequence[str] = (), **attrs: Any) -> str:
        """Adds a node; returns its name. Attr values are Python values, typed by the op's definition."""
        node = NodeDef(name=name, op=op, input=inputs, device=self.device)
        kinds = {attr.name: attr.type for attr in opdefs.get(op).attrs}
        for key, value in attrs.items():
            node.attr[key].CopyFrom(attr_value.to_proto(value, kinds[key]))
        self.graph_def.node.append(node)
        return name

    def const(self, name: str, value: Any, dtype: Any = None, inputs: Sequence[str] = ()) -> str:
        proto = tensor_util.make_tensor_proto(value, dtype)
        return self.node("Const", name, inputs, value=proto, dtype=dtypes.as_dtype(int(proto.dtype)))

    def feed(self, name: str, dtype: Any = dtypes.float32) -> str:
        return self._recv(name, dtype, self.device, self.incarnation, True, name)

    def fetch(self, source: str, dtype: Any = dtypes.float32, inputs: Sequence[str] = ()) -> str:
        return self._send(source, dtype, self.device, True, f"fetch_{source}", inputs)

    def recv(
        self, name: str, dtype: Any, send_device: str, send_incarnation: int, inputs: Sequence[str] = (), edge: str = ""
    ) -> str:
        return self._recv(name, dtype, send_device, send_incarnation, False, edge or f"edge_{name}", inputs)

    def send(self, source: str, dtype: Any, recv_device: str, edge: str, inputs: Sequence[str] = ()) -> str:
        return self._send(source, dtype, recv_device, False, edge, inputs)

    def _recv(
        self,
        name: str,
        dtype: Any,
        send_device: str,
        incarnation: int,
        client: bool,
        tensor_name: str,
        inputs: Sequence[str] = (),
    ) -> str:
        self.node(
            "_Recv",
            name,
            inputs,
            tensor_type=dtype,
            tensor_name=tensor_name,
            send_device=send_device,
            send_device_incarnation=_signed(incarnation),
            recv_device=self.device,
            client_terminated=client,
        )
        return make_key(send_device, incarnation, self.device, tensor_name)

    def _send(
        self, source: str, dtype: Any, recv_device: str, client: bool, tensor_name: str, inputs: Sequence[str]
    ) -> str:
        self.node(
            "_Send",
            f"send_{tensor_name}".replace(":", "_"),
            [source, *inputs],
            T=dtype,
            tensor_name=tensor_name,
            send_device=self.device,
            send_device_incarnation=_signed(self.incarnation),
            recv_device=recv_device,
            client_terminated=client,
        )
        return make_key(self.device, self.incarnation, recv_device, tensor_name)


def _signed(incarnation: int) -> int:
    return int(np.uint64(incarnation).astype(np.int64))
