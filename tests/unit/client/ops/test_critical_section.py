"""tf.CriticalSection: what runs alone, and what would wait for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_parts_run_one_after_the_other() -> None:
    section = tf.CriticalSection(name="cs")
    v = tf.get_variable("v", initializer=0.0, use_resource=True)

    def count() -> tf.Tensor:
        before = v.read_value()
        with tf.control_dependencies([before]), tf.control_dependencies([v.assign_add(1)]):
            return tf.identity(before)

    values = [section.execute(count) for _ in range(10)]
    with tf.Session() as session:
        session.run(v.initializer)

        assert sorted(session.run(values)) == list(range(10))
        assert session.run(v) == 10.0
        assert section.name == "cs"


def plain(make: Callable[[], tf.Tensor]) -> tf.Tensor:
    return make()


def in_branch(make: Callable[[], tf.Tensor]) -> tf.Tensor:
    return tf.cond(tf.placeholder_with_default(True, []), make, lambda: tf.constant(0.0))


def in_loop(make: Callable[[], tf.Tensor]) -> tf.Tensor:
    return tf.while_loop(lambda i, _: i < 2, lambda i, _: (i + 1, make()), [0, tf.constant(0.0)])[1]


def beside_a_loop(make: Callable[[], tf.Tensor]) -> tf.Tensor:
    count = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.placeholder_with_default(0, [])])
    return make() + tf.cast(count, tf.float32)


@pytest.mark.parametrize("place", [plain, in_branch, in_loop, beside_a_loop])
@pytest.mark.parametrize("traced", [False, True])
def test_a_part_that_fails_leaves_the_section_to_others(
    place: Callable[[Callable[[], tf.Tensor]], tf.Tensor], traced: bool
) -> None:
    section = tf.CriticalSection()
    good = tf.placeholder_with_default(True, [])

    def checked() -> tf.Tensor:
        with tf.control_dependencies([tf.Assert(good, ["bad"])]):
            return tf.constant(7.0)

    value = place(lambda: section.execute(checked))
    options = tf.RunOptions(timeout_in_ms=20_000)
    if traced:
        options.trace_level = tf.RunOptions.FULL_TRACE
    # what an error holds, in a program that keeps it, must not hold the section
    kept = []
    with tf.Session() as session:
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="bad") as caught:
                session.run(value, {good: False}, options)
            kept.append(caught)

        assert session.run(value, {good: True}, options) >= 7.0
        assert len(kept) == 3


def test_a_step_that_is_given_up_leaves_the_section_to_others() -> None:
    section = tf.CriticalSection()
    queue = tf.FIFOQueue(1, tf.float32, shapes=[])
    value = section.execute(queue.dequeue)
    with tf.Session() as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(value, options=tf.RunOptions(timeout_in_ms=50))
        session.run(queue.enqueue(3.0))

        assert session.run(value, options=tf.RunOptions(timeout_in_ms=20_000)) == 3.0


def test_arguments_are_computed_before_the_lock_is_taken() -> None:
    section, other = tf.CriticalSection(), tf.CriticalSection()
    inner = section.execute(lambda: tf.constant(1.0))

    outer = other.execute(lambda: inner + 1.0)

    with tf.Session() as session:
        assert session.run(outer) == 2.0


def test_a_part_that_would_wait_for_itself_is_refused() -> None:
    section = tf.CriticalSection(shared_name="cs")

    with pytest.raises(ValueError, match="would cause deadlocks"):
        section.execute(lambda: section.execute(lambda: tf.constant(1.0)))


def test_a_resource_belongs_to_one_section_unless_said_otherwise() -> None:
    v = tf.get_variable("v", initializer=0.0, use_resource=True)
    first, second = tf.CriticalSection(), tf.CriticalSection()
    first.execute(lambda: v.read_value())

    with pytest.raises(ValueError, match="requested exclusive resource access"):
        second.execute(lambda: v.read_value(), exclusive_resource_access=False)


def test_no_section_is_made_of_a_message() -> None:
    with pytest.raises(ValueError, match="mutually exclusive"):
        tf.CriticalSection(name="cs", critical_section_def=object())
    with pytest.raises(NotImplementedError, match="has no message"):
        tf.CriticalSection(critical_section_def=object())
