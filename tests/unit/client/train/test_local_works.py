"""The works that a worker took come again after a restart, before others; what no manager of them accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.train.local_works import LocalWorkMgr
from tenfold.train.work_queue import WorkQueue

if TYPE_CHECKING:
    from pathlib import Path

WORKS = [f"t{i % 2}?start={4 * i}&end={4 * i + 4}" for i in range(5)]


def run(folder: Path, works: list[str], most: int, prefix: str | None = None, index: int = 0) -> tuple[Any, list[str]]:
    """What a worker takes, and what it began with."""
    with tf.Graph().as_default():
        kept = LocalWorkMgr("worker", index, str(folder))
        take = WorkQueue(works, shuffle=False, prefix=prefix, local_work_mgr=kept).take()
        found = []
        with tf.train.MonitoredTrainingSession(hooks=[kept.hook()]) as session:
            for _ in range(most):
                try:
                    found.append(session.run(take).decode())
                except tf.errors.OutOfRangeError:
                    break
        return found, kept.works


@pytest.mark.parametrize("prefix", [None, "dir/"])
def test_a_worker_goes_on_with_what_it_had_taken(tmp_path: Path, prefix: str | None) -> None:
    def named(works: list[str]) -> list[str]:
        return [(prefix or "") + work for work in works]

    assert run(tmp_path, WORKS, 2, prefix) == (named(WORKS[:2]), [])
    assert run(tmp_path, WORKS[2:], 100, prefix) == (named(WORKS), WORKS[:2])
    assert run(tmp_path, WORKS[:1], 1, prefix, index=1) == (named(WORKS[:1]), []), "another worker's are its own"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["worker_0", "worker_1"]


def test_lines_that_are_no_slices_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "worker_0"
    folder.mkdir()
    (folder / "a").write_text("t?start=8&end=9\nsomething else\n\n")
    (folder / "b").write_text("t?start=5&end=8\n")

    assert LocalWorkMgr("worker", 0, str(tmp_path)).works == ["t?start=5&end=8", "t?start=8&end=9"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("ps", 0, "."), "job_name must be 'worker' or 'chief', not 'ps'"),
        (("worker", -1, "."), "task_index must not be negative: -1"),
        (("worker", 0, "nowhere"), "restore_works_dir is no folder: nowhere"),
    ],
)
def test_what_is_refused(given: tuple[Any, ...], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        LocalWorkMgr(*given)
