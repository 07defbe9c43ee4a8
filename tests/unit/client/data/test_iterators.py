"""Iterators: started once, again, on other datasets, found by a handle, kept on a server between sessions."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.data import iterators

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def drained(session: Any, element: Any) -> list[Any]:
    found: list[Any] = []
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        found.extend(iter(lambda: session.run(element), None))
    return found


def test_a_one_shot_iterator_needs_no_initializer_and_stays_at_the_end() -> None:
    iterator = Dataset.range(3).map(lambda x: x + 1).make_one_shot_iterator()
    element = iterator.get_next()

    with tf.Session() as session:
        assert drained(session, element) == [1, 2, 3]
        assert drained(session, element) == []
    with pytest.raises(ValueError, match="does not have an initializer"):
        _ = iterator.initializer


def test_a_one_shot_iterator_refuses_variables_and_placeholders() -> None:
    variable = tf.get_variable("v", [], tf.int64, tf.zeros_initializer(), use_resource=True)
    fed = tf.placeholder(tf.int64, [])

    with pytest.raises(ValueError, match="does not support datasets that capture stateful objects"):
        Dataset.range(3).map(lambda x: x + variable).make_one_shot_iterator()
    with pytest.raises(ValueError, match="Cannot capture a placeholder"):
        Dataset.range(fed).make_one_shot_iterator()


def test_an_initializer_starts_again_with_what_is_fed_and_what_variables_hold() -> None:
    variable = tf.get_variable("v", [], tf.int64, tf.constant_initializer(10), use_resource=True)
    count = tf.placeholder(tf.int64, [])
    iterator = Dataset.range(count).map(lambda x: x + variable).make_initializable_iterator()
    element = iterator.get_next()

    with tf.Session() as session:
        session.run(variable.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(element)
        session.run(iterator.initializer, {count: 2})
        assert drained(session, element) == [10, 11]
        session.run(variable.assign(20))
        session.run(iterator.initializer, {count: 1})
        assert drained(session, element) == [20]


def test_an_iterator_of_a_structure_reads_one_dataset_after_the_other() -> None:
    training, validation = Dataset.range(2), Dataset.range(5, 6)
    iterator = tf.data.Iterator.from_structure(training.output_types, training.output_shapes)
    element = iterator.get_next()
    starts = [iterator.make_initializer(each) for each in (training, validation)]

    with tf.Session() as session:
        found = []
        for start in starts:
            session.run(start)
            found.append(drained(session, element))
    assert found == [[0, 1], [5]]
    with pytest.raises(TypeError, match="Expected output types"):
        iterator.make_initializer(Dataset.from_tensors(1.0))


def test_a_fed_handle_chooses_the_iterator() -> None:
    first = Dataset.range(3).make_one_shot_iterator()
    second = Dataset.range(10, 13).make_initializable_iterator()
    handle = tf.placeholder(tf.string, [])
    chosen = tf.data.Iterator.from_string_handle(handle, tf.int64, [])
    element = chosen.get_next()

    with tf.Session() as session:
        session.run(second.initializer)
        one, two = session.run([first.string_handle(), second.string_handle()])
        found = [session.run(element, {handle: each}) for each in (one, two, two, one)]
    assert found == [0, 10, 11, 1]


def test_a_shared_name_is_one_iterator_for_two_sessions() -> None:
    server = tf.train.Server.create_local_server()
    iterator = Dataset.range(5).make_initializable_iterator(shared_name="shared")
    element = iterator.get_next()

    with tf.Session(server.target) as first, tf.Session(server.target) as second:
        first.run(iterator.initializer)
        assert [first.run(element), second.run(element), first.run(element)] == [0, 1, 2]
    server.stop()


def test_many_calls_of_get_next_are_warned_of() -> None:
    iterator = Dataset.range(3).make_one_shot_iterator()
    for _ in range(iterators.GET_NEXT_CALL_WARNING_THRESHOLD):
        iterator.get_next()

    with pytest.warns(UserWarning, match="An unusually high number of `Iterator.get_next"):
        iterator.get_next()


def test_options_become_nodes(graph: tf.Graph) -> None:
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.map_fusion = True
    Dataset.range(3).with_options(options).make_initializable_iterator()

    types = [op.type for op in graph.get_operations()]
    names = next(op for op in graph.get_operations() if op.type == "OptimizeDataset").inputs[1]
    assert types.count("ModelDataset") == 1
    with tf.Session() as session:
        assert session.run(names).tolist() == [b"map_fusion"]


def _thread_ids(options: tf.data.Options) -> set[int]:
    """The threads that a map of four calls at once runs on."""

    def here(_: Any) -> Any:
        return np.int64(threading.get_ident())

    dataset = Dataset.range(60).map(lambda x: tf.py_func(here, [x], tf.int64), num_parallel_calls=4)
    ids = dataset.batch(60).with_options(options).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        return set(session.run(ids).tolist())


def test_a_pipeline_may_have_threads_of_its_own() -> None:
    options = tf.data.Options()
    options.experimental_threading.private_threadpool_size = 1
    options.experimental_threading.max_intra_op_parallelism = 1

    assert len(_thread_ids(options)) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("private_threadpool_size", "`num_threads` must be >= 1"),
        ("max_intra_op_parallelism", "`max_intra_op_parallelism` must be >= 0"),
    ],
)
def test_a_number_of_threads_that_there_cannot_be_is_refused(name: str, message: str) -> None:
    options = tf.data.Options()
    setattr(options.experimental_threading, name, 0 if name == "private_threadpool_size" else -1)

    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        _thread_ids(options)


def test_slack_needs_a_prefetch_of_the_elements_that_come_out() -> None:
    options = tf.data.Options()
    options.experimental_slack = True
    prefetched = Dataset.range(3).prefetch(1)

    pairs = Dataset.zip((prefetched, prefetched.map(lambda x: x + 1))).with_options(options)
    with tf.Session() as session:
        assert session.run(pairs.make_one_shot_iterator().get_next()) == (0, 1)
    for dataset, op in (
        (Dataset.range(3), "RangeDataset"),
        (prefetched.flat_map(Dataset.from_tensors), "FlatMapDataset"),
        (Dataset.zip((prefetched, Dataset.range(3))), "RangeDataset"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f'unsupported op "{op}"'):
            dataset.with_options(options).make_initializable_iterator()


def test_a_session_that_ends_within_a_pass_leaves_no_half_written_cache(tmp_path: Path) -> None:
    iterator = tf.data.Dataset.range(5).cache(str(tmp_path / "cache")).repeat(2).make_initializable_iterator()
    element = iterator.get_next()
    for _ in range(2):
        with tf.Session() as session:
            session.run(iterator.initializer)
            assert session.run(element) == 0
            assert list(tmp_path.iterdir())

        assert not list(tmp_path.iterdir())
