"""benchmarks/soak_faults.py for a moment, one fault of every kind: training goes on, and its sums are right."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.timeout(500)
@pytest.mark.long
def test_training_survives_one_fault_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import soak_faults

    kinds = soak_faults.KINDS
    found = soak_faults.run(0.0, 1, kinds, tmp_path, 2.0, 0.5, each_once=True)

    assert found.violations == []
    assert found.faults == dict.fromkeys(kinds, 1)
    assert len(found.recovery) == len(kinds)
    assert "violations: 0" in str(found)
