"""Gradient rows of tensor lists; the op definitions are in tenfold_core/opdefs/list.py.

Our while loops keep their steps in stacks, so their gradients need none of these.
"""

from __future__ import annotations

from tenfold.gradients.registry import not_implemented

not_implemented(
    "TensorListConcat",
    "TensorListConcatLists",
    "TensorListConcatV2",
    "TensorListGather",
    "TensorListPushBackBatch",
    "TensorListResize",
    "TensorListScatter",
    "TensorListScatterIntoExistingList",
    "TensorListScatterV2",
    "TensorListSplit",
)
