"""Scaling and moving of images by sampling kernels, against sums written out here; and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import image_scale

F = np.float32
IMAGES = np.random.default_rng(5).uniform(0, 1, (2, 4, 6, 3)).astype(F)


def lanczos(radius: float, x: float) -> float:
    if x == 0:
        return 1.0
    angle = math.pi * x
    return radius * math.sin(angle) * math.sin(angle / radius) / angle**2 if x < radius else 0.0


def mitchell(x: float) -> float:
    if x < 1:
        return (7 * x**3 - 12 * x**2 + 16 / 3) / 6
    return (-7 / 3 * x**3 + 12 * x**2 - 20 * x + 32 / 3) / 6 if x < 2 else 0.0


def keys(x: float) -> float:
    if x < 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0


KERNELS: dict[str, tuple[float, Any]] = {
    "lanczos1": (1, lambda x: lanczos(1, x)),
    "lanczos3": (3, lambda x: lanczos(3, x)),
    "lanczos5": (5, lambda x: lanczos(5, x)),
    "gaussian": (1.5, lambda x: math.exp(-2 * x * x) if x < 1.5 else 0.0),
    "box": (1, lambda x: 1.0 if x < 0.5 else 0.5 if x == 0.5 else 0.0),
    "triangle": (1, lambda x: max(1 - x, 0.0)),
    "keyscubic": (2, keys),
    "mitchellcubic": (2, mitchell),
}
WAYS = [((5, 9), (1.3, 1.7), (0.25, -0.4)), ((2, 3), (0.45, 0.65), (0.0, 0.3)), ((7, 4), (2.5, 0.3), (-1.1, 2.15)),
        ((4, 6), (1.0, 1.0), (9.0, 0.0))]  # fmt: skip


def weights(kernel: str, size: int, count: int, scale: float, move: float, antialias: bool = True) -> Any:
    """[count, size]: how much each pixel is of each output; none where the output lies outside."""
    radius, weigh = KERNELS[kernel]
    wide = max(1 / scale, 1.0) if antialias else 1.0
    table = np.zeros((count, size))
    for i in range(count):
        at = (i + 0.5) / scale - move / scale
        if not 0 <= at <= size:
            continue
        for k in range(
            max(math.ceil(at - radius * wide - 0.5), 0), min(math.floor(at + radius * wide - 0.5), size - 1) + 1
        ):
            table[i, k] = weigh(abs(k + 0.5 - at) / wide)
        total = table[i].sum()
        table[i] = table[i] / total if abs(total) > 1e-30 else 0
    return table


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
def test_images_and_gradients(ops: Any, kernel: str, antialias: bool, way: Any) -> None:
    (height, width), (scale_y, scale_x), (move_y, move_x) = way
    how = [F([scale_y, scale_x]), F([move_y, move_x])]
    rows = weights(kernel, 4, height, float(how[0][0]), float(how[1][0]), antialias)
    columns = weights(kernel, 6, width, float(how[0][1]), float(how[1][1]), antialias)
    attrs = {"kernel_type": kernel.encode(), "antialias": antialias}
    for images, slack in ((IMAGES, 1e-4), ((IMAGES * 200).astype(np.uint8), 2e-2)):
        found = ops.run("ScaleAndTranslate", [images, np.int32([height, width]), *how], **attrs)
        assert found.dtype == F
        np.testing.assert_allclose(found, np.einsum("ph,nhwc,qw->npqc", rows, images.astype(np.float64), columns),
                                   atol=slack)  # fmt: skip
    given = np.random.default_rng(6).uniform(-1, 1, (2, height, width, 3)).astype(F)
    found = ops.run("ScaleAndTranslateGrad", [given, IMAGES, *how], **attrs)
    np.testing.assert_allclose(found, np.einsum("ph,npqc,qw->nhwc", rows, given.astype(np.float64), columns), atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_weights_at_the_ends_of_a_kernel(kernel: str) -> None:
    """At whole and half pixels, where each piece of a kernel begins and ends."""
    radius, weigh = KERNELS[kernel]
    found_radius, found = image_scale._KERNELS[kernel]
    at = np.arange(0, 12) / 2.0
    assert found_radius == radius
    np.testing.assert_allclose(found(at), [weigh(x) for x in at.tolist()], atol=1e-12)


def test_no_images_and_a_single_pixel(ops: Any) -> None:
    how = [F([2, 2]), F([0, 0])]
    assert ops.run("ScaleAndTranslate", [IMAGES[:0], np.int32([8, 12]), *how]).shape == (0, 8, 12, 3)
    assert ops.run("ScaleAndTranslateGrad", [np.zeros((0, 8, 12, 3), F), IMAGES[:0], *how]).shape == (0, 4, 6, 3)
    one = ops.run("ScaleAndTranslate", [IMAGES[:, :1, :1], np.int32([2, 2]), *how])
    np.testing.assert_allclose(one, np.broadcast_to(IMAGES[:, :1, :1], (2, 2, 2, 3)), rtol=1e-6)


SIZE, SCALE, MOVE = np.int32([3, 2]), F([1, 1]), F([0, 0])
TWO = ["ScaleAndTranslate", "ScaleAndTranslateGrad"]


def inputs_of(op: str, images: Any = IMAGES, scale: Any = SCALE, move: Any = MOVE) -> list[Any]:
    return [images, SIZE, scale, move] if op == "ScaleAndTranslate" else [images, IMAGES, scale, move]


@pytest.mark.parametrize("op", TWO)
@pytest.mark.parametrize(
    ("part", "value", "text"),
    [
        ("scale", F(1), r"^scale must be 1-dimensional\[\]$"),
        ("scale", F([1]), r"^scale must have two elements\[1\]$"),
        ("scale", F([1, 0]), "^Scale must be greater than zero, got "),
        ("scale", F([-1, 1]), "^Scale must be greater than zero, got "),
        ("scale", F([np.nan, 1]), "^Scale must be greater than zero, got "),
        ("move", F([[0, 0]]), r"^translation must be 1-dimensional\[1,2\]$"),
        ("move", F([0, 0, 0]), r"^translation must have two elements\[3\]$"),
        ("move", F([np.nan, 0]), "^scale 1.0 and translation nan lead nowhere$"),
        ("move", F([0, np.inf]), "^scale 1.0 and translation inf lead nowhere$"),
        ("scale", F([1e-44, 1]), "^scale .* and translation 0.0 lead nowhere$"),
        ("images", IMAGES[0], r"^(input image|input_grad) must be 4-dimensional\[4,6,3\]$"),
        ("images", IMAGES[..., :0], "^(input image|input_grad) must have at least one channel$"),
        ("images", IMAGES[:, :0], "^(input image|input_grad) must be of non-zero size$"),
        ("images", IMAGES[:, :, :0], "^(input image|input_grad) must be of non-zero size$"),
    ],
)
def test_what_leads_nowhere(ops: Any, op: str, part: str, value: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs_of(op, **{part: value}))


@pytest.mark.parametrize("op", TWO)
def test_kernels_that_there_are_not(ops: Any, op: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^Unrecognized kernel type: odd; there are lanczos1, lanc"):
        ops.run(op, inputs_of(op), kernel_type=b"odd")


@pytest.mark.parametrize(
    ("op", "inputs", "text"),
    [
        (TWO[0], [IMAGES, SIZE[:1], SCALE, MOVE], r"^output_shape_t must be 1-dimensional, of two elements\[1\]$"),
        (TWO[0], [IMAGES, SIZE[None], SCALE, MOVE], r"^output_shape_t must be 1-dimensional, of two elements\[1,2\]$"),
        (TWO[0], [IMAGES, np.int32([0, 2]), SCALE, MOVE], "^output dimensions must be positive$"),
        (TWO[0], [IMAGES, np.int32([3, 0]), SCALE, MOVE], "^output dimensions must be positive$"),
        (TWO[1], [IMAGES, IMAGES[0], SCALE, MOVE], r"^original_image must be 4-dimensional\[4,6,3\]$"),
        (TWO[1], [IMAGES, IMAGES[:1], SCALE, MOVE], r"^input_grad \[2,4,6,3\] and original_image \[1,4,6,3\] do not"),
        (TWO[1], [IMAGES, IMAGES[..., :1], SCALE, MOVE], r"^input_grad \[2,4,6,3\] and original_image \[2,4,6,1\] do"),
    ],
)
def test_sizes_that_do_not_fit(ops: Any, op: str, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs)


def test_memory_is_asked_for_first(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what lies between rows and columns, and for the weights: of a triangle three or five pixels an output."""
    asked: list[Any] = []
    monkeypatch.setattr(image_scale, "allow", lambda dims, dtype, times: asked.append((*dims, np.dtype(dtype), times)))
    how = {"kernel_type": b"triangle"}
    ops.run("ScaleAndTranslate", [IMAGES, np.int32([5, 9]), F([1, 0.5]), MOVE], **how)
    assert asked == [(2, 5, 9, 3, F, 3), (5, 3, np.float64, 4), (9, 5, np.float64, 4)]
    asked.clear()
    ops.run("ScaleAndTranslate", [IMAGES, np.int32([5, 2]), SCALE, MOVE], **how)
    ops.run("ScaleAndTranslateGrad", [IMAGES[:, :2, :1], IMAGES, SCALE, MOVE], **how)
    ops.run("ScaleAndTranslateGrad", [np.zeros((2, 9, 1, 3), F), IMAGES, SCALE, MOVE], **how)
    assert [each for each in asked if each[-1] != 4] == [(2, 5, 6, 3, F, 3), (2, 4, 6, 3, F, 2), (2, 9, 6, 3, F, 2)]


def test_outputs_at_the_edges_are_inside(ops: Any) -> None:
    """Moved by half a pixel the first of one more lies at 0, and the last at the end."""
    row = F([2, 3, 5, 7]).reshape(1, 1, 4, 1)
    how = [F([1, 1]), F([0, 0.5])]
    found = ops.run("ScaleAndTranslate", [row, np.int32([1, 5]), *how], kernel_type=b"triangle")
    np.testing.assert_allclose(found.ravel(), [2, 2.5, 4, 6, 7], rtol=1e-6)
