"""TensorArrays in the functions of tf.data: values, which a function takes, changes for itself and returns."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def elements(dataset: Any) -> list[Any]:
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    found = []
    with tf.Session() as session:
        session.run(iterator.initializer)
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                found.append(session.run(element).tolist())
    return found


def growing() -> tf.TensorArray:
    return tf.TensorArray(tf.int64, size=0, element_shape=[], dynamic_size=True)


def test_what_was_read_before_a_write_does_not_see_it() -> None:
    start = growing().write(0, np.int64(-1))

    scanned = Dataset.range(3).apply(
        tf.data.experimental.scan(start, lambda array, x: (array.write(array.size(), x), array.stack()))
    )

    assert elements(scanned) == [[-1], [-1, 0], [-1, 0, 1]]


def test_a_branch_may_begin_a_new_array() -> None:
    def collect(array: tf.TensorArray, x: Any) -> Any:
        longer = array.write(array.size(), x)
        return tf.cond(tf.equal(x % 3, 0), growing, lambda: longer), longer.stack()

    scanned = Dataset.range(6).apply(tf.data.experimental.scan(growing().write(0, np.int64(-1)), collect))

    assert elements(scanned) == [[-1, 0], [1], [1, 2], [1, 2, 3], [4], [4, 5]]


def test_an_array_from_outside_of_the_function_is_refused() -> None:
    outside = growing()

    with pytest.raises(NotImplementedError, match="construct a new TensorArray inside the function"):
        Dataset.range(3).map(lambda x: tf.cond(tf.equal(x, 0), lambda: outside, lambda: growing().write(0, x)).stack())


def filled(*values: int) -> tf.TensorArray:
    return tf.TensorArray(tf.int64, len(values)).unstack(tf.constant(values, tf.int64))


def pieces() -> tf.TensorArray:
    return tf.TensorArray(tf.int64, 2, infer_shape=False).split(tf.range(5, dtype=tf.int64), [2, 3])


METHODS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "read": (lambda x: filled(5, 6, 7).read(1), 6),
    "read twice": (lambda x: (lambda a: a.read(1) + a.read(1))(filled(5, 6)), 12),
    "gather": (lambda x: filled(5, 6, 7).gather([2, 0]), [7, 5]),
    "stack": (lambda x: filled(5, 6).stack(), [5, 6]),
    "write": (lambda x: filled(5, 6).write(1, x).stack(), [5, 3]),
    "write behind the end": (lambda x: growing().write(2, x).stack(), [0, 0, 3]),
    "scatter": (lambda x: filled(5, 6, 7).scatter([2, 0], tf.stack([x, x + 1])).stack(), [4, 6, 3]),
    "split and concat": (lambda x: pieces().concat(), [0, 1, 2, 3, 4]),
    "split and read": (lambda x: pieces().read(1), [2, 3, 4]),
    "size": (lambda x: filled(5, 6, 7).size(), 3),
    "identity": (lambda x: filled(5).identity().stack(), [5]),
    "what is not set": (lambda x: tf.TensorArray(tf.int64, 2, element_shape=[]).write(0, x).stack(), [3, 0]),
}


@pytest.mark.parametrize("case", METHODS)
def test_a_method_gives_in_a_function_what_it_gives_outside(case: str) -> None:
    make, expected = METHODS[case]

    assert elements(Dataset.from_tensors(np.int64(3)).map(make)) == [expected]


def test_a_loop_in_a_function_fills_an_array() -> None:
    def squares(n: Any) -> Any:
        _, array = tf.while_loop(
            lambda i, _: i < n,
            lambda i, array: (i + 1, array.write(tf.cast(i, tf.int32), i * i)),
            (np.int64(0), growing()),
        )
        return array.stack()

    assert elements(Dataset.range(1, 4).map(squares)) == [[0], [0, 1], [0, 1, 4]]


def test_an_array_is_an_element() -> None:
    arrays = Dataset.range(2).map(lambda x: filled(1, 2).write(0, x))

    assert elements(arrays.map(lambda array: array.stack())) == [[0, 2], [1, 2]]
    array = arrays.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(array.stack()).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.TensorArray(tf.int64), "Size must be provided"),
        (lambda: tf.TensorArray(tf.int64, size=1, flow=tf.TensorArray(tf.int64, 1).flow), "both a flow and size"),
        (lambda: tf.TensorArray(tf.int64, 1).grad("g"), "no array of gradients"),
    ],
)
def test_wrong_arguments_are_told(make: Callable[[], Any], message: str) -> None:
    def mapped(x: Any) -> Any:
        make()
        return x

    with pytest.raises((ValueError, NotImplementedError), match=message):
        Dataset.range(1).map(mapped)


def test_the_loops_of_map_fn_keep_arrays_of_one_step(graph: tf.Graph) -> None:
    Dataset.from_tensors(np.arange(3)).map(lambda row: tf.map_fn(lambda x: x * 2, row))

    (function,) = graph.as_graph_def().library.function
    assert {node.op for node in function.node_def} >= {"TensorArrayV3", "TensorArrayReadV3"}
