"""`tf.Variable`: state that outlives a step, and the graph's lists of variables.

`Variable(...)` makes a reference variable (reference_variables.py, ops VariableV2/Assign) or, with
`use_resource=True`, a resource variable (resource_variables.py, ops VarHandleOp/AssignVariableOp); both are
instances of `Variable`. Node names are those of TensorFlow 1.15, because checkpoints and programs refer to them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_stack import get_default_graph, session_for
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.operators import Operators
from tenfold.ops import state_ops
from tenfold.ops.initialized_value import initialized_value
from tenfold.ops.save_slice_info import SaveSliceInfo as _SaveSliceInfo
from tenfold.ops.variable_lists import (
    all_variables,
    assert_variables_initialized,
    global_variables,
    global_variables_initializer,
    initialize_all_variables,
    initialize_local_variables,
    initialize_variables,
    is_variable_initialized,
    local_variables,
    local_variables_initializer,
    model_variables,
    moving_average_variables,
    report_uninitialized_variables,
    trainable_variables,
    variables_initializer,
)

if TYPE_CHECKING:
    from tenfold.graph.argument_types import DTypeLike, TensorLike
    from tenfold.graph.graph import Graph
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape

#: A creator gets the next creator and the arguments of Variable(); see `tf.variable_creator_scope`.
Creator = Callable[..., "Variable"]
CREATORS_KEY = ("__variable_creators",)


class VariableSynchronization(enum.Enum):
    """When a variable that is distributed over replicas is synchronized. Recorded only."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How a variable that is distributed over replicas is aggregated. Recorded only."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


#: The last creator, which makes a variable of the kind asked for; variable_kinds.py sets it.
_default_creator: Creator


class _VariableMeta(type):
    """Makes `Variable(...)` choose the kind of variable, through the creators in scope."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not Variable:
            return super().__call__(*args, **kwargs)
        names = ("initial_value", "trainable", "collections", "validate_shape", "caching_device", "name")
        if len(args) > len(names):
            raise TypeError(f"Variable takes at most {len(names)} positional arguments ({', '.join(names)})")
        kwargs.update(zip(names, args, strict=False))
        create = _default_creator
        for creator in get_default_graph().get_collection(CREATORS_KEY):
            create = _chained(creator, create)
        return create(**kwargs)


def set_default_creator(creator: Creator) -> None:
    """`creator` makes the variable when the creators in scope have passed the call on."""
    global _default_creator
    _default_creator = creator


def _chained(creator: Creator, next_creator: Creator) -> Creator:
    return lambda **kwargs: creator(next_creator, **kwargs)


class Variable(Operators, metaclass=_VariableMeta):
    """A tensor whose value outlives a step, on the device where it was made. Overloads the operators of Tensor.

    Args: `initial_value` a Tensor, a value convertible to one, or a function without arguments that returns one;
    `trainable` adds it to TRAINABLE_VARIABLES (default True); `collections` where else (default GLOBAL_VARIABLES);
    `validate_shape=False` allows an initial value of unknown shape; `caching_device` where reads are cached; `name`;
    `dtype` of the initial value; `use_resource` the kind; `constraint` a function applied after optimizer updates.
    Raises ValueError without an initial value or, unless validate_shape=False, without a known shape.
    """

    _trainable: bool
    _synchronization: VariableSynchronization
    _aggregation: VariableAggregation
    _constraint: Callable[[Any], Any] | None
    _initializer_op: Operation
    _initial_value: Tensor | None
    _save_slice_info: _SaveSliceInfo | None = None

    #: As in TensorFlow, also reachable as `tf.Variable.SaveSliceInfo`.
    SaveSliceInfo = _SaveSliceInfo

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Sequence[Any] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: DTypeLike | None = None,
        import_scope: str | None = None,
        constraint: Callable[[Any], Any] | None = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: TensorLike | None = None,
    ) -> None:
        raise NotImplementedError("_VariableMeta replaces this constructor")

    @property
    def op(self) -> Operation:
        """The operation that holds the variable."""
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        """The element type; a `_ref` type for reference variables."""
        raise NotImplementedError

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        raise NotImplementedError

    def value(self) -> Tensor:
        """The cached read of the variable, or a new one."""
        raise NotImplementedError

    def read_value(self) -> Tensor:
        """A new read of the variable at the current point of the graph."""
        raise NotImplementedError

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Sets the value. Gives something that holds the new value, or the operation if not `read_value`."""
        raise NotImplementedError

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds `delta`; returns as `assign`."""
        raise NotImplementedError

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts `delta`; returns as `assign`."""
        raise NotImplementedError

    def is_initialized(self, name: str | None = None) -> Any:
        """A scalar bool tensor: whether there is a value."""
        raise NotImplementedError

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A VariableDef, or None if the variable is not inside `export_scope`."""
        raise NotImplementedError

    def _as_graph_element(self) -> Any:
        """What a session fetches for the variable."""
        raise NotImplementedError

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Variable:
        """The variable that `variable_def` describes; its nodes must be in the default graph."""
        variable: Variable = Variable(variable_def=variable_def, import_scope=import_scope)
        return variable

    @property
    def name(self) -> str:
        """The name of the tensor that holds the variable, `<op>:0`."""
        return self.op.outputs[0].name

    @property
    def device(self) -> str:
        """The device requested for the variable."""
        return self.op.device

    @property
    def graph(self) -> Graph:
        """The graph that holds the variable."""
        return self.op.graph

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return self.shape

    @property
    def initializer(self) -> Operation:
        """The operation that assigns the initial value."""
        return self._initializer_op

    @property
    def initial_value(self) -> Any:
        """The tensor assigned by the initializer. It does not depend on the value of the variable."""
        return self._initial_value

    @property
    def trainable(self) -> bool:
        """Whether optimizers train it by default."""
        return self._trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        """As given to the constructor."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """As given to the constructor."""
        return self._aggregation

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """The function that optimizers apply after an update, if any."""
        return self._constraint

    def initialized_value(self) -> Tensor:
        """The value if there is one, otherwise the initial value; for initializing other variables from this one."""
        return initialized_value(self)

    def eval(self, session: Any = None) -> Any:
        """The value in `session` or the default session, as an array; an error if it has none. Blocks."""
        return self.value().eval(session=session)

    def load(self, value: TensorLike, session: Any = None) -> None:
        """Gives the variable a value in a session without adding to the graph. Blocks."""
        session = session_for(session, self.graph, verb="run")
        value_input = self.initializer.inputs[1]
        session.run(self.initializer, {value_input: value})

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Adds IndexedSlices to the variable."""
        return self._scatter("scatter_add", sparse_delta, use_locking, name)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtracts IndexedSlices from the variable."""
        return self._scatter("scatter_sub", sparse_delta, use_locking, name)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiplies the variable by IndexedSlices."""
        return self._scatter("scatter_mul", sparse_delta, use_locking, name)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divides the variable by IndexedSlices."""
        return self._scatter("scatter_div", sparse_delta, use_locking, name)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Takes the minimum with IndexedSlices."""
        return self._scatter("scatter_min", sparse_delta, use_locking, name)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Takes the maximum with IndexedSlices."""
        return self._scatter("scatter_max", sparse_delta, use_locking, name)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Assigns IndexedSlices to the variable."""
        return self._scatter("scatter_update", sparse_delta, use_locking, name)

    def _scatter(self, function: str, sparse_delta: Any, use_locking: bool, name: str | None) -> Any:
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
        return getattr(state_ops, function)(self, sparse_delta.indices, sparse_delta.values, use_locking, name)

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Assigns IndexedSlices whose indices count within each batch, as `tf.batch_scatter_update`."""
        from tenfold.ops.array_batches import batch_scatter_update

        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {sparse_delta}")
        return batch_scatter_update(self, sparse_delta.indices, sparse_delta.values, use_locking, name)

    def scatter_nd_add(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Adds `updates` to the slices addressed by `indices`."""
        return state_ops.scatter_nd_add(self, indices, updates, name=name)

    def scatter_nd_sub(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Subtracts `updates` from the slices addressed by `indices`."""
        return state_ops.scatter_nd_sub(self, indices, updates, name=name)

    def scatter_nd_update(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Any:
        """Assigns `updates` to the slices addressed by `indices`."""
        return state_ops.scatter_nd_update(self, indices, updates, name=name)

    def count_up_to(self, limit: int) -> Tensor:
        """Increments the variable until it reaches `limit`; gives the previous value. Then OutOfRangeError."""
        return state_ops.count_up_to(self, limit)

    def _set_save_slice_info(self, save_slice_info: _SaveSliceInfo | None) -> None:
        self._save_slice_info = save_slice_info

    def _get_save_slice_info(self) -> _SaveSliceInfo | None:
        return self._save_slice_info

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"


#: Old name, still public in TensorFlow 1.x.
VariableV1 = Variable


__all__ = [
    "GraphKeys",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "VariableV1",
    "all_variables",
    "assert_variables_initialized",
    "global_variables",
    "global_variables_initializer",
    "initialize_all_variables",
    "initialize_local_variables",
    "initialize_variables",
    "is_variable_initialized",
    "local_variables",
    "local_variables_initializer",
    "model_variables",
    "moving_average_variables",
    "report_uninitialized_variables",
    "trainable_variables",
    "variables_initializer",
]
