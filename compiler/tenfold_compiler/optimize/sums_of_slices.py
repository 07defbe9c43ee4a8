"""Makes one array of a sum of slices' gradients: that of a tensor of which many parts were read, as the words of a
sentence by an unrolled RNN.

The gradient of x[:, i] is an array of x's size, zeros but for one slice, and that of tf.slice is a Pad; an AddN adds as
many of them as slices were read. Those that nobody else reads become one StridedSliceGrad or Pad of all slices, whose
kernel adds each to its place in one array of zeros (kernels/cpu/array_slice.py, client/gradients/array.py). Each
element is the sum of the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_compiler.part.node_facts import Constants, views_of_references

from .edits import absorb, joinable

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import PartGraph, PartNode

_ADDS = frozenset(("AddN", "AccumulateNV2"))
#: How many inputs the slices of one tensor have in common: the shape.
_SHARED = {"StridedSliceGrad": 1, "Pad": 0}


def join_sums_of_slices(part: PartGraph, constants: Constants) -> int:
    """Returns how many gradients of slices it made part of another one."""
    sums = [node for node in part.nodes if node.op in _ADDS and len(node.inputs) > 1 and node.index not in constants]
    if not sums:
        return 0
    may_join = joinable(part, constants, views_of_references(part, constants))

    def is_alike(one: PartNode, other: PartNode) -> bool:
        """Whether both are slices of arrays of one shape, as far as can be known, by one set of masks."""
        shared = range(_SHARED[one.op])
        same = all(_are_same(constants, one.inputs[at], other.inputs[at]) for at in shared)
        return one.op == other.op and one.attrs == other.attrs and same

    joined = 0
    for total in sums:
        read = [part.nodes[source] for source, _ in total.inputs]
        found = [node for node in read if node.op in _SHARED and not any(node.deref) and may_join(node, total)]
        slices = [node for node in found if is_alike(node, found[0])]
        if len(slices) > 1:
            _join(total, slices)
            joined += len(slices)
    return joined


def _are_same(constants: Constants, one: tuple[int, int], other: tuple[int, int]) -> bool:
    if one == other:
        return True
    if one[0] not in constants or other[0] not in constants:
        return False
    return bool(np.array_equal(constants[one[0]][one[1]], constants[other[0]][other[1]]))


def _join(total: PartNode, slices: list[PartNode]) -> None:
    first, shared = slices[0], _SHARED[slices[0].op]
    inputs = [*first.inputs[:shared], *(edge for node in slices for edge in node.inputs[shared:])]
    types = (*first.input_types[:shared], *(dtype for node in slices for dtype in node.input_types[shared:]))
    gone = {node.index for node in slices}
    rest = [position for position, (source, _) in enumerate(total.inputs) if source not in gone]
    if rest:
        # the last of them has all inputs before it
        joint = max(slices, key=lambda node: node.index)
        total.inputs = [*(total.inputs[position] for position in rest), (joint.index, 0)]
        total.deref = [*(total.deref[position] for position in rest), False]
        total.input_types = (*(total.input_types[position] for position in rest), joint.output_types[0])
        slices = [node for node in slices if node is not joint]
    else:
        joint = total
        joint.op, joint.attrs = first.op, first.attrs
    joint.inputs, joint.input_types, joint.deref = inputs, types, [False] * len(inputs)
    absorb(joint, slices)
