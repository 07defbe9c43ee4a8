"""What lines of a part with branches read: whether a node from outside of a loop has run wherever the loop runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_compiler.part.guards import ALWAYS, Guard, Literal
from tenfold_compiler.part.loop_tree import Loop
from tenfold_compiler.write.flow_reads import FlowReads, _is_in

OUTER = Loop("outer", ())
INNER = Loop("inner", (OUTER,))
OTHER = Loop("other", ())
DEEP = Loop("deep", (OTHER,))
P: Guard = frozenset((Literal((90, -4), 1, 2),))
Q: Guard = frozenset((Literal((91, -4), 0, 2),))
#: A node for each case: its frame, and its guard there.
NODES: list[tuple[Loop | None, Guard]] = [(None, P | Q), (None, P), (None, ALWAYS), (OUTER, P), (OTHER, Q), (DEEP, P)]


@pytest.mark.parametrize(
    ("loop", "outer", "inner", "there"),
    [
        (OUTER, ALWAYS, ALWAYS, [True, False, True, None, False, False]),
        (OUTER, P, ALWAYS, [True, True, True, None, False, False]),
        (OUTER, P | Q, ALWAYS, [True, True, True, None, True, True]),
        # of one that is inside another, what is there around that one or within it
        (INNER, ALWAYS, P, [True, False, True, True, False, False]),
        (INNER, P | Q, ALWAYS, [True, True, True, False, True, True]),
    ],
)
def test_what_is_there_wherever_a_loop_runs(loop: Loop, outer: Guard, inner: Guard, there: list[bool | None]) -> None:
    """Node 0 is a constant; the others are looked at by their guards, or by that of the loop that they left."""
    reads: Any = SimpleNamespace(
        program=SimpleNamespace(constants={0: ()}),
        flow=SimpleNamespace(tree=SimpleNamespace(frame_of=[frame for frame, _ in NODES])),
        guards=SimpleNamespace(
            of=[guard for _, guard in NODES], of_loop={OUTER: outer, INNER: inner, OTHER: P | Q, DEEP: P}
        ),
    )
    for source, found in enumerate(there):
        if found is not None:
            assert FlowReads.is_there(reads, loop, source) is found, source


def test_which_frames_are_in_a_loop() -> None:
    frames = (None, OUTER, INNER, OTHER, DEEP)
    assert [_is_in(OUTER, frame) for frame in frames] == [False, True, True, False, False]
    assert [_is_in(INNER, frame) for frame in frames] == [False, False, True, False, False]
