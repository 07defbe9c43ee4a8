"""Convolutions and their gradients in each way that computes them, against twins in double precision: whole numbers, so
that every order of a sum gives the same. Which way is taken where, and what comes of nothing.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.dirty_memory import make_dirty
from tenfold_kernels.cpu import _convolutions, _convolve, _sparse_gradients
from tenfold_kernels.cpu._compiled import sparse_windows
from tenfold_kernels.cpu._compiled.intrinsics import lanes
from tenfold_kernels.cpu._convolutions import Loops, convolve, filter_gradient, input_gradient
from tenfold_kernels.cpu._windows import Place, Sliding

TYPES = (np.float32, np.float64, np.int32)


def whole(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(-3, 4, shape)


def slide_of(strides: Any, dilations: Any, padding: Any) -> Sliding:
    explicit = () if isinstance(padding, str) else padding
    return Sliding("Conv", False, strides, dilations, padding if isinstance(padding, str) else "EXPLICIT", explicit)


def twins(x: Any, w: Any, slide: Sliding, given: Any = None) -> tuple[Any, Any, Any]:
    """The convolution, and the gradients of the input and of the filter for `given`, a product for each output."""
    pads, outs = [], []
    for i, (size, k) in enumerate(zip(x.shape[1:-1], w.shape, strict=False)):
        reach, stride = (k - 1) * slide.dilations[i] + 1, slide.strides[i]
        if slide.padding == "SAME":
            outs.append(-(-size // stride))
            missing = max((outs[-1] - 1) * stride + reach - size, 0)
            pads.append((missing // 2, missing - missing // 2))
        else:
            pads.append(slide.explicit[i] if slide.explicit else (0, 0))
            outs.append((size + sum(pads[-1]) - reach) // stride + 1)
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    out, of_padded, of_filter = np.zeros((len(x), *outs, w.shape[-1]), int), np.zeros_like(padded), np.zeros_like(w)
    for place in np.ndindex(*outs):
        cut = tuple(
            slice(at * stride, at * stride + (k - 1) * rate + 1, rate)
            for at, stride, k, rate in zip(place, slide.strides, w.shape, slide.dilations, strict=False)
        )
        window = padded[(slice(None), *cut)]
        out[(slice(None), *place)] = np.tensordot(window, w, w.ndim - 1)
        if given is not None:
            one = given[(slice(None), *place)]
            of_filter += np.tensordot(window, one, (0, 0))
            of_padded[(slice(None), *cut)] += np.tensordot(one, w, (1, -1))
    inside = tuple(slice(before, before + size) for (before, _), size in zip(pads, x.shape[1:-1], strict=True))
    return out, of_padded[(slice(None), *inside)], of_filter


#: (input, filter, strides, dilations, padding, whether the compiled convolution takes floats of it)
CASES: list[tuple[Any, Any, Any, Any, Any, bool]] = [
    ((3, 6, 7, 3), (3, 2, 3, 5), (1, 1), (1, 1), "SAME", True),
    ((3, 6, 7, 3), (3, 2, 3, 5), (2, 3), (1, 1), "VALID", True),
    ((2, 7, 6, 3), (3, 2, 3, 17), (2, 2), (2, 1), "SAME", True),
    ((2, 6, 7, 3), (2, 3, 3, 5), (1, 1), (1, 2), "SAME", False),
    ((2, 6, 9, 2), (3, 2, 2, 3), (2, 1), (2, 3), ((1, 2), (0, 3)), False),
    ((2, 5, 6, 2), (3, 2, 2, 4), (1, 1), (1, 1), ((4, 4), (3, 3)), True),
    ((2, 6, 7, 2), (2, 2, 2, 3), (3, 3), (1, 1), ((1, 0), (2, 0)), True),  # pixels that no window reaches
    ((3, 5, 4, 3), (1, 1, 3, 5), (1, 1), (1, 1), "SAME", False),
    ((3, 5, 4, 3), (1, 1, 3, 5), (2, 1), (1, 1), "SAME", True),
    ((2, 4, 5, 6, 2), (2, 3, 2, 2, 3), (2, 1, 2), (1, 2, 1), "SAME", True),
    ((2, 5, 6, 4, 2), (2, 2, 3, 2, 3), (1, 2, 1), (2, 1, 1), "VALID", True),
    ((2, 3, 4, 5, 2), (1, 3, 2, 2, 3), (1, 1, 1), (1, 1, 1), "SAME", True),
    ((2, 5, 4, 5, 2), (3, 2, 2, 2, 17), (1, 1, 1), (2, 1, 1), "SAME", True),
    ((2, 4, 5, 6, 2), (2, 2, 2, 2, 3), (2, 1, 1), (1, 2, 2), "SAME", False),
    ((2, 3, 4, 5, 2), (1, 1, 1, 2, 3), (1, 1, 1), (1, 1, 1), "VALID", False),
    ((2, 3, 4, 5, 2), (2, 1, 1, 2, 3), (1, 1, 1), (1, 1, 1), "VALID", True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_way_gives_the_same_numbers(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats, and integers by products of windows; in one block and in several; large filters row by row."""
    x, w, slide = whole(1, *case[0]), whole(2, *case[1]), slide_of(*case[2:5])
    place = slide.place(x.shape, w.shape[:-2])
    given = whole(3, len(x), *place.out, w.shape[-1])
    expected = twins(x, w, slide, given)
    make_dirty(monkeypatch, _convolutions, _convolve)
    line = place.out[-1] * w[..., 0].size
    for dtype in TYPES:
        loops = Loops(dtype, slide)
        assert (loops.direct(place) is not None) == (case[5] and dtype != np.int32), dtype
        assert loops.winograd(place, w.shape[-1]) is None
        a, b, g = (each.astype(dtype) for each in (x, w, given))
        for block, most_turned, slice_ in ((4 << 20, 3, 384 << 10), (2 * line * a.itemsize, 0, 0), (1, 1 << 30, 0)):
            monkeypatch.setattr(_convolutions, "_BLOCK", block)
            monkeypatch.setattr(_convolutions, "_MOST_TURNED", most_turned)
            monkeypatch.setattr(_convolve, "_SLICE", slice_)
            found = (
                convolve(loops, a, b, place),
                input_gradient(loops, g, b, place),
                filter_gradient(loops, a, g, place),
            )
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"{dtype} {block}")
                assert one.dtype == dtype


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "strides", "dilations", "padding", "row"),
    [
        ((2, 9, 4, 3), (3, 4, 3, 5), (1, 1), (1, 1), "VALID", ((1, 9), (1, 3), (1, 7), 12)),
        ((2, 9, 1, 3), (3, 1, 3, 5), (2, 1), (1, 1), "SAME", ((1, 9), (1, 3), (1, 5), 3)),
        ((2, 9, 4, 3), (3, 4, 3, 5), (2, 7), (1, 1), ((1, 2), (0, 0)), ((1, 9), (1, 3), (1, 5), 12)),
        ((2, 2, 9, 4, 3), (2, 3, 4, 3, 5), (1, 1, 1), (1, 1, 1), "VALID", ((2, 1, 9), (2, 1, 3), (1, 1, 7), 12)),
        ((2, 9, 1, 3), (3, 1, 3, 5), (1, 1), (1, 2), "SAME", ((1, 9), (1, 3), (1, 9), 3)),  # a gap of one place is none
        ((2, 1, 4, 3), (1, 4, 3, 5), (1, 1), (1, 1), "VALID", None),  # is a row
        ((2, 9, 4, 3), (3, 3, 3, 5), (1, 1), (1, 1), "VALID", None),  # narrower than the image
        ((2, 9, 4, 3), (3, 4, 3, 5), (1, 1), (1, 1), "SAME", None),  # more than one position across
        ((2, 9, 4, 3), (3, 4, 3, 5), (1, 3), (1, 1), ((0, 0), (1, 0)), None),  # begins before the image
        ((2, 9, 4, 3), (3, 4, 3, 5), (1, 1), (2, 1), "VALID", None),  # gaps between its rows
        ((2, 9, 4, 3), (3, 4, 3, 5), (1, 1), (1, 2), ((0, 0), (0, 3)), None),  # reaches beyond the image
    ],
)
def test_a_window_as_wide_as_the_image_goes_along_a_row(
    x_shape: Any, w_shape: Any, strides: Any, dilations: Any, padding: Any, row: Any
) -> None:
    x, w, slide = whole(1, *x_shape), whole(2, *w_shape), slide_of(strides, dilations, padding)
    place = slide.place(x.shape, w.shape[:-2])
    given = whole(3, len(x), *place.out, w.shape[-1])

    found = _convolutions._as_row(place)

    assert (found and (found.sizes, found.window, found.out, found.channels)) == row
    for dtype in TYPES:
        loops = Loops(dtype, slide)
        a, b, g = (each.astype(dtype) for each in (x, w, given))
        computed = convolve(loops, a, b, place), input_gradient(loops, g, b, place), filter_gradient(loops, a, g, place)
        for one, other in zip(computed, twins(x, w, slide, given), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_gradient_that_is_mostly_zeros_gives_the_same_numbers(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, slide = whole(1, *case[0]), whole(2, *case[1]), slide_of(*case[2:5])
    place = slide.place(x.shape, w.shape[:-2])
    given = whole(3, len(x), *place.out, w.shape[-1]) * (whole(4, len(x), *place.out, w.shape[-1]) == 3)
    _, of_input, of_filter = twins(x, w, slide, given)
    for name, value in (("_LEAST", 0), ("_RUN", 1), ("_SPARSE", 1), ("_SHARE", 0)):
        monkeypatch.setattr(_sparse_gradients, name, value)
    for dtype in (np.float32, np.float64):
        a, b, g = (each.astype(dtype) for each in (x, w, given))
        loops = Loops(dtype, slide)
        assert loops.sparse is not None
        assert loops.sparse.count(g, a, place) == np.count_nonzero(given)

        np.testing.assert_array_equal(input_gradient(loops, g, b, place), of_input)
        np.testing.assert_array_equal(filter_gradient(loops, a, g, place), of_filter)

        lines, outputs = place.lines, w.shape[-1]
        filters = np.ascontiguousarray(b.reshape(-1, outputs).T)
        alone = np.zeros(filters.size, dtype), np.zeros(x.shape, dtype)
        sparse_windows._of_filter_in_numpy(a.ravel(), g.ravel(), place.geometry, 0, lines, outputs, alone[0])
        sparse_windows._of_input_in_numpy(
            g.ravel(), filters.ravel(), place.geometry, 0, lines, outputs, alone[1].reshape(-1)
        )
        np.testing.assert_array_equal(alone[0].reshape(outputs, -1).T.reshape(w.shape), of_filter)
        np.testing.assert_array_equal(alone[1], of_input)


def test_which_gradients_are_mostly_zeros() -> None:
    """A sixteenth of the elements at most, of large products with windows of some length, all of it finite."""
    slide = slide_of((1, 1), (1, 1), "VALID")
    place = slide.place((2, 40, 32, 1), (3, 32))
    x, w = np.ones((2, 40, 32, 1), np.float32), np.ones((3, 32, 1, 640), np.float32)
    sparse = Loops(np.float32, slide).sparse
    assert sparse is not None
    given = np.zeros((2, 38, 1, 640), np.float32)
    assert sparse.count(given, x, place) == 0
    given.reshape(-1)[::16] = 1
    assert sparse.count(given, x, place) == given.size // 16
    given[0, 0, 0, 1] = 1
    assert sparse.count(given, x, place) is None
    given[...] = 1
    assert sparse.count(given, x, place) is None

    given[...] = 0
    given[1, 2, 0, 3] = 1
    for bad in (np.inf, np.nan):
        w[2, 31, 0, 7] = bad  # times zero it is not a number
        assert sparse.count(given, w, place) is None
        with np.errstate(invalid="ignore"):
            assert np.isnan(input_gradient(Loops(np.float32, slide), given, w, place)).any()
    assert sparse.count(given[..., :100], w, place) is None  # little to multiply
    short = slide.place((2, 400, 400, 1), (3, 3))
    assert sparse.count(np.zeros((2, 398, 398, 5), np.float32), x, short) is None  # three elements side by side
    assert Loops(np.int32, slide).sparse is None


def test_how_windows_fall_into_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    place = slide_of((1, 1), (1, 1), "VALID").place((3, 6, 7, 4), (2, 3))  # 15 lines of 5 windows of 24 elements
    for block, dtype, lines in (
        (5 * 24 * 4 * 2, np.float32, 2),
        (5 * 24 * 4 * 2 - 1, np.float32, 1),
        (5 * 24 * 4 * 2, np.float64, 1),
        (10, np.float32, 1),
        (5 * 24 * 8 * 15, np.float64, 15),
        (4 << 20, np.float64, 15),
    ):
        monkeypatch.setattr(_convolutions, "_BLOCK", block)
        found, cols = _convolutions._blocks(place, 24, dtype)
        assert (found, cols.shape, cols.dtype) == (lines, (lines * 5, 24), np.dtype(dtype)), block

    seen: list[tuple[int, int]] = []
    slide = slide_of((1, 1), (1, 1), "VALID")
    loops = Loops(np.int32, slide)
    for name in ("gather", "scatter"):
        run = getattr(loops, name)
        setattr(loops, name, lambda *given, run=run: (seen.append((given[2], given[3])), run(*given)))
    monkeypatch.setattr(_convolutions, "_BLOCK", 5 * 24 * 4 * 4)
    x, w, g = (np.ones(shape, np.int32) for shape in ((3, 6, 7, 4), (2, 3, 4, 2), (3, 5, 5, 2)))
    monkeypatch.setattr(_convolutions, "_MOST_TURNED", 0)
    convolve(loops, x, w, place)
    filter_gradient(loops, x, g, place)
    input_gradient(loops, g, w, place)
    assert seen == 3 * [(0, 4), (4, 8), (8, 12), (12, 15)]


def test_an_image_that_is_its_own_window_matrix() -> None:
    same: Any = "SAME"
    for strides, padding, shape, window, dense in (
        ((1, 1), same, (2, 3, 4, 5), (1, 1), True),
        ((1, 1), "VALID", (2, 3, 4, 5), (1, 1), True),
        ((1, 1), "VALID", (2, 3, 4, 5), (2, 1), False),
        ((1, 1), same, (2, 3, 4, 5), (1, 2), False),
        ((2, 1), same, (2, 3, 4, 5), (1, 1), False),
        ((1, 2), same, (2, 3, 4, 5), (1, 1), False),
        ((2, 1), ((1, 2), (0, 0)), (2, 3, 4, 5), (1, 1), False),  # as many outputs as pixels, others
        ((1, 1), ((1, 0), (0, 0)), (2, 3, 4, 5), (1, 1), False),
        ((1, 1), ((0, 0), (0, 1)), (2, 3, 4, 5), (1, 1), False),
        ((1, 1, 1), same, (2, 3, 4, 5, 6), (1, 1, 1), True),
        ((1, 1, 1), same, (2, 3, 4, 5, 6), (2, 1, 1), False),
        ((1, 1, 1), same, (2, 3, 4, 5, 6), (1, 2, 1), False),
        ((1, 1, 1), same, (2, 3, 4, 5, 6), (1, 1, 2), False),
        ((2, 1, 1), same, (2, 3, 4, 5, 6), (1, 1, 1), False),
        ((1, 1, 2), same, (2, 3, 4, 5, 6), (1, 1, 1), False),
        ((2, 1, 1), ((1, 2), (0, 0), (0, 0)), (2, 3, 4, 5, 6), (1, 1, 1), False),
        ((1, 1, 2), ((0, 0), (0, 0), (2, 2)), (2, 3, 4, 5, 6), (1, 1, 1), False),
    ):
        place = slide_of(strides, (1,) * len(strides), padding).place(shape, window)
        assert _convolutions._is_dense(place) is dense, (strides, padding, window)
    # one place has nothing to leave out
    place = slide_of((1, 1, 1), (2, 3, 4), same).place((2, 3, 4, 5, 6), (1, 1, 1))
    assert _convolutions._is_dense(place)


def test_a_filter_is_turned_round_where_that_multiplies_little_more() -> None:
    def place(sizes: Any, out: Any, channels: int) -> Place:
        return Place(2, sizes, (1, 1), out, channels, np.zeros(19, np.int64))

    for dtype in (np.float32, np.float64):
        many = lanes(np.dtype(dtype))
        for sizes, out, channels, may in (
            ((3, 4), (2, 2), many, True),  # three times as many
            ((1, 13), (2, 2), many, False),
            ((3, 4), (2, 2), 2 * many, True),
            ((3, 4), (2, 2), many + 1, False),  # computed as twice the vector
            ((1, 3), (1, many), 1, True),
            ((1, 3), (1, many - 1), 1, False),
        ):
            assert _convolutions._may_turn(place(sizes, out, channels), dtype) is may, (sizes, out, channels)


def test_where_the_turned_filter_goes() -> None:
    place = slide_of((1, 1, 1), (3, 1, 2), ((1, 2), (0, 3), (4, 5))).place((2, 9, 8, 7, 4), (2, 3, 2))
    before = place.geometry.copy()

    turned = _convolutions._turned(place, 6)

    # 3 · 1 − 1, 1 · 2 − 0 and 2 · 1 − 4 places before
    expected = [9, 9, 14, 2, 3, 2, 9, 8, 7, 1, 1, 1, 3, 1, 2, 2, 2, -2, 6]
    assert turned.geometry.tolist() == expected
    assert (turned.batch, turned.sizes, turned.window, turned.out) == (2, (9, 9, 14), (2, 3, 2), (9, 8, 7))
    assert turned.channels == 6
    assert place.geometry.tolist() == before.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_what_comes_of_nothing(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No images, no channels, no outputs, windows without places: zeros, or nothing, of the right shape."""
    make_dirty(monkeypatch, _convolutions, _convolve)
    for x, w, padding in (
        ((0, 5, 5, 2), (3, 3, 2, 4), "SAME"),
        ((2, 5, 5, 0), (3, 3, 0, 4), "SAME"),
        ((2, 5, 5, 2), (3, 3, 2, 0), "SAME"),
        ((2, 5, 2, 2), (3, 3, 2, 4), "VALID"),
        ((2, 2, 5, 2), (3, 3, 2, 4), "VALID"),
        ((2, 0, 5, 2), (3, 3, 2, 4), "SAME"),
        ((2, 5, 5, 2), (0, 3, 2, 4), "SAME"),
        ((2, 5, 5, 2), (3, 0, 2, 4), "SAME"),
        ((0, 5, 5, 2), (1, 1, 2, 4), "SAME"),
        ((2, 5, 5, 2), (1, 1, 2, 0), "SAME"),
        ((2, 5, 5, 0), (1, 1, 0, 4), "SAME"),
    ):
        for strides, dilations in (((1, 1), (1, 1)), ((2, 1), (1, 1)), ((1, 1), (1, 2))):
            if padding == "VALID" and dilations != (1, 1):
                continue
            slide = slide_of(strides, dilations, padding)
            loops, place = Loops(dtype, slide), slide.place(x, w[:2])
            image, kernel, given = (np.ones(shape, dtype) for shape in (x, w, (x[0], *place.out, w[3])))

            found = (
                convolve(loops, image, kernel, place),
                input_gradient(loops, given, kernel, place),
                filter_gradient(loops, image, given, place),
            )

            for one, shape in zip(found, (given.shape, x, w), strict=True):
                assert one.tolist() == np.zeros(shape).tolist(), (x, w, strides, dilations)
                assert (one.shape, one.dtype) == (shape, np.dtype(dtype))


def test_which_way_is_asked_first() -> None:
    """Fewer multiplications where that pays, unless something is not finite then; the compiled convolution else."""
    place = slide_of((1, 1), (1, 1), "SAME").place((1, 3, 3, 2), (3, 3))
    x, w = np.ones((1, 3, 3, 2), np.float32), np.ones((3, 3, 2, 2), np.float32)
    asked: list[Any] = []

    def way(name: str, made: Any) -> Any:
        def ask(*given: Any) -> Any:
            asked.append((name, given[-1]))
            return made

        return SimpleNamespace(forward=ask, filter_gradient=ask)

    for first, second, answer, order in (
        (way("winograd", 1), way("direct", 2), 1, ["winograd"]),
        (way("winograd", None), way("direct", 2), 2, ["winograd", "direct"]),
        (None, way("direct", 2), 2, ["direct"]),
    ):
        widths: list[int] = []
        loops: Any = SimpleNamespace(
            winograd=lambda _, width, widths=widths, first=first: (widths.append(width), first)[1],
            direct=lambda _, second=second: second,
            sparse=None,
        )
        asked.clear()
        assert convolve(loops, x, w, place) == answer
        assert asked == [(name, place) for name in order]
        asked.clear()
        assert filter_gradient(loops, x, np.ones((1, 3, 3, 5), np.float32), place) == answer
        assert asked == [(name, place) for name in order]
        assert widths == [2, 5]


def test_loops_prepare_for_products(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[int] = []
    monkeypatch.setattr(_convolutions, "prepare", lambda: prepared.append(1))

    Loops(np.int32, slide_of((1, 1), (1, 1), "SAME"))

    assert prepared == [1]


def test_fewer_multiplications_are_for_float32_and_windows_that_visit_every_pixel() -> None:
    place = slide_of((1, 1), (1, 1), "SAME").place((8, 16, 16, 64), (3, 3))
    for dtype, strides, takes in ((np.float32, (1, 1), True), (np.float64, (1, 1), False), (np.float32, (2, 1), False)):
        loops = Loops(dtype, slide_of(strides, (1, 1), "SAME"))
        assert (loops.winograd(place, 64) is not None) is takes
        assert loops.winograd(place, 63) is None
