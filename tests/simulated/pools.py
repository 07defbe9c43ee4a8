"""The pools of a simulated task: services/worker/step_pool.py with its queues and bounds, on the world's time.

What would be computed by a thread is computed at once, between two turns of the process, and has taken some time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulated.inside import the_world
from tenfold_services.worker.pools import FilePool, Pools
from tenfold_services.worker.step_pool import GraphPool, StepPool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_services.limits import Limits
    from tenfold_services.worker.step_pool import Job


class _Simulated(StepPool):
    """Takes jobs as threads would, one after the other."""

    def __init__(self, task: str, limits: Limits) -> None:
        super().__init__(task, limits)
        self._world = the_world()
        self._process = self._world.network.process_of_this_turn()

    def _provide(self) -> None:
        while (job := self._take()) is not None:
            took = self._world.chance.choice((0.0001, 0.0005, 0.003, 0.02))
            self._process.loop.call_later(took, self._finish, job)

    def _finish(self, job: Job) -> None:
        self._do(job)
        with self._lock:
            self._provide()


class SimulatedStepPool(_Simulated):
    """For programs."""


class SimulatedGraphPool(_Simulated, GraphPool):
    """For graphs."""


class SimulatedFilePool(_Simulated, FilePool):
    """For files."""


def simulated_pools(task: str, limits: Limits) -> Pools:
    """What a TaskServer takes as its pools."""
    return Pools(SimulatedStepPool(task, limits), SimulatedGraphPool(task, limits), SimulatedFilePool(task, limits))


def nothing_runs(pools: Iterable[StepPool]) -> bool:
    """Whether no pool has queued or running jobs."""
    return all(not pool._running and not pool._waiting for pool in pools)
