"""DestroyResourceOp: whatever a resource handle names is forgotten, and its bytes count no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold_kernels.resources.datasets.iterators import DatasetIterator
from tenfold_kernels.resources.quota import StateQuota
from tenfold_kernels.resources.state import ResourceHandle, ResourceManager

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

raw = tf.raw_ops


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def hash_table() -> tuple[Any, Any, Any]:
    """(handle, what fills it, what then tells that it is filled)"""
    table = tf.contrib.lookup.MutableHashTable(tf.int64, tf.float32, 0.0, shared_name="t")
    return table.resource_handle, table.insert(tf.constant([1], tf.int64), tf.constant([2.0])), table.size()


def queue() -> tuple[Any, Any, Any]:
    made = tf.FIFOQueue(3, tf.int32, shared_name="q")
    return made.queue_ref, made.enqueue(1), made.size()


def embedding() -> tuple[Any, Any, Any]:
    var = tf.get_embedding_variable("v", 2)
    filled = tf.nn.embedding_lookup(var, tf.constant([5], tf.int64))
    return var.handle, [var.initializer, filled], tf.cast(var.is_initialized(), tf.int32)


def variable() -> tuple[Any, Any, Any]:
    var = tf.get_variable("w", [2], use_resource=True)
    return var.handle, var.initializer, tf.cast(tf.is_variable_initialized(var), tf.int32)


def dense_table() -> tuple[Any, Any, Any]:
    table = tf.contrib.lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, empty_key=0, deleted_key=-1)
    return table.resource_handle, table.insert(tf.constant([1], tf.int64), tf.constant([2], tf.int64)), table.size()


@pytest.mark.parametrize("make", [hash_table, queue, embedding, variable, dense_table], ids=lambda each: each.__name__)
def test_what_a_handle_names_begins_anew(make: Callable[[], tuple[Any, Any, Any]]) -> None:
    handle, fill, filled = make()
    lenient, strict = (raw.DestroyResourceOp(resource=handle, ignore_lookup_error=each) for each in (True, False))
    with tf.Session() as session:
        for step in fill if isinstance(fill, list) else [fill]:
            session.run(step)
        assert session.run(filled) == 1
        session.run(strict)
        assert session.run(filled) == 0
        session.run([lenient])


def test_an_iterator_ends_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, end_work = [], DatasetIterator.end_work
    monkeypatch.setattr(DatasetIterator, "end_work", lambda self: (ended.append(self), end_work(self)))
    dataset = tf.data.Dataset.range(100).prefetch(2)
    iterator = tf.data.make_initializable_iterator(dataset, shared_name="numbers")
    following, destroy = iterator.get_next(), raw.DestroyResourceOp(resource=iterator._iterator_resource)
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(following) == 0
        session.run(destroy)
        assert len(ended) == 1
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(following)
        session.run(iterator.initializer)
        assert session.run(following) == 0


def test_what_is_not_there_is_an_error_where_that_is_asked_for() -> None:
    handle = raw.VarHandleOp(dtype=tf.float32, shape=[], shared_name="nothing")
    with tf.Session() as session:
        session.run(raw.DestroyResourceOp(resource=handle))
        with pytest.raises(tf.errors.NotFoundError, match=r"Resource localhost/nothing/Variable does not exist"):
            session.run(raw.DestroyResourceOp(resource=handle, ignore_lookup_error=False))


class Kept:
    def __init__(self, account: Any) -> None:
        self.account = account
        account.add(10)


class Other:
    pass


def test_only_the_type_that_the_handle_has_goes_and_its_account_closes() -> None:
    resources = ResourceManager(quota=StateQuota())
    kept = resources.lookup_or_create("", "x", Kept, lambda: Kept(resources.quota.account("x")))
    other = resources.lookup_or_create("", "x", Other, Other)
    elsewhere = resources.lookup_or_create("c", "x", Other, Other)

    assert resources.forget(ResourceHandle("", "", "y")) == []
    assert resources.generation == 0
    assert resources.forget(ResourceHandle("", "", "x", type_name="Kept")) == [kept]
    assert (resources.generation, resources.quota.bytes) == (1, 0)
    assert resources.lookup("", "x", Other) is other
    assert resources.forget(ResourceHandle("", "", "x")) == [other]
    assert resources.lookup("c", "x", Other) is elsewhere
