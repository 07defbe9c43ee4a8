"""Variables of which an id has several pieces: two tables by hashes, and blocks of an embedding variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def trained(rows: Any) -> Any:
    step = tf.train.get_or_create_global_step()
    return tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.square(rows)), global_step=step)


@pytest.mark.parametrize("operation", ["concat", "add", "mul"])
@pytest.mark.parametrize("parts", [None, 2])
def test_a_multihash_variable_is_two_lookups(operation: str, parts: int | None) -> None:
    ids = [0, 1, 2, 4, 6, 7]
    divide = tf.fixed_size_partitioner(parts) if parts else None
    found = {}
    for kind in ("by hand", "multihash"):
        with tf.variable_scope(kind.split()[0], initializer=tf.constant_initializer(0.5), partitioner=divide):
            if kind == "multihash":
                rows = tf.nn.embedding_lookup(
                    tf.get_multihash_variable("v", [[5, 6], [3, 6]], operation=operation), tf.constant(ids, tf.int64)
                )
            else:
                tables = [tf.get_variable(f"v/{i}", [count, 6]) for i, count in enumerate((5, 3))]
                quotient, remainder = (
                    tf.nn.embedding_lookup(table, tf.constant(where, tf.int64))
                    for table, where in zip(tables, ([i // 5 for i in ids], [i % 3 for i in ids]), strict=True)
                )
                joined = {"add": quotient + remainder, "mul": quotient * remainder}
                rows = joined.get(operation, tf.concat([quotient, remainder], 1))
        train = trained(rows)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(2):
                session.run(train)
            found[kind] = session.run(rows)

    assert rows.shape.as_list() == [6, 12 if operation == "concat" else 6]
    np.testing.assert_array_equal(found["multihash"], found["by hand"])
    names = [var.op.name for var in tf.trainable_variables() if var.op.name.startswith("multihash")]
    of_parts = [f"/part_{i}" for i in range(parts)] if parts else [""]
    assert names == [f"multihash/v/multihash_{i}{part}" for i in range(2) for part in of_parts]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"dims": [[5, 6]]}, r"need two tables, but dims has 1: \[\[5, 6\]\]"),
        ({"dims": [[5], [3]]}, r"dims must be two shapes \[rows, width\], not \[\[5\], \[3\]\]"),
        ({"dims": [[5, 6], [3, 4]]}, "To add rows they must be of one width, not 6 and 4"),
        ({"operation": "mean"}, "operation must be one of 'add', 'mul', 'concat', not 'mean'"),
        ({"complementary_strategy": "R"}, "complementary_strategy must be 'Q-R', not 'R'"),
        ({"num_of_partitions": 3}, "num_of_partitions must be 2 with the strategy Q-R, not 3"),
    ],
)
def test_multihash_variables_that_there_are_not(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        tf.get_multihash_variable("v", **{"dims": [[5, 6], [3, 6]], **given})


@pytest.mark.parametrize("parts", [None, 3])
def test_an_id_has_as_many_blocks_as_it_is_given(parts: int | None, tmp_path: Path) -> None:
    divide = tf.fixed_size_partitioner(parts) if parts else None
    var = tf.get_dynamic_dimension_embedding_variable("v", 2, 3, initializer=tf.ones_initializer(), partitioner=divide)
    counts = tf.placeholder(tf.int32, [None])
    rows = tf.nn.embedding_lookup(var, tf.constant([7, 8, 9], tf.int64), blocknums=counts)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(rows))
    saver = tf.train.Saver()
    assert (var.blocknum(), var.shape.as_list(), rows.shape.as_list()) == (3, [6], [3, 6])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(rows, {counts: [0, 3, 1]}).tolist() == [[0] * 6, [1] * 6, [1, 1, 0, 0, 0, 0]]
        session.run(train, {counts: [2, 1, 0]})
        all_blocks = [[0.5] * 4 + [1] * 2, [0.5] * 2 + [1] * 4, [1] * 6]
        path = saver.save(session, str(tmp_path / "model"))
        assert session.run(rows, {counts: [3, 3, 3]}).tolist() == all_blocks
    saved = dict(tf.train.list_variables(path))
    assert sum(shape[0] for name, shape in saved.items() if name.startswith("v/block2") and name.endswith("-keys")) == 1
    with tf.Session() as session:
        saver.restore(session, path)
        assert session.run(rows, {counts: [3, 3, 3]}).tolist() == all_blocks


def test_blocks_need_their_numbers() -> None:
    var = tf.get_dynamic_dimension_embedding_variable("v", 2, 3)
    with pytest.raises(ValueError, match="A lookup in v needs blocknums: how many blocks each id has"):
        tf.nn.embedding_lookup(var, tf.constant([7], tf.int64))
    with pytest.raises(ValueError, match="w needs at least one block of one element, not 0 of 2"):
        tf.get_dynamic_dimension_embedding_variable("w", 2, 0)


def test_other_tables_do_without_them() -> None:
    var = tf.get_embedding_variable("v", 2, initializer=tf.ones_initializer())
    rows = tf.nn.embedding_lookup(var, tf.constant([7], tf.int64), blocknums=[1])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(rows).tolist() == [[1, 1]]
