"""Tensor lists through a session: they are values, so that a changed list leaves the old one alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from support.kernel_runs import Steps
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources import tensor_arrays
from tenfold_kernels.resources.tensor_lists import TensorList

raw = tf.raw_ops


def reserved(count: int) -> tf.Tensor:
    return raw.TensorListReserve(element_shape=[2], num_elements=count, element_dtype=tf.float32)


def test_what_was_set_is_stacked() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        old = reserved(2)
        new = raw.TensorListSetItem(input_handle=old, index=1, item=[3.0, 4.0])
        item = raw.TensorListGetItem(input_handle=new, index=1, element_shape=[2], element_dtype=tf.float32)
        both = [
            raw.TensorListStack(input_handle=list_, element_shape=[2], element_dtype=tf.float32) for list_ in (old, new)
        ]

        got, before, after, length = session.run([item, *both, raw.TensorListLength(input_handle=new)])

    assert (got.tolist(), length) == ([3, 4], 2)
    assert before.tolist() == [[0, 0], [0, 0]]
    assert after.tolist() == [[0, 0], [3, 4]]


def test_a_tensor_is_a_list_of_its_rows() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        rows = raw.TensorListFromTensor(tensor=[[1.0, 2.0], [3.0, 4.0]], element_shape=[2])
        shorter, last = raw.TensorListPopBack(input_handle=rows, element_shape=[2], element_dtype=tf.float32)

        assert session.run([last, raw.TensorListLength(input_handle=shorter)])[1] == 1
        assert session.run(last).tolist() == [3, 4]


def test_an_index_beyond_the_end_is_an_error() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        item = raw.TensorListGetItem(input_handle=reserved(1), index=1, element_shape=[2], element_dtype=tf.float32)

        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(item)


# -- the ops by themselves ---------------------------------------------------------------------------------------------


def list_of(shape: Any, *elements: Any) -> np.ndarray:
    return TensorList(dtypes.float32, TensorShape(shape), [np.asarray(e, np.float32) for e in elements]).as_array()


def batch_of(*lists: np.ndarray) -> np.ndarray:
    out = np.empty(len(lists), object)
    for number, each in enumerate(lists):
        out[number] = each[()]
    return out


def contents(array: np.ndarray) -> list[Any]:
    return [None if element is None else element.tolist() for element in array[()].elements]


@pytest.mark.parametrize(
    ("shape", "wanted"), [(None, -1), ([], []), ([None, 3], [-1, 3]), ([2, None], [2, -1])]
)  # fmt: skip
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_shapes_of_elements_are_numbers(shape: Any, wanted: Any, kind: Any) -> None:
    found = Steps()("TensorListElementShape", list_of(shape), shape_type=dtypes.as_dtype(kind))
    assert (found.tolist(), found.dtype) == (wanted, kind)


def test_a_row_goes_onto_each_list() -> None:
    steps = Steps()
    handles, rows = batch_of(list_of([2], [1, 2]), list_of(None)), np.array([[3, 4], [5, 6]], np.float32)
    found = steps("TensorListPushBackBatch", handles, rows, element_dtype=dtypes.float32)
    assert [[e.tolist() for e in each.elements] for each in found] == [[[1, 2], [3, 4]], [[5, 6]]]
    for given, message in (
        ((handles, np.float32(1)), "Expected tensor to be at least a vector, but saw shape: \\[\\]"),
        ((handles.reshape(2, 1), rows), "Expected input_handles to be a vector, but saw shape: \\[2,1\\]"),
        ((handles, rows[:1]), "Expected tensor.shape\\[0\\] == input_handles.size, but saw 1 vs. 2"),
        ((handles, rows[:, :1]), "at index 0. Op element shape: \\[1\\] list shape: \\[2\\]"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            steps("TensorListPushBackBatch", *given, element_dtype=dtypes.float32)


def test_a_list_gets_another_length(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, whole = Steps(), list_of([], 1, 2, 3)
    for size, wanted in ((0, []), (2, [1, 2]), (3, [1, 2, 3]), (5, [1, 2, 3, None, None])):
        assert contents(steps("TensorListResize", whole, np.int32(size))) == wanted
    with pytest.raises(errors.InvalidArgumentError, match=r"expects size to be non-negative\. Got: -1"):
        steps("TensorListResize", whole, np.int32(-1))
    monkeypatch.setattr(tensor_arrays, "MAX_ELEMENTS", 4)
    with pytest.raises(errors.ResourceExhaustedError, match="A TensorList would have 5 elements; 4 is the limit"):
        steps("TensorListResize", whole, np.int32(5))
