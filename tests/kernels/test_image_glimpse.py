"""Glimpses: which window each pair of switches means, what lies outside, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import image_glimpse

F = np.float32
IMAGES = np.arange(1, 2 * 6 * 8 + 1, dtype=F).reshape(2, 6, 8, 1)
OPS = ["ExtractGlimpse", "ExtractGlimpseV2"]


def window(image: Any, top: int, left: int, height: int, width: int) -> Any:
    """Zero outside."""
    out = np.zeros((height, width, image.shape[2]), F)
    for y in range(height):
        for x in range(width):
            if 0 <= top + y < image.shape[0] and 0 <= left + x < image.shape[1]:
                out[y, x] = image[top + y, left + x]
    return out


def glimpse(ops: Any, op: str, size: tuple[int, int], offsets: Any, images: Any = IMAGES, **how: Any) -> Any:
    given = {"uniform_noise": False, "noise": b"zero", **how}
    return ops.run(op, [images, np.int32(size), F(offsets)], **given)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("size", [(2, 4), (3, 5), (9, 2), (1, 1)])
@pytest.mark.parametrize("offset", [(0.0, 0.0), (0.5, -0.25), (1.0, 1.0), (-1.2, 0.3), (2.0, 3.0), (-5.0, 9.0)])
def test_where_a_glimpse_lies(
    ops: Any, op: str, centered: bool, normalized: bool, size: tuple[int, int], offset: tuple[float, float]
) -> None:
    """Fractions reach from -1 to 1 where they are counted from the middle, and from 0 to 1 from the corner; the first
    version takes the offset for the middle of the glimpse always, and halves pixels counted from the middle."""
    sides = np.array(IMAGES.shape[1:3], np.float64)
    at = np.array(offset) * (sides if normalized else 1)
    if centered:
        at = (at / 2 if normalized or op == "ExtractGlimpse" else at) + sides / 2
    if op == "ExtractGlimpse" or (centered and normalized):
        at = at - np.array(size) / 2
    top, left = np.trunc(at).astype(int)
    found = glimpse(ops, op, size, [offset, (0, 0)], centered=centered, normalized=normalized)
    assert (found.dtype, found.shape) == (F, (2, *size, 1))
    assert found[0].tolist() == window(IMAGES[0], top, left, *size).tolist()


@pytest.mark.parametrize("far", [np.nan, np.inf, -np.inf, 1e30, -1e30])
def test_far_away_there_is_nothing(ops: Any, far: float) -> None:
    for op in OPS:
        found = glimpse(ops, op, (2, 2), [(far, 0), (0, 0)], centered=False, normalized=False)
        assert not found[0].any()
        assert found[1].any()


def test_images_of_nothing(ops: Any) -> None:
    for shape in ((0, 6, 8, 1), (2, 0, 8, 1), (2, 6, 8, 0)):
        found = glimpse(ops, "ExtractGlimpseV2", (2, 3), np.zeros((shape[0], 2)), np.zeros(shape, F))
        assert (found.shape, found.any()) == ((shape[0], 2, 3, shape[3]), False)


class Chance:
    """Each number is the same."""

    def random(self, shape: Any, dtype: Any) -> Any:
        return np.full(shape, 0.25, dtype)

    def standard_normal(self, shape: Any, dtype: Any) -> Any:
        return np.full(shape, self.normal, dtype)

    normal = 0.5


def test_noise_is_like_the_picture() -> None:
    image = np.stack([np.arange(4, dtype=F).reshape(2, 2), F([[10, 10], [30, 30]])], axis=-1)
    out = np.full((2, 3, 2), -1, F)
    chance: Any = Chance()
    image_glimpse._noise(out, image, chance, True, "zero")
    np.testing.assert_allclose(out, np.full((2, 3, 2), 30 * 0.25))
    image_glimpse._noise(out, image + 2, chance, True, "gaussian")
    np.testing.assert_allclose(out, np.full((2, 3, 2), 2 + 30 * 0.25))
    image_glimpse._noise(out, image, chance, False, "zero")
    assert not out.any()
    for kind in ("gaussian", "uniform", ""):
        image_glimpse._noise(out, image, chance, False, kind)
        np.testing.assert_allclose(out[0, 0], [1.5 + 0.5 * np.sqrt(1.25), 20 + 0.5 * 10], rtol=1e-6)
        assert (out == out[0, 0]).all()
    chance.normal = 3.0  # of each channel no more than its largest, and no less than its least
    image_glimpse._noise(out, image, chance, False, "gaussian")
    assert out[1, 2].tolist() == [3, 30]
    chance.normal = -3.0
    image_glimpse._noise(out, image, chance, False, "gaussian")
    assert out[1, 2].tolist() == [0, 10]


@pytest.mark.parametrize("op", OPS)
def test_only_a_glimpse_that_reaches_out_has_noise(ops: Any, op: str) -> None:
    """By default it is as even as the least and the greatest pixel allow, and each call draws anew."""
    inside = ops.run(op, [IMAGES, np.int32([2, 2]), F([(0, 0), (0, 0)])])
    assert inside[0].tolist() == IMAGES[0, 2:4, 3:5].tolist()
    compute, _ = ops.build(op, [IMAGES, np.int32([9, 9]), F([(0, 0), (0, 0)])], {})
    first, second = (compute(IMAGES, np.int32([9, 9]), F([(0, 0), (0, 0)])) for _ in range(2))
    assert first.tolist() != second.tolist()
    assert 1 <= first[0].min() <= first[0].max() <= 48
    assert 49 <= first[1].min() <= first[1].max() <= 96
    found = ops.run(op, [IMAGES, np.int32([9, 9]), F([(0, 0), (0, 0)])], uniform_noise=False, noise=b"gaussian")
    assert len(set(found[0].ravel().tolist())) > 50


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("images", "size", "offsets", "text"),
    [
        (IMAGES[0], [2, 2], [(0, 0)], r"^input must be 4-dimensional \(batch_size, height, width, depth\)\[6,8,1\]$"),
        (IMAGES, [2], [(0, 0)] * 2, r"^input must be a vector of size 2 \(height, width\)\[1\]$"),
        (IMAGES, [[2, 2]], [(0, 0)] * 2, r"^input must be a vector of size 2 \(height, width\)\[1,2\]$"),
        (IMAGES, [0, 2], [(0, 0)] * 2, "^the size of a glimpse must be positive, got 0 x 2$"),
        (IMAGES, [2, 0], [(0, 0)] * 2, "^the size of a glimpse must be positive, got 2 x 0$"),
        (IMAGES, [-1, 2], [(0, 0)] * 2, "^the size of a glimpse must be positive, got -1 x 2$"),
        (IMAGES, [2, 2], [(0, 0)], r"^input must be a matrix of an offset \(y, x\) an image, got \[1,2\]$"),
        (IMAGES, [2, 2], [(0, 0, 0)] * 2, r"^input must be a matrix of an offset \(y, x\) an image, got \[2,3\]$"),
    ],
)
def test_glimpses_that_cannot_be(ops: Any, op: str, images: Any, size: Any, offsets: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, [images, np.int32(size), F(offsets)])


def test_kinds_of_noise(ops: Any) -> None:
    for kind in (b"", b"gaussian", b"uniform", b"zero"):
        glimpse(ops, "ExtractGlimpse", (2, 2), [(0, 0)] * 2, noise=kind)
    with pytest.raises(errors.InvalidArgumentError, match=r"^noise should be uniform, gaussian or zero, got 'odd'$"):
        glimpse(ops, "ExtractGlimpse", (2, 2), [(0, 0)] * 2, noise=b"odd")


def test_memory_is_asked_for_first(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(image_glimpse, "allow", lambda dims, dtype: asked.append((dims, dtype)))
    glimpse(ops, "ExtractGlimpse", (3, 5), [(0, 0)] * 2)
    assert asked == [((2, 3, 5, 1), F)]


@pytest.mark.parametrize(
    ("size", "corner", "reaches_out"),
    [
        ((2, 3), (1, 2), False),
        ((6, 8), (0, 0), False),
        ((2, 3), (4, 5), False),
        ((2, 3), (5, 5), True),
        ((2, 3), (4, 6), True),
        ((2, 3), (-1, 2), True),
        ((2, 3), (1, -1), True),
        ((2, 9), (1, 1), True),  # as wide as where it begins and where the image ends together
        ((9, 2), (3, 1), True),
    ],
)
def test_noise_is_made_only_where_it_is_seen(size: tuple[int, int], corner: tuple[int, int], reaches_out: bool) -> None:
    filled: list[Any] = []

    def fill(out: Any, image: Any) -> None:
        filled.append(image)
        out[...] = 0

    out = np.full((*size, 1), -1, F)
    image_glimpse._cut(IMAGES[0], out, *corner, fill)
    assert out.tolist() == window(IMAGES[0], *corner, *size).tolist()
    assert len(filled) == reaches_out


def test_an_image_of_one_pixel(ops: Any) -> None:
    found = glimpse(ops, "ExtractGlimpseV2", (1, 1), [(0, 0)], F([[[[7]]]]))
    assert found.tolist() == [[[[7]]]]
    found = glimpse(ops, "ExtractGlimpseV2", (9, 3), [(0, 40)], F([[[[7]]]]), centered=False, normalized=False)
    assert not found.any()
    found = glimpse(ops, "ExtractGlimpseV2", (3, 9), [(5, 0)], F([[[[7]]]]), centered=False, normalized=False)
    assert not found.any()
