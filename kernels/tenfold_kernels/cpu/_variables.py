"""How the state kernels reach their variables: a reference edge carries the Variable, a resource edge names it."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from tenfold_core import dtypes, errors
from tenfold_kernels.arrays import Array, invalid
from tenfold_kernels.resources.state import ResourceHandle, Variable

if TYPE_CHECKING:
    from collections.abc import Callable

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


def variable_reader(node: KernelNode) -> Callable[[Any], Variable]:
    """`variable_of` for one input of a node, fast where the input is the same handle as the last time.

    A handle array is one object in all steps of a program. What was found is kept weakly, and only while no resource is
    forgotten, so that a reset gives its memory back and gives the name a new variable.
    """
    resources = node.resources
    found: tuple[Any, int, weakref.ref[Variable]] | None = None

    def read(value: Any) -> Variable:
        nonlocal found
        last = found
        if last is not None and last[0] is value and last[1] == resources.generation:
            variable = last[2]()
            if variable is not None:
                return variable
        generation = resources.generation
        variable = variable_of(node, value)
        if variable is not value and not value.flags.writeable:
            found = value, generation, weakref.ref(variable)
        return variable

    return read


def variable_of(node: KernelNode, value: Any) -> Variable:
    """The variable of a reference or resource input, initialized or not yet.

    Raises FailedPreconditionError, with TensorFlow's text, for a resource variable that was never assigned, and
    InvalidArgumentError for one of another type than the node's: a resource handle does not tell the type.
    """
    if isinstance(value, Variable):
        return value
    handle = handle_of(node, value)
    try:
        variable = node.resources.lookup(handle.container, handle.name, Variable)
        # a read says it in its own words
        wanted = None if node.op == "ReadVariableOp" else node.attrs.get("dtype") or node.attrs.get("T")
        if isinstance(wanted, dtypes.DType) and wanted.base_dtype is not variable.dtype:
            raise invalid(
                f"Trying to use variable {handle.name} with wrong dtype in {node.op}. "
                f"Expected {variable.dtype.op_name} got {wanted.op_name}"
            )
        return variable
    except errors.NotFoundError as error:
        container = handle.container or node.resources.default_container
        raise errors.failed_precondition(
            f"Could not find variable {handle.name}. This could mean that the variable has been deleted. In TF1, it "
            f"can also mean the variable is uninitialized. Debug info: container={container}, "
            f"status error message={error.message}"
        ) from None
