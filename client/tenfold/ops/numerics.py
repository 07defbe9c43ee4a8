"""Checks that values are finite: `tf.verify_tensor_all_finite`, `tf.add_check_numerics_ops`.

Follows TensorFlow 1.15's numerics.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import colocate_with, control_dependencies, name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import tensor_op
from tenfold.ops.control_flow import group
from tenfold.ops.control_flow_primitives import with_dependencies
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation

__all__ = ["add_check_numerics_ops", "verify_tensor_all_finite"]


def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None, message: str | None = None
) -> Any:
    """`t` (or `x`); the step fails with `msg` (or `message`) if an element is NaN or infinite."""
    value, text = (x if t is None else t), (message if msg is None else msg)
    if value is None or text is None:
        raise ValueError("verify_tensor_all_finite needs a tensor and a message")
    with name_scope(name, "VerifyFinite", [item for item in [value] if hasattr(item, "graph")]):
        tensor = convert_to_tensor(value, name="t")
        with colocate_with(tensor):
            checked = tensor_op("CheckNumerics", tensor=tensor, message=text)
            return with_dependencies([checked], tensor)


def add_check_numerics_ops() -> Operation:
    """An operation that fails if any floating tensor of the graph, as it is now, is not finite.

    Raises ValueError if the graph has conditionals or loops: operations outside cannot depend on tensors inside them.
    """
    checks: list[Any] = []
    for op in get_default_graph().get_operations():
        for output in op.outputs:
            if output.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
                continue
            if op._control_flow_context is not None:
                raise ValueError(
                    "`tf.add_check_numerics_ops() is not compatible with TensorFlow control flow operations such as "
                    "`tf.cond()` or `tf.while_loop()`."
                )
            with control_dependencies(checks):
                checks = [tensor_op("CheckNumerics", tensor=output, message=f"{op.name}:{output.value_index}")]
    return group(*checks)
