"""`tf.data.Options`: checked, compared, merged."""

from __future__ import annotations

import pytest

import tenfold as tf


def test_options_are_checked_when_they_are_set() -> None:
    options = tf.data.Options()

    with pytest.raises(TypeError, match='Property "experimental_deterministic" must be of type'):
        options.experimental_deterministic = 1
    with pytest.raises(AttributeError, match="Cannot set the property wrong on Options"):
        options.wrong = True


def test_options_of_inputs_are_merged_and_contradictions_told() -> None:
    one, other = tf.data.Options(), tf.data.Options()
    one.experimental_threading.private_threadpool_size = 3
    other.experimental_deterministic = False

    merged = one.merge(other)

    assert merged.experimental_threading.private_threadpool_size == 3
    assert merged.experimental_deterministic is False
    assert merged != one
    other.experimental_threading.private_threadpool_size = 4
    with pytest.raises(ValueError, match="Cannot merge incompatible values"):
        one.merge(other)


def test_the_usual_rewritings_can_be_switched_off() -> None:
    options = tf.data.Options()

    assert options._static_optimizations() == ["map_and_batch_fusion", "noop_elimination", "shuffle_and_repeat_fusion"]
    options.experimental_optimization.noop_elimination = False
    options.experimental_deterministic = False
    assert options._static_optimizations() == ["map_and_batch_fusion", "shuffle_and_repeat_fusion", "make_sloppy"]
