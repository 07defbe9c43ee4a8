"""A compare-and-set is tried a number of times, and then given up with an error that says so."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tenfold_control_api import attempts as module
from tenfold_control_api.attempts import ATTEMPTS, attempts
from tenfold_control_api.problems import ApiError


@pytest.mark.usefixtures("impatient")
def test_it_ends() -> None:
    tries = attempts("run 'r'")

    counted = [next(tries) for _ in range(ATTEMPTS)]
    with pytest.raises(ApiError, match="run 'r' is being changed by many at once") as given_up:
        next(tries)

    assert counted == list(range(1, ATTEMPTS + 1))
    assert (given_up.value.kind, given_up.value.code) == ("too-many-changes", "ABORTED")


def test_it_goes_on_for_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    tries = attempts("run 'r'")

    counted = [next(tries) for _ in range(ATTEMPTS + 5)]
    now[0] += module.PATIENCE
    with pytest.raises(ApiError, match="many at once"):
        next(tries)

    assert counted == list(range(1, ATTEMPTS + 6))
