"""Blocks of space moved to the batch or to the channels and back, and patches of images.

Functions that are exactly one operation are in ops/generated_ops.py. Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array
from tenfold.ops.array import _alias
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def batch_to_space(
    input: Any, crops: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """Moves blocks of the batch dimension into height and width, and crops; `block_size` is a number."""
    blocks = _alias("block_shape", block_shape, "block_size", block_size)
    if np.ndim(blocks) == 0:
        return tensor_op("BatchToSpace", name, input=input, crops=crops, block_size=int(blocks))
    return tensor_op("BatchToSpaceND", name, input=input, block_shape=blocks, crops=crops)


def space_to_batch(
    input: Any, paddings: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """Pads, and moves blocks of height and width into the batch dimension."""
    blocks = _alias("block_shape", block_shape, "block_size", block_size)
    both = [blocks, blocks] if np.ndim(blocks) == 0 else blocks
    return tensor_op("SpaceToBatchND", name, input=input, paddings=paddings, block_shape=both)


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """`(paddings, crops)` that make the blocks of `space_to_batch_nd` fit; both [n, 2]."""
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        sizes = convert_to_tensor(input_shape, dtype=dtypes.int32, name="input_shape")
        blocks = convert_to_tensor(block_shape, dtype=dtypes.int32, name="block_shape")
        count = blocks.shape.with_rank(1).as_list()[0]
        if count is None:
            raise ValueError(f"block_shape must have a known length, got shape {blocks.shape}")
        if base_paddings is None:
            base_paddings = np.zeros((count, 2), np.int32)
        base = convert_to_tensor(base_paddings, dtype=dtypes.int32, name="base_paddings")
        known = [known_value(part) for part in (sizes, blocks, base)]
        if all(part is not None for part in known):
            size, block, pads = (np.asarray(part) for part in known)
            start = pads[:, 0]
            extra = (-(size + start + pads[:, 1])) % block
            return (
                array.constant(np.stack([start, pads[:, 1] + extra], 1).astype(np.int32), name="paddings"),
                array.constant(np.stack([0 * extra, extra], 1).astype(np.int32), name="crops"),
            )
        start_t, end_t = base[:, 0], base[:, 1]
        full = sizes + start_t + end_t
        extra_t = (blocks - full % blocks) % blocks
        paddings = array.stack([start_t, end_t + extra_t], 1, name="paddings")
        crops = array.stack([array.zeros_like(extra_t), extra_t], 1, name="crops")
        return paddings, crops


def space_to_depth(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Moves blocks of height and width into the channels."""
    return tensor_op("SpaceToDepth", name, input=input, block_size=block_size, data_format=data_format)


def depth_to_space(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Moves channels into blocks of height and width."""
    return tensor_op("DepthToSpace", name, input=input, block_size=block_size, data_format=data_format)


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """Patches of images, each laid out in the channels of one position."""
    return tensor_op(
        "ExtractImagePatches",
        name,
        images=images,
        ksizes=_alias("ksizes", ksizes, "sizes", sizes),
        strides=strides,
        rates=rates,
        padding=padding,
    )


def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Tensor:
    """`extract_image_patches` under its name in `tf.image`."""
    return extract_image_patches(images, sizes, strides, rates, padding, name)
