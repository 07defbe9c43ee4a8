"""Tensors of many variables cross together where that closes no cycle and makes nothing wait for more than it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.fake_cluster import fake_device
from support.verify_graph import verify, verify_parts
from tenfold_compiler.graph import bundles
from tenfold_compiler.graph.bundles import LEAST, MOST, Bundle, find_bundles, with_bundles
from tenfold_compiler.graph.copy_constants import copy_constants
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.node import check_acyclic
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core.opdefs.runtime_ops import SEND_OPS
from tenfold_kernels import registry

if TYPE_CHECKING:
    from collections.abc import Callable

PS, WORKER = [f"/job:ps/replica:0/task:{index}" for index in range(2)], "/job:worker/replica:0/task:0"
TASKS = {*PS, WORKER}
CPU = "/device:CPU:0"
DEVICES = DeviceSet([fake_device(name) for name in (*PS, WORKER)], WORKER + CPU)
#: Columns, of which some more than half cross together where there are two kinds of them.
COLUMNS = LEAST + 2


def placed(build: Callable[[], Any]) -> RuntimeGraph:
    """The graph that `build` makes, placed, pruned to what it gives, and as it is before bundles are made."""
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")
    with tf.Graph().as_default() as graph, tf.device(setter):
        targets = build()
    whole = RuntimeGraph.from_graph_def(graph.as_graph_def())
    whole = place(whole, DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",))
    names = [each.op.name if isinstance(each, tf.Tensor) else each.name for each in targets]
    pruned = prune(whole, (), (), names, client_device=DEVICES.device(DEVICES.client_device))
    return copy_constants(pruned)


def bundled(build: Callable[[], Any]) -> tuple[RuntimeGraph, list[Bundle], RuntimeGraph]:
    """The graph before, what is bundled, and the graph after."""
    before = placed(build)
    found = find_bundles(before, registry.may_view_input)
    after = verify(with_bundles(before, found, TASKS), after="prune")
    check_acyclic(after.nodes, list(after.nodes))
    verify_parts(partition(after, incarnation=DEVICES.incarnation).parts)
    return before, found, after


def sends(graph: RuntimeGraph) -> int:
    parts = partition(graph, incarnation=DEVICES.incarnation).parts
    return sum(node.op in SEND_OPS for part in parts.values() for node in part.node)


def ways(bundles: list[Bundle]) -> list[tuple[str, str, int]]:
    """From where to where, and how many tensors."""
    return sorted((*(task.replace("/replica:0", "") for task in each.tasks), len(each.tensors)) for each in bundles)


def table(number: int, parts: int = 2, **more: Any) -> Any:
    partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
    return tf.get_variable(f"t{number}", [10, 4], partitioner=partitioner, **more)


def ids(number: int, dtype: Any = tf.int64) -> Any:
    return tf.placeholder_with_default(tf.zeros([3], dtype), [None], name=f"ids{number}")


def rows(columns: int = COLUMNS, **more: Any) -> list[Any]:
    return [tf.nn.embedding_lookup(table(n, **more), ids(n), partition_strategy="div") for n in range(columns)]


def trained(**more: Any) -> list[Any]:
    loss = tf.reduce_sum(tf.square(tf.concat(rows(**more), 1)))
    return [tf.train.AdagradOptimizer(0.1).minimize(loss)]


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_step_of_training_has_three_ways_to_each_parameter_server(use_resource: bool) -> None:
    before, found, after = bundled(lambda: trained(use_resource=use_resource))
    assert ways(found) == [
        *((f"/job:ps/task:{n}", "/job:worker/task:0", COLUMNS) for n in range(2)),
        *(("/job:worker/task:0", f"/job:ps/task:{n}", COLUMNS * k) for n in range(2) for k in (1, 2)),
    ], "rows; gradients, and ids for the rows and for their gradients"
    assert sends(before) - sends(after) == 2 * 4 * COLUMNS - 6
    assert sum(node.op == "_Bundle" for node in after.nodes.values()) == 6


def test_names_of_nodes_stay_and_those_of_bundles_are_new() -> None:
    before, _, after = bundled(trained)
    assert list(after.nodes)[: len(before.nodes)] == list(before.nodes)
    assert all(after.nodes[name].op == node.op for name, node in before.nodes.items())


def test_few_tensors_cross_one_by_one() -> None:
    before, found, after = bundled(lambda: rows(LEAST - 1))
    assert found == []
    assert after is before


def test_as_many_as_are_worth_it_cross_together() -> None:
    _, found, _ = bundled(lambda: rows(LEAST))
    assert ways(found) == sorted(
        way
        for n in range(2)
        for way in (
            (f"/job:ps/task:{n}", "/job:worker/task:0", LEAST),
            ("/job:worker/task:0", f"/job:ps/task:{n}", LEAST),
        )
    )


def test_tasks_that_do_not_know_bundles_get_none() -> None:
    before = placed(trained)
    found = find_bundles(before, registry.may_view_input)
    assert with_bundles(before, found, {WORKER}) is before
    after = with_bundles(before, found, {WORKER, PS[1]})
    devices = {node.device for node in after.nodes.values() if node.op in ("_Bundle", "_Unbundle")}
    assert devices == {WORKER + CPU, PS[1] + CPU}


def test_a_lookup_by_the_rows_of_another_is_of_a_level_of_its_own() -> None:
    def build() -> list[Any]:
        first = rows(COLUMNS)
        more = [tf.get_variable(f"more{n}", [10, 4]) for n in range(2 * COLUMNS)]
        keys = [tf.to_int64(found[:, 0]) for found in first * 2]
        return [tf.nn.embedding_lookup(params, key) for params, key in zip(more, keys, strict=True)]

    _, found, _ = bundled(build)
    assert ways(found) == [
        *((f"/job:ps/task:{n}", "/job:worker/task:0", COLUMNS) for n in range(2) for _ in range(2)),
        *(("/job:worker/task:0", f"/job:ps/task:{n}", COLUMNS) for n in range(2) for _ in range(2)),
    ], "ids and rows, twice"


def test_what_waits_for_a_queue_crosses_apart_from_what_fills_it() -> None:
    """The second half of the ids comes out of a queue that the rows of the first half go into, in the same step."""

    def build() -> list[Any]:
        queue = tf.FIFOQueue(COLUMNS, [tf.int64], [[3]])
        first = rows(COLUMNS)
        with tf.device("/job:worker/task:0"):
            filled = [queue.enqueue([tf.to_int64(found[:, 0])]) for found in first]
            taken = [queue.dequeue() for _ in range(COLUMNS)]
        more = [tf.get_variable(f"more{n}", [10, 4]) for n in range(COLUMNS)]
        return [*filled, *(tf.nn.embedding_lookup(params, key) for params, key in zip(more, taken, strict=True))]

    before, found, _ = bundled(build)
    behind = before.behind(name for name, node in before.nodes.items() if node.op == "QueueDequeueV2")
    assert found
    for bundle in found:
        assert behind.isdisjoint(tensor.node for tensor in bundle.tensors), "each of them has a wait of its own"


def test_tensors_behind_the_same_queue_cross_together() -> None:
    def build() -> list[Any]:
        queue = tf.FIFOQueue(2, [tf.int64], [[COLUMNS, 3]])
        with tf.device("/job:worker/task:0"):
            each = tf.unstack(queue.dequeue())
        return [tf.nn.embedding_lookup(table(n), each[n], partition_strategy="div") for n in range(COLUMNS)]

    _, found, _ = bundled(build)
    assert {count for _, _, count in ways(found)} == {COLUMNS}


def test_what_stands_in_a_branch_crosses_as_it_did() -> None:
    def build() -> list[Any]:
        yes = tf.placeholder_with_default(True, [])
        return [tf.cond(yes, lambda: tf.concat(rows(), 1), lambda: tf.zeros([3, 4 * COLUMNS]))]

    _, found, _ = bundled(build)
    assert found == []


def test_many_tensors_are_several_bundles_of_nearly_one_size() -> None:
    _, found, _ = bundled(lambda: rows(MOST + 1))
    assert [count for _, _, count in ways(found)] == [(MOST + 1) // 2, MOST // 2 + 1] * 4


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_part_of_a_variable_crosses_as_it_did(use_resource: bool) -> None:
    """It is the variable's memory, and read when it is sent: a bundle is made later."""

    def build() -> list[Any]:
        with tf.device("/job:ps/task:0"):
            kept = [tf.get_variable(f"ids{n}", [2, 1], tf.int32, use_resource=use_resource) for n in range(COLUMNS)]
            given = [tf.squeeze(each, 1) for each in kept]
        with tf.device("/job:worker/task:0"):
            return [tf.gather(tf.zeros([9, 2]), each) for each in given]

    assert bundled(build)[1] == []


def test_a_learning_rate_that_comes_of_the_step_is_no_part_of_the_ids() -> None:
    """Else all ids would wait until the step's number has come from its task."""

    def build() -> list[Any]:
        step = tf.train.get_or_create_global_step()
        with tf.device("/job:worker/task:0"):
            rate = tf.train.exponential_decay(0.1, step, 10, 0.9)
        loss = tf.reduce_sum(tf.square(tf.concat(rows(), 1)))
        return [tf.train.AdagradOptimizer(rate).minimize(loss, global_step=step)]

    before, found, _ = bundled(build)
    behind = before.behind(["global_step"])
    first = [bundle for bundle in found if bundle.sender == WORKER + CPU and len(bundle.tensors) == 2 * COLUMNS]
    assert len(first) == 2
    assert all(behind.isdisjoint(tensor.node for tensor in bundle.tensors) for bundle in first)


def test_words_by_a_vocabulary_of_each_column_cross_together() -> None:
    def build() -> list[Any]:
        with tf.device("/job:worker/task:0"):
            words = tf.placeholder_with_default(tf.constant([["a", "b"]] * COLUMNS), [COLUMNS, None])
            tables = [tf.contrib.lookup.index_table_from_tensor(["a", "b"]) for _ in range(COLUMNS)]
            keys = []
            for known, each in zip(tables, tf.unstack(words), strict=True):
                noted = tf.raw_ops.Assert(condition=tf.constant(True), data=[tf.constant(1)], name="noted")
                with tf.control_dependencies([noted]):
                    keys.append(known.lookup(each))
        return [tf.nn.embedding_lookup(table(n), keys[n], partition_strategy="div") for n in range(COLUMNS)]

    _, found, _ = bundled(build)
    assert {count for _, _, count in ways(found)} == {COLUMNS}


def test_texts_and_what_is_of_no_rows_cross_as_they_did() -> None:
    def texts() -> list[Any]:
        with tf.device("/job:ps/task:0"):
            words = [tf.constant(["a" * 5000, "b"], name=f"w{n}") for n in range(COLUMNS)]
            found = [tf.gather(each, ids(n)) for n, each in enumerate(words)]
        return [tf.identity(each) for each in found]

    def dense() -> list[Any]:
        with tf.device("/job:ps/task:0"):
            found = [tf.negative(table(n, 1)) for n in range(COLUMNS)]
        return [tf.abs(each) for each in found]

    def whole() -> list[Any]:
        keys = [tf.gather(tf.get_variable(f"map{n}", [9], tf.int64), ids(n)) for n in range(2 * COLUMNS)]
        return [tf.gather(table(n, 1), key) for n, key in enumerate(keys)]

    assert bundled(texts)[1] == []
    assert bundled(whole)[1] == []
    assert bundled(dense)[1] == []


def test_all_that_take_a_tensor_take_it_from_the_bundle() -> None:
    def build() -> list[Any]:
        found = rows()
        return [*found, *(tf.negative(each) for each in found), tf.reduce_sum(found[0])]

    before, _, after = bundled(build)
    assert sends(after) == len([node for node in after.nodes.values() if node.op == "_Bundle"])
    assert sends(before) > sends(after)


def drawn(seed: int) -> list[Any]:
    """Ids that are made of each other on three tasks, some of them behind a queue or after a node of another task."""
    choose = np.random.default_rng(seed)
    with tf.device("/job:worker/task:0"):
        queue = tf.FIFOQueue(9, [tf.int64], [[3]])
        found = [tf.placeholder_with_default(tf.zeros([3], tf.int64), [3]) for _ in range(3)]
    for _ in range(50):
        one, other, before = (found[at] for at in choose.integers(max(0, len(found) - 12), len(found), 3))
        after = [before.op] if choose.random() < 0.2 else []
        task = choose.choice(["/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"])
        with tf.control_dependencies(after), tf.device(task):
            if choose.random() < 0.04:
                with tf.device("/job:worker/task:0"):
                    found.append(queue.dequeue())
            else:
                found.append(tf.unique(one)[0] if choose.random() < 0.5 else tf.add(one, other))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_any_graph_has_no_cycle_then_and_nothing_waits_for_more(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "LEAST", 2)
    before, found, _ = bundled(lambda: drawn(seed))
    waits = {
        name: before.behind([name])
        for name, node in before.nodes.items()
        if node.op in ("QueueDequeueV2", "FIFOQueueV2")
    }
    assert found
    for bundle in found:
        behind = [{name for name, nodes in waits.items() if t.node in nodes} for t in bundle.tensors]
        assert all(each == behind[0] for each in behind)
