"""Lookups of embedding variables that can be made at the same time are one; those that cannot stay what they were."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.fake_cluster import fake_device
from support.verify_graph import verify, verify_parts
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.lookups_together import join_lookups
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core.opdefs.runtime_ops import SEND_OPS

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = 2
PS, WORKER = [f"/job:ps/replica:0/task:{index}" for index in range(PARTS)], "/job:worker/replica:0/task:0"
DEVICES = DeviceSet([fake_device(name) for name in (*PS, WORKER)], f"{WORKER}/device:CPU:0")
LOOKUP_OPS = ("EmbeddingSplit", "KvResourceGather", "EmbeddingMerge", "EmbeddingSum", "KvResourceSparseApplyAdagrad")
JOINED_OPS = ("EmbeddingSplit", "KvResourceGathers", "EmbeddingMerge", "EmbeddingSum", "KvResourceSparseApplies")


def joined(build: Callable[[], Any]) -> tuple[RuntimeGraph, RuntimeGraph]:
    """The graph that `build` makes, pruned to what it gives and placed; before and after."""
    setter = tf.train.replica_device_setter(ps_tasks=PARTS, worker_device="/job:worker/task:0")
    with tf.Graph().as_default() as graph, tf.device(setter):
        target = build()
    whole = RuntimeGraph.from_graph_def(graph.as_graph_def())
    placed = place(whole, DEVICES, devices_with_kernel=lambda op, attrs: ("CPU",))
    names = [each.op.name if isinstance(each, tf.Tensor) else each.name for each in target]
    before = prune(placed, (), (), names, client_device=DEVICES.device(DEVICES.client_device))
    after = verify(join_lookups(before), after="prune")
    verify_parts(partition(after, incarnation=DEVICES.incarnation).parts)
    return before, after


def table(name: str, width: int = 4, parts: int = PARTS, **more: Any) -> Any:
    return tf.get_embedding_variable(name, width, partitioner=tf.fixed_size_partitioner(parts), **more)


def ids(name: str, dtype: Any = tf.int64) -> Any:
    return tf.placeholder_with_default(tf.zeros([3], dtype), [None], name=name)


def trained(names: str = "abc", optimizer: Any = None, clip: bool = False, **more: Any) -> list[Any]:
    found = [tf.nn.embedding_lookup(table(name, **more), ids(name + "_ids")) for name in names]
    loss = tf.reduce_sum(tf.square(tf.concat(found, 1)))
    step = tf.train.get_or_create_global_step()
    optimizer = optimizer or tf.train.AdagradOptimizer(0.1)
    pairs = optimizer.compute_gradients(loss)
    if clip:
        gradients, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 1.0)
        pairs = [(gradient, each) for gradient, (_, each) in zip(gradients, pairs, strict=True)]
    return [optimizer.apply_gradients(pairs, global_step=step)]


def counts(graph: RuntimeGraph, *ops: str) -> list[int]:
    found = Counter(node.op for node in graph.nodes.values())
    return [found[op] for op in ops]


def sent(graph: RuntimeGraph) -> int:
    parts = partition(graph, incarnation=DEVICES.incarnation).parts
    return sum(node.op in SEND_OPS for part in parts.values() for node in part.node)


def test_a_step_of_many_columns_sends_as_much_as_one_of_two() -> None:
    few, many = (joined(lambda names=names: trained(names))[1] for names in ("ab", "abcdefgh"))

    assert sent(few) == sent(many)
    for graph in (few, many):
        assert counts(graph, *JOINED_OPS) == [1, PARTS, 1, 1, PARTS]
        assert counts(graph, "EmbeddingRows", *LOOKUP_OPS[-1:], "KvResourceGather") == [0, 0, 0]


def test_each_column_gets_its_own_rows() -> None:
    before, after = joined(trained)

    assert counts(before, *LOOKUP_OPS) == [3, 3 * PARTS, 3, 3, 3 * PARTS]
    (split,), (merge,), (total,) = (
        [node for node in after.nodes.values() if node.op == op] for op in JOINED_OPS[:4] if op != "KvResourceGathers"
    )
    assert [str(each) for each in split.inputs] == [str(each) for each in merge.inputs[:3]]
    (concat,) = [node for node in after.nodes.values() if node.op == "ConcatV2"]
    assert [str(each) for each in concat.inputs[:3]] == [f"{merge.name}:{n}" for n in range(3)]
    gathers = [node for node in after.nodes.values() if node.op == "KvResourceGathers"]
    for part, node in enumerate(gathers):
        assert node.device == f"{PS[part]}/device:CPU:0"
        assert [each.node for each in node.inputs[:3]] == [f"{name}/part_{part}" for name in "abc"]
    for part, node in enumerate(n for n in after.nodes.values() if n.op == "KvResourceSparseApplies"):
        handles = [f"{name}/part_{part}{slot}" for name in "abc" for slot in ("", "/Adagrad")]
        assert [each.node for each in node.inputs[:6]] == handles
        assert str(node.inputs[-3]) == f"{total.name}:{part}"


def test_what_reads_a_gradient_gets_the_share_of_its_column() -> None:
    before, after = joined(lambda: trained(clip=True))

    assert counts(after, "EmbeddingSum", "KvResourceSparseApplies") == [1, 0]
    assert counts(after, "KvResourceSparseApplyAdagrad") == counts(before, "KvResourceSparseApplyAdagrad")
    # gradients on the worker; keys on each parameter server
    apart = [node for node in after.nodes.values() if node.op == "EmbeddingRows"]
    assert sorted(node.device.removesuffix("/device:CPU:0") for node in apart) == [*PS, WORKER, WORKER]
    assert {node.attrs["N"] for node in apart} == {3}


@pytest.mark.parametrize(
    "build",
    [
        lambda: [*trained("a"), tf.nn.embedding_lookup(table("z", parts=1), ids("z_ids"))],
        lambda: [tf.nn.embedding_lookup(table(n, width), ids(n + "_ids")) for n, width in (("a", 4), ("b", 5))],
        lambda: [
            tf.nn.embedding_lookup(table("a"), ids("x")),
            tf.nn.embedding_lookup(table("b", key_dtype=tf.int32), ids("y", tf.int32)),
        ],
        lambda: [
            tf.nn.embedding_lookup(table(name, ev_option=option), ids(name + "_ids"))
            for name, option in (
                ("a", None),
                ("b", tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(filter_freq=2))),
            )
        ],
    ],
    ids=["other parts", "other widths", "other ids", "one counts"],
)
def test_lookups_of_different_kinds_stay_apart(build: Any) -> None:
    before, after = joined(build)

    assert counts(after, *JOINED_OPS) == counts(before, *JOINED_OPS)
    assert set(after.nodes) == set(before.nodes)


def test_a_lookup_that_waits_for_another_is_not_made_with_it() -> None:
    def chained() -> list[Any]:
        first = [tf.nn.embedding_lookup(table(name), ids(name + "_ids")) for name in "ab"]
        following = [tf.cast(each[:, 0], tf.int64) for each in first]
        return [tf.nn.embedding_lookup(table(name), i) for name, i in zip("cd", following, strict=True)]

    _, after = joined(chained)

    assert counts(after, "EmbeddingSplit", "KvResourceGathers", "EmbeddingMerge") == [2, 2 * PARTS, 2]


def test_a_lookup_that_is_told_to_wait_for_an_update_of_another_waits() -> None:
    def ordered() -> list[Any]:
        update = trained("ab")
        with tf.control_dependencies(update):
            return [tf.nn.embedding_lookup(table(name), ids(name + "_ids")) for name in "cd"]

    before, after = joined(ordered)

    assert counts(after, "EmbeddingSplit", "KvResourceSparseApplies") == [2, PARTS]
    (late,) = [node for node in after.nodes.values() if node.op == "EmbeddingSplit" and "c_ids" in str(node.inputs)]
    assert late.control_inputs == tuple(
        dict.fromkeys(n for node in before.nodes.values() if node.op == "EmbeddingSplit" for n in node.control_inputs)
    )


def test_lookups_in_a_branch_stay_what_they_were() -> None:
    def branched() -> list[Any]:
        def look_up() -> Any:
            return tf.add_n([tf.nn.embedding_lookup(table(name), ids(name + "_ids")) for name in "ab"])

        tables = [table(name) for name in "ab"]
        del tables
        with tf.variable_scope("", reuse=True):
            return [tf.cond(tf.constant(True) & tf.less(tf.size(ids("n")), 5), look_up, lambda: tf.zeros([1, 4]))]

    before, after = joined(branched)

    assert counts(before, "EmbeddingSplit") == counts(after, "EmbeddingSplit") == [2]
    assert counts(after, "KvResourceGathers") == [0]


def test_updates_by_other_rates_stay_apart() -> None:
    def two_rates() -> list[Any]:
        found = [tf.nn.embedding_lookup(table(name), ids(name + "_ids")) for name in "ab"]
        pairs = tf.train.AdagradOptimizer(0.1).compute_gradients(tf.reduce_sum(tf.square(tf.concat(found, 1))))
        a, b = pairs[:PARTS], pairs[PARTS:]
        return [
            tf.train.AdagradOptimizer(rate).apply_gradients(each)
            for rate, each in ((tf.random_uniform([]), a), (0.2, b))
        ]

    _, after = joined(two_rates)

    assert counts(after, "EmbeddingSum", "KvResourceSparseApplies") == [1, 0]
    assert counts(after, "KvResourceSparseApplyAdagrad") == [2 * PARTS]


def test_a_graph_without_such_lookups_is_the_same() -> None:
    before, after = joined(lambda: [tf.constant(1.0) + 1.0])

    assert after is before
