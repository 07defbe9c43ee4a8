"""SparseTensor: made, fed, fetched; the functions on it against dense arithmetic; gradients of its elements."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf

DENSE = np.array([[0, 2, 0, 0], [0, 0, 0, 0], [5, 0, 0, 7]], np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def sparse(dense=DENSE):
    places = np.argwhere(dense)
    return tf.SparseTensor(places, dense[tuple(places.T)], dense.shape)


def dense_of(value):
    """The array that a SparseTensorValue stands for."""
    out = np.zeros(value.dense_shape, value.values.dtype)
    out[tuple(value.indices.T)] = value.values
    return out


def run(fetches, feeds=None):
    with tf.Session() as session:
        return session.run(fetches, feeds)


def test_a_sparse_tensor_tells_of_itself(graph):
    tensor = sparse()

    assert (tensor.dtype, tensor.shape.as_list(), tensor.get_shape().as_list()) == (tf.float32, [3, 4], [3, 4])
    assert tensor.graph is graph
    assert tensor.op is tensor.values.op
    assert str(tensor).startswith("SparseTensor(indices=Tensor(")
    used = tf.sparse_reorder(tensor)
    assert used.values.op in tensor.consumers()
    with tf.Session():
        np.testing.assert_array_equal(dense_of(tensor.eval()), DENSE)


def test_parts_that_disagree_are_refused():
    for parts in (([[0, 0]], [1.0, 2.0], [1, 1]), ([[0, 0]], [1.0], [1]), ([0, 0], [1.0], [1, 1])):
        with pytest.raises(ValueError, match=r"not compatible|must be equal|rank"):
            tf.SparseTensor(*parts)
    with pytest.raises(TypeError, match="Neither a SparseTensor nor SparseTensorValue"):
        tf.SparseTensor.from_value(3)
    with pytest.raises(TypeError, match="Input must be a SparseTensor"):
        tf.sparse_reorder(tf.constant([1.0]))
    with pytest.raises(RuntimeError, match="Sparse dtype: requested = float64, actual = float32"):
        tf.convert_to_tensor_or_sparse_tensor(sparse(), tf.float64)


def test_values_become_tensors():
    value = tf.SparseTensorValue([[0, 1]], [3.0], [1, 2])

    assert isinstance(tf.convert_to_tensor_or_sparse_tensor(value), tf.SparseTensor)
    assert isinstance(tf.convert_to_tensor_or_sparse_tensor([1.0]), tf.Tensor)
    np.testing.assert_array_equal(run(tf.sparse_tensor_to_dense(value)), [[0.0, 3.0]])


def test_placeholders_are_fed_with_values_tuples_and_what_was_fetched():
    known, unknown = tf.sparse_placeholder(tf.float32, [3, 4], name="k"), tf.sparse_placeholder(tf.float32)
    assert known.values.op.name == "k/values"
    assert known.shape.as_list() == [3, 4]
    assert unknown.shape.ndims is None
    assert tf.sparse_placeholder(tf.float32, [None, 4]).indices.shape.as_list() == [None, 2]
    fetched = run(sparse())

    for feed in (fetched, tuple(fetched), tf.SparseTensorValue(*fetched)):
        for placeholder in (known, unknown):
            np.testing.assert_array_equal(dense_of(run(placeholder, {placeholder: feed})), DENSE)


def test_structure():
    tensor, shuffled = sparse(), tf.SparseTensor([[2, 3], [0, 1], [2, 0]], [7.0, 2.0, 5.0], [3, 4])
    results = run(
        {
            "reorder": tf.sparse_reorder(shuffled),
            "transpose": tf.sparse_transpose(tensor),
            "reshape": tf.sparse_reshape(tensor, [2, -1]),
            "expand": tf.sparse.expand_dims(tensor, 1),
            "expand_last": tf.sparse.expand_dims(tensor),
            "concat": tf.sparse_concat(0, [tensor, tensor]),
            "wide": tf.sparse_concat(1, [tensor, sparse(DENSE[:2])], expand_nonconcat_dim=True),
            "split": tf.sparse_split(sp_input=tensor, num_split=2, axis=1),
            "slice": tf.sparse_slice(tensor, [1, 0], [2, 2]),
            "retain": tf.sparse_retain(tensor, [True, False, True]),
            "tight": tf.sparse_reset_shape(tensor),
            "roomy": tf.sparse_reset_shape(tensor, [4, 4]),
            "eye": tf.sparse.eye(2, 3),
            "from_dense": tf.sparse.from_dense(DENSE),
        }
    )

    assert results["reorder"].indices.tolist() == [[0, 1], [2, 0], [2, 3]]
    np.testing.assert_array_equal(results["reorder"].values, [2, 5, 7])
    np.testing.assert_array_equal(dense_of(results["transpose"]), DENSE.T)
    np.testing.assert_array_equal(dense_of(results["reshape"]), DENSE.reshape(2, 6))
    np.testing.assert_array_equal(dense_of(results["expand"]), DENSE[:, None, :])
    np.testing.assert_array_equal(dense_of(results["expand_last"]), DENSE[:, :, None])
    np.testing.assert_array_equal(dense_of(results["concat"]), np.concatenate([DENSE, DENSE]))
    wide = np.concatenate([DENSE, np.pad(DENSE[:2], ((0, 1), (0, 0)))], axis=1)
    np.testing.assert_array_equal(dense_of(results["wide"]), wide)
    for part, expected in zip(results["split"], np.split(DENSE, 2, axis=1), strict=True):
        np.testing.assert_array_equal(dense_of(part), expected)
    np.testing.assert_array_equal(dense_of(results["slice"]), DENSE[1:3, :2])
    np.testing.assert_array_equal(dense_of(results["retain"]), np.where(DENSE == 5, 0, DENSE))
    assert results["tight"].dense_shape.tolist() == [3, 4]
    assert results["roomy"].dense_shape.tolist() == [4, 4]
    np.testing.assert_array_equal(dense_of(results["eye"]), np.eye(2, 3))
    np.testing.assert_array_equal(dense_of(results["from_dense"]), DENSE)


def test_arithmetic():
    tensor, other = sparse(), sparse(np.roll(DENSE, 1, axis=1))
    shifted, factor = np.roll(DENSE, 1, axis=1), np.arange(12, dtype=np.float32).reshape(3, 4) + 1
    results = run(
        {
            "sum": tf.sparse_add(tensor, other),
            "dense_sum": tf.sparse_add(tf.constant(factor), tensor),
            "product": tensor * factor,
            "quotient": tensor / factor,
            "maximum": tf.sparse_maximum(tensor, other),
            "minimum": tf.sparse_minimum(tensor, other),
            "matmul": tf.sparse_tensor_dense_matmul(tensor, factor.T),
            "adjoint": tf.sparse_tensor_dense_matmul(tensor, factor, adjoint_a=True),
            "sums": [tf.sparse_reduce_sum(tensor), tf.sparse_reduce_sum(tensor, 1), tf.sparse_reduce_max(tensor, [0])],
            "sparse_sum": tf.sparse_reduce_sum_sparse(tensor, 1, keepdims=True),
            "softmax": tf.sparse_softmax(tensor),
            "cast": tf.cast(tensor, tf.int32),
            "indicator": tf.sparse_to_indicator(tf.SparseTensor([[0, 0], [1, 0]], [3, 2], [2, 1]), 4),
            "masked": tf.sparse_mask(tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([3, 5])), [5]).values,
        }
    )

    np.testing.assert_array_equal(dense_of(results["sum"]), DENSE + shifted)
    np.testing.assert_array_equal(results["dense_sum"], DENSE + factor)
    np.testing.assert_array_equal(dense_of(results["product"]), DENSE * factor)
    np.testing.assert_allclose(dense_of(results["quotient"]), DENSE / factor)
    np.testing.assert_array_equal(dense_of(results["maximum"]), np.maximum(DENSE, shifted))
    np.testing.assert_array_equal(dense_of(results["minimum"]), np.minimum(DENSE, shifted))
    np.testing.assert_allclose(results["matmul"], DENSE @ factor.T)
    np.testing.assert_allclose(results["adjoint"], DENSE.T @ factor)
    assert results["sums"][0] == 14.0
    np.testing.assert_array_equal(results["sums"][1], [2, 0, 12])
    np.testing.assert_array_equal(results["sums"][2], [5, 2, 0, 7])
    np.testing.assert_array_equal(dense_of(results["sparse_sum"]), [[2], [0], [12]])
    assert results["softmax"].values.sum() == pytest.approx(2.0)
    assert results["cast"].values.dtype == np.int32
    np.testing.assert_array_equal(results["indicator"], [[0, 0, 0, 1], [0, 0, 1, 0]])
    np.testing.assert_array_equal(results["masked"], [[1.0]])


def test_segments_of_gathered_rows():
    data = tf.constant(np.arange(8, dtype=np.float32).reshape(4, 2))
    indices, segments = [0, 3, 1], [0, 0, 1]

    results = run(
        [
            tf.sparse_segment_sum(data, indices, segments),
            tf.sparse_segment_mean(data, indices, segments),
            tf.sparse_segment_sqrt_n(data, indices, segments, num_segments=3),
        ]
    )
    np.testing.assert_array_equal(results[0], [[6, 8], [2, 3]])
    np.testing.assert_array_equal(results[1], [[3, 4], [2, 3]])
    np.testing.assert_allclose(results[2], [[6 / np.sqrt(2), 8 / np.sqrt(2)], [2, 3], [0, 0]], rtol=1e-6)


def test_gradients_reach_the_elements():
    elements = tf.constant([2.0, 5.0, 7.0])
    tensor = tf.SparseTensor([[0, 1], [2, 0], [2, 3]], elements, [3, 4])
    weights = tf.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
    losses = {
        "matmul": tf.sparse_tensor_dense_matmul(tensor, tf.transpose(weights)),
        "dense": tf.sparse_tensor_to_dense(tensor) * weights,
        "add": tf.sparse_add(tensor, weights) * weights,
        "product": (tensor * weights).values,
        "sum": tf.sparse_reduce_sum(tensor, 1) * [1.0, 2.0, 3.0],
        "reorder": tf.sparse_reorder(tensor).values * [1.0, 2.0, 3.0],
        "filled": tf.sparse_fill_empty_rows(tensor, 0.0)[0].values * [1.0, 2.0, 3.0, 4.0],
    }
    slopes = run({name: tf.gradients(loss, elements)[0] for name, loss in losses.items()})

    columns = np.arange(12).reshape(3, 4).sum(0)
    np.testing.assert_array_equal(slopes["matmul"], columns[[1, 0, 3]])
    for name in ("dense", "add", "product"):
        np.testing.assert_array_equal(slopes[name], [1, 8, 11])
    np.testing.assert_array_equal(slopes["sum"], [1, 3, 3])
    np.testing.assert_array_equal(slopes["reorder"], [1, 2, 3])
    np.testing.assert_array_equal(slopes["filled"], [1, 3, 4])


def test_gradients_of_products_reach_both_sides():
    elements, row = tf.constant([2.0, 5.0, 7.0]), tf.constant([1.0, 2.0, 3.0, 4.0])
    tensor = tf.SparseTensor([[0, 1], [2, 0], [2, 3]], elements, [3, 4])

    product = run(tf.gradients((tensor * row).values, [elements, row]))
    quotient = run(tf.gradients((tensor / row).values, [elements, row]))

    np.testing.assert_array_equal(product[0], [2, 1, 4])
    np.testing.assert_array_equal(product[1], [5, 2, 0, 7])
    np.testing.assert_allclose(quotient[0], [1 / 2, 1, 1 / 4])
    np.testing.assert_allclose(quotient[1], [-5, -2 / 4, 0, -7 / 16])


def test_gradients_of_segments():
    data = tf.constant(np.ones((4, 2), np.float32))
    functions = (tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse_segment_sqrt_n)
    slopes = run([tf.gradients(function(data, [0, 3, 0], [0, 0, 1]), data)[0] for function in functions])

    for slope, share in zip(slopes, (1.0, 0.5, 1 / np.sqrt(2)), strict=True):
        np.testing.assert_allclose(slope[:, 0], [share + 1.0, 0, 0, share], rtol=1e-6)


def test_serialized_and_back():
    tensor = sparse()
    many = tf.deserialize_many_sparse(tf.serialize_many_sparse(tensor), tf.float32, rank=2)

    one, rows, back = run([tf.serialize_sparse(tensor), tf.serialize_many_sparse(tensor), many])

    assert (one.shape, rows.shape) == ((3,), (3, 3))
    np.testing.assert_array_equal(dense_of(back), DENSE)


def test_wrong_use_is_refused():
    tensor = sparse()
    with pytest.raises(ValueError, match="Keyword arguments are required"):
        tf.sparse_split(1, tensor, 2)
    with pytest.raises(ValueError, match="num_split is required"):
        tf.sparse_split(sp_input=tensor, axis=1)
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.sparse_reduce_sum(tensor, axis=0, reduction_axes=1)
    with pytest.raises(TypeError, match="At least one input should be SparseTensor"):
        tf.sparse_add(tf.ones([1]), tf.ones([1]))
    with pytest.raises(ValueError, match="At most one dimension can be inferred"):
        tf.sparse_reshape(tensor, [-1, -1])
    with pytest.raises(ValueError, match="Cannot reshape a tensor with 12 elements to shape"):
        tf.sparse_reshape(tensor, [5, 2])
    with pytest.raises(ValueError, match="new_shape should have dimension sizes"):
        tf.sparse_reset_shape(tensor, [2, 4])
    with pytest.raises(TypeError, match="Inputs must be a list or tuple"):
        tf.sparse_concat(0, tensor)


def test_ids_outside_are_merged_and_put_in_order():
    where = np.array([[0, 0], [0, 1], [1, 0]], np.int64)
    ids = tf.SparseTensor(where, tf.constant([5, -1, 1], tf.int64), [2, 2])
    values = tf.SparseTensor(where, tf.constant([1.0, 2.0, 3.0]), [2, 2])

    merged = run(tf.sparse_merge(ids, values, 4))

    assert merged.indices.tolist() == [[0, -1], [0, 5], [1, 1]]
    assert merged.values.tolist() == [2.0, 1.0, 3.0]
    assert merged.dense_shape.tolist() == [2, 4]
