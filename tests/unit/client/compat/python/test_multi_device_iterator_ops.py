"""MultiDeviceIterator: one dataset dealt out to several devices."""

from __future__ import annotations

import pytest

import tenfold as tf
from tenfold.compat.python.multi_device_iterator_ops import MultiDeviceIterator
from tenfold.compat.python.threadpool import PrivateThreadPool, override_threadpool


def test_elements_are_dealt_out_and_the_start_begins_anew() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = override_threadpool(tf.data.Dataset.range(5).map(lambda x: (x, x * x)), PrivateThreadPool(2))
        iterator = MultiDeviceIterator(dataset, ["/cpu:0", "/device:CPU:0"], max_buffer_size=2)
        both, second = iterator.get_next(), iterator.get_next("/device:CPU:0")
        for _ in range(2):
            session.run(iterator.initializer)

            assert session.run(both) == [(0, 0), (1, 1)]
            assert session.run(second) == (3, 9)
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run([both, both[0][0] + second[0]])
        assert iterator.output_types == (tf.int64, tf.int64)


def test_optionals_say_which_device_has_no_element_left() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = MultiDeviceIterator(tf.data.Dataset.range(3).map(lambda x: {"x": x}), ["/cpu:0", "/device:CPU:0"])
        optionals = iterator.get_next_as_optional()
        has = [each.has_value() for each in optionals]
        values = [each.get_value()["x"] for each in optionals]
        for _ in range(2):
            session.run(iterator.initializer)

            assert session.run([has, values]) == [[True, True], [0, 1]]
            assert session.run(has) == [True, False]
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(values)
