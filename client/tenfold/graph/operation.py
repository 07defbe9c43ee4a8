"""Operation: a node of the client's graph, with its inputs, outputs, attributes and requested device.

Made by Graph (graph/graph.py) only. The NodeDef is kept beside the Python values of the attributes, because sessions
send the NodeDef and shape functions read the Python values. Follows TensorFlow 1.x's ops.Operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.default_stack import session_for
from tenfold.graph.tensor import Tensor
from tenfold_core import attr_value as attr_values
from tenfold_core.dtypes import DType, as_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold.graph.control_flow_context import ControlFlowContext
    from tenfold.graph.graph import Graph
    from tenfold_core.op_def import OpDef
    from tenfold_protos import attr_value_pb2, node_def_pb2, op_def_pb2

LOCATION_PREFIX = b"loc:@"


class Operation:
    """A node: `type(inputs, attributes) -> outputs`, run after its control inputs."""

    __slots__ = (
        "__weakref__",
        "_attrs",
        "_colocation_groups",
        "_consumed_by_control",
        "_control_flow_context",
        "_control_inputs",
        "_graph",
        "_id",
        "_inputs",
        "_name",
        "_node_def",
        "_op_def",
        "_outputs",
        "_traceback",
        "constant",
    )

    def __init__(
        self,
        graph: Graph,
        node_def: node_def_pb2.NodeDef,
        op_def: OpDef,
        inputs: Sequence[Tensor],
        output_types: Sequence[DType],
        control_inputs: Iterable[Operation],
        attrs: dict[str, Any],
        op_id: int,
        traceback: Any,
    ) -> None:
        self._graph = graph
        self._name = node_def.name
        self._node_def = node_def
        self._op_def = op_def
        self._inputs: tuple[Tensor, ...] = tuple(inputs)
        self._control_inputs: tuple[Operation, ...] = tuple(control_inputs)
        self._consumed_by_control: list[Operation] = []
        #: The branch or loop that this operation is in.
        self._control_flow_context: ControlFlowContext | None = graph._control_flow_context
        #: The attributes of the op definition as Python values; `_class` and its like are in the NodeDef only.
        self._attrs = attrs
        self._id = op_id
        self._traceback = traceback
        #: The read-only value of a Const, kept so that static shapes need not decode the NodeDef.
        self.constant: Any = None
        self._outputs = [Tensor(self, index, dtype) for index, dtype in enumerate(output_types)]

    def _attach(self) -> None:
        """Adds this operation to the consumers of its inputs; the last step of adding it to the graph."""
        for tensor in self._inputs:
            tensor._consumers[self] = None
        for op in self._control_inputs:
            op._consumed_by_control.append(self)

    @property
    def graph(self) -> Graph:
        """The graph that holds this operation."""
        return self._graph

    @property
    def name(self) -> str:
        """The full name, unique in the graph."""
        return self._name

    @property
    def type(self) -> str:
        """The type of the operation, e.g. `MatMul`."""
        return self._op_def.name

    @property
    def device(self) -> str:
        """The device requested, possibly partial; empty if none was."""
        return self._node_def.device

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The data inputs."""
        return self._inputs

    @property
    def outputs(self) -> list[Tensor]:
        """The output tensors."""
        return self._outputs

    def values(self) -> tuple[Tensor, ...]:
        """The output tensors, as a tuple."""
        return tuple(self._outputs)

    @property
    def control_inputs(self) -> list[Operation]:
        """The operations that run before this one without giving it a value."""
        return list(self._control_inputs)

    @property
    def _control_outputs(self) -> list[Operation]:
        return list(self._consumed_by_control)

    @property
    def node_def(self) -> node_def_pb2.NodeDef:
        """A copy of the NodeDef that is sent to the master."""
        copy = type(self._node_def)()
        copy.CopyFrom(self._node_def)
        return copy

    @property
    def op_def(self) -> op_def_pb2.OpDef:
        """The OpDef message of this type of operation."""
        return self._op_def.to_proto()

    @property
    def traceback(self) -> Any:
        """Where the operation was made: (file, line, function) triples, outermost first."""
        return self._traceback

    def get_attr(self, name: str) -> Any:
        """The value of the attribute `name`, types as DType, shapes and tensors as protos, as in TensorFlow 1.x.

        Raises ValueError if there is none.
        """
        if name not in self._node_def.attr:
            raise ValueError(f"Operation '{self._name}' has no attr named '{name}'.")
        attr = self._node_def.attr[name]
        kind = attr.WhichOneof("value")
        if kind is None:
            return []
        if kind == "type":
            return as_dtype(attr.type)
        if kind != "list":
            return getattr(attr, kind)
        for descriptor, values in attr.list.ListFields():
            return [as_dtype(value) for value in values] if descriptor.name == "type" else list(values)
        return []

    def _get_control_flow_context(self) -> ControlFlowContext | None:
        return self._control_flow_context

    def _set_control_flow_context(self, context: ControlFlowContext | None) -> None:
        self._control_flow_context = context

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Runs this operation, and what it needs, in `session` or the default session. Blocks."""
        session_for(session, self._graph, verb="run").run(self, feed_dict)

    def colocation_groups(self) -> list[bytes]:
        """The groups `loc:@name` that must share a device with this operation; its own name if none was given."""
        if "_class" in self._node_def.attr:
            groups = [group for group in self._node_def.attr["_class"].list.s if group.startswith(LOCATION_PREFIX)]
            if groups:
                return groups
        return [LOCATION_PREFIX + self._name.encode()]

    # The methods below change an existing operation. A session that has sent it to its master ignores the change.

    def _set_device(self, device: Any) -> None:
        self._node_def.device = device if isinstance(device, str) else "" if device is None else device.to_string()

    def _set_attr(self, name: str, value: attr_value_pb2.AttrValue) -> None:
        self._node_def.attr[name].CopyFrom(value)
        if name in self._op_def.attr_by_name:
            self._attrs[name] = attr_values.from_proto(value)

    def _clear_attr(self, name: str) -> None:
        if name in self._node_def.attr:
            del self._node_def.attr[name]
            self._attrs.pop(name, None)

    def _add_control_input(self, op: Operation) -> None:
        self._add_control_inputs([op])

    def _add_control_inputs(self, ops: Iterable[Operation]) -> None:
        """Makes this operation wait for `ops`, too."""
        for op in ops:
            if not isinstance(op, Operation):
                raise TypeError(f"op must be an Operation: {op}")
            if op.graph is not self._graph:
                raise ValueError(f"{op!r} is not from the graph of {self!r}")
            if op not in self._control_inputs:
                self._control_inputs += (op,)
                op._consumed_by_control.append(self)
                self._node_def.input.append("^" + op.name)

    def _remove_all_control_inputs(self) -> None:
        for op in self._control_inputs:
            op._consumed_by_control.remove(self)
        self._control_inputs = ()
        del self._node_def.input[len(self._inputs) :]

    def _update_input(self, index: int, tensor: Tensor) -> None:
        """Replaces input number `index`. Raises TypeError if the type differs."""
        old = self._inputs[index]
        if not tensor.dtype.base_dtype.is_compatible_with(old.dtype.base_dtype):
            raise TypeError(
                f"input {index} of {self._name} ({self.type}) has type {old.dtype.name}; "
                f"{tensor.name} of type {tensor.dtype.name} cannot replace it"
            )
        if tensor.graph is not self._graph:
            raise ValueError(f"{tensor!r} is not from the graph of {self!r}")
        self._inputs = (*self._inputs[:index], tensor, *self._inputs[index + 1 :])
        if all(other is not old for other in self._inputs):
            old._consumers.pop(self, None)
        tensor._consumers[self] = None
        self._node_def.input[index] = input_name(tensor)

    def __str__(self) -> str:
        return str(self._node_def)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self._name}' type={self.type}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"{self._name} is an operation and cannot be pickled; pickle graph.as_graph_def() instead")

    def __copy__(self) -> Operation:
        return self


def input_name(tensor: Tensor) -> str:
    """How a NodeDef refers to `tensor`: without `:0` for the first output."""
    return tensor.op.name if tensor.value_index == 0 else tensor.name
