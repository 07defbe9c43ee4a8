"""Small helpers shared by both kinds of variables: arguments, names in protos, colocation of initializers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.ops.variables import VariableAggregation, VariableSynchronization
from tenfold_protos import attr_value_pb2, variable_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tenfold.graph.graph import Graph
    from tenfold.graph.tensor import Tensor


def checked_trainable(trainable: bool | None, synchronization: VariableSynchronization | None) -> bool:
    """The effective `trainable`: by default True except for variables that are synchronized on read."""
    on_read = synchronization == VariableSynchronization.ON_READ
    return not on_read if trainable is None else trainable


def checked_collections(collections: Sequence[Any] | None, trainable: bool) -> list[Any]:
    """The collections a new variable goes to. Raises ValueError for anything but a list, tuple or set."""
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    if not isinstance(collections, (list, tuple, set)):
        raise ValueError(
            "collections argument to Variable constructor must be a list, tuple, or set. "
            f"Got {collections} of type {type(collections)}"
        )
    result = list(collections)
    if trainable and GraphKeys.TRAINABLE_VARIABLES not in result:
        result.append(GraphKeys.TRAINABLE_VARIABLES)
    return result


def checked_constraint(constraint: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """`constraint`. Raises ValueError if it cannot be called."""
    if constraint is not None and not callable(constraint):
        raise ValueError("The `constraint` argument must be a callable.")
    return constraint


def synchronization_proto(value: VariableSynchronization) -> Any:
    """The enum of a VariableDef."""
    return variable_pb2.VariableSynchronization.Name(value.value)


def aggregation_proto(value: VariableAggregation) -> Any:
    """The enum of a VariableDef."""
    return variable_pb2.VariableAggregation.Name(value.value)


@contextlib.contextmanager
def colocated_with_name(graph: Graph, name: str) -> Iterator[None]:
    """Operations made inside share a device with the node `name`, which need not exist yet."""
    group = attr_value_pb2.AttrValue(list={"s": [b"loc:@" + name.encode()]})
    with graph._attr_scope({"_class": group}):
        yield


def check_made_outside(initial_value: Tensor, name: str) -> None:
    """Raises ValueError if an initial value is computed in a branch or a loop: the initializer runs outside."""
    if initial_value.op._control_flow_context is not None:
        raise ValueError(
            f"Initializer for variable {name} is from inside a control-flow construct, such as a loop or conditional. "
            "When creating a variable inside a loop or conditional, use a lambda as the initializer."
        )
