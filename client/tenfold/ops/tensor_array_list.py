"""ListArray: a `tf.TensorArray` that is a value, a list of tensors, and that functions take and return.

An array of tensor_array.py exists on one device for one step; what a dataset's function hands on to its next call, or
to another function, cannot be that. In such a function `tf.TensorArray` makes one of these. Kernels are in
tenfold_kernels/cpu/list.py and list_whole.py. Follows _GraphTensorArrayV2 of TensorFlow 1.15's tensor_array_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.constant_value import known_value
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, math
from tenfold.ops.tensor_array import TensorArray
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation

__all__ = ["ListArray"]


class ListArray(TensorArray):
    """An array whose `flow` is the list itself, a scalar variant. A write gives another list and changes none."""

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        """A new list of `size` elements, or the one that `flow` holds. What is said of devices and of reading twice
        means nothing here. Raises ValueError and TypeError for arguments that contradict.
        """
        _check_arguments(handle, flow, size, element_shape)
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = infer_shape
        self._element_shape = [as_shape(element_shape)]
        if flow is not None:
            self._flow = flow
            return
        with name_scope(name, "TensorArrayV2", [each for each in (size,) if hasattr(each, "graph")]) as scope:
            self._flow = tensor_op(
                "TensorListReserve",
                scope,
                element_shape=sizes_of(self.element_shape),
                num_elements=size,
                element_dtype=self._dtype,
            )

    @property
    def handle(self) -> Any:
        """None: there is no resource."""
        return None

    def _check_graph(self) -> None:
        """A list is captured as any tensor is."""

    def _after(self, flow: Tensor) -> TensorArray:
        result = object.__new__(ListArray)
        result.__dict__.update(self.__dict__, _flow=flow)
        return result

    # --- reading ---

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Element `index`, any number of times."""
        value = tensor_op(
            "TensorListGetItem",
            name,
            input_handle=self._flow,
            index=index,
            element_shape=sizes_of(self.element_shape),
            element_dtype=self._dtype,
        )
        value.set_shape(self.element_shape)
        return value

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices`, stacked: (len(indices), *element_shape). All must have one shape."""
        return self._rows(
            tensor_op(
                "TensorListGather",
                name,
                input_handle=self._flow,
                indices=indices,
                element_shape=sizes_of(self.element_shape),
                element_dtype=self._dtype,
            )
        )

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, stacked: (size, *element_shape)."""
        return self._rows(
            tensor_op(
                "TensorListStack",
                name,
                input_handle=self._flow,
                element_shape=sizes_of(self.element_shape),
                element_dtype=self._dtype,
            )
        )

    def concat(self, name: str | None = None) -> Tensor:
        """All elements, joined along their first dimension, the only one in which they may differ."""
        shape = self.element_shape
        whole = TensorShape([None]).concatenate(shape[1:]) if shape.ndims else TensorShape(None)
        value: Tensor
        value, _ = apply_op(
            "TensorListConcatV2",
            name,
            input_handle=self._flow,
            element_shape=sizes_of(whole),
            leading_dims=array.constant([], dtypes.int64),
            element_dtype=self._dtype,
        )
        value.set_shape(whole)
        return value

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, a scalar int32."""
        return tensor_op("TensorListLength", name, input_handle=self._flow)

    def _rows(self, value: Tensor) -> Tensor:
        if self.element_shape.ndims is not None:
            value.set_shape(TensorShape([None]).concatenate(self.element_shape))
        return value

    # --- writing ---

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with `value` at `index`."""
        tensor = self._value(value)
        self._check_element_shape(tensor.shape)
        return self._after(
            tensor_op(
                "TensorListSetItem",
                name,
                input_handle=self._flow,
                index=index,
                item=tensor,
                resize_if_index_out_of_bounds=self._dynamic_size,
            )
        )

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array with the rows of `value` as its elements."""
        tensor = self._rows_value(value)
        return self._after(
            tensor_op("TensorListFromTensor", name, tensor=tensor, element_shape=sizes_of(self.element_shape))
        )

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the rows of `value` at `indices`."""
        tensor = self._rows_value(value)
        return self._after(
            tensor_op(
                "TensorListScatterIntoExistingList", name, input_handle=self._flow, tensor=tensor, indices=indices
            )
        )

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array with consecutive pieces of `value`, `lengths[i]` rows each, as its elements."""
        tensor, lengths = self._value(value), math.cast(lengths, dtypes.int64)
        known = known_value(lengths)
        if tensor.shape.ndims is not None and known is not None and known.size and known.max() == known.min():
            self._check_element_shape(TensorShape([int(known.reshape(-1)[0])]).concatenate(tensor.shape[1:]))
        return self._after(
            tensor_op(
                "TensorListSplit", name, tensor=tensor, element_shape=sizes_of(self.element_shape), lengths=lengths
            )
        )

    def _rows_value(self, value: Any) -> Tensor:
        tensor = self._value(value)
        if tensor.shape.ndims is not None:
            self._check_element_shape(tensor.shape[1:])
        return tensor

    def close(self, name: str | None = None) -> Operation:
        """An operation that does nothing: a list goes when nothing holds it."""
        op: Operation = apply_op("NoOp", name)
        return op

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """Raises NotImplementedError, as in TensorFlow."""
        raise NotImplementedError("A TensorArray that is a list of tensors has no array of gradients.")


def sizes_of(shape: TensorShape) -> Tensor:
    """A shape as operations on lists take it: int32, -1 for what is not known."""
    sizes: Any = -1 if shape.ndims is None else [-1 if size is None else size for size in shape.as_list()]
    return array.constant(sizes, dtypes.int32)


def _check_arguments(handle: Any, flow: Any, size: Any, element_shape: Any) -> None:
    if handle is not None:
        raise ValueError("A TensorArray inside a function has no handle.")
    if flow is None:
        if size is None:
            raise ValueError("Size must be provided if flow is not provided")
        return
    if not isinstance(flow, Tensor) or flow.dtype != dtypes.variant:
        raise TypeError("flow must be a variant tensor")
    for what, given in (("size", size), ("element_shape", element_shape)):
        if given is not None:
            raise ValueError(f"Cannot provide both a flow and {what} at the same time")
