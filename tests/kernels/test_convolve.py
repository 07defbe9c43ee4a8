"""What surrounds the compiled convolution: padded images, packed filters, which windows it takes, how threads share it.

The numbers that it gives are compared in test_convolutions.py and test_nn_conv.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from support.dirty_memory import make_dirty
from tenfold_kernels.cpu import _convolve
from tenfold_kernels.cpu._convolve import Direct, _Frame, _packed, _padded, _widened
from tenfold_kernels.cpu._windows import Place, Sliding

if TYPE_CHECKING:
    import pytest


def place(shape: Any, window: Any, strides: Any = None, dilations: Any = None, padding: Any = "VALID") -> Place:
    rank = len(window)
    explicit = () if isinstance(padding, str) else padding
    slide = Sliding(
        "Conv", False, strides or (1,) * rank, dilations or (1,) * rank, "EXPLICIT" if explicit else padding, explicit
    )
    return slide.place(shape, window)


FRAMES: list[tuple[Place, bool, tuple[int, int, int]]] = [
    (place((2, 6, 7, 3), (3, 2)), False, (1, 6, 7)),
    (place((2, 6, 7, 3), (3, 2), (4, 4)), False, (1, 6, 7)),
    (place((2, 6, 7, 3), (3, 2), None, (2, 5)), False, (1, 6, 7)),
    (place((2, 6, 7, 3), (3, 2), padding="SAME"), True, (1, 8, 8)),
    (place((2, 6, 7, 3), (3, 2), padding=((0, 1), (0, 0))), True, (1, 7, 7)),
    (place((2, 6, 7, 3), (3, 2), padding=((0, 0), (2, 0))), True, (1, 6, 9)),
    # a stride that leaves the last rows alone
    (place((2, 6, 7, 3), (2, 2), (3, 3), padding=((1, 0), (0, 0))), True, (1, 7, 7)),
    (place((2, 6, 7, 3), (2, 2), (3, 4), padding=((0, 0), (0, 3))), True, (1, 6, 10)),
    (place((2, 6, 7, 3), (3, 2), (2, 1), (3, 4), padding=((1, 4), (2, 3))), True, (1, 11, 12)),
    (place((2, 4, 5, 6, 3), (2, 3, 2)), False, (4, 5, 6)),
    (place((2, 4, 5, 6, 3), (2, 3, 2), (2, 1, 3), padding="SAME"), True, (4, 7, 6)),
    (place((2, 4, 5, 6, 3), (3, 1, 1), padding="SAME"), True, (6, 5, 6)),
]


def test_the_padded_image_of_a_place() -> None:
    for at, is_padded, (depth, height, width) in FRAMES:
        frame = _Frame(at)
        assert frame.is_padded == is_padded, at
        assert (frame.channels, frame.depth, frame.height, frame.width) == (3, depth, height, width), at
        assert frame.elements == depth * height * width * 3
        assert frame.steps == (height * width * 3, width * 3, 3)


def test_scratch_for_a_padded_image_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    make_dirty(monkeypatch, _convolve)

    padded = _padded(_Frame(place((2, 2, 3, 2), (3, 1), padding="SAME")), np.float64)

    assert (padded.tolist(), padded.dtype) == ([0.0] * 24, np.float64)
    assert _padded(_Frame(place((2, 2, 3, 2), (2, 1))), np.float32).shape == (0,)


def test_columns_are_widened_by_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    make_dirty(monkeypatch, _convolve)
    x = np.arange(6, dtype=np.float32).reshape(2, 1, 3)

    assert _widened(x, 3) is x
    assert _widened(x, 5).tolist() == [[[0, 1, 2, 0, 0]], [[3, 4, 5, 0, 0]]]
    assert _widened(x, 4).dtype == np.float32


def test_filters_are_packed_tile_by_tile() -> None:
    for lanes, widths, count, tiles in (
        (2, (4, 2, 1), 14, ((0, 8), (8, 12), (12, 14))),
        (2, (4, 2, 1), 16, ((0, 8), (8, 16))),
        (2, (4, 2, 1), 8, ((0, 8),)),
        (4, (2, 1), 12, ((0, 8), (8, 12))),
        (4, (2, 1), 4, ((0, 4),)),
    ):
        weights = np.arange(3 * count).reshape(3, count)
        expected = [number for first, last in tiles for number in weights[:, first:last].ravel()]
        assert _packed(weights, lanes, widths).tolist() == expected, (lanes, widths, count)


def test_which_windows_it_takes() -> None:
    direct = Direct.of(np.float32)
    assert direct is not None
    far = 1 << 22
    for at, takes in (
        (place((2, 6, 7, 3), (3, 2)), True),
        (place((2, 6, 7, 3), (3, 2), None, (2, 1)), True),
        (place((2, 6, 7, 3), (3, 2), None, (1, 2)), False),
        (place((2, 6, 7, 0), (3, 2)), False),
        (place((2, 0, 7, 3), (3, 2), padding="SAME"), False),
        (place((0, 6, 7, 3), (3, 2)), True),
        # 1 × (far + 10) elements for an image of 5, and one more
        (place((1, 1, 5, 1), (1, 2), padding=((0, 0), (far + 5, 0))), True),
        (place((1, 1, 5, 1), (1, 2), padding=((0, 0), (far + 6, 0))), False),
        (place((1, 1, 5, 2), (1, 2), padding=((0, 0), (far // 2 + 5, 0))), True),
        (place((1, 1, 5, 2), (1, 2), padding=((0, 0), (far // 2 + 6, 0))), False),
    ):
        assert direct.fits(at) is takes, at
    for before in range(15, 18):
        inside = place((2, 4, 5, 6, 3), (2, 2, 2))
        inside.geometry[before] = -1
        assert not direct.fits(inside)


def test_which_types_it_takes() -> None:
    assert [type(Direct.of(dtype)) for dtype in (np.float32, np.float64)] == [Direct, Direct]
    assert [Direct.of(dtype) for dtype in (np.float16, np.int32, np.int64)] == [None] * 3


def test_lines_and_images_are_shared_out_where_there_is_much_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[tuple[int, int]] = []

    def in_parts(run: Any, count: int, least: int) -> None:
        shared.append((count, least))
        for at in reversed(range(count)):
            run(at, at + 1)

    draw = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        direct = Direct.of(dtype)
        assert direct is not None
        for shape, window, padding in (
            ((3, 6, 5, 2), (3, 2), "VALID"),
            ((3, 6, 5, 2), (3, 2), "SAME"),
            ((2, 3, 4, 5, 2), (2, 3, 2), "SAME"),
        ):
            at = place(shape, window, padding=padding)
            x, w = draw.integers(-3, 4, shape).astype(dtype), draw.integers(-3, 4, (*window, 2, 5)).astype(dtype)
            g = draw.integers(-3, 4, (len(x), *at.out, 5)).astype(dtype)
            whole = direct.forward(x, w, at), direct.filter_gradient(x, g, at)
            shared.clear()
            with monkeypatch.context() as patch:
                patch.setattr(_convolve, "in_parts", in_parts)
                make_dirty(patch, _convolve)
                parts = direct.forward(x, w, at), direct.filter_gradient(x, g, at)

            for one, other in zip(whole, parts, strict=True):
                np.testing.assert_array_equal(one, other)
            wide = -(-5 // direct._lanes) * direct._lanes
            lines = (1 << 25) // (at.out[-1] * np.prod(window) * 2 * wide) + 1
            per_image = int(np.prod(at.out[:-1]))
            assert shared == [(len(x) * per_image, lines), (len(x), lines // per_image + 1)]


def test_a_large_filter_is_summed_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """… of its window, from where one row's slice does not stay in the cache on; not in three dimensions."""
    for dtype in (np.float32, np.float64):
        direct = Direct.of(dtype)
        assert direct is not None
        plans: list[dict[str, int]] = []
        monkeypatch.setattr(
            direct,
            "_run",
            lambda *given, plans=plans, fields=direct._fields: plans.append(
                dict(zip(fields, given[3].tolist(), strict=True))
            ),
        )
        tile = direct._widths[0] * direct._lanes * np.dtype(dtype).itemsize
        most = (384 << 10) // tile
        for window, channels, outer in (
            ((1, 1), most, (1, 1)),
            ((3, 2), most // 6, (1, 3)),
            ((1, 1), most + 1, (1, 1)),
            ((3, 2), most // 6 + 1, (3, 1)),
            ((2, 3, 1), most, (2, 3)),
            ((1, 3, 1), most, (3, 1)),
        ):
            at = place((1, *window, channels), window)
            direct.forward(np.ones((1, *window, channels), dtype), np.ones((*window, channels, 1), dtype), at)
            plan = plans.pop()
            assert (plan["outer_2"], plan["outer"]) == outer, (window, channels, dtype)


def test_only_images_that_need_it_are_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    direct = Direct.of(np.float32)
    assert direct is not None
    plans: list[dict[str, int]] = []
    monkeypatch.setattr(direct, "_run", lambda *given: plans.append(dict(zip(direct._fields, given[3], strict=True))))
    x, w = np.ones((1, 4, 5, 2), np.float32), np.ones((3, 2, 2, 1), np.float32)
    for padding, height, width in (("VALID", 0, 5), ("SAME", 6, 6)):
        at = place(x.shape, (3, 2), padding=padding)
        direct.forward(x, w, at)
        direct.filter_gradient(x, np.ones((1, *at.out, 1), np.float32), at)
        assert [(plan["padded_h"], plan["padded_w"]) for plan in plans] == [(height, width)] * 2
        plans.clear()
