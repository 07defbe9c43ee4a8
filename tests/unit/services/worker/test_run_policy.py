"""Where a stretch computes and which runs are timed. The rule for shapes and values is in test_inline_rule.py."""

from __future__ import annotations

from support.parts import PartBuilder
from support.programs import compiled, sums
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_services.worker.run_policy import (
    CALLER,
    EVENT_LOOP,
    FUNCTION_CALLER,
    RunPolicy,
    is_callable,
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
    assert not policy().stays(EVENT_LOOP, 1, 0, 0)
    assert policy(nanoseconds=5000).stays(EVENT_LOOP, 1, 0, 0)
    assert not policy(nanoseconds=5000).stays(EVENT_LOOP, 2, 0, 0)
    assert not policy(nanoseconds=LIMIT).stays(EVENT_LOOP, 1, 0, 0)
    assert not policy(nanoseconds=5000, sized_by_values=True).stays(EVENT_LOOP, 1, 0, 0)


def test_a_run_that_has_computed_for_long_leaves_the_event_loop() -> None:
    assert policy(nanoseconds=5000).stays(EVENT_LOOP, 1, LIMIT - 1, 3)
    assert not policy(nanoseconds=5000).stays(EVENT_LOOP, 1, LIMIT, 3)


def test_a_callers_thread_takes_everything_a_functions_caller_some_stretches() -> None:
    assert policy().stays(CALLER, 0, 0, 10**6)
    assert policy().stays(FUNCTION_CALLER, 0, 0, 7)
    assert not policy().stays(FUNCTION_CALLER, 0, 0, 8)


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
    found.note_deadline(0.004, 0.5)
    assert found.is_far_from(0.5)
    found.note_deadline(0.006, 0.5)
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
