"""The common part of making a reference or a resource variable: arguments, scope, collections.

Base class of RefVariable and ResourceVariable, which add the operations of their kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.default_stack import get_default_graph
from tenfold.ops import variable_names as names
from tenfold.ops.variables import Variable, VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.graph import Graph


class BuiltVariable(Variable):
    """A variable with operations of its own; see Variable for the arguments."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Sequence[Any] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Any], Any] | None = None,
        synchronization: VariableSynchronization | None = None,
        aggregation: VariableAggregation | None = None,
        shape: Any = None,
    ) -> None:
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            self._init_from_proto(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        self._trainable = names.checked_trainable(trainable, synchronization)
        collections = names.checked_collections(collections, self._trainable)
        self._constraint = names.checked_constraint(constraint)
        self._synchronization = synchronization or VariableSynchronization.AUTO
        self._aggregation = aggregation or VariableAggregation.NONE
        graph = get_default_graph()
        # A variable made inside control_dependencies() does not depend on them: its initializer runs alone.
        with graph.control_dependencies(None), graph.name_scope(name or "Variable") as scope:
            self._build(graph, scope, initial_value, dtype, shape, validate_shape, caching_device)
        graph.add_to_collections(collections, self)

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
        """Adds the operations of a new variable in the name scope `scope`."""
        raise NotImplementedError

    def _init_from_proto(self, variable_def: Any, import_scope: str | None) -> None:
        """Finds the operations that a VariableDef names in the default graph."""
        raise NotImplementedError
