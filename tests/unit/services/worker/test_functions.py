"""Functions called from kernels: at once, later where their body waits, to the end, and never too deep or too many."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from support.functions import DEVICE, call, const, function, graph, node, result_of
from support.moments import PATIENCE
from support.programs import compile_program
from tenfold_core import attr_value, dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.state import ResourceManager
from tenfold_kernels.resources.waiting import Waiting
from tenfold_services.worker import functions
from tenfold_services.worker.functions import FunctionRuntime, LibraryFunction

F32, I32 = dtypes.float32, dtypes.int32
QUEUE = node("q", "FIFOQueueV2", shared_name=b"q", component_types=[F32], shapes=[TensorShape([])])
TAKE = function(
    "take", ["x: float"], ["e: float"],
    [
        QUEUE, node("d", "QueueDequeueV2", "q:handle:0", component_types=[F32]),
        node("sum", "Add", "d:components:0", "x", T=F32),
    ],
    e="sum:z:0", stateful=True,
)  # fmt: skip
PUT = function(
    "put", ["x: float"], ["e: float"],
    [QUEUE, node("p", "QueueEnqueueV2", "q:handle:0", "x", Tcomponents=[F32])],
    e="x", stateful=True, control=["p"],
)  # fmt: skip
CLOSE = function(
    "close", ["x: float"], ["e: float"], [QUEUE, node("c", "QueueCloseV2", "q:handle:0")], e="x", stateful=True,
    control=["c"],
)  # fmt: skip
CAST = function("cast", ["x: float"], ["y: T"], [node("c", "Cast", "x", SrcT=F32, DstT="T")], attrs=["T"], y="c:y:0")


class Runtime(FunctionRuntime):
    """Counts what it compiles."""

    def __init__(self, *of: Any, **options: Any) -> None:
        resources, self.made = ResourceManager(), []

        def compiled(graph_def: Any, functions: Any) -> Any:
            self.made.append(graph_def)
            return compile_program(graph_def, DEVICE.partition("/device")[0], resources, functions=functions)

        super().__init__(graph([], *of).library, compiled, **options)

    def of(self, name: str, **attrs: Any) -> LibraryFunction:
        return self.instantiate(name, {key: attr_value.to_proto(value, "type") for key, value in attrs.items()}, DEVICE)


def number(value: float) -> np.ndarray:
    return np.float32(value).reshape(())


def test_a_function_is_found_by_name_and_types_and_compiled_once() -> None:
    runtime = Runtime(CAST)
    whole, real = runtime.of("cast", T=I32), runtime.of("cast", T=dtypes.float64)
    assert runtime.made == []

    assert [each([number(2.5)])[0].dtype for each in (whole, real, whole, runtime.of("cast", T=I32))] == [
        np.int32, np.float64, np.int32, np.int32
    ]  # fmt: skip
    assert len(runtime.made) == 2
    with pytest.raises(errors.NotFoundError, match="nobody"):
        runtime.of("nobody")


def test_a_graph_calls_functions_in_so_many_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MAX_INSTANTIATIONS", 1)
    runtime = Runtime(CAST)
    runtime.of("cast", T=I32)([number(1)])

    with pytest.raises(errors.ResourceExhaustedError, match="calls functions in more than 1 different ways"):
        runtime.of("cast", T=F32)([number(1)])
    assert runtime.of("cast", T=I32)([number(3)])[0] == 3


@pytest.mark.parametrize("name", ["plain", "odd name é", "_private", "a/b.c-d>e\\f"])
def test_a_name_may_have_what_a_nodes_may_not(name: str) -> None:
    made = function(name, ["x: float"], ["y: float"], [node("n", "Neg", "x", T=F32)], y="n:y:0")
    assert Runtime(made).of(name)([number(2)])[0] == -2


def test_a_parameter_that_the_body_does_not_use_has_a_place_all_the_same() -> None:
    made = function("f", ["a: float", "b: float"], ["y: float"], [node("n", "Neg", "b", T=F32)], y="n:y:0")
    found = Runtime(made).of("f")
    assert found([number(1), number(2)])[0] == -2
    assert [key is None for key in found._compiled.feeds] == [True, False]  # type: ignore[union-attr]


def test_outputs_are_the_callers_own_but_for_its_own_values() -> None:
    made = function(
        "f", ["x: float"], ["c: float", "same: float", "n: float"],
        [const("c", [1.0, 2.0]), node("n", "Neg", "x", T=F32)], c="c:output:0", same="x", n="n:y:0",
    )  # fmt: skip
    value = np.float32([3])
    value.flags.writeable = False

    constant, same, negative = Runtime(made).of("f")([value])

    assert constant.flags.writeable
    assert np.shares_memory(same, value)
    assert negative.tolist() == [-3.0]


# -- bodies that wait --------------------------------------------------------------------------------------------------


def test_a_body_that_has_to_wait_answers_later() -> None:
    runtime = Runtime(TAKE, PUT)
    take, put = runtime.of("take"), runtime.of("put")

    waiting = take.start([number(10)])
    assert isinstance(waiting, Waiting)
    assert put([number(1)])[0] == 1
    assert result_of(waiting) == [11.0]

    put([number(2)])
    assert take([number(20)]) == [22.0]  # what is there is not waited for


def test_who_cannot_wait_otherwise_waits_here() -> None:
    runtime = Runtime(TAKE, PUT)
    put, began = runtime.of("put"), threading.Event()

    def later() -> None:
        began.wait(PATIENCE)
        put([number(5)])

    thread = threading.Thread(target=later)
    thread.start()
    began.set()
    assert runtime.of("take")([number(1)]) == [6.0]
    thread.join(PATIENCE)


def test_what_does_not_end_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "WAIT_S", 0.01)
    runtime = Runtime(TAKE, PUT)

    with pytest.raises(errors.DeadlineExceededError, match=r"Function 'take' did not end in 0\.01 s\."):
        runtime.of("take")([number(1)])

    runtime.of("put")([number(5)])
    assert runtime.of("take")([number(1)]) == [6.0]  # the one that was given up has taken nothing


def test_a_call_that_is_cancelled_takes_nothing() -> None:
    runtime = Runtime(TAKE, PUT)
    waiting = runtime.of("take").start([number(1)])
    assert isinstance(waiting, Waiting)

    waiting.cancel()
    runtime.of("put")([number(5)])

    assert runtime.of("take")([number(2)]) == [7.0]


def test_an_error_of_a_body_that_waited_is_its_calls_and_names_the_node() -> None:
    runtime = Runtime(TAKE, CLOSE)
    waiting = runtime.of("take").start([number(1)])
    assert isinstance(waiting, Waiting)

    runtime.of("close")([number(0)])

    with pytest.raises(errors.OutOfRangeError, match=r"(?s)is closed.*take"):
        result_of(waiting)
    with pytest.raises(errors.OutOfRangeError, match="is closed"):
        runtime.of("take")([number(1)])


def test_a_bug_after_a_wait_ends_the_call_as_internal(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime(TAKE, PUT)
    waiting = runtime.of("take").start([number(1)])
    assert isinstance(waiting, Waiting)
    outputs = functions._CallWaiter._outputs

    def breaks_later(self: Any) -> Any:
        return 1 / 0 if threading.current_thread().name.startswith("tenfold-functions") else outputs(self)

    monkeypatch.setattr(functions._CallWaiter, "_outputs", breaks_later)

    runtime.of("put")([number(5)])

    with pytest.raises(errors.InternalError, match="ZeroDivisionError: division by zero"):
        result_of(waiting)


def test_a_function_sends_to_nobody() -> None:
    with pytest.raises(errors.InternalError, match="A function sends key to another task"):
        functions._no_send("key", 1, False)


# -- how deep, what it does, and where ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("deep", "fails"), [(49, False), (50, True)])
def test_calls_stand_in_each_other_so_deep(deep: int, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime(CAST)
    cast = runtime.of("cast", T=I32)
    monkeypatch.setattr(functions._depth, "value", deep, raising=False)
    if fails:
        with pytest.raises(errors.ResourceExhaustedError, match="Function 'cast' was called 50 deep"):
            cast([number(1)])
    else:
        assert cast([number(1)])[0] == 1
    assert functions._depth.value == deep
    monkeypatch.setattr(functions._depth, "value", 0)
    assert cast([number(1)])[0] == 1
    monkeypatch.setattr(functions._depth, "value", deep)
    assert cast([number(1)])[0] == 1  # a leaf that is known does not count


def test_which_op_has_a_state_of_its_own() -> None:
    drawn = [const("s", [2]), node("r", "RandomUniform", "s:output:0", T=I32, dtype=F32)]
    draws = function("draws", ["x: float"], ["y: float"], drawn, y="r:output:0", stateful=True)
    outer = function(
        "outer", ["x: float"], ["y: float"],
        [node("c", "StatefulPartitionedCall", "x", Tin=[F32], Tout=[F32], f=call("draws"))],
        y="c:output:0", stateful=True,
    )  # fmt: skip
    runtime = Runtime(draws, outer, CAST)

    assert runtime.of("draws").stateful_op() == "RandomUniform"
    assert runtime.of("outer").stateful_op() == "RandomUniform"
    assert runtime.of("cast", T=I32).stateful_op() is None


def test_work_is_done_on_another_thread() -> None:
    done, threads = threading.Event(), []

    def work() -> None:
        threads.append(threading.current_thread().name)
        done.set()

    Runtime().later(work)
    assert done.wait(PATIENCE)
    assert threads[0].startswith("tenfold-functions")
    assert Runtime().most_turns == functions.MOST_TURNS
    assert Runtime(most_turns=7).most_turns == 7


# -- many elements at once ---------------------------------------------------------------------------------------------

NEGATED = [node("n", "Neg", "x", T=F32)]
NEG = function("neg", ["x: float", "y: float"], ["n: float", "y: float"], NEGATED, n="n:y:0", y="y")


def test_a_body_that_works_row_by_row_is_one_call_and_the_rest_is_repeated() -> None:
    runtime = Runtime(NEG)
    neg = runtime.of("neg")
    at_once = neg.by_rows([(1, True), (0, False)])
    assert at_once is not None
    assert at_once.is_sure
    assert neg.by_rows([(1, True), (0, False)]) is at_once
    assert neg.by_rows(((1, True), (0, True))) is not at_once

    rows, same = at_once([np.float32([[1, 2], [3, 4], [5, 6]]), number(7)])

    assert rows.tolist() == [[-1, -2], [-3, -4], [-5, -6]]
    assert same.tolist() == [7.0, 7.0, 7.0]


def test_the_parameter_with_rows_says_how_many_there_are() -> None:
    at_once = Runtime(NEG).of("neg").by_rows([(0, False), (1, True)])
    assert at_once is not None

    same, rows = at_once([number(7), np.float32([[1, 2], [3, 4]])])

    assert same.tolist() == [-7.0, -7.0]
    assert rows.tolist() == [[1, 2], [3, 4]]


def test_a_body_that_waits_or_calls_has_no_call_for_many() -> None:
    runtime = Runtime(TAKE, NEG)
    assert runtime.of("take").by_rows([(0, True)]) is None
    assert runtime.of("neg").by_rows([(0, False), (0, False)]) is None
