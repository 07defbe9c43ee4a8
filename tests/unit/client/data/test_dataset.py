"""`tf.data.Dataset`: what each method gives, in one table; types and shapes; the errors that programs meet."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Dataset = tf.data.Dataset
Pair = collections.namedtuple("Pair", ["a", "b"])


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def plain(value: Any) -> Any:
    """A fetched element as Python's lists, tuples and dicts."""
    if isinstance(value, tf.SparseTensorValue):
        return tuple(map(plain, value))
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def elements(dataset: Any, most: int = 50) -> list[Any]:
    """The elements, by an initializable iterator."""
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    found = []
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        session.run(tf.global_variables_initializer())
        session.run(iterator.initializer)
        try:
            for _ in range(most):
                found.append(plain(session.run(element)))
        except tf.errors.OutOfRangeError:
            pass
    return found


def numbers() -> Iterator[int]:
    yield from range(3)


def windows() -> Any:
    return Dataset.range(7).window(3, shift=2, drop_remainder=True).flat_map(lambda window: window.batch(3))


def sparse_batches() -> Any:
    def sparse(i: Any) -> Any:
        return tf.SparseTensor(indices=[[0]], values=[i], dense_shape=[2])

    return Dataset.range(3).map(sparse).batch(2)


def running_sums() -> Any:
    """A variable that a stateful function changes with each element."""
    total = tf.get_variable("total", [], tf.int64, tf.zeros_initializer(), use_resource=True)
    return Dataset.range(1, 5).map(lambda x: total.assign_add(x).read_value())


def through_a_loop() -> Any:
    def power(x: Any) -> Any:
        start = tf.constant(0), tf.constant(1, tf.int64)
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * x), start)[1]

    return Dataset.range(4).map(power)


def through_a_table() -> Any:
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [5, 6]), -1)
    return Dataset.from_tensor_slices(["b", "c", "a"]).map(table.lookup)


CASES: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "from_tensors": (lambda: Dataset.from_tensors(([1, 2], {"x": 3.0})), [([1, 2], {"x": 3.0})]),
    "slices": (lambda: Dataset.from_tensor_slices(Pair([1, 2], [[3], [4]])), [(1, [3]), (2, [4])]),
    "range": (lambda: Dataset.range(8, 2, -3), [8, 5]),
    "generator": (lambda: Dataset.from_generator(numbers, tf.int64, []).repeat(2), [0, 1, 2, 0, 1, 2]),
    "map": (lambda: Dataset.range(3).map(lambda x: (x, x * x)), [(0, 0), (1, 1), (2, 4)]),
    "parallel map": (lambda: Dataset.range(4).map(lambda x: x + 1, num_parallel_calls=2), [1, 2, 3, 4]),
    "py_func": (lambda: Dataset.range(3).map(lambda x: tf.py_func(lambda v: v * 7, [x], tf.int64)), [0, 7, 14]),
    "flat_map": (lambda: Dataset.range(3).flat_map(lambda x: Dataset.range(x).map(lambda y: x * 10 + y)), [10, 20, 21]),
    "interleave": (
        lambda: Dataset.range(2).interleave(lambda x: Dataset.from_tensors(x).repeat(3), 2, 2),
        [0, 0, 1, 1, 0, 1],
    ),
    "filter": (lambda: Dataset.range(6).filter(lambda x: tf.equal(x % 2, 0)), [0, 2, 4]),
    "zip": (lambda: Dataset.zip((Dataset.range(3), {"b": Dataset.range(5, 7)})), [(0, {"b": 5}), (1, {"b": 6})]),
    "concatenate": (lambda: Dataset.range(2).concatenate(Dataset.range(7, 8)), [0, 1, 7]),
    "repeat, skip, take": (lambda: Dataset.range(3).repeat().skip(2).take(4), [2, 0, 1, 2]),
    "shard": (lambda: Dataset.range(7).shard(3, 1), [1, 4]),
    "enumerate": (lambda: Dataset.from_tensor_slices([7, 8]).enumerate(3), [(3, 7), (4, 8)]),
    "cache": (lambda: Dataset.range(2).cache().repeat(2), [0, 1, 0, 1]),
    "batch": (lambda: Dataset.range(5).batch(2), [[0, 1], [2, 3], [4]]),
    "batch without rest": (lambda: Dataset.range(5).batch(2, drop_remainder=True).prefetch(1), [[0, 1], [2, 3]]),
    "padded_batch": (
        lambda: Dataset.range(1, 4).map(lambda x: tf.fill([x], x)).padded_batch(2, [None], tf.constant(-1, tf.int64)),
        [[[1, -1], [2, 2]], [[3, 3, 3]]],
    ),
    "unbatch": (lambda: Dataset.from_tensors(([1, 2], [[3], [4]])).unbatch(), [(1, [3]), (2, [4])]),
    "window": (windows, [[0, 1, 2], [2, 3, 4], [4, 5, 6]]),
    "sparse": (
        sparse_batches,
        [([[0, 0], [1, 0]], [0, 1], [2, 2]), ([[0, 0]], [2], [1, 2])],
    ),
    "state": (running_sums, [1, 3, 6, 10]),
    "loop": (through_a_loop, [0, 1, 8, 27]),
    "cond": (lambda: Dataset.range(3).map(lambda x: tf.cond(x > 1, lambda: x * 10, lambda: -x)), [0, -1, 20]),
    "table": (through_a_table, [6, -1, 5]),
    "apply": (lambda: Dataset.range(2).apply(lambda dataset: dataset.map(lambda x: -x)), [0, -1]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_pipeline_gives_its_elements(case: str) -> None:
    make, expected = CASES[case]

    assert elements(make()) == expected


def test_a_shuffle_with_a_seed_repeats_itself_and_loses_nothing() -> None:
    shuffled = Dataset.range(20).shuffle(7, seed=3)

    first, second = elements(shuffled), elements(shuffled)

    assert first == second
    assert sorted(first) == list(range(20)) != first


def test_a_reduction_is_a_value() -> None:
    total, count = Dataset.range(5).reduce((np.int64(0), 0), lambda state, x: (state[0] + x, state[1] + 1))

    with tf.Session() as session:
        assert session.run([total, count]) == [10, 5]


def test_types_shapes_and_classes_are_known() -> None:
    dataset = Dataset.from_tensor_slices({"x": np.zeros([4, 3], np.float32), "y": ["a", "b", "c", "d"]})
    batched = dataset.batch(2, drop_remainder=True)

    assert batched.output_types == {"x": tf.float32, "y": tf.string}
    assert tf.data.get_output_shapes(batched) == {"x": tf.TensorShape([2, 3]), "y": tf.TensorShape([2])}
    assert tf.data.get_output_classes(dataset) == {"x": tf.Tensor, "y": tf.Tensor}
    assert repr(Dataset.range(1)) == "<DatasetV1Adapter shapes: (), types: tf.int64>"


def test_an_assertion_in_a_function_is_run_though_nothing_uses_it() -> None:
    def checked(x: Any) -> Any:
        tf.Assert(x < 2, [x])
        return x

    element = Dataset.range(5).map(checked).make_one_shot_iterator().get_next()

    with tf.Session() as session:
        assert [session.run(element) for _ in range(2)] == [0, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
            session.run(element)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Dataset.zip([Dataset.range(2)]), TypeError, "do not support Python lists"),
        (lambda: Dataset.range(3).map(lambda x: object()), TypeError, "Unsupported return value from function"),
        (lambda: Dataset.range(3).flat_map(lambda x: x), TypeError, "must return a `Dataset` object"),
        (lambda: Dataset.range(3).filter(lambda x: x), ValueError, "scalar boolean tensor"),
        (lambda: Dataset.range(2).concatenate(Dataset.from_tensors(1.0)), TypeError, "different types"),
        (lambda: Dataset.from_tensor_slices(([1], [2, 3])), ValueError, "not compatible"),
        (lambda: Dataset.range(3).unbatch(), ValueError, "rank >= 1"),
        (lambda: Dataset.range(3).apply(lambda dataset: 3), TypeError, "must return a Dataset"),
        (lambda: Dataset.range(3).padded_batch(2, [3]), ValueError, "not compatible"),
        (lambda: Dataset.from_generator(3, tf.int64), TypeError, "must be callable"),
        (lambda: Dataset.range(), ValueError, "Invalid arguments to RangeDataset"),
        (lambda: Dataset.range(2).reduce(0, lambda state, x: x), TypeError, "element types for the new state"),
        (lambda: iter(Dataset.range(3)), RuntimeError, "only supported inside of tf.function"),
    ],
)
def test_a_mistake_is_told(make: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_a_generator_that_yields_something_else_fails_the_step() -> None:
    def wrong() -> Iterator[Any]:
        yield [1, 2]

    element = Dataset.from_generator(wrong, tf.int64, []).make_one_shot_iterator().get_next()

    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="element of shape"):
        session.run(element)


def test_a_seed_of_the_graph_that_a_function_draws_with_is_warned_of() -> None:
    words = "Explicitly set the seed in the function if this is not the intended behavior"
    with tf.Graph().as_default():
        tf.set_random_seed(10)
        tf.data.Dataset.range(10).map(lambda x: tf.random_uniform([], seed=3))
        with pytest.warns(UserWarning, match=words):
            tf.data.Dataset.range(10).map(lambda x: tf.random_uniform([]))


def test_a_running_iterator_sees_what_a_resource_variable_becomes() -> None:
    """And a function's assignment is made though nothing uses it."""
    with tf.Graph().as_default(), tf.Session() as sess:
        counter, repeats = (tf.Variable(value, use_resource=True) for value in (0, np.int64(2)))

        def count(x: Any) -> Any:
            counter.assign_add(1)
            return tf.data.Dataset.from_tensors(x).repeat(repeats)

        batches = tf.data.make_initializable_iterator(tf.data.Dataset.range(9).flat_map(count))
        following = batches.get_next()
        sess.run([counter.initializer, repeats.initializer])
        sess.run(batches.initializer)

        assert [sess.run(following) for _ in range(3)] == [0, 0, 1]
        assert sess.run(counter) == 2
        sess.run(repeats.assign(1))
        assert [sess.run(following) for _ in range(3)] == [1, 2, 3]
        assert sess.run(counter) == 4


def test_strings_that_a_function_makes_stay_strings() -> None:
    words = tf.data.Dataset.from_tensor_slices(["a", "bc"]).map(lambda word: word + "!").map(lambda word: word + "?")
    with tf.Session() as sess:
        following = tf.data.make_one_shot_iterator(words).get_next()
        assert [sess.run(following) for _ in range(2)] == [b"a!?", b"bc!?"]


def test_a_sparse_element_is_not_looked_into() -> None:
    """TensorFlow checks its parts' sizes, not where its values lie."""
    sparse = tf.data.Dataset.from_tensors(3).map(lambda n: tf.SparseTensor([[7]], [n], [3]))
    with tf.Session() as sess:
        assert sess.run(tf.data.make_one_shot_iterator(sparse).get_next()).indices.tolist() == [[7]]
