"""What `variable[1:3]` gives: a tensor that can be assigned to, `variable[1:3].assign(value)`.

Made by slicing.py:getitem. Follows TensorFlow 1.15's array_ops._SliceHelperVar.
"""

from __future__ import annotations

from typing import Any

from tenfold.graph import control_dependencies
from tenfold.graph.op_builder import apply_op
from tenfold.graph.tensor import Tensor

#: The operations that read a whole variable.
_READS = ("ReadVariableOp", "Identity")
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class VariableSlice(Tensor):
    """A part of a variable."""

    __slots__ = ()

    def assign(self, value: Any, name: str | None = None) -> Any:
        """Sets this part of the variable; the whole variable after it.

        `value` has the slice's shape. Raises ValueError if the variable cannot be found behind the slice.
        """
        read, begin, end, strides = self.op.inputs
        while read.op.type in _READS and not read.dtype._is_ref_dtype and read.op.inputs[0].dtype.name != "resource":
            read = read.op.inputs[0]
        masks = {mask: self.op.get_attr(mask) for mask in _MASKS}
        places = {"begin": begin, "end": end, "strides": strides, **masks}
        if read.dtype._is_ref_dtype:
            return apply_op("StridedSliceAssign", name, ref=read, value=value, **places)
        if read.op.type != "ReadVariableOp":
            raise ValueError("Sliced assignment is only supported for variables")
        handle = read.op.inputs[0]
        done = apply_op("ResourceStridedSliceAssign", name, ref=handle, value=value, **places)
        with control_dependencies([done]):
            return apply_op("ReadVariableOp", None, resource=handle, dtype=self.dtype.base_dtype)


def assignable(part: Tensor) -> VariableSlice:
    """The same tensor, with `assign`."""
    part.__class__ = VariableSlice
    assert isinstance(part, VariableSlice)
    return part
