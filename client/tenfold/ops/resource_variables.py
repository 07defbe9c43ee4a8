"""Resource variables (`use_resource=True`): VarHandleOp, ReadVariableOp and AssignVariableOp.

A handle names the variable; each read is an op with a value of its own, so that a later assignment does not change
what was read. Built by variables.py. Follows TensorFlow's ops/resource_variable_ops.py in graph mode.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NoReturn

from tenfold.graph.conversion import convert_to_tensor, register_tensor_conversion_function
from tenfold.graph.default_stack import building_graph, get_default_graph
from tenfold.graph.op_builder import apply_op
from tenfold.graph.scope_names import prepend_scope, strip_scope
from tenfold.ops import variable_names as names
from tenfold.ops.built_variable import BuiltVariable
from tenfold.ops.initialized_value import guarded, initial_tensor
from tenfold.ops.save_slice_info import SaveSliceInfo
from tenfold.ops.variables import VariableAggregation, VariableSynchronization
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import TensorShape, as_shape
from tenfold_protos import variable_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType


class ResourceVariable(BuiltVariable):
    """A variable held by a VarHandleOp; see Variable for the arguments."""

    _cached_value: Tensor | None = None
    _is_initialized_op: Any = None

    def _build(
        self,
        graph: Graph,
        scope: str,
        initial_value: Any,
        dtype: Any,
        shape: Any,
        validate_shape: bool,
        caching_device: Any,
    ) -> None:
        handle_name = scope.rstrip("/")
        with names.colocated_with_name(graph, handle_name):
            value = initial_tensor(graph, initial_value, dtype)
            if shape is not None and not value.get_shape().is_compatible_with(shape):
                raise ValueError(
                    f"The initial value's shape ({value.get_shape()}) is not compatible with the explicitly supplied "
                    f"`shape` argument ({shape})."
                )
            self._shape = value.get_shape() if shape is None else as_shape(shape)
            self._dtype = value.dtype.base_dtype
            if validate_shape and shape is None and not self._shape.is_fully_defined():
                raise ValueError(f"initial_value must have a shape specified: {value}")
            self._handle: Tensor = apply_op(
                "VarHandleOp", shape=self._shape, dtype=self._dtype, shared_name=handle_name, name=scope
            )
        names.check_made_outside(value, scope)
        self._initial_value = value
        with graph.name_scope("IsInitialized"):
            self._is_initialized_op = apply_op("VarIsInitializedOp", resource=self._handle)
        with graph.name_scope("Assign") as assign_name, self._on_own_device():
            self._initializer_op = apply_op(
                "AssignVariableOp", resource=self._handle, value=guarded(scope, value), name=assign_name
            )
        self._add_reads(graph, caching_device)

    def _add_reads(self, graph: Graph, caching_device: Any) -> None:
        with graph.name_scope("Read"), self._on_own_device():
            self._graph_element = self._read_variable_op()
        if caching_device is not None:
            with graph.colocate_with(None, ignore_existing=True), graph.device(caching_device):
                self._cached_value = apply_op("Identity", input=self._graph_element)

    def _init_from_proto(self, variable_def: Any, import_scope: str | None) -> None:
        if not isinstance(variable_def, variable_pb2.VariableDef):
            raise TypeError(f"variable_def must be a VariableDef, not {type(variable_def).__name__}")
        if not variable_def.is_resource:
            raise ValueError("Trying to restore Variable as ResourceVariable.")
        graph = get_default_graph()

        def element(name: str) -> Any:
            return graph.as_graph_element(prepend_scope(name, import_scope))

        self._handle = element(variable_def.variable_name)
        self._shape = TensorShape.from_proto(self._handle.op.get_attr("shape"))
        self._dtype = as_dtype(self._handle.op.get_attr("dtype"))
        self._initializer_op = element(variable_def.initializer_name)
        initial = variable_def.initial_value_name
        self._initial_value = element(initial) if initial else None
        self._trainable = variable_def.trainable
        self._synchronization = VariableSynchronization(variable_def.synchronization)
        self._aggregation = VariableAggregation(variable_def.aggregation)
        self._constraint = None
        if variable_def.HasField("save_slice_info_def"):
            self._save_slice_info = SaveSliceInfo(
                save_slice_info_def=variable_def.save_slice_info_def, import_scope=import_scope
            )
        if variable_def.snapshot_name:
            snapshot = element(variable_def.snapshot_name)
            if snapshot.op.type != "ReadVariableOp":
                self._cached_value = snapshot
            self._graph_element = snapshot
        else:
            self._graph_element = element(self._handle.op.name + "/Read/ReadVariableOp:0")

    @contextlib.contextmanager
    def _on_own_device(self) -> Iterator[None]:
        """Operations made inside get the device of the handle, and none of the colocations outside."""
        graph = building_graph(self._handle.graph)
        with graph.colocate_with(None, ignore_existing=True), graph.device(self._handle.device or None):
            yield

    def _read_variable_op(self) -> Tensor:
        value: Tensor = apply_op("ReadVariableOp", resource=self._handle, dtype=self._dtype)
        value.set_shape(self._shape)
        return value

    @property
    def handle(self) -> Tensor:
        """The tensor of type resource that names the variable."""
        return self._handle

    @property
    def op(self) -> Operation:
        """The VarHandleOp."""
        return self._handle.op

    @property
    def dtype(self) -> DType:
        """The element type; never a `_ref` type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._shape

    @property
    def create(self) -> Operation:
        """The operation that assigns the initial value."""
        return self._initializer_op

    def _as_graph_element(self) -> Any:
        return self._graph_element

    def value(self) -> Tensor:
        """The cached value if there is a caching device, else a new read on the device of the variable."""
        if self._cached_value is not None:
            return self._cached_value
        with self._on_own_device():
            return self._read_variable_op()

    def read_value(self) -> Tensor:
        """A new read, subject to the control dependencies here; usable on any device."""
        graph = building_graph(self._handle.graph)
        with graph.name_scope("Read"), graph.device(self._handle.device or None):
            value = self._read_variable_op()
        tensor: Tensor = apply_op("Identity", input=value)
        return tensor

    def eval(self, session: Any = None) -> Any:
        """The value in `session` or the default session, as an array. Blocks."""
        return self._graph_element.eval(session=session)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """The rows `indices` of the variable; only they are read. Its gradient is IndexedSlices."""
        graph = building_graph(self._handle.graph)
        with graph.name_scope(name or "Gather") as scope:
            indices = convert_to_tensor(indices, name="indices")
            value = apply_op("ResourceGather", resource=self._handle, indices=indices, dtype=self._dtype, name=scope)
            # The handle's op does not tell other ops the shape of what it holds.
            value.set_shape(indices.shape.concatenate(self._shape.with_rank_at_least(1)[1:]))
        tensor: Tensor = apply_op("Identity", input=value)
        return tensor

    def is_initialized(self, name: str | None = None) -> Any:
        """A scalar bool tensor: whether there is a value."""
        return apply_op("VarIsInitializedOp", resource=self._handle, name=name)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Sets the value. Gives a variable whose reads happen after the assignment, or the operation.

        Raises ValueError if the static shapes do not fit.
        """
        with self._after_cached_read():
            tensor = convert_to_tensor(value, dtype=self._dtype)
            self._shape.assert_is_compatible_with(tensor.get_shape())
            op = apply_op("AssignVariableOp", resource=self._handle, value=tensor, name=name)
        return self._lazy_read(op) if read_value else op

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds `delta`; returns as `assign`."""
        return self._assign_by("AssignAddVariableOp", delta, name, read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts `delta`; returns as `assign`."""
        return self._assign_by("AssignSubVariableOp", delta, name, read_value)

    def _assign_by(self, op_type: str, delta: Any, name: str | None, read_value: bool) -> Any:
        with self._after_cached_read():
            delta = convert_to_tensor(delta, dtype=self._dtype)
            op = apply_op(op_type, resource=self._handle, value=delta, name=name)
        return self._lazy_read(op) if read_value else op

    def _after_cached_read(self) -> Any:
        """Makes assignments wait for the cached read of the step, which must not see them."""
        if self._cached_value is None:
            return contextlib.nullcontext()
        return building_graph(self._handle.graph).control_dependencies([self._cached_value])

    def _lazy_read(self, op: Operation) -> Any:
        return UnreadVariable(self, op)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A VariableDef, or None if the variable is not inside `export_scope`."""
        if export_scope is not None and not self._handle.name.startswith(export_scope):
            return None
        snapshot = self._cached_value if self._cached_value is not None else self._graph_element
        definition = variable_pb2.VariableDef(
            variable_name=strip_scope(self._handle.name, export_scope),
            initializer_name=strip_scope(self._initializer_op.name, export_scope),
            snapshot_name=strip_scope(snapshot.name, export_scope),
            is_resource=True,
            trainable=self._trainable,
            synchronization=names.synchronization_proto(self._synchronization),
            aggregation=names.aggregation_proto(self._aggregation),
        )
        if self._initial_value is not None:
            definition.initial_value_name = strip_scope(self._initial_value.name, export_scope)
        if self._save_slice_info is not None:
            definition.save_slice_info_def.MergeFrom(self._save_slice_info.to_proto(export_scope))
        return definition

    # Without an error, `v += 1` would replace the variable by a tensor.

    def __iadd__(self, other: Any) -> NoReturn:
        raise RuntimeError(_in_place("+=", "assign_add(value)", "+"))

    def __isub__(self, other: Any) -> NoReturn:
        raise RuntimeError(_in_place("-=", "assign_sub(value)", "-"))

    def __imul__(self, other: Any) -> NoReturn:
        raise RuntimeError(_in_place("*=", "assign(variable * value)", "*"))

    def __itruediv__(self, other: Any) -> NoReturn:
        raise RuntimeError(_in_place("/=", "assign(variable / value)", "/"))

    def __ipow__(self, other: Any) -> NoReturn:
        raise RuntimeError(_in_place("**=", "assign(variable ** value)", "**"))


def _in_place(operator: str, method: str, plain: str) -> str:
    return (
        f"Variable {operator} value not supported. Use `variable.{method}` to modify the variable or "
        f"`variable = variable {plain} value` to get a new Tensor object."
    )


class UnreadVariable(ResourceVariable):
    """The result of an assignment: the same variable, whose reads happen after `op`."""

    def __init__(self, variable: ResourceVariable, op: Operation) -> None:
        self._handle = variable._handle
        self._shape = variable._shape
        self._dtype = variable._dtype
        self._trainable = variable._trainable
        self._constraint = variable._constraint
        self._synchronization = variable._synchronization
        self._aggregation = variable._aggregation
        self._initializer_op = variable._initializer_op
        self._initial_value = variable._initial_value
        self._cached_value = None
        self._parent_op = op
        self._graph_element = self.read_value()

    @property
    def op(self) -> Operation:
        """The assignment."""
        return self._parent_op

    @property
    def name(self) -> str:
        """The name of the assignment, which has no tensor of its own."""
        return self._parent_op.name

    def value(self) -> Tensor:
        """A read after the assignment."""
        with building_graph(self._handle.graph).control_dependencies([self._parent_op]):
            return super().value()

    def read_value(self) -> Tensor:
        """A read after the assignment."""
        with building_graph(self._handle.graph).control_dependencies([self._parent_op]):
            return super().read_value()


def is_resource_variable(value: Any) -> bool:
    """Whether `value` is a resource variable."""
    return isinstance(value, ResourceVariable)


def zeros_like_handle(handle: Tensor) -> Any:
    """Zeros in the shape and type of the variable that `handle` names."""
    dtype = as_dtype(handle.op.get_attr("dtype")) if handle.op.type == "VarHandleOp" else dtypes.float32
    zero = convert_to_tensor(0, dtype=dtype)
    return apply_op("Fill", dims=apply_op("VariableShape", input=handle), value=zero)


def _to_tensor(value: ResourceVariable, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype.name}' for variable of type '{value.dtype.name}'"
        )
    # The reference of a resource variable is its handle; colocation and gradients use it.
    return value.handle if as_ref else value.value()


register_tensor_conversion_function(ResourceVariable, _to_tensor)
