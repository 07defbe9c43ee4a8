"""Work queues by their ops: made once, filled, taken until they are empty and closed, saved and restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

raw = tf.raw_ops


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_works_are_taken_in_their_order_until_there_are_none(session: tf.Session) -> None:
    handle = raw.WorkQueueHandleOp(shared_name="works")
    made, size, take = (
        raw.WorkQueueIsInitialized(handle=handle),
        raw.WorkQueueSize(handle=handle),
        raw.WorkQueueTake(handle=handle),
    )
    assert not session.run(made)
    with pytest.raises(tf.errors.FailedPreconditionError, match="The work queue works was not created"):
        session.run(size)
    for _ in range(2):
        session.run(raw.WorkQueueCreate(handle=handle, shared_name="works"))
    session.run(raw.WorkQueuePut(handle=handle, works=["a", "b", "c"]))

    assert session.run([made, size]) == [True, 3]
    assert session.run(take) == b"a"
    assert session.run(raw.WorkQueueSave(handle=handle)).tolist() == [b"b", b"c"]
    assert session.run(size) == 2
    for _ in range(2):
        session.run(raw.WorkQueueClose(handle=handle))
    assert [session.run(take), session.run(take)] == [b"b", b"c"]
    with pytest.raises(tf.errors.OutOfRangeError, match="is closed and has insufficient elements"):
        session.run(take)
    with pytest.raises(tf.errors.CancelledError):
        session.run(raw.WorkQueuePut(handle=handle, works=["d"]))


def test_a_take_waits_while_the_queue_is_open(session: tf.Session) -> None:
    handle = raw.WorkQueueHandleOp(shared_name="works")
    session.run(raw.WorkQueueCreate(handle=handle, shared_name="works"))
    taken = raw.WorkQueueTake(handle=handle)
    with tf.control_dependencies([tf.no_op()]):
        put = raw.WorkQueuePut(handle=handle, works=["late"])

    assert session.run([taken, put])[0] == b"late"


@pytest.mark.parametrize("there", [False, True])
def test_restoring_leaves_these_works_and_no_others(session: tf.Session, there: bool) -> None:
    handle = raw.WorkQueueHandleOp(shared_name="works")
    if there:
        session.run(raw.WorkQueueCreate(handle=handle, shared_name="works"))
        session.run(raw.WorkQueuePut(handle=handle, works=["x", "y"]))
    session.run(raw.WorkQueueRestore(handle=handle, works=["b", "c"]))
    take: Any = raw.WorkQueueTake(handle=handle)

    assert [session.run(take), session.run(take)] == [b"b", b"c"]
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(take)
