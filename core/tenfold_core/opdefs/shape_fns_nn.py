"""Shape functions of convolutions, pools, batch normalisation and images; those that families share: shape_fns.py.

Sizes along an axis follow kernel_shape_util.cc. What is not known stays unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core.opdefs.shape_fns import (
    _UNKNOWN,
    _dims,
    _each_axis,
    _merge,
    _pair,
    _size_constant,
    _vector_constant,
    always,
    attr_shape,
    broadcast_shapes,
    first_input,
    scalar,
    unchanged,
)
from tenfold_core.opdefs.shape_fns_math import matmul
from tenfold_core.opdefs.shape_fns_reshape import transpose
from tenfold_core.tensor_shape import TensorShape, from_dims, unknown_shape

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]

__all__ = ["always", "attr_shape", "first_input", "matmul", "scalar", "transpose", "unchanged"]


def _along(size: int | None, window: int | None, stride: int, padding: bytes, dilation: int, extra: int) -> int | None:
    """How many windows there are along an axis.

    Raises ValueError for a stride that leads nowhere, and where not even one window fits by a wide margin.
    """
    if stride <= 0:
        raise ValueError(f"Stride must be > 0, but got {stride}")
    if size is None:
        return None
    if padding == b"SAME":
        return -(-size // stride)
    if window is None:
        return None
    reach = (window - 1) * dilation + 1
    out = (size + extra - reach + stride) // stride
    if out < 0:
        raise ValueError(
            f"Negative dimension size caused by subtracting {reach} from {size + extra}: the window is larger than the image"
        )
    return out


def _axes(c: ShapeContext, rank: int) -> tuple[range, int]:
    """The spatial axes and the channel axis."""
    first = c.attrs.get("data_format", b"N..C").startswith(b"NC")
    return (range(2, rank), 1) if first else (range(1, rank - 1), rank - 1)


def _extras(c: ShapeContext, rank: int) -> list[int]:
    """Explicit padding, before and after, an axis. Raises ValueError where it isn't asked for, and for wrong numbers."""
    explicit = c.attrs.get("explicit_paddings") or []
    if c.attrs["padding"] != b"EXPLICIT":
        if explicit:
            raise ValueError("explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT")
        return [0] * rank
    if len(explicit) != 2 * rank:
        raise ValueError(f"explicit_paddings attribute must contain {2 * rank} values, but got: {len(explicit)}")
    if min(explicit) < 0:
        raise ValueError(f"All elements of explicit_paddings must be nonnegative, got {list(explicit)}")
    spatial, _ = _axes(c, rank)
    if any(explicit[2 * i] or explicit[2 * i + 1] for i in range(rank) if i not in spatial):
        raise ValueError(f"explicit_paddings of the batch or of channels must be 0, got {list(explicit)}")
    return [explicit[2 * i] + explicit[2 * i + 1] for i in range(rank)]


def _convolution(c: ShapeContext, rank: int) -> tuple[list[Any], list[Any], int]:
    image, kernel = c.input(0).with_rank(rank).as_list(), c.input(1).with_rank(rank).as_list()
    spatial, channels = _axes(c, rank)
    strides, dilations = _each_axis(c, "strides", rank), _each_axis(c, "dilations", rank)
    extras, out = _extras(c, rank), list(image)
    for i, axis in enumerate(spatial):
        if dilations[axis] < 1:
            raise ValueError(f"Dilation rate must be >= 1, but got {dilations[axis]}")
        out[axis] = _along(image[axis], kernel[i], strides[axis], c.attrs["padding"], dilations[axis], extras[axis])
    return out, kernel, channels


def _convolved(c: ShapeContext, rank: int) -> Shapes:
    out, kernel, channels = _convolution(c, rank)
    depth, per_group = out[channels], kernel[-2]
    if depth is not None and per_group is not None and depth % max(per_group, 1):
        raise ValueError(
            f"Depth of input ({depth}) is not a multiple of input depth of filter ({per_group}) for '{c.op_def.name}'"
        )
    if depth and per_group and kernel[-1] is not None and kernel[-1] % (depth // per_group):
        raise ValueError(
            f"Depth of output ({kernel[-1]}) is not a multiple of the number of groups ({depth // per_group}) for "
            f"'{c.op_def.name}'"
        )
    out[channels] = kernel[-1]
    return [from_dims(out)]


def conv2d(c: ShapeContext) -> Shapes:
    return _convolved(c, 4)


def fused_conv2d(c: ShapeContext) -> Shapes:
    return _convolved(c, 4) if c.attrs.get("filter_format", b"HWIO") == b"HWIO" else [unknown_shape(4)]


def padded_conv2d(c: ShapeContext) -> Shapes:
    """Images, the size [2] that they are brought to or not, edges [4, 2], and the filter of a convolution."""
    image, kernel = c.input(0).with_rank(4).as_list(), c.input(len(c.op_def.inputs) - 1).with_rank(4).as_list()
    paddings, strides = c.constant(len(c.op_def.inputs) - 2), _each_axis(c, "strides", 4)
    if len(c.op_def.inputs) == 4:
        resized = c.constant(1)
        image[1:3] = (None, None) if resized is None or resized.shape != (2,) else resized.tolist()
    out = [image[0], None, None, kernel[3]]
    for i in (1, 2):
        size = image[i]
        if paddings is not None and paddings.shape == (4, 2) and size is not None:
            padded = size + int(paddings[i].sum())
            out[i] = _along(padded, kernel[i - 1], strides[i], c.attrs["padding"], 1, 0)
    return [from_dims(out)]


def conv3d(c: ShapeContext) -> Shapes:
    return _convolved(c, 5)


def depthwise(c: ShapeContext) -> Shapes:
    out, kernel, channels = _convolution(c, 4)
    depth = out[channels] if kernel[2] is None else kernel[2]
    out[channels] = None if depth is None or kernel[3] is None else depth * kernel[3]
    return [from_dims(out)]


def _rank(c: ShapeContext) -> int:
    return 5 if "3D" in c.op_def.name else 4


def of_sizes(c: ShapeContext) -> Shapes:
    """The shape that input 0 holds: of the gradient of an input."""
    return [c.partial(0).with_rank(_rank(c))]


def of_filter_sizes(c: ShapeContext) -> Shapes:
    return [c.partial(1).with_rank(_rank(c))]


def image(c: ShapeContext) -> Shapes:
    """As the first input, a batch of images or of volumes."""
    return [c.input(0).with_rank(_rank(c))]


def second_image(c: ShapeContext) -> Shapes:
    return [c.input(1).with_rank(_rank(c))]


def decoded(c: ShapeContext) -> Shapes:
    """An image file: height and width are in it, and so are the channels unless the attribute says them."""
    channels = int(c.attrs["channels"])
    if channels < 0:
        raise ValueError(f"channels must be non-negative, got {channels}")
    return [TensorShape([None, None, channels or None])]


def encoded(c: ShapeContext) -> Shapes:
    """A string for each image [.., height, width, channels]."""
    shape = c.input(0).with_rank_at_least(3)
    return [_UNKNOWN if shape.ndims is None else shape[:-3]]


def colours(c: ShapeContext) -> Shapes:
    """Three channels, in the last axis."""
    shape = c.input(0).with_rank_at_least(1)
    return [_UNKNOWN if shape.ndims is None else shape[:-1].concatenate(shape[-1:].merge_with([3]))]


def resized_from(c: ShapeContext) -> Shapes:
    """The gradient of nearest neighbours: the size [2] of the images is the second input."""
    images, (height, width) = c.input(0).with_rank(4).as_list(), _pair(c, 1)
    return [from_dims([images[0], height, width, images[3]])]


def dilation(c: ShapeContext) -> Shapes:
    """Images [N, H, W, C] and a filter [h, w, C]."""
    images, window = c.input(0).with_rank(4).as_list(), c.input(1).with_rank(3).as_list()
    strides, rates = _each_axis(c, "strides", 4), _each_axis(c, "rates", 4)
    depth = images[3] if window[2] is None else window[2]
    if None in (*images[1:3], *window[:2]):
        return [from_dims([images[0], None, None, depth])]
    sizes = (_along(images[i], window[i - 1], strides[i], c.attrs["padding"], rates[i], 0) for i in (1, 2))
    return [from_dims([images[0], *sizes, depth])]


def of_image_sizes(c: ShapeContext) -> Shapes:
    return [c.partial(3).with_rank(4)]


def of_input_sizes(c: ShapeContext) -> Shapes:
    """As `of_sizes`, where two elements may stand for the spatial sizes alone."""
    shape = c.partial(0)
    if shape.ndims != 2:
        return [shape.with_rank(4)]
    sizes: list[int | None] = [None] * 4
    for axis, size in zip(_axes(c, 4)[0], shape.as_list(), strict=True):
        sizes[axis] = size
    return [from_dims(sizes)]


def _pooled(c: ShapeContext, rank: int, sizes: Any, strides: Any) -> TensorShape:
    """Images stay as many; over channels goes only MaxPool of images."""
    image, extras = c.input(0).with_rank(rank).as_list(), _extras(c, rank)
    spatial, channels = _axes(c, rank)
    axes = (*spatial, channels) if rank == 4 and "Max" in c.op_def.name else spatial
    for i in axes:
        image[i] = _along(image[i], sizes[i], strides[i], c.attrs["padding"], 1, extras[i])
    return from_dims(image)


def pool(c: ShapeContext) -> Shapes:
    if c.attrs.get("data_format") == b"NCHW_VECT_C":
        return [_UNKNOWN] * c.output_count
    rank = _rank(c)
    return [_pooled(c, rank, _each_axis(c, "ksize", rank), _each_axis(c, "strides", rank))] * c.output_count


def pool_v2(c: ShapeContext) -> Shapes:
    """The window's sizes and strides are the last two inputs."""
    count = len(c.inputs)
    sizes, strides = (_vector_constant(c, count - back, 4) for back in (2, 1))
    if sizes is None or strides is None or c.attrs.get("data_format") == b"NCHW_VECT_C":
        return [_UNKNOWN]
    return [_pooled(c, 4, sizes, strides)]


def second_input(c: ShapeContext) -> Shapes:
    return [c.input(1)]


def third_input(c: ShapeContext) -> Shapes:
    return [c.input(2)]


def _dim(vector: TensorShape) -> int | None:
    return vector.with_rank(1).as_list()[0]


def batch_norm(c: ShapeContext) -> Shapes:
    """y like x; a vector a channel for the rest; the third reserve space is not known."""
    x = c.input(0).with_rank(5 if c.attrs.get("data_format") in (b"NDHWC", b"NCDHW") else 4)
    dims, place = x.as_list(), _axes(c, len(x))[1]
    channels = dims[place]
    for vector in c.inputs[1 : 3 if c.attrs["is_training"] else 5]:
        # Any of scale and offset may say how many there are, and mean and variance where they are not empty.
        channels = _merge(channels, _dim(vector), f" for a channel of {c.op_def.name}")
    dims[place] = channels
    x = TensorShape(dims)
    vectors = [TensorShape([channels])] * min(c.output_count - 1, 4)
    return [x, *vectors, *[_UNKNOWN] * (c.output_count - 1 - len(vectors))]


def batch_norm_grad(c: ShapeContext) -> Shapes:
    x = c.input(0).with_rank(5 if c.attrs.get("data_format") in (b"NDHWC", b"NCDHW") else 4)
    dims, place = x.merge_with(c.input(1)).as_list(), _axes(c, len(x))[1]
    for vector in c.inputs[2:5]:
        dims[place] = _merge(dims[place], _dim(vector), f" for a channel of {c.op_def.name}")
    channels = TensorShape([dims[place]])
    return [from_dims(dims), channels, channels, TensorShape([0]), TensorShape([0])]


def global_batch_norm(c: ShapeContext) -> Shapes:
    """x [N, H, W, C] and vectors [C] → as x."""
    return [_channels_last(c, c.input(0).with_rank(4), range(1, 5))[0]]


def global_batch_norm_grad(c: ShapeContext) -> Shapes:
    """As x, and four vectors [C]."""
    x, vector = _channels_last(c, c.input(0).with_rank(4).merge_with(c.input(4)), range(1, 4))
    return [x, *[vector] * 4]


def _channels_last(c: ShapeContext, x: TensorShape, vectors: range) -> tuple[TensorShape, TensorShape]:
    """`x` and a vector of its channels, each of which any of the inputs `vectors` may tell. Raises ValueError."""
    vector = TensorShape(x.as_list()[-1:])
    for index in vectors:
        vector = vector.merge_with(c.input(index))
    return TensorShape([*x.as_list()[:-1], *vector.as_list()]), vector


def nothing(c: ShapeContext) -> Shapes:
    return []


def skipgram(c: ShapeContext) -> Shapes:
    """The vocabulary's words and counts, three numbers, and a batch of examples and labels."""
    words, batch = TensorShape([None]), TensorShape([int(c.attrs["batch_size"])])
    return [words, words, *scalar(c) * 3, batch, batch]


def resize(c: ShapeContext) -> Shapes:
    """images [N, H, W, C] and size [2] → [N, h, w, C]."""
    image, (height, width) = c.input(0).with_rank(4).as_list(), _pair(c, 1)
    return [from_dims([image[0], height, width, image[3]])]


def crop_and_resize(c: ShapeContext) -> Shapes:
    image, boxes = c.input(0).with_rank(4).as_list(), c.input(1).with_rank(2).as_list()
    height, width = _pair(c, 3)
    count = _merge(boxes[0], c.input(2).with_rank(1).as_list()[0], ": as many boxes as numbers of images")
    return [from_dims([count, height, width, image[3]])]


def accidental_hits(c: ShapeContext) -> Shapes:
    return [unknown_shape(1)] * 3


def nth_element(c: ShapeContext) -> Shapes:
    if c.input(1).ndims not in (None, 0):
        raise ValueError(f"Input must be scalar but has rank {c.input(1).ndims}: n of {c.op_def.name}")
    n, dims = _size_constant(c, 1), _dims(c.input(0).with_rank_at_least(1))
    if dims is None:
        return [_UNKNOWN]
    if n is not None and dims[-1] is not None and dims[-1] <= n:
        raise ValueError(f"Input must have last dimension > n = {n} but is {dims[-1]}")
    return [from_dims(dims[:-1])]


def _channels(c: ShapeContext, shape: TensorShape) -> int | None:
    dims = _dims(shape)
    if not dims:
        return None
    return dims[1] if c.attrs.get("data_format", b"NHWC") == b"NCHW" else dims[-1]


def bias_add(c: ShapeContext) -> Shapes:
    """As the value, whose channels are as many as the bias has."""
    shape, bias = c.input(0), c.input(1).with_rank(1)
    if shape.ndims is None:
        return [_UNKNOWN]
    first = c.attrs.get("data_format", b"NHWC") == b"NCHW"
    shape = shape.with_rank_at_least(3 if first else 2)
    at = 1 if first else len(shape) - 1
    return [shape[:at].concatenate(shape[at : at + 1].merge_with(bias)).concatenate(shape[at + 1 :])]


def bias_add_grad(c: ShapeContext) -> Shapes:
    return [TensorShape([_channels(c, c.input(0))])]


def softmax_cross_entropy(c: ShapeContext) -> Shapes:
    """Of one shape; where they can't be, they are broadcast."""
    logits, labels = c.input(0), c.input(1)
    if logits.is_compatible_with(labels):
        both = logits.merge_with(labels).with_rank(2)
    else:
        both = broadcast_shapes(logits, labels).with_rank(2)
    return [both[:1], both]


def sparse_softmax_cross_entropy(c: ShapeContext) -> Shapes:
    features = c.input(0).with_rank(2).as_list()
    labels = c.input(1).with_rank(1).as_list()
    rows = _merge(features[0], labels[0], f" for logits {c.input(0)} and labels {c.input(1)}")
    return [TensorShape([rows]), TensorShape([rows, features[1]])]


def in_top_k(c: ShapeContext) -> Shapes:
    predictions, targets = c.input(0).with_rank(2), c.input(1).with_rank(1)
    return [predictions[:1].merge_with(targets)]


def gather_tree(c: ShapeContext) -> Shapes:
    out = c.input(0).with_rank(3).merge_with(c.input(1).with_rank(3))
    rows = c.input(2).with_rank(1)
    c.input(3).with_rank(0)
    return [out.merge_with(from_dims([None, *rows.as_list(), None]))]


def top_k(c: ShapeContext) -> Shapes:
    shape = c.input(0).with_rank_at_least(1)
    k = c.attrs.get("k") if "k" in c.attrs else _size_constant(c, 1)
    last = shape.as_list()[-1] if shape.ndims is not None else None
    if k is not None and last is not None and last < k:
        raise ValueError(f"input must have last dimension >= k = {k} but is {last}")
    out = _UNKNOWN if shape.ndims is None else shape[:-1].concatenate([k])
    return [out, out]
