"""Convolutions with fewer multiplications: against the direct way, at edges, in threads, where they are not taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_kernels import parallel
from tenfold_kernels.cpu import _winograd
from tenfold_kernels.cpu._convolve import Direct
from tenfold_kernels.cpu._windows import Place, Sliding
from tenfold_kernels.cpu._winograd import Winograd

RNG = np.random.default_rng(11)
#: Of the largest result: ten times what is seen, a twentieth of what bfloat16 or TF32 would give.
BOUND = 3e-5
ONES = (1, 1)

#: (batch, height, width, input channels, output channels, window, padding); sizes with tiles that hang over.
CASES = [
    (4, 16, 16, 16, 32, 3, "SAME"),
    (3, 15, 17, 32, 16, 3, "SAME"),
    (5, 14, 13, 16, 48, 3, "VALID"),
    (4, 15, 16, 16, 80, 5, "SAME"),
    (6, 13, 14, 48, 16, 5, "VALID"),
    (2, 20, 20, 16, 16, 3, "EXPLICIT"),
]


def sample(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def sliding(padding: str) -> Sliding:
    explicit = ((2, 1), (0, 2)) if padding == "EXPLICIT" else ()
    return Sliding("Conv2D", False, ONES, ONES, padding, explicit)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small convolutions are worth it here."""
    monkeypatch.setattr(_winograd, "_LEAST", 1)
    monkeypatch.setattr(_winograd, "_LEAST_TILES", 1)
    monkeypatch.setattr(_winograd, "_MOST_WASTE", 2.0)


def made(case: Any) -> tuple[np.ndarray, np.ndarray, Place, Winograd, Direct]:
    batch, height, width, ins, outs, window, padding = case
    x, kernel = sample(batch, height, width, ins), sample(window, window, ins, outs)
    slide = sliding(padding)
    fast, direct = Winograd.of(np.float32, slide), Direct.of(np.float32)
    assert fast is not None
    assert direct is not None
    return x, kernel, slide.place(x.shape, (window, window)), fast, direct


def assert_near(got: np.ndarray | None, expected: np.ndarray) -> None:
    assert got is not None
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= BOUND * np.abs(expected).max()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_gives_what_the_direct_way_gives(case: Any) -> None:
    x, kernel, place, fast, direct = made(case)
    assert fast.fits(place, kernel.shape[-1])

    y = fast.forward(x, kernel, place)
    given = sample(place.batch, *place.out, kernel.shape[-1])
    of_filter = fast.filter_gradient(x, given, place)

    assert_near(y, direct.forward(x, kernel, place))
    assert_near(of_filter, direct.filter_gradient(x, given, place))


@pytest.mark.parametrize("window", [3, 5])
def test_the_op_and_its_gradients_take_it_and_are_adjoint(
    ops: Any, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Direct, "forward", None)
    monkeypatch.setattr(Direct, "filter_gradient", None)
    x, w, g = sample(8, 16, 16, 32), sample(window, window, 32, 64), sample(8, 16, 16, 64)
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": b"SAME"}
    sizes = [np.array(v.shape, np.int32) for v in (x, w)]

    y = ops.run("Conv2D", [x, w], **attrs)
    of_input = ops.run("Conv2DBackpropInput", [sizes[0], w, g], **attrs)
    of_filter = ops.run("Conv2DBackpropFilter", [x, sizes[1], g], **attrs)

    total = np.vdot(y.astype(np.float64), g)
    scale = np.abs(y * g).sum()
    assert abs(total - np.vdot(of_input.astype(np.float64), x)) < 1e-6 * scale
    assert abs(total - np.vdot(of_filter.astype(np.float64), w)) < 1e-6 * scale


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_pixel_that_is_not_finite_spoils_only_the_outputs_that_see_it(ops: Any, bad: float) -> None:
    x, w = sample(8, 16, 16, 32), sample(3, 3, 32, 64)
    x[3, 7, 9, 5] = bad

    y = ops.run("Conv2D", [x, w], strides=[1, 1, 1, 1], padding=b"SAME")
    of_filter = ops.run(
        "Conv2DBackpropFilter", [x, np.array(w.shape, np.int32), np.ones_like(y)], strides=[1, 1, 1, 1], padding=b"SAME"
    )

    odd = ~np.isfinite(y)
    assert odd[3, 6:9, 8:11].all()
    assert odd.sum() == 9 * 64
    assert (~np.isfinite(of_filter)).sum() == 9 * 64
    assert not np.isfinite(of_filter[:, :, 5]).any()


def test_threads_share_the_images_and_give_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    x, kernel, place, fast, _ = made((30, 12, 12, 64, 64, 3, "SAME"))
    given = sample(30, 12, 12, 64)
    alone = fast.forward(x, kernel, place), fast.filter_gradient(x, given, place)
    monkeypatch.setattr(_winograd, "_SHARE", 1)
    monkeypatch.setattr(parallel, "_width", lambda: 3)

    shared = [(fast.forward(x, kernel, place), fast.filter_gradient(x, given, place)) for _ in range(2)]

    np.testing.assert_array_equal(shared[0][0], alone[0])
    assert_near(shared[0][1], alone[1])
    np.testing.assert_array_equal(shared[0][1], shared[1][1])


@pytest.mark.parametrize(
    ("shape", "width", "window"),
    [
        ((8, 16, 16, 66), 64, 3),  # channels that fill no vectors, however short
        ((8, 16, 16, 64), 66, 3),
        ((8, 16, 16, 64), 64, 4),  # another window
        ((1, 4, 4, 64), 64, 3),  # few tiles
        ((64, 5, 5, 64), 64, 3),  # tiles that are mostly over the edge
        ((6, 16, 16, 16), 16, 3),  # little work
    ],
)
def test_where_it_does_not_pay_it_is_not_taken(shape: Any, width: int, window: int) -> None:
    slide = sliding("SAME")
    fast = Winograd.of(np.float32, slide)
    assert fast is not None

    assert not fast.fits(slide.place(shape, (window, window)), width)


def test_other_types_strides_and_dilations_never_take_it() -> None:
    assert Winograd.of(np.float64, sliding("SAME")) is None
    assert Winograd.of(np.float32, Sliding("Conv2D", False, (2, 1), ONES, "SAME", ())) is None
    assert Winograd.of(np.float32, Sliding("Conv2D", False, ONES, (1, 2), "SAME", ())) is None
    assert Winograd.of(np.float32, Sliding("Conv3D", False, (1, 1, 1), (1, 1, 1), "SAME", ())) is None
