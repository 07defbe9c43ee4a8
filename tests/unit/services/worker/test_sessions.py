"""Lives of masters: a former one is refused, whatever comes in between, and no peer fills the memory."""

from __future__ import annotations

import pytest

from tenfold_core import errors
from tenfold_services.worker import sessions
from tenfold_services.worker.sessions import MasterLives

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1"


def test_a_former_life_is_refused_by_name_and_the_newest_is_not() -> None:
    lives = MasterLives(PS)
    for incarnation in (1, 2, -3):
        lives.check(WORKER, incarnation)
        lives.met(WORKER, incarnation)

    for former in (1, 2):
        with pytest.raises(errors.FailedPreconditionError, match=f"{WORKER} was replaced: {PS} .* fffffffffffffffd"):
            lives.check(WORKER, former)
    lives.check(WORKER, -3)
    lives.check("/job:worker/replica:0/task:2", 1)


def test_a_life_that_opens_several_sessions_stays_the_newest() -> None:
    lives = MasterLives(PS)
    lives.met(WORKER, 1)
    lives.met(WORKER, 1)

    lives.check(WORKER, 1)


def test_masters_without_a_name_are_not_told_apart() -> None:
    lives = MasterLives(PS)
    lives.met("", 1)
    lives.met("", 2)

    lives.check("", 1)


def test_what_is_remembered_is_bounded_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST", 3)
    lives = MasterLives(PS)
    for incarnation in range(6):
        lives.met(WORKER, incarnation)
    for index in range(6):
        lives.met(f"/job:guest/task:{index}", 1)

    assert len(lives._newest) == len(lives._former) == 3
    lives.check(WORKER, 1)
    with pytest.raises(errors.FailedPreconditionError):
        lives.check(WORKER, 2)
