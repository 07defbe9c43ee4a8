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
from tenfold_services.worker.execution import no_send
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


# -- calls in calls ----------------------------------------------------------------------------------------------------

COUNTDOWN = function(
    "down", ["n: int32"], ["r: int32"],
    [
        const("one", 1), node("last", "Less", "n", "one:output:0", T=I32),
        node("if", "If", "last:z:0", "n", Tcond=dtypes.bool_, Tin=[I32], Tout=[I32],
             then_branch=call("base"), else_branch=call("again")),
    ],
    r="if:output:0",
)  # fmt: skip
BASE = function("base", ["n: int32"], ["r: int32"], [], r="n")
AGAIN = function(
    "again", ["n: int32"], ["r: int32"],
    [
        const("one", 1), node("less", "Sub", "n", "one:output:0", T=I32),
        node("rest", "PartitionedCall", "less:z:0", Tin=[I32], Tout=[I32], f=call("down")),
        node("sum", "Add", "rest:output:0", "n", T=I32),
    ],
    r="sum:z:0",
)  # fmt: skip


def test_a_function_that_calls_itself_gets_to_the_deepest_call_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    most = functions.MAX_DEPTH
    assert most == 50
    runtime = Runtime(COUNTDOWN, BASE, AGAIN)
    down = runtime.of("down")
    depths: list[int] = []
    start = LibraryFunction.start

    def noted(self: Any, values: Any) -> Any:
        depths.append(getattr(functions._depth, "value", 0))
        return start(self, values)

    monkeypatch.setattr(LibraryFunction, "start", noted)

    assert down([np.array(9, np.int32)]) == [45]
    assert depths[: len(set(depths))] == list(range(len(set(depths)))), "one deeper with each call"
    assert functions._depth.value == 0
    with pytest.raises(errors.ResourceExhaustedError, match="what calls itself must come to an end"):
        down([np.array(10 * most, np.int32)])
    assert functions._depth.value == 0
    assert max(depths) == most
    assert down._compiled is not None
    assert not down._compiled.is_leaf
    assert down.by_rows([(0, True)]) is None


def test_a_program_is_kept_by_function_device_and_ranks() -> None:
    runtime = Runtime(CAST)
    cast, other = runtime.of("cast", T=I32)._call, runtime.of("cast", T=F32)._call
    here = runtime.compiled(cast, DEVICE)

    assert runtime.compiled(cast, DEVICE) is here
    assert runtime.compiled(other, DEVICE) is not here
    rows = runtime.compiled(cast, DEVICE, ((0, True),))
    assert rows is not here
    assert runtime.compiled(cast, DEVICE, ((0, True),)) is rows
    assert runtime.compiled(cast, DEVICE, ((0, False),)) is None
    assert len(runtime.made) == 3


def test_a_call_may_be_one_of_several_outputs_of_which_some_are_the_same() -> None:
    made = function(
        "f", ["x: float"], ["a: float", "b: float", "c: float"], [node("n", "Neg", "x", T=F32)],
        a="n:y:0", b="x", c="n:y:0",
    )  # fmt: skip
    called = Runtime(made).of("f")
    assert [float(each) for each in called([number(2)])] == [-2, 2, -2]
    at_once = called.by_rows([(0, True)])
    assert at_once is not None
    assert [each.tolist() for each in at_once([np.float32([1, 2])])] == [[-1, -2], [1, 2], [-1, -2]]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_call_with_another_number_of_values_is_refused_by_name(count: int) -> None:
    runtime = Runtime(NEG)
    neg, text = runtime.of("neg"), rf"^Function 'neg' takes 2 values; it is called with {count}\.$"
    for _ in range(2):
        with pytest.raises(errors.InvalidArgumentError, match=text):
            neg([number(1)] * count)
        with pytest.raises(errors.InvalidArgumentError, match=text):
            neg.by_rows([(0, True)] * count)
    assert getattr(functions._depth, "value", 0) == 0
    assert [float(each) for each in neg([number(1), number(2)])] == [-1, 2]


def test_a_function_among_several_of_an_attribute_is_a_call_too() -> None:
    chosen = function(
        "chosen", ["n: int32"], ["r: int32"],
        [
            const("zero", 0), node("case", "Case", "zero:output:0", "n", Tin=[I32], Tout=[I32],
                                   branches=[call("base"), call("endless")]),
        ],
        r="case:output:0",
    )  # fmt: skip
    endless = function("endless", ["n: int32"], ["r: int32"], [node("c", "chosen", "n")], r="c:r:0")
    called = Runtime(chosen, BASE, endless).of("chosen")
    assert called([np.array(3, np.int32)]) == [3]
    assert called._compiled is not None
    assert not called._compiled.is_leaf


# -- a wait, turn by turn ----------------------------------------------------------------------------------------------


class Turns:
    """A run whose turns the test says: an answer, or an error."""

    def __init__(self, *answers: Any, can_go_on: bool = True) -> None:
        self.answers, self.log = list(answers), []
        self.can_go_on, self.ended, self.stop, self.wake = can_go_on, False, [], None
        self.failed: list[BaseException] = []

    def turn(self, place: int) -> int:
        self.log.append("turn")
        assert place == functions.FUNCTION_CALLER
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        if callable(answer):
            answer = answer()
        found: int = answer
        return found

    def fetched(self) -> dict[str, Any]:
        return {"b": 2, "a": 1}

    def fail(self, error: BaseException) -> None:
        self.failed.append(error)

    def end(self) -> None:
        self.log.append("end")
        self.ended = True


class Pool:
    """Takes work, and does it when the test says."""

    def __init__(self) -> None:
        self.work: list[Any] = []

    def submit(self, work: Any) -> None:
        self.work.append(work)

    def run(self) -> None:
        work, self.work = self.work, []
        for each in work:
            each()


DONE, WAITS = 0, 1


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    made = Pool()
    monkeypatch.setattr(functions, "_pool", made)
    return made


def waiter(run: Turns, monkeypatch: pytest.MonkeyPatch) -> functions._CallWaiter:
    made: list[Any] = []
    monkeypatch.setattr(functions, "PartRun", lambda *each: (made.append(each), run)[1])
    compiled: Any = functions._Compiled("program", ["x", None, "y"], ["a", "b", "a"], None, True)  # type: ignore[arg-type]
    found = functions._CallWaiter(compiled, [10, 20, 30])
    assert made == [("program", {"x": 10, "y": 30}, no_send)]
    return found


def test_a_run_that_ends_at_once_leaves_no_work(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Turns(DONE)
    assert waiter(run, monkeypatch).begin() == [1, 2, 1]
    assert (run.log, pool.work, run.wake) == (["turn"], [], None)


def test_a_run_that_fails_at_once_is_ended(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Turns(errors.internal("at once"))
    with pytest.raises(errors.InternalError, match="at once"):
        waiter(run, monkeypatch).begin()
    assert (run.log, pool.work) == (["turn", "end"], [])


def test_what_came_during_the_first_turn_is_not_forgotten(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Turns(WAITS, DONE)
    answer = waiter(run, monkeypatch).begin()
    assert isinstance(answer, Waiting)
    assert run.log == ["turn"]
    pool.run()
    assert run.log == ["turn", "turn", "end"]
    assert result_of(answer) == [1, 2, 1]
    assert pool.work == []


def test_nothing_to_go_on_with_is_no_turn_until_it_is_woken(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Turns(WAITS, WAITS, DONE, can_go_on=False)
    answer = waiter(run, monkeypatch).begin()
    assert isinstance(answer, Waiting)
    pool.run()
    assert run.log == ["turn"]
    for _ in range(2):
        run.can_go_on = True
        assert run.wake is not None
        wake: Any = run.wake
        wake()
        assert len(pool.work) == 1, "who completes it has other things to do"
        run.answers[0] = _stands_still(run) if run.answers[0] == WAITS else run.answers[0]
        pool.run()
    assert run.log == ["turn", "turn", "turn", "end"]
    assert result_of(answer) == [1, 2, 1]


def _stands_still(run: Turns) -> Any:
    def turn() -> int:
        run.can_go_on = False
        return WAITS

    return turn


def test_what_comes_during_a_turn_is_another_turn_and_never_two_at_once(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Turns(WAITS)
    call = waiter(run, monkeypatch)
    call.begin()

    def turn() -> int:
        call._go_on_later()
        pool.run()  # another thread looks, and leaves it to this one
        return WAITS

    run.answers = [turn, DONE]
    pool.run()
    assert run.log == ["turn", "turn"]
    assert len(pool.work) == 1
    pool.run()
    assert run.log == ["turn", "turn", "turn", "end"]
    call._go_on_later()
    pool.run()
    assert run.log[-1] == "end"


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (errors.not_found("gone"), errors.NotFoundError, "^gone$"),
        (ValueError("a bug"), errors.InternalError, "^ValueError: a bug$"),
    ],
)
def test_an_error_of_a_later_turn_ends_the_run_and_is_the_answer(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[errors.OpError], text: str
) -> None:
    run = Turns(WAITS, error)
    answer = waiter(run, monkeypatch).begin()
    pool.run()
    assert run.log == ["turn", "turn", "end"]
    with pytest.raises(kind) as caught:
        result_of(answer)  # type: ignore[arg-type]
    assert caught.value.message == text[1:-1]


def test_a_call_that_is_given_up_between_turns_is_ended_there(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Turns(WAITS)
    answer = waiter(run, monkeypatch).begin()
    assert isinstance(answer, Waiting)
    answer.cancel()
    assert (run.log, run.stop, run.failed) == (["turn", "end"], [True], [])
    run.ended = False  # another thread may be about to look
    pool.run()
    assert run.log == ["turn", "end"]


def test_a_call_that_is_given_up_within_a_turn_is_ended_by_it(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Turns(WAITS)
    answer = waiter(run, monkeypatch).begin()
    assert isinstance(answer, Waiting)

    def turn() -> int:
        answer.cancel()
        assert (run.stop, run.ended) == ([True], False)
        (error,) = run.failed
        assert isinstance(error, errors.CancelledError)
        raise error

    run.answers = [turn]
    pool.run()
    assert run.log == ["turn", "turn", "end"]
