"""Training goes on when tasks are killed: kill_training.py with few kills, and with twenty (`make test-long`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from process import kill_training

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "story",
    [
        "any",
        pytest.param("ps", marks=pytest.mark.thorough),
        *(pytest.param(each, marks=pytest.mark.long) for each in ("saving", "restoring")),
    ],
)
def test_training_survives(story: str, tmp_path: Path) -> None:
    report = kill_training.run(story, 2, 3, str(tmp_path), steps_per_kill=150)

    assert report.kills == 2


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("story", list(kill_training.STORIES))
def test_training_survives_twenty_kills(story: str, tmp_path: Path) -> None:
    report = kill_training.run(story, 20, 0, str(tmp_path))

    assert report.kills == 20
