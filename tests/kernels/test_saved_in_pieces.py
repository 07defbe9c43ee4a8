"""Saves of a large variable while rows of it are updated: the file has one moment, and the variable stays in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tenfold as tf
from tenfold_kernels.resources import kept_rows
from tenfold_kernels.resources.state import Variable

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROWS, WIDTH = 8192, 64


def test_updates_of_rows_beside_a_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tf.get_variable("v", [ROWS, WIDTH], initializer=tf.ones_initializer())
    ids = tf.constant([1, 7, ROWS - 1, 7])
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
    train = tf.train.AdagradOptimizer(1.0, initial_accumulator_value=3.0).minimize(loss)
    with tf.control_dependencies([train]):
        train = tf.scatter_add(table, [5], tf.ones([1, WIDTH]))
    saver = tf.train.Saver()
    moved: list[str] = []
    buffer = Variable.buffer

    def watched(variable: Variable, **how: Any) -> Any:
        before = variable.anchor
        found = buffer(variable, **how)
        if variable.anchor is not before:
            moved.append(variable.name)
        return found

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)  # what reads the first value is gone
        before = session.run([table, *(each for each in tf.global_variables() if "Adagrad" in each.name)])
        updates = iter(range(2))

        def update(pause: float) -> None:
            if next(updates, None) is not None:
                session.run(train)

        monkeypatch.setattr(kept_rows.time, "sleep", update)
        monkeypatch.setattr(Variable, "buffer", watched)
        path = saver.save(session, str(tmp_path / "model"))
        monkeypatch.undo()
        after = session.run(table)
    assert next(updates, None) is None
    assert not moved
    reader = tf.train.load_checkpoint(path)
    for name, value in zip(("v", "v/Adagrad"), before, strict=True):
        np.testing.assert_array_equal(reader.get_tensor(name), value)
    assert sorted(set(np.flatnonzero((after != before[0]).any(axis=1)))) == [1, 5, 7, ROWS - 1]
