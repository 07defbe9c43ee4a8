"""Input functions over data frames. pandas is no requirement: what needs it is skipped where it is not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

pandas_input_fn = tf.estimator.inputs.pandas_input_fn


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def pandas() -> Any:
    return pytest.importorskip("pandas")


def test_what_is_no_data_frame_is_told_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"must be a pandas DataFrame \(pip install pandas\), not ndarray"):
        pandas_input_fn(np.arange(3), shuffle=False)


def test_columns_and_labels(pandas: Any) -> None:
    index = np.arange(100, 105)
    x = pandas.DataFrame({"a": np.arange(5), "b": list("vwxyz")}, index=index)
    y = pandas.Series(np.arange(5) * 2.0, index=index)

    found = []
    batch = pandas_input_fn(x, y, batch_size=3, shuffle=False)()
    with tf.train.MonitoredSession() as session:
        while not session.should_stop():
            found.append(session.run(batch))

    assert [features["a"].tolist() for features, _ in found] == [[0, 1, 2], [3, 4]]
    assert [features["b"].tolist() for features, _ in found] == [[b"v", b"w", b"x"], [b"y", b"z"]]
    assert [labels.tolist() for _, labels in found] == [[0.0, 2.0, 4.0], [6.0, 8.0]]


def test_several_labels_keep_their_names(pandas: Any) -> None:
    x = pandas.DataFrame({"a": np.arange(4)})
    y = pandas.DataFrame({"a": -np.arange(4), "c": np.arange(4)})

    batch = pandas_input_fn(x, y, batch_size=4, shuffle=False)()
    with tf.train.MonitoredSession() as session:
        features, labels = session.run(batch)

    assert (features["a"].tolist(), labels["a"].tolist(), sorted(labels)) == ([0, 1, 2, 3], [0, -1, -2, -3], ["a", "c"])


def test_what_is_refused(pandas: Any) -> None:
    x = pandas.DataFrame({"a": [1, 2]})
    y = pandas.Series([1, 2])
    for arguments, error, words in (
        ({"x": x}, ValueError, "shuffle must be provided"),
        ({"x": x, "y": y, "shuffle": False, "target_column": "a"}, ValueError, "Cannot use name a for target column"),
        ({"x": x, "y": y, "shuffle": False, "target_column": 1}, TypeError, "target_column must be a string type"),
        ({"x": x, "y": y[:1], "shuffle": False}, ValueError, "Index for x and y are mismatched"),
    ):
        with pytest.raises(error, match=words):
            pandas_input_fn(**arguments)


def test_columns_of_a_frame_are_arrays_for_numpy_input_fn(pandas: Any) -> None:
    frame = pandas.DataFrame({"job": list("vwx"), "age": [3.0, 4.0, 5.0]})
    columns = {"job": frame.job.values.astype(str), "age": frame.age}

    features, labels = tf.estimator.inputs.numpy_input_fn(columns, frame.job, 3, num_epochs=1, shuffle=False)()

    with tf.train.MonitoredSession() as session:
        found, texts = session.run((features, labels))
    assert found["job"].tolist() == texts.tolist() == [b"v", b"w", b"x"]
    assert found["age"].tolist() == [3.0, 4.0, 5.0]
