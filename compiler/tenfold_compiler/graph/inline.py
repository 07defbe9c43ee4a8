"""Puts the body of a function where it is called.

Nodes get the caller's name in front, the caller's device where they ask for none (or always, when the op itself is the
function's name), and the caller's control edges: what has no inputs must not run before the call, nor in another frame.
Called by lower.py and, for branches and loops, by lower_control_flow.py. Follows inline_function_utils.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.device import DeviceSpec
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
    return _Inliner(lowering, call, caller, body).run(inputs, after, ordered)


class _Inliner:
    """One call."""

    def __init__(self, lowering: Lowering, call: CallToLower, caller: str, body: FunctionBody) -> None:
        self._lowering = lowering
        self._caller = caller
        self._body = body
        self._chain = (*call.chain, body.name)
        self._device = call.node.requested_device
        #: The op itself is the function's name.
        self._one_device = call.node.op not in FUNCTIONAL_OPS
        self._devices: dict[str, str] = {}
        #: Node of the body → its name in the graph.
        self._names = {node.name: lowering.name(f"{caller}/{node.name}") for node in body.nodes}
        #: What each flat parameter is.
        self._arguments: list[TensorName] = []

    def run(
        self, inputs: Sequence[TensorName], after: Sequence[str], ordered: Sequence[bool]
    ) -> tuple[list[TensorName], Sequence[str]]:
        body = self._body
        after = self._lowering.one(f"{self._caller}/input_control_node", after, self._device)
        self._take_arguments(inputs, after, ordered)
        # In a loop what has no inputs must run in the call's frame: with its first argument.
        before = after or [tensor.node for tensor in self._arguments[:1] if self._lowering.has_frames]
        for node in body.nodes:
            control = [self._control(name) for name in node.control_inputs]
            # A call without inputs hands the edge on to what has none in its own body.
            if not control and (not node.inputs or self._lowering.is_functional(node)):
                control.extend(before)
            self._lowering.put(self._copy(node, tuple(dict.fromkeys(control))), self._chain)
        outputs = [self._tensor(tensor) for tensor in body.returns]
        ends = [self._names[name] for name in body.control_returns]
        if self._one_device or not ends:
            ends.extend(tensor.node for tensor in outputs if tensor not in self._arguments)
        return outputs, self._lowering.one(f"{self._caller}/output_control_node", ends or after, self._device)

    def _take_arguments(self, inputs: Sequence[TensorName], after: Sequence[str], ordered: Sequence[bool]) -> None:
        waited_for = {control for node in self._body.nodes for control in node.control_inputs}
        flat = {number: tensor for tensor, number in self._body.args.items()}
        for number, (source, dtype) in enumerate(zip(inputs, self._body.arg_types, strict=True)):
            name, index = flat[number]
            if name in waited_for or (after and not (ordered and ordered[number])):
                source = self._lowering.add(
                    "Identity",
                    f"{self._caller}/{name}_{index}" if index else f"{self._caller}/{name}",
                    [source],
                    {"T": dtype},
                    after=after,
                    device=self._device if self._one_device else "",
                    beside=source,
                )
            self._arguments.append(source)

    def _copy(self, node: Node, control: tuple[str, ...]) -> Node:
        name = self._names[node.name]
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
            tuple(map(self._tensor, node.inputs)),
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
                if first < len(self._arguments):
                    self._lowering.stay_beside(name, self._arguments[first])
            else:
                found.append(_CLASS_PREFIX + self._names.get(other, other).encode())
        return found

    def _device_of(self, requested: str) -> str:
        if self._one_device or not requested:
            return self._device
        if requested not in self._devices:
            spec = DeviceSpec.from_string(self._device).make_merged_spec(DeviceSpec.from_string(requested))
            self._devices[requested] = spec.to_string()
        return self._devices[requested]

    def _tensor(self, tensor: TensorName) -> TensorName:
        number = self._body.args.get(tensor)
        return self._arguments[number] if number is not None else TensorName(self._names[tensor.node], tensor.output)

    def _control(self, name: str) -> str:
        first = self._body.first_arg.get(name)
        return self._names[name] if first is None else self._arguments[first].node
