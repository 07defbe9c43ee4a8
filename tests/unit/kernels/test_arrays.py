"""What kernels ask of arrays and attributes: scalars, shapes, axes, and what is remembered of those that stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.kernel_runs import make_node
from tenfold_core import dtypes, errors
from tenfold_kernels import arrays
from tenfold_kernels.resources.state import ResourceManager


def test_one_number_is_a_scalar() -> None:
    assert arrays.one_number(np.array(7), "n") == 7
    with pytest.raises(errors.InvalidArgumentError, match=r"^n must be a scalar, got shape \[1\]$"):
        arrays.one_number(np.array([7]), "n")


def test_shapes_are_written_as_lists() -> None:
    assert [arrays.shape_text(shape) for shape in ((), (2,), (2, 0, 3))] == ["[]", "[2]", "[2,0,3]"]
    error = arrays.incompatible(np.empty((2, 3)), np.empty(4))
    assert error.message == "Incompatible shapes: [2,3] vs. [4]"


def test_elements_become_arrays() -> None:
    held = np.zeros(2)
    assert arrays.as_array(held) is held
    number, text = arrays.as_array(np.float32(2)), arrays.as_array(b"a\0")
    assert (number.shape, number.dtype, number.tolist()) == ((), np.float32, 2)
    assert (text.shape, text.dtype, text[()]) == ((), object, b"a\0")
    assert arrays.scalar_object([1, 2])[()] == [1, 2]
    assert arrays.objects([[1, 2], b"x"]).tolist() == [[1, 2], b"x"]
    assert arrays.objects([]).shape == (0,)


@pytest.mark.parametrize("gives", [True, False])
def test_ufuncs_give_arrays(monkeypatch: pytest.MonkeyPatch, gives: bool) -> None:
    if gives and not arrays._GIVES_ARRAYS:
        pytest.skip("this NumPy has no out=...")
    monkeypatch.setattr(arrays, "_GIVES_ARRAYS", gives)
    for found, expected in (
        (arrays.returning_array(np.negative)(np.array(2.0)), -2.0),
        (arrays.returning_array(np.subtract)(np.array(5.0), np.array(3.0)), 2.0),
    ):
        assert type(found) is np.ndarray
        assert (found.shape, found.tolist()) == ((), expected)


def test_types_and_texts_of_a_node() -> None:
    node = make_node("ArgMax", [np.float32([1]), np.int32(0)], {}, ResourceManager(), "n")
    assert (arrays.input_type(node), arrays.input_type(node, 1)) == (np.float32, np.int32)
    assert arrays.output_type(node) == np.int64
    both = replace(node, output_types=(dtypes.int64, dtypes.float32))
    assert arrays.output_type(both, 1) == np.float32
    named = replace(node, attrs={"a": "é".encode(), "b": "text", "c": b"\xff"})
    assert [arrays.text_attr(named, name) for name in ("a", "b", "d")] == ["é", "text", ""]
    assert arrays.text_attr(named, "d", "given") == "given"
    with pytest.raises(errors.InvalidArgumentError, match=r"^attr 'c' of ArgMax is no UTF-8: b'\\xff'$"):
        arrays.text_attr(named, "c")


def test_a_shape_is_a_vector_of_sizes() -> None:
    assert arrays.as_shape(np.array([2, 0, 3])) == (2, 0, 3)
    assert arrays.as_shape(np.array(4)) == (4,)
    with pytest.raises(
        errors.InvalidArgumentError, match=r"^size must be a vector of {int32,int64}, got shape \[1,1\]$"
    ):
        arrays.as_shape(np.array([[1]]), "size")
    with pytest.raises(errors.InvalidArgumentError, match=r"^Dimension -1 must be >= 0: shape\[1\] of \[2,-1\]$"):
        arrays.as_shape(np.array([2, -1]))


def test_a_shape_of_a_type_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(arrays, "allow", lambda *given: asked.append(given))
    assert arrays.as_shape(np.array([5])) == (5,)
    assert asked == [], "no type, no bytes"
    arrays.as_shape(np.array([5]), dtype=np.float32)
    arrays.as_shape(np.array([2, 3]), dtype=np.int8, times=4)
    assert asked == [((5,), np.float32, 1), ((2, 3), np.int8, 4)]


def test_what_is_frozen_with_all_that_it_views() -> None:
    owner = np.zeros((2, 3))
    view = owner[1:]
    assert not arrays.is_frozen(view)
    assert arrays.freeze(view) is view
    assert not owner.flags.writeable
    assert arrays.is_frozen(view)
    assert arrays.is_frozen(owner)
    assert arrays.is_frozen(np.frombuffer(b"abcd", np.uint8))
    assert not arrays.is_frozen(np.frombuffer(bytearray(b"abcd"), np.uint8))
    seen = np.zeros(3).view()
    seen.flags.writeable = False
    assert not arrays.is_frozen(seen), "others write to what it views"


def test_what_was_read_of_a_frozen_array_is_remembered() -> None:
    reads: list[Any] = []

    def read(array: Any) -> int:
        reads.append(array)
        return int(array[0])

    again = arrays.remembering(read)
    frozen, other, live = arrays.freeze(np.array([1])), arrays.freeze(np.array([2])), np.array([3])
    assert [again(frozen), again(frozen), len(reads)] == [1, 1, 1]
    assert [again(live), len(reads)] == [3, 2]
    live[0] = 4
    assert [again(live), len(reads)] == [4, 3]
    assert [again(frozen), len(reads)] == [1, 3]
    assert [again(other), again(other), again(frozen), len(reads)] == [2, 2, 1, 5]


def test_axes_are_counted_from_the_front() -> None:
    assert [arrays.canonical_axis(axis, 3, "") for axis in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    for axis in (-4, 3):
        with pytest.raises(errors.InvalidArgumentError, match=r"^no axis$"):
            arrays.canonical_axis(axis, 3, "no axis")


def test_quotients_are_cut_towards_zero() -> None:
    x, y = np.array([7, -7, 7, -7, -128, 6], np.int8), np.array([2, 2, -2, -2, 3, 3], np.int8)
    assert arrays.truncated_quotient(x, y).tolist() == [3, -3, -3, 3, -42, 2]


def test_only_what_lies_otherwise_is_copied() -> None:
    plain, scalar = np.zeros((2, 3)), np.array(1.0)
    assert arrays.contiguous(plain) is plain
    assert arrays.contiguous(scalar) is scalar
    turned = arrays.contiguous(np.arange(6).reshape(2, 3).T)
    assert turned.flags.c_contiguous
    assert turned.tolist() == [[0, 3], [1, 4], [2, 5]]
    odd = np.frombuffer(b"\0" + np.array([1.5, 2.5]).tobytes(), np.uint8)[1:].view(np.float64)
    assert not odd.flags.aligned
    assert arrays.contiguous(odd).flags.aligned
    assert arrays.contiguous(odd).tolist() == [1.5, 2.5]


def test_shapes_are_broadcast() -> None:
    assert arrays.broadcast_shape([np.empty((2, 1)), np.empty(3)]) == (2, 3)
    with pytest.raises(errors.InvalidArgumentError, match=r"^Incompatible shapes: \[2\] vs\. \[3\]$"):
        arrays.broadcast_shape([np.empty(2), np.empty(3)])
