"""How the state kernels reach their variables: a reference edge carries the Variable, a resource edge names it."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_kernels.arrays import Array, invalid
from tenfold_kernels.resources.state import ResourceHandle, Variable

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence

    from tenfold_kernels.registry import Compute, KernelNode


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


def variable_reader(node: KernelNode, type_attr: str = "") -> Callable[[Any], Variable]:
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
        variable = variable_of(node, value, type_attr)
        if variable is not value and not value.flags.writeable:
            found = value, generation, weakref.ref(variable)
        return variable

    return read


def variable_of(node: KernelNode, value: Any, type_attr: str = "") -> Variable:
    """The variable of a reference or resource input, initialized or not yet.

    Raises FailedPreconditionError, with TensorFlow's text, for a resource variable that was never assigned, and
    InvalidArgumentError for one of another type than the node's, or than its `type_attr` says: a resource handle does
    not tell the type.
    """
    if isinstance(value, Variable):
        return value
    handle = handle_of(node, value)
    try:
        variable = node.resources.lookup(handle.container, handle.name, Variable)
        # a read says it in its own words
        of_node = None if node.op == "ReadVariableOp" else node.attrs.get("dtype") or node.attrs.get("T")
        wanted = node.attrs.get(type_attr) if type_attr else of_node
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


@contextlib.contextmanager
def locked(variables: Sequence[Variable]) -> Iterator[None]:
    """All of them locked, in the order in which every update locks several."""
    with contextlib.ExitStack() as stack:
        for variable in sorted(variables, key=id):
            stack.enter_context(variable.lock)
        yield


@contextlib.contextmanager
def holding(locks: Sequence[threading.RLock]) -> Iterator[None]:
    """All of these locks, taken in their order. Of hundreds: an exit for each would cost as much as their update."""
    held = 0
    try:
        for lock in locks:
            lock.acquire()
            held += 1
        yield
    finally:
        for lock in locks[:held]:
            lock.release()


def all_locked(variables: Sequence[Variable]) -> contextlib.AbstractContextManager[None]:
    """As `locked`, of hundreds."""
    return holding([variable.lock for variable in sorted(variables, key=id)])


def on_variables(
    node: KernelNode, type_attrs: Sequence[str], update: Callable[[Sequence[Array], Sequence[Any]], None]
) -> Compute:
    """A compute that calls `update` with the buffers of its first inputs, variables of either kind with the types that
    these attributes of the node say, all locked, and with all inputs. Half types are float32 for `update`, and are
    rounded once it is done. Gives the first one's reference, or nothing for resources."""
    resource, count = is_resource(node), len(type_attrs)
    readers = [variable_reader(node, attr) for attr in type_attrs]

    def compute(*inputs: Any) -> Any:
        given = inputs[:count]
        variables = [read(value) for read, value in zip(readers, given, strict=True)] if resource else given
        with locked(variables):
            buffers = [variable.buffer(exclusive=resource) for variable in variables]
            if any(map(_is_half, buffers)):
                wide = [in_float(buffer) for buffer in buffers]
                update(wide, [*wide, *map(in_float, inputs[count:])])
                for buffer, values in zip(buffers, wide, strict=True):
                    buffer[...] = values
            else:
                update(buffers, inputs)
        return None if resource else inputs[0]

    return compute


def _is_half(value: Any) -> bool:
    # NumPy has no type of its own for bfloat16
    return value.dtype.itemsize == 2 and value.dtype.kind in "fV"


def in_float(value: Any) -> Any:
    """A float32 copy of an array of a half type; any other array as it is."""
    return value.astype(np.float32) if _is_half(value) else value
