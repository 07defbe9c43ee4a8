"""Functions of the client's process in a graph: what they get, give and raise; tokens of other processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold_core import dtypes, errors


def test_a_function_gets_arrays_and_gives_them_back() -> None:
    seen: list[Any] = []

    def function(x: Any, words: Any) -> Any:
        seen.append((x.copy(), words.tolist()))
        x += 1
        return x * 2, np.array(["é", "b"])

    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.constant([1.0, 2.0])
        doubled, words = tf.py_func(function, [given, tf.constant([b"x", b"y"])], [tf.float32, tf.string])
        single = tf.py_func(lambda: np.float32(7), [], tf.float32)
        nothing = tf.py_func(lambda x: None, [given], [])
        result, again, seven, _ = session.run([doubled, words, single, nothing])
        kept = session.run(given)

    assert result.tolist() == [4, 6]
    assert again.tolist() == ["é".encode(), b"b"]
    assert seven == 7
    assert kept.tolist() == [1, 2]
    assert seen[0][1] == [b"x", b"y"]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError("no"), errors.InvalidArgumentError),
        (StopIteration("end"), errors.OutOfRangeError),
        (NotImplementedError("not"), errors.UnimplementedError),
        (RuntimeError("odd"), errors.UnknownError),
    ],
)
def test_what_a_function_raises(raised: Exception, expected: type[Exception]) -> None:
    def function() -> Any:
        raise raised

    with tf.Graph().as_default(), tf.Session() as session:
        result = tf.py_func(function, [], tf.float32)
        with pytest.raises(expected, match=type(raised).__name__):
            session.run(result)


def test_wrong_counts_and_types_are_said() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        several = tf.py_func(lambda: (1.0, 2.0), [], tf.float32)
        typed = tf.py_func(lambda: np.arange(2), [], tf.float32)
        with pytest.raises(errors.InvalidArgumentError, match="returns 2 values, but expects to see 1 values"):
            session.run(several)
        with pytest.raises(
            errors.InvalidArgumentError, match=r"0-th value returned by pyfunc_.* is int64, but expects float"
        ):
            session.run(typed)


def test_a_token_of_another_process(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"callback pyfunc_0 is not found.*process"):
        ops.run("PyFuncStateless", [np.float32(1)], token=b"pyfunc_0", Tout=[dtypes.float32])


def test_a_function_goes_with_its_graph() -> None:
    import gc

    from tenfold_core import script_functions

    graph = tf.Graph()
    token = script_functions.register(len, graph)
    assert script_functions.find(token) is len

    del graph
    gc.collect()

    assert script_functions.find(token) is None
