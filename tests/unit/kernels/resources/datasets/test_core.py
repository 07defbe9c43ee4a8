"""What all datasets share: weights, numbers of nodes, elements that are kept, and calls that are given up."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from support.dataset_machines import INT, SCALAR, SOON_S, Called, drained, ints, mapped, numbers, one, plain
from tenfold_core import errors
from tenfold_kernels.arrays import scalar_object
from tenfold_kernels.resources.datasets import core
from tenfold_kernels.resources.datasets.core import (
    HEAVY,
    INFINITE,
    UNKNOWN,
    Dataset,
    Like,
    Machine,
    Run,
    Same,
    SetUp,
    dataset_of,
    element_of,
    within,
)
from tenfold_kernels.resources.datasets.threads import Threads
from tenfold_kernels.resources.waiting import Waiting

# ---- datasets --------------------------------------------------------------------------------------------------------


def test_a_machine_of_elements_alone() -> None:
    machine = Machine(lambda: (one(1),))
    assert plain(machine()) == 1
    assert (machine.block, machine.is_ready) == (None, None)
    with pytest.raises(errors.UnimplementedError, match=r"^An iterator over this dataset cannot be saved\.$"):
        machine.save()
    with pytest.raises(errors.UnimplementedError, match=r"^An iterator over this dataset cannot be restored\.$"):
        machine.restore(1)


class Plain(Dataset):
    """Says nothing of itself."""


def test_a_dataset_that_says_nothing_of_itself() -> None:
    made = Plain(INT, SCALAR)
    assert (made.types, made.shapes, made.inputs) == (INT, SCALAR, ())
    assert (made.weight, made.is_slow, made.functions, made.scalars) == (1, False, (), 0)
    assert (made.cardinality(), made.stateful_op(), made.node_number) == (UNKNOWN, None, 0)
    assert (INFINITE, UNKNOWN, HEAVY) == (-1, -2, 4096)
    with pytest.raises(errors.FailedPreconditionError, match="The elements of a Plain dataset can only be had one aft"):
        made.at(0, Run())
    with pytest.raises(NotImplementedError):
        made.iterate(Run())


def test_weights_and_what_is_slow_come_of_inputs() -> None:
    first, second = Plain(INT, SCALAR), Plain(INT, SCALAR)
    first.weigh(3)
    second.weigh(4)
    assert Plain(INT, SCALAR, first, second).weight == 7
    assert not Plain(INT, SCALAR, first, second).is_slow
    second.is_slow = True
    assert Plain(INT, SCALAR, first, second).is_slow
    assert Plain(INT, SCALAR, second, first).is_slow
    assert not Plain(INT, SCALAR, first).is_slow


@pytest.mark.parametrize(
    ("factors", "weight"),
    [([0], 1), ([-5], 1), ([1], 1), ([2, 3], 6), ([HEAVY], HEAVY), ([HEAVY + 1], HEAVY + 1), ([1 << 40] * 2, 1 << 62)],
)
def test_what_an_element_takes(factors: list[int], weight: int) -> None:
    made = Plain(INT, SCALAR)
    for factor in factors:
        made.weigh(factor)
    assert made.weight == weight
    assert made.is_slow is (weight > HEAVY)


def test_numbers_of_nodes_count_inputs_and_scalars_first() -> None:
    source = numbers(3)
    assert source.node_number == 3
    first = Like(source)
    assert first.node_number == 4
    both = Plain(INT, SCALAR, first, source)
    both.scalars = 2
    assert both.node_number == 5 + 4 + 2


def test_an_op_whose_state_is_not_an_iterator_s() -> None:
    def made(op: str | None, *inputs: Dataset) -> Dataset:
        dataset = Plain(INT, SCALAR, *inputs)
        dataset.functions = (Called(lambda: 0), Called(lambda: 0, op))
        return dataset

    assert made("Own", made("Input")).stateful_op() == "Own"
    assert made(None, made(None), made("Input")).stateful_op() == "Input"
    assert made(None, made(None)).stateful_op() is None


def test_a_dataset_like_its_input() -> None:
    source = numbers(3)
    made = Like(source, numbers(4))
    assert (made.types, made.shapes, made.input, len(made.inputs)) == (INT, SCALAR, source, 2)
    assert made.cardinality() == UNKNOWN
    assert Same(source).cardinality() == 3


def test_a_run_is_set_up_before_the_input_is_gone_through() -> None:
    seen: list[Run] = []

    class Asks(Same):
        def iterate(self, run: Run) -> Machine:
            assert seen[-1] is run
            return self.input.iterate(run)

        def at(self, index: int, run: Run) -> Any:
            assert seen[-1] is run
            return self.input.at(index, run)

    made = SetUp(Asks(numbers(3)), seen.append)
    assert drained(made) == [0, 1, 2]
    assert plain(made.at(2, Run())) == 2
    assert len(seen) == 2
    assert made.cardinality() == 3


def test_what_a_variant_holds() -> None:
    source = numbers(3)
    assert dataset_of(source.as_array()) is source
    assert dataset_of(source) is source  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidArgumentError, match=r"variant is not a dataset. It is a NoneType\.$"):
        dataset_of(scalar_object(None))
    with pytest.raises(errors.InvalidArgumentError, match=r"It is a ndarray\.$"):
        dataset_of(source.as_array().reshape(1))
    assert source.as_array().shape == ()


def test_elements_that_are_kept_are_read_only() -> None:
    fresh, whole, fixed = ints(1, 2), ints(3, 4, 5), ints(6)
    fixed.setflags(write=False)
    found = element_of([fresh, whole[1:], fixed, np.int64(7), 8])
    assert [array.tolist() for array in found] == [[1, 2], [4, 5], [6], 7, 8]
    assert not any(array.flags.writeable for array in found)
    assert all(type(array) is np.ndarray for array in found)
    assert found[0] is fresh
    assert found[2] is fixed
    whole[:] = 0
    assert found[1].tolist() == [4, 5], "a copy of what belongs to another"
    assert whole.flags.writeable
    assert element_of([]) == ()


@pytest.mark.parametrize("index", [0, 2])
def test_a_number_within(index: int) -> None:
    assert within(index, 3) == index
    assert within(1 << 40, INFINITE) == 1 << 40


@pytest.mark.parametrize(("index", "count"), [(3, 3), (-1, 3), (0, 0), (0, UNKNOWN)])
def test_a_number_beyond(index: int, count: int) -> None:
    with pytest.raises(errors.OutOfRangeError) as refused:
        within(index, count)
    assert refused.value.message == f"Index out of range [0, {count}): {index}"


# ---- runs ------------------------------------------------------------------------------------------------------------

GIVEN_UP = "The step that waited for a dataset's element has ended."


def given_up(text: str = GIVEN_UP) -> Any:
    return pytest.raises(errors.CancelledError, match=f"^{text}$")


def me() -> int:
    return threading.get_ident()


def test_a_fresh_run() -> None:
    run = Run()
    assert (run.fuses_shuffles, run.is_sloppy, run.statistics_tag, run.is_closed) == (False, False, "", False)
    assert (run.aggregator, run.threads) == (None, None)
    run.check()


def test_a_step_that_ended_is_heard_until_the_thread_begins_anew() -> None:
    run = Run()
    run.cancel(me() + 1)
    run.check()
    run.begin()
    run.cancel(me())
    with given_up():
        run.check()
    run.begin()
    run.check()
    run.close()
    assert run.is_closed
    for _ in range(2):
        with given_up():
            run.check()
        run.begin()


def test_a_call_gives_what_its_function_does() -> None:
    run = Run()
    found = run.call(Called(lambda a, b: (a + b, ints(1, 2))), [one(1), one(2)])
    assert [array.tolist() for array in found] == [3, [1, 2]]
    assert not any(array.flags.writeable for array in found)
    assert run.outputs(lambda values: ["plain", *values], [1]) == ["plain", 1]


def test_a_call_that_waits_gives_what_comes() -> None:
    run, waits = Run(), [Waiting(), Waiting()]
    waits[0].complete(waits[1])  # a thread's answer is another's
    waits[1].complete([one(3)])
    assert run.outputs(lambda values: waits[0], []) == [one(3)]
    torn = Waiting()
    torn.fail(errors.DataLossError(None, None, "torn"))
    with pytest.raises(errors.DataLossError, match="torn"):
        run.outputs(lambda values: torn, [])
    assert run._waits == {}


def on_thread(work: Any) -> tuple[threading.Thread, list[Any]]:
    """The thread's number, and what it gave or raised."""
    found: list[Any] = []

    def body() -> None:
        found.append(threading.get_ident())
        begun.set()
        try:
            found.append(work())
        except errors.OpError as error:
            found.append(error)

    begun = threading.Event()
    thread = threading.Thread(target=body)
    thread.start()
    assert begun.wait(SOON_S)
    return thread, found


class Noticed(dict[Any, Any]):
    """Waits of a run; says when one is put there."""

    def __init__(self) -> None:
        super().__init__()
        self.has_one = threading.Event()

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.has_one.set()


@pytest.mark.parametrize("how", ["cancel", "close"])
@pytest.mark.parametrize("kind", ["call", "event"])
def test_what_a_thread_waits_for_is_given_up(how: str, kind: str) -> None:
    run, cancelled = Run(), threading.Event()
    waits = run._waits = Noticed()

    def body() -> Any:
        if kind == "event":
            return run.wait(threading.Event())
        return run.outputs(lambda values: Waiting(cancelled.set), [])

    thread, found = on_thread(body)
    assert waits.has_one.wait(SOON_S)
    run.cancel(found[0] + 1)
    assert thread.is_alive()
    if how == "cancel":
        run.cancel(found[0])
    else:
        run.close()
    thread.join(SOON_S)
    assert not thread.is_alive()
    assert isinstance(found[1], errors.CancelledError)
    assert found[1].message == GIVEN_UP
    assert cancelled.is_set() is (kind == "call")
    assert run._waits == {}


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_nothing_is_waited_for_once_the_step_has_ended(how: str) -> None:
    run, left = Run(), threading.Event()
    if how == "cancel":
        run.cancel(me())
    else:
        run.close()
    with given_up(r"The iterator was deleted\."):
        run.outputs(lambda values: Waiting(left.set), [])
    assert left.is_set(), "the function's queue has it in its line no more"
    with given_up(r"The iterator was deleted\."):
        run.wait(threading.Event())
    assert run.outputs(lambda values: [1], []) == [1], "what is there at once is given"


def test_an_event_that_comes() -> None:
    run, over = Run(), threading.Event()
    over.set()
    run.wait(over)
    assert run._waits == {}


def test_waits_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert core.WAIT_S == 3600
    monkeypatch.setattr(core, "WAIT_S", 0.001)
    run, left = Run(), threading.Event()
    with pytest.raises(errors.DeadlineExceededError, match=r"^A dataset's function did not end in 0\.001 s\.$"):
        run.outputs(lambda values: Waiting(left.set), [])
    assert left.is_set()
    with pytest.raises(errors.DeadlineExceededError, match=r"^A dataset's element was not made in 0\.001 s\.$"):
        run.wait(threading.Event())
    assert run._waits == {}


def test_what_is_left_to_do_when_an_iterator_is_gone() -> None:
    run, done = Run(), list[str]()
    run.when_closed(lambda: done.append("a"))
    run.when_closed(lambda: done.append("b"))
    assert done == []
    run.close()
    assert done == ["a", "b"]
    run.close()
    assert done == ["a", "b"], "once"
    run.when_closed(lambda: done.append("c"))
    assert done == ["a", "b", "c"], "it is gone already"


# ---- on a pipeline's own threads -------------------------------------------------------------------------------------


class Here(Threads):
    """Work is kept until a test does it."""

    def __init__(self) -> None:
        super().__init__(1, "here")
        self.work: list[Any] = []

    def submit(self, work: Any) -> None:
        self.work.append(work)


def handed_over(body: Any, *values: Any) -> tuple[Waiting, Here]:
    threads = Here()
    return core._handed_over(threads, body, values), threads


def answer(waiting: Waiting) -> list[Any]:
    found: list[Any] = []
    waiting.listen(lambda outputs, error: found.extend((outputs, error)))
    return found


def test_a_thread_s_outputs_and_errors_reach_the_step() -> None:
    def body(values: Any) -> Any:
        if values[0] == 1:
            raise errors.DataLossError(None, None, "torn")
        if values[0] == 2:
            raise ZeroDivisionError("by zero")
        return [values[0]]

    found = []
    for number in range(3):
        waiting, threads = handed_over(body, number)
        threads.work.pop()()
        found.append(answer(waiting))
    assert found[0] == [[0], None]
    assert isinstance(found[1][1], errors.DataLossError)
    assert isinstance(found[2][1], errors.InternalError)
    assert found[2][1].message == "ZeroDivisionError: by zero"


def test_a_step_that_ended_has_nothing_begun() -> None:
    begun: list[Any] = []
    waiting, threads = handed_over(begun.append, 1)
    waiting.cancel()
    threads.work.pop()()
    assert begun == []


def test_a_step_that_ends_while_a_body_begins_gives_up_what_that_waits_for() -> None:
    left: list[int] = []

    def body(values: Any) -> Any:
        waiting.cancel()
        return Waiting(lambda: left.append(1))

    waiting, threads = handed_over(body)
    threads.work.pop()()
    assert left == [1]


def test_a_body_s_waiting_is_the_answer() -> None:
    inner = Waiting()
    waiting, threads = handed_over(lambda values: inner)
    threads.work.pop()()
    assert answer(waiting) == [inner, None]
    assert inner.is_open


def test_calls_go_to_the_run_s_threads() -> None:
    run = Run()
    run.threads = Threads(1, "own")
    names = run.outputs(lambda values: [threading.current_thread().name], [])
    assert names == ["own-1"]
    assert plain(run.call(Called(lambda n: n * 2), [one(4)])) == 8


def test_a_map_of_a_run_that_is_over() -> None:
    run = Run()
    machine = mapped(numbers(3), lambda n: Waiting()).iterate(run)
    run.close()
    with given_up(r"The iterator was deleted\."):
        machine()
