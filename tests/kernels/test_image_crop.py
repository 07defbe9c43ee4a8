"""Crops brought to one size, and their gradients, against sums written out here; and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import image_crop
from tenfold_kernels.cpu._compiled import sampling

F = np.float32
IMAGES = np.random.default_rng(7).uniform(-1, 1, (2, 4, 5, 2)).astype(F)
#: Inside, turned round, partly outside, wholly outside, a point.
BOXES = F([[0.1, 0.2, 0.7, 0.91], [0.9, 0.1, 0.3, 0.6], [-0.2, 0.5, 0.6, 1.3], [2, 2, 3, 3], [0.5, 0.5, 0.5, 0.5]])
INDEX = np.int32([1, 0, 1, 0, 0])


def place(first: float, last: float, size: int, count: int, i: int) -> float:
    if count == 1:
        return 0.5 * (first + last) * (size - 1)
    return first * (size - 1) + i * (last - first) * (size - 1) / (count - 1)


def crops(images: Any, boxes: Any, index: Any, size: tuple[int, int], nearest: bool, outside: float) -> Any:
    """In double, one element after the other."""
    out = np.full((len(boxes), *size, images.shape[3]), outside, np.float64)
    height, width = images.shape[1:3]
    for m, (y1, x1, y2, x2) in enumerate(np.asarray(boxes, np.float64).tolist()):
        for i in range(size[0]):
            y = place(y1, y2, height, size[0], i)
            for j in range(size[1]):
                x = place(x1, x2, width, size[1], j)
                if not (0 <= y <= height - 1 and 0 <= x <= width - 1):
                    continue
                image = images[index[m]].astype(np.float64)
                if nearest:
                    out[m, i, j] = image[math.floor(y + 0.5), math.floor(x + 0.5)]
                    continue
                top, left = math.floor(y), math.floor(x)
                bottom, right = math.ceil(y), math.ceil(x)
                upper = image[top, left] + (image[top, right] - image[top, left]) * (x - left)
                lower = image[bottom, left] + (image[bottom, right] - image[bottom, left]) * (x - left)
                out[m, i, j] = upper + (lower - upper) * (y - top)
    return out


@pytest.mark.parametrize("size", [(3, 4), (1, 1), (1, 5), (6, 1)])
@pytest.mark.parametrize("method", [b"bilinear", b"nearest"])
def test_crops(ops: Any, method: bytes, size: tuple[int, int]) -> None:
    found = ops.run("CropAndResize", [IMAGES, BOXES, INDEX, np.int32(size)], method=method, extrapolation_value=0.25)
    np.testing.assert_allclose(found, crops(IMAGES, BOXES, INDEX, size, method == b"nearest", 0.25), atol=1e-5)
    assert found.dtype == F
    whole = (IMAGES * 50).astype(np.int16)
    found = ops.run("CropAndResize", [whole, BOXES, INDEX, np.int32(size)], method=method)
    np.testing.assert_allclose(found, crops(whole, BOXES, INDEX, size, method == b"nearest", 0), atol=1e-3)


def test_the_work_is_shared_by_boxes(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def in_parts(work: Any, total: int, least: int) -> None:
        asked.append((total, least))
        for box in range(total):
            work(box, box + 1)

    inputs = [IMAGES, BOXES, INDEX, np.int32([3, 4])]
    expected = ops.run("CropAndResize", inputs)
    monkeypatch.setattr(image_crop, "in_parts", in_parts)
    monkeypatch.setattr(image_crop, "_SHARE", 100)
    assert ops.run("CropAndResize", inputs).tolist() == expected.tolist()
    assert asked == [(5, 100 // (3 * 4 * 2) + 1)]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("method", [b"bilinear", b"nearest"])
def test_the_gradient_of_the_image_is_the_transpose(ops: Any, method: bytes, kind: Any) -> None:
    """Of each pixel of the image: what the crops of an image of only that pixel weigh."""
    given = np.random.default_rng(8).uniform(-1, 1, (5, 3, 4, 2)).astype(F)
    found = ops.run("CropAndResizeGradImage", [given, BOXES, INDEX, np.int32(IMAGES.shape)], method=method,
                    T=dtypes.as_dtype(kind))  # fmt: skip
    assert (found.dtype, found.shape) == (kind, IMAGES.shape)
    expected = np.zeros(IMAGES.shape)
    for pixel in np.ndindex(IMAGES.shape):
        alone = np.zeros(IMAGES.shape)
        alone[pixel] = 1
        expected[pixel] = (crops(alone, BOXES, INDEX, (3, 4), method == b"nearest", 0) * given).sum()
    np.testing.assert_allclose(found, expected, atol=5e-3 if kind is np.float16 else 1e-5)


@pytest.mark.parametrize("size", [(3, 4), (1, 1), (1, 5), (6, 1)])
def test_the_gradient_of_the_boxes(ops: Any, size: tuple[int, int]) -> None:
    """By differences: no sample lies on a pixel, where the slope jumps."""
    boxes = F([[0.11, 0.22, 0.71, 0.93], [0.91, 0.13, 0.37, 0.64], [-0.21, 0.53, 0.61, 1.31], [2, 2, 3, 3]])
    given = np.random.default_rng(9).uniform(-1, 1, (4, *size, 2)).astype(F)
    for images, slack in ((IMAGES, 2e-4), ((IMAGES * 50).astype(np.int32), 1e-2)):
        found = ops.run("CropAndResizeGradBoxes", [given, images, boxes, INDEX[:4]])
        assert (found.dtype, found.shape) == (F, (4, 4))
        step = 1e-6
        for box in range(4):
            for side in range(4):
                ends = []
                for sign in (1, -1):
                    moved = boxes.astype(np.float64)
                    moved[box, side] += sign * step
                    ends.append((crops(images, moved, INDEX[:4], size, False, 0) * given).sum())
                assert found[box, side] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=slack)


def test_samples_at_the_edges_count_in_the_gradient_of_the_boxes(ops: Any) -> None:
    """From edge to edge along one side: the other side moves the samples that lie on the edges, too."""
    boxes, step = F([[0, 0.22, 1, 0.93], [0.11, 0, 0.71, 1]]), 1e-6
    given = np.random.default_rng(9).uniform(-1, 1, (2, 3, 4, 2)).astype(F)
    found = ops.run("CropAndResizeGradBoxes", [given, IMAGES, boxes, INDEX[:2]])
    for box, side in ((0, 1), (0, 3), (1, 0), (1, 2)):
        ends = []
        for sign in (1, -1):
            moved = boxes.astype(np.float64)
            moved[box, side] += sign * step
            ends.append((crops(IMAGES, moved, INDEX[:2], (3, 4), False, 0) * given).sum())
        assert found[box, side] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=2e-4)


def test_crops_of_nothing(ops: Any) -> None:
    none, at = np.zeros((0, 4), F), np.zeros(0, np.int32)
    assert ops.run("CropAndResize", [IMAGES, none, at, np.int32([3, 4])]).shape == (0, 3, 4, 2)
    assert ops.run("CropAndResize", [IMAGES[..., :0], BOXES, INDEX, np.int32([3, 4])]).shape == (5, 3, 4, 0)
    found = ops.run(
        "CropAndResizeGradImage", [np.zeros((0, 3, 4, 2), F), none, at, np.int32(IMAGES.shape)], T=dtypes.float32
    )
    assert (found.shape, found.any()) == (IMAGES.shape, False)
    assert ops.run("CropAndResizeGradImage", [np.zeros((5, 3, 4, 0), F), BOXES, INDEX, np.int32([2, 4, 5, 0])],
                   T=dtypes.float32).shape == (2, 4, 5, 0)  # fmt: skip
    assert ops.run("CropAndResizeGradBoxes", [np.zeros((0, 3, 4, 2), F), IMAGES, none, at]).shape == (0, 4)


GIVEN = np.zeros((5, 3, 4, 2), F)
BAD_BOXES = [
    (BOXES[0], INDEX, r"^boxes must have shape \[num_boxes, 4\], got \[4\]$"),
    (BOXES[:, :3], INDEX, r"^boxes must have shape \[num_boxes, 4\], got \[5,3\]$"),
    (BOXES, INDEX[:4], r"^box_index has incompatible shape: \[4\]$"),
    (BOXES, INDEX[:, None], r"^box_index has incompatible shape: \[5,1\]$"),
    (np.where(BOXES == 2, np.inf, BOXES), INDEX, "^boxes values must be finite$"),
    (np.where(BOXES == 2, np.nan, BOXES), INDEX, "^boxes values must be finite$"),
]
OPS = {
    "CropAndResize": lambda boxes, index, given: [IMAGES, boxes, index, np.int32([3, 4])],
    "CropAndResizeGradImage": lambda boxes, index, given: [given, boxes, index, np.int32(IMAGES.shape)],
    "CropAndResizeGradBoxes": lambda boxes, index, given: [given, IMAGES, boxes, index],
}


def attrs_of(op: str) -> dict[str, Any]:
    return {"T": dtypes.float32} if op == "CropAndResizeGradImage" else {}


@pytest.mark.parametrize("op", OPS)
def test_boxes_that_cannot_be(ops: Any, op: str) -> None:
    for boxes, index, text in BAD_BOXES:
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ops.run(op, OPS[op](boxes.astype(F), index, GIVEN), **attrs_of(op))
    for wrong in (-1, 2):
        index = np.int32([1, 0, wrong, 0, 0])
        with pytest.raises(errors.OutOfRangeError, match=r"^box_index has values outside \[0, batch_size\): \[0, 2\)$"):
            ops.run(op, OPS[op](BOXES, index, GIVEN), **attrs_of(op))
    if op == "CropAndResize":
        return
    for given, text in (
        (GIVEN[0], r"^grads must be 4-D, of crops that are not empty, got shape \[3,4,2\]$"),
        (GIVEN[:, :0], r"^grads must be 4-D, of crops that are not empty, got shape \[5,0,4,2\]$"),
        (GIVEN[:, :, :0], r"^grads must be 4-D, of crops that are not empty, got shape \[5,3,0,2\]$"),
        (GIVEN[:4], "^boxes and grads have incompatible shape: 5 and 4$"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ops.run(op, OPS[op](BOXES, INDEX, given), **attrs_of(op))


@pytest.mark.parametrize(
    ("op", "inputs", "text"),
    [
        ("CropAndResize", [IMAGES[0], BOXES, INDEX, np.int32([3, 4])], r"^input image must be 4-D\[4,5,2\]$"),
        (
            "CropAndResize",
            [IMAGES, BOXES, INDEX, np.int32([3])],
            r"^crop_size must have two elements, got shape \[1\]$",
        ),
        ("CropAndResize", [IMAGES, BOXES, INDEX, np.int32([0, 4])], "^crop dimensions must be positive, got 0 x 4$"),
        ("CropAndResize", [IMAGES, BOXES, INDEX, np.int32([3, -1])], "^crop dimensions must be positive, got 3 x -1$"),
        ("CropAndResize", [IMAGES[:, :0], BOXES, INDEX, np.int32([3, 4])], "^image dimensions must be positive$"),
        ("CropAndResize", [IMAGES[:, :, :0], BOXES, INDEX, np.int32([3, 4])], "^image dimensions must be positive$"),
        ("CropAndResizeGradImage", [GIVEN, BOXES, INDEX, np.int32([[2, 4, 5, 2]])], r"^image_size must be 1-D, .*1,4"),
        (
            "CropAndResizeGradImage",
            [GIVEN, BOXES, INDEX, np.int32([2, 4, 5])],
            r"^image_size must hold 4 sizes, got \[",
        ),
        (
            "CropAndResizeGradImage",
            [GIVEN, BOXES, INDEX, np.int32([2, 4, -5, 2])],
            r"^image_size must hold 4 sizes, got \[2,4,-5,2\]$",
        ),
        ("CropAndResizeGradImage", [GIVEN, BOXES, INDEX, np.int32([2, 4, 5, 3])], "^image_size and grads are incomp"),
        ("CropAndResizeGradImage", [GIVEN, BOXES, INDEX, np.int32([2, 0, 5, 2])], "^image dimensions must be positive"),
        ("CropAndResizeGradImage", [GIVEN, BOXES, INDEX, np.int32([2, 4, 0, 2])], "^image dimensions must be positive"),
        ("CropAndResizeGradBoxes", [GIVEN, IMAGES[0], BOXES, INDEX], r"^input image must be 4-D\[4,5,2\]$"),
        ("CropAndResizeGradBoxes", [GIVEN[..., :1], IMAGES, BOXES, INDEX], "^image, grads depth differ$"),
        ("CropAndResizeGradBoxes", [GIVEN, IMAGES[:, :0], BOXES, INDEX], "^image dimensions must be positive$"),
        ("CropAndResizeGradBoxes", [GIVEN, IMAGES[:, :, :0], BOXES, INDEX], "^image dimensions must be positive$"),
    ],
)
def test_images_and_sizes_that_cannot_be(ops: Any, op: str, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs, **attrs_of(op))


def test_an_index_that_changes_meanwhile_is_refused(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, op in (("crop", "CropAndResize"), ("crop_gradient", "CropAndResizeGradImage")):
        for bad in (0, 3):
            monkeypatch.setattr(sampling, name, lambda bad=bad: lambda *given: bad)
            with pytest.raises(errors.OutOfRangeError, match=r"^box_index has values outside"):
                ops.run(op, OPS[op](BOXES, INDEX, GIVEN), **attrs_of(op))


@pytest.mark.parametrize("bad", [-1, 2])
def test_the_loops_say_which_box_is_of_no_image(bad: int) -> None:
    index = np.int32([1, 0, bad, 0, 0])
    image = np.zeros((3, *IMAGES.shape[1:]), F)[:2]  # a third one, should a loop write there
    assert sampling.crop()(image, BOXES, index, False, F(0), 0, 5, GIVEN.copy()) == 2
    assert sampling.crop_gradient()(GIVEN, BOXES, index, False, image) == 2


def test_memory_is_asked_for_first(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(image_crop, "allow", lambda dims, dtype: asked.append((tuple(dims), np.dtype(dtype))))
    ops.run("CropAndResize", OPS["CropAndResize"](BOXES, INDEX, GIVEN))
    ops.run("CropAndResizeGradImage", OPS["CropAndResizeGradImage"](BOXES, INDEX, GIVEN), T=dtypes.float32)
    assert asked == [((5, 3, 4, 2), F), ((2, 4, 5, 2), F)]
