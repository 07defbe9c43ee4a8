"""Shapes of image files, boxes, glimpses and scaling: what is known of the outputs, and each wrong input by itself."""

from __future__ import annotations

from typing import Any

import pytest

from support.inferred import shapes_of
from tenfold_core import opdefs
from tenfold_core.shape_inference import infer_shapes
from tenfold_core.tensor_shape import TensorShape

S: list[Any] = []  # a scalar


def test_a_file_of_any_format_may_be_an_animation_where_nobody_says_otherwise() -> None:
    (found,) = infer_shapes(opdefs.get("DecodeImage"), {"channels": 3}, [TensorShape([])], {}.get, 1)

    assert found.ndims is None


CROP, GLIMPSE, SCALE = "DecodeAndCropJpeg", "ExtractGlimpse", "ScaleAndTranslate"
DRAW, DRAW_2, VARIED = "DrawBoundingBoxes", "DrawBoundingBoxesV2", "EncodeJpegVariableQuality"
SAMPLE, SAMPLE_2 = "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2"
NMS, NMS_2, NMS_3, NMS_4, NMS_5 = (f"NonMaxSuppression{version}" for version in ("", "V2", "V3", "V4", "V5"))
OVERLAPS, COMBINED = "NonMaxSuppressionWithOverlaps", "CombinedNonMaxSuppression"
PADDED = {"pad_to_max_output_size": True}
PER_CLASS = {"pad_per_class": True}


def combined(batch: Any, size: Any) -> list[Any]:
    return [[batch, size, 4], [batch, size], [batch, size], [batch]]


@pytest.mark.parametrize(
    ("op", "inputs", "values", "attrs", "outputs"),
    [
        (CROP, [S, [4]], {1: [1, 2, 5, 6]}, {}, [[5, 6, None]]),
        (CROP, [S, [4]], {1: [1, 2, 0, 0]}, {"channels": 3}, [[0, 0, 3]]),
        (CROP, [S, [4]], {1: [1, 2, -1, 6]}, {}, [[None, None, None]]),
        (CROP, [S, [4]], {1: [1, 2, 6, -1]}, {}, [[None, None, None]]),
        (CROP, [S, [4]], {1: [-1, -2, 6, 7]}, {}, [[6, 7, None]]),
        (CROP, [S, [3]], {1: [1, 2, 5]}, {"channels": 1}, [[None, None, 1]]),
        (CROP, [S, [4]], {}, {"channels": 1}, [[None, None, 1]]),
        ("DecodeImage", [S], {}, {"channels": 3}, [None]),
        ("DecodeImage", [S], {}, {"channels": 3, "expand_animations": False}, [[None, None, 3]]),
        (VARIED, [[4, 5, 3], S], {}, {}, [[]]),
        (VARIED, [None, None], {}, {}, [[]]),
        (DRAW, [[2, 8, 9, 3], [2, 5, 4]], {}, {}, [[2, 8, 9, 3]]),
        (DRAW_2, [[2, 8, 9, 3], [2, 5, None], [7, 3]], {}, {}, [[2, 8, 9, 3]]),
        (DRAW_2, [None, None, None], {}, {}, [[None] * 4]),
        (GLIMPSE, [[2, 8, 9, 3], [2], [2, 2]], {1: [4, 5]}, {}, [[2, 4, 5, 3]]),
        (GLIMPSE, [[None, 8, 9, 3], [2], [7, 2]], {}, {}, [[7, None, None, 3]]),
        (GLIMPSE, [[6, 8, 9, 3], [2], None], {}, {}, [[6, None, None, 3]]),
        (SCALE, [[2, 8, 9, 3], [2], [2], [2]], {1: [4, 5]}, {}, [[2, 4, 5, 3]]),
        (SCALE, [[2, 8, 9, 3], [2], None, [None]], {}, {}, [[2, None, None, 3]]),
        (SAMPLE, [[3], [1, 5, 4]], {}, {}, [[3], [3], [1, 1, 4]]),
        (SAMPLE_2, [None, None, S], {}, {}, [[3], [3], [1, 1, 4]]),
        (NMS, [[6, 4], [6], S], {2: 3}, {}, [[None]]),
        (NMS_2, [None, None, S, S], {}, {}, [[None]]),
        (NMS_3, [[6, None], [None], S, S, S], {}, {}, [[None]]),
        (NMS_4, [[6, 4], [6], S, S, S], {2: 3}, {}, [[None], []]),
        (NMS_4, [[6, 4], [6], S, S, S], {2: 3}, PADDED, [[3], []]),
        (NMS_4, [[6, 4], [6], S, S, S], {2: 0}, PADDED, [[0], []]),
        (NMS_4, [[6, 4], [6], S, S, S], {}, PADDED, [[None], []]),
        (NMS_5, [[6, 4], [6], S, S, S, S], {2: 3}, {}, [[None], [None], []]),
        (NMS_5, [[6, 4], [6], S, S, S, S], {2: 3}, PADDED, [[3], [3], []]),
        (OVERLAPS, [[6, 6], [6], S, S, S], {}, {}, [[None]]),
        (OVERLAPS, [[None, 6], [None], S, S, S], {}, {}, [[None]]),
        (COMBINED, [[2, 6, 1, 4], [2, 6, 7], S, S, S, S], {2: 2, 3: 9}, {}, combined(2, 9)),
        (COMBINED, [[2, 6, 7, 4], [2, 6, 7], S, S, S, S], {3: 1}, {}, combined(2, 1)),
        (COMBINED, [[None, 6, 7, 4], [3, 6, 7], S, S, S, S], {2: 2, 3: 9}, {}, combined(3, 9)),
        (COMBINED, [[2, 6, None, 4], [2, 6, 7], S, S, S, S], {3: 9}, {}, combined(2, 9)),
        (COMBINED, [[2, 6, 5, None], [2, 6, 5], S, S, S, S], {3: 9}, {}, combined(2, 9)),
        (COMBINED, [[2, 6, 5, 4], [2, 6, None], S, S, S, S], {2: 2}, {}, combined(2, None)),
        # padded for each class: as many as all classes come to, and no more than asked for in all
        (COMBINED, [[2, 6, 1, 4], [2, 6, 7], S, S, S, S], {2: 2, 3: 9}, PER_CLASS, combined(2, 9)),
        (COMBINED, [[2, 6, 1, 4], [2, 6, 7], S, S, S, S], {2: 2, 3: 90}, PER_CLASS, combined(2, 14)),
        *(
            (COMBINED, [[2, 6, 1, 4], [2, 6, classes], S, S, S, S], values, PER_CLASS, combined(2, None))
            for classes, values in ((None, {2: 2, 3: 9}), (7, {2: 2}), (7, {3: 9}))
        ),
    ],
)  # fmt: skip
def test_what_is_known_of_the_outputs(
    op: str, inputs: list[Any], values: dict[int, Any], attrs: dict[str, Any], outputs: list[Any]
) -> None:
    assert shapes_of(op, inputs, values, attrs) == outputs


@pytest.mark.parametrize(
    ("op", "inputs", "values", "attrs", "said"),
    [
        (CROP, [S, [4]], {}, {"channels": -1}, "channels must be non-negative"),
        (VARIED, [[4, 5], S], {}, {}, "rank"),
        (VARIED, [[4, 5, 3], [1]], {}, {}, "rank"),
        (DRAW_2, [[2, 8, 9], [2, 5, 4], [7, 3]], {}, {}, "rank"),
        (DRAW_2, [[2, 8, 9, 3], [2, 5], [7, 3]], {}, {}, "rank"),
        (DRAW_2, [[2, 8, 9, 3], [2, 5, 3], [7, 3]], {}, {}, "must be 4 but is 3: a box"),
        (DRAW_2, [[2, 8, 9, 3], [2, 5, 4], [7]], {}, {}, "rank"),
        (GLIMPSE, [[2, 8, 9], [2], [2, 2]], {}, {}, "rank"),
        (GLIMPSE, [[2, 8, 9, 3], [2, 1], [2, 2]], {}, {}, "rank"),
        (GLIMPSE, [[2, 8, 9, 3], [3], [2, 2]], {}, {}, "must be 2 but is 3"),
        (GLIMPSE, [[2, 8, 9, 3], [2], [2]], {}, {}, "rank"),
        (GLIMPSE, [[2, 8, 9, 3], [2], [2, 3]], {}, {}, "two coordinates"),
        (GLIMPSE, [[2, 8, 9, 3], [2], [3, 2]], {}, {}, "2 and 3: as many offsets as images"),
        (SCALE, [[2, 8, 9, 3], [2], [3], [2]], {}, {}, "must be 2 but is 3: scale"),
        (SCALE, [[2, 8, 9, 3], [2], [2], [1]], {}, {}, "must be 2 but is 1: scale"),
        (SCALE, [[2, 8, 9, 3], [2], [2], [2, 1]], {}, {}, "rank"),
        (SAMPLE, [[2], [1, 5, 4]], {}, {}, "must be 3 but is 2: image_size"),
        (SAMPLE, [[3, 1], [1, 5, 4]], {}, {}, "rank"),
        (SAMPLE, [[3], [5, 4]], {}, {}, "rank"),
        (SAMPLE, [[3], [1, 5, 3]], {}, {}, "must be 4 but is 3: a box"),
        (SAMPLE_2, [[3], [1, 5, 4], [1]], {}, {}, "rank"),
        (NMS, [[6, 3], [6], S], {}, {}, "must be 4 but is 3: a box"),
        (NMS_2, [[6, 4], [5], S, S], {}, {}, "6 and 5: as many scores"),
        (NMS_4, [[6, 4, 1], [6], S, S, S], {}, {}, "rank"),
        (NMS_4, [[6, 4], [6, 1], S, S, S], {}, {}, "rank"),
        (NMS_4, [[6, 4], [7], S, S, S], {}, {}, "6 and 7: as many scores"),
        (NMS_4, [[6, 4], [6], S, S, S], {2: -1}, PADDED, "max_output_size must be >= 0, got -1"),
        (NMS_5, [[6, 5], [6], S, S, S, S], {}, {}, "must be 4 but is 5: a box"),
        *(
            (NMS_4, [[6, 4], [6], *(S if i != wrong else [1] for i in range(3))], {}, {}, "rank")
            for wrong in range(3)
        ),
        *(
            (NMS_5, [[6, 4], [6], *(S if i != wrong else [1] for i in range(4))], {}, {}, "rank")
            for wrong in range(4)
        ),
        *(
            (OVERLAPS, [[6, 6], [6], *(S if i != wrong else [1] for i in range(3))], {}, {}, "rank")
            for wrong in range(3)
        ),
        *(
            (COMBINED, [[2, 6, 1, 4], [2, 6, 7], *(S if i != wrong else [1] for i in range(4))], {}, {}, "rank")
            for wrong in range(4)
        ),
        (OVERLAPS, [[6, 6, 1], [6], S, S, S], {}, {}, "rank"),
        (OVERLAPS, [[6, 6], [6, 1], S, S, S], {}, {}, "rank"),
        (OVERLAPS, [[6, 5], [6], S, S, S], {}, {}, "6 and 5: overlaps must be square"),
        (OVERLAPS, [[6, 6], [5], S, S, S], {}, {}, "6 and 5: as many scores"),
        (COMBINED, [[2, 6, 4], [2, 6, 7], S, S, S, S], {}, {}, "rank"),
        (COMBINED, [[2, 6, 1, 4], [2, 6], S, S, S, S], {}, {}, "rank"),
        (COMBINED, [[2, 6, 1, 4], [3, 6, 7], S, S, S, S], {}, {}, "2 and 3: as many scores"),
        (COMBINED, [[2, 6, 1, 3], [2, 6, 7], S, S, S, S], {}, {}, "must be 4 but is 3: a box"),
        (COMBINED, [[2, 6, 2, 4], [2, 6, 7], S, S, S, S], {}, {}, "third dimension of boxes must be either 1 or"),
        (COMBINED, [[2, 6, 1, 4], [2, 6, 7], S, S, S, S], {3: 0}, {}, "max_total_size should be > 0"),
    ],
)  # fmt: skip
def test_each_wrong_input_is_told(
    op: str, inputs: list[Any], values: dict[int, Any], attrs: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        shapes_of(op, inputs, values, attrs)
