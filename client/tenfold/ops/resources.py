"""State of a graph that is created before it is used, as its variables are: work queues, and what programs register.

A Scaffold makes it with the global variables, and waits for it. Follows TensorFlow's ops/resources.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.graph import GraphKeys, add_to_collection, control_dependencies, get_collection
from tenfold.ops import array
from tenfold.ops.control_flow import group, no_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.operation import Operation


class Resource(NamedTuple):
    """What is registered: the handle, the operation that makes it, a tensor that says whether it is made."""

    handle: Any
    create: Any
    is_initialized: Any


def register_resource(handle: Any, create_op: Any, is_initialized_op: Any, is_shared: bool = True) -> None:
    """Adds a resource to the graph's, or with `is_shared` false to those of this process."""
    key = GraphKeys.RESOURCES if is_shared else GraphKeys.LOCAL_RESOURCES
    add_to_collection(key, Resource(handle, create_op, is_initialized_op))


def shared_resources() -> list[Resource]:
    """The resources of the default graph that its processes share."""
    return get_collection(GraphKeys.RESOURCES)


def local_resources() -> list[Resource]:
    """The resources of the default graph that each process has for itself."""
    return get_collection(GraphKeys.LOCAL_RESOURCES)


def report_uninitialized_resources(
    resource_list: Sequence[Resource] | None = None, name: str = "report_uninitialized_resources"
) -> Any:
    """The names of the resources that are not made yet, a string vector."""
    from tenfold.ops import slicing
    from tenfold.ops.math import logical_not

    resources = shared_resources() + local_resources() if resource_list is None else list(resource_list)
    if not resources:
        return array.constant([], dtype="string", name=name)
    missing = logical_not(array.stack([each.is_initialized for each in resources]))
    return slicing.boolean_mask(array.constant([each.handle.name for each in resources]), missing, name=name)


def initialize_resources(resource_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that makes them."""
    made = [each.create if isinstance(each, Resource) else each.initializer for each in resource_list]
    if made:
        return group(*made, name=name)
    with control_dependencies(None):
        return no_op(name=name)
