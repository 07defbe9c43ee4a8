"""tf.CriticalSection: what runs alone, and what would wait for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator


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
