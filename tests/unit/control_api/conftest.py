"""What tests of the control service's parts share."""

from __future__ import annotations

import pytest

from tenfold_control_api import attempts


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compare-and-set is tried no longer than the least number of times."""
    monkeypatch.setattr(attempts, "PATIENCE", 0.0)
