"""Lookups of embedding variables in conditionals and loops train the ids that were asked for, and add no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def ids_of(*ids: int) -> Any:
    return tf.constant(ids, tf.int64)


def in_cond(table: Any, first: bool) -> Any:
    return tf.cond(
        tf.equal(ids_of(3)[0] > 1, first),
        lambda: tf.nn.embedding_lookup(table, ids_of(6)),
        lambda: tf.ones([1, 2]),
    )


def in_either_branch(table: Any) -> Any:
    one, other = (lambda id=id: tf.nn.embedding_lookup(table, ids_of(id)) for id in (6, 15))
    return tf.cond(ids_of(3)[0] < 1, one, other)


def in_a_loop(table: Any) -> Any:
    def body(i: Any, total: Any) -> Any:
        return i + 1, total + tf.nn.embedding_lookup(table, tf.reshape(tf.cast(i + 4, tf.int64), [1]))

    return tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), tf.zeros([1, 2])])[1]


def in_a_branch_of_a_loop(table: Any) -> Any:
    def body(i: Any, total: Any) -> Any:
        found = tf.cond(
            tf.equal(i, 1),
            lambda: tf.nn.embedding_lookup(table, tf.reshape(tf.cast(i + 4, tf.int64), [1])),
            lambda: tf.ones([1, 2]),
        )
        return i + 1, total + found

    return tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), tf.zeros([1, 2])])[1]


def in_a_map(table: Any) -> Any:
    return tf.map_fn(lambda i: tf.nn.embedding_lookup(table, i), tf.constant([[1], [2], [1]], tf.int64), tf.float32)


@pytest.mark.parametrize(
    ("net", "trained"),
    [
        (lambda table: in_cond(table, True), {6: 0.75}),
        (lambda table: in_cond(table, False), {}),
        (lambda table: in_cond(table, False) + tf.nn.embedding_lookup(table, ids_of(2)), {2: 0.75}),
        (in_either_branch, {15: 0.75}),
        (in_a_loop, {4: 0.75, 5: 0.75, 6: 0.75}),
        (in_a_branch_of_a_loop, {5: 0.75}),
        (in_a_map, {1: 0.5, 2: 0.75}),
    ],
    ids=["taken", "not taken", "beside another", "either branch", "loop", "branch of a loop", "map"],
)
def test_the_ids_asked_for_are_trained(net: Callable[[Any], Any], trained: dict[int, float]) -> None:
    table = tf.get_embedding_variable("table", embedding_dim=2, initializer=tf.ones_initializer())
    train = tf.train.GradientDescentOptimizer(0.25).minimize(tf.reduce_sum(net(table)))
    export = table.export()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        keys, values = session.run(export)[:2]
    assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == {id: [value] * 2 for id, value in trained.items()}


@pytest.mark.parametrize("record", ["0", "1"])
def test_an_empty_table_says_zero_of_any_id(record: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_RECORD_FREQ", record)
    monkeypatch.setenv("TF_RECORD_VERSION", record)
    table = tf.get_embedding_variable("table", embedding_dim=2)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([table.get_frequency(ids_of(1, 2)), table.get_version(ids_of(1, 2))])
    assert [each.tolist() for each in found] == [[0, 0], [0, 0]]
