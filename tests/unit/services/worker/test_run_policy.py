"""Where a stretch computes and which runs are timed. The rule for shapes and values is in test_inline_rule.py."""

from __future__ import annotations

import pytest

from support.parts import PartBuilder
from support.programs import compiled, sums
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources import state
from tenfold_services.worker.run_policy import (
    RunPolicy,
    held,
    is_callable,
    waits_for_kernels_only,
    waits_for_links_only,
)

LIMIT = 1_000_000
OTHER = "/job:ps/replica:0/task:0/device:CPU:0"


def policy(*, nanoseconds: int | None = None, sized_by_values: bool = False, loops: bool = False) -> RunPolicy:
    """One that has seen a short run with the shapes 1."""
    found = RunPolicy(LIMIT, sized_by_values, loops)
    if nanoseconds is not None:
        found.note(nanoseconds, (1,))
    return found


def test_the_event_loop_takes_what_is_known_as_short() -> None:
    assert not policy().is_short(1)
    assert policy(nanoseconds=5000).is_short(1)
    assert not policy(nanoseconds=5000).is_short(2)
    assert not policy(nanoseconds=LIMIT).is_short(1)
    assert not policy(nanoseconds=5000, sized_by_values=True).is_short(1)
    shortest = RunPolicy(1, sized_by_values=False, loops=False)
    shortest.note(0, (1,))
    assert shortest.is_short(1)


def test_a_run_that_has_computed_for_long_leaves_the_event_loop() -> None:
    assert policy(nanoseconds=5000).is_short(1, LIMIT - 1)
    assert not policy(nanoseconds=5000).is_short(1, LIMIT)


def test_a_tiny_program_is_timed_now_and_then() -> None:
    assert [policy().times_next() for _ in range(2)] == [True, True]
    tiny, short = policy(nanoseconds=5000), policy(nanoseconds=LIMIT // 2)
    assert [tiny.times_next() for _ in range(16)] == ([False] * 7 + [True]) * 2
    assert all(short.times_next() for _ in range(16))


def test_a_loop_is_always_timed() -> None:
    loop = policy(nanoseconds=5000, loops=True)
    assert all(loop.times_next() for _ in range(16))


def test_a_program_that_becomes_long_leaves_the_event_loop_at_the_next_timed_run() -> None:
    found = policy(nanoseconds=5000)
    found.note(LIMIT * 4, (1,))
    assert not found.was_short()
    for _ in range(20):
        found.note(5000, (1,))
    assert found.is_short(1)


def test_a_run_near_its_deadline_makes_the_next_one_watched() -> None:
    found = policy(nanoseconds=4_000_000)
    assert found.is_far_from(0.5)
    assert not found.is_far_from(0.3)
    found.forget_time()
    assert not found.is_far_from(0.5)


def test_which_programs_are_one_call() -> None:
    receives, sends = PartBuilder(), PartBuilder()
    receives.recv("x", dtypes.float32, OTHER, 7)
    receives.fetch("x")
    sends.const("c", 1.0)
    sends.send("c", dtypes.float32, OTHER, "edge")

    assert is_callable(sums().program.compiled)
    assert not is_callable(compiled(receives).compiled)
    assert not is_callable(compiled(sends).compiled)


def test_which_programs_wait_for_links_only() -> None:
    receives, blocks = PartBuilder(), PartBuilder()
    key = receives.recv("x", dtypes.float32, OTHER, 7)
    receives.fetch("x")
    blocks.node("FIFOQueueV2", "queue", component_types=[dtypes.float32], shapes=[TensorShape([])])
    blocks.node("QueueDequeueV2", "element", ["queue"], component_types=[dtypes.float32])
    blocks.fetch("element")

    assert waits_for_links_only(compiled(receives).compiled, {key})
    assert not waits_for_links_only(compiled(receives).compiled, ())
    assert not waits_for_links_only(compiled(blocks).compiled, ())


@pytest.mark.parametrize(("nanoseconds", "is_short"), [(LIMIT - 1, True), (LIMIT, False)])
def test_a_run_of_the_limit_is_not_short(nanoseconds: int, is_short: bool) -> None:
    found = policy(nanoseconds=nanoseconds)
    assert found.was_short() == found.is_short(1) == is_short
    # the shapes of a run that was long are not known as short, even once the program is
    found.nanoseconds = 1.0
    assert found.is_short(1) == is_short


def test_sizes_by_values_are_never_known_as_short() -> None:
    found = policy(nanoseconds=1, sized_by_values=True)
    assert not found.was_short()
    assert not found.is_short(1)
    assert not policy().was_short()


def test_a_time_counts_a_quarter() -> None:
    found = policy(nanoseconds=1000)
    assert found.nanoseconds == 1000
    found.note(2000)
    assert found.nanoseconds == 1250


def test_all_shapes_of_a_short_run_are_known_and_no_more_than_a_thousand() -> None:
    found = policy()
    found.note(1, (3, 4))
    assert found.is_short(3)
    assert found.is_short(4)
    found.note(1, range(100, 100 + 1022))
    found.note(1, (5,))
    assert found.is_short(3)  # 1,024 were known, which is no more than may be
    assert found.is_short(5)
    found.note(1, (6,))
    assert not found.is_short(3)
    assert found.is_short(6)


def test_shapes_are_forgotten_when_variables_have_others(monkeypatch: pytest.MonkeyPatch) -> None:
    found = policy(nanoseconds=1)
    now = state.reshapes()
    monkeypatch.setattr(state, "reshapes", lambda: now + 1)
    assert not found.is_short(1)
    found.note(1, (2,))
    assert found.is_short(2)
    assert not found.is_short(1)


def test_some_of_what_a_short_run_got_is_short_in_any_order() -> None:
    found = policy()
    found.note(1, (3,), [1, 2])
    usual = found.usual
    assert usual == {1, 2}
    assert found.is_short(77, 0, usual)
    assert not found.is_short(77, 0, None)
    assert not found.is_short(77, LIMIT, usual)
    found.note(1)
    assert found.usual is usual

    found.note(LIMIT, (4,), [1, 9])
    assert found.usual is usual
    found.note(1, (4,), [1, 9])
    found.nanoseconds = 1.0
    assert found.usual == {1, 9}
    # what began with the former ones
    assert not found.is_short(77, 0, usual)
    assert found.is_short(3, 0, usual)


def test_what_is_usual_is_forgotten_when_variables_have_others(monkeypatch: pytest.MonkeyPatch) -> None:
    found = policy()
    found.note(1, (3,), [1, 2])
    usual, now = found.usual, state.reshapes()
    monkeypatch.setattr(state, "reshapes", lambda: now + 1)
    assert not found.is_short(3, 0, usual)
    found.note(1)
    assert found.usual is None
    assert not found.is_short(3, 0, usual)


def test_of_many_short_turns_the_longest_counts() -> None:
    assert held(5_000_000, 101, 70_000) == 70_000
    assert held(5_000_000, 100, 70_000) == 5_000_000
    assert held(60_000, 1, 60_000) == held(40_000, 1, 40_000) + 20_000 == 60_000


def test_a_program_at_the_border_of_tiny_is_timed_now_and_then() -> None:
    assert not policy(nanoseconds=100_000).times_next()
    assert policy(nanoseconds=100_001).times_next()


def test_what_was_not_timed_is_not_far_from_its_deadline() -> None:
    assert not policy().is_far_from(1e9)
    assert policy(nanoseconds=10_000_000).is_far_from(1.0)
    assert not policy(nanoseconds=10_000_001).is_far_from(1.0)


def test_which_programs_wait_for_kernels_only() -> None:
    receives, sends = PartBuilder(), PartBuilder()
    receives.recv("x", dtypes.float32, OTHER, 7)
    receives.fetch("x")
    sends.const("c", 1.0)
    sends.send("c", dtypes.float32, OTHER, "edge")

    assert waits_for_kernels_only(sums().program.compiled)
    assert not waits_for_kernels_only(compiled(receives).compiled)
    assert not waits_for_kernels_only(compiled(sends).compiled)
