"""Gradient rows of tensor lists; the op definitions are in tenfold_core/opdefs/list.py.

A list's gradient is a list of as many elements. Tenfold's own while loops keep forward values in stacks; these rules
are for graphs that use lists themselves. Follows TensorFlow's list_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _element_shape(handle: Tensor) -> Any:
    return apply_op("TensorListElementShape", input_handle=handle, shape_type=dtypes.int32)


def _row_shape(x: Tensor) -> Any:
    return array_ops.shape(x)[1:]


def _zeros(handle: Tensor, dtype: Any) -> Any:
    """A list of as many elements, none of which is set: they are zeros."""
    count = apply_op("TensorListLength", input_handle=handle)
    shape = _element_shape(handle)
    return apply_op("TensorListReserve", element_shape=shape, num_elements=count, element_dtype=dtype)


@gradient("TensorListPushBack")
def _push_back(op: Operation, g: Tensor) -> Any:
    shape = array_ops.shape(op.inputs[1])
    return apply_op(
        "TensorListPopBack", input_handle=g, element_shape=shape, element_dtype=op.get_attr("element_dtype")
    )


@gradient("TensorListPopBack")
def _pop_back(_: Operation, g_list: Tensor, g_element: Tensor) -> Any:
    return apply_op("TensorListPushBack", input_handle=g_list, tensor=g_element), None


@gradient("TensorListStack")
def _stack(_: Operation, g: Tensor) -> Any:
    return apply_op("TensorListFromTensor", tensor=g, element_shape=_row_shape(g)), None


@gradient("TensorListFromTensor")
def _from_tensor(op: Operation, g: Tensor) -> Any:
    tensor = op.inputs[0]
    return apply_op(
        "TensorListStack", input_handle=g, element_shape=_row_shape(tensor), element_dtype=tensor.dtype.base_dtype
    ), None


@gradient("TensorListConcat", "TensorListConcatV2")
def _concat(op: Operation, g: Tensor, _: Any) -> Any:
    made = apply_op("TensorListSplit", tensor=g, element_shape=_element_shape(op.inputs[0]), lengths=op.outputs[1])
    return (made, None, None) if op.type == "TensorListConcatV2" else made


@gradient("TensorListSplit")
def _split(op: Operation, g: Tensor) -> Any:
    tensor, _, lengths = op.inputs
    shape = array_ops.concat([[-1], _row_shape(tensor)], 0)
    made = apply_op(
        "TensorListConcatV2", input_handle=g, element_shape=shape, leading_dims=lengths,
        element_dtype=tensor.dtype.base_dtype,
    )  # fmt: skip
    return made[0], None, None


@gradient("TensorListGetItem")
def _get_item(op: Operation, g: Tensor) -> Any:
    handle, index, _ = op.inputs
    zeros = _zeros(handle, g.dtype.base_dtype)
    return apply_op("TensorListSetItem", input_handle=zeros, index=index, item=g), None, None


@gradient("TensorListSetItem")
def _set_item(op: Operation, g: Tensor) -> Any:
    handle, index, item = op.inputs
    kept = apply_op("TensorListSetItem", input_handle=g, index=index, item=apply_op("ZerosLike", x=item))
    if op.get_attr("resize_if_index_out_of_bounds"):
        kept = apply_op("TensorListResize", input_handle=kept, size=apply_op("TensorListLength", input_handle=handle))
    of_item = apply_op(
        "TensorListGetItem", input_handle=g, index=index, element_shape=array_ops.shape(item),
        element_dtype=item.dtype.base_dtype,
    )  # fmt: skip
    return kept, None, of_item


@gradient("TensorListResize")
def _resize(op: Operation, g: Tensor) -> Any:
    size = apply_op("TensorListLength", input_handle=op.inputs[0])
    return apply_op("TensorListResize", input_handle=g, size=size), None


@gradient("TensorListGather")
def _gather(op: Operation, g: Tensor) -> Any:
    # an element that was read several times gets the sum; TensorFlow leaves it the last of them
    handle, indices, _ = op.inputs
    zeros = _zeros(handle, g.dtype.base_dtype)
    each, numbers = apply_op("Unique", x=indices)
    total = apply_op("UnsortedSegmentSum", data=g, segment_ids=numbers, num_segments=array_ops.size(each))
    spread = apply_op("TensorListScatterIntoExistingList", input_handle=zeros, tensor=total, indices=each)
    return spread, None, None


def _gathered(g: Tensor, indices: Tensor, tensor: Tensor) -> Any:
    return apply_op(
        "TensorListGather", input_handle=g, indices=indices, element_shape=_row_shape(tensor),
        element_dtype=tensor.dtype.base_dtype,
    )  # fmt: skip


@gradient("TensorListScatter", "TensorListScatterV2")
def _scatter(op: Operation, g: Tensor) -> Any:
    return (_gathered(g, op.inputs[1], op.inputs[0]), *[None] * (len(op.inputs) - 1))


@gradient("TensorListScatterIntoExistingList")
def _scatter_into(op: Operation, g: Tensor) -> Any:
    _, tensor, indices = op.inputs
    zeros = apply_op("ZerosLike", x=tensor)
    kept = apply_op("TensorListScatterIntoExistingList", input_handle=g, tensor=zeros, indices=indices)
    return kept, _gathered(g, indices, tensor), None


not_implemented("TensorListReserve")
not_differentiable("TensorListConcatLists", "TensorListPushBackBatch", why="as in TensorFlow")
not_differentiable(
    "EmptyTensorList",
    "TensorListElementShape",
    "TensorListLength",
    why="the value comes from another step or from outside",
)
