"""SyncReplicasOptimizer without servers: what it adds to the graph, when it may be asked, what it hands on.

Training with it is in tests/cluster/test_sync_replicas.py.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tenfold as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def applied(aggregate=2, total=3, optimizer=None):
    """An optimizer whose gradients, one dense and one sparse, were applied."""
    step = tf.train.get_or_create_global_step()
    with tf.device("/job:ps/task:1"):
        dense, table = tf.get_variable("w", [2]), tf.get_variable("t", [5, 2])
    rows = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([3], tf.int64), tf.constant([5, 2], tf.int64))
    sync = tf.train.SyncReplicasOptimizer(optimizer or tf.train.MomentumOptimizer(0.1, 0.9), aggregate, total)
    train = sync.apply_gradients([(tf.ones([2]), dense), (rows, table), (None, tf.get_variable("u", []))], step)
    return sync, train, (dense, table)


def test_accumulators_lie_with_their_variables_and_tokens_with_the_step(graph):
    _, train, _ = applied()

    operations = {op.type: op for op in graph.get_operations()}
    assert operations["ResourceConditionalAccumulator"].get_attr("shared_name") == b"w:0/grad_accum"
    assert operations["SparseConditionalAccumulator"].get_attr("shared_name") == b"t:0/grad_accum"
    for kind in ("ResourceConditionalAccumulator", "SparseConditionalAccumulator"):
        assert operations[kind].device == "/job:ps/task:1"
    queues = [op.get_attr("shared_name") for op in graph.get_operations() if op.type == "FIFOQueueV2"]
    assert queues == [b"sync_token_q", b"dummy_queue"]
    assert train.op.type == "Assign"
    local_steps = [v.op.name for v in tf.local_variables()]
    assert local_steps == ["sync_rep_local_step"]
    assert tf.trainable_variables()[-1].op.name == "u"


def test_slots_and_variables_are_the_wrapped_optimizers():
    sync, _, (dense, table) = applied()

    assert sync.get_slot_names() == ["momentum"]
    assert sync.get_slot(dense, "momentum").op.name == "w/Momentum"
    assert {v.op.name for v in sync.variables()} == {"w/Momentum", "t/Momentum"}
    assert sync.get_slot(table, "momentum").device == table.device


def test_order_of_calls_is_checked():
    sync = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1, 1)
    variable = tf.get_variable("w", [])
    with pytest.raises(ValueError, match="after apply_gradients"):
        sync.get_chief_queue_runner()
    with pytest.raises(ValueError, match="after apply_gradients"):
        sync.get_init_tokens_op()
    with pytest.raises(ValueError, match="should be called before using the hook"):
        sync.make_session_run_hook(True).begin()
    with pytest.raises(ValueError, match="Must supply at least one variable"):
        sync.apply_gradients([], tf.train.get_or_create_global_step())
    with pytest.raises(ValueError, match="Global step is required to check staleness"):
        sync.apply_gradients([(tf.constant(1.0), variable)])
    with pytest.raises(ValueError, match="Unknown grad type!"):
        sync.apply_gradients([(3.0, variable)], tf.train.get_or_create_global_step())


def test_too_few_first_tokens_are_refused():
    sync, _, _ = applied(aggregate=5, total=2)

    with pytest.raises(ValueError, match=r"Too few tokens to finish the first step: 2 \(given\) vs 3 \(needed\)"):
        sync.get_init_tokens_op(2)
    assert sync.get_init_tokens_op(3).type == "QueueEnqueueManyV2"


def test_no_first_tokens_are_an_op_too():
    sync, _, _ = applied()

    assert sync.get_init_tokens_op(0).type == "NoOp"


@pytest.mark.parametrize("dense", [True, False])
def test_one_worker_alone_makes_every_step(dense):
    step = tf.train.get_or_create_global_step()
    table = tf.get_variable("t", [3, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_sum(table if dense else tf.gather(table, [1, 1]))
    averages = tf.train.ExponentialMovingAverage(0.5)
    sync = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(1.0), 1, 1, variable_averages=averages, variables_to_average=[table]
    )
    train = sync.minimize(loss, global_step=step)
    hooks = [sync.make_session_run_hook(is_chief=True), tf.train.StopAtStepHook(last_step=4)]
    threads = threading.active_count()
    with tf.train.MonitoredSession(hooks=hooks, stop_grace_period_secs=30) as session:
        # no update is under way while the first token is still there
        while not session.should_stop():
            values = session.run([train, step, table])
            last = session._tf_sess()
        count, value = last.run([step, table])

    assert len(values) == 3
    assert count == 4
    np.testing.assert_array_equal(value[:, 0], [-4, -4, -4] if dense else [0, -8, 0])
    assert averages.average(table) is not None
    assert threading.active_count() <= threads + 8
