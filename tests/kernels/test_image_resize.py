"""Resizing of images against sums written out here, by each method and each pair of flags; and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import image_resize

F = np.float32
IMAGES = np.random.default_rng(5).uniform(0, 1, (2, 4, 5, 3)).astype(F)
FLAGS = [{}, {"align_corners": True}, {"half_pixel_centers": True}]
METHODS = ["ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor", "ResizeArea"]
SIZES = [(7, 3), (2, 10), (1, 1), (4, 5), (8, 10), (3, 1)]


def place(size: int, count: int, i: int, corners: bool, half: bool) -> float:
    """Where output i of `count` lies among `size` pixels."""
    scale = (size - 1) / (count - 1) if corners and count > 1 else size / count
    return (i + 0.5) * scale - 0.5 if half else i * scale


def cubic(a: float, x: float) -> float:
    """The weight of a pixel so far away."""
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def weights(op: str, size: int, count: int, corners: bool = False, half: bool = False) -> Any:
    """[count, size]: how much each pixel is of each output."""
    table = np.zeros((count, size))
    for i in range(count):
        at = place(size, count, i, corners, half)
        low = math.floor(at)
        if op == "ResizeBilinear":
            share = at - low
            table[i, max(low, 0)] += 1 - share
            table[i, min(math.ceil(at), size - 1)] += share
        elif op == "ResizeNearestNeighbor":
            scale = (size - 1) / (count - 1) if corners and count > 1 else size / count
            exact = (i + 0.5) * scale if half else i * scale
            table[i, min(max(math.floor(exact + 0.5) if corners else math.floor(exact + 1e-9), 0), size - 1)] = 1
        elif op == "ResizeBicubic":
            step = round((at - low) * 1024) / 1024
            for k in range(-1, 3):
                weight = cubic(-0.5 if half else -0.75, k - step)
                if 0 <= low + k < size or not half:
                    table[i, min(max(low + k, 0), size - 1)] += weight
            if half:
                table[i] /= table[i].sum()
        else:
            scale = (size - 1) / (count - 1) if corners and count > 1 else size / count
            scale = scale or size / count
            first, last = i * scale, (i + 1) * scale
            for k in range(math.floor(first), math.ceil(last)):
                table[i, min(k, size - 1)] += (min(last, k + 1) - max(first, k)) / scale
    return table


def resized(op: str, images: Any, size: tuple[int, int], **flags: bool) -> Any:
    how = {"corners": flags.get("align_corners", False), "half": flags.get("half_pixel_centers", False)}
    rows, columns = weights(op, images.shape[1], size[0], **how), weights(op, images.shape[2], size[1], **how)
    return np.einsum("ph,nhwc,qw->npqc", rows, images.astype(np.float64), columns)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize("op", METHODS)
def test_each_method(ops: Any, op: str, flags: dict[str, bool], size: tuple[int, int]) -> None:
    if op == "ResizeArea" and "half_pixel_centers" in flags:
        return
    for images, slack in ((IMAGES, 2e-4), ((IMAGES * 200).astype(np.uint8), 5e-2), (IMAGES.astype(np.float64), 2e-4)):
        found = ops.run(op, [images, np.int32(size)], **flags)
        assert found.dtype == (images.dtype if op == "ResizeNearestNeighbor" else F)
        np.testing.assert_allclose(found, resized(op, images, size, **flags), atol=slack)
        assert not np.may_share_memory(found, images)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"])
def test_gradients_are_transposes(ops: Any, op: str, flags: dict[str, bool], kind: Any) -> None:
    how = {"corners": flags.get("align_corners", False), "half": flags.get("half_pixel_centers", False)}
    if op == "ResizeBicubic" and kind is np.float16:
        return  # halves have no bicubic gradient
    for size in SIZES:
        given = np.random.default_rng(6).uniform(-1, 1, (2, *size, 3)).astype(F)
        image = IMAGES.astype(kind)
        if op == "ResizeNearestNeighbor":
            given = given.astype(kind)
        rest = np.int32([4, 5]) if op == "ResizeNearestNeighbor" else image
        found = ops.run(f"{op}Grad", [given, rest], **flags)
        assert (found.dtype, found.shape) == (kind, IMAGES.shape)
        rows, columns = weights(op, 4, size[0], **how), weights(op, 5, size[1], **how)
        expected = np.einsum("ph,npqc,qw->nhwc", rows, given.astype(np.float64), columns)
        slack = 2e-2 if kind is np.float16 else 2e-3
        np.testing.assert_allclose(found, expected, atol=slack, rtol=2e-3)


def test_sums_of_halves_are_rounded_once(ops: Any) -> None:
    given = np.full((1, 64, 64, 1), 1.001, np.float16)
    found = ops.run("ResizeNearestNeighborGrad", [given, np.int32([1, 1])])
    assert found.tolist() == [[[[float(np.float16(4096 * np.float64(np.float16(1.001))))]]]]


def test_bilinear_work_is_shared_by_rows(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def in_parts(work: Any, total: int, least: int) -> None:
        asked.append((total, least))
        for row in range(total):
            work(row, row + 1)

    expected = ops.run("ResizeBilinear", [IMAGES, np.int32([7, 3])])
    monkeypatch.setattr(image_resize, "in_parts", in_parts)
    monkeypatch.setattr(image_resize, "_SHARE", 100)
    assert ops.run("ResizeBilinear", [IMAGES, np.int32([7, 3])]).tolist() == expected.tolist()
    assert asked == [(14, 100 // 9 + 1)]


def test_images_of_nothing(ops: Any) -> None:
    for op in METHODS:
        assert ops.run(op, [IMAGES[:0], np.int32([3, 2])]).shape == (0, 3, 2, 3)
        if op in ("ResizeBilinear", "ResizeNearestNeighbor"):
            assert ops.run(op, [IMAGES[..., :0], np.int32([3, 2])]).shape == (2, 3, 2, 0)
            continue
        with pytest.raises(errors.InvalidArgumentError, match=r"^image must have at least one channel$"):
            ops.run(op, [IMAGES[..., :0], np.int32([3, 2])])
    for op in ("ResizeBilinearGrad", "ResizeBicubicGrad"):
        assert ops.run(op, [np.zeros((0, 7, 3, 3), F), IMAGES[:0]]).shape == (0, 4, 5, 3)


@pytest.mark.parametrize("op", [*METHODS, "ResizeNearestNeighborGrad"])
@pytest.mark.parametrize(
    ("images", "size", "text"),
    [
        (IMAGES[0], [3, 2], r"^input must be 4-dimensional\[4,5,3\]$"),
        (IMAGES, [3], r"^shape_t must be 1-dimensional with two elements \[1\]$"),
        (IMAGES, [[3, 2]], r"^shape_t must be 1-dimensional with two elements \[1,2\]$"),
        (IMAGES, [0, 2], "^output dimensions must be positive$"),
        (IMAGES, [3, 0], "^output dimensions must be positive$"),
        (IMAGES, [3, -1], "^output dimensions must be positive$"),
        (IMAGES[:, :0], [3, 2], "^input image must be of non-zero size$"),
        (IMAGES[:, :, :0], [3, 2], "^input image must be of non-zero size$"),
    ],
)
def test_images_and_sizes_that_cannot_be(ops: Any, op: str, images: Any, size: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, [images, np.int32(size)])


@pytest.mark.parametrize("op", ["ResizeBilinearGrad", "ResizeBicubicGrad"])
@pytest.mark.parametrize(
    ("given", "image", "text"),
    [
        (IMAGES[0], IMAGES, r"^input_grad and original_image must be 4-dimensional: \[4,5,3\], \[2,4,5,3\]$"),
        (IMAGES, IMAGES[0], r"^input_grad and original_image must be 4-dimensional: \[2,4,5,3\], \[4,5,3\]$"),
        (IMAGES, IMAGES[:, :0], r"^original_image must have pixels, got shape \[2,0,5,3\]$"),
        (IMAGES, IMAGES[:, :, :0], r"^original_image must have pixels, got shape \[2,4,0,3\]$"),
    ],
)
def test_gradients_that_cannot_be(ops: Any, op: str, given: Any, image: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, [given, image])


def test_flags_that_exclude_each_other(ops: Any) -> None:
    both = {"align_corners": True, "half_pixel_centers": True}
    for op in METHODS[:3]:
        with pytest.raises(
            errors.InvalidArgumentError, match=r"^If half_pixel_centers is True, align_corners must be "
        ):
            ops.run(op, [IMAGES, np.int32([3, 2])], **both)


def test_memory_is_asked_for_first(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for what lies between: one of the sizes is the old one, the other the new one."""
    asked: list[Any] = []
    monkeypatch.setattr(image_resize, "allow", lambda dims, dtype, times: asked.append((*dims, dtype, times)))
    for size in ((7, 3), (2, 10), (8, 10)):
        ops.run("ResizeArea", [IMAGES, np.int32(size)])
    assert asked == [(2, 7 * 5, 3, F, 3), (2, 4 * 10, 3, F, 3), (2, 80, 3, F, 3)]


def test_the_same_size_keeps_what_is_not_finite(ops: Any) -> None:
    """Between two pixels of which one is infinite there would be no number."""
    images = IMAGES.copy()
    images[0, 1, 2, 0], images[1, 0, 0, 1] = np.inf, np.nan
    np.testing.assert_array_equal(ops.run("ResizeBilinear", [images, np.int32([4, 5])]), images)


def test_one_pixel_is_every_pixel(ops: Any) -> None:
    for op in METHODS:
        for flags in FLAGS[:2] if op == "ResizeArea" else FLAGS:
            found = ops.run(op, [IMAGES[:, :1, :1], np.int32([3, 4])], **flags)
            np.testing.assert_allclose(found, np.broadcast_to(IMAGES[:, :1, :1], (2, 3, 4, 3)), rtol=1e-6)
