"""Resources behind three kinds of handles: references (FIFOQueue), resources (FIFOQueueV2), strings (TensorArrayV2).

A resource edge carries a LocalHandle in a 0-d object array: a ResourceHandle that also holds the resource itself, so
that nothing is looked up while it stays in its process; one that travelled is looked up by its name. A reference edge
carries a RefHandle, whose `value` is what a reader of the string reference sees. Used by the kernels of queues,
accumulators, barriers, stacks, tensor arrays, tables, readers. Follows resource_op_kernel.h and resource_mgr.cc.
"""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_kernels.arrays import Array, invalid, shape_text, text_attr
from tenfold_kernels.resources.state import ResourceHandle

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.registry import Compute, KernelNode
    from tenfold_kernels.resources.state import ResourceManager

T = TypeVar("T")

#: Numbers the resources that no other kernel can name.
_private = itertools.count()


@dataclass(frozen=True, slots=True)
class LocalHandle(ResourceHandle):
    """A handle that has its resource at hand. Equal to the one that travelled."""

    resource: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, handle: ResourceHandle, resource: Any) -> LocalHandle:
        """`handle`, with the resource that it names."""
        return cls(handle.device, handle.container, handle.name, handle.hash_code, handle.type_name, resource)


class RefHandle:
    """The value of a reference edge to a string that names a resource: [container, name]."""

    __slots__ = ("_names", "resource")

    def __init__(self, container: str, name: str, resource: Any) -> None:
        self.resource = resource
        self._names = np.array([container.encode(), name.encode()], dtype=object)
        self._names.setflags(write=False)

    @property
    def value(self) -> Array:
        """The two strings, read-only."""
        return self._names


def is_reference(node: KernelNode) -> bool:
    """Whether the node's first output is a reference, and not a resource."""
    return node.output_types[0].is_ref_dtype


def handle_for(node: KernelNode, container: str, name: str, resource: Any) -> Any:
    """What the node's first output carries for `resource`."""
    if is_reference(node):
        return RefHandle(container, name, resource)
    if node.output_types[0] is dtypes.string:
        return _string_handle(node.resources, container, name, resource)
    return LocalHandle(node.device, container, name, 0, type(resource).__name__, resource).as_array()


def _string_handle(resources: ResourceManager, container: str, name: str, resource: Any) -> Array:
    """[container, name], under which the resource is found as long as this array lives: till its step is over."""
    type_ = type(resource)
    resources.lookup_or_create(container, name, type_, lambda: resource)
    handle = np.array([container.encode(), name.encode()], dtype=object)
    handle.setflags(write=False)
    weakref.finalize(handle, _forget, resources, container, name, type_)
    return handle


def _named(node: KernelNode, value: Array, type_: type[T]) -> T:
    """The resource of a string handle."""
    if value.size != 2:
        raise invalid(f"Tensor array handle must be 2-element vector, but had shape: {shape_text(value.shape)}")
    container, name = (item.decode(errors="replace") for item in value.ravel().tolist())
    try:
        return node.resources.lookup(container, name, type_)
    except errors.NotFoundError:
        text = f"Container {container} does not exist. (Could not find resource: {container}/{name})"
        raise errors.not_found(text) from None


def shared_resource(
    node: KernelNode, type_: type[T], make: Callable[[str], T], check: Callable[[T], None] = lambda resource: None
) -> Compute:
    """The compute of an op that makes a resource or finds the one of that shared_name, and gives a handle to it.

    `make(name)` makes it; `check` raises InvalidArgumentError for one that another op has made otherwise. Without a
    shared_name the resource belongs to this kernel and goes with it.
    """
    resources = node.resources
    container = text_attr(node, "container") or resources.default_container
    name = text_attr(node, "shared_name")
    if name.startswith("_"):
        raise invalid(f"Resource names beginning with '_' are private: shared_name '{name}' of node '{node.name}'.")
    if not name and node.attrs.get("use_node_name_sharing"):
        name = node.name
    is_private = not name
    if is_private:
        name = f"_{next(_private)}_{node.name}"
    #: The handle, and in which generation of the resources it was found: a reset of the container makes a new one.
    found: tuple[int, Any] | None = None

    def compute() -> Any:
        nonlocal found
        generation = resources.generation
        if found is not None and found[0] == generation:
            return found[1]
        resource = resources.lookup_or_create(container, name, type_, lambda: make(name))
        check(resource)
        handle = handle_for(node, container, name, resource)
        found = generation, handle
        return handle

    if is_private:
        weakref.finalize(compute, _forget, resources, container, name, type_)
    return compute


def _forget(resources: ResourceManager, container: str, name: str, type_: type[Any]) -> None:
    try:
        resources.delete(container, name, type_)
    except errors.NotFoundError:
        return  # the container was reset, or the resource never made


def resource_of(node: KernelNode, value: Any, type_: type[T]) -> T:
    """The resource that a handle input names.

    Raises InvalidArgumentError for a handle of another device or of something else, NotFoundError if it is gone.
    """
    if type(value) is RefHandle:
        resource = value.resource
    elif value.ndim:
        return _named(node, value, type_)
    else:
        handle = value[()]
        if not isinstance(handle, ResourceHandle):
            raise invalid(f"{node.op} needs a resource handle, got {type(handle).__name__}")
        if handle.device != node.device:
            raise invalid(
                f"Trying to access resource {handle.name} located in device {handle.device} from device {node.device}"
            )
        if type(handle) is not LocalHandle:
            return node.resources.lookup(handle.container, handle.name, type_)
        resource = handle.resource
    if not isinstance(resource, type_):
        raise invalid(
            f"Trying to access a handle's resource using the wrong type. The handle points to a resource of type "
            f"'{type(resource).__name__}' and you are trying to access the resource using type '{type_.__name__}'"
        )
    return resource


def kept(value: Array) -> Array:
    """`value` for a caller that keeps it after the step: read-only, in no memory of others (a variable's, a feed's)."""
    if value.flags.writeable and value.base is None:
        value.setflags(write=False)
        return value
    copy = value.copy()
    copy.setflags(write=False)
    return copy


def signature_error(node: KernelNode, expected: str) -> errors.OpError:
    """Inputs or outputs of the node that do not fit the resource's types."""
    inputs = ",".join(_type_name(dtype) for dtype in node.input_types)
    outputs = ",".join(_type_name(dtype) for dtype in node.output_types)
    return invalid(f"Signature mismatch, have: {inputs}->{outputs} expected: {expected}")


def _type_name(dtype: Any) -> str:
    return f"{dtype.base_dtype.name}_ref" if dtype.is_ref_dtype else str(dtype.name)


def signature_text(node: KernelNode, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> str:
    """`resource,int32->float`: the handle, further inputs and outputs."""
    handle = "string_ref" if node.input_types[0] is not dtypes.resource else "resource"
    return ",".join((handle, *map(_type_name, inputs))) + "->" + ",".join(map(_type_name, outputs))
