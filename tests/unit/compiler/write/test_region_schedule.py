"""In which order regions run, and what they wait for, start and ask for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tenfold_compiler.part.regions import Region
from tenfold_compiler.write.region_schedule import AwaitedNode, Wanted, schedule


def node(index: int) -> Any:
    return SimpleNamespace(index=index)


def test_waits_successors_and_what_is_received() -> None:
    early, late, waited = node(0), node(1), node(2)
    regions = [
        Region(0, recvs=[early]),
        Region(1, starts=[waited], asks=[late]),
        Region(2, after={0, 1}, recvs=[late], awaited=[waited]),
    ]
    region_of = [0, 2, 2]
    generated: Any = SimpleNamespace(slot_of={0: 5, 1: 6}, awaited_slots={2: (7, (8, 9))})
    made = schedule(regions, region_of, generated, {0: "early", 1: "late"})
    assert made.waits == (1, 0, 4)
    assert made.first == (1,)
    assert made.successors == ((2,), (2,), ())
    assert made.wanted == (Wanted((5, 0), "early"),)
    assert made.starts == ((), (AwaitedNode(waited, 7, (8, 9), 2),), ())
    assert made.asks == ((), (Wanted((6, 2), "late"),), ())


def test_regions_that_start_and_ask_for_nothing() -> None:
    generated: Any = SimpleNamespace(slot_of={}, awaited_slots={})
    made = schedule([Region(0), Region(1, after={0})], [0, 1], generated, {})
    assert made.starts == made.asks == made.wanted == ()
    assert made.waits == (0, 1)
    assert made.first == (0,)
    assert made.successors == ((1,), ())
