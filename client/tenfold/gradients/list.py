"""Gradient rows of tensor lists; the op definitions are in tenfold_core/opdefs/list.py.

Tenfold's while loops keep forward values in stacks, so their gradients do not need tensor lists.
"""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable, not_implemented

not_implemented(
    "TensorListConcat",
    "TensorListConcatLists",
    "TensorListConcatV2",
    "TensorListFromTensor",
    "TensorListGather",
    "TensorListGetItem",
    "TensorListPopBack",
    "TensorListPushBack",
    "TensorListPushBackBatch",
    "TensorListReserve",
    "TensorListResize",
    "TensorListScatter",
    "TensorListScatterIntoExistingList",
    "TensorListScatterV2",
    "TensorListSetItem",
    "TensorListSplit",
    "TensorListStack",
)


not_differentiable(
    "EmptyTensorList",
    "TensorListElementShape",
    "TensorListLength",
    why="the value comes from another step or from outside",
)
