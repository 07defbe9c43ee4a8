"""Sparse tensors as strings, and through the queues of tf.train.batch; sessions with several CPU devices."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf


def sparse(rows: list[list[int]], values: list[float], shape: list[int]) -> tf.SparseTensor:
    return tf.SparseTensor(rows, values, shape)


def test_a_batch_of_sparse_tensors_survives_its_strings() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        batch = sparse([[0, 1], [2, 0], [2, 3]], [1.0, 2.0, 3.0], [3, 4])
        strings = tf.serialize_many_sparse(batch)
        again = tf.deserialize_many_sparse(strings, tf.float32, rank=1)
        text, found = session.run([strings, again])
    assert text.shape == (3, 3)
    assert again.dense_shape.shape.as_list() == [2]
    np.testing.assert_array_equal(found.indices, [[0, 1], [2, 0], [2, 3]])
    np.testing.assert_array_equal(found.values, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found.dense_shape, [3, 4])


def test_members_of_several_sizes_take_the_largest() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        members = [sparse([[0]], [1.0], [2]), sparse([[4]], [2.0], [5])]
        strings = tf.stack([tf.serialize_sparse(each) for each in members])
        found = session.run(tf.deserialize_many_sparse(strings, tf.float32))
    np.testing.assert_array_equal(found.indices, [[0, 0], [1, 4]])
    np.testing.assert_array_equal(found.dense_shape, [2, 5])


def test_strings_of_another_type_are_refused() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        strings = tf.expand_dims(tf.serialize_sparse(sparse([[0]], [1.0], [2])), 0)
        wrong = tf.deserialize_many_sparse(strings, tf.int32)
        broken = tf.deserialize_many_sparse([["x", "y", "z"]], tf.float32)
        with pytest.raises(tf.errors.InvalidArgumentError, match="of type int32"):
            session.run(wrong.values)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse"):
            session.run(broken.values)


def test_sparse_tensors_are_batched() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        counter = tf.Variable(0, dtype=tf.int64)
        count = counter.assign_add(1)
        one = tf.SparseTensor(tf.reshape(count, [1, 1]), tf.reshape(tf.cast(count, tf.float32), [1]), [100])
        batched, numbers = tf.train.batch([one, count], batch_size=3)
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        found, order = session.run([batched, numbers])
        coordinator.request_stop()
        session.run([queue.close(cancel_pending_enqueues=True) for queue in _queues()])
        coordinator.join(threads, stop_grace_period_secs=30)
    np.testing.assert_array_equal(found.indices, [[i, number] for i, number in enumerate(order)])
    np.testing.assert_array_equal(found.values, order.astype(np.float32))
    np.testing.assert_array_equal(found.dense_shape, [3, 100])


def _queues() -> list[tf.QueueBase]:
    return [runner.queue for runner in tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)]


def test_a_session_has_as_many_cpus_as_it_asks_for() -> None:
    with tf.Graph().as_default() as graph:
        with tf.device("/cpu:1"):
            one = tf.constant([1.0]) * 2
        with tf.device("/cpu:0"):
            two = one + 1
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
            assert session.run(two).tolist() == [3.0]
            assert [device.name[-5:] for device in session.list_devices() if device.device_type == "CPU"] == [
                "CPU:0",
                "CPU:1",
            ]
        with tf.Session(graph=graph) as session, pytest.raises(tf.errors.InvalidArgumentError, match="CPU:1"):
            session.run(two)
