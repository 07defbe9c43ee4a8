"""Functions of the client's process in a graph: what they get, give and raise; tokens of other processes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tenfold as tf
from support.moments import PATIENCE
from tenfold_core import dtypes, errors, script_functions
from tenfold_kernels.registry import KernelNode, lookup
from tenfold_kernels.resources.state import ResourceManager


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
        (TypeError("type"), errors.InvalidArgumentError),
        (MemoryError("full"), errors.ResourceExhaustedError),
        (UnicodeError("a kind of ValueError"), errors.InvalidArgumentError),
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


def called(function: Any, *inputs: Any, types: Any = (dtypes.float32,), is_own: bool = True) -> Any:
    """What the kernel gives for a function of this process."""
    keeper = tf.Graph()
    token = script_functions.register(function, keeper)
    node = KernelNode(
        "n", "PyFunc", {"token": token.encode()}, (), tuple(types), "/job:a/replica:0/task:0/device:CPU:0",
        ResourceManager(), is_own_session=is_own,
    )  # fmt: skip
    return lookup(node, "CPU")(node)(*inputs)


def test_sessions_of_other_programs_do_not_reach_a_function() -> None:
    calls: list[int] = []
    with pytest.raises(errors.InvalidArgumentError, match=r"^PyFunc 'n': callback pyfunc_\w+ is not found"):
        called(lambda: calls.append(1), types=(), is_own=False)
    assert calls == []


def test_an_error_of_the_step_stays_what_it_is() -> None:
    error = errors.DataLossError(None, None, "torn")

    def function() -> Any:
        raise error

    with pytest.raises(errors.DataLossError) as raised:
        called(function)
    assert raised.value is error


def test_another_error_is_told_with_where_it_was_raised() -> None:
    def named_in_the_trace() -> Any:
        raise KeyError("which")

    with pytest.raises(errors.UnknownError) as raised:
        called(named_in_the_trace)
    assert raised.value.message.startswith("KeyError: 'which'\nTraceback")
    assert "named_in_the_trace" in raised.value.message
    assert isinstance(raised.value.__cause__, KeyError)


def test_what_a_function_may_write_to_is_its_own() -> None:
    """A copy, unless nobody else has the memory."""
    seen: list[Any] = []
    own, view, frozen = np.zeros(3, np.float32), np.zeros(6, np.float32)[::2], np.zeros(3, np.float32)
    frozen.setflags(write=False)
    frozen_view = view[:]
    frozen_view.setflags(write=False)
    called(lambda *values: seen.extend(values), own, view, frozen, frozen_view, types=())
    assert seen[0] is own
    for given, got in zip((view, frozen, frozen_view), seen[1:], strict=True):
        assert not np.may_share_memory(given, got)
        assert got.flags.writeable
    for one in seen:
        one += 1
    assert not view.any()


def test_scalars_are_scalars_and_other_arrays_are_not() -> None:
    seen: list[Any] = []
    word = np.empty((), object)
    word[()] = b"word"
    called(lambda *values: seen.extend(values), np.array(2.5, np.float32), word, np.ones((1, 1)), np.ones(1), types=())
    assert [type(value) for value in seen] == [np.float32, bytes, np.ndarray, np.ndarray]
    assert seen[:2] == [2.5, b"word"]
    assert [value.shape for value in seen[2:]] == [(1, 1), (1,)]


def test_what_a_function_keeps_is_not_the_steps() -> None:
    kept = np.ones(3, np.float32)
    result = called(lambda: kept)
    kept += 1
    assert result.tolist() == [1, 1, 1]
    assert called(lambda: [kept, kept], types=[dtypes.float32] * 2)[1].tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("returned", "dtype", "expected"),
    [
        (3, dtypes.float32, 3.0),
        (3, dtypes.int32, 3),
        (True, dtypes.bool_, True),
        (2.5, dtypes.float64, 2.5),
        (2.5, dtypes.float16, 2.5),
        ([[1, 2]], dtypes.float32, [[1, 2]]),
        (np.float64(1), dtypes.float64, 1.0),
        ("é", dtypes.string, "é".encode()),
        (b"b", dtypes.string, b"b"),
        ([["a", b"b"]], dtypes.string, [[b"a", b"b"]]),
        (np.array([["x", "yz"]]), dtypes.string, [[b"x", b"yz"]]),
    ],
)
def test_what_is_taken_for_a_result(returned: Any, dtype: Any, expected: Any) -> None:
    result = called(lambda: [returned], types=[dtype])
    assert (result.dtype, result.tolist()) == (dtype.as_numpy_dtype, expected)


@pytest.mark.parametrize(
    ("returned", "dtype", "text"),
    [
        (2.5, dtypes.int32, "1-th value returned by pyfunc_.* is float64, but expects int32"),
        (np.float64(1), dtypes.float32, "1-th value returned by pyfunc_.* is float64, but expects float"),
        (np.ones(2), dtypes.float32, "1-th value returned by pyfunc_.* is float64, but expects float"),
        ("text", dtypes.float32, "1-th value returned by pyfunc_.* is object, but expects float"),
        (1j, dtypes.float32, "1-th value returned by pyfunc_.* is complex128, but expects float"),
    ],
)
def test_what_is_not_taken_for_a_result(returned: Any, dtype: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        called(lambda: (np.float32(1), returned), types=[dtypes.float32, dtype])


def test_how_many_there_are() -> None:
    three = (dtypes.int32,) * 3
    assert called(lambda: None, types=()) is None
    assert called(lambda: (), types=()) is None
    assert called(lambda: [], types=()) is None
    assert [int(value) for value in called(lambda: [1, 2, 3], types=three)] == [1, 2, 3]
    assert [int(value) for value in called(lambda: (1, 2, 3), types=three)] == [1, 2, 3]
    assert called(lambda: np.array([1, 2, 3], np.int32), types=three[:1]).tolist() == [1, 2, 3]
    for returned, count in ((None, 0), ((1,), 1), (np.ones(3), 1)):
        with pytest.raises(errors.InvalidArgumentError, match=f"returns {count} values, but expects to see 3 values"):
            called(lambda values=returned: values, types=three)


def test_a_token_of_another_process(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"callback pyfunc_0 is not found.*process"):
        ops.run("PyFuncStateless", [np.float32(1)], token=b"pyfunc_0", Tout=[dtypes.float32])


def test_a_function_goes_with_its_graph() -> None:
    import gc

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
