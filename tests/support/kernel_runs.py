"""Runs one op's kernel as a program would: attrs resolved, kernel looked up, inputs made read-only, outputs checked.

Every run checks that outputs are arrays of the declared types, and that inputs were not written to. Used by the
fixtures `ops` of tests/kernels/ and tests/cuda/.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core import dtypes, opdefs
from tenfold_core.node_signature import signature
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import registry
from tenfold_kernels.registry import KernelNode
from tenfold_kernels.resources.handles import RefHandle
from tenfold_kernels.resources.state import ResourceManager, Variable

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def as_value(value: Any) -> Any:
    """Test inputs as runtime values: bytes and lists of bytes become object arrays, numbers keep NumPy's choice."""
    if isinstance(value, (np.ndarray, Variable)):
        return value
    array = np.asarray(value)
    if array.dtype.kind in "SU":
        objects = np.empty(array.shape, dtype=object)
        objects[...] = np.array(value, dtype=object)
        return objects
    if isinstance(value, (int, list)) and array.dtype == np.int64:
        return array.astype(np.int32)
    if isinstance(value, (float, list)) and array.dtype == np.float64:
        return array.astype(np.float32)
    return array


def _read_only(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.setflags(write=False)
    return value


def dtype_of(value: Any) -> dtypes.DType:
    if isinstance(value, Variable):
        return value.dtype.as_ref
    if value.dtype == object and value.size and not isinstance(value.reshape(-1)[0], bytes):
        return dtypes.resource
    return dtypes.as_dtype(value.dtype)


def make_node(
    op: str, inputs: list[Any], attrs: dict[str, Any], resources: ResourceManager, name: str, device: str = DEVICE
) -> KernelNode:
    """The node as the compiler of partitions would describe it."""
    definition = opdefs.get(op)
    resolved = {a.name: a.default for a in definition.attrs if a.has_default}
    types = [dtype_of(v) for v in inputs]
    at = 0
    for arg in definition.inputs:
        if arg.type_list_attr:
            resolved[arg.type_list_attr] = tuple(t.base_dtype for t in types[at:])
            at = len(types)
            continue
        count = 1
        if arg.number_attr:
            sharing = sum(1 for other in definition.inputs if other.number_attr == arg.number_attr)
            count = attrs.get(arg.number_attr, (len(types) - len(definition.inputs) + sharing) // sharing)
            resolved[arg.number_attr] = count
        if arg.type_attr and at < len(types):
            resolved[arg.type_attr] = types[at].base_dtype
        at += count
    resolved.update(attrs)
    types_of = signature(definition, resolved)
    return KernelNode(name, op, resolved, types_of.input_types, types_of.output_types, device, resources)


def build(op: str, inputs: list[Any], attrs: dict[str, Any], resources: ResourceManager | None = None) -> Any:
    """The compute function for `op` on inputs of these types, and its node."""
    rest = {k: v for k, v in attrs.items() if k != "name"}
    node = make_node(op, [as_value(v) for v in inputs], rest, resources or ResourceManager(), attrs.get("name", op))
    return registry.lookup(node, "CPU")(node), node


def run_op(op: str, inputs: list[Any] | None = None, *, resources: ResourceManager | None = None, **attrs: Any) -> Any:
    """Runs `op` once and checks its outputs. Gives what the kernel gives: None, a value or a tuple."""
    values = [as_value(v) for v in inputs or []]
    compute, node = build(op, values, attrs, resources)
    with registry.quiet():
        result = compute(*(_read_only(v) for v in values))
    check_outputs(node, result)
    if not registry.may_view_input(op):
        check_is_fresh(op, values, result)
    return result


def check_is_fresh(op: str, inputs: list[Any], result: Any) -> None:
    """Asserts that no output shares memory with an input: registered without views=True, a kernel promises that."""
    for output in result if isinstance(result, tuple) else (result,):
        for value in inputs:
            if type(output) is np.ndarray and type(value) is np.ndarray:
                assert not np.may_share_memory(output, value), f"{op} gives a view of an input: register views=True"


def check_outputs(node: KernelNode, result: Any) -> None:
    """Asserts the contract of kernels: as many outputs as declared, each an array of exactly its type."""
    if not node.output_types:
        assert result is None, f"{node.op} has no outputs, got {result!r}"
        return
    outputs = (result,) if len(node.output_types) == 1 else result
    assert len(outputs) == len(node.output_types)
    for output, dtype in zip(outputs, node.output_types, strict=True):
        if dtype.is_ref_dtype:
            assert isinstance(output, Variable)
        else:
            assert type(output) is np.ndarray, f"{node.op} gives {type(output)}"
            assert output.dtype == np.dtype(dtype.as_numpy_dtype), f"{node.op} gives {output.dtype}, not {dtype.name}"


def variable(value: Any, name: str = "v") -> Variable:
    """An initialized reference variable."""
    array = as_value(value)
    made = Variable(name, dtype_of(array), TensorShape(array.shape))
    made.assign(array)
    return made


def handle(value: Any, resources: ResourceManager, name: str = "v") -> np.ndarray[Any, Any]:
    """The handle of a resource variable with this value."""
    array = as_value(value)
    made = run_op("VarHandleOp", [], resources=resources, dtype=dtype_of(array), shape=TensorShape(None), name=name)
    run_op("AssignVariableOp", [made, array], resources=resources)
    return made  # type: ignore[no-any-return]


class Steps:
    """Runs ops of one task, one after the other: what they keep is there for the next. Gives what the kernel gives."""

    def __init__(self) -> None:
        self.resources = ResourceManager()

    def build(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        """The compute function, for inputs of these types."""
        return build(op, list(inputs), attrs, self.resources)[0]

    def __call__(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        compute = self.build(op, *inputs, **attrs)
        return compute(*(value if isinstance(value, RefHandle) else as_value(value) for value in inputs))
