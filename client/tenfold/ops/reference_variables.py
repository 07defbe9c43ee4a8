"""Reference variables, the default kind: VariableV2, Assign and an Identity named `read`.

A tensor of a `_ref` type is the variable itself: an op that reads it later in a step sees later assignments. Built by
variables.py. Follows RefVariable of TensorFlow's ops/variables.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor, register_tensor_conversion_function
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import apply_op
from tenfold.graph.scope_names import prepend_scope, strip_scope
from tenfold.ops import state_ops
from tenfold.ops import variable_names as names
from tenfold.ops.built_variable import BuiltVariable
from tenfold.ops.initialized_value import guarded, initial_tensor
from tenfold.ops.save_slice_info import SaveSliceInfo
from tenfold.ops.variables import VariableAggregation, VariableSynchronization
from tenfold_core.tensor_shape import as_shape, unknown_shape
from tenfold_protos import variable_pb2

if TYPE_CHECKING:
    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


class RefVariable(BuiltVariable):
    """A variable held by a VariableV2 op; see Variable for the arguments."""

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
        def holder(value: Tensor) -> Tensor:
            known = value.get_shape() if validate_shape else unknown_shape()
            held: Tensor = state_ops.variable_op_v2(
                known if shape is None else as_shape(shape), value.dtype.base_dtype, name=scope
            )
            return held

        if callable(initial_value):
            # The op to colocate with does not exist yet, so its future name is used.
            with names.colocated_with_name(graph, scope.rstrip("/")):
                value = initial_tensor(graph, initial_value, dtype)
                self._variable = holder(value)
        else:
            value = convert_to_tensor(initial_value, name="initial_value", dtype=dtype)
            self._variable = holder(value)
        if validate_shape and not value.get_shape().is_fully_defined():
            raise ValueError(f"initial_value must have a shape specified: {value}")
        names.check_made_outside(value, scope)
        self._initial_value = value
        self._initializer_op = state_ops.assign(self._variable, guarded(scope, value), validate_shape=validate_shape).op
        place = graph.colocate_with(self._variable.op) if caching_device is None else graph.device(caching_device)
        with place:
            self._snapshot: Tensor = apply_op("Identity", input=self._variable, name="read")

    def _init_from_proto(self, variable_def: Any, import_scope: str | None) -> None:
        if not isinstance(variable_def, variable_pb2.VariableDef):
            raise TypeError(f"variable_def must be a VariableDef, not {type(variable_def).__name__}")
        graph = get_default_graph()

        def element(name: str) -> Any:
            return graph.as_graph_element(prepend_scope(name, import_scope))

        self._variable = element(variable_def.variable_name)
        self._initializer_op = element(variable_def.initializer_name)
        self._snapshot = element(variable_def.snapshot_name)
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

    @property
    def op(self) -> Operation:
        """The VariableV2 operation."""
        return self._variable.op

    @property
    def name(self) -> str:
        """The name of the reference, `<op>:0`."""
        return self._variable.name

    @property
    def dtype(self) -> DType:
        """The `_ref` type of the reference."""
        return self._variable.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._variable.get_shape()

    def set_shape(self, shape: Any) -> None:
        """Adds to what is known of the shape."""
        self._ref().set_shape(shape)
        self.value().set_shape(shape)

    def _ref(self) -> Tensor:
        return self._variable

    def _as_graph_element(self) -> Tensor:
        return self._variable

    def value(self) -> Tensor:
        """The read op made with the variable; it gives the value at the time of the step."""
        return self._snapshot

    def read_value(self) -> Tensor:
        """A new read, subject to the control dependencies here."""
        tensor: Tensor = apply_op("Identity", input=self._variable, name="read")
        return tensor

    def is_initialized(self, name: str | None = None) -> Any:
        """A scalar bool tensor: whether there is a value."""
        return state_ops.is_variable_initialized(self._variable, name=name)

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Sets the value; the result is the reference after it, or the operation if not `read_value`."""
        result = state_ops.assign(self._variable, value, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds `delta`; returns as `assign`."""
        result = state_ops.assign_add(self._variable, delta, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts `delta`; returns as `assign`."""
        result = state_ops.assign_sub(self._variable, delta, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A VariableDef, or None if the variable is not inside `export_scope`."""
        if export_scope is not None and not self._variable.name.startswith(export_scope):
            return None
        definition = variable_pb2.VariableDef(
            variable_name=strip_scope(self._variable.name, export_scope),
            initializer_name=strip_scope(self.initializer.name, export_scope),
            snapshot_name=strip_scope(self._snapshot.name, export_scope),
            trainable=self._trainable,
            synchronization=names.synchronization_proto(self._synchronization),
            aggregation=names.aggregation_proto(self._aggregation),
        )
        if self._initial_value is not None:
            # Lets the initial value be restored with the variable; older files lack it.
            definition.initial_value_name = strip_scope(self._initial_value.name, export_scope)
        if self._save_slice_info is not None:
            definition.save_slice_info_def.MergeFrom(self._save_slice_info.to_proto(export_scope))
        return definition


def _to_tensor(value: RefVariable, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype.name}' for variable of type '{value.dtype.name}'"
        )
    return value._ref() if as_ref else value.value()


register_tensor_conversion_function(RefVariable, _to_tensor)
