"""Input functions over arrays: what a session gets of them, batch by batch, and what they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.estimator.inputs.feeding_functions import _enqueue_data, _get_integer_indices_for_next_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

numpy_input_fn = tf.estimator.inputs.numpy_input_fn


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def drained(fetches: Any, most: int = 100) -> list[Any]:
    """The values of step after step until the input ends."""
    found: list[Any] = []
    with tf.train.MonitoredSession() as session:
        while not session.should_stop() and len(found) < most:
            found.append(session.run(fetches))
    return found


def test_an_epoch_in_order_with_a_smaller_last_batch() -> None:
    x = {"b": np.arange(5), "a": np.array([b"v", b"w", b"x", b"y", b"z"])}

    features, labels = numpy_input_fn(x, np.arange(5) * 2.0, batch_size=2, shuffle=False)()
    found = drained((features, labels))

    assert [batch["b"].tolist() for batch, _ in found] == [[0, 1], [2, 3], [4]]
    assert [batch["a"].tolist() for batch, _ in found] == [[b"v", b"w"], [b"x", b"y"], [b"z"]]
    assert [label.tolist() for _, label in found] == [[0.0, 2.0], [4.0, 6.0], [8.0]]


def test_forms_are_kept() -> None:
    array = np.arange(6).reshape(3, 2)

    alone = numpy_input_fn(array, shuffle=False)()
    pair = numpy_input_fn(array, {"y": array, "z": array}, batch_size=3, shuffle=False)()
    ((one, two),) = drained((alone, pair))

    np.testing.assert_array_equal(one, array)
    np.testing.assert_array_equal(two[0], array)
    assert list(two[1]) == ["y", "z"]


def test_shuffled_epochs_hold_every_row_as_often() -> None:
    x = np.arange(20)

    found = np.concatenate(drained(numpy_input_fn(x, batch_size=6, num_epochs=2, shuffle=True)()))

    assert sorted(found) == sorted([*x, *x])
    assert found.tolist() != [*x, *x]


def test_without_a_number_of_epochs_it_goes_on() -> None:
    found = drained(numpy_input_fn(np.arange(3), batch_size=2, num_epochs=None, shuffle=False)(), most=4)

    assert [batch.tolist() for batch in found] == [[0, 1], [2, 0], [1, 2], [0, 1]]


def test_a_change_of_the_array_does_not_reach_rows_that_wait() -> None:
    x = np.arange(4)
    batch = numpy_input_fn(x, batch_size=4, num_epochs=2, shuffle=False, queue_capacity=8)()

    with tf.train.MonitoredSession() as session:
        first = session.run(batch)
        x[:] = -1
        second = session.run(batch)

    assert first.tolist() == [0, 1, 2, 3]
    assert second.tolist() in ([0, 1, 2, 3], [-1, -1, -1, -1])


#: Arguments → error and its words.
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"x": np.arange(3)}, ValueError, "shuffle must be provided and explicitly set as boolean"),
    ({"x": np.arange(3), "shuffle": 1}, ValueError, "shuffle must be provided"),
    ({"x": [1, 2], "shuffle": False}, TypeError, "x must be a dict or array; got list"),
    ({"x": {}, "shuffle": False}, ValueError, "x cannot be an empty dict"),
    ({"x": np.zeros(0), "shuffle": False}, ValueError, "x cannot be an empty array"),
    ({"x": np.arange(3), "y": {}, "shuffle": False}, ValueError, "y cannot be empty dict, use None instead"),
    ({"x": np.arange(3), "y": np.arange(2), "shuffle": False}, ValueError, "Length of tensors in x and y"),
    (
        {"x": {"a": np.arange(3)}, "y": {"a": np.arange(3)}, "shuffle": False},
        ValueError,
        "1 duplicate keys are found in both x and y: {'a'}",
    ),
]


@pytest.mark.parametrize(("arguments", "error", "words"), REFUSED)
def test_what_is_refused(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        numpy_input_fn(**arguments)()


@pytest.mark.parametrize(
    ("start", "size", "end", "epoch", "epochs", "rows"),
    [
        (0, 2, 4, 0, None, ([0, 1], 0)),
        (4, 2, 4, 0, None, ([4, 0], 1)),
        (4, 2, 4, 0, 1, ([4], 1)),
        (3, 4, 2, 0, 2, ([3, 4, 0, 1], 0)),
        (2, 8, 2, 0, 2, ([2, 3, 4, 0, 1, 2], 2)),
        (0, 12, 4, 0, 3, ([*range(5), *range(5), 0, 1], 2)),
    ],
)
def test_rows_of_the_next_batch(
    start: int, size: int, end: int, epoch: int, epochs: int | None, rows: tuple[list[int], int]
) -> None:
    assert _get_integer_indices_for_next_batch(start, size, end, 5, epoch, epochs) == rows


def test_no_rows_after_the_last_epoch() -> None:
    with pytest.raises(tf.errors.OutOfRangeError, match="Already emitted 2 epochs"):
        _get_integer_indices_for_next_batch(0, 1, 4, 5, 2, 2)


def test_generators_are_padded() -> None:
    def rows() -> Iterator[dict[str, Any]]:
        for length in (1, 3, 2):
            yield {"n": np.arange(length), "k": np.array(length)}

    queue = _enqueue_data(rows, 100, num_epochs=1, pad_value=-1, enqueue_size=6)
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        k, n = session.run(queue.dequeue_many(3))
        coordinator.request_stop()
        coordinator.join(threads)

    assert (k.tolist(), n.tolist()) == ([1, 3, 2], [[0, -1, -1], [0, 1, 2], [0, 1, -1]])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"data": 1}, TypeError, "data must be either a numpy array or pandas DataFrame if pandas is installed; got"),
        ({"data": np.arange(3), "pad_value": 0}, NotImplementedError, "padding is only available with generator usage"),
    ],
)
def test_data_that_no_queue_is_filled_with(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        _enqueue_data(**arguments, capacity=10)
