"""do_async_embedding: what moves ahead and what stays, how old rows are, ends, errors, sessions; refusals."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from tenfold.ops.lookup_marks import async_embedding_mark_node
from tenfold_services.worker import program_loader

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def options(capacity: int = 1, threads: int = 1, ahead: bool = True) -> tf.ConfigProto:
    config = tf.ConfigProto()
    asked = config.graph_options.optimizer_options
    asked.do_async_embedding = ahead
    asked.async_embedding_options.capacity = capacity
    asked.async_embedding_options.threads_num = threads
    return config


def session(config: tf.ConfigProto, master: str = "", hooks: bool = True) -> Any:
    creator = tf.train.ChiefSessionCreator(master=master, config=config)
    return tf.train.MonitoredSession(creator, [tf.make_prefetch_hook()] if hooks else [])


def all_of(fetches: Any, config: tf.ConfigProto, master: str = "") -> list[Any]:
    found = []
    with session(config, master) as running:
        while not running.should_stop():
            found.append(running.run(fetches))
    return found


def batches(values: Any) -> Any:
    return tf.staged(tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(values)).get_next())


def one_id(steps: int) -> tuple[Any, Any, Any, Any]:
    """A table whose one row loses 1 in each step, so that a row says which updates it has; its row as a step is given
    it, how often the row was looked up, and what the table holds."""
    batch = batches(np.full([steps, 1], 7))
    table = tf.get_embedding_variable("table", embedding_dim=1, initializer=tf.zeros_initializer())
    row = tf.nn.embedding_lookup(table, batch)
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(row))
    with tf.control_dependencies([train]):
        seen = tf.identity(row)
    return seen, train, table.get_frequency(tf.constant([7], tf.int64))[0], table.export().values


@pytest.mark.parametrize(("capacity", "threads"), [(1, 1), (3, 1), (3, 2)])
def test_rows_come_ahead_and_lack_no_more_updates_than_said(
    capacity: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_RECORD_FREQ", "1")
    row, _, lookups, values = one_id(30)
    reached = tf.train.Coordinator()
    with session(options(capacity, threads)) as running:
        raw = running._tf_sess()
        while raw.run(lookups) < capacity + threads and not reached.wait_for_stop(0.001):
            pass
        seen = [float(running.run(row)[0, 0]) for _ in range(30)]
        left = raw.run(values)
    lack = [step + value for step, value in enumerate(seen)]
    assert min(lack) >= 0
    assert lack[1] == 1
    # one of several threads may be held up by the machine between a lookup and the buffer
    assert threads > 1 or max(lack) <= capacity + 1
    assert left.tolist() == [[-30.0]]


def test_without_the_option_rows_lack_nothing() -> None:
    row, *_ = one_id(8)
    assert [float(each[0, 0]) for each in all_of(row, options(ahead=False))] == [-step for step in range(8)]


def columns_net(rows: int, size: int) -> tuple[Any, Any, Any]:
    """Columns of all kinds, a dense net, and labels, over batches that share no id."""
    ids = np.arange(rows * size).reshape(rows, size)
    data = {
        "a": ids,
        "b": np.array([[f"x{each}" for each in row] for row in ids]),
        "c": ids % 3,
        "n": (ids % 5).astype(np.float32),
        "y": (ids % 2).astype(np.float32),
    }
    batch = batches(data)
    label = batch.pop("y")
    option = tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(filter_freq=1))
    embedded = [
        tf.feature_column.categorical_column_with_embedding("a", tf.int64, ev_option=option),
        tf.feature_column.categorical_column_with_embedding("b", tf.string),
    ]
    columns = [tf.feature_column.embedding_column(each, 4) for each in embedded]
    columns.append(tf.feature_column.numeric_column("n"))
    columns.append(
        tf.feature_column.indicator_column(tf.feature_column.categorical_column_with_identity("c", num_buckets=3))
    )
    net = tf.feature_column.input_layer(batch, columns)
    static = tf.get_variable("static", [rows * size, 4], initializer=tf.random_normal_initializer(seed=3))
    net = tf.concat([net, tf.nn.embedding_lookup(static, batch["a"])], 1)
    net = tf.layers.dense(net, 5, activation=tf.tanh, kernel_initializer=tf.glorot_uniform_initializer(seed=1))
    logit = tf.layers.dense(net, 1, kernel_initializer=tf.glorot_uniform_initializer(seed=2))
    loss = tf.losses.sigmoid_cross_entropy(label[:, None], logit)
    train = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=tf.train.get_or_create_global_step())
    return loss, train, label


def trained(ahead: bool) -> list[tuple[float, list[float]]]:
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        loss, train, label = columns_net(12, 6)
        return [(float(loss), given.tolist()) for loss, _, given in all_of([loss, train, label], options(2, 1, ahead))]


def test_batches_without_common_ids_train_as_without_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit: no program becomes a fused one meanwhile, whose functions differ in their last bits."""
    monkeypatch.setattr(program_loader, "_watch", lambda *_: None)
    found = trained(ahead=True)
    assert len(found) == 12
    assert found == trained(ahead=False)


def test_only_the_lookups_part_moves(graph: tf.Graph) -> None:
    loss, train, _ = columns_net(4, 6)
    with session(options()) as running:
        running.run([loss, train])
    (put,) = (op for op in graph.get_operations() if op.name.startswith("async_embedding") and "nqueue" in op.type)
    above, left = set(), [put]
    while left:
        op = left.pop()
        if op not in above:
            above.add(op)
            left.extend(each.op for each in op.inputs)
    kinds = {op.type for op in above}
    assert "KvResourceGather" in str(kinds)
    assert not kinds & {"MatMul", "Tanh", "ResourceApplyAdagrad"}
    # gradients need of the rows of static tables how many they are, which is made ahead as well
    reads = [op for op in graph.get_operations() if op.type.startswith("KvResourceGather")]
    assert all(not any("gradients" in reader.name for reader in op.outputs[0].consumers()) for op in reads)


def test_each_batch_is_trained_on_once_and_the_input_ends_the_session() -> None:
    batch = batches(np.arange(40).reshape(20, 2))
    table = tf.get_embedding_variable("table", embedding_dim=1, initializer=tf.zeros_initializer())
    row = tf.nn.embedding_lookup(table, batch)
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(row))
    found = all_of([tf.identity(batch), train], options(4, 3))
    assert sorted(each for given, _ in found for each in given.tolist()) == list(range(40))


def test_an_error_of_a_lookup_ahead_ends_the_session() -> None:
    static = tf.get_variable("static", [4, 2], use_resource=True)
    row = tf.nn.embedding_lookup(static, batches(np.array([[1], [9]])))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices.*9.*\[0, 4\)"):
        all_of(tf.reduce_sum(row) + 1, options())


def test_what_a_step_is_fed_stays_in_it(caplog: pytest.LogCaptureFixture) -> None:
    table = tf.get_embedding_variable("table", embedding_dim=1, initializer=tf.ones_initializer())
    fed = tf.placeholder(tf.int64, [None])
    asked = tf.nn.embedding_lookup(table, fed, name="asked")
    given = tf.nn.embedding_lookup(table, batches(np.array([[1], [2]]))) + 0
    with caplog.at_level(logging.WARNING, "tenfold"), session(options()) as running:
        assert running.run([asked, given], {fed: [5, 6]})[0].tolist() == [[1], [1]]
        assert running.run(given).tolist() == [[1]]
    assert "asked stay in their step, as they need what is fed" in caplog.text


def test_what_a_loop_makes_stays_where_the_step_needs_it(caplog: pytest.LogCaptureFixture) -> None:
    batch = batches(np.array([[1], [2], [3]]))
    table = tf.get_embedding_variable("table", embedding_dim=1, initializer=tf.ones_initializer())
    doubled = tf.cond(batch[0] > 1, lambda: tf.nn.embedding_lookup(table, batch * 2), lambda: tf.ones([1, 1]))
    loss = tf.reduce_sum(doubled) + tf.reduce_sum(tf.nn.embedding_lookup(table, tf.cast(doubled[0], tf.int64)))
    train = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
    with caplog.at_level(logging.WARNING, "tenfold"):
        assert len(all_of([loss, train], options())) == 3
    assert "as they need what is inside of a loop or conditional" in caplog.text


def test_parts_that_share_nothing_have_buffers_of_their_own() -> None:
    table = tf.get_embedding_variable("table", embedding_dim=1, initializer=tf.ones_initializer())
    long, short = (batches(np.arange(size)[:, None]) for size in (6, 3))
    of_long = tf.concat([tf.nn.embedding_lookup(table, long), tf.cast(long[:, None], tf.float32)], 1)
    of_short = tf.nn.embedding_lookup(table, short) * 2
    with session(options()) as running:
        assert [float(running.run(of_long)[0, 1]) for _ in range(6)] == [0, 1, 2, 3, 4, 5]
        assert running.run(of_short).tolist() == [[2]]


def test_an_op_that_waits_for_the_moved_part_waits_for_its_value(graph: tf.Graph) -> None:
    count = tf.get_variable("count", initializer=0, trainable=False, use_resource=True)
    batch = batches(np.array([[1], [2], [3]]))
    table = tf.get_embedding_variable("table", embedding_dim=1, initializer=tf.ones_initializer())
    row = tf.nn.embedding_lookup(table, batch)
    with tf.control_dependencies([row]):
        counted = count.assign_add(1)
    found = all_of([tf.reduce_sum(row), counted], options())
    assert [int(count) for _, count in found] == [1, 2, 3]


def test_what_passes_may_be_fetched_and_fed_the_rest_may_not() -> None:
    batch = batches(np.array([[1], [2], [3]]))
    table = tf.get_embedding_variable("table", embedding_dim=1, initializer=tf.ones_initializer())
    halves = tf.identity(batch, name="halves")
    row = tf.nn.embedding_lookup(table, halves)
    total = tf.reduce_sum(row) + tf.cast(batch[0], tf.float32)
    with session(options()) as running:
        assert [int(running.run([batch, total])[0][0]) for _ in range(2)] == [1, 2]
        assert running.run(total, {batch: [5], row: [[2.0]]}) == 7
        for fetch in (halves, halves.op):
            with pytest.raises(ValueError, match=r"halves.* is made ahead of its step, by do_async_embedding"):
                running.run(fetch)
        with pytest.raises(ValueError, match="halves:0 is made ahead of its step, by do_async_embedding"):
            running.run(total, {halves: [3]})


def test_another_tensor_may_be_marked() -> None:
    table = tf.get_embedding_variable("table", embedding_dim=2, initializer=tf.ones_initializer())
    row = tf.nn.embedding_lookup(table, batches(np.array([[1], [2]])))
    scaled = tf.multiply(row, 3.0, name="scaled")
    async_embedding_mark_node(scaled)
    found = all_of(tf.reduce_sum(scaled, name="after"), options())
    assert [float(each) for each in found] == [6, 6]
    assert scaled.consumers()[-1].type == "QueueEnqueueV2"


def test_sessions_one_after_another_on_servers() -> None:
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.from_tensor_slices(np.arange(8)[:, None]))
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    with background_cluster({"ps": 2, "worker": 1}) as servers:
        where = tf.train.replica_device_setter(cluster=tf.train.ClusterSpec({"ps": ["a", "b"], "worker": ["c"]}))
        with tf.device(where):
            table = tf.get_embedding_variable(
                "table",
                embedding_dim=1,
                initializer=tf.zeros_initializer(),
                partitioner=tf.fixed_size_partitioner(2),
            )
            row = tf.nn.embedding_lookup(table, tf.staged(iterator.get_next()))
            train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(row))
        fetches = [tf.identity(row), train]
        for _ in range(3):
            found = all_of(fetches, options(2, 2), servers["worker", 0].target)
            assert len(found) == 8
    buffers = [op for op in tf.get_default_graph().get_operations() if op.name == "async_embedding/buffer"]
    assert [op.device for op in buffers] == ["/job:worker"]


def test_the_hook_is_missed(caplog: pytest.LogCaptureFixture) -> None:
    one_id(2)
    with caplog.at_level(logging.WARNING, "tenfold"), session(options(), hooks=False):
        pass
    assert "tf.make_prefetch_hook() is not among the hooks of this session" in caplog.text


def test_a_graph_without_lookups_is_left_as_it_is(graph: tf.Graph, caplog: pytest.LogCaptureFixture) -> None:
    doubled = batches(np.arange(3)) * 2
    with caplog.at_level(logging.WARNING, "tenfold"):
        assert all_of(doubled, options()) == [0, 2, 4]
    assert "no lookup of this graph can be made ahead of its step" in caplog.text


def test_refusals() -> None:
    one_id(2)
    for capacity, threads in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match=f"threads_num and capacity of 1 or more, not {threads} and {capacity}"):
            session(options(capacity, threads))
