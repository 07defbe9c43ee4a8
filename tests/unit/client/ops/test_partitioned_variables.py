"""Partitioned variables: where they are cut, what they share, their slots and slices; embeddings over their parts."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf
from tenfold.ops.partitioned_variable import PartitionedVariable, PartitionInfo


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def sizes(variable):
    return [part.shape.as_list()[0] for part in variable]


def test_partitioners_cut_where_tensorflow_does():
    shape, strings = tf.TensorShape([10, 8]), tf.TensorShape([4, 8])
    assert tf.fixed_size_partitioner(3)(shape=shape, dtype=tf.float32) == [3, 1]
    assert tf.fixed_size_partitioner(20, axis=1)(shape=shape, dtype=tf.float32) == [1, 8]
    assert tf.variable_axis_size_partitioner(64)(shape=shape, dtype=tf.float32) == [5, 1]
    assert tf.variable_axis_size_partitioner(64, max_shards=2)(shape=shape, dtype=tf.float32) == [2, 1]
    assert tf.variable_axis_size_partitioner(1)(shape=shape, dtype=tf.float32) == [10, 1]
    assert tf.variable_axis_size_partitioner(256, axis=1)(shape=strings, dtype=tf.string) == [1, 2]
    assert tf.min_max_variable_partitioner(4, min_slice_size=100)(shape=shape, dtype=tf.float32) == [4, 1]
    assert tf.min_max_variable_partitioner(9, min_slice_size=100)(shape=shape, dtype=tf.float64) == [7, 1]
    assert tf.min_max_variable_partitioner(9, axis=1)(shape=shape, dtype=tf.float32) == [1, 1]
    for wrong in ({"max_shard_bytes": 0}, {"max_shard_bytes": 1, "bytes_per_string_element": 0}):
        with pytest.raises(ValueError, match="must be positive"):
            tf.variable_axis_size_partitioner(**wrong)
    with pytest.raises(ValueError, match="Can not partition variable along axis 2"):
        tf.min_max_variable_partitioner(axis=2)(shape=shape, dtype=tf.float32)


def test_parts_are_variables_and_the_whole_converts_to_a_tensor():
    variable = tf.get_variable("v", [10, 2], partitioner=tf.fixed_size_partitioner(3))

    assert isinstance(variable, PartitionedVariable)
    assert (variable.name, len(variable), sizes(variable)) == ("v", 3, [4, 3, 3])
    assert [part.op.name for part in variable] == ["v/part_0", "v/part_1", "v/part_2"]
    assert [part._get_save_slice_info().spec for part in variable][1] == "10 2 4,3:0,2"
    assert tf.trainable_variables() == list(variable)
    doubled = variable.as_tensor() * 2.0
    assert tf.convert_to_tensor(variable).op.name == "v_1"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        whole, parts, twice = session.run([variable.as_tensor(), list(variable), doubled])
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    np.testing.assert_array_equal(twice, whole * 2)


def test_initializers_know_their_part():
    seen = []

    def initializer(shape, dtype, partition_info):
        seen.append((shape, partition_info.full_shape, partition_info.var_offset, partition_info.single_offset(shape)))
        return tf.fill(shape, tf.cast(partition_info.var_offset[1], dtype))

    variable = tf.get_variable("v", [2, 5], initializer=initializer, partitioner=tf.fixed_size_partitioner(2, axis=1))
    constant = tf.get_variable(
        "c", initializer=tf.constant([[1.0], [2.0], [3.0]]), partitioner=tf.fixed_size_partitioner(2)
    )

    assert seen == [([2, 3], [2, 5], [0, 0], 0), ([2, 2], [2, 5], [0, 3], 3)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(variable.as_tensor()), [[0, 0, 0, 3, 3]] * 2)
        np.testing.assert_array_equal(session.run(list(constant)[1]), [[3.0]])


def test_partition_info_checks_what_it_is_told():
    with pytest.raises(TypeError, match="must be a sequence"):
        PartitionInfo(3, [0])
    with pytest.raises(ValueError, match="Expected equal length"):
        PartitionInfo([3], [0, 0])
    with pytest.raises(ValueError, match="Expected 0 <= offset < shape"):
        PartitionInfo([3], [3])
    info = PartitionInfo([9, 3], [4, 0])
    assert info.single_slice_dim([9 - 4, 3]) == 0
    with pytest.raises(ValueError, match="would exceed"):
        info.single_slice_dim([6, 3])
    with pytest.raises(ValueError, match="either dimension 0 or 1"):
        PartitionInfo([9, 3], [0, 0]).single_slice_dim([2, 2])


def test_sharing_and_its_mistakes():
    cut = tf.fixed_size_partitioner(2)
    with tf.variable_scope("s", partitioner=cut):
        variable = tf.get_variable("v", [4, 2])
        scalar = tf.get_variable("scalar", [])
        with pytest.raises(ValueError, match="Partitioned variable with name s/v already exists"):
            tf.get_variable("v", [4, 2])
    assert not isinstance(scalar, PartitionedVariable)
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("v", [4, 2], partitioner=cut) is variable
        assert tf.get_variable("v", [4, 2]) is variable
        with pytest.raises(ValueError, match="specified shape"):
            tf.get_variable("v", [5, 2], partitioner=cut)
        with pytest.raises(ValueError, match="specified dtype"):
            tf.get_variable("v", [4, 2], tf.float64, partitioner=cut)
        with pytest.raises(ValueError, match="specified partitions"):
            tf.get_variable("v", [4, 2], partitioner=tf.fixed_size_partitioner(3))
        with pytest.raises(ValueError, match="PartitionedVariable s/w does not exist"):
            tf.get_variable("w", [4, 2], partitioner=cut)
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE), pytest.raises(ValueError, match="No partitioner was provided"):
        tf.get_variable("v", [4, 2])
    tf.get_variable("plain", [4])
    with pytest.raises(ValueError, match="an unpartitioned version of the variable was found: plain"):
        tf.get_variable("plain", [4], partitioner=cut)


@pytest.mark.parametrize(
    ("partitioner", "shape", "message"),
    [
        (lambda shape, dtype: 3, [4], "must return a sequence"),
        (lambda shape, dtype: [1, 1], [4], "does not match the Variable's rank"),
        (lambda shape, dtype: [0], [4], "zero partitions"),
        (lambda shape, dtype: [2, 2], [4, 4], "Can only slice a variable along one dimension"),
        (lambda shape, dtype: [2], [None], "must be fully defined"),
        ("not a function", [4], "Partitioner must be callable"),
    ],
)
def test_wrong_partitioners_are_refused(partitioner, shape, message):
    with pytest.raises(ValueError, match=message):
        tf.get_variable("v", shape, partitioner=partitioner)


def test_regularizers_and_custom_getters_see_partitions():
    seen = []

    def getter(getter, name, *args, **kwargs):
        seen.append((name, kwargs["partitioner"] is not None))
        return getter(name, *args, **kwargs)

    with tf.variable_scope("s", custom_getter=getter):
        tf.get_variable(
            "v",
            [4],
            regularizer=tf.reduce_sum,
            partitioner=tf.fixed_size_partitioner(2),
            initializer=tf.ones_initializer(),
        )
        with pytest.raises(ValueError, match="not allowed when a custom getter is set"):
            tf.create_partitioned_variables([4], [2], tf.ones_initializer())
    assert seen == [("s/v", True)]
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2


def test_create_partitioned_variables():
    parts = tf.create_partitioned_variables([5, 2], [2, 1], tf.zeros_initializer(), name="p")

    assert [(part.op.name, part.shape.as_list()) for part in parts] == [("p/part_0", [3, 2]), ("p/part_1", [2, 2])]
    assert [part.op.name for part in tf.create_partitioned_variables([4], [1], tf.zeros_initializer())] == [
        "PartitionedVariable/part_0"
    ]
    with pytest.raises(ValueError, match="must have the length"):
        tf.create_partitioned_variables([5, 2], [2], tf.zeros_initializer())
    with pytest.raises(ValueError, match="rank at least 1"):
        tf.create_partitioned_variables([], [], tf.zeros_initializer())


def test_assigning_the_whole_assigns_the_parts():
    variable = tf.get_variable("v", [3], initializer=tf.zeros_initializer(), partitioner=tf.fixed_size_partitioner(2))
    ops = [
        variable.assign(tf.constant([1.0, 2.0, 3.0])),
        variable.assign_add([[1.0, 1.0], [1.0]]),
        variable.assign_sub(variable),
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(ops[0])
        session.run(ops[1])
        np.testing.assert_array_equal(session.run(variable.as_tensor()), [2.0, 3.0, 4.0])
        session.run(ops[2])
        np.testing.assert_array_equal(session.run(variable.as_tensor()), [0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="has 2 parts, but 1 values were given"):
        variable.assign([[1.0]])


def test_slots_and_checkpoints_hold_slices(tmp_path):
    """Saved in three parts with their slots, the table is restored in two."""
    saved = {}
    for shards in (3, 2):
        with tf.Graph().as_default(), tf.Session() as session:
            cut = tf.fixed_size_partitioner(shards)
            table = tf.get_variable("t", [7, 2], partitioner=cut)
            optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
            train_op = optimizer.minimize(tf.reduce_sum(tf.square(table)))
            slots = [optimizer.get_slot(part, "momentum") for part in table]
            assert [s._get_save_slice_info().full_name for s in slots] == ["t/Momentum"] * shards
            saver = tf.train.Saver()
            if shards == 3:
                session.run(tf.global_variables_initializer())
                session.run(train_op)
                saved["path"] = saver.save(session, str(tmp_path / "model"))
            else:
                saver.restore(session, saved["path"])
            saved[shards] = [np.concatenate(session.run(list(parts))) for parts in (table, slots)]
    np.testing.assert_array_equal(saved[3], saved[2])
    assert tf.train.list_variables(saved["path"]) == [("t", [7, 2]), ("t/Momentum", [7, 2])]


def test_gathers_of_an_embedding_lie_with_their_shards(graph):
    setter = tf.train.replica_device_setter(ps_tasks=3)
    with tf.device(setter):
        table = tf.get_variable("t", [9, 2], partitioner=tf.fixed_size_partitioner(3))
        tf.nn.embedding_lookup(table, [1, 8, 4], partition_strategy="div")
    gathers = [op for op in graph.get_operations() if op.type == "GatherV2" and "embedding_lookup" in op.name]

    assert [op.device for op in gathers] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:2"]
    assert [op.colocation_groups() for op in gathers] == [[f"loc:@t/part_{i}".encode()] for i in range(3)]


def test_embedding_of_resource_variables_reads_rows_only(graph):
    table = tf.get_variable("t", [9, 2], partitioner=tf.fixed_size_partitioner(3), use_resource=True)
    rows = tf.nn.embedding_lookup(table, [[1, 8], [4, 4]], partition_strategy="div")

    assert rows.shape.as_list() == [2, 2, 2]
    assert len([op for op in graph.get_operations() if op.type == "ResourceGather"]) == 3
    slopes = tf.gradients(rows, list(table))
    assert all(isinstance(slope, tf.IndexedSlices) for slope in slopes)


def test_embeddings_refuse_what_makes_no_sense():
    with pytest.raises(ValueError, match="params must be specified"):
        tf.nn.embedding_lookup(None, [1])
    with pytest.raises(ValueError, match="Need at least one param"):
        tf.nn.embedding_lookup([], [1])
    table = tf.ones([4, 2])
    with pytest.raises(ValueError, match="Unrecognized partition strategy: odd"):
        tf.nn.embedding_lookup([table, table], [1], partition_strategy="odd")
    with pytest.raises(TypeError, match="sp_ids must be SparseTensor"):
        tf.nn.embedding_lookup_sparse(table, [1], None, combiner="sum")
    ids = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])
    with pytest.raises(ValueError, match="combiner must be one of"):
        tf.nn.embedding_lookup_sparse(table, ids, None, combiner="max")
    with pytest.raises(TypeError, match="sp_weights must be either None or SparseTensor"):
        tf.nn.embedding_lookup_sparse(table, ids, tf.ones([1]), combiner="sum")
    with pytest.raises(ValueError, match="Missing embedding_weights"):
        tf.nn.safe_embedding_lookup_sparse([], ids)
