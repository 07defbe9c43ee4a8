"""Where windows go, worked out beforehand; what a node's attributes say and which are refused; a thread's scratch."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import _windows
from tenfold_kernels.cpu._windows import Sliding, scratch, sliding

FURTHEST = (1 << 31) - 1
INVALID, UNIMPLEMENTED = errors.InvalidArgumentError, errors.UnimplementedError


def node(op: str, **attrs: Any) -> Any:
    return SimpleNamespace(op=op, attrs={"strides": [1, 2, 3, 1], "padding": b"SAME"} | attrs)


PADS = [0, 0, 1, 2, 3, 4, 0, 0]
READ: list[tuple[str, int, dict[str, Any], tuple[Any, ...]]] = [
    ("Conv2D", 2, {}, (False, (2, 3), (1, 1), "SAME", ())),
    ("Conv2D", 2, {"dilations": []}, (False, (2, 3), (1, 1), "SAME", ())),
    ("Conv2D", 2, {"dilations": [1, 4, 5, 1], "padding": b"VALID"}, (False, (2, 3), (4, 5), "VALID", ())),
    (
        "Conv2D",
        2,
        {"data_format": b"NCHW", "strides": [1, 1, 2, 3], "dilations": [1, 1, 4, 5]},
        (True, (2, 3), (4, 5), "SAME", ()),
    ),
    ("MaxPool", 2, {"data_format": b"NCHW_VECT_C", "strides": [1, 1, 2, 3]}, (True, (2, 3), (1, 1), "SAME", ())),
    ("Conv3D", 3, {"data_format": b"NDHWC", "strides": [1, 2, 3, 4, 1]}, (False, (2, 3, 4), (1, 1, 1), "SAME", ())),
    (
        "Conv3D",
        3,
        {"data_format": b"NCDHW", "strides": [1, 1, 2, 3, 4], "dilations": [1, 1, 5, 6, 7]},
        (True, (2, 3, 4), (5, 6, 7), "SAME", ()),
    ),
    (
        "Conv2D",
        2,
        {"padding": b"EXPLICIT", "explicit_paddings": PADS},
        (False, (2, 3), (1, 1), "EXPLICIT", ((1, 2), (3, 4))),
    ),
    (
        "Conv2D",
        2,
        {
            "padding": b"EXPLICIT",
            "explicit_paddings": [0, 0, 0, 0, 1, 2, 3, FURTHEST],
            "data_format": b"NCHW",
            "strides": [1, 1, 2, 3],
        },
        (True, (2, 3), (1, 1), "EXPLICIT", ((1, 2), (3, FURTHEST))),
    ),
    # a pool's own checks look at the batch and the channels
    ("MaxPool", 2, {"strides": [5, 2, 3, 7]}, (False, (2, 3), (1, 1), "SAME", ())),
    (
        "Conv2D",
        2,
        {"strides": [1, FURTHEST, 1, 1], "dilations": [1, 1, FURTHEST, 1]},
        (False, (FURTHEST, 1), (1, FURTHEST), "SAME", ()),
    ),
]


def test_what_the_attributes_say() -> None:
    for op, spatial, attrs, expected in READ:
        found = sliding(node(op, **attrs), spatial)
        assert found == Sliding(op, *expected), attrs
        assert found.rank == spatial + 2
    pool: Any = SimpleNamespace(op="MaxPoolV2", attrs={"padding": b"VALID"})
    assert sliding(pool, 2, strides=(1, 4, 5, 1)) == Sliding("MaxPoolV2", False, (4, 5), (1, 1), "VALID", ())


BATCH_OR_DEPTH = "Current implementation does not yet support {} in the batch and depth dimensions."
FIRST = {"data_format": b"NCHW", "strides": [1, 1, 1, 1]}
EXPLICIT = {"padding": b"EXPLICIT", "strides": [1, 1, 1, 1]}
OUTSIDE = "Nonzero explicit padding in the batch or depth dimensions is not supported"

REFUSED: list[tuple[str, int, dict[str, Any], Any, str]] = [
    ("Conv2D", 2, {"strides": [1, 2, 1]}, INVALID, "Sliding window strides field must specify 4 dimensions"),
    ("Conv2D", 2, {"strides": [1] * 5}, INVALID, "Sliding window strides field must specify 4 dimensions"),
    ("Conv3D", 3, {"strides": [1] * 4}, INVALID, "Sliding window strides field must specify 5 dimensions"),
    ("Conv2D", 2, {"dilations": [1] * 3}, INVALID, "Sliding window dilations field must specify 4 dimensions"),
    ("Conv2D", 2, {"dilations": [1] * 5}, INVALID, "Sliding window dilations field must specify 4 dimensions"),
    *(
        (op, 2, attrs, INVALID, BATCH_OR_DEPTH.format("dilations"))
        for op in ("Conv2D", "MaxPool")
        for attrs in (
            {"dilations": [2, 1, 1, 1]},
            {"dilations": [1, 1, 1, 2]},
            FIRST | {"dilations": [2, 1, 1, 1]},
            FIRST | {"dilations": [1, 2, 1, 1]},
        )
    ),
    *(
        ("Conv2D", 2, attrs, UNIMPLEMENTED, BATCH_OR_DEPTH.format("strides"))
        for attrs in (
            {"strides": [2, 1, 1, 1]},
            {"strides": [1, 1, 1, 2]},
            FIRST | {"strides": [2, 1, 1, 1]},
            FIRST | {"strides": [1, 2, 1, 1]},
        )
    ),
    *(
        ("Conv2D", 2, {"strides": [1, k, 1, 1]}, INVALID, f"Strides should be larger than 0, got [1, {k}, 1, 1]")
        for k in (0, -1)
    ),
    ("MaxPool", 2, {"strides": [0, 1, 1, 1]}, INVALID, "Strides should be larger than 0, got [0, 1, 1, 1]"),
    ("Conv2D", 2, {"dilations": [1, 1, 0, 1]}, INVALID, "Dilated rates should be larger than 0, got [1, 1, 0, 1]"),
    *(
        (
            "Conv2D",
            2,
            {name: [1, 1 << 31, 1, 1]},
            INVALID,
            f"{name} can be {FURTHEST} at most, got [1, {1 << 31}, 1, 1]",
        )
        for name in ("strides", "dilations")
    ),
    (
        "Conv2D",
        2,
        EXPLICIT | {"explicit_paddings": PADS[1:]},
        INVALID,
        "explicit_paddings attribute must contain 8 values, but got: 7",
    ),
    (
        "Conv2D",
        2,
        EXPLICIT,
        INVALID,
        "explicit_paddings attribute must contain 8 values, but got: 0",
    ),
    (
        "Conv3D",
        3,
        {"padding": b"EXPLICIT", "strides": [1] * 5, "explicit_paddings": PADS},
        INVALID,
        "explicit_paddings attribute must contain 10 values, but got: 8",
    ),
    (
        "Conv2D",
        2,
        EXPLICIT | {"explicit_paddings": [0, 0, 0, -1, 1, 1, 0, 0]},
        INVALID,
        "All elements of explicit_paddings must be nonnegative, got [0, 0, 0, -1, 1, 1, 0, 0]",
    ),
    (
        "Conv2D",
        2,
        EXPLICIT | {"explicit_paddings": [0, 0, 0, 1 << 31, 1, 1, 0, 0]},
        INVALID,
        f"All elements of explicit_paddings must be at most {FURTHEST}, got [0, 0, 0, {1 << 31}, 1, 1, 0, 0]",
    ),
    *(
        ("Conv2D", 2, EXPLICIT | more | {"explicit_paddings": pads}, INVALID, OUTSIDE)
        for more, pads in (
            ({}, [1, 0, 0, 0, 0, 0, 0, 0]),
            ({}, [0, 1, 0, 0, 0, 0, 0, 0]),
            ({}, [0, 0, 0, 0, 0, 0, 1, 0]),
            ({}, [0, 0, 0, 0, 0, 0, 0, 1]),
            (FIRST, [0, 1, 0, 0, 0, 0, 0, 0]),
            (FIRST, [0, 0, 1, 0, 0, 0, 0, 0]),
            (FIRST, [0, 0, 0, 1, 0, 0, 0, 0]),
        )
    ),
    (
        "Conv2D",
        2,
        {"explicit_paddings": [0] * 8},
        INVALID,
        "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT",
    ),
]


def test_attributes_that_no_run_can_satisfy() -> None:
    for op, spatial, attrs, kind, text in REFUSED:
        with pytest.raises(kind) as refused:
            sliding(node(op, **attrs), spatial)
        assert refused.value.message == text, attrs


ONES_2, ONES_3 = (1, 1), (1, 1, 1)
#: (strides, dilations, padding, explicit paddings), the input's shape, the window → outputs, padding before
PLACES: list[tuple[tuple[Any, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
    (((2, 3), ONES_2, "VALID", ()), (5, 7, 8, 4), (3, 2), (3, 3), (0, 0)),
    (((2, 3), (2, 1), "SAME", ()), (2, 7, 8, 1), (3, 5), (4, 3), (2, 1)),
    ((ONES_2, ONES_2, "SAME", ()), (2, 4, 4, 1), (4, 2), (4, 4), (1, 0)),
    (((3, 3), ONES_2, "SAME", ()), (1, 5, 6, 2), (1, 2), (2, 2), (0, 0)),
    (((2, 2), ONES_2, "EXPLICIT", ((1, 2), (0, 3))), (1, 6, 5, 2), (2, 3), (4, 3), (1, 0)),
    (((1, 2), (1, 3), "EXPLICIT", ((0, 0), (2, 1))), (1, 2, 6, 3), (2, 2), (1, 3), (0, 2)),
    (((1, 2), ONES_2, "VALID", ()), (1, 2, 2, 1), (3, 4), (0, 0), (0, 0)),
    ((ONES_2, ONES_2, "SAME", ()), (2, 0, 4, 1), (3, 1), (0, 4), (1, 0)),
    (((1, 2, 3), (1, 1, 2), "SAME", ()), (2, 3, 4, 5, 6), (3, 4, 3), (3, 2, 2), (1, 1, 1)),
    (((2, 1, 3), (3, 2, 1), "VALID", ()), (4, 9, 5, 5, 2), (2, 3, 2), (3, 1, 2), (0, 0, 0)),
]


def test_where_a_window_goes() -> None:
    for given, shape, window, out, before in PLACES:
        place = Sliding("Conv", False, *given).place(shape, window)

        sizes, channels = shape[1:-1], shape[-1]
        assert (place.batch, place.sizes, place.window, place.channels) == (shape[0], sizes, window, channels)
        assert place.out == out, given
        assert place.lines == shape[0] * np.prod(out[:-1])
        deep = len(sizes) == 3
        triples = [list(each) if deep else [1, *each] for each in (sizes, window, out, given[0], given[1])]
        expected = [*(each for triple in triples for each in triple), *(before if deep else (0, *before)), channels]
        assert place.geometry.tolist() == expected, given
        assert place.geometry.dtype == np.int64


def test_a_window_that_begins_outside_for_every_output_is_refused() -> None:
    slide = Sliding("Conv2D", False, (1, 2), (2, 1), "VALID", ())
    for shape, window, out, size, reach, stride in (
        ((1, 1, 9, 1), (2, 1), -1, 1, 3, 1),
        ((1, 9, 3, 1), (1, 6), -1, 3, 6, 2),
    ):
        with pytest.raises(INVALID) as refused:
            slide.place(shape, window)
        assert refused.value.message == (
            f"Computed output size would be negative: {out} [input_size: {size}, effective_filter_size: {reach}, "
            f"stride: {stride}]"
        )


def test_layouts_are_turned_and_turned_back() -> None:
    last, first = (Sliding("Conv2D", first, ONES_2, ONES_2, "SAME", ()) for first in (False, True))
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)

    assert last.last(x) is x
    assert last.back(x) is x
    strided = last.last(x[:, ::2])
    assert strided.flags.c_contiguous
    assert strided.tolist() == x[:, ::2].tolist()
    turned = first.last(x)
    assert turned.flags.c_contiguous
    assert turned.tolist() == x.transpose(0, 2, 3, 1).tolist()
    back = first.back(turned)
    assert back.flags.c_contiguous
    assert back.tolist() == x.tolist()
    assert (last.last_shape([2, 3, 4, 5]), last.back_shape((2, 3, 4, 5))) == ((2, 3, 4, 5),) * 2
    assert (first.last_shape([2, 3, 4, 5]), first.back_shape((2, 4, 5, 3))) == ((2, 4, 5, 3), (2, 3, 4, 5))
    assert first.last_shape((1, 2, 3, 4, 5)) == (1, 3, 4, 5, 2)
    assert first.back_shape((1, 3, 4, 5, 2)) == (1, 2, 3, 4, 5)


def test_scratch_is_kept_for_the_calls_of_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_windows, "_scratch", threading.local())
    first = scratch(6, np.float32)
    for count, dtype in ((6, np.float32), (3, np.float64), (24, np.int8), (2, np.int32)):
        again = scratch(count, dtype)
        assert (again.shape, again.dtype) == ((count,), np.dtype(dtype))
        assert again.ctypes.data == first.ctypes.data

    larger = scratch(7, np.float32)

    assert not np.shares_memory(larger, first)
    assert scratch(1, np.float32).ctypes.data == larger.ctypes.data
    others: list[Any] = []
    thread = threading.Thread(target=lambda: others.append(scratch(1, np.float32)))
    thread.start()
    thread.join()
    assert not np.shares_memory(others[0], larger)
