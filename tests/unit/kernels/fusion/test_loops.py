"""A loop of scalars as text and as a call: slices, turns, stacks that grow, and what the nodes must do themselves."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.fusion import loops
from tenfold_kernels.fusion.loops import ScalarLoop, StackInput
from tenfold_kernels.resources import tensor_arrays
from tenfold_kernels.resources.tensor_arrays import Stack

F32, F64, I32, BOOL = map(np.dtype, ("float32", "float64", "int32", "bool"))


class AsPython:
    """Stands for FusionCache: what would be compiled, as it is; counts the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.signature = ""

    def function(self, source: str, signature: str) -> Any:
        namespace: dict[str, Any] = {"math": math, "np": np}
        exec(source, namespace)
        self.signature = signature

        def call(*given: Any) -> Any:
            self.calls.append(given)
            return namespace["run"](*given)

        return call


def counted(*, stacks: tuple[StackInput, ...] = (), body: tuple[str, ...] = ()) -> ScalarLoop:
    """i counts from `start` to `limit`; `total` adds it up. Each turn also does `body`."""
    return ScalarLoop(
        inputs=(("start", I32), ("limit", I32), ("total0", F64), ("go", None)),
        stacks=stacks,
        variables=(("i", I32), ("total", F64)),
        outputs=(("total", F64), ("i", I32), ("odd", BOOL)),
        begin=(" i = start", " total = total0"),
        turns=(
            " while go and i < limit:",
            "  i = i + 1",
            "  total = total + i",
            *body,
            "  @",
            " odd = i % 2 == 1",
        ),
    )


def nodes(stop: Any, *values: Any) -> Any:
    return "the nodes", len(values)


def given(start: int, limit: int, *stacks: Any, go: bool = True) -> list[Any]:
    return [np.array(start, np.int32), np.array(limit, np.int32), np.array(0.5), go, *stacks]


def test_types_have_a_vector_each() -> None:
    loop = counted()
    assert loop.places() == ({I32: 1, F64: 1, BOOL: 1}, {"i": (0, 0), "total": (1, 0), "odd": (2, 0)})
    two = ScalarLoop((), (), (("a", F32), ("b", F32)), (("c", F32), ("b", F32), ("d", I32)), (), ())
    places = {"a": (0, 0), "b": (0, 1), "c": (0, 2), "d": (1, 0)}
    assert two.places() == ({F32: 3, I32: 1}, places)


def test_the_signature_has_a_type_for_each_argument() -> None:
    loop = counted(stacks=(StackInput(F32, True), StackInput(I32, False)))
    vector = "types.Array(types.{}, 1, 'C')".format
    assert loop.source[1] == "types.int64({})".format(
        ", ".join(
            [
                *("types.boolean", "types.int64"),
                *map(vector, ("int32", "float64", "boolean", "float32", "int32", "int64")),
                *("types.int64", "types.int64", "types.float64", "types.boolean"),
            ]
        )
    )
    plain = ScalarLoop((("x", BOOL),), (), (), (("y", F32),), (), ()).source[1]
    assert plain == "types.int64(types.boolean, types.int64, types.Array(types.float32, 1, 'C'), types.boolean)"


def test_the_text_saves_its_variables_between_slices() -> None:
    lines = counted(stacks=(StackInput(F32, False),)).source[0].splitlines()
    assert lines == [
        "def run(first, n, o0, o1, o2, q0, tops, a0, a1, a2, a3):",
        " start = np.int32(a0)",
        " limit = np.int32(a1)",
        " total0 = np.float64(a2)",
        " go = a3",
        " p0 = tops[0]",
        " if first:",
        "  i = start",
        "  total = total0",
        " else:",
        "  i = o0[0]",
        "  total = o1[0]",
        " while go and i < limit:",
        "  i = i + 1",
        "  total = total + i",
        "  n -= 1",
        "  if n <= 0:",
        "   o0[0] = i",
        "   o1[0] = total",
        "   tops[0] = p0",
        "   return 1",
        " odd = i % 2 == 1",
        " o1[0] = total",
        " o0[0] = i",
        " o2[0] = odd",
        " tops[0] = p0",
        " return 0",
    ]


def test_results_are_arrays_of_their_types() -> None:
    cache = AsPython()
    call = counted().build(nodes, cache)  # type: ignore[arg-type]
    total, i, odd = call([], *given(2, 5))
    assert (total.dtype, i.dtype, odd.dtype) == (F64, I32, BOOL)
    assert (total.shape, total.item(), i.item(), odd.item()) == ((), 0.5 + 3 + 4 + 5, 5, True)
    assert call([], *given(2, 5, go=False))[1].item() == 2
    first, slice_, *_ = cache.calls[0]
    assert (first, slice_) == (True, (1 << 18) // 5), "about so many ops, of five lines a turn"
    assert cache.calls[0][-4:] == (2, 5, 0.5, True), "Python's own numbers"


def test_a_loop_runs_slice_by_slice_until_it_is_told_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_OPS_OF_A_SLICE", 10)
    cache = AsPython()
    call = counted().build(nodes, cache)  # type: ignore[arg-type]
    assert call([], *given(0, 5))[0].item() == 15.5
    assert [each[:2] for each in cache.calls] == [(True, 2), (False, 2), (False, 2)]
    cache.calls.clear()
    assert call([True], *given(0, 5)) == (None, None, None)
    assert len(cache.calls) == 1
    assert call([True], *given(0, 1))[0].item() == 1.5, "it had ended"
    monkeypatch.setattr(loops, "_OPS_OF_A_SLICE", 1)
    counted().build(nodes, cache)([], *given(0, 1))  # type: ignore[arg-type]
    assert cache.calls[-2][1] == 1, "a turn at least"


@pytest.mark.parametrize(("turns", "most", "is_refused"), [(6, 6, True), (5, 6, False), (6, 7, False), (8, 7, True)])
def test_a_loop_takes_so_many_turns(turns: int, most: int, is_refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_OPS_OF_A_SLICE", 10)
    call = counted().build(nodes, AsPython(), most)  # type: ignore[arg-type]
    if is_refused:
        with pytest.raises(errors.ResourceExhaustedError, match=f"taken {most} turns"):
            call([], *given(0, turns))
    else:
        assert call([], *given(0, turns))[1].item() == turns


def test_a_bound_below_a_slice_is_the_slice() -> None:
    cache = AsPython()
    counted().build(nodes, cache, 3)([], *given(0, 2))  # type: ignore[arg-type]
    assert cache.calls[0][1] == 3


def test_inner_loops_give_up_after_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_INNER_TURNS", 4)
    monkeypatch.setattr(loops, "_OPS_OF_A_SLICE", 9)
    inner = ("  j = 0", "  while j < limit:", "   j = j + 1", "   @@")
    loop = counted(body=inner)
    assert "   if n < -4: return 2" in loop.source[0].splitlines()
    call = loop.build(nodes, AsPython())  # type: ignore[arg-type]
    assert call([], *given(5, 6)) == ("the nodes", 4), "the sixth is one too many"
    assert call([], *given(4, 5))[1].item() == 5


def test_what_is_no_scalar_goes_to_the_nodes() -> None:
    call = counted().build(nodes, AsPython())  # type: ignore[arg-type]
    for place in range(3):
        values = given(0, 3)
        values[place] = np.zeros(1)
        assert call([], *values) == ("the nodes", 4)
    values = given(0, 3)
    values[1] = DeviceArray.__new__(DeviceArray)
    values[1].shape = ()
    assert call([], *values) == ("the nodes", 4)


# ---- stacks ----------------------------------------------------------------------------------------------------------


def handle(stack: Any) -> Any:
    array = np.empty((), object)
    array[()] = SimpleNamespace(resource=stack)
    return array


def stack_of(*values: Any, dtype: Any = dtypes.float32, most: int = -1) -> Stack:
    stack = Stack("s", dtype, most)
    for value in values:
        stack.push(np.array(value, dtype.as_numpy_dtype))
    return stack


def taken(stack: Stack) -> list[Any]:
    found = []
    while True:
        try:
            found.append(stack.pop().item())
        except errors.InvalidArgumentError:
            return found


PUSH = ("  if p0 >= q0.size: return 3", "  q0[p0] = total", "  p0 += 1")
POP = ("  if p1 <= 0: return 2", "  p1 -= 1", "  total = total + q1[p1]")


def test_what_is_pushed_and_popped_is_settled_at_the_end() -> None:
    pushes, pops = StackInput(F32, True), StackInput(F32, False)
    call = counted(stacks=(pushes, pops), body=(*PUSH, *POP)).build(nodes, AsPython())  # type: ignore[arg-type]
    into, out_of = stack_of(9.0), stack_of(1, 2, 3, 4)
    total, *_ = call([], *given(0, 3, handle(into), handle(out_of)))
    assert total.item() == 0.5 + (1 + 4) + (2 + 3) + (3 + 2)
    assert taken(into) == [13.5, 7.5, 1.5, 9.0]
    assert taken(out_of) == [1]
    # too few to pop: nothing has changed
    into, out_of = stack_of(9.0), stack_of(1, 2)
    assert call([], *given(0, 3, handle(into), handle(out_of))) == ("the nodes", 6)
    assert (taken(into), taken(out_of)) == ([9.0], [2, 1])


def grown(count: int, most: int = -1) -> tuple[Any, Stack]:
    stack = stack_of(most=most)
    call = counted(stacks=(StackInput(F32, True),), body=PUSH).build(nodes, AsPython())  # type: ignore[arg-type]
    return call([], *given(0, count, handle(stack))), stack


def test_a_stacks_vector_grows_as_long_as_the_stack_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_ROOM", 2)
    sums = [0.5 + sum(range(1, n + 1)) for n in range(1, 12)]
    for count in (1, 2, 3, 8, 9, 11):
        found, stack = grown(count)
        assert found[0].item() == sums[count - 1]
        assert taken(stack) == sums[:count][::-1]
    # what the stack would not take in the end is the nodes' to say
    for most, fits in ((3, True), (2, False), (1, False)):
        found, stack = grown(3, most)
        assert isinstance(found[0], str) is not fits
        assert len(taken(stack)) == (3 if fits else 0)
    assert loops._GROWTH == 4


def test_stacks_that_the_loop_cannot_have() -> None:
    pushes, pops = StackInput(F32, True), StackInput(F32, False)
    call = counted(stacks=(pushes, pops), body=(*PUSH, *POP)).build(nodes, AsPython())  # type: ignore[arg-type]
    same, good = stack_of(1, 2), stack_of(1, 2)
    arrays = stack_of()
    arrays.push(np.zeros(2, np.float32))
    vector = np.empty(1, object)
    vector[0] = SimpleNamespace(resource=good)
    for first, second in (
        (handle(same), handle(same)),
        (handle(stack_of(dtype=dtypes.float64)), handle(good)),
        (handle(good), handle(stack_of(dtype=dtypes.int32))),
        (handle("no stack"), handle(good)),
        (handle(stack_of()), vector),
        (handle(stack_of()), handle(arrays)),
    ):
        assert call([], *given(0, 1, first, second)) == ("the nodes", 6)
    assert taken(good) == [2, 1]


def test_without_stacks_there_is_nothing_to_hold() -> None:
    held = loops._Held.of((), [])
    assert held is loops._NO_STACKS
    assert (held.vectors, held.grow(), held.settle()) == ([], True, True)
    assert tensor_arrays.MAX_ELEMENTS > 0
