"""tf.train.batch_join: the shape of an example is what the first source says, as long as the others fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def words(length: object) -> tf.Tensor:
    """So many words; how many is known before the run only if it is a number."""
    return tf.tile(["a"], tf.reshape(length, [1]))


def test_what_one_source_knows_need_not_hold_for_the_others() -> None:
    some = words(tf.placeholder_with_default(3, None))

    batch = tf.train.batch_join([[some], [tf.constant(["b"] * 9)]], batch_size=2, dynamic_pad=True)

    assert batch.shape.as_list() == [2, None]


def test_all_kinds_of_lengths_come_out_padded() -> None:
    sources = [[words(tf.placeholder_with_default(n, None))] for n in (1, 3)] + [[tf.constant(["b", "b"])]]
    batch = tf.train.batch_join(sources, batch_size=12, dynamic_pad=True)
    coordinator = tf.train.Coordinator()

    with tf.Session() as session:
        threads = tf.train.start_queue_runners(session, coordinator)
        rows = session.run(batch).tolist()
        coordinator.request_stop()
        coordinator.join(threads)

    assert len(rows) == 12
    assert all(row == sorted(row, reverse=True) and row[0] for row in rows)  # what was added is at the end
    assert {len(row) for row in rows} == {max(len([word for word in row if word]) for row in rows)}


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="not compatible"):
        tf.train.batch_join([[tf.zeros([2])], [tf.zeros([3])]], batch_size=2)
