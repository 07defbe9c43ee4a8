"""Boxes (y1, x1, y2, x2 as fractions of an image): drawn on images, and drawn by lot. Outputs are fresh.

Follows draw_bounding_box_op.cc and sample_distorted_bounding_box_op.cc: the same boxes from the same seeds. Which of
many boxes to keep: image_suppression.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, invalid, output_type, shape_text
from tenfold_kernels.cpu.random import blocks, generator_of
from tenfold_kernels.cpu.random_stateless import position_of_seed
from tenfold_kernels.philox import Philox, to_float
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia.
_COLOURS = (
    (1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1),
    (0.5, 0.5, 0, 1), (0.5, 0, 0, 1), (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1),
)  # fmt: skip


@kernel("DrawBoundingBoxes", "DrawBoundingBoxesV2", T=FLOATING)
def build_draw_bounding_boxes(node: KernelNode) -> Compute:
    """Images [N, H, W, 1, 3 or 4] with the outlines of boxes [N, boxes, 4]; the colours [n, 4] go round."""

    def compute(images: Array, boxes: Array, *given: Array) -> Array:
        if images.ndim != 4:
            raise invalid("The rank of the images should be 4")
        if boxes.ndim != 3 or boxes.shape[2] != 4:
            raise invalid(f"The rank of the boxes tensor should be 3, of 4 coordinates, got {shape_text(boxes.shape)}")
        if len(images) != len(boxes):
            raise invalid("The batch sizes should be the same")
        _, height, width, depth = images.shape
        if depth not in (1, 3, 4):
            raise invalid("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)")
        table = _table(depth, *given)
        out = images.copy()
        scales = np.array([height - 1, width - 1] * 2, np.float32)
        # Towards zero, as C casts; what is not a number is outside.
        places = np.trunc(np.nan_to_num(boxes.astype(np.float32, copy=False) * scales, nan=-1))
        places = places.clip(-1, max(height, width))
        for image, row in zip(out, places.astype(np.int64).tolist(), strict=True):
            for number, box in enumerate(row):
                _outline(image, box, table[number % len(table)])
        return out

    return compute


def _table(depth: int, *given: Array) -> Array:
    """The colours [n, depth]."""
    table = np.array(_COLOURS, np.float32)
    if depth == 1:
        table[:, 0] = 1
    if given:
        if given[0].ndim != 2:
            raise invalid(f"colors must be a 2-D matrix{shape_text(given[0].shape)}")
        if given[0].shape[1] < depth:
            raise invalid(f"colors must have equal or more channels than the image{shape_text(given[0].shape)}")
        if given[0].size:
            table = given[0]
    return table[:, :depth]


def _outline(image: Array, box: list[int], colour: Array) -> None:
    """Draws one box, unless it is turned round or outside altogether."""
    top, left, bottom, right = box
    height, width = image.shape[:2]
    if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows = slice(max(top, 0), min(bottom, height - 1) + 1)
    columns = slice(max(left, 0), min(right, width - 1) + 1)
    for row in (top, bottom):
        if 0 <= row < height:
            image[row, columns] = colour
    for column in (left, right):
        if 0 <= column < width:
            image[rows, column] = colour


class _Words:
    """Random words one after the other, as TensorFlow's SimplePhilox takes them."""

    def __init__(self, position: Philox) -> None:
        self._words = self._endless(position)

    @staticmethod
    def _endless(position: Philox) -> Iterator[Any]:
        while True:
            yield from blocks(position, 16).reshape(-1)
            position = Philox(position.key, (position.counter + 16) % (1 << 128))

    def fraction(self) -> np.float32:
        """In [0, 1)."""
        return np.float32(to_float(np.asarray(next(self._words))))

    def below(self, count: int) -> int:
        """Of 0 to count − 1 each as often as the others: words that would favour some are passed over."""
        if count & (count - 1) == 0:
            return int(next(self._words)) & (count - 1)
        least = ((1 << 32) - 1) % count + 1
        while (word := int(next(self._words))) < least:
            pass
        return word % count


#: Attempts at a box that take some seconds. What they have not found is not there, or nearly so.
_MOST_ATTEMPTS = 1 << 17
#: (top, left, bottom, right) in pixels.
_Box = tuple[int, int, int, int]


def _area(box: _Box) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def _shared(one: _Box, other: _Box) -> int:
    top, left, bottom, right = (*map(max, one[:2], other[:2]), *map(min, one[2:], other[2:]))
    return max(bottom - top, 0) * max(right - left, 0)


def _whole(x: Any) -> int:
    """The nearest whole number, of two the even one."""
    return int(np.rint(x))


def _random_crop(height: int, width: int, areas: Any, ratio: np.float32, words: _Words) -> _Box | None:
    """A box of about this ratio of width to height, whose area is within `areas` (fractions); None if there is none."""
    least, most = (np.float32(np.float32(each * np.float32(width)) * np.float32(height)) for each in areas)
    rows, most_rows = (_whole(np.sqrt(each / ratio)) for each in (least, most))
    if _whole(np.float32(most_rows) * ratio) > width:
        most_rows = int((width + 0.5 - float(np.float32(1e-7))) / float(ratio))
        if _whole(np.float32(most_rows) * ratio) > width:
            most_rows -= 1
    most_rows = min(most_rows, height)
    rows = min(rows, most_rows)
    if rows < most_rows:
        rows += words.below(most_rows - rows + 1)
    columns = _whole(np.float32(rows) * ratio)
    # Rounding may have led out of the bounds; one row more, or less, leads back.
    if np.float32(columns * rows) < least:
        rows += 1
        columns = _whole(np.float32(rows) * ratio)
    if np.float32(columns * rows) > most:
        rows -= 1
        columns = _whole(np.float32(rows) * ratio)
    area = np.float32(columns * rows)
    if not 0 < least <= area <= most or columns > width or rows > height:
        return None
    top = words.below(height - rows) if rows < height else 0
    left = words.below(width - columns) if columns < width else 0
    return top, left, top + rows, left + columns


def _covers(crop: _Box, objects: list[_Box], least: np.float32) -> bool:
    """Whether so much of one of the objects is within the crop; what has no pixel counts for nothing."""
    seen = (np.float32(_shared(crop, each)) / np.float32(_area(each)) for each in objects if _area(each) >= 1)
    return _area(crop) >= 1 and any(share >= least for share in seen)


def _pixels(boxes: Array, height: int, width: int) -> list[_Box]:
    """Boxes of fractions in pixels. Raises InvalidArgumentError for what lies outside of the image."""
    if boxes.ndim != 3:
        raise invalid(f"input boxes must be 3-dimensional [batch, num_boxes, coords]: {shape_text(boxes.shape)}")
    if boxes.shape[2] != 4:
        raise invalid(f"bounding boxes must have shape [4] or [*, 4], got {shape_text(boxes.shape)}")
    wrong = boxes[~((boxes >= 0) & (boxes <= 1))]
    if wrong.size:
        raise invalid(f"All bounding box coordinates must be in [0.0, 1.0]: {wrong[0]}")
    scaled = boxes.reshape(-1, 4) * np.array([height, width] * 2, np.float32)
    return [tuple(row) for row in scaled.astype(np.int64).tolist()]


@kernel("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "StatelessSampleDistortedBoundingBox")
def build_sample_distorted_bounding_box(node: KernelNode) -> Compute:
    """(image size [3], boxes [batch, n, 4], …) → begin [3], size [3] and box [1, 1, 4] of a random part of the image
    that covers enough of one of the boxes; the whole image if none of the attempts is good."""
    ratios, areas = (
        [np.float32(each) for each in node.attrs[f"{what}_range"]] for what in ("aspect_ratio", "area")
    )  # fmt: skip
    attempts, whole = int(node.attrs["max_attempts"]), bool(node.attrs["use_image_if_no_bounding_boxes"])
    for what, pair in (("Aspect ratio", ratios), ("Area", areas)):
        if len(pair) != 2:
            raise invalid(f"{what} range field must specify 2 dimensions")
        if not all(0 < each < np.inf for each in pair):
            raise invalid(f"{what} range must be positive: [{pair[0]}, {pair[1]}]")
    if max(areas) > 1:
        raise invalid(f"Area range must be less then or equal to 1.0: [{areas[0]}, {areas[1]}]")
    if attempts <= 0:
        raise invalid(f"Max attempts must be positive: {attempts}")
    attempts = min(attempts, _MOST_ATTEMPTS)
    stateless, dtype = node.op.startswith("Stateless"), output_type(node)
    generator, fixed = None if stateless else generator_of(node), node.attrs.get("min_object_covered")

    def compute(image_size: Array, boxes: Array, *rest: Array) -> tuple[Array, Array, Array]:
        if image_size.shape != (3,):
            raise invalid(f"image_size must be 1-dimensional and contain 3 elements {shape_text(image_size.shape)}")
        covered = np.float32(_covered(fixed, *rest[:1]))
        height, width = (int(each) for each in image_size[:2])
        if not 0 <= min(height, width) <= max(height, width) < (1 << 31) - 1:
            raise invalid(f"image height and width cannot be >= int32 max, or negative, got {height} and {width}")
        objects = _pixels(boxes, height, width)
        if not objects:
            if not whole:
                raise invalid(
                    "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish "
                    "to not provide any bounding boxes."
                )
            objects = [(0, 0, height, width)]
        position = position_of_seed(rest[1]) if generator is None else generator.reserve(attempts)
        words = _Words(position)
        found = (0, 0, height, width)
        for _ in range(attempts):
            ratio = np.float32(words.fraction() * (ratios[1] - ratios[0]) + ratios[0])
            crop = _random_crop(height, width, areas, ratio, words)
            if crop is not None and _covers(crop, objects, covered):
                found = crop
                break
        top, left, bottom, right = found
        corners = np.array(found, np.float32) / np.array([height, width] * 2, np.float32)
        # With unsigned sizes −1, all of the channels, is the largest number, as in TensorFlow.
        return (
            np.array([top, left, 0], np.int64).astype(dtype),
            np.array([bottom - top, right - left, -1], np.int64).astype(dtype),
            corners.reshape(1, 1, 4),
        )

    return compute


def _covered(fixed: Any, *given: Array) -> float:
    """The least part of an object that must be seen: an attribute, or an input."""
    if fixed is None:
        if given[0].ndim:
            raise invalid(f"min_object_covered must be 0-D, got shape {shape_text(given[0].shape)}")
        fixed = float(given[0])
    if fixed < 0:
        raise invalid(f"Min object covered must be non-negative: {fixed}")
    return float(fixed)
