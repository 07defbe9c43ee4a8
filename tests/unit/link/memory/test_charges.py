"""What arenas may take together."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace

import pytest

from tenfold_core import memory_limits
from tenfold_link.memory import charges as charges_module
from tenfold_link.memory.arena import Arena
from tenfold_link.memory.charges import Charges

MB = 1 << 20


def test_more_than_there_may_be_is_not_taken() -> None:
    charges = Charges(10)
    assert charges.take(7)
    assert not charges.take(4)
    charges.give(5)
    assert charges.take(4)
    assert charges.taken == 6


@pytest.mark.parametrize(("memory", "most"), [(0, 1 << 40), (1, 1 << 40), (2, 1), (7, 3), (64 * MB, 32 * MB)])
def test_by_default_half_of_the_memory(memory: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limits, "memory", lambda: memory)
    assert Charges().most == most
    assert Charges(5).most == 5


@pytest.mark.parametrize(("freed", "fits"), [(0, False), (3, False), (4, True)])
def test_what_closed_links_have_left_is_looked_through_before_no_is_said(
    freed: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    charges = Charges(10)
    swept: list[int] = []

    def sweep() -> None:
        swept.append(charges.taken)
        charges.give(freed)

    monkeypatch.setattr(charges_module, "REMAINS", SimpleNamespace(sweep=sweep))
    assert charges.take(10)
    assert swept == []
    assert charges.take(4) is fits
    assert swept == [10]
    assert charges.taken == 10 - freed + 4 * fits


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memfd")
def test_arenas_share_what_there_may_be() -> None:
    """Each had a bound of its own, and there was none of how many there are."""
    charges = Charges(6 * MB)
    first, second = Arena(16 * MB, 0, charges=charges), Arena(16 * MB, 0, charges=charges)
    try:
        first.reserve(4 * MB)
        second.reserve(4 * MB)
        assert first.resident + second.resident == charges.taken <= 6 * MB
        grown = threading.Event()
        second.on_grown = grown.set
        assert second.allocate(8 * MB) is None
        assert grown.wait(20)
        assert second.allocate(8 * MB) is None
        first.close()
        assert charges.taken == second.resident
    finally:
        first.close()
        second.close()
    assert charges.taken == 0
