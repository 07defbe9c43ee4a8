"""Threads that work beside steps: how long a turn of the interpreter is meanwhile, and afterwards."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tenfold_kernels.short_turns import TURN_S, short_turns

if TYPE_CHECKING:
    from collections.abc import Iterator

USUAL_S = 0.005


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(USUAL_S)
    yield
    sys.setswitchinterval(before)


def test_turns_are_short_until_the_last_has_left() -> None:
    found = []
    with short_turns():
        found.append(sys.getswitchinterval())
        with short_turns():
            found.append(sys.getswitchinterval())
        found.append(sys.getswitchinterval())
    found.append(sys.getswitchinterval())

    assert found == pytest.approx([TURN_S, TURN_S, TURN_S, USUAL_S])


def test_they_end_where_the_work_fails() -> None:
    with pytest.raises(ValueError, match="no"), short_turns():
        raise ValueError("no")

    assert sys.getswitchinterval() == pytest.approx(USUAL_S)


def test_what_somebody_sets_meanwhile_stays() -> None:
    with short_turns():
        sys.setswitchinterval(0.02)

    assert sys.getswitchinterval() == pytest.approx(0.02)


def test_shorter_ones_stay() -> None:
    sys.setswitchinterval(TURN_S / 5)
    with short_turns():
        meanwhile = sys.getswitchinterval()

    assert [meanwhile, sys.getswitchinterval()] == pytest.approx([TURN_S / 5] * 2)
