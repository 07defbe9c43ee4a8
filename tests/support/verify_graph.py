"""Checks what must hold of a graph after each pass. A failure is a defect of the pass, never of the program.

Called by the tests after every pass, and by hand when a pass is suspected. One function a stage; each checks
also what the stages before it promised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tenfold_compiler.graph.send_recv import Channel, channel_of
from tenfold_core import dtypes, errors
from tenfold_core.device import DeviceSpec, task_of
from tenfold_core.node_names import node_reference, parse_tensor_name
from tenfold_core.opdefs.runtime_ops import RECV_OPS, SEND_OPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_compiler.graph.runtime_graph import RuntimeGraph
    from tenfold_protos.graph_pb2 import GraphDef

Stage = Literal["build", "place", "prune"]


def verify(graph: RuntimeGraph, after: Stage) -> RuntimeGraph:
    """Gives the graph back. Raises InternalError naming the pass, the node and the broken promise."""
    for name, node in graph.nodes.items():
        if node.name != name:
            raise _broken(after, name, f"is filed under '{name}' and named '{node.name}'")
        if len(node.inputs) != len(node.input_types):
            raise _broken(after, name, f"has {len(node.inputs)} inputs and {len(node.input_types)} input types")
        for tensor, expected in zip(node.inputs, node.input_types, strict=True):
            source = graph.nodes.get(tensor.node)
            if source is None or tensor.output >= len(source.output_types):
                raise _broken(after, name, f"takes {tensor}, which does not exist")
            if source.output_types[tensor.output].base_dtype is not expected.base_dtype:
                actual = source.output_types[tensor.output].op_name
                raise _broken(after, name, f"takes {tensor} of {actual} as {expected.op_name}")
            same_place = expected.is_ref_dtype or expected is dtypes.resource
            same_place = same_place and not node.attrs.get("_lowered")
            if after != "build" and same_place and source.device != node.device and source.op not in RECV_OPS:
                raise _broken(after, name, f"on {node.device} takes {tensor} by reference from {source.device}")
        for control in node.control_inputs:
            if control not in graph.nodes:
                raise _broken(after, name, f"waits for '{control}', which does not exist")
        if after != "build" and None in _device_parts(node.device):
            raise _broken(after, name, f"has the device '{node.device}', which is no full name")
    return graph


def verify_parts(parts: Mapping[str, GraphDef]) -> Mapping[str, GraphDef]:
    """What must hold after `partition`. Gives the parts back; raises InternalError.

    Every part is closed, every node of it is on its task and without `_class`, and every key that is not the client's
    has exactly one _Send, on the sending device, and one _Recv of the same type, on the receiving one.
    """
    sends: dict[str, tuple[Channel, int]] = {}
    recvs: dict[str, tuple[Channel, int]] = {}
    for task, part in parts.items():
        names = {node.name for node in part.node}
        if len(names) != len(part.node):
            raise errors.internal(f"after partition: two nodes of one name in the part of {task}")
        for node in part.node:
            if task_of(node.device) != task:
                raise _broken("partition", node.name, f"is on {node.device}, in the part of {task}")
            if "_class" in node.attr:
                raise _broken("partition", node.name, "still has _class")
            for text in node.input:
                source = text[1:] if text.startswith("^") else parse_tensor_name(text).node
                if source not in names:
                    raise _broken("partition", node.name, f"takes '{text}', which is not in the part of {task}")
            if node.op in SEND_OPS or node.op in RECV_OPS:
                table = sends if node.op in SEND_OPS else recvs
                dtype = node.attr["T" if node.op in SEND_OPS else "tensor_type"].type
                channel = channel_of(node)
                own = channel.send_device if node.op in SEND_OPS else channel.recv_device
                if own != node.device:
                    raise _broken("partition", node.name, f"is on {node.device} but its channel says {own}")
                if not channel.client_terminated:
                    if channel.key in table:
                        raise _broken("partition", node.name, f"is the second {node.op} of {channel.key}")
                    table[channel.key] = (channel, dtype)
    for key in sends.keys() ^ recvs.keys():
        raise errors.internal(f"after partition: {key} has only one end")
    for key, sent in sends.items():
        if recvs[key] != sent:
            raise errors.internal(f"after partition: the two ends of {key} differ in type")
    return parts


def _device_parts(name: str) -> tuple[object, ...]:
    spec = DeviceSpec.from_string(name)
    return (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index)


def _broken(stage: str, name: str, what: str) -> errors.InternalError:
    return errors.internal(f"after {stage}: node '{name}' {what}.{node_reference(name)}")
