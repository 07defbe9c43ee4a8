"""Images (`tf.image`): boxes (y1, x1, y2, x2): crops, drawing, random ones, non-maximum suppression; and glimpses.

Follows TensorFlow 1.15's ops/image_ops_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops.array import _alias
from tenfold.ops.random_seed import get_seed

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor

_LOWEST = float("-inf")


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """Crops boxes (y1, x1, y2, x2, as fractions) out of the images that `box_ind` names, at one size."""
    return tensor_op(
        "CropAndResize", name, image=image, boxes=boxes, box_ind=_alias("box_ind", box_ind, "box_indices", box_indices),
        crop_size=crop_size, method=method, extrapolation_value=extrapolation_value,
    )  # fmt: skip


def draw_bounding_boxes(images: Any, boxes: Any, name: str | None = None, colors: Any = None) -> Tensor:
    """Images [N, H, W, 1, 3 or 4] with the outlines of boxes [N, boxes, 4], fractions of a side, drawn on them.

    `colors` [n, 4] go round; without any there are ten.
    """
    if colors is None:
        return tensor_op("DrawBoundingBoxes", name, images=images, boxes=boxes)
    return tensor_op("DrawBoundingBoxesV2", name, images=images, boxes=boxes, colors=colors)


def draw_bounding_boxes_v2(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Tensor:
    """`draw_bounding_boxes` with the arguments in TensorFlow 2's order."""
    return draw_bounding_boxes(images, boxes, name, colors)


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """A random part of an image of `image_size` [3] that covers enough of one of the boxes [batch, n, 4].

    A named tuple: `begin` [3] and `size` [3] for `tf.slice`, `bboxes` [1, 1, 4] for `draw_bounding_boxes`. The whole
    image where `max_attempts` did not find any. As TensorFlow 1.15's `tf.image.sample_distorted_bounding_box`.
    """
    with name_scope(name, "sample_distorted_bounding_box"):
        return apply_op(
            "SampleDistortedBoundingBoxV2",
            name,
            image_size=image_size,
            bounding_boxes=bounding_boxes,
            seed=seed,
            seed2=seed2,
            min_object_covered=min_object_covered,
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            max_attempts=max_attempts,
            use_image_if_no_bounding_boxes=use_image_if_no_bounding_boxes,
        )


def sample_distorted_bounding_box_v2(
    image_size: Any,
    bounding_boxes: Any,
    seed: int = 0,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """`sample_distorted_bounding_box` with the seed of the op alone."""
    seed1, seed2 = get_seed(seed) if seed else (0, 0)
    return sample_distorted_bounding_box(
        image_size, bounding_boxes, seed1, seed2, min_object_covered, aspect_ratio_range, area_range, max_attempts,
        use_image_if_no_bounding_boxes, name,
    )  # fmt: skip


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    name: str | None = None,
) -> Tensor:
    """The indices of the highest-scored boxes that overlap no better one by more than `iou_threshold`."""
    with name_scope(name, "non_max_suppression"):
        iou_threshold = convert_to_tensor(iou_threshold, name="iou_threshold")
        score_threshold = convert_to_tensor(score_threshold, name="score_threshold")
        return tensor_op(
            "NonMaxSuppressionV3", None, boxes=boxes, scores=scores, max_output_size=max_output_size,
            iou_threshold=iou_threshold, score_threshold=score_threshold,
        )  # fmt: skip


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """`non_max_suppression` with the scores of what it chose; with a sigma, overlaps lower scores instead."""
    with name_scope(name, "non_max_suppression_with_scores"):
        iou_threshold = convert_to_tensor(iou_threshold, name="iou_threshold")
        score_threshold = convert_to_tensor(score_threshold, name="score_threshold")
        soft_nms_sigma = convert_to_tensor(soft_nms_sigma, name="soft_nms_sigma")
        chosen, found, _ = apply_op(
            "NonMaxSuppressionV5", None, boxes=boxes, scores=scores, max_output_size=max_output_size,
            iou_threshold=iou_threshold, score_threshold=score_threshold, soft_nms_sigma=soft_nms_sigma,
            pad_to_max_output_size=False,
        )  # fmt: skip
        return chosen, found


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> Any:
    """`non_max_suppression` and how many were chosen: `(selected_indices, valid_outputs)`; zeros fill it if padded."""
    with name_scope(name, "non_max_suppression_padded"):
        iou_threshold = convert_to_tensor(iou_threshold, name="iou_threshold")
        score_threshold = convert_to_tensor(score_threshold, name="score_threshold")
        return apply_op(
            "NonMaxSuppressionV4", None, boxes=boxes, scores=scores, max_output_size=max_output_size,
            iou_threshold=iou_threshold, score_threshold=score_threshold,
            pad_to_max_output_size=pad_to_max_output_size,
        )  # fmt: skip


def non_max_suppression_with_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    name: str | None = None,
) -> Tensor:
    """`non_max_suppression` for any measure of overlap, given as a table [boxes, boxes]."""
    with name_scope(name, "non_max_suppression_overlaps"):
        overlap_threshold = convert_to_tensor(overlap_threshold, name="overlap_threshold")
        return tensor_op(
            "NonMaxSuppressionWithOverlaps", None, overlaps=overlaps, scores=scores, max_output_size=max_output_size,
            overlap_threshold=overlap_threshold, score_threshold=score_threshold,
        )  # fmt: skip


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> Any:
    """Suppression in each image and class apart: boxes [N, n, 1 or classes, 4], scores [N, n, classes].

    A named tuple: `nmsed_boxes` [N, size, 4], `nmsed_scores` and `nmsed_classes` [N, size], `valid_detections` [N].
    """
    with name_scope(name, "combined_non_max_suppression"):
        iou_threshold = convert_to_tensor(iou_threshold, name="iou_threshold")
        score_threshold = convert_to_tensor(score_threshold, name="score_threshold")
        return apply_op(
            "CombinedNonMaxSuppression",
            None,
            boxes=boxes,
            scores=scores,
            max_output_size_per_class=max_output_size_per_class,
            max_total_size=max_total_size,
            iou_threshold=iou_threshold,
            score_threshold=score_threshold,
            pad_per_class=pad_per_class,
            clip_boxes=clip_boxes,
        )


def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
) -> Tensor:
    """A window of `size` [2] about each image's offset [N, 2] of y and x; noise where it leaves the image.

    `centered` offsets count from the middle; `normalized` ones are fractions of a side, −1 to 1 if they are centered.
    """
    return tensor_op(
        "ExtractGlimpse", name, input=input, size=size, offsets=offsets, centered=centered, normalized=normalized,
        uniform_noise=uniform_noise,
    )  # fmt: skip


def extract_glimpse_v2(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Tensor:
    """`extract_glimpse` with noise by name: uniform, gaussian or zero."""
    return tensor_op(
        "ExtractGlimpse", name, input=input, size=size, offsets=offsets, centered=centered, normalized=normalized,
        uniform_noise=noise == "uniform", noise=noise,
    )  # fmt: skip
