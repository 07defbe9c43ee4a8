"""Which node is ready when, step by step: what a Merge counts, when an iteration is over, what a frame hands on."""

from __future__ import annotations

from typing import Any

import pytest

from support.parts import PartBuilder
from support.programs import compiled
from tenfold_compiler.part.edges import edges_of
from tenfold_compiler.values import DEAD
from tenfold_core import dtypes, errors
from tenfold_services.worker.propagator import FrameState, Iteration, NodeState, Propagator, Token, _merged

I32, F32, BOOL = dtypes.int32, dtypes.float32, dtypes.bool_


# -- a Merge -----------------------------------------------------------------------------------------------------------


def merge(controls: int = 0) -> NodeState:
    return NodeState(1 + 2 * controls, 0, [None, None])


def feed(state: NodeState, *arrivals: tuple[int, Any] | tuple[int, Any, bool]) -> list[bool | None]:
    """What comes of each: (input or -1, value), and whether it is an Enter's."""
    return [_merged(state, 2, each[0], each[1], len(each) == 3 and each[2]) for each in arrivals]


def test_the_first_live_input_makes_a_merge_ready_and_later_ones_do_not() -> None:
    state = merge()

    assert feed(state, (1, "one"), (0, "zero")) == [False, None]
    assert (state.values, state.live_index) == (["one"], 1)


@pytest.mark.parametrize(("values", "found"), [((DEAD, DEAD), [None, True]), ((DEAD, "live"), [None, False])])
def test_a_merge_is_dead_once_all_its_inputs_are(values: tuple[Any, Any], found: list[bool | None]) -> None:
    assert feed(merge(), *enumerate(values)) == found


def test_a_live_merge_waits_for_its_control_inputs() -> None:
    assert feed(merge(2), (0, "live"), (-1, DEAD), (-1, DEAD)) == [None, None, False]
    assert feed(merge(2), (-1, DEAD), (-1, DEAD), (0, "live")) == [None, None, False]
    assert feed(merge(2), (-1, DEAD), (0, "live"), (1, "other"), (-1, DEAD)) == [None, None, None, False]


def test_a_dead_merge_waits_for_its_control_inputs_too() -> None:
    assert feed(merge(1), (0, DEAD), (1, DEAD), (-1, DEAD)) == [None, None, True]
    assert feed(merge(1), (-1, DEAD), (0, DEAD), (1, DEAD)) == [None, None, True]
    assert feed(merge(1), (0, DEAD), (-1, DEAD), (1, "live")) == [None, None, False]


def test_a_dead_enter_is_enough() -> None:
    assert feed(merge(), (0, DEAD, True)) == [True]
    assert feed(merge(1), (0, DEAD, True), (-1, DEAD)) == [None, True]
    assert feed(merge(), (0, "live", True)) == [False]


# -- iterations and frames ---------------------------------------------------------------------------------------------


def frame(pending_enters: int = 0, **iterations: Iteration) -> FrameState:
    made = FrameState("loop", 1, FrameState("", 0, None, 0, 1, 0), 0, 10, pending_enters)
    made.iterations = {int(number[1:]): iteration for number, iteration in iterations.items()}
    return made


def test_an_iteration_is_over_when_nothing_of_it_is_left() -> None:
    assert frame(_0=Iteration(0)).is_iteration_done(0)
    assert not frame(_0=Iteration(0)).is_iteration_done(1)
    assert not frame(_0=Iteration(0, outstanding=1)).is_iteration_done(0)
    assert not frame(_0=Iteration(0, child_frames=1)).is_iteration_done(0)
    assert not frame(1, _0=Iteration(0)).is_iteration_done(0)


def test_a_later_iteration_waits_for_the_one_before_and_for_no_enter() -> None:
    assert not frame(_0=Iteration(0), _1=Iteration(1)).is_iteration_done(1)
    assert frame(1, _1=Iteration(1)).is_iteration_done(1)
    assert frame(_0=Iteration(0), _2=Iteration(2)).is_iteration_done(2)


def test_a_frame_is_over_without_iterations_and_enters_to_come() -> None:
    assert frame().is_done
    assert not frame(1).is_done
    assert not frame(_3=Iteration(3)).is_done


# -- a part ------------------------------------------------------------------------------------------------------------


def loop(parallel: int = 10, turns: int = 1 << 40) -> Propagator:
    """`while i < limit`, whose nodes a test runs itself; `limit` is the same in each iteration."""
    part = PartBuilder()
    part.feed("start", I32)
    part.feed("limit", I32)
    shared = {"T": I32, "frame_name": b"loop", "parallel_iterations": parallel}
    part.node("Enter", "enter", ["start"], **shared)
    part.node("Enter", "same", ["limit"], is_constant=True, **shared)
    part.node("Merge", "merge", ["enter", "next"], T=I32, N=2)
    part.node("Less", "less", ["merge", "same"], T=I32)
    part.node("LoopCond", "cond", ["less"])
    part.node("Switch", "switch", ["merge", "cond"], T=I32)
    part.node("NextIteration", "next", ["switch:1"], T=I32)
    part.node("Exit", "exit", ["switch:0"], T=I32)
    graph = compiled(part).compiled.part
    return Propagator(graph, edges_of(graph), turns)


class Nodes:
    """Runs a loop's nodes as the executor would, in order; notes which ran."""

    def __init__(self, propagator: Propagator, limit: int) -> None:
        self.of, self.limit = propagator, limit
        self.ran: list[str] = []
        self.exits: list[Any] = []

    def run(self, token: Token) -> None:
        name, values = token.node.name, token.values
        self.ran.append(f"{name}:{token.iteration.number}{'*' if token.is_dead else ''}")
        if token.is_dead:
            outputs: Any = (DEAD,) * len(token.node.output_types)
        elif token.node.op == "_Recv":
            outputs = (0 if name == "start" else self.limit,)
        elif name == "merge":
            outputs = (values[0], token.live_index)
        elif name == "less":
            outputs = (values[0] < values[1],)
        elif name == "switch":
            outputs = (DEAD, values[0]) if values[1] else (values[0], DEAD)
        elif name == "next":
            outputs = (values[0],)
        else:
            outputs = (values[0],) if values else ()
        if name == "exit":
            self.exits.append(outputs[0])
        if name == "next" and not token.is_dead:
            outputs = (values[0] + 1,)
        self.of.propagate(token, outputs)

    def all(self) -> Nodes:
        while self.of.queue:
            self.run(self.of.queue.popleft())
        return self


@pytest.mark.parametrize("parallel", [1, 2, 10])
@pytest.mark.parametrize("limit", [0, 1, 5])
def test_a_loop_leaves_its_result_and_nothing_else(limit: int, parallel: int) -> None:
    nodes = Nodes(loop(parallel), limit).all()

    assert [value for value in nodes.exits if value is not DEAD] == [limit]
    assert not nodes.of._frames
    assert [name for name in nodes.ran if name.startswith("merge")] == [f"merge:{turn}" for turn in range(limit + 1)]
    assert nodes.ran.count("same:0") == nodes.ran.count("enter:0") == 1
    assert sum(name.startswith("next") and not name.endswith("*") for name in nodes.ran) == limit


@pytest.mark.parametrize(("turns", "limit", "fails"), [(3, 3, False), (2, 3, True), (0, 0, False), (0, 1, True)])
def test_a_loop_takes_so_many_turns_and_no_more(turns: int, limit: int, fails: bool) -> None:
    nodes = Nodes(loop(turns=turns), limit)
    if not fails:
        assert nodes.all().exits[-1] == limit
        return
    with pytest.raises(errors.ResourceExhaustedError, match=rf"(?s)taken {turns} turns.*\{{\{{node next\}}\}}"):
        nodes.all()


def test_iterations_beyond_the_bound_are_held_back_until_one_is_over() -> None:
    propagator = loop(parallel=2)
    nodes = Nodes(propagator, 9)
    held: list[Token] = []

    def all_but_exits() -> None:
        while propagator.queue:
            token = propagator.queue.popleft()
            if token.node.name == "exit":
                held.append(token)  # it keeps its iteration open
            else:
                nodes.run(token)

    all_but_exits()
    (frame_state,) = propagator._frames.values()
    assert list(frame_state.iterations) == [0, 1]
    assert len(frame_state.held_back) == 1

    nodes.run(held.pop(0))
    all_but_exits()

    assert list(frame_state.iterations) == [1, 2]
    assert frame_state.last == 2


def test_a_next_iteration_outside_of_a_loop_is_refused() -> None:
    part = PartBuilder()
    x = part.feed("x", I32)
    part.node("NextIteration", "next", ["x"], T=I32)
    graph = compiled(part).compiled.part
    propagator = Propagator(graph, edges_of(graph))
    token = propagator.queue.popleft()
    propagator.propagate(token, (x,))
    assert [each.node.name for each in propagator.queue] == ["next"]

    with pytest.raises(errors.InvalidArgumentError, match=r"(?s)outside of a loop.*\{\{node next\}\}"):
        propagator.propagate(propagator.queue.popleft(), (1,))


def test_a_node_waits_for_all_its_inputs_and_a_dead_one_makes_it_dead() -> None:
    part = PartBuilder()
    for name in "ab":
        part.feed(name)
    part.node("Add", "sum", ["a", "b"], T=F32)
    part.fetch("sum")
    part.node("NoOp", "after", ["^sum"])
    part.node("ControlTrigger", "trigger", ["^sum", "^a"])
    graph = compiled(part).compiled.part
    for values, is_dead in ((("A", "B"), False), (("A", DEAD), True), ((DEAD, "B"), True)):
        propagator = Propagator(graph, edges_of(graph))
        first, second = propagator.queue.popleft(), propagator.queue.popleft()
        assert (first.node.name, second.node.name) == ("a", "b")
        propagator.propagate(first, values[:1])
        assert not propagator.queue
        propagator.propagate(second, values[1:])
        total = propagator.queue.popleft()
        assert (total.node.name, total.is_dead) == ("sum", is_dead)
        if not is_dead:
            assert total.values == ["A", "B"]

        propagator.propagate(total, (DEAD if is_dead else "C",))

        (_, sent), *others = ((token.node.op, token.is_dead) for token in propagator.queue)
        assert sent == is_dead
        assert others == [("NoOp", is_dead), ("ControlTrigger", False)]


def test_the_frames_of_one_loop_in_two_iterations_have_names_of_their_own() -> None:
    propagator = loop()
    nodes = Nodes(propagator, 1)
    while not propagator._frames:
        nodes.run(propagator.queue.popleft())

    ((_, made),) = propagator._frames.items()

    assert (made.name, made.path, made.parent_iteration, made.parallel_iterations) == ("loop", ";0;loop", 0, 10)
    assert made.id != 0
    assert made.pending_enters == 1
