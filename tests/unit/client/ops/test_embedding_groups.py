"""Lookups of several tables by the names of DeepRec: the same rows as one by one; what they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.compat.python.embedding_ops import fused_embedding_lookup_sparse, fused_safe_embedding_lookup_sparse

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def tables() -> list[Any]:
    raw = tf.get_embedding_variable("raw", 2, initializer=tf.ones_initializer())
    return [tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), raw]


def ids(offset: int = 0) -> tf.SparseTensor:
    """Ids 0 and 2, none, 1."""
    return tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([0, 2, 1], tf.int64) + offset, [3, 2])


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def test_sparse_ids_of_each_table_are_combined_and_trained() -> None:
    params = tables()
    weights = tf.SparseTensor(ids().indices, tf.constant([1.0, 3.0, 1.0]), [3, 2])
    found = tf.nn.group_embedding_lookup_sparse(params, [ids(), ids(1 << 40)], ["mean", "sum"], [weights, None])
    step = tf.train.GradientDescentOptimizer(1.0).minimize(tf.add_n([tf.reduce_sum(each) for each in found]))
    with tf.control_dependencies([step]):
        after = tf.identity(params[0].read_value())

    static, raw = run(found)
    assert static.tolist() == [[4.0, 5.0], [0.0, 0.0], [3.0, 4.0]]
    assert raw.tolist() == [[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
    assert run(after).tolist() == [[0.75, 1.75], [2.0, 3.0], [4.25, 5.25]]


def test_dense_ids_of_each_table() -> None:
    static, raw = run(tf.nn.group_embedding_lookup(tables(), [tf.constant([2, 0]), tf.constant([[7]], tf.int64)]))
    assert (static.tolist(), raw.tolist()) == ([[5.0, 6.0], [1.0, 2.0]], [[[1.0, 1.0]]])


def test_fused_names_are_the_plain_lookups() -> None:
    table = tables()[0]
    full = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([2, 0], tf.int64), [2, 1])
    plain = fused_embedding_lookup_sparse(table, full, combiner="sum", blocknums=None)
    safe = fused_safe_embedding_lookup_sparse(table, ids(), combiner="sum", default_id=1, prune=True)
    found = run([plain, safe])
    assert found[0].tolist() == [[5.0, 6.0], [1.0, 2.0]]
    assert found[1].tolist() == [[6.0, 8.0], [3.0, 4.0], [3.0, 4.0]]


def test_refusals() -> None:
    params = tables()
    with pytest.raises(ValueError, match="group_embedding_lookup needs ids as a list with an element for each table"):
        tf.nn.group_embedding_lookup(params, [tf.constant([1])])
    with pytest.raises(ValueError, match="needs combiners as a list with an element for each table, not 'mean'"):
        tf.nn.group_embedding_lookup_sparse(params[:1], [ids()], "mean")
    with pytest.raises(NotImplementedError, match="is_sequence=True"):
        tf.nn.group_embedding_lookup_sparse(params[:1], [ids()], ["sum"], is_sequence=True)
    with pytest.raises(NotImplementedError, match=r'strategy="collective".*"localized" here'):
        tf.config.experimental.enable_distributed_strategy(strategy="collective")
    tf.config.experimental.enable_distributed_strategy(strategy="localized")
