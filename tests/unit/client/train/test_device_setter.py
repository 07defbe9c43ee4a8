"""`tf.train.replica_device_setter`: where variables and other operations go."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf
from tenfold.train.device_setter import GreedyLoadBalancingStrategy, byte_size_load_fn

CLUSTER = {"ps": ["ps0:2222", "ps1:2222"], "worker": ["w0:2222", "w1:2222", "w2:2222"]}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_variables_go_round_robin_and_the_rest_to_the_worker(graph, use_resource):
    with tf.device(tf.train.replica_device_setter(cluster=CLUSTER, worker_device="/job:worker/task:1")):
        variables = [tf.Variable(0.0, name=f"v{i}", use_resource=use_resource) for i in range(3)]
        total = variables[0] + 1.0

    assert [v.device for v in variables] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert [v.initializer.device for v in variables] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert total.device == "/job:worker/task:1"


def test_reads_and_updates_stay_with_the_variable(graph):
    with tf.device(tf.train.replica_device_setter(cluster=CLUSTER)):
        tf.Variable(0.0, name="a")
        variable = tf.Variable(0.0, name="b")
        update = tf.assign_add(variable, 1.0)

    assert graph.get_operation_by_name("b/read").device == "/job:ps/task:1"
    assert update.device == "/job:ps/task:1"


def test_slots_and_updates_of_an_optimizer_stay_with_their_variable(graph):
    with tf.device(tf.train.replica_device_setter(cluster=CLUSTER)):
        first = tf.get_variable("first", [2])
        second = tf.get_variable("second", [2])
        loss = tf.reduce_sum(first * second)
        optimizer = tf.train.AdamOptimizer()
        optimizer.minimize(loss)

    assert optimizer.get_slot(first, "m").device == first.device == "/job:ps/task:0"
    assert optimizer.get_slot(second, "v").device == second.device == "/job:ps/task:1"
    assert graph.get_operation_by_name("Adam/update_second/ApplyAdam").device == "/job:ps/task:1"
    assert graph.get_operation_by_name("beta1_power").device == "/job:ps/task:0"
    assert graph.get_operation_by_name("gradients/mul_grad/Mul").device == "/job:worker"


def test_requested_parts_are_kept():
    setter = tf.train.replica_device_setter(ps_tasks=2)
    with tf.device(setter), tf.device("/cpu:0"):
        variable = tf.Variable(0.0)
        constant = tf.constant(1)

    assert variable.device == "/job:ps/task:0/device:CPU:0"
    assert constant.device == "/job:worker/device:CPU:0"


def test_a_variable_that_asks_for_another_job_does_not_count():
    with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        with tf.device("/job:worker/task:0"):
            local = tf.Variable(0.0)
        first = tf.Variable(0.0)

    assert local.device == "/job:worker/task:0"
    assert first.device == "/job:ps/task:0"


def test_forms_of_the_cluster():
    spec = tf.train.ClusterSpec(CLUSTER)

    for cluster in (CLUSTER, spec, spec.as_cluster_def()):
        with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(cluster=cluster)):
            assert [tf.Variable(0).device for _ in range(3)][1:] == ["/job:ps/task:1", "/job:ps/task:0"]


def test_without_parameter_servers_there_is_no_setter():
    assert tf.train.replica_device_setter() is None
    assert tf.train.replica_device_setter(cluster={"worker": ["w0:1"]}) is None
    with tf.device(None):
        assert tf.Variable(0.0).device == ""


def test_own_strategy_and_ops():
    setter = tf.train.replica_device_setter(
        ps_tasks=3, ps_device="/job:params", worker_device="/job:w", ps_ops=["Const"], ps_strategy=lambda op: 2
    )
    with tf.device(setter):
        assert tf.constant(0).device == "/job:params/task:2"
        assert tf.no_op().device == "/job:w"
    with pytest.raises(TypeError, match="callable"):
        tf.train.replica_device_setter(ps_tasks=1, ps_strategy=3)


def test_merge_devices_can_be_turned_off():
    with pytest.warns(DeprecationWarning, match="merge_devices"):
        setter = tf.train.replica_device_setter(ps_tasks=1, merge_devices=False)
    with tf.device(setter), tf.device("/gpu:0"):
        assert tf.Variable(0.0).device == "/device:GPU:0"


def test_greedy_strategy_balances_bytes():
    strategy = GreedyLoadBalancingStrategy(2, byte_size_load_fn)
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, ps_strategy=strategy)):
        sizes = [1000, 10, 10, 10]
        devices = [tf.Variable(np.zeros(n, np.float32)).device for n in sizes]

    assert devices == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1"]


def test_load_of_other_operations_is_unknown():
    with pytest.raises(ValueError, match="not a variable"):
        byte_size_load_fn(tf.no_op("n"))
