"""All passes in a row, and what checks a part after each."""

from __future__ import annotations

import pytest

from support.optimized import Optimized
from support.parts import PartBuilder
from support.verify_part import verify
from tenfold_core import dtypes, errors

F32, I32 = dtypes.float32, dtypes.int32


def test_a_part_with_branches_is_left_alone() -> None:
    part = PartBuilder()
    part.const("x", 1.0)
    part.const("p", True)
    part.node("Switch", "switch", ["x", "p"], T=F32)
    part.node("Neg", "neg", ["switch:1"], T=F32)
    part.fetch("neg")
    assert not any(Optimized(part).counts.values())


def test_a_part_in_which_there_is_nothing_to_do_is_checked_after_each_pass_and_says_so() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "y", ["x"], T=F32)
    part.fetch("y")
    made = Optimized(part)
    assert len(made.counts) == 9
    assert set(made.counts.values()) == {0}
    assert made.verified == list(made.counts)


def test_verify_names_the_pass_and_the_node() -> None:
    part = PartBuilder()
    part.feed("x")
    part.node("Neg", "y", ["x"], T=F32)
    part.fetch("y")
    broken = Optimized(part)
    y = next(n for n in broken.part.nodes if n.name == "y")
    y.inputs = [(y.index + 1, 0)]
    with pytest.raises(errors.InternalError, match=r"After breaking, node 'y' \(Neg\) stands before"):
        verify(broken.part, broken.constants, after="breaking")
