"""Structures as tf.data sees them: a list is one value."""

from __future__ import annotations

import pytest

import tenfold as tf
from tenfold.data import nest, structure
from tenfold.graph.sparse_tensor import SparseTensorValue


def test_lists_and_sparse_values_are_leaves() -> None:
    sparse = SparseTensorValue(1, 2, 3)

    assert nest.flatten({"b": ([1, 2], 3), "a": sparse}) == [sparse, [1, 2], 3]
    assert nest.map_structure(lambda x: x, ([1], {"k": 2})) == ([1], {"k": 2})
    assert nest.pack_sequence_as((0, {"x": 0}), [[5], 6]) == ([5], {"x": 6})


@pytest.mark.parametrize(
    ("one", "other", "error", "words"),
    [
        ((1, 2), (1,), ValueError, "same nested structure: not the same number of elements"),
        ((1,), {"a": 1}, TypeError, "same sequence type"),
        ({"a": 1}, {"b": 1}, ValueError, "same set of keys"),
        ((1,), 1, ValueError, "same nested structure"),
    ],
)
def test_a_difference_is_told(one: object, other: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        nest.assert_same_structure(one, other)


def test_without_types_the_keys_may_differ() -> None:
    nest.assert_same_structure({"a": 1, "b": {"x": 2}}, {"a": 1, "b": {"y": 2}}, check_types=False)


def test_what_older_shapes_leave_open_of_a_tensor_array_stays_open() -> None:
    shape = tf.TensorShape([None, True, 2])

    spec = structure.convert_legacy_structure(tf.int32, shape, tf.TensorArray)

    assert spec._serialize() == (tf.TensorShape([2]), tf.int32, None, True)


def test_parts_where_a_shallow_tree_has_values() -> None:
    assert nest.flatten_up_to((0, 0), ((1, 2), [3])) == [(1, 2), [3]]
    with pytest.raises(TypeError, match="must also be a sequence"):
        nest.flatten_up_to((0, 0), [1, 2])
