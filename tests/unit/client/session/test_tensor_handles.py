"""Tensors kept under handles between steps: made, fed, moved, deleted. In-process sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from tenfold.session.tensor_handles import TensorHandle

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        yield session


def test_a_handle_stands_for_the_tensor_in_later_steps(session: tf.Session) -> None:
    handle = session.run(tf.get_session_handle(tf.constant(10) * 5))
    holder, kept = tf.get_session_tensor(handle.handle, tf.int32)
    assert isinstance(handle, TensorHandle)
    assert handle.eval() == 50
    assert session.run(kept * 10, {holder: handle.handle}) == 500
    assert session.run(kept + 1, {holder: handle}) == 51


def test_a_handle_is_fed_where_a_value_is_expected(session: tf.Session) -> None:
    x = tf.placeholder(tf.float32, [2])
    handle = session.run(tf.get_session_handle(tf.constant([1.0, 2.0])))
    assert session.run(x * 2, {x: handle}).tolist() == [2.0, 4.0]
    assert session.make_callable(x * 3, [x])(handle).tolist() == [3.0, 6.0]


def test_a_step_may_give_handles_beside_values(session: tf.Session) -> None:
    x = tf.constant(3.0)
    for _ in range(2):  # a call that was seen before must make handles too
        result = session.run({"handle": tf.get_session_handle(x), "value": x})
        assert (result["handle"].eval(), result["value"]) == (3.0, 3.0)


def test_a_deleted_tensor_is_gone(session: tf.Session) -> None:
    handle = session.run(tf.get_session_handle(tf.constant(1)))
    holder, kept = tf.get_session_tensor(handle.handle, tf.int32)
    handle.delete()
    with pytest.raises(TypeError, match="may have already been deleted"):
        handle.eval()
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in the session store"):
        session.run(kept, {holder: str(handle)})


def test_a_raw_handle_is_the_callers_to_delete(session: tf.Session) -> None:
    raw = session.run(tf.get_session_handle(tf.constant(1))).get_raw_handle()
    holder, deleter = tf.delete_session_tensor(raw)
    session.run(deleter, {holder: raw})
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in the session store"):
        session.run(deleter, {holder: raw})


def test_tensors_without_handles_are_deleted_by_later_steps(session: tf.Session) -> None:
    made = tf.get_session_handle(tf.constant(1))
    texts = [session.run(made).handle for _ in range(12)]
    holder, kept = tf.get_session_tensor(texts[0], tf.int32)
    session.run(made)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in the session store"):
        session.run(kept, {holder: texts[0]})


def test_a_tensor_moves_to_the_device_that_reads_it(session: tf.Session) -> None:
    with tf.device("/cpu:0"):
        near = session.run(tf.get_session_handle(tf.constant(1.0)))
    with tf.device("/cpu:1"):
        far = session.run(tf.get_session_handle(tf.constant(2.0)))
    holder, kept = tf.get_session_tensor(near.handle, tf.float32)
    assert far.handle.endswith("CPU:1")
    assert session.run(kept, {holder: far.handle}) == 2.0


def test_only_tensors_have_handles() -> None:
    with pytest.raises(TypeError, match="must be of type Tensor"):
        tf.get_session_handle(5)
