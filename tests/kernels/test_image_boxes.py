"""Boxes: drawn, drawn by lot, chosen among those that overlap; glimpses, and images scaled by sampling kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors

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
