"""The order in which tasks are taken as a session's master."""

from __future__ import annotations

from tenfold_core.master_jobs import master_order


def test_chief_master_worker_any() -> None:
    tasks = [("ps", 0), ("worker", 10), ("worker", 2), ("evaluator", 0), ("master", 0), ("chief", 0)]

    ordered = sorted(tasks, key=lambda task: master_order(*task))

    assert ordered == [("chief", 0), ("master", 0), ("worker", 2), ("worker", 10), ("evaluator", 0), ("ps", 0)]
