"""Lookup tables through a session: filled, asked, counted. The machine's own tests are tests/unit/kernels/resources."""

from __future__ import annotations

import pytest

import tenfold as tf

raw = tf.raw_ops


@pytest.mark.parametrize("kind", ["HashTableV2", "MutableHashTableV2"])
def test_keys_find_their_values_and_others_the_default(kind: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = getattr(raw, kind)(key_dtype=tf.string, value_dtype=tf.int64)
        if kind == "HashTableV2":
            filled = raw.InitializeTableV2(table_handle=table, keys=["a", "b"], values=tf.constant([1, 2], tf.int64))
        else:
            filled = raw.LookupTableInsertV2(table_handle=table, keys=["a", "b"], values=tf.constant([1, 2], tf.int64))
        found = raw.LookupTableFindV2(table_handle=table, keys=["b", "?"], default_value=tf.constant(-1, tf.int64))

        session.run(filled)

        assert session.run(found).tolist() == [2, -1]
        assert session.run(raw.LookupTableSizeV2(table_handle=table)) == 2


def test_a_table_that_was_not_filled_says_so() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        found = raw.LookupTableFindV2(table_handle=table, keys=["b"], default_value=tf.constant(-1, tf.int64))

        with pytest.raises(tf.errors.FailedPreconditionError, match="not initialized"):
            session.run(found)
