"""Runs of one session that look up and train different ones of its embedding variables: each joins its own lookups."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def rows_of(one_table: bool) -> list[Any]:
    """A row each of three tables, or three rows of one; all begin with ones."""

    def table(number: int) -> Any:
        with tf.variable_scope("", reuse=tf.AUTO_REUSE):
            name = "t" if one_table else f"t{number}"
            return tf.get_embedding_variable(name, embedding_dim=1, initializer=tf.ones_initializer())

    return [tf.nn.embedding_lookup(table(number), tf.constant([number], tf.int64)) for number in range(3)]


RUNS = ((0, 1, 2), (0, 1), (0, 2))


@pytest.mark.parametrize("one_table", [False, True])
@pytest.mark.parametrize("runs", list(permutations(RUNS)))
def test_each_run_looks_up_and_trains_what_it_asks_for(runs: tuple[tuple[int, ...], ...], one_table: bool) -> None:
    rows = rows_of(one_table)
    trains = {
        wanted: tf.train.GradientDescentOptimizer(0.25).minimize(tf.add_n([rows[number] for number in wanted]))
        for wanted in runs
    }
    expected = [1.0, 1.0, 1.0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for wanted in (*runs, *runs):
            found = session.run([rows[number] for number in wanted])
            assert [float(each[0, 0]) for each in found] == [expected[number] for number in wanted]
            session.run(trains[wanted])
            for number in wanted:
                expected[number] -= 0.25
