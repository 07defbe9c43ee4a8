"""Non-maximum suppression: of boxes that overlap, the one with the best score. The loops are _compiled/boxes.py's.

Computed in float. Boxes of equal scores are taken in the order of their indices. Follows non_max_suppression_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, contiguous, invalid, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

_LOWEST = float(np.finfo(np.float32).min)


def _scalar(value: Array, name: str) -> float:
    if value.ndim:
        raise invalid(f"{name} must be 0-D, got shape {shape_text(value.shape)}")
    return float(value)


def _overlap_limit(value: float) -> float:
    if not 0 <= value <= 1:
        raise invalid(f"iou_threshold must be in [0, 1], got {value}")
    return value


def _size(most: Array, boxes: int) -> int:
    """How many boxes may be chosen."""
    size = int(_scalar(most, "max_output_size"))
    if size < 0:
        raise invalid(f"max_output_size must be non-negative, got {size}")
    return min(size, boxes)


def _checked(boxes: Array, scores: Array) -> tuple[Array, Array]:
    """Both as float32. Raises InvalidArgumentError unless there is a score for each box."""
    if boxes.ndim != 2:
        raise invalid(f"boxes must be 2-D{shape_text(boxes.shape)}")
    if boxes.shape[1] != 4:
        raise invalid(f"boxes must have 4 columns{shape_text(boxes.shape)}")
    return contiguous(boxes.astype(np.float32, copy=False)), _checked_scores(scores, len(boxes))


def _checked_scores(scores: Array, count: int) -> Array:
    if scores.ndim != 1:
        raise invalid(f"scores must be 1-D{shape_text(scores.shape)}")
    if len(scores) != count:
        raise invalid(f"scores has incompatible shape: {len(scores)} scores of {count} boxes")
    return scores.astype(np.float32, copy=False)


def _order(scores: Array, least: float) -> Array:
    """The indices of the scores above `least`, the best first."""
    candidates = np.flatnonzero(scores > np.float32(least))
    order: Array = candidates[np.argsort(-scores[candidates], kind="stable")]
    return order


def _choose(loop: Callable[..., int], table: Array, scores: Array, size: int, limit: float, least: float) -> Array:
    chosen = np.empty(size, np.int64)
    count = loop(table, _order(scores, least), np.float32(limit), chosen)
    return chosen[:count]


def _padded(values: Array, size: int, dtype: Any) -> Array:
    allow((size,), dtype)
    out = np.zeros(size, dtype)
    out[: len(values)] = values
    return out


@kernel("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4")
def build_non_max_suppression(node: KernelNode) -> Compute:
    """Indices of boxes, best score first, that overlap no better one by more than the threshold; V4: how many, too."""
    from tenfold_kernels.cpu._compiled import boxes as loops

    fixed, suppress = float(node.attrs.get("iou_threshold", 0.5)), loops.suppress()
    counts, pads = node.op == "NonMaxSuppressionV4", bool(node.attrs.get("pad_to_max_output_size"))

    def compute(boxes: Array, scores: Array, most: Array, *thresholds: Array) -> Any:
        boxes, scores = _checked(boxes, scores)
        names = ("iou_threshold", "score_threshold")
        given = [_scalar(value, name) for name, value in zip(names, thresholds, strict=False)]
        limit, least = [*given, *(fixed, _LOWEST)[len(given) :]]
        chosen = _choose(suppress, boxes, scores, _size(most, len(boxes)), _overlap_limit(limit), least)
        if not counts:
            return chosen.astype(np.int32)
        count = np.array(len(chosen), np.int32)
        return (_padded(chosen, int(most), np.int32) if pads else chosen.astype(np.int32)), count

    return compute


@kernel("NonMaxSuppressionV5")
def build_non_max_suppression_with_scores(node: KernelNode) -> Compute:
    """Indices, scores and their number; with a sigma above 0, boxes lower the scores of those that overlap them."""
    from tenfold_kernels.cpu._compiled import boxes as loops

    suppress, softly = loops.suppress(), loops.suppress_softly()
    dtype, pads = output_type(node, 1), bool(node.attrs.get("pad_to_max_output_size"))

    def compute(boxes: Array, scores: Array, most: Array, overlap: Array, score: Array, sigma: Array) -> Any:
        boxes, scores = _checked(boxes, scores)
        size, limit = _size(most, len(boxes)), _overlap_limit(_scalar(overlap, "iou_threshold"))
        least, soft = _scalar(score, "score_threshold"), _scalar(sigma, "soft_nms_sigma")
        if soft < 0:
            raise invalid(f"soft_nms_sigma must be non-negative, got {soft}")
        if soft:
            chosen, found = np.empty(size, np.int64), np.empty(size, np.float32)
            scale = np.float32(-0.5 / soft)
            count = softly(boxes, scores.copy(), np.float32(least), scale, chosen, found)
            chosen, found = chosen[:count], found[:count]
        else:
            chosen = _choose(suppress, boxes, scores, size, limit, least)
            found = scores[chosen]
        length = int(most) if pads else len(chosen)
        return _padded(chosen, length, np.int32), _padded(found, length, dtype), np.array(len(chosen), np.int32)

    return compute


@kernel("NonMaxSuppressionWithOverlaps")
def build_non_max_suppression_with_overlaps(node: KernelNode) -> Compute:
    """The same for any measure of overlap, given as a table [boxes, boxes]."""
    from tenfold_kernels.cpu._compiled import boxes as loops

    suppress = loops.suppress_by_table()

    def compute(overlaps: Array, scores: Array, most: Array, overlap: Array, score: Array) -> Array:
        if overlaps.ndim != 2:
            raise invalid(f"overlaps must be 2-D{shape_text(overlaps.shape)}")
        if overlaps.shape[0] != overlaps.shape[1]:
            raise invalid(f"overlaps must be square{shape_text(overlaps.shape)}")
        scores = _checked_scores(scores, len(overlaps))
        limit, least = _scalar(overlap, "overlap_threshold"), _scalar(score, "score_threshold")
        size = _size(most, len(overlaps))
        return _choose(suppress, contiguous(overlaps), scores, size, limit, least).astype(np.int32)

    return compute


@kernel("CombinedNonMaxSuppression")
def build_combined_non_max_suppression(node: KernelNode) -> Compute:
    """Of each image and each class apart: boxes [N, size, 4], their scores and classes [N, size], how many [N]."""
    from tenfold_kernels.cpu._compiled import boxes as loops

    suppress = loops.suppress()
    per_class, clip = bool(node.attrs.get("pad_per_class")), bool(node.attrs["clip_boxes"])

    def compute(boxes: Array, scores: Array, most: Array, total: Array, overlap: Array, score: Array) -> Any:
        if boxes.ndim != 4:
            raise invalid(f"boxes must be 4-D{shape_text(boxes.shape)}")
        if scores.ndim != 3:
            raise invalid(f"scores must be 3-D{shape_text(scores.shape)}")
        if len(boxes) != len(scores):
            raise invalid("boxes and scores must have same batch size")
        if boxes.shape[1] != scores.shape[1]:
            raise invalid(f"scores has incompatible shape{shape_text(scores.shape)}")
        classes = scores.shape[2]
        if boxes.shape[2] not in (1, classes):
            raise invalid("third dimension of boxes must be either 1 or num classes")
        if boxes.shape[3] != 4:
            raise invalid(f"boxes must have 4 columns{shape_text(boxes.shape)}")
        each, size = int(_scalar(most, "max_size_per_class")), int(_scalar(total, "max_total_size"))
        if each <= 0:
            raise invalid(f"max_size_per_class must be positive, got {each}")
        if size <= 0:
            raise invalid(f"max_total_size must be > 0, got {size}")
        limit, least = _overlap_limit(_scalar(overlap, "iou_threshold")), _scalar(score, "score_threshold")
        size = min(size, each * classes) if per_class else size
        allow((len(boxes), size, 4), np.float32, 2)
        out = np.zeros((len(boxes), size, 4), np.float32)
        out_scores, out_classes = np.zeros((2, len(boxes), size), np.float32)
        counts = np.zeros(len(boxes), np.int32)
        for n in range(len(boxes)):
            found = [
                _choose(
                    suppress, np.ascontiguousarray(boxes[n, :, c if boxes.shape[2] != 1 else 0]), scores[n, :, c],
                    min(each, boxes.shape[1]), limit, least,
                )
                for c in range(classes)
            ]  # fmt: skip
            which = np.repeat(np.arange(classes), [len(each_class) for each_class in found])
            chosen = np.concatenate(found) if found else np.empty(0, np.int64)
            best = np.argsort(-scores[n, chosen, which], kind="stable")[:size]
            chosen, which, count = chosen[best], which[best], len(best)
            counts[n] = count
            out[n, :count] = boxes[n, chosen, which if boxes.shape[2] != 1 else 0]
            out_scores[n, :count], out_classes[n, :count] = scores[n, chosen, which], which
        return (np.clip(out, 0, 1) if clip else out), out_scores, out_classes, counts

    return compute
