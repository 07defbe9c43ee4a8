"""Gradient rows of blocks of space, mirrored borders and patches of images. Follows TensorFlow's ops/array_grad.py.

Each rule is the inverse op. Definitions in tenfold_core/opdefs/array.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold.ops.linalg import eye

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("BatchToSpaceND")
def _batch_to_space(op: Operation, g: Tensor) -> Any:
    return apply_op("SpaceToBatchND", input=g, block_shape=op.inputs[1], paddings=op.inputs[2]), None, None


@gradient("SpaceToBatchND")
def _space_to_batch(op: Operation, g: Tensor) -> Any:
    return apply_op("BatchToSpaceND", input=g, block_shape=op.inputs[1], crops=op.inputs[2]), None, None


@gradient("BatchToSpace")
def _batch_to_space_v1(op: Operation, g: Tensor) -> Any:
    return apply_op("SpaceToBatch", input=g, paddings=op.inputs[1], block_size=op.get_attr("block_size")), None


@gradient("SpaceToBatch")
def _space_to_batch_v1(op: Operation, g: Tensor) -> Any:
    return apply_op("BatchToSpace", input=g, crops=op.inputs[1], block_size=op.get_attr("block_size")), None


@gradient("SpaceToDepth")
def _space_to_depth(op: Operation, g: Tensor) -> Any:
    return apply_op(
        "DepthToSpace", input=g, block_size=op.get_attr("block_size"), data_format=op.get_attr("data_format")
    )


@gradient("DepthToSpace")
def _depth_to_space(op: Operation, g: Tensor) -> Any:
    return apply_op(
        "SpaceToDepth", input=g, block_size=op.get_attr("block_size"), data_format=op.get_attr("data_format")
    )


@gradient("MirrorPad")
def _mirror_pad(op: Operation, g: Tensor) -> Any:
    return apply_op("MirrorPadGrad", input=g, paddings=op.inputs[1], mode=op.get_attr("mode")), None


@gradient("MirrorPadGrad")
def _mirror_pad_grad(op: Operation, g: Tensor) -> Any:
    return apply_op("MirrorPad", input=g, paddings=op.inputs[1], mode=op.get_attr("mode")), None


@gradient("ExtractImagePatches")
def _extract_image_patches(op: Operation, g: Tensor) -> Any:
    return _of_patches(op, g, "Conv2DBackpropInput", dilations=op.get_attr("rates"))


@gradient("ExtractVolumePatches")
def _extract_volume_patches(op: Operation, g: Tensor) -> Any:
    return _of_patches(op, g, "Conv3DBackpropInputV2")


def _of_patches(op: Operation, g: Tensor, back: str, **others: Any) -> Any:
    # Taking patches is a convolution whose filters pick one element each; this is its gradient.
    image, dtype = op.inputs[0], g.dtype.base_dtype
    window = op.get_attr("ksizes")[1:-1]
    known = image.get_shape()
    channels = known.as_list()[-1] if known.ndims is not None else None
    picks: Any
    if channels is not None:
        count = math.prod(window) * channels
        picks = array_ops.constant(np.eye(count).reshape(*window, channels, count), dtype)
    else:
        depth = array_ops.shape(image)[-1]
        size = math.prod(window) * depth
        picks = array_ops.reshape(eye(size, dtype=dtype), array_ops.stack([*window, depth, size]))
    return apply_op(
        back,
        input_sizes=array_ops.shape(image),
        filter=picks,
        out_backprop=g,
        strides=op.get_attr("strides"),
        padding=op.get_attr("padding"),
        **others,
    )
