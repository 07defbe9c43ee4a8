"""`tf.data.experimental` and `tf.contrib.data`: what each transformation gives, in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Dataset = tf.data.Dataset
exp = tf.data.experimental


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def elements(dataset: Any, most: int = 20) -> list[Any]:
    element = dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as session:
        try:
            for _ in range(most):
                found.append(plain(session.run(element)))
        except tf.errors.OutOfRangeError:
            pass
    return found


def grouped() -> Any:
    return Dataset.range(6).apply(exp.group_by_window(lambda x: x % 2, lambda _, group: group.batch(3), 3))


def reduced() -> Any:
    reducer = exp.Reducer(lambda _: np.int64(0), lambda state, x: state + x, lambda state: state)
    return Dataset.range(6).apply(exp.group_by_reducer(lambda x: x % 2, reducer))


def bucketed() -> Any:
    lengths = Dataset.from_tensor_slices([1, 3, 2, 4]).map(lambda n: tf.fill([n], n))
    return lengths.apply(exp.bucket_by_sequence_length(tf.size, [3], [2, 2]))


def failing() -> Any:
    numbers = Dataset.from_tensor_slices([1.0, 0.0, 4.0]).map(lambda x: tf.check_numerics(1.0 / x, "infinite"))
    return numbers.apply(exp.ignore_errors())


CASES: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "map_and_batch": (lambda: Dataset.range(3).apply(exp.map_and_batch(lambda x: x * 2, 2)), [[0, 2], [4]]),
    "scan": (lambda: Dataset.range(1, 4).apply(exp.scan(np.int64(0), lambda s, x: (s + x, s + x))), [1, 3, 6]),
    "counter": (lambda: exp.Counter(2, 3).take(3), [2, 5, 8]),
    "group_by_window": (grouped, [[0, 2, 4], [1, 3, 5]]),
    "group_by_reducer": (reduced, [6, 9]),
    "bucket_by_sequence_length": (bucketed, [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]),
    "unbatch": (lambda: Dataset.range(4).batch(2).apply(exp.unbatch()), [0, 1, 2, 3]),
    "unique": (lambda: Dataset.from_tensor_slices([3, 1, 3, 2, 1]).apply(exp.unique()), [3, 1, 2]),
    "take_while": (lambda: Dataset.range(9).apply(exp.take_while(lambda x: x < 3)), [0, 1, 2]),
    "enumerate": (lambda: Dataset.from_tensors(7).apply(exp.enumerate_dataset(5)), [(5, 7)]),
    "ignore_errors": (failing, [1.0, 0.25]),
    "parallel_interleave": (
        lambda: Dataset.range(2).apply(exp.parallel_interleave(lambda x: Dataset.from_tensors(x).repeat(2), 2)),
        [0, 1, 0, 1],
    ),
    "choose_from_datasets": (
        lambda: exp.choose_from_datasets(
            [Dataset.range(2), Dataset.range(10, 12)], Dataset.from_tensor_slices(np.array([1, 0, 0, 1], np.int64))
        ),
        [10, 0, 1, 11],
    ),
    "sample_from_datasets": (
        lambda: exp.sample_from_datasets([Dataset.range(2), Dataset.range(5, 6)], [1.0, 0.0], seed=1).take(2),
        [0, 1],
    ),
    "dense_to_sparse_batch": (
        lambda: Dataset.range(1, 3).map(lambda x: tf.fill([x], x)).apply(exp.dense_to_sparse_batch(2, [4])),
        [([[0, 0], [1, 0], [1, 1]], [1, 2, 2], [2, 4])],
    ),
    "prefetch_to_device": (lambda: Dataset.range(2).apply(exp.prefetch_to_device("/cpu:0")), [0, 1]),
    "sliding_window_batch": (
        lambda: Dataset.range(5).apply(tf.contrib.data.sliding_window_batch(3, window_shift=2)),
        [[0, 1, 2], [2, 3, 4]],
    ),
    "batch_and_drop_remainder": (
        lambda: Dataset.range(5).apply(tf.contrib.data.batch_and_drop_remainder(2)),
        [[0, 1], [2, 3]],
    ),
    "assert_element_shape": (
        lambda: (
            Dataset.range(2)
            .map(lambda x: tf.fill([2], x))
            .apply(tf.contrib.data.assert_element_shape(tf.TensorShape([2])))
        ),
        [[0, 0], [1, 1]],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_transformation_gives_its_elements(case: str) -> None:
    make, expected = CASES[case]

    assert elements(make()) == expected


def test_rejection_brings_classes_to_the_wanted_proportion() -> None:
    classes = Dataset.from_tensor_slices(np.arange(2000) % 4 // 3)
    resampled = classes.apply(
        exp.rejection_resample(lambda kind: kind, target_dist=[0.5, 0.5], initial_dist=[0.75, 0.25], seed=27)
    )

    kinds = [kind for kind, _ in elements(resampled, 120)]

    assert 0.35 < np.mean(kinds) < 0.65


def test_an_optional_is_none_at_the_end() -> None:
    iterator = Dataset.range(1).make_one_shot_iterator()
    optional = exp.get_next_as_optional(iterator)
    has_value, value = optional.has_value(), optional.get_value()

    with tf.Session() as session:
        assert session.run([has_value, value]) == [True, 0]
        assert not session.run(has_value)
        assert session.run(exp.Optional.from_value((1, 2)).get_value()) == (1, 2)


def test_the_single_element_and_the_number_of_elements() -> None:
    with tf.Session() as session:
        assert session.run(exp.get_single_element(Dataset.range(8).batch(8))).tolist() == list(range(8))
        assert session.run(exp.cardinality(Dataset.range(8).batch(3))) == 3
        assert session.run(exp.cardinality(Dataset.range(5).window(2))) == 3
        assert session.run(exp.cardinality(Dataset.range(5).map(lambda x: x))) == 5
        assert session.run(exp.cardinality(Dataset.range(5).map(lambda x: x, num_parallel_calls=2))) == 5
        assert session.run(exp.cardinality(Dataset.range(8).repeat())) == exp.INFINITE_CARDINALITY


def test_rows_of_csv_files_become_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("name,x,label\nann,1.5,0\nbob,2,1\n")

    (batch,) = elements(exp.make_csv_dataset(str(path), 2, label_name="label", num_epochs=1, shuffle=False))

    assert batch == ({"name": [b"ann", b"bob"], "x": [1.5, 2.0]}, [0, 1])
    assert elements(exp.CsvDataset(str(path), [tf.string, tf.float32], header=True, select_cols=[0, 1])) == [
        (b"ann", 1.5),
        (b"bob", 2.0),
    ]
    with pytest.raises(ValueError, match="Shape must be at most rank 1 but is rank 2"):
        exp.CsvDataset(str(path), [tf.constant([[0.0]])], select_cols=[1])


def test_examples_are_written_read_and_parsed(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    records = [
        tf.train.Example(
            features=tf.train.Features(feature={"x": tf.train.Feature(int64_list=tf.train.Int64List(value=[n]))})
        ).SerializeToString()
        for n in range(4)
    ]
    written = exp.TFRecordWriter(path).write(Dataset.from_tensor_slices(records))
    with tf.Session() as session:
        session.run(written)
    features = {"x": tf.FixedLenFeature([], tf.int64)}

    read = exp.make_batched_features_dataset(path, 2, features, num_epochs=1, shuffle=False)

    assert elements(read) == [{"x": [0, 1]}, {"x": [2, 3]}]

    for feature, match in (
        (tf.FixedLenFeature([None, 2], tf.int64), "First dimension of shape for feature a unknown. Consider using"),
        (tf.FixedLenFeature([1, None], tf.int64), r"feature a need to be known but received \[1, None\]"),
        (tf.FixedLenSequenceFeature([], tf.int64), "FixedLenSequenceFeature requires allow_missing to be True"),
    ):
        with pytest.raises(ValueError, match=match):
            Dataset.from_tensors([b""]).apply(exp.parse_example_dataset({"a": feature}))


def test_an_iterator_is_saved_and_restored(tmp_path: Path) -> None:
    iterator = Dataset.range(6).map(lambda x: x * x).make_initializable_iterator()
    element = iterator.get_next()
    saver = tf.train.Saver([exp.make_saveable_from_iterator(iterator)])

    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run([element]), session.run([element])
        path = saver.save(session, str(tmp_path / "input"))
        before = session.run(element)
    with tf.Session() as session:
        session.run(iterator.initializer)
        saver.restore(session, path)
        assert session.run(element) == before == 4


def test_the_place_of_an_iterator_goes_through_a_string() -> None:
    iterator = Dataset.range(6).make_initializable_iterator()
    element, place = iterator.get_next(), tf.placeholder(tf.string, [])
    saved = tf.io.serialize_tensor(tf.raw_ops.SerializeIterator(resource_handle=iterator._iterator_resource))
    back = tf.raw_ops.DeserializeIterator(
        resource_handle=iterator._iterator_resource, serialized=tf.io.parse_tensor(place, tf.variant)
    )

    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(element)
        text = session.run(saved)
        assert [session.run(element) for _ in range(2)] == [1, 2]
        session.run(back, {place: text})
        assert session.run(element) == 1
        with pytest.raises(tf.errors.UnimplementedError, match="Range cannot leave its task"):
            session.run(tf.io.serialize_tensor(exp.to_variant(Dataset.range(3))))


@pytest.mark.parametrize("transformation", [exp.bytes_produced_stats, exp.latency_stats])
def test_a_tag_is_one_string(transformation: Any) -> None:
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        Dataset.range(3).apply(transformation(["a", "b"]))


def _of_inner_maps(function: Callable[[Any], Any]) -> Any:
    return Dataset.range(2).flat_map(lambda _: Dataset.range(3).map(function))


@pytest.mark.parametrize(
    ("make", "op"),
    [
        (lambda: Dataset.range(3).map(lambda x: tf.random_uniform([])), "RandomUniform"),
        (lambda: _of_inner_maps(lambda x: tf.random_uniform([])), "RandomUniform"),
        (
            lambda: Dataset.range(3).filter(lambda x: tf.cond(x > 0, lambda: tf.random_uniform([]) > 0, lambda: True)),
            "RandomUniform",
        ),
        (lambda: Dataset.from_generator(lambda: iter([1]), tf.int64), "PyFunc"),
        (lambda: _of_inner_maps(lambda x: x + 1), None),
    ],
    ids=["map", "map within a function", "a branch", "generator", "none"],
)
def test_an_iterator_is_saved_unless_its_functions_keep_a_state(make: Any, op: str | None, tmp_path: Path) -> None:
    iterator = make().make_initializable_iterator()
    element = iterator.get_next()
    saver = tf.train.Saver([exp.make_saveable_from_iterator(iterator)])

    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(element)
        if op is None:
            assert saver.save(session, str(tmp_path / "input"))
        else:
            with pytest.raises(tf.errors.FailedPreconditionError, match=f"{op} is stateful"):
                saver.save(session, str(tmp_path / "input"))


def test_an_element_of_another_shape_fails_the_step() -> None:
    unknown = Dataset.from_tensors(np.zeros([3])).map(lambda x: tf.py_func(lambda v: v, [x], tf.float64))
    checked = unknown.apply(tf.contrib.data.assert_element_shape(tf.TensorShape([2])))
    element = checked.make_one_shot_iterator().get_next()

    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        session.run(element)
