"""The curves of a run, each of one task. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.master_jobs import master_order

if TYPE_CHECKING:
    from tenfold.control import RunProgress
    from tenfold.control.run_answers import Curve


def leading_curves(progress: RunProgress) -> dict[str, Curve]:
    """By name, of the task that leads among those that have it: the chief, else the first worker."""
    found: dict[str, Curve] = {}
    for task in sorted(progress.tasks, key=lambda each: master_order(each.job, each.index), reverse=True):
        found.update(task.curves)
    return found
