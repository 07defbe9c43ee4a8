"""Variables of both families: making, reading, assigning, counting.

A reference variable is one object that every edge carries and every update changes in place. A resource variable is
made by its first assignment, read as a snapshot, and copied before an update while a snapshot is alive. Follows
variable_ops.cc, assign_op.h, dense_update_ops.cc, resource_variable_ops.cc.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import Array, as_array, invalid, output_type, shape_text, text_attr
from tenfold_kernels.cpu._variables import handle_of, is_resource, variable_of, variable_reader
from tenfold_kernels.cpu.array_shape import shape_array
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.state import ResourceHandle, ResourceManager, Variable
from tenfold_kernels.typesets import NARROW, NUMERIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.quota import Account


@kernel("Variable", "VariableV2")
def build_variable(node: KernelNode) -> Compute:
    """The variable itself, by shared_name or the node's name; made on first use, uninitialized if it has elements."""
    return variable_kernel(node, _new_reference)


def _new_reference(name: str, dtype: DType, shape: TensorShape, account: Account | None) -> Variable:
    """A variable that is declared without elements, as a list that is to grow, can be read at once, as TensorFlow's."""
    variable = Variable(name, dtype, shape, account)
    if shape.ndims and shape.num_elements() == 0:
        variable.adopt(np.empty(tuple(shape.as_list()), dtype=dtype.as_numpy_dtype))
    return variable


def variable_kernel(node: KernelNode, new: Callable[..., Variable]) -> Compute:
    """The kernel of a node whose variable `new(name, dtype, shape, account)` makes."""
    container, name = text_attr(node, "container"), text_attr(node, "shared_name") or node.name
    dtype, shape = node.attrs["dtype"], TensorShape(node.attrs.get("shape"))
    resources = node.resources

    def make() -> Variable:
        return new(name, dtype, shape, resources.quota.account(name))

    #: What the last look-up found, and in which generation of the resources: a reset of the container gives the name
    #: a new variable. Weak, so that a forgotten variable gives its memory back.
    found: tuple[int, weakref.ref[Variable]] | None = None

    def compute() -> Variable:
        nonlocal found
        generation = resources.generation
        if found is not None and found[0] == generation:
            held = found[1]()
            if held is not None:
                return held
        variable = resources.lookup_or_create(container, name, Variable, make)
        if variable.dtype is not dtype:
            raise invalid(
                f"Trying to access variable {name} with wrong dtype. "
                f"Expected {variable.dtype.op_name} got {dtype.op_name}"
            )
        found = generation, weakref.ref(variable)
        return variable

    return compute


class _Temporary(Variable):
    """A variable of one step."""

    __slots__ = ("destroyed",)

    destroyed: bool


#: Per resources: name → (the node that made it, the variable) of the last temporary variable that was made.
_temporaries: weakref.WeakKeyDictionary[ResourceManager, dict[str, tuple[str, weakref.ref[_Temporary]]]] = (
    weakref.WeakKeyDictionary()
)


@kernel("TemporaryVariable")
def build_temporary_variable(node: KernelNode) -> Compute:
    """A variable of this node alone; it counts as initialized, with zeros. DestroyTemporaryVariable reads it.

    Raises AlreadyExistsError while another node's variable of the same name lives.
    """
    name, dtype, shape = text_attr(node, "var_name") or node.name, node.attrs["dtype"], node.attrs["shape"]
    live = _temporaries.setdefault(node.resources, {})

    def compute() -> Variable:
        maker, other = live.get(name, (node.name, None))
        found = None if other is None or maker == node.name else other()
        if found is not None and not found.destroyed:
            raise errors.already_exists(f"The temporary variable {name} of {maker} exists already.")
        variable = _Temporary(name, dtype, shape)
        variable.destroyed = False
        allow(shape.as_list(), dtype.as_numpy_dtype)
        variable.adopt(np.zeros(tuple(shape.as_list()), dtype=dtype.as_numpy_dtype))
        live[name] = node.name, weakref.ref(variable)
        return variable

    return compute


@kernel("DestroyTemporaryVariable", views=True)
def build_destroy_temporary_variable(node: KernelNode) -> Compute:
    """The last value. Raises NotFoundError for a variable of another name and for one that was destroyed before."""
    name = text_attr(node, "var_name")

    def compute(variable: Variable) -> Array:
        if isinstance(variable, _Temporary):
            if variable.name != name or variable.destroyed:
                raise errors.not_found(f"There is no temporary variable {name}.")
            variable.destroyed = True
        return variable.value

    return compute


@kernel("IsVariableInitialized")
def build_is_variable_initialized(node: KernelNode) -> Compute:
    return lambda variable: np.array(variable.is_initialized)


@kernel("Assign")
def build_assign(node: KernelNode) -> Compute:
    """Copies the value in; into the same memory where the shape stays. Gives the reference."""
    validate = bool(node.attrs.get("validate_shape", True))

    def compute(variable: Variable, value: Array) -> Variable:
        variable.assign(value, validate_shape=validate)
        return variable

    return compute


@kernel("AssignAdd", "AssignSub", T=NUMERIC | NARROW)
def build_assign_add(node: KernelNode) -> Compute:
    ufunc = np.add if node.op == "AssignAdd" else np.subtract

    def compute(variable: Variable, value: Array) -> Variable:
        with variable.lock:
            buffer = variable.buffer()
            if buffer.shape != value.shape:
                raise invalid("Parameters and update must be the same size")
            ufunc(buffer, value, out=buffer)
        return variable

    return compute


@kernel("VarHandleOp")
def build_var_handle(node: KernelNode) -> Compute:
    """The same handle in every step; the variable itself comes with its first assignment."""
    container = text_attr(node, "container") or node.resources.default_container
    name = text_attr(node, "shared_name") or node.name
    handle = ResourceHandle(node.device, container, name, type_name="Variable").as_array()
    return lambda: handle


@kernel("ReadVariableOp")
def build_read_variable(node: KernelNode) -> Compute:
    """A read-only snapshot. Raises FailedPreconditionError while uninitialized."""
    dtype, variable_at = node.attrs["dtype"], variable_reader(node)

    def compute(resource: Array) -> Array:
        variable = variable_at(resource)
        if variable.dtype is not dtype:
            raise invalid(
                f"Trying to read variable with wrong dtype. Expected {dtype.op_name} got {variable.dtype.op_name}"
            )
        with variable.lock:
            return variable.value

    return compute


@kernel("AssignVariableOp")
def build_assign_variable(node: KernelNode) -> Compute:
    """Makes the variable if need be. With validate_shape an initialized variable keeps its shape."""
    return assign_variable_kernel(node, Variable)


def assign_variable_kernel(node: KernelNode, new: Callable[..., Variable]) -> Compute:
    """The kernel of a node whose variable `new(name, dtype, shape, account)` makes."""
    dtype, validate = node.attrs["dtype"], bool(node.attrs.get("validate_shape", False))

    def compute(resource: Array, value: Array) -> None:
        handle = handle_of(node, resource)

        def make() -> Variable:
            account = node.resources.quota.account(handle.name)
            return new(handle.name, dtype, TensorShape(None), account)

        variable = node.resources.lookup_or_create(handle.container, handle.name, Variable, make)
        if variable.dtype is not dtype:
            raise invalid(
                f"Trying to assign variable with wrong dtype. Expected {variable.dtype.op_name} got {dtype.op_name}"
            )
        with variable.lock:
            if validate and variable.is_initialized and variable.buffer().shape != value.shape:
                raise invalid(
                    "Trying to assign to variable with tensor with wrong shape. "
                    f"Expected {shape_text(variable.buffer().shape)} got {shape_text(value.shape)}"
                )
            variable.assign(value, validate_shape=False, in_place=False)

    return compute


@kernel("AssignAddVariableOp", "AssignSubVariableOp", dtype=NUMERIC | NARROW)
def build_assign_add_variable(node: KernelNode) -> Compute:
    ufunc = np.add if node.op == "AssignAddVariableOp" else np.subtract
    variable_at = variable_reader(node)

    def compute(resource: Array, value: Array) -> None:
        variable = variable_at(resource)
        with variable.lock:
            buffer = variable.buffer(exclusive=True)
            if buffer.shape != value.shape:
                raise invalid(
                    f"Cannot update variable with shape {shape_text(buffer.shape)} using a Tensor with shape "
                    f"{shape_text(value.shape)}, shapes must be equal."
                )
            ufunc(buffer, value, out=buffer)

    return compute


@kernel("VarIsInitializedOp")
def build_var_is_initialized(node: KernelNode) -> Compute:
    def compute(resource: Array) -> Array:
        handle = handle_of(node, resource)
        try:
            return np.array(node.resources.lookup(handle.container, handle.name, Variable).is_initialized)
        except errors.NotFoundError:
            return np.array(False)

    return compute


@kernel("VariableShape")
def build_variable_shape(node: KernelNode) -> Compute:
    dtype = output_type(node)
    return lambda resource: shape_array(variable_of(node, resource).value.shape, dtype)


@kernel("DisableCopyOnRead")
def build_disable_copy_on_read(node: KernelNode) -> Compute:
    """Nothing to do: reads never copy here, updates do."""
    return lambda resource: None


@kernel("DestroyResourceOp")
def build_destroy_resource(node: KernelNode) -> Compute:
    """Forgets what the handle names: a variable, a table, a queue, an iterator, … Others that use it may go on with it.
    Waits for the work of an iterator to end. Raises NotFoundError unless `ignore_lookup_error`."""
    ignore = bool(node.attrs.get("ignore_lookup_error", True))

    def compute(resource: Array) -> None:
        handle = handle_of(node, resource)
        found = node.resources.forget(handle)
        if not found and not ignore:
            where = f"{handle.container or node.resources.default_container}/{handle.name}"
            raise errors.not_found(f"Resource {where}/{handle.type_name} does not exist.")
        for each in found:
            if hasattr(each, "end_work"):
                each.end_work()

    return compute


@kernel("CountUpTo", "ResourceCountUpTo")
def build_count_up_to(node: KernelNode) -> Compute:
    """The value before it is increased. Raises OutOfRangeError once it has reached the limit."""
    limit, exclusive = int(node.attrs["limit"]), is_resource(node)

    def compute(ref: Any) -> Array:
        variable = variable_of(node, ref)
        with variable.lock:
            buffer = variable.buffer(exclusive=exclusive)
            if buffer.ndim:
                raise invalid(f"input is not a scalar: {shape_text(buffer.shape)}")
            if buffer >= limit:
                raise errors.out_of_range(f"Reached limit of {limit}")
            before = buffer.copy()
            buffer += 1
            return as_array(before)

    return compute
