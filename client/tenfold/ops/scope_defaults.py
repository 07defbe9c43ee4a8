"""VariableScope: the name prefix and the defaults of one `tf.variable_scope`.

variable_scope.py enters and leaves it; it gets the variables from variable_store.py. Follows TensorFlow's
ops/variable_scope.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops.variables import VariableAggregation, VariableSynchronization
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.ops.variable_store import VariableStore


class VariableScope:
    """A name prefix and the defaults for the variables made in it; bound by `with tf.variable_scope(…) as scope`."""

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = dtypes.float32,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        self.name = name
        self.reuse = reuse
        self.initializer = initializer
        self.regularizer = regularizer
        self.caching_device = caching_device
        self.partitioner = partitioner
        self.custom_getter = custom_getter
        self.dtype = dtype
        self.use_resource = use_resource
        self.constraint = constraint
        self._name_scope = name_scope

    @property
    def original_name_scope(self) -> str:
        """The name scope that was opened with this variable scope; enter it to add operations there."""
        return self._name_scope

    def reuse_variables(self) -> None:
        """Turns on reuse: from now on `get_variable` in this scope finds existing variables only."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """Sets the default regularizer."""
        self.regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        """Sets the default caching device."""
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Sets the default partitioner."""
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Sets the default custom getter."""
        self.custom_getter = custom_getter

    def set_dtype(self, dtype: Any) -> None:
        """Sets the default type."""
        self.dtype = dtype

    def set_use_resource(self, use_resource: bool | None) -> None:
        """Sets the default kind of variable."""
        self.use_resource = use_resource

    def get_collection(self, name: Any) -> list[Any]:
        """The items of the collection `name` whose names are inside this scope."""
        return get_default_graph().get_collection(name, self.name + "/" if self.name else "")

    def trainable_variables(self) -> list[Any]:
        """The trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """The global variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """The local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(
        self,
        var_store: VariableStore,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: Any = None,
        constraint: Any = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> Any:
        """The variable `name` of this scope; see `tf.get_variable`."""
        custom_getter = self.custom_getter if custom_getter is None else custom_getter
        full_name = f"{self.name}/{name}" if self.name else name
        # The variable name is the scope of its operations, whatever name scope is open here.
        with get_default_graph().name_scope(None):
            if dtype is not None and initializer is not None and not callable(initializer):
                init_dtype = convert_to_tensor(initializer).dtype.base_dtype
                if init_dtype != dtype:
                    raise ValueError(f"Initializer type '{init_dtype}' and explicit dtype '{dtype}' don't match.")
            return var_store.get_variable(
                full_name,
                custom_getter=custom_getter,
                shape=shape,
                dtype=self.dtype if dtype is None else dtype,
                initializer=self.initializer if initializer is None else initializer,
                regularizer=self.regularizer if regularizer is None else regularizer,
                reuse=self.reuse if reuse is None else reuse,
                trainable=trainable,
                collections=collections,
                caching_device=self.caching_device if caching_device is None else caching_device,
                partitioner=self.partitioner if partitioner is None else partitioner,
                validate_shape=validate_shape,
                use_resource=self.use_resource if use_resource is None else use_resource,
                constraint=self.constraint if constraint is None else constraint,
                synchronization=synchronization,
                aggregation=aggregation,
            )
