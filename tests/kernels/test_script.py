"""Functions of the client's process in a graph: what they get, give and raise; tokens of other processes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tenfold as tf
from support.moments import PATIENCE
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


@pytest.mark.parametrize("make", [tf.py_func, tf.numpy_function, tf.py_function])
@pytest.mark.parametrize("no_types", [[], ()])
def test_a_function_without_results_runs_for_its_effect(make: Any, no_types: Any) -> None:
    seen: list[float] = []

    with tf.Graph().as_default(), tf.Session() as session:
        noted = make(lambda x: seen.append(float(x)), [tf.constant(3.0)], no_types)
        with tf.control_dependencies([noted]):
            after = tf.constant(4.0) + 1.0
        in_branch = tf.cond(tf.constant(True), lambda: make(lambda: seen.append(5.0), [], no_types), tf.no_op)
        alone = session.run(noted)
        once = list(seen)
        five = session.run(after)
        session.run(in_branch)

    assert isinstance(noted, tf.Operation)
    assert (alone, five) == (None, 5.0)
    assert once == [3.0]
    assert seen == [3.0, 3.0, 5.0]


def test_results_that_were_not_declared_are_an_error() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        noted = tf.py_func(lambda: 1.0, [], [])
        with pytest.raises(errors.InvalidArgumentError, match="returns 1 values, but expects to see 0 values"):
            session.run(noted)


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


@pytest.mark.parametrize("op", [tf.py_func, tf.numpy_function])
@pytest.mark.parametrize("turned", [False, True])
def test_a_function_may_wait_for_another_of_its_step(op: Any, turned: bool) -> None:
    said = threading.Event()

    def say() -> Any:
        said.set()
        return np.float32(1)

    def hear() -> Any:
        return np.float32(2 if said.wait(PATIENCE) else 0)

    with tf.Graph().as_default(), tf.Session() as session:
        results = [op(each, [], tf.float32) for each in ((say, hear) if turned else (hear, say))]
        total = tf.add_n(results)
        for _ in range(3):
            said.clear()
            assert session.run(total) == 3


def test_a_function_that_waits_fails_with_the_step_of_the_other() -> None:
    released = threading.Event()

    def fail() -> Any:
        raise ValueError("no luck")

    with tf.Graph().as_default(), tf.Session() as session:
        waits = tf.py_func(lambda: np.float32(released.wait(PATIENCE)), [], tf.float32)
        fails = tf.py_func(fail, [], tf.float32, name="fails")
        with pytest.raises(errors.InvalidArgumentError, match=r"(?s)no luck.*node fails"):
            session.run([waits, fails])
        released.set()


def test_functions_side_by_side_get_their_inputs_as_they_were() -> None:
    both = threading.Barrier(2, timeout=PATIENCE)

    def seen(x: Any) -> Any:
        both.wait()
        x += 1
        return x

    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0])
        session.run(v.initializer)
        one, two = (tf.py_func(seen, [v], tf.float32) for _ in range(2))
        first, second, now = session.run([one, two, v])
    assert first.tolist() == second.tolist() == [2, 3]
    assert now.tolist() == [1, 2]
