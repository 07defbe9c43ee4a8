"""How the state kernels reach their variables: a reference edge carries the Variable, a resource edge names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.framework import dtypes, errors
from tenfold_kernels.cpu._common import Array, invalid
from tenfold_kernels.state import ResourceHandle, Variable

if TYPE_CHECKING:
    from tenfold_kernels.registry import KernelNode


def is_resource(node: KernelNode, index: int = 0) -> bool:
    """Whether that input is a resource handle; else it is a reference."""
    return node.input_types[index] is dtypes.resource


def handle_of(node: KernelNode, value: Array) -> ResourceHandle:
    """The handle in a 0-d object array. Raises InvalidArgumentError for a handle of another device."""
    handle = value[()]
    if not isinstance(handle, ResourceHandle):
        raise invalid(f"{node.op} needs a resource handle, got {type(handle).__name__}")
    if handle.device != node.device:
        raise invalid(
            f"Trying to access resource {handle.name} located in device {handle.device} from device {node.device}"
        )
    return handle


def variable_of(node: KernelNode, value: Any) -> Variable:
    """The variable of a reference or resource input, initialized or not yet.

    Raises FailedPreconditionError, with TensorFlow's text, for a resource variable that was never assigned.
    """
    if isinstance(value, Variable):
        return value
    handle = handle_of(node, value)
    try:
        return node.resources.lookup(handle.container, handle.name, Variable)
    except errors.NotFoundError as error:
        container = handle.container or node.resources.default_container
        raise errors.FailedPreconditionError(
            None,
            None,
            f"Could not find variable {handle.name}. This could mean that the variable has been deleted. In TF1, it "
            f"can also mean the variable is uninitialized. Debug info: container={container}, "
            f"status error message={error.message}",
        ) from None
