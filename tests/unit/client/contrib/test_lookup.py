"""tf.contrib.lookup: tables that change and are saved, old names, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

lookup = tf.contrib.lookup


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize(
    "make",
    [
        lambda: lookup.MutableHashTable(tf.int64, tf.int64, -1, name="counts"),
        lambda: lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, 0, -2, initial_num_buckets=8, name="counts"),
    ],
    ids=["hash", "dense"],
)
def test_a_table_comes_back_from_a_checkpoint_as_it_was(make: Callable[[], Any], tmp_path: Path) -> None:
    table = make()
    keys = tf.constant([1, 2, 3], tf.int64)
    saver = tf.train.Saver()

    with tf.Session() as sess:
        sess.run(table.insert(keys[:2], [10, 20]))
        path = saver.save(sess, str(tmp_path / "model"))
        sess.run([table.insert(keys[1:], [0, 30]), table.remove(keys[:1])])
        changed = sess.run(table.lookup(keys))
        saver.restore(sess, path)
        restored = sess.run(table.lookup(keys))

    assert changed.tolist() == [-1, 0, 30]
    assert restored.tolist() == [10, 20, -1]
    assert [name for name, _ in tf.train.list_variables(path)] == ["counts-keys", "counts-values"]


def test_old_names_look_up_at_once(tmp_path: Path) -> None:
    vocabulary = tmp_path / "words"
    vocabulary.write_text("a\nb\n")
    table = lookup.string_to_index_table_from_file(str(vocabulary), num_oov_buckets=1)
    words = lookup.HashTable(lookup.TextFileStringTableInitializer(str(vocabulary)), "?")
    fetches = [
        lookup.string_to_index(tf.constant(["b", "c"]), ["a", "b"]),
        lookup.index_to_string(tf.constant([1, 5], tf.int64), ["a", "b"]),
        table.lookup(tf.constant(["b", "c"])),
        words.lookup(tf.constant([0, 9], tf.int64)),
    ]

    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        places, strings, in_file, lines = sess.run(fetches)
    assert places.tolist() == [1, -1]
    assert strings.tolist() == [b"b", b"UNK"]
    assert in_file.tolist() == [1, 2]
    assert lines.tolist() == [b"a", b"?"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: lookup.TextFileInitializer("f", tf.string, -1, tf.int64, -1), ValueError, "Keys must be dtype"),
        (
            lambda: lookup.TextFileInitializer("f", tf.float32, -2, tf.int64, -1),
            ValueError,
            "must be integer or string",
        ),
        (
            lambda: lookup.TextFileInitializer("f", tf.string, -2, tf.int64, -1, vocab_size=0),
            ValueError,
            "vocab_size 0",
        ),
        (lambda: lookup.IdTableWithHashBuckets(None, 2, key_dtype=tf.float64), TypeError, "expected integer or string"),
        (lambda: lookup.IdTableWithHashBuckets(None, 2, hasher_spec="fast"), TypeError, "must be of type HasherSpec"),
        (
            lambda: lookup.IdTableWithHashBuckets(None, 2, lookup.HasherSpec("slow", None)).lookup(tf.constant(["a"])),
            ValueError,
            "Unknown hasher 'slow'",
        ),
        (
            lambda: lookup.HashTable(lookup.KeyValueTensorInitializer(["a", "b"], [1, 2, 3]), -1),
            ValueError,
            "not compatible|Dimensions",
        ),
        (lambda: lookup.string_to_index_table_from_tensor([1, 2]), ValueError, "requires string"),
        (
            lambda: lookup.MutableHashTable(tf.int64, tf.int64, 0).remove(tf.constant(["a"])),
            TypeError,
            "Signature mismatch",
        ),
    ],
)
def test_what_is_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_what_is_done_with_a_table_that_changes_is_done_where_it_is() -> None:
    setter = tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")
    with tf.device(setter):
        table = lookup.MutableHashTable(tf.string, tf.int64, -1, name="t", checkpoint=False)
        keys = tf.constant(["a"])
        found = table.lookup(keys)
        done = [table.insert(keys, [1]), found.op, table.size().op, table.export()[0].op]

    assert {op.device for op in (table.resource_handle.op, *done)} == {"/job:ps/task:0"}
    assert keys.device == "/job:worker/task:0"
    assert found.op.name == "t_lookup_table_find/LookupTableFindV2"


def test_keys_may_be_vectors() -> None:
    table = lookup.MutableDenseHashTable(tf.int64, tf.float32, [-0.5, 0.5], [0, 1], [1, 0], name="pairs")
    keys = tf.constant([[3, 4], [5, 6]], tf.int64)

    found = table.lookup(keys)

    assert found.shape.as_list() == [2, 2]
    with tf.Session() as sess:
        sess.run(table.insert(keys[:1], [[1.0, 2.0]]))
        assert sess.run(found).tolist() == [[1.0, 2.0], [-0.5, 0.5]]
