"""Which task's master serves a session that names none: the first ready one of chief, master, worker, any."""

from __future__ import annotations

MASTER_JOBS = ("chief", "master", "worker")


def master_order(job: str, index: int) -> tuple[int, str, int]:
    """Sorts tasks by that preference."""
    rank = MASTER_JOBS.index(job) if job in MASTER_JOBS else len(MASTER_JOBS)
    return rank, job, index
