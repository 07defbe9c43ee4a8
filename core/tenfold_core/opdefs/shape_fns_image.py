"""Shape functions of image files, boxes, glimpses and scaling; those of resizing stand beside pools in shape_fns_nn.py.

Follows TensorFlow 1.15's image_ops.cc. What is not known stays unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.opdefs.shape_fns import _exactly, _merge, _pair, _scalar_constant
from tenfold_core.opdefs.shape_fns_nn import decoded, resize
from tenfold_core.tensor_shape import TensorShape, from_dims

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]

_SCALAR = TensorShape([])


def decoded_crop(c: ShapeContext) -> Shapes:
    """A JPEG file's window (y, x, height, width)."""
    channels = decoded(c)[0].as_list()[2]
    window = c.constant(1)
    # A negative size fails the step, which knows the picture.
    known = window is not None and window.shape == (4,) and min(window[2:]) >= 0
    sizes = [int(each) for each in window[2:]] if known else [None, None]  # type: ignore[index]
    return [from_dims([*sizes, channels])]


def decoded_any(c: ShapeContext) -> Shapes:
    """A file of any format: an animation may have a dimension more."""
    shape = decoded(c)[0]
    return [TensorShape(None) if c.attrs.get("expand_animations", True) else shape]


def encoded_image(c: ShapeContext) -> Shapes:
    """One image [height, width, channels] and a scalar → a string."""
    c.input(0).with_rank(3)
    c.input(1).with_rank(0)
    return [_SCALAR]


def drawn(c: ShapeContext) -> Shapes:
    """Images [N, H, W, C] with boxes [N, count, 4] drawn; colours [n, channels] may be given."""
    images = c.input(0).with_rank(4)
    boxes = c.input(1).with_rank(3)
    if boxes.ndims is not None:
        _exactly(boxes.as_list()[2], 4, ": a box has 4 coordinates")
    if len(c.inputs) > 2:
        c.input(2).with_rank(2)
    return [images]


def _offsets(c: ShapeContext) -> int | None:
    """How many images the offsets [N, 2] are for. Raises ValueError for another shape."""
    rows = c.input(2).with_rank(2).as_list()
    _merge(rows[1], 2, ": an offset has two coordinates")
    return rows[0]


def glimpse(c: ShapeContext) -> Shapes:
    images = c.input(0).with_rank(4).as_list()
    batch = _merge(images[0], _offsets(c), ": as many offsets as images")
    height, width = _pair(c, 1)
    return [from_dims([batch, height, width, images[3]])]


def scaled(c: ShapeContext) -> Shapes:
    """images [N, H, W, C], size [2], scale [2] and translation [2] → [N, h, w, C]."""
    for i in (2, 3):
        _exactly(c.input(i).with_rank(1).as_list()[0], 2, ": scale and translation have two elements")
    return resize(c)


def sampled_box(c: ShapeContext) -> Shapes:
    _exactly(c.input(0).with_rank(1).as_list()[0], 3, ": image_size is height, width, channels")
    _exactly(c.input(1).with_rank(3).as_list()[2], 4, ": a box has 4 coordinates")
    if len(c.inputs) > 2:
        c.input(2).with_rank(0)
    return [TensorShape([3]), TensorShape([3]), TensorShape([1, 1, 4])]


def _check_boxes(c: ShapeContext) -> None:
    """Boxes [n, 4] and scores [n]. Raises ValueError for another shape."""
    boxes, scores = c.input(0).with_rank(2).as_list(), c.input(1).with_rank(1).as_list()
    _merge(boxes[0], scores[0], ": as many scores as boxes")
    _exactly(boxes[1], 4, ": a box has 4 coordinates")


def _check_scalars(c: ShapeContext, first: int, last: int) -> None:
    """Raises ValueError where one of these inputs is not a scalar."""
    for i in range(first, last + 1):
        c.input(i).with_rank(0)


def _chosen(c: ShapeContext) -> TensorShape:
    """How many boxes are chosen: known where the output is padded."""
    size = _scalar_constant(c, 2) if c.attrs.get("pad_to_max_output_size") else None
    if size is not None and size < 0:
        raise ValueError(f"max_output_size must be >= 0, got {size}")
    return TensorShape([size])


def chosen_boxes(c: ShapeContext) -> Shapes:
    _check_boxes(c)  # ranks of what follows: input_ranks.py
    return [TensorShape([None])]


def padded_boxes(c: ShapeContext) -> Shapes:
    _check_boxes(c)
    _check_scalars(c, 2, 4)
    return [_chosen(c), _SCALAR]


def scored_boxes(c: ShapeContext) -> Shapes:
    _check_boxes(c)
    _check_scalars(c, 2, 5)
    return [_chosen(c), _chosen(c), _SCALAR]


def overlapping_boxes(c: ShapeContext) -> Shapes:
    """Overlaps [n, n] and scores [n]."""
    overlaps, scores = c.input(0).with_rank(2).as_list(), c.input(1).with_rank(1).as_list()
    size = _merge(overlaps[0], overlaps[1], ": overlaps must be square")
    _merge(size, scores[0], ": as many scores as boxes")
    _check_scalars(c, 2, 4)
    return [TensorShape([None])]


def combined_boxes(c: ShapeContext) -> Shapes:
    """Boxes [N, n, 1 or classes, 4] and scores [N, n, classes] → boxes, scores, classes, and how many."""
    boxes, scores = c.input(0).with_rank(4).as_list(), c.input(1).with_rank(3).as_list()
    _check_scalars(c, 2, 5)
    batch = _merge(boxes[0], scores[0], ": as many scores as boxes")
    _exactly(boxes[3], 4, ": a box has 4 coordinates")
    if None not in (boxes[2], scores[2]) and boxes[2] not in (1, scores[2]):
        raise ValueError("third dimension of boxes must be either 1 or equal to the third dimension of scores")
    size = _scalar_constant(c, 3)
    if size is not None and size <= 0:
        raise ValueError("max_total_size should be > 0 ")
    if c.attrs.get("pad_per_class"):
        per_class = _scalar_constant(c, 2)
        known = size is not None and per_class is not None and scores[2] is not None
        size = min(size, per_class * scores[2]) if known else None  # type: ignore[operator, type-var]
    return [
        from_dims([batch, size, 4]),
        from_dims([batch, size]),
        from_dims([batch, size]),
        from_dims([batch]),
    ]
