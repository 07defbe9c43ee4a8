"""The error of a step whose loops take too many turns."""

from __future__ import annotations

import pytest

from tenfold_core import errors
from tenfold_kernels import loop_turns


def test_the_error_says_how_many_and_what_allows_more() -> None:
    text = r"^The loops of this step have taken 7 turns on this task, and go on.*\b7\b.*TENFOLD_TASK_LOOP_TURNS"
    with pytest.raises(errors.ResourceExhaustedError, match=text):
        loop_turns.end(7)
    assert str(loop_turns.too_many_turns(7)) == str(loop_turns.too_many_turns(7))
    assert loop_turns.MOST_TURNS == 2**40
