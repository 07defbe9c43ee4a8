"""Op definitions: tensor lists, the variants that control flow v2 keeps its intermediates in.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs.table import family

op = family("list")

op(
    "EmptyTensorList",
    "element_shape: shape_type, max_num_elements: int32",
    "handle: variant",
    "element_dtype: type",
    "shape_type: {index}",
    shape=r.scalar,
)
op(
    "TensorListConcat",
    "input_handle: variant",
    "tensor: element_dtype, lengths: int64",
    "element_dtype: type",
    "element_shape: shape = unknown",
    shape=r.list_concat,
)
op(
    "TensorListConcatLists",
    "input_a: variant, input_b: variant",
    "output: variant",
    "element_dtype: type",
    shape=s.add_n,
)
op(
    "TensorListConcatV2",
    "input_handle: variant, element_shape: shape_type, leading_dims: int64",
    "tensor: element_dtype, lengths: int64",
    "element_dtype: type",
    "shape_type: {index}",
    shape=r.list_concat_v2,
    sized_by="",
)
op("TensorListElementShape", "input_handle: variant", "element_shape: shape_type", "shape_type: {index}")
op(
    "TensorListFromTensor",
    "tensor: element_dtype, element_shape: shape_type",
    "output_handle: variant",
    "element_dtype: type",
    "shape_type: {index}",
    shape=r.scalar,
)
op(
    "TensorListGather",
    "input_handle: variant, indices: int32, element_shape: int32",
    "values: element_dtype",
    "element_dtype: type",
    shape=r.list_gather,
    sized_by="",
)
op(
    "TensorListGetItem",
    "input_handle: variant, index: int32, element_shape: Tshape",
    "item: element_dtype",
    "element_dtype: type",
    "Tshape: {index} = int32",
    shape=r.list_element,
    sized_by="",
)
op("TensorListLength", "input_handle: variant", "length: int32", shape=r.scalar)
op(
    "TensorListPopBack",
    "input_handle: variant, element_shape: int32",
    "output_handle: variant, tensor: element_dtype",
    "element_dtype: type",
    shape=r.list_pop,
)
op(
    "TensorListPushBack",
    "input_handle: variant, tensor: element_dtype",
    "output_handle: variant",
    "element_dtype: type",
    shape=r.scalar,
)
op(
    "TensorListPushBackBatch",
    "input_handles: variant, tensor: element_dtype",
    "output_handles: variant",
    "element_dtype: type",
    shape=r.list_batch,
)
op(
    "TensorListReserve",
    "element_shape: shape_type, num_elements: int32",
    "handle: variant",
    "element_dtype: type",
    "shape_type: {index}",
    shape=r.scalar,
    sized_by="num_elements",
)
op("TensorListResize", "input_handle: variant, size: int32", "output_handle: variant", shape=r.scalar, sized_by="size")
op(
    "TensorListScatter",
    "tensor: element_dtype, indices: int32, element_shape: shape_type",
    "output_handle: variant",
    "element_dtype: type",
    "shape_type: {index}",
    shape=r.scalar,
    sized_by="indices",
)
op(
    "TensorListScatterIntoExistingList",
    "input_handle: variant, tensor: element_dtype, indices: int32",
    "output_handle: variant",
    "element_dtype: type",
    shape=r.scalar,
)
op(
    "TensorListScatterV2",
    "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32",
    "output_handle: variant",
    "element_dtype: type",
    "shape_type: {index}",
    shape=r.scalar,
    sized_by="indices num_elements",
)
op(
    "TensorListSetItem",
    "input_handle: variant, index: int32, item: element_dtype",
    "output_handle: variant",
    "element_dtype: type",
    "resize_if_index_out_of_bounds: bool = false",
    shape=r.scalar,
)
op(
    "TensorListSplit",
    "tensor: element_dtype, element_shape: shape_type, lengths: int64",
    "output_handle: variant",
    "element_dtype: type",
    "shape_type: {index}",
    shape=r.scalar,
)
op(
    "TensorListStack",
    "input_handle: variant, element_shape: int32",
    "tensor: element_dtype",
    "element_dtype: type",
    "num_elements: int = -1",
    shape=r.list_stack,
    sized_by="",
)
