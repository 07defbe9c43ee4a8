"""Graph: the client's dataflow graph, built one operation at a time and sent to a master as a GraphDef.

Scopes are in scope_stacks.py, look-up in lookup.py, collections in collections.py; this file adds operations and
writes the GraphDef. `version` is the id of the newest operation: a session extends itself by
`as_graph_def(from_version)`.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import CollectionStore
from tenfold.graph.control_flow_context import check_input_from_valid_context
from tenfold.graph.default_stack import default_graph_stack
from tenfold.graph.indexed_slices import IndexedSlices, convert_to_tensor_or_indexed_slices
from tenfold.graph.lookup import ElementLookup
from tenfold.graph.operation import Operation, input_name
from tenfold.graph.scope_stacks import ScopeStacks
from tenfold.graph.scopes import VALID_OP_NAME
from tenfold.graph.shapes import set_output_shapes
from tenfold.graph.tensor import Tensor
from tenfold.graph.traceback import Traceback
from tenfold_core import attr_value as attr_values
from tenfold_core import graph_versions, node_attrs, opdefs
from tenfold_core.dtypes import as_dtype
from tenfold_core.node_signature import signature
from tenfold_core.tensor_util import held_bytes
from tenfold_protos import attr_value_pb2, graph_pb2, node_def_pb2, tensor_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tenfold_core.op_def import OpDef
    from tenfold_protos import function_pb2, versions_pb2

GRAPH_DEF_VERSION = graph_versions.WRITTEN
_MAX_GRAPH_DEF_BYTES = (1 << 31) - 1


class Graph(ScopeStacks, ElementLookup, CollectionStore):
    """A dataflow graph. Reading is thread-safe; scopes belong to the graph, so build it from one thread at a time."""

    def __init__(self) -> None:
        ScopeStacks.__init__(self)
        ElementLookup.__init__(self)
        CollectionStore.__init__(self)
        self._next_id = 0
        self._finalized = False
        #: Ops that train/lookups_ahead.py has moved ahead of their step → by output, what a step gets in its place.
        self._made_ahead: dict[Operation, dict[int, Tensor]] = {}
        #: The graph-level random seed, set by `tf.set_random_seed`.
        self.seed: int | None = None
        #: Whether an operation got its seed from the graph's, having none of its own.
        self._seed_used = False
        #: Function library: name → definition; sent with the GraphDef.
        self._functions: dict[str, function_pb2.FunctionDef] = {}
        #: Function → the function that is its gradient; sent with the library.
        self._function_gradients: dict[str, str] = {}
        #: Function → the Python function that builds its gradient.
        self._function_rules: dict[str, Callable[..., Any]] = {}
        self._versions = graph_pb2.GraphDef().versions
        self._versions.producer = GRAPH_DEF_VERSION
        self.building_function = False
        #: What `tf.TensorArray` makes here: in functions of tf.data lists of tensors, which these take and return.
        self.array_class: type | None = None

    # --- default graph, finalizing ---

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Makes this the default graph of this thread inside the `with` block."""
        with default_graph_stack.pushed(self):
            yield self

    def finalize(self) -> None:
        """Makes the graph read-only: adding an operation raises RuntimeError."""
        self._finalized = True

    @property
    def finalized(self) -> bool:
        """True after `finalize()`."""
        return self._finalized

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    def _check_not_finalized(self) -> None:
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    @property
    def version(self) -> int:
        """The id of the newest operation; grows with the graph."""
        return self._next_id

    @property
    def _last_id(self) -> int:
        return self._next_id

    @property
    def graph_def_versions(self) -> versions_pb2.VersionDef:
        """The versions that a GraphDef of this graph carries: those of Tenfold, or what was imported of old."""
        return self._versions

    # --- adding operations ---

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        dtypes: Sequence[Any] | None = None,
        input_types: Sequence[Any] | None = None,
        name: str | None = None,
        attrs: Mapping[str, attr_value_pb2.AttrValue] | None = None,
        op_def: Any = None,
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Operation:
        """Adds an operation from AttrValues, as TensorFlow's low-level `Graph.create_op`.

        `dtypes` and `input_types` follow from the op definition; if given they must agree with it.
        Raises NotFoundError for an unknown type, TypeError and ValueError for inputs that do not fit.
        """
        definition = opdefs.get(op_type)
        node_def = node_def_pb2.NodeDef(op=op_type)
        for key, value in (attrs or {}).items():
            node_def.attr[key].CopyFrom(value)
        resolved = node_attrs.resolve_attrs(definition, node_def)
        values = {attr.name: resolved[attr.name] for attr in definition.attrs}
        extra = {key: value for key, value in (attrs or {}).items() if key not in definition.attr_by_name}
        if dtypes is not None:
            given = [t.base_dtype for t in signature(definition, values).output_types]
            if [as_dtype(t).base_dtype for t in dtypes] != given:
                raise TypeError(f"{op_type} gives {[t.name for t in given]}, not {list(dtypes)}")
        return self._add_operation(
            definition,
            inputs,
            name or op_type,
            values,
            extra,
            compute_device=compute_device,
            compute_shapes=compute_shapes,
        )

    def _add_operation(
        self,
        op_def: OpDef,
        inputs: Sequence[Tensor],
        name: str,
        attrs: dict[str, Any],
        extra_attrs: Mapping[str, attr_value_pb2.AttrValue] | None = None,
        *,
        control_inputs: Iterable[Operation] | None = None,
        compute_device: bool = True,
        compute_shapes: bool = True,
        constant: Any = None,
    ) -> Operation:
        """Adds an operation whose attributes are resolved. A `name` that ends with "/" is used unchanged.

        `control_inputs` replace those of the control-dependency scopes (import); `constant` is the value of a Const.
        Raises ValueError if the static shapes of the inputs do not fit; the graph is then as it was.
        """
        self._check_not_finalized()
        inputs = self._own(inputs)
        for tensor in inputs:
            if tensor.graph is not self:
                raise ValueError(f"{tensor} must be from the same graph as the operation {name!r} that takes it.")
        with self._lock:
            types = signature(op_def, attrs)
            full_name = self._claim_op_name(name)
            input_ops = {tensor.op for tensor in inputs}
            if control_inputs is None:
                control_inputs = self._control_dependencies_for_inputs(input_ops)
            else:
                control_inputs = list(dict.fromkeys(control_inputs))
            node_def = node_def_pb2.NodeDef(
                name=full_name,
                op=op_def.name,
                input=[*map(input_name, inputs), *("^" + op.name for op in control_inputs)],
            )
            for attr in op_def.attrs:
                if attr.type == "tensor" and isinstance(attrs.get(attr.name), tensor_pb2.TensorProto):
                    # Constants can be large: copy once, and let the attribute refer to the copy.
                    node_def.attr[attr.name].tensor.CopyFrom(attrs[attr.name])
                    attrs[attr.name] = node_def.attr[attr.name].tensor
                elif attr.name in attrs:
                    attr_values.write(node_def.attr[attr.name], attrs[attr.name], attr.type)
            for extras in (extra_attrs or {}, self._scoped_attrs):
                for key, value in extras.items():
                    if key not in node_def.attr:
                        node_def.attr[key].CopyFrom(value)
            if op_def.name in self._gradient_override and "_gradient_op_type" not in node_def.attr:
                node_def.attr["_gradient_op_type"].s = self._gradient_override[op_def.name].encode()
            op = Operation(
                self,
                node_def,
                op_def,
                inputs,
                types.output_types,
                control_inputs,
                attrs,
                self._next_id + 1,
                Traceback(sys._getframe(1)),
            )
            if self._container and op_def.is_stateful and attrs.get("container") in (b"", ""):
                op._set_attr("container", attr_value_pb2.AttrValue(s=self._container.encode()))
            op.constant = constant
            if compute_shapes:
                # Before device functions: one that balances load asks for sizes.
                set_output_shapes(op)
            if compute_device:
                self._apply_device_functions(op)
            self._apply_colocation(op)
            context = op._control_flow_context
            for before in input_ops:
                if before._control_flow_context is not context:
                    check_input_from_valid_context(op, before)
            # Last, so that a device or shape function that raises leaves the graph unchanged.
            self._next_id += 1
            op._attach()
            self._nodes_by_name[full_name] = op
            if context is not None:
                context.add_op(op)
            self._record_op_seen_by_control_dependencies(op)
        return op

    def _own(self, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        """The inputs of a new operation as tensors of this graph; a function's graph brings others in."""
        return inputs

    @property
    def outermost(self) -> Graph:
        """This graph; of a function's graph, the graph that the function is used in."""
        return self

    def _record_op_seen_by_control_dependencies(self, op: Operation) -> None:
        for scope in self._control_stack:
            scope.seen.add(op)

    def _claim_op_name(self, name: str | bytes) -> str:
        if isinstance(name, bytes):
            name = name.decode()
        if name.endswith("/"):
            exact = name[:-1]
            if not VALID_OP_NAME.match(exact):
                raise ValueError(f"'{exact}' is not a valid node name")
            if exact in self._nodes_by_name:
                raise ValueError(f"Duplicate node name in graph: '{exact}'")
            self._unique_names.mark(exact)
            return exact
        unique = self.unique_name(name)
        if not VALID_OP_NAME.match(unique):
            raise ValueError(f"'{unique}' is not a valid node name")
        return unique

    # --- hooks of the scopes ---

    def _control_input(self, item: Any) -> Operation:
        if isinstance(item, IndexedSlices):
            return item.op
        element = self.as_graph_element(item)
        return element.op if isinstance(element, Tensor) else element

    def _colocation_op(self, op: Any) -> Operation:
        if isinstance(op, Operation):
            return op
        handle = getattr(op, "handle", None)
        if isinstance(handle, Tensor):
            # A resource variable: converting it to a tensor would add a read.
            return handle.op
        found: Operation = convert_to_tensor_or_indexed_slices(op, as_ref=True).op
        return found

    # --- export ---

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> graph_pb2.GraphDef:
        """The GraphDef; only operations newer than `from_version` if given.

        `add_shapes` adds the static shapes as attribute `_output_shapes`. Raises ValueError beyond 2 GB, which
        Protocol Buffers cannot carry.
        """
        return self._as_graph_def(from_version, add_shapes)[0]

    def _as_graph_def(
        self, from_version: int | None = None, add_shapes: bool = False
    ) -> tuple[graph_pb2.GraphDef, int]:
        """The GraphDef and the graph's version, read together under the lock."""
        with self._lock:
            graph_def = graph_pb2.GraphDef(versions=self._versions)
            size = 0
            for op in self._nodes_by_name.values():
                if from_version is not None and op._id <= from_version:
                    continue
                node = graph_def.node.add()
                node.CopyFrom(op._node_def)
                if add_shapes and op.outputs:
                    shapes = [tensor.shape.as_proto() for tensor in op.outputs]
                    node.attr["_output_shapes"].CopyFrom(attr_value_pb2.AttrValue(list={"shape": shapes}))
                if op.constant is not None:
                    size += held_bytes(op.constant)
                    if size > _MAX_GRAPH_DEF_BYTES:
                        raise ValueError("GraphDef cannot be larger than 2GB.")
            if self._functions:
                graph_def.library.function.extend(self._functions.values())
            for name, of in self._function_gradients.items():
                graph_def.library.gradient.add(function_name=name, gradient_func=of)
            return graph_def, self._next_id

    def __repr__(self) -> str:
        return f"<tf.Graph of {len(self._nodes_by_name)} operations at {id(self):#x}>"


type(default_graph_stack).new_graph = Graph
