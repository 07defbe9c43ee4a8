"""Places of maxima: which one of equal elements, what they count within, and the gradients that go by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dirty_memory import make_dirty
from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import nn_pool_argmax

PLACES, GRADIENT, SECOND = "MaxPoolWithArgmax", "MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax"
PAIRS: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": b"VALID"}


def image(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def places(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int64)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_where_the_first_largest_elements_are(ops: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By image, or by batch; windows that hang over the edge look at what is within."""
    x = np.random.default_rng(1).integers(-4, 4, (3, 5, 4, 2)).astype(dtype)
    attrs = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": b"SAME"}
    expected = np.zeros((3, 3, 4, 2), int)
    for n, i, j, c in np.ndindex(*expected.shape):
        window = [(r, s) for r in range(2 * i - 1, 2 * i + 2) for s in (j, j + 1) if 0 <= r < 5 and s < 4]
        r, s = max(window, key=lambda at: x[n, at[0], at[1], c])
        expected[n, i, j, c] = (r * 4 + s) * 2 + c
    shared: list[tuple[int, int]] = []

    def in_parts(run: Any, count: int, least: int) -> None:
        shared.append((count, least))
        for at in reversed(range(count)):
            run(at, at + 1)

    monkeypatch.setattr(nn_pool_argmax, "in_parts", in_parts)
    make_dirty(monkeypatch, nn_pool_argmax)
    for index, whole in ((np.int64, False), (np.int32, True)):
        more = {"Targmax": dtypes.as_dtype(index), "include_batch_in_index": whole}
        y, found = ops.run(PLACES, [x], **attrs, **more)

        among_all = expected + np.arange(3).reshape(3, 1, 1, 1) * 40
        np.testing.assert_array_equal(found, among_all if whole else expected)
        np.testing.assert_array_equal(y, x.reshape(-1)[among_all])
        assert (y.dtype, found.dtype) == (dtype, index)
    assert shared == [(9, (1 << 18) // (4 * 2 * 6) + 1)] * 2


def test_a_window_larger_than_the_image_has_no_places(ops: Any) -> None:
    y, found = ops.run(PLACES, [np.ones((2, 1, 3, 1), np.float16)], **PAIRS)

    assert (y.shape, y.dtype, found.shape, found.dtype) == ((2, 0, 1, 1), np.float16, (2, 0, 1, 1), np.int64)


@pytest.mark.parametrize("whole", [False, True])
def test_gradients_go_by_the_places(ops: Any, whole: bool) -> None:
    """Those of one place add up; the second gradient is read there. A place counts within its image, or the batch."""
    x = np.zeros((2, 2, 4, 1), np.float32)
    within = np.array([[5, 5], [0, 7]]).reshape(2, 1, 2, 1)
    argmax = within + (np.array([0, 8]).reshape(2, 1, 1, 1) if whole else 0)
    g = np.array([[1, 2], [4, 8]], np.float32).reshape(2, 1, 2, 1)
    back = np.arange(10, 26, dtype=np.float32).reshape(x.shape)

    found = ops.run(GRADIENT, [x, g, argmax], include_batch_in_index=whole, **PAIRS)
    second = ops.run(SECOND, [x, back, argmax], include_batch_in_index=whole, **PAIRS)

    assert found.reshape(2, 8).tolist() == [[0, 0, 0, 0, 0, 3, 0, 0], [4, 0, 0, 0, 0, 0, 0, 8]]
    assert second.reshape(2, 2).tolist() == [[15, 15], [18, 25]]
    # fewer images than the input has, and places in 32 bits
    first = ops.run(SECOND, [x, back, argmax[:1].astype(np.int32)], include_batch_in_index=whole, **PAIRS)
    assert first.reshape(-1).tolist() == [15, 15]


def test_places_of_nothing(ops: Any) -> None:
    for whole in (False, True):
        found = ops.run(GRADIENT, [image(0, 4, 4, 1), image(0, 2, 2, 1), places(0, 2, 2, 1)],
                        include_batch_in_index=whole, **PAIRS)  # fmt: skip
        assert found.shape == (0, 4, 4, 1)
        found = ops.run(GRADIENT, [image(2, 1, 4, 1), image(2, 0, 2, 1), places(2, 0, 2, 1)],
                        include_batch_in_index=whole, **PAIRS)  # fmt: skip
        assert found.tolist() == np.zeros((2, 1, 4, 1)).tolist()
        x = np.ones((2, 1, 4, 1), np.float16)
        second = ops.run(SECOND, [x, x, places(2, 0, 2, 1)], include_batch_in_index=whole, **PAIRS)
        assert (second.shape, second.dtype) == ((2, 0, 2, 1), np.float16)


OUTSIDE = "{}: found an argmax outside of [0, {})"


def at(*numbers: int) -> np.ndarray:
    return np.array(numbers).reshape(len(numbers), 1, 1, 1)


REFUSED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    *(
        (PLACES, [image(*shape)], {}, f"{PLACES}: the input must not be empty, got shape [{','.join(map(str, shape))}]")
        for shape in ((0, 2, 2, 1), (1, 0, 2, 1), (1, 2, 0, 1), (1, 2, 2, 0))
    ),
    (PLACES, [image(2, 2, 1)], {}, "tensor_in must be 4-dimensional, got shape [2,2,1]"),
    (GRADIENT, [image(2, 2, 1), at(0), at(0)], {}, "tensor_in must be 4-dimensional, got shape [2,2,1]"),
    (
        GRADIENT, [image(1, 4, 4, 1), image(1, 2, 3, 1), places(1, 2, 3, 1)], {},
        "Expected grad shape to be [1,2,2,1], but got [1,2,3,1]",
    ),
    (
        GRADIENT, [image(1, 4, 4, 1), image(1, 2, 2, 1), places(1, 2, 1, 1)], {},
        "grad and argmax must have the same shape: [1,2,2,1] vs [1,2,1,1]",
    ),
    *(
        (op, [image(2, 2, 2, 1), image(2, size, size, 1), at(*numbers)], {"include_batch_in_index": whole},
         OUTSIDE.format(op, 8 if whole else 4))
        for op, size in ((GRADIENT, 1), (SECOND, 2))
        for numbers, whole in (((0, 4), False), ((-1, 0), False), ((0, 8), True), ((0, -1), True))
    ),
    (
        SECOND, [image(1, 2, 2, 1), image(1, 2, 2, 1), at(0, 0)], {},
        f"{SECOND}: argmax has a batch of 2, the input one of 1",
    ),
    (SECOND, [image(0, 2, 2, 1), image(0, 2, 2, 1), at(0)], {}, OUTSIDE.format(SECOND, 0)),
    (
        SECOND, [image(0, 2, 2, 1), image(0, 2, 2, 1), places(2, 0, 1, 1)], {},
        f"{SECOND}: argmax has a batch of 2, the input one of 0",
    ),
    (
        SECOND, [image(2, 2, 1), image(2, 2, 1), at(0)], {},
        "tensor_in and argmax must be 4-dimensional, got shapes [2,2,1] and [1,1,1,1]",
    ),
    (
        SECOND, [image(1, 2, 2, 1), image(1, 2, 2, 1), places(1, 1)], {},
        "tensor_in and argmax must be 4-dimensional, got shapes [1,2,2,1] and [1,1]",
    ),
    (
        SECOND, [image(1, 2, 2, 1), image(1, 2, 1, 1), at(0)], {},
        "Expected grad shape to be [1,2,2,1], but got [1,2,1,1]",
    ),
]  # fmt: skip


def test_what_is_refused_in_which_words(ops: Any) -> None:
    for op, inputs, attrs, text in REFUSED:
        with pytest.raises(errors.InvalidArgumentError) as refused:
            ops.run(op, inputs, **PAIRS, **attrs)
        assert refused.value.message == text, (op, attrs)


def test_the_last_place_is_taken(ops: Any) -> None:
    for whole, numbers in ((False, (3, 3)), (True, (3, 7))):
        found = ops.run(GRADIENT, [image(2, 2, 2, 1), image(2, 1, 1, 1), at(*numbers)],
                        include_batch_in_index=whole, **PAIRS)  # fmt: skip
        assert found.reshape(2, 4).tolist() == [[0, 0, 0, 1]] * 2


@pytest.mark.parametrize("op", ["MaxPoolGradGrad", "MaxPool3DGradGrad"])
def test_the_shapes_of_a_second_gradient(ops: Any, op: str) -> None:
    deep = "3D" in op
    x, y = image(1, *[2] * deep, 4, 4, 1), image(1, *[1] * deep, 2, 2, 1)
    attrs = {"ksize": [1, *[2] * (2 + deep), 1], "strides": [1, *[2] * (2 + deep), 1], "padding": b"VALID"}
    texts = "[1,2,4,4,1]" if deep else "[1,4,4,1]", "[1,1,2,2,1]" if deep else "[1,2,2,1]"
    for inputs, text in (
        ([x, x, x], f"Expected orig_output shape to be {texts[1]}, but got {texts[0]}"),
        ([x, y, y], f"Expected grad shape to be {texts[0]}, but got {texts[1]}"),
    ):
        with pytest.raises(errors.InvalidArgumentError) as refused:
            ops.run(op, inputs, **attrs)
        assert refused.value.message == text
