"""Boxes: drawn, drawn by lot, chosen among those that overlap; glimpses, and images scaled by sampling kernels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import image_boxes
from tenfold_kernels.philox import Philox

F = np.float32
#: Two pairs that overlap by more than a half, and one box far away.
BOXES = F([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]])
SCORES = F([0.9, 0.75, 0.6, 0.95, 0.5, 0.3])


def suppressed(ops: Any, op: str, most: int, *rest: Any, **attrs: Any) -> Any:
    return ops.run(op, [BOXES, SCORES, np.int32(most), *map(F, rest)], **attrs)


def test_each_version_chooses_the_best_of_those_that_overlap(ops: Any) -> None:
    assert suppressed(ops, "NonMaxSuppression", 3).tolist() == [3, 0, 5]
    assert suppressed(ops, "NonMaxSuppressionV2", 2, 0.5).tolist() == [3, 0]
    assert suppressed(ops, "NonMaxSuppressionV3", 30, 0.5, 0.4).tolist() == [3, 0]
    chosen, count = suppressed(ops, "NonMaxSuppressionV4", 5, 0.5, 0.0, pad_to_max_output_size=True)
    assert (chosen.tolist(), int(count)) == ([3, 0, 5, 0, 0], 3)


def test_corners_may_be_given_in_any_order(ops: Any) -> None:
    turned = BOXES[:, [2, 1, 0, 3]]

    assert ops.run("NonMaxSuppression", [turned, SCORES, np.int32(3)]).tolist() == [3, 0, 5]


def test_soft_suppression_lowers_scores(ops: Any) -> None:
    chosen, scores, count = suppressed(ops, "NonMaxSuppressionV5", 6, 1.0, 0.0, 0.5)

    assert chosen.tolist() == [3, 0, 1, 5, 4, 2]
    np.testing.assert_allclose(scores, [0.95, 0.9, 0.384, 0.3, 0.256, 0.197], atol=1e-3)
    assert count == 6
    hard, hard_scores, _ = suppressed(ops, "NonMaxSuppressionV5", 6, 0.5, 0.0, 0.0)
    assert hard.tolist() == [3, 0, 5]
    assert hard_scores.tolist() == SCORES[[3, 0, 5]].tolist()


def test_a_table_of_overlaps(ops: Any) -> None:
    overlaps = F(np.eye(3))
    overlaps[0, 1] = overlaps[1, 0] = 0.6

    found = ops.run("NonMaxSuppressionWithOverlaps", [overlaps, F([0.1, 0.9, 0.5]), np.int32(3), F(0.5), F(0.0)])

    assert found.tolist() == [1, 2]


def test_classes_are_suppressed_apart(ops: Any) -> None:
    boxes, scores = BOXES[None, :, None], np.stack([SCORES, SCORES[::-1]], -1)[None]
    inputs = [boxes, scores, np.int32(2), np.int32(5), F(0.5), F(0.0)]

    found, found_scores, classes, counts = ops.run("CombinedNonMaxSuppression", inputs, clip_boxes=False)

    np.testing.assert_allclose(found_scores[0], [0.95, 0.95, 0.9, 0.9, 0])
    assert sorted(classes[0, :4].tolist()) == [0, 0, 1, 1]
    assert found[0, 0].tolist() in (BOXES[3].tolist(), BOXES[2].tolist())
    assert counts.tolist() == [4]
    padded = ops.run("CombinedNonMaxSuppression", inputs, pad_per_class=True)
    assert padded[0].shape == (1, 4, 4)
    assert padded[0].max() <= 1


@pytest.mark.parametrize(
    ("op", "inputs", "says"),
    [
        ("NonMaxSuppression", [BOXES[:, :3], SCORES, np.int32(3)], "boxes must have 4 columns"),
        ("NonMaxSuppression", [BOXES, SCORES[:3], np.int32(3)], "scores has incompatible shape"),
        ("NonMaxSuppressionV2", [BOXES, SCORES, np.int32(3), F(1.2)], r"iou_threshold must be in \[0, 1\]"),
        ("NonMaxSuppressionV2", [BOXES, SCORES, np.int32(-3), F(0.2)], "max_output_size must be non-negative"),
        ("NonMaxSuppressionWithOverlaps", [BOXES, SCORES, np.int32(3), F(0.2), F(0)], "overlaps must be square"),
        ("DrawBoundingBoxes", [np.zeros((1, 4, 4, 2), F), np.zeros((1, 1, 4), F)], "Channel depth should be"),
        ("SampleDistortedBoundingBoxV2", [np.int32([9, 9, 3]), F([[[0, 0, 2, 1]]]), F(0.1)], "must be in .0.0, 1.0"),
        ("SampleDistortedBoundingBoxV2", [np.int32([9, 9, 3]), np.zeros((1, 0, 4), F), F(0.1)], "No bounding boxes"),
        ("SampleDistortedBoundingBoxV2", [np.int32([9, 9, 3]), F([[[0, 0, 1, 1]]]), F(-1)], "must be non-negative"),
        ("ExtractGlimpse", [np.zeros((1, 4, 4, 1), F), np.int32([0, 2]), F([[0, 0]])], "must be positive"),
        ("ScaleAndTranslate", [np.zeros((1, 4, 4, 1), F), np.int32([2, 2]), F([0, 1]), F([0, 0])], "greater than zero"),
    ],
)
def test_what_is_refused(ops: Any, op: str, inputs: Any, says: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=says):
        ops.run(op, inputs)


def test_outlines(ops: Any) -> None:
    boxes = F([[[0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75], [2, 2, 3, 3], [0.9, 0.9, 0.1, 0.1], [-1, 0.5, 2, 0.5]]])

    drawn = ops.run("DrawBoundingBoxesV2", [np.zeros((1, 9, 9, 3), F), boxes, F([[1, 0, 0, 1], [0, 1, 0, 1]])])[0]

    red = drawn[..., 0] == 1
    assert red[0].all()
    assert red[8].all()
    assert red[1:8, [0, 4, 8]].all()  # the last box is a line through the middle
    assert red.sum() == 9 + 9 + 3 * 7
    assert drawn[2, 2].tolist() == [0, 1, 0]
    assert drawn[3, 3].tolist() == [0, 0, 0]


@pytest.mark.parametrize("op", ["SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2"])
def test_a_part_by_lot_covers_enough(ops: Any, op: str) -> None:
    box, size = F([[[0.2, 0.3, 0.6, 0.7]]]), np.int32([40, 50, 3])
    rest = [F(0.5)] if op.endswith("V2") else []
    given = {} if rest else {"min_object_covered": 0.5}
    compute, _ = ops.build(op, [size, box, *rest], {"seed": 3, "seed2": 4, **given})

    for _ in range(50):
        begin, extent, where = compute(size, box, *rest)
        top, left, height, width = (int(v) for v in (*begin[:2], *extent[:2]))
        seen = max(0, min(top + height, 24) - max(top, 8)) * max(0, min(left + width, 35) - max(left, 15))
        assert seen >= 0.5 * 16 * 20
        assert 0.05 * 2000 - 1 <= height * width <= 2000
        assert (begin[2], extent[2]) == (0, -1)
        corners = [top / 40, left / 50, (top + height) / 40, (left + width) / 50]
        np.testing.assert_allclose(where[0, 0], corners, rtol=1e-6)


def test_glimpses_from_the_middle_and_past_the_edge(ops: Any) -> None:
    image = np.arange(25, dtype=F).reshape(1, 5, 5, 1)

    middle = ops.run("ExtractGlimpse", [image, np.int32([3, 3]), F([[0, 0]])])
    corner = ops.run("ExtractGlimpse", [image, np.int32([3, 3]), F([[1, 1]])], uniform_noise=False, noise=b"zero")

    assert middle[0, :, :, 0].tolist() == image[0, 1:4, 1:4, 0].tolist()
    assert corner[0, 0, 0, 0] > 0
    assert not corner[0, 2].any()
    for noise in ({}, {"uniform_noise": False, "noise": b"gaussian"}):
        found = ops.run("ExtractGlimpse", [image, np.int32([9, 9]), F([[0, 0]])], **noise)
        assert found.min() >= 0
        assert found.max() <= 24


@pytest.mark.parametrize(
    "kernel", ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]
)
def test_scaling_keeps_what_is_even(ops: Any, kernel: str) -> None:
    even = np.full((1, 6, 7, 2), 3, F)

    grown = ops.run("ScaleAndTranslate", [even, np.int32([9, 14]), F([1.5, 2]), F([0, 0])], kernel_type=kernel.encode())

    np.testing.assert_allclose(grown, 3, rtol=1e-5)


def test_the_gradient_of_scaling_is_its_transpose(ops: Any) -> None:
    chance = np.random.default_rng(2)
    image, given = chance.standard_normal((2, 6, 7, 2)).astype(F), chance.standard_normal((2, 4, 9, 2)).astype(F)
    how = [F([0.6, 1.3]), F([0.4, -0.2])]

    made = ops.run("ScaleAndTranslate", [image, np.int32([4, 9]), *how])
    back = ops.run("ScaleAndTranslateGrad", [given, image, *how])

    np.testing.assert_allclose((made * given).sum(), (image * back).sum(), rtol=1e-4)


# ---- outlines --------------------------------------------------------------------------------------------------------


COLOURS = [
    (1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1),
    (0.5, 0.5, 0, 1), (0.5, 0, 0, 1), (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1),
]  # fmt: skip
DRAW = ["DrawBoundingBoxes", "DrawBoundingBoxesV2"]


def drawn(images: Any, boxes: Any, table: Any) -> Any:
    """Pixel by pixel; the later boxes are on top."""
    out = images.copy()
    height, width, depth = images.shape[1:]
    for image, row in zip(out, np.asarray(boxes, np.float64), strict=True):
        for number, box in enumerate(row):
            top, left, bottom, right = (
                -1 if np.isnan(side) else int(F(side) * F(size - 1))
                for side, size in zip(box, (height, width, height, width), strict=True)
            )
            for y, x in itertools.product(range(height), range(width)):
                across = left <= x <= right and y in (top, bottom) and top <= bottom
                along = top <= y <= bottom and x in (left, right) and left <= right
                if across or along:
                    image[y, x] = table[number % len(table)][:depth]
    return out


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("depth", [1, 3, 4])
def test_outlines_of_boxes_of_every_kind(ops: Any, depth: int, kind: Any) -> None:
    """Inside, partly and wholly outside, turned round, points, and no numbers; the first colour for grey is white."""
    rng = np.random.default_rng(depth)
    corners = rng.uniform(-0.6, 1.2, (2, 23, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(-0.1, 0.9, (2, 23, 2))], axis=2).astype(F)
    boxes[0, 3, 1], boxes[1, 5, 2] = np.nan, np.nan
    boxes[0, 7:11] = [[0, 0, 1, 1], [1, 1, 1, 1], [-0.05, 0.2, -0.05, 0.4], [1.3, 0, 1.4, 1]]
    images = rng.uniform(0, 1, (2, 7, 9, depth)).astype(kind)
    table = [(1, *colour[1:]) for colour in COLOURS] if depth == 1 else COLOURS
    found = ops.run("DrawBoundingBoxes", [images, boxes])
    assert (found.dtype, found.tolist()) == (kind, drawn(images, boxes, table).tolist())
    assert ops.run("DrawBoundingBoxesV2", [images, boxes, np.zeros((0, 4), F)]).tolist() == found.tolist()
    own = F([[0.1, 0.2, 0.3, 0.4, 9], [0.5, 0.6, 0.7, 0.8, 9], [0.9, 0, 0.1, 0.2, 9]])
    found = ops.run("DrawBoundingBoxesV2", [images, boxes, own])
    assert found.tolist() == drawn(images, boxes, own).tolist()
    huge = np.where(boxes > 1, 1e30, boxes).astype(F)
    assert ops.run("DrawBoundingBoxes", [images, huge]).tolist() == drawn(images, np.where(boxes > 1, 50, boxes),
                                                                           table).tolist()  # fmt: skip


def test_each_colour_in_its_turn(ops: Any) -> None:
    points = F([[[0, i / 11, 0, i / 11] for i in range(12)]])
    found = ops.run("DrawBoundingBoxes", [np.full((1, 2, 12, 4), 7, F), points])[0]
    assert found[0].tolist() == [list(colour) for colour in [*COLOURS, *COLOURS[:2]]]
    assert (found[1] == 7).all()


IMAGES, NO_BOXES = np.zeros((2, 4, 5, 3), F), np.zeros((2, 1, 4), F)


@pytest.mark.parametrize("op", DRAW)
@pytest.mark.parametrize(
    ("images", "boxes", "text"),
    [
        (IMAGES[0], NO_BOXES, "^The rank of the images should be 4$"),
        (IMAGES, NO_BOXES[0], r"^The rank of the boxes tensor should be 3, of 4 coordinates, got \[1,4\]$"),
        (IMAGES, NO_BOXES[..., :3], r"^The rank of the boxes tensor should be 3, of 4 coordinates, got \[2,1,3\]$"),
        (IMAGES, NO_BOXES[:1], "^The batch sizes should be the same$"),
        (np.zeros((2, 4, 5, 5), F), NO_BOXES, r"^Channel depth should be either 1 \(GRY\), 3 \(RGB\), or 4 \(RGBA\)$"),
        (IMAGES[..., :2], NO_BOXES, "^Channel depth should be"),
    ],
)
def test_outlines_that_cannot_be(ops: Any, op: str, images: Any, boxes: Any, text: str) -> None:
    colours = [] if op == DRAW[0] else [np.ones((1, 4), F)]
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, [images, boxes, *colours])


def test_colours_that_cannot_be(ops: Any) -> None:
    for colours, text in (
        (np.ones(4, F), r"^colors must be a 2-D matrix\[4\]$"),
        (np.ones((1, 2), F), r"^colors must have equal or more channels than the image\[1,2\]$"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ops.run("DrawBoundingBoxesV2", [IMAGES, NO_BOXES, colours])


# ---- by lot ----------------------------------------------------------------------------------------------------------


class Dice:
    """Gives these numbers, and takes down of how many each was to be one."""

    def __init__(self, *numbers: int) -> None:
        self.numbers, self.asked = list(numbers), []  # type: ignore[var-annotated]

    def below(self, count: int) -> int:
        self.asked.append(count)
        return self.numbers.pop(0)


def cut(height: int, width: int, areas: tuple[float, float], ratio: float, *numbers: int) -> Any:
    dice: Any = Dice(*numbers)
    found = image_boxes._random_crop(height, width, [F(each) for each in areas], F(ratio), dice)
    assert not dice.numbers
    return found, dice.asked


def test_a_box_is_as_high_as_its_area_and_as_wide_as_the_image_allow() -> None:
    # 10 × 20 pixels, half of them, square: 10 rows, all that there are
    assert cut(10, 20, (0.5, 0.5), 1, 3) == ((0, 3, 10, 13), [10])
    # of 100 × 10, at most all and twice as wide as high: 5 rows at most, and 2 at least
    assert cut(100, 10, (0.01, 1), 2, 3, 7) == ((7, 0, 12, 10), [4, 95])
    assert cut(100, 10, (0.01, 1), 2, 0, 7, 1) == ((7, 1, 10, 7), [4, 97, 4])
    # from 4 to 36 pixels of 10 × 10: 2 to 6 rows
    assert cut(10, 10, (0.04, 0.36), 1, 4, 1, 2) == ((1, 2, 7, 8), [5, 4, 4])
    assert cut(10, 10, (0.04, 0.36), 1, 0, 8, 0) == ((8, 0, 10, 2), [5, 8, 8])
    # a row more or less where rounding has led out of the bounds
    assert cut(10, 10, (0.08, 0.08), 1) == (None, [])
    assert cut(10, 10, (0.1, 0.2), 2, 0, 0, 0) == ((0, 0, 3, 6), [2, 7, 4])
    assert cut(1, 1, (0.5, 1), 1) == ((0, 0, 1, 1), [])


def test_rounding_at_the_edges_of_width_and_area() -> None:
    # 7 rows are 10.5 columns wide, which is rounded to the 10 that there are
    assert cut(20, 10, (0.01, 0.3675), 1.5, 6, 3) == ((3, 0, 10, 10), [7, 13])
    # the least and the most are among them
    assert cut(10, 10, (0.25, 1), 1, 0, 2, 4) == ((2, 4, 7, 9), [6, 5, 5])
    assert cut(10, 10, (0.25, 1), 1, 5) == ((0, 0, 10, 10), [6])
    # 3 rows are 3.5 columns wide in single precision, one more than there are, though 3 are what the width allows
    assert cut(3, 3, (0.01, 1), 1.1666666269302368, 0, 0, 0) == ((0, 0, 1, 1), [3, 2, 2])


def test_boxes_that_there_are_not() -> None:
    for height, width, areas, ratio in (
        (10, 10, (0.5, 0.4), 1), (0, 10, (0.1, 1), 1), (10, 0, (0.1, 1), 1), (0, 0, (0.1, 1), 1),
        (10, 2, (0.9, 1), 9), (2, 10, (0.9, 1), 0.1),
    ):  # fmt: skip
        assert cut(height, width, areas, ratio) == (None, [])


def test_how_much_of_an_object_is_seen() -> None:
    crop, full = (2, 2, 6, 6), (2, 2, 6, 6)
    for other, share in (((2, 2, 4, 6), 1.0), ((0, 0, 4, 4), 0.25), ((6, 6, 9, 9), 0.0), ((5, 1, 7, 3), 0.25),
                         ((3, 0, 5, 8), 0.5), ((0, 7, 4, 9), 0.0), (full, 1.0)):  # fmt: skip
        assert image_boxes._covers(crop, [other], F(share))
        assert image_boxes._covers(crop, [(9, 9, 10, 10), other], F(share))
        if share < 1:
            assert not image_boxes._covers(crop, [other], F(share + 0.01))
    # what has no pixel counts for nothing
    assert not image_boxes._covers(crop, [(3, 3, 3, 5)], F(0))
    assert not image_boxes._covers((3, 3, 3, 5), [full], F(0))
    assert not image_boxes._covers(crop, [], F(0))
    assert image_boxes._covers((3, 3, 4, 4), [(3, 3, 4, 4)], F(1))
    assert [image_boxes._shared(crop, (0, 0, 3, 3)), image_boxes._shared(crop, (6, 2, 9, 6))] == [1, 0]
    assert image_boxes._shared(crop, (7, 2, 9, 6)) == 0


def test_words_of_a_stream() -> None:
    position = Philox(3, (1 << 128) - 20)
    words = image_boxes._Words(position)
    expected = [
        int(word) for at in range(3) for word in position.behind(16 * at).blocks(np.arange(16, dtype=np.uint64)).ravel()
    ]
    assert [int(next(words._words)) for _ in range(150)] == expected[:150]
    words = image_boxes._Words(position)
    assert float(words.fraction()) == (expected[0] & 0x7FFFFF) / (1 << 23)
    assert words.below(8) == expected[1] % 8
    assert words.below(1) == 0
    assert words.below(10) == expected[3] % 10


@pytest.mark.parametrize(
    ("words", "count", "found"),
    [
        ([3], 8, 3),
        ([3, 4], 6, 4),
        ([0, 1, 2, 3, 5], 6, 5),
        ([4], 6, 4),
        ([29], 10, 9),
        ([5, 6], 10, 6),
        ([0b1101], 4, 1),
    ],
)
def test_words_that_would_favour_some_are_passed_over(words: list[int], count: int, found: int) -> None:
    """2³² is 4 and a multiple of 6, and 6 and a multiple of 10."""
    stream = image_boxes._Words(Philox(1, 2))
    stream._words = iter(words)
    assert stream.below(count) == found
    assert list(stream._words) == []


LOT = ["SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "StatelessSampleDistortedBoundingBox"]
SIDES, BOX = np.int32([9, 12, 3]), F([[[0.1, 0.2, 0.6, 0.9]]])


def lot(ops: Any, op: str, sides: Any = SIDES, boxes: Any = BOX, covered: Any = 0.1, **attrs: Any) -> Any:
    given: dict[str, Any] = {"aspect_ratio_range": [0.75, 1.33], "area_range": [0.05, 1.0], "max_attempts": 100,
                             "use_image_if_no_bounding_boxes": False, **attrs}  # fmt: skip
    inputs = [sides, boxes]
    if op == LOT[0]:
        return ops.run(op, inputs, seed=3, seed2=4, min_object_covered=covered, **given)
    inputs.append(np.array(covered, F))
    if op == LOT[1]:
        return ops.run(op, inputs, seed=3, seed2=4, **given)
    return ops.run(op, [*inputs, np.int64([5, 6])], **given)


@pytest.mark.parametrize("op", LOT)
@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"aspect_ratio_range": [1.0]}, "^Aspect ratio range field must specify 2 dimensions$"),
        ({"area_range": [0.1, 0.2, 0.3]}, "^Area range field must specify 2 dimensions$"),
        ({"aspect_ratio_range": [0.0, 1.0]}, r"^Aspect ratio range must be positive: \[0\.0, 1\.0\]$"),
        ({"aspect_ratio_range": [1.0, np.inf]}, r"^Aspect ratio range must be positive: \[1\.0, inf\]$"),
        ({"area_range": [-0.5, 1.0]}, r"^Area range must be positive: \[-0\.5, 1\.0\]$"),
        ({"area_range": [0.5, 1.5]}, r"^Area range must be less then or equal to 1\.0: \[0\.5, 1\.5\]$"),
        ({"max_attempts": 0}, "^Max attempts must be positive: 0$"),
        ({"max_attempts": -1}, "^Max attempts must be positive: -1$"),
        ({"sides": np.int32([9, 12])}, r"^image_size must be 1-dimensional and contain 3 elements \[2\]$"),
        ({"sides": np.int32([[9, 12, 3]])}, r"^image_size must be 1-dimensional and contain 3 elements \[1,3\]$"),
        (
            {"sides": np.int32([-1, 12, 3])},
            "^image height and width cannot be >= int32 max, or negative, got -1 and 12",
        ),
        (
            {"sides": np.int32([9, (1 << 31) - 1, 3])},
            "^image height and width cannot be >= int32 max, or negative, got",
        ),
        ({"boxes": BOX[0]}, r"^input boxes must be 3-dimensional \[batch, num_boxes, coords\]: \[1,4\]$"),
        ({"boxes": BOX[..., :3]}, r"^bounding boxes must have shape \[4\] or \[\*, 4\], got \[1,1,3\]$"),
        ({"boxes": BOX + 0.2}, r"^All bounding box coordinates must be in \[0\.0, 1\.0\]: 1\.1"),
        ({"boxes": BOX - 0.15}, r"^All bounding box coordinates must be in \[0\.0, 1\.0\]: -0\.0"),
        ({"boxes": BOX * np.nan}, r"^All bounding box coordinates must be in \[0\.0, 1\.0\]: nan$"),
        ({"boxes": BOX[:, :0]}, r"^No bounding boxes provided as input\. One must enable use_image_if_no_bounding_b"),
        ({"covered": -0.1}, r"^Min object covered must be non-negative: -0\.1"),
    ],
)
def test_lots_that_cannot_be(ops: Any, op: str, given: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        lot(ops, op, **given)


@pytest.mark.parametrize("op", LOT[1:])
def test_how_much_must_be_covered_is_one_number(ops: Any, op: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^min_object_covered must be 0-D, got shape \[1\]$"):
        lot(ops, op, covered=[0.1])


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("op", LOT)
def test_the_whole_image_where_no_attempt_is_good(ops: Any, op: str, kind: Any) -> None:
    """Nothing covers more than all of an object; without boxes the image itself is the object."""
    for given in ({"covered": 1.5}, {"sides": np.array([0, 12, 3], kind)}):
        sides = given.get("sides", SIDES.astype(kind))
        with np.errstate(all="ignore"):
            begin, size, box = lot(ops, op, **{"sides": sides, **given})
        assert (begin.tolist(), begin.dtype, size.dtype) == ([0, 0, 0], kind, kind)
        assert size.tolist() == [*sides[:2].tolist(), 255 if kind is np.uint8 else -1]
        if sides[0]:
            assert box.tolist() == [[[0, 0, 1, 1]]]
    begin, size, _ = lot(ops, op, SIDES.astype(kind), BOX[:, :0], 1.0, area_range=[0.5, 0.9],
                         use_image_if_no_bounding_boxes=True)  # fmt: skip
    assert size.tolist()[:2] == [9, 12]
    begin, size, _ = lot(ops, op, SIDES.astype(kind), BOX[:, :0], 0.5, area_range=[0.5, 0.9],
                         use_image_if_no_bounding_boxes=True)  # fmt: skip
    assert 54 <= int(size[0]) * int(size[1]) <= 97


@pytest.mark.parametrize("op", LOT)
def test_the_ends_of_what_is_accepted(ops: Any, op: str) -> None:
    lot(ops, op, boxes=F([[[0, 0, 1, 1]]]))
    lot(ops, op, sides=np.int32([9, 9, 3]))
    lot(ops, op, covered=0.0)
    lot(ops, op, max_attempts=1)
    lot(ops, op, sides=np.int64([2, (1 << 31) - 2, 3]), aspect_ratio_range=[1e9, 2e9])


def test_each_call_has_as_many_blocks_as_attempts(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for attempts, most, expected in ((7, 1 << 17, 7), (9, 5, 5)):
        monkeypatch.setattr(image_boxes, "_MOST_ATTEMPTS", most)
        reserved: list[int] = []

        class Stream:
            def reserve(self, blocks: int, reserved: list[int] = reserved) -> Philox:
                reserved.append(blocks)
                return Philox(3, 4 << 64)

        monkeypatch.setattr(image_boxes, "generator_of", lambda node, made=Stream: made())
        tried: list[Any] = []
        monkeypatch.setattr(image_boxes, "_random_crop", lambda *given, tried=tried: tried.append(given[3]))
        lot(ops, LOT[0], max_attempts=attempts)
        assert reserved == [expected]
        assert len(tried) == expected
        assert all(0.75 <= ratio <= 1.33 for ratio in tried)
