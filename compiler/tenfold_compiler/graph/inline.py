"""Puts the body of a function where it is called.

Nodes get the caller's name in front, the caller's device where they ask for none (or always, when the op itself is the
function's name), and the caller's control edges: what has no inputs must not run before the call, nor in another frame.
Called by lower.py and, for branches and loops, by lower_control_flow.py. Follows inline_function_utils.cc.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tenfold_core.device import merge
from tenfold_core.node_names import TensorName
from tenfold_protos import node_def_pb2

from .lowering import FUNCTIONAL_OPS
from .node import Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .functions import FunctionBody
    from .lowering import CallToLower, Lowering

_CLASS_PREFIX = b"loc:@"


def inline_call(
    lowering: Lowering,
    call: CallToLower,
    caller: str,
    body: FunctionBody,
    inputs: Sequence[TensorName],
    after: Sequence[str],
    ordered: Sequence[bool] = (),
) -> tuple[list[TensorName], Sequence[str]]:
    """Adds the nodes of one call under the name `caller`; its outputs, and the nodes to wait for (at most one).

    `ordered` says of each input whether it cannot come, or come alive, before the nodes in `after`: then nothing need
    be put between it and the body.
    """
    inliner = _Inliner(lowering, call, caller, body)
    after = lowering.one(f"{caller}/input_control_node", after, inliner.device)
    inliner.take_arguments(inputs, after, ordered)
    # In a loop what has no inputs must run in the call's frame: with its first argument.
    before = after or [tensor.node for tensor in inliner.arguments[:1] if lowering.has_frames]
    for node in body.nodes:
        control = [inliner.control(name) for name in node.control_inputs]
        # A call without inputs hands the edge on to what has none in its own body.
        if not control and (not node.inputs or lowering.is_functional(node)):
            control.extend(before)
        lowering.put(inliner.copy(node, tuple(dict.fromkeys(control))), (*call.chain, body.name))
    outputs = [inliner.tensor(tensor) for tensor in body.returns]
    ends = [inliner.names[name] for name in body.control_returns]
    if inliner.one_device or not ends:
        ends.extend(tensor.node for tensor in outputs if tensor not in inliner.arguments)
    return outputs, lowering.one(f"{caller}/output_control_node", ends or after, inliner.device)


class _Inliner:
    """One call: the names, devices and inputs of its nodes."""

    def __init__(self, lowering: Lowering, call: CallToLower, caller: str, body: FunctionBody) -> None:
        self._lowering, self._caller, self._body = lowering, caller, body
        self.device = call.node.requested_device
        self._within_device = cache(lambda requested: merge(self.device, requested))
        #: The op itself is the function's name.
        self.one_device = call.node.op not in FUNCTIONAL_OPS
        #: Node of the body → its name in the graph.
        self.names = {node.name: lowering.name(f"{caller}/{node.name}") for node in body.nodes}
        #: What each flat parameter is.
        self.arguments: list[TensorName] = []

    def take_arguments(self, inputs: Sequence[TensorName], after: Sequence[str], ordered: Sequence[bool]) -> None:
        waited_for = {control for node in self._body.nodes for control in node.control_inputs}
        for (name, index), number in self._body.args.items():
            source, dtype = inputs[number], self._body.arg_types[number]
            if name in waited_for or (after and not (ordered and ordered[number])):
                source = self._lowering.add(
                    "Identity",
                    f"{self._caller}/{name}_{index}" if index else f"{self._caller}/{name}",
                    [source],
                    {"T": dtype},
                    after=after,
                    device=self.device if self.one_device else "",
                    beside=source,
                )
            self.arguments.append(source)

    def copy(self, node: Node, control: tuple[str, ...]) -> Node:
        name = self.names[node.name]
        attrs, node_def = node.attrs, node.node_def
        if "frame_name" in attrs:
            # Two calls must not run in one frame.
            frame = self._caller.encode() + b"/" + attrs["frame_name"]
            attrs = {**attrs, "frame_name": frame}
            node_def = node_def_pb2.NodeDef()
            node_def.CopyFrom(node.node_def)
            node_def.attr["frame_name"].s = frame
        if attrs.get("_class"):
            attrs = {**attrs, "_class": self._groups(name, attrs["_class"])}
        # Spelled out: `replace` takes twice as long, and a graph may have a hundred thousand of them.
        return Node(
            name,
            node.op,
            node.op_def,
            node_def,
            attrs,
            tuple(map(self.tensor, node.inputs)),
            control,
            node.input_types,
            node.output_types,
            self._device_of(node.requested_device),
        )

    def _groups(self, name: str, values: Sequence[bytes]) -> list[bytes]:
        """Colocation groups, as the nodes are called now."""
        found = []
        for value in values:
            other = value.removeprefix(_CLASS_PREFIX).decode(errors="replace")
            if other in self._body.first_arg:
                first = self._body.first_arg[other]
                if first < len(self.arguments):
                    self._lowering.beside[name] = self.arguments[first]
            else:
                found.append(_CLASS_PREFIX + self.names.get(other, other).encode())
        return found

    def _device_of(self, requested: str) -> str:
        return self.device if self.one_device or not requested else self._within_device(requested)

    def tensor(self, tensor: TensorName) -> TensorName:
        number = self._body.args.get(tensor)
        return self.arguments[number] if number is not None else TensorName(self.names[tensor.node], tensor.output)

    def control(self, name: str) -> str:
        first = self._body.first_arg.get(name)
        return self.names[name] if first is None else self.arguments[first].node
