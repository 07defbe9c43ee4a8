"""Convolutions with fewer multiplications: against the direct way, at edges, in threads, where they are not taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dirty_memory import make_dirty
from tenfold_kernels import parallel, registry
from tenfold_kernels.cpu import _windows, _winograd
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


def where(shape: Any, out: Any, window: Any, before: Any = (0, 0)) -> Place:
    geometry = np.array([1, *shape[1:3], 1, *window, 1, *out, *[1] * 6, 0, *before, shape[3]], np.int64)
    return Place(shape[0], shape[1:3], window, out, shape[3], geometry)


def of_float32() -> Winograd:
    fast = Winograd.of(np.float32, sliding("SAME"))
    assert fast is not None
    return fast


def test_from_which_size_on_it_is_taken() -> None:
    fast = of_float32()
    for batch, out, ins, outs, window, fits in (
        # 16 outputs a tile, 9 · 16 · 16 multiplications each: four million at 114 tiles
        (114, (4, 4), 16, 16, (3, 3), True),
        (113, (4, 4), 16, 16, (3, 3), False),
        # 4 outputs a tile, 25 · 16 · 32 multiplications each: four million at 82 tiles

        (81, (2, 2), 16, 32, (5, 5), False),
        (82, (2, 2), 16, 32, (5, 5), True),
        # 48 tiles
        (48, (4, 4), 64, 64, (3, 3), True),
        (47, (4, 4), 64, 64, (3, 3), False),
        (24, (8, 4), 64, 64, (3, 3), True),
        (24, (4, 8), 64, 64, (3, 3), True),
        (6, (16, 8), 64, 64, (3, 3), True),
        (5, (16, 8), 64, 64, (3, 3), False),
        # tiles over the edge: 32 outputs for 24, and for 20
        (64, (6, 4), 64, 64, (3, 3), True),
        (64, (5, 4), 64, 64, (3, 3), False),
        (64, (4, 5), 64, 64, (3, 3), False),
        # less than a tile
        (64, (3, 16), 64, 64, (3, 3), False),
        (64, (16, 3), 64, 64, (3, 3), False),
        (64, (1, 16), 64, 64, (5, 5), False),
        # other windows
        (64, (8, 8), 64, 64, (4, 4), False),
        (64, (8, 8), 64, 64, (3, 5), False),
        (64, (8, 8), 64, 64, (5, 3), False),
        (64, (8, 8), 64, 64, (1, 1), False),
        (64, (8, 8), 64, 64, (6, 6), False),
        # no channels, and channels that fill no vector
        (64, (8, 8), 0, 64, (3, 3), False),
        (64, (8, 8), 64, 0, (3, 3), False),
        (64, (8, 8), 65, 64, (3, 3), False),
        (64, (8, 8), 64, 65, (3, 3), False),
    ):
        place = where((batch, *out, ins), out, window, (1, 1))
        assert fast.fits(place, outs) is fits, (batch, out, ins, outs, window)
    for before in ((-1, 0), (0, -1)):
        assert not fast.fits(where((64, 8, 8, 64), (8, 8), (3, 3), before), 64)
    assert fast.fits(where((64, 8, 8, 64), (8, 8), (3, 3), (0, 0)), 64)


def test_bounds_themselves_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, place = of_float32(), where((4, 6, 4, 16), (6, 4), (3, 3))
    multiplications, tiles, waste = 4 * 24 * 9 * 16 * 16, 8, 32 / 24
    for bounds, fits in (
        ((multiplications, tiles, waste), True),
        ((multiplications + 1, tiles, waste), False),
        ((multiplications, tiles + 1, waste), False),
        ((multiplications, tiles, waste - 1e-9), False),
    ):
        for name, bound in zip(("_LEAST", "_LEAST_TILES", "_MOST_WASTE"), bounds, strict=True):
            monkeypatch.setattr(_winograd, name, bound)
        assert fast.fits(place, 16) is fits, bounds


def test_its_plans() -> None:
    """Of 3 × 3 in tiles of 4 outputs and of 5 × 5 in tiles of 2; whole tiles only in a gradient of the filter."""
    fast = of_float32()
    for place, width, whole_tiles, expected in (
        # a block: 512 KB hold 18 images of 2 · 2 tiles of 16 + 32 channels at 36 places, and 27,648 bytes each
        (
            where((40, 7, 8, 16), (7, 8), (3, 3), (1, 2)), 32, False,
            [4, 18, fast._lanes, 7, 8, 16, 7, 8, 32, 1, 2, 9, 10, 7, 8, 2, 2, 18 * 4 * 16 + 16, 18 * 4 * 32 + 16],
        ),
        (
            where((40, 7, 8, 16), (7, 8), (3, 3), (1, 2)), 32, True,
            [4, 18, fast._lanes, 7, 8, 16, 7, 8, 32, 1, 2, 10, 10, 8, 8, 2, 2, 18 * 4 * 16 + 16, 18 * 4 * 32 + 16],
        ),
        (
            where((3, 9, 5, 16), (5, 3), (5, 5)), 48, False,
            [2, 3, fast._lanes, 9, 5, 16, 5, 3, 48, 0, 0, 9, 7, 5, 3, 3, 2, 3 * 6 * 16 + 16, 3 * 6 * 48 + 16],
        ),
        (
            where((3, 9, 5, 16), (5, 3), (5, 5)), 48, True,
            [2, 3, fast._lanes, 9, 5, 16, 5, 3, 48, 0, 0, 10, 8, 6, 4, 3, 2, 3 * 6 * 16 + 16, 3 * 6 * 48 + 16],
        ),
        # an image that is larger than a block
        (
            where((3, 60, 60, 64), (60, 60), (3, 3), (1, 1)), 64, False,
            [4, 1, fast._lanes, 60, 60, 64, 60, 60, 64, 1, 1, 62, 62, 60, 60, 15, 15, 225 * 64 + 16, 225 * 64 + 16],
        ),
    ):  # fmt: skip
        plan = fast._plan(place, width, whole_tiles=whole_tiles)
        assert plan == dict(zip(fast._fields, expected, strict=True))
        assert fast._vector(plan).tolist() == expected


def test_a_share_is_of_whole_blocks() -> None:
    place = where((40, 8, 8, 16), (7, 8), (3, 3))
    images = (1 << 25) // (7 * 8 * 9 * 16 * 32) + 1
    for block, expected in ((1, images), (images, images), (images - 1, 2 * images - 2), (images + 3, images + 3)):
        assert Winograd._share(place, 32, block) == expected


def test_scratch_for_images_is_zero_however_it_was_left() -> None:
    fast = of_float32()
    plan = fast._plan(where((2, 6, 6, 16), (6, 6), (3, 3), (1, 1)), 32, whole_tiles=True)
    for width in (32, 0):
        _windows.scratch(1 << 20, np.float32).fill(np.nan)

        padded, spread, v, m = fast._scratch(plan, width) if width else fast._scratch(plan)

        assert padded.tolist() == [0.0] * (10 * 10 * 16)
        assert spread.tolist() == [0.0] * (8 * 8 * width)
        assert (len(v), len(m)) == (36 * plan["v_place"], 36 * plan["m_place"])
        assert np.isnan(v).all()
        assert np.isnan(m).all()
        last = padded
        for part in (spread, v, m):  # one behind the other
            assert not part.size or part.ctypes.data == last.ctypes.data + last.nbytes
            last = part if part.size else last


@pytest.mark.usefixtures("eager")
def test_nothing_depends_on_what_memory_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """… nor on which thread computes first: the gradients of images are added up in their order."""
    x, kernel, place, fast, _ = made((6, 9, 8, 16, 16, 3, "SAME"))
    given = sample(6, 9, 8, 16)
    plain = fast.forward(x, kernel, place), fast.filter_gradient(x, given, place)
    shared: list[tuple[int, int]] = []

    def in_parts(run: Any, count: int, least: int) -> None:
        shared.append((count, least))
        for first in reversed(range(0, count, 2)):
            run(first, first + 2)

    make_dirty(monkeypatch, _winograd)
    monkeypatch.setattr(_winograd, "in_parts", in_parts)
    monkeypatch.setattr(_winograd, "_BLOCK", 1)
    _windows.scratch(1 << 20, np.float32).fill(np.nan)

    parts = fast.forward(x, kernel, place), fast.filter_gradient(x, given, place)

    np.testing.assert_array_equal(parts[0], plain[0])
    assert_near(parts[1], plain[1])
    least = (1 << 25) // (9 * 8 * 9 * 16 * 16) + 1
    assert shared == [(6, least), (6, least)]


@pytest.mark.usefixtures("eager")
def test_none_is_given_for_what_is_not_finite() -> None:
    x, kernel, place, fast, _ = made((4, 8, 8, 16, 16, 3, "SAME"))
    given = sample(4, 8, 8, 16)
    for bad in (np.inf, np.nan):
        odd = x.copy()
        odd[3, 2, 1, 0] = bad
        assert fast.forward(odd, kernel, place) is None
        with registry.quiet():
            assert fast.filter_gradient(odd, given, place) is None
        odd = given.copy()
        odd[0, 2, 1, 0] = bad
        with registry.quiet():
            assert fast.filter_gradient(x, odd, place) is None
    assert fast.forward(x, kernel, place) is not None
