"""The nodes that passes add: NodeDefs from Python values, and nodes of them, without the checks on what clients send.

Used by prune.py, partition.py, control_loops.py, send_recv.py, lowering.py and function_gradients.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import opdefs
from tenfold_core.attr_value import to_proto
from tenfold_core.node_attrs import resolve_attrs
from tenfold_core.node_names import TensorName, parse_tensor_name
from tenfold_core.node_signature import signature
from tenfold_protos import node_def_pb2

from .node import Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tenfold_protos.node_def_pb2 import NodeDef

_NO_FLOATS = np.empty(0, np.float32)


def new_def(
    op: str, name: str, inputs: Iterable[object] = (), attrs: Mapping[str, Any] | None = None, device: str = ""
) -> NodeDef:
    """A NodeDef. Inputs are written as they print; attributes that the op does not have are bools."""
    node_def = node_def_pb2.NodeDef(name=name, op=op, device=device, input=map(str, inputs))
    types = opdefs.get(op).attr_by_name
    for key, value in (attrs or {}).items():
        node_def.attr[key].CopyFrom(to_proto(value, types[key].type if key in types else "bool"))
    return node_def


def no_floats(name: str, device: str, inputs: Iterable[object] = ()) -> NodeDef:
    """A constant of no elements: what goes where only that something has run counts."""
    return new_def("Const", name, inputs, {"dtype": _NO_FLOATS.dtype, "value": _NO_FLOATS}, device)


def node_of(
    node_def: NodeDef,
    inputs: tuple[TensorName, ...],
    control_inputs: tuple[str, ...],
    requested_device: str = "",
    device: str = "",
) -> Node:
    """The node of a NodeDef, whose own inputs do not count."""
    op_def = opdefs.get(node_def.op)
    attrs = resolve_attrs(op_def, node_def)
    types = signature(op_def, attrs)
    return Node(
        node_def.name,
        node_def.op,
        op_def,
        node_def,
        attrs,
        inputs,
        control_inputs,
        types.input_types,
        types.output_types,
        requested_device,
        device,
    )


def make_node(node_def: NodeDef, device: str = "") -> Node:
    """The node of a NodeDef and its inputs."""
    data = tuple(parse_tensor_name(text) for text in node_def.input if not text.startswith("^"))
    control = tuple(text[1:] for text in node_def.input if text.startswith("^"))
    return node_of(node_def, data, control, device=device)
