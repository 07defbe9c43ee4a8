"""Non-maximum suppression against a plain search, in each version: what is given, padded, counted and refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import image_suppression

F = np.float32
LOWEST = float(np.finfo(F).min)
RNG = np.random.default_rng(4)
CORNERS = RNG.uniform(0, 3, (12, 2))
BOXES = np.concatenate([CORNERS, CORNERS + RNG.uniform(0.5, 1.5, (12, 2))], axis=1).astype(F)
#: Two are alike: of those the first comes first.
SCORES = np.append(RNG.permutation(np.linspace(0.05, 0.95, 11)), 0.5).astype(F)


def overlap(one: Any, other: Any) -> float:
    top, left, bottom, right = (*np.maximum(one[:2], other[:2]), *np.minimum(one[2:], other[2:]))
    shared = max(bottom - top, 0) * max(right - left, 0)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return float(shared / (areas - shared))


def chosen(boxes: Any, scores: Any, most: int, limit: float, least: float = LOWEST) -> list[int]:
    """The best score first; one that overlaps a better one by more than the limit is left out."""
    found: list[int] = []
    for i in sorted((i for i, score in enumerate(scores.tolist()) if score > least), key=lambda i: (-scores[i], i)):
        if len(found) < most and all(overlap(boxes[i], boxes[j]) <= limit for j in found):
            found.append(i)
    return found


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("limit", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("most", [0, 1, 3, 99])
def test_every_version_chooses_alike(ops: Any, most: int, limit: float, kind: Any) -> None:
    boxes, scores, count = BOXES.astype(kind), SCORES.astype(kind), np.int32(most)
    wide = boxes.astype(F)
    expected = chosen(wide, scores, most, limit)
    above = chosen(wide, scores, most, limit, 0.5)
    if kind is np.float32:
        assert ops.run("NonMaxSuppression", [boxes, scores, count], iou_threshold=limit).tolist() == expected
    assert ops.run("NonMaxSuppressionV2", [boxes, scores, count, kind(limit)]).tolist() == expected
    assert ops.run("NonMaxSuppressionV3", [boxes, scores, count, kind(limit), kind(0.5)]).tolist() == above
    for pads in (False, True):
        found, valid = ops.run("NonMaxSuppressionV4", [boxes, scores, count, kind(limit), kind(0.5)],
                               pad_to_max_output_size=pads)  # fmt: skip
        padding = [0] * (most - len(above)) if pads else []
        assert (found.dtype, found.tolist(), int(valid)) == (np.int32, above + padding, len(above))
        found, kept, valid = ops.run("NonMaxSuppressionV5", [boxes, scores, count, kind(limit), kind(0.5), kind(0)],
                                     pad_to_max_output_size=pads)  # fmt: skip
        assert (found.dtype, found.tolist(), int(valid)) == (np.int32, above + padding, len(above))
        assert (kept.dtype, kept.tolist()) == (kind, scores[above].tolist() + padding)


@pytest.mark.parametrize("pads", [False, True])
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_scores_that_better_boxes_lower(ops: Any, kind: Any, pads: bool) -> None:
    boxes, scores, sigma = BOXES.astype(kind).astype(F), SCORES.astype(kind).astype(np.float64), 0.4
    left, expected, found_scores = dict(enumerate(scores.tolist())), [], []
    while left:
        best = max(left, key=lambda i: (left[i], -i))
        if left[best] <= 0.1:
            break
        expected.append(best)
        found_scores.append(left.pop(best))
        for i in left:
            left[i] *= math.exp(-0.5 / sigma * overlap(boxes[i], boxes[best]) ** 2)
    given = [BOXES.astype(kind), SCORES.astype(kind), np.int32(99), kind(1), kind(0.1), kind(sigma)]
    before = given[1].copy()
    found, kept, valid = ops.run("NonMaxSuppressionV5", given, pad_to_max_output_size=pads)
    count = len(expected)
    assert (found[:count].tolist(), int(valid)) == (expected, count)
    np.testing.assert_allclose(kept[:count], found_scores, rtol=2e-3 if kind is np.float16 else 1e-5)
    assert (len(found), kept.dtype) == (99 if pads else count, kind)
    assert given[1].tolist() == before.tolist(), "the scores that came in stay as they are"
    two, _, _ = ops.run("NonMaxSuppressionV5", [*given[:2], np.int32(2), *given[3:]])
    assert two.tolist() == expected[:2]


@pytest.mark.parametrize("most", [0, 2, 99])
def test_a_table_says_what_overlaps(ops: Any, most: int) -> None:
    table = F([[overlap(a, b) for b in BOXES] for a in BOXES])
    for limit, least in ((0.3, 0.5), (0.0, 0.0)):
        found = ops.run("NonMaxSuppressionWithOverlaps", [table, SCORES, np.int32(most), F(limit), F(least)])
        assert (found.dtype, found.tolist()) == (np.int32, chosen(BOXES, SCORES, most, limit, least))
    square = np.asfortranarray(F([[1, 9], [0, 1]]))
    assert ops.run("NonMaxSuppressionWithOverlaps", [square, F([1, 2]), np.int32(2), F(5), F(0)]).tolist() == [1]
    assert ops.run("NonMaxSuppressionWithOverlaps", [square, F([2, 1]), np.int32(2), F(5), F(0)]).tolist() == [0, 1]


def combined(
    boxes: Any, scores: Any, each: int, total: int, limit: float, least: float, size: int, clip: bool
) -> tuple[Any, ...]:
    out, out_scores, out_classes, counts = [], [], [], []
    for image, of_image in zip(boxes, scores, strict=True):
        found = []
        for c in range(scores.shape[2]):
            own = image[:, c if boxes.shape[2] > 1 else 0]
            found += [(own[i], float(of_image[i, c]), c) for i in chosen(own, of_image[:, c], each, limit, least)]
        found = sorted(found, key=lambda entry: -entry[1])[:size]
        rest = size - len(found)
        out.append([np.clip(box, 0, 1).tolist() if clip else box.tolist() for box, _, _ in found] + [[0] * 4] * rest)
        out_scores.append([score for _, score, _ in found] + [0] * rest)
        out_classes.append([c for _, _, c in found] + [0] * rest)
        counts.append(len(found))
    return out, out_scores, out_classes, counts


@pytest.mark.parametrize("shared", [True, False], ids=["boxes of all classes", "boxes of each class"])
@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize(("each", "total"), [(2, 5), (1, 9), (9, 2), (20, 30)])
def test_classes_of_several_images(ops: Any, each: int, total: int, clip: bool, per_class: bool, shared: bool) -> None:
    rng = np.random.default_rng(each)
    boxes = np.stack([BOXES.reshape(6, 2, 4), BOXES[::-1].reshape(6, 2, 4)]) - 0.5
    boxes = boxes[:, :, :1] if shared else boxes
    scores = rng.permutation(np.linspace(0.01, 0.99, 24)).astype(F).reshape(2, 6, 2)
    inputs = [boxes, scores, np.int32(each), np.int32(total), F(0.3), F(0.2)]
    found = ops.run("CombinedNonMaxSuppression", inputs, pad_per_class=per_class, clip_boxes=clip)
    size = min(total, each * 2) if per_class else total
    expected = combined(boxes, scores, each, total, 0.3, float(F(0.2)), size, clip)
    assert [part.tolist() for part in found[1:]] == [*expected[1:]]
    assert found[0].tolist() == expected[0]
    assert [part.dtype for part in found] == [F, F, F, np.int32]


def test_no_boxes_and_no_classes(ops: Any) -> None:
    none = [np.zeros((0, 4), F), np.zeros(0, F), np.int32(3)]
    assert ops.run("NonMaxSuppression", none).tolist() == []
    found, valid = ops.run("NonMaxSuppressionV4", [*none, F(0.5), F(0)], pad_to_max_output_size=True)
    assert (found.tolist(), int(valid)) == ([0, 0, 0], 0)
    for shapes in (((1, 0, 1, 4), (1, 0, 2)), ((1, 3, 1, 4), (1, 3, 0)), ((1, 3, 0, 4), (1, 3, 0))):
        inputs = [np.zeros(shapes[0], F), np.zeros(shapes[1], F), np.int32(2), np.int32(3), F(0.5), F(0)]
        found = ops.run("CombinedNonMaxSuppression", inputs)
        assert [part.shape for part in found] == [(1, 3, 4), (1, 3), (1, 3), (1,)]
        assert not any(part.any() for part in found)


ONE, HALF = np.int32(1), F(0.5)
V1, V2, V3, V5 = "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV5"
TABLE, TABLES = "NonMaxSuppressionWithOverlaps", np.zeros((2, 2), F)
ALL, ALL_BOXES, ALL_SCORES = "CombinedNonMaxSuppression", np.zeros((1, 3, 2, 4), F), np.zeros((1, 3, 2), F)


@pytest.mark.parametrize(
    ("op", "inputs", "text"),
    [
        (V1, [BOXES[0], SCORES, ONE], r"^boxes must be 2-D\[4\]$"),
        (V1, [BOXES[:, :3], SCORES, ONE], r"^boxes must have 4 columns\[12,3\]$"),
        (V1, [BOXES, SCORES[None], ONE], r"^scores must be 1-D\[1,12\]$"),
        (V1, [BOXES, SCORES[1:], ONE], "^scores has incompatible shape: 11 scores of 12 boxes$"),
        (V1, [BOXES, SCORES, np.int32([1])], r"^max_output_size must be 0-D, got shape \[1\]$"),
        (V1, [BOXES, SCORES, np.int32(-1)], "^max_output_size must be non-negative, got -1$"),
        (V2, [BOXES, SCORES, ONE, F([0.5])], r"^iou_threshold must be 0-D, got shape \[1\]$"),
        (V2, [BOXES, SCORES, ONE, F(-0.5)], r"^iou_threshold must be in \[0, 1\], got -0\.5$"),
        (V2, [BOXES, SCORES, ONE, F(1.5)], r"^iou_threshold must be in \[0, 1\], got 1\.5$"),
        (V2, [BOXES, SCORES, ONE, F(np.nan)], r"^iou_threshold must be in \[0, 1\], got nan$"),
        (V3, [BOXES, SCORES, ONE, HALF, F([0.5])], r"^score_threshold must be 0-D, got shape \[1\]$"),
        (V5, [BOXES, SCORES, ONE, F([0.5]), HALF, HALF], r"^iou_threshold must be 0-D, got shape \[1\]$"),
        (V5, [BOXES, SCORES, ONE, F(2), HALF, HALF], r"^iou_threshold must be in \[0, 1\], got 2\.0$"),
        (V5, [BOXES, SCORES, ONE, HALF, F([0.5]), HALF], r"^score_threshold must be 0-D, got shape \[1\]$"),
        (V5, [BOXES, SCORES, ONE, HALF, HALF, F([0.5])], r"^soft_nms_sigma must be 0-D, got shape \[1\]$"),
        (V5, [BOXES, SCORES, ONE, HALF, HALF, F(-0.5)], r"^soft_nms_sigma must be non-negative, got -0\.5$"),
        (TABLE, [TABLES[0], F([1, 2]), ONE, HALF, HALF], r"^overlaps must be 2-D\[2\]$"),
        (TABLE, [TABLES[:1], F([1, 2]), ONE, HALF, HALF], r"^overlaps must be square\[1,2\]$"),
        (TABLE, [TABLES, F([[1, 2]]), ONE, HALF, HALF], r"^scores must be 1-D\[1,2\]$"),
        (TABLE, [TABLES, F([1]), ONE, HALF, HALF], "^scores has incompatible shape: 1 scores of 2 boxes$"),
        (TABLE, [TABLES, F([1, 2]), ONE, F([1]), HALF], r"^overlap_threshold must be 0-D, got shape \[1\]$"),
        (TABLE, [TABLES, F([1, 2]), ONE, HALF, F([1])], r"^score_threshold must be 0-D, got shape \[1\]$"),
        (TABLE, [TABLES, F([1, 2]), np.int32(-2), HALF, HALF], "^max_output_size must be non-negative, got -2$"),
        (ALL, [ALL_BOXES[0], ALL_SCORES, ONE, ONE, HALF, HALF], r"^boxes must be 4-D\[3,2,4\]$"),
        (ALL, [ALL_BOXES, ALL_SCORES[0], ONE, ONE, HALF, HALF], r"^scores must be 3-D\[3,2\]$"),
        (ALL, [ALL_BOXES, ALL_SCORES[:0], ONE, ONE, HALF, HALF], "^boxes and scores must have same batch size$"),
        (ALL, [ALL_BOXES, ALL_SCORES[:, 1:], ONE, ONE, HALF, HALF], r"^scores has incompatible shape\[1,2,2\]$"),
        (ALL, [ALL_BOXES, np.zeros((1, 3, 3), F), ONE, ONE, HALF, HALF], "^third dimension of boxes must be either 1"),
        (ALL, [ALL_BOXES[..., :3], ALL_SCORES, ONE, ONE, HALF, HALF], r"^boxes must have 4 columns\[1,3,2,3\]$"),
        (ALL, [ALL_BOXES, ALL_SCORES, np.int32([1]), ONE, HALF, HALF], r"^max_size_per_class must be 0-D, got shape"),
        (ALL, [ALL_BOXES, ALL_SCORES, np.int32(0), ONE, HALF, HALF], "^max_size_per_class must be positive, got 0$"),
        (ALL, [ALL_BOXES, ALL_SCORES, ONE, np.int32([1]), HALF, HALF], r"^max_total_size must be 0-D, got shape \[1\]"),
        (ALL, [ALL_BOXES, ALL_SCORES, ONE, np.int32(0), HALF, HALF], "^max_total_size must be > 0, got 0$"),
        (ALL, [ALL_BOXES, ALL_SCORES, ONE, ONE, F(1.5), HALF], r"^iou_threshold must be in \[0, 1\], got 1\.5$"),
        (ALL, [ALL_BOXES, ALL_SCORES, ONE, ONE, F([1]), HALF], r"^iou_threshold must be 0-D, got shape \[1\]$"),
        (ALL, [ALL_BOXES, ALL_SCORES, ONE, ONE, HALF, F([1])], r"^score_threshold must be 0-D, got shape \[1\]$"),
    ],
)
def test_what_is_refused(ops: Any, op: str, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs)


def test_memory_is_asked_for_first(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(image_suppression, "allow", lambda dims, dtype, times=1: asked.append((*dims, dtype, times)))
    ops.run("NonMaxSuppressionV4", [BOXES, SCORES, np.int32(20), HALF, HALF], pad_to_max_output_size=True)
    ops.run(V5, [BOXES, SCORES, np.int32(20), HALF, HALF, F(0)], pad_to_max_output_size=True)
    ops.run(ALL, [ALL_BOXES, ALL_SCORES, np.int32(2), np.int32(7), HALF, HALF])
    assert asked == [(20, np.int32, 1), (20, np.int32, 1), (20, F, 1), (1, 7, 4, F, 2)]
