"""How several gradients of one tensor become one: dense ones, slices, both, by device, in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.gradients import aggregate
from tenfold.gradients.aggregate import AggregationMethod, checked_method, sum_gradients

if TYPE_CHECKING:
    from collections.abc import Iterator

ADD_N, TREE = AggregationMethod.ADD_N, AggregationMethod.EXPERIMENTAL_TREE


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def value(x: Any) -> Any:
    with tf.Session() as session:
        return session.run(x).tolist()


def slices(values: Any, indices: Any, shape: Any = None, dtype: Any = tf.int32) -> tf.IndexedSlices:
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices, dtype), shape)


def test_the_numbers_of_the_methods() -> None:
    names = ("ADD_N", "DEFAULT", "EXPERIMENTAL_TREE", "EXPERIMENTAL_ACCUMULATE_N")
    assert [getattr(AggregationMethod, name) for name in names] == [0, 0, 1, 2]
    assert [checked_method(method) for method in (None, 0, 1, 2)] == [0, 0, 1, 2]
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match=f"Invalid aggregation_method specified {wrong}; known are"):
            checked_method(wrong)


def test_none_one_and_what_is_no_gradient(graph: Any) -> None:
    x = tf.constant([1.0])
    before = len(graph.get_operations())
    assert sum_gradients(x.op, [], ADD_N) is None
    assert sum_gradients(x.op, [x], ADD_N) is x
    rows = slices([1.0], [0])
    made = len(graph.get_operations())
    assert sum_gradients(x.op, [rows], TREE) is rows
    assert len(graph.get_operations()) == made == before + 2
    for wrong in ([3.0], [x, 3.0]):
        with pytest.raises(TypeError, match=r"gradients of 'Const' must be Tensors or IndexedSlices, not 3\.0"):
            sum_gradients(x.op, wrong, ADD_N)


def test_dense_ones_are_one_sum_or_pairs(graph: Any) -> None:
    x, parts = tf.constant([1.0], name="x"), [tf.constant([float(i)]) for i in (1, 10, 100)]
    total = sum_gradients(x.op, parts, ADD_N)
    assert (value(total), [each.op for each in total.op.inputs]) == ([111], [part.op for part in parts])
    pairs = sum_gradients(x.op, parts, TREE)
    assert value(pairs) == [111]
    assert [len(op.inputs) for op in graph.get_operations() if op.type == "AddN"] == [3, 2, 2]
    assert pairs.name == "x_gradient_sum/AddN_1:0"
    assert pairs.op.inputs[1] is parts[2]


def test_each_device_adds_its_own_first(graph: Any) -> None:
    parts = []
    for task in (1, 0, 1, 2):
        with tf.device(f"/job:worker/task:{task}"):
            parts.append(tf.constant([float(10**task)], name=f"on_{task}"))
    with tf.device("/job:ps"):
        total = sum_gradients(parts[0].op, parts, ADD_N)
    zero, one, two = total.op.inputs
    assert (zero, two) == (parts[1], parts[3]), "a single one needs no sum"
    assert list(one.op.inputs) == [parts[0], parts[2]]
    assert one.device == "/job:worker/task:1"
    assert one.op.colocation_groups() == [b"loc:@on_1"]


def test_slices_are_joined(graph: Any) -> None:
    x, shape = tf.constant([1.0]), tf.constant([4])
    total = sum_gradients(x.op, [slices([1.0, 2.0], [0, 3], shape), slices([5.0], [3], dtype=tf.int64)], ADD_N)
    assert isinstance(total, tf.IndexedSlices)
    assert total.dense_shape is shape
    assert total.indices.dtype == tf.int32, "as the first ones"
    assert [value(total.values), value(total.indices)] == [[1, 2, 5], [0, 3, 3]]
    assert [op.type for op in graph.get_operations()].count("Cast") == 1


def test_slices_beside_a_dense_one_become_dense() -> None:
    x, shape = tf.constant([1.0]), tf.constant([4])
    dense = tf.constant([1.0, 1.0, 1.0, 1.0])
    total = sum_gradients(x.op, [slices([1.0, 2.0], [0, 3], shape), dense, slices([5.0], [3], shape)], TREE)
    assert isinstance(total, tf.Tensor)
    assert value(total) == [2, 1, 1, 8]
    assert aggregate._add_n([dense]) is dense
