"""Op definitions: what the runtime puts into a partition itself.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default; `_Bundle` and `_Unbundle` are Tenfold's own), flags, and the function that infers static shapes. See
`tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs.table import family

op = family("sendrecv")

op("_Arg", "", "output: T", "T: type", "index: int >= 0", stateful=True)
op("_Bundle", "tensors: T", "bundle: uint8", "T: list(type) >= 1", shape=s.always([None]))
op(
    "_HostRecv",
    "",
    "tensor: tensor_type",
    "tensor_type: type",
    "tensor_name: string",
    "send_device: string",
    "send_device_incarnation: int",
    "recv_device: string",
    "client_terminated: bool = false",
    stateful=True,
    distributed_communication=True,
)
op(
    "_HostSend",
    "tensor: T",
    "",
    "T: type",
    "tensor_name: string",
    "send_device: string",
    "send_device_incarnation: int",
    "recv_device: string",
    "client_terminated: bool = false",
    stateful=True,
    shape=s.no_outputs,
)
op(
    "_Recv",
    "",
    "tensor: tensor_type",
    "tensor_type: type",
    "tensor_name: string",
    "send_device: string",
    "send_device_incarnation: int",
    "recv_device: string",
    "client_terminated: bool = false",
    stateful=True,
    distributed_communication=True,
)
op("_Retval", "input: T", "", "T: type", "index: int >= 0", stateful=True)
op(
    "_Send",
    "tensor: T",
    "",
    "T: type",
    "tensor_name: string",
    "send_device: string",
    "send_device_incarnation: int",
    "recv_device: string",
    "client_terminated: bool = false",
    stateful=True,
    shape=s.no_outputs,
)
op("_Unbundle", "bundle: uint8", "tensors: T", "T: list(type) >= 1")
