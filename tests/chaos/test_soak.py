"""benchmarks/soak_faults.py for a moment, one fault of every kind: training goes on, and its sums are right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import soak_faults
from soak_figures import ALLOWED, Found, Life


@pytest.mark.timeout(500)
@pytest.mark.long
def test_training_survives_one_fault_of_every_kind(tmp_path: Path) -> None:
    kinds = soak_faults.KINDS
    found = soak_faults.run(0.0, 1, kinds, tmp_path, 2.0, 0.5, each_once=True)

    assert found.violations == []
    assert found.faults == dict.fromkeys(kinds, 1)
    assert len(found.recovery) == len(kinds)
    assert "violations: 0" in str(found)


def a_life(*descriptors: float) -> Life:
    """One look every twenty seconds, after two of warm-up."""
    held = dict.fromkeys(ALLOWED, 10.0)
    looks = [(20.0 * number, {**held, "descriptors": each}) for number, each in enumerate((1.0, 5.0, *descriptors))]
    return Life("ps/0", 1, looks)


def test_what_goes_on_growing_is_a_leak_and_what_is_made_once_is_none() -> None:
    leak = a_life(*range(10, 26))
    once = a_life(*[10.0] * 8, *[17.0] * 8)
    young = a_life(*range(10, 15))

    assert leak.leaks() == ["ps/0: descriptors grew by 12.0, allowed 4"]
    assert (once.leaks(), once.growth()["descriptors"]) == ([], 7.0)
    assert (young.leaks(), young.growth()) == ([], {})


def test_steps_that_slow_down_are_told() -> None:
    steady, slow = Found(0), Found(0)
    steady.speeds = [(float(at), 100.0) for at in range(12)]
    slow.speeds = [(float(at), 100.0 if at < 6 else 40.0) for at in range(12)]

    assert steady.slowing() == []
    assert slow.slowing() == ["steps slow down: 100 a second at first, 40 at last"]
