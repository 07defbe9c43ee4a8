"""Dimension numbers and sizes of one data format in another: DataFormatDimMap, DataFormatVecPermute.

Outputs are fresh. Follows data_format_ops.cc.
"""

from __future__ import annotations

import numpy as np

from tenfold_kernels.arrays import Array, as_array, invalid, output_type, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import INDEX


def _formats(node: KernelNode) -> tuple[str, str]:
    source, target = text_attr(node, "src_format", "NHWC"), text_attr(node, "dst_format", "NCHW")
    if sorted(source) != sorted(target):
        raise invalid(f"Destination and source formats must be permutations of each other: {source} and {target}")
    return source, target


@kernel("DataFormatDimMap", T=INDEX)
def build_data_format_dim_map(node: KernelNode) -> Compute:
    """Each dimension number of the source layout as one of the target's; negative ones count from the end."""
    source, target = _formats(node)
    table = np.array([target.index(letter) for letter in source], output_type(node))

    def compute(x: Array) -> Array:
        if x.size and (x.min() < -len(table) or x.max() >= len(table)):
            raise invalid(
                f"Each dimension must lie in [-{len(table)}, {len(table)}), got {x.reshape(-1)[:10].tolist()}"
            )
        return as_array(table[x])

    return compute


@kernel("DataFormatVecPermute", T=INDEX)
def build_data_format_vec_permute(node: KernelNode) -> Compute:
    """A vector of a value a dimension, or a matrix of a pair a dimension, in the target layout's order.

    Fewer values than dimensions are those of the spatial ones.
    """
    source, target = _formats(node)

    def compute(x: Array) -> Array:
        if x.ndim not in (1, 2):
            raise invalid(f"input must be a vector or 2D tensor, but got shape {shape_text(x.shape)}")
        if x.ndim == 2 and x.shape[1] != 2:
            raise invalid(f"Second dimension of 2D input must be of size 2, but got shape {shape_text(x.shape)}")
        letters, wanted = source, target
        if len(x) == len(source) - 2:
            letters = "".join(d for d in source if d not in "NC")
            wanted = "".join(d for d in target if d not in "NC")
        if len(x) != len(letters):
            raise invalid(
                f"1D input must be of size {len(source) - 2} or {len(source)}, but got shape {shape_text(x.shape)}"
            )
        return x[[letters.index(d) for d in wanted]]

    return compute
