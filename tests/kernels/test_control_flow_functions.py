"""Calls of functions by kernels: which function with what, how many turns, and what happens when a call has to wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import control_flow_functions as flow
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = "/job:worker/replica:0/task:0/device:CPU:0"


class Called:
    """A function whose body the test gives, and which may answer later."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self._body = body

    def start(self, values: Any) -> Any:
        return self._body(*values)


class Functions:
    """The library: functions by name. `later` keeps what it is given until the test runs it."""

    def __init__(self, most_turns: int = 1000, **bodies: Callable[..., Any]) -> None:
        self.most_turns, self._bodies = most_turns, bodies
        self.kept: list[Callable[[], None]] = []
        self.later = self.kept.append

    def instantiate(self, name: str, attrs: Any, device: str) -> Called:
        assert (attrs, device) == ({"of": name}, HERE)
        return Called(self._bodies[name])

    def run_kept(self) -> int:
        """How many stretches there were."""
        count = 0
        while self.kept:
            self.kept.pop(0)()
            count += 1
        return count


def named(name: str) -> Any:
    return SimpleNamespace(name=name, attr={"of": name})


def node(functions: Functions | None, outputs: int, **attrs: Any) -> Any:
    attrs = {key: [named(v) for v in each] if isinstance(each, list) else named(each) for key, each in attrs.items()}
    return SimpleNamespace(
        name="n", op="Op", attrs=attrs, device=HERE, functions=functions, output_types=[None] * outputs
    )


def told(waiting: Any) -> list[Any]:
    """What the listener of an answer is told, once it is."""
    assert type(waiting) is Waiting
    heard: list[Any] = []
    waiting.listen(lambda outputs, error: heard.append(error or outputs))
    return heard


def number(value: int) -> Any:
    return np.array(value, np.int32)


def counting(functions: Functions, outputs: int = 2) -> Any:
    return flow.build_while(node(functions, outputs, cond="cond", body="body"))


def up_to(limit: int, **more: Any) -> Functions:
    """A loop that counts, and adds what it has counted."""
    bodies = {"cond": lambda i, _: [np.array(i < limit)], "body": lambda i, total: [i + 1, total + i]}
    return Functions(**(bodies | more))


@pytest.mark.parametrize(("count", "result"), [(0, None), (1, "a"), (2, ("a", "b"))])
def test_a_call_gives_as_many_outputs_as_its_node_has(count: int, result: Any) -> None:
    functions = Functions(f=lambda *args: list(args)[:count])

    assert flow.build_call(node(functions, count, f="f"))("a", "b") == result


def test_a_graph_without_a_library_has_no_functions() -> None:
    with pytest.raises(errors.NotFoundError, match="Function f is not defined: the graph of node 'n' has no library"):
        flow.build_call(node(None, 1, f="f"))


@pytest.mark.parametrize("target", [HERE, "/device:CPU:0", ""])
def test_a_remote_call_of_this_device_runs_here(target: str) -> None:
    call = flow.build_remote_call(node(Functions(f=lambda x: [x + 1]), 1, f="f"))

    assert call(np.array(target.encode(), object), 4) == 5


def test_a_remote_call_of_another_device_is_refused() -> None:
    call = flow.build_remote_call(node(Functions(f=lambda x: [x + 1]), 1, f="f"))

    with pytest.raises(errors.UnimplementedError, match="cannot run its function on '/device:GPU:0'"):
        call(np.array(b"/device:GPU:0", object), 4)


TRUTHS = [
    (np.array(True), True), (np.array(False), False), (np.array(0.0), False), (np.array(-0.5), True),
    (np.array(b"", object), False), (np.array(b"0", object), True), (np.zeros(1), True), (np.zeros(0), False),
    (np.zeros((2, 0)), False), (np.array([b""], object), True),
]  # fmt: skip


@pytest.mark.parametrize(("value", "truth"), TRUTHS)
def test_a_number_a_text_or_a_tensor_is_a_condition(value: Any, truth: bool) -> None:
    branches = Functions(yes=lambda x: [x, "yes"], no=lambda x: [x, "no"])
    as_bool = flow.build_to_bool(node(None, 1))(value)

    chosen = flow.build_if(node(branches, 2, then_branch="yes", else_branch="no"))(value, 7)

    assert (as_bool.shape, as_bool.dtype, as_bool.item()) == ((), np.dtype(bool), truth)
    assert chosen == (7, "yes" if truth else "no")


@pytest.mark.parametrize(("index", "chosen"), [(-1, "c"), (0, "a"), (1, "b"), (2, "c"), (3, "c"), (99, "c")])
def test_a_case_without_a_branch_takes_the_last_one(index: int, chosen: str) -> None:
    branches = Functions(**{name: lambda x, name=name: [name + x] for name in "abc"})

    assert flow.build_case(node(branches, 1, branches=["a", "b", "c"]))(number(index), "!") == f"{chosen}!"


def test_a_loop_goes_on_with_what_its_body_returned() -> None:
    assert counting(up_to(5))(0, 100) == (5, 110)
    assert counting(up_to(0))(3, 100) == (3, 100)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"cond": lambda i, _: []}, "scalar return value from WhileOp cond, got 0 tensors"),
        ({"cond": lambda i, _: [np.array(True)] * 2}, "cond, got 2 tensors"),
        ({"body": lambda i, _: [i]}, "While loop body returned 1 arguments. Expected: 2"),
        ({"body": lambda i, t: [i, t, t]}, "While loop body returned 3 arguments. Expected: 2"),
    ],
)
def test_a_loop_whose_functions_return_too_many_or_too_few_is_refused(body: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        counting(up_to(5, **body))(0, 0)


def test_a_loop_may_take_as_many_turns_as_its_session_allows() -> None:
    with pytest.raises(errors.ResourceExhaustedError, match="have taken 5 turns"):
        counting(up_to(5, most_turns=5))(0, 0)
    assert counting(up_to(4, most_turns=5))(0, 0) == (4, 6)

    loop = flow.build_for(node(Functions(5, body=lambda i, total: [total + i]), 1, body="body"))
    assert loop(number(0), number(5), number(1), 0) == 10
    with pytest.raises(errors.ResourceExhaustedError, match="have taken 5 turns"):
        loop(number(0), number(6), number(1), 0)


@pytest.mark.parametrize(
    ("start", "limit", "delta", "numbers"),
    [(2, 9, 3, [2, 5, 8]), (2, 8, 3, [2, 5]), (5, 0, -2, [5, 3, 1]), (4, 4, 1, []), (4, 4, -1, []), (4, 4, 0, [])],
)
def test_a_for_counts_from_its_start_to_its_limit(start: int, limit: int, delta: int, numbers: list[int]) -> None:
    seen: list[Any] = []

    def body(i: Any, total: Any) -> list[Any]:
        seen.append(i)
        return [total + 1]

    loop = flow.build_for(node(Functions(body=body), 1, body="body"))

    assert loop(number(start), number(limit), number(delta), 10) == 10 + len(numbers)
    assert [i.item() for i in seen] == numbers
    assert all(i.dtype == np.int32 and i.shape == () for i in seen)


@pytest.mark.parametrize(("start", "limit", "delta"), [(5, 2, 1), (2, 5, -1), (2, 5, 0), (5, 2, 0)])
def test_a_for_that_would_never_end_is_refused(start: int, limit: int, delta: int) -> None:
    loop = flow.build_for(node(Functions(body=lambda i, total: [total]), 1, body="body"))

    with pytest.raises(errors.InvalidArgumentError, match=f"Invalid start/limit/delta: {start} {limit} {delta}"):
        loop(number(start), number(limit), number(delta), 0)


@pytest.mark.parametrize("name", ["start", "limit", "delta"])
def test_the_ends_of_a_for_are_scalars(name: str) -> None:
    ends = {each: np.ones(1, np.int32) if each == name else number(1) for each in ("start", "limit", "delta")}
    loop = flow.build_for(node(Functions(body=lambda i, total: [total]), 1, body="body"))

    with pytest.raises(errors.InvalidArgumentError, match=f"{name} must be a scalar"):
        loop(*ends.values(), 0)


@pytest.mark.parametrize("outputs", [[], [1, 2]])
def test_a_for_whose_body_returns_too_many_or_too_few_is_refused(outputs: list[int]) -> None:
    loop = flow.build_for(node(Functions(body=lambda i, total: outputs), 1, body="body"))

    with pytest.raises(errors.InvalidArgumentError, match=rf"body returned {len(outputs)} arguments. Expected: 1"):
        loop(number(0), number(3), number(1), 0)


def test_a_call_that_answers_later_is_waited_for_and_gone_on_with() -> None:
    asked: list[Waiting] = []

    def body(i: Any, total: Any) -> Any:
        if i != 2:
            return [i + 1, total + i]
        asked.append(Waiting())
        return asked[-1]

    functions = up_to(5, body=body)
    heard = told(counting(functions)(0, 100))
    functions.run_kept()
    assert (heard, len(asked)) == ([], 1), "nothing goes on before the answer is there"

    asked[0].complete([4, 1000])
    assert heard == [], "it goes on on another thread"
    functions.run_kept()

    assert heard == [(5, 1004)]


def test_a_long_loop_is_made_in_stretches_on_another_thread() -> None:
    functions = up_to(200)

    heard = told(counting(functions)(0, 0))

    assert heard == []
    assert functions.run_kept() >= 4, "400 calls, 64 at a stretch"
    assert heard == [(200, 19900)]


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [(errors.DataLossError(None, None, "gone"), errors.DataLossError, "gone"),
     (ZeroDivisionError("by nothing"), errors.InternalError, "ZeroDivisionError: by nothing")],
)  # fmt: skip
def test_a_call_that_fails_later_fails_the_kernel(fault: Exception, kind: type[errors.OpError], text: str) -> None:
    def body(i: Any, total: Any) -> Any:
        if i == 150:
            raise fault
        return [i + 1, total]

    functions = up_to(200, body=body)
    heard = told(counting(functions)(0, 0))
    functions.run_kept()

    assert [(type(error), error.message) for error in heard] == [(kind, text)]


def test_an_answer_that_is_an_error_is_raised_where_it_was_asked_for() -> None:
    asked = Waiting()
    functions = Functions(f=lambda: asked)
    heard = told(flow.build_call(node(functions, 1, f="f"))())

    asked.fail(errors.AbortedError(None, None, "the other one went"))
    functions.run_kept()

    assert [error.message for error in heard] == ["the other one went"]


def test_a_step_that_ends_gives_up_the_call_that_is_waited_for() -> None:
    given_up: list[str] = []
    asked = Waiting(lambda: given_up.append("it"))
    functions = Functions(f=lambda: asked)

    flow.build_call(node(functions, 1, f="f"))().cancel()

    assert given_up == ["it"]


def test_a_step_that_ends_between_two_stretches_makes_no_more_calls() -> None:
    calls: list[int] = []

    def body(i: Any, total: Any) -> Any:
        calls.append(i)
        return [i + 1, total]

    functions = up_to(500, body=body)
    answer = counting(functions)(0, 0)
    made = len(calls)

    answer.cancel()
    functions.run_kept()

    assert len(calls) == made


def test_a_step_that_ends_within_a_stretch_gives_up_what_it_asks_for_then() -> None:
    given_up: list[str] = []
    answers: list[Any] = []

    def body(i: Any, total: Any) -> Any:
        if i != 100:
            return [i + 1, total]
        answers[0].cancel()
        return Waiting(lambda: given_up.append("it"))

    functions = up_to(500, body=body)
    answers.append(counting(functions)(0, 0))
    functions.run_kept()

    assert given_up == ["it"]
