"""Which tasks of the cluster have finished, as far as this task knows. Pure: no I/O, no clock.

A task that stops in order tells the others (server.py, over rpc/peer_service.py); a master that misses a task asks
those that answer (master/device_finder.py); a control service knows of those that registered with it. A killed task has
not finished: it may come back, and is waited for. One that finished and is started again says hello to the others.
TensorFlow has nothing of the kind: there CreateSession waits for ever for a worker that is done, and a parameter server
never ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from .interfaces import TaskName

#: Jobs whose end is the end of the training.
WORKER_JOBS = frozenset({"chief", "master", "worker"})
#: One of these, the first that the cluster has, decides when a worker that only serves may end.
_LEADERS = ("chief", "master", "worker")


class FinishedTasks:
    """Task → the incarnation that finished. Holds tasks of the cluster only, so it is as bounded as that is."""

    def __init__(self, task: TaskName, cluster: Callable[[], Mapping[str, Iterable[int]]]) -> None:
        """`task` is this one; `cluster()` says which tasks there are, job → indices."""
        self._task, self._cluster = task, cluster
        self._incarnations: dict[TaskName, int] = {}
        #: The incarnation of a task that was last heard itself. What is told of another one is old news.
        self._heard: dict[TaskName, int] = {}
        #: What a control service says, as a whole and anew with each of its specs.
        self._declared: frozenset[TaskName] = frozenset()
        #: Called after every change.
        self.on_change: Callable[[], None] = lambda: None

    def __contains__(self, task: TaskName) -> bool:
        return task in self._incarnations or task in self._declared

    @property
    def known(self) -> Mapping[TaskName, int]:
        """Not to be changed."""
        return self._incarnations

    def note(self, finished: Mapping[TaskName, int]) -> None:
        """Adds what a peer says. Strangers to the cluster, this task itself and former lives are left out."""
        there = {_name(job, index) for job, tasks in self._cluster().items() for index in tasks}
        news = {
            task: incarnation
            for task, incarnation in finished.items()
            if task in there
            and task != self._task
            and self._incarnations.get(task) != incarnation
            and self._heard.get(task, incarnation) == incarnation
        }
        if news:
            self._incarnations.update(news)
            self.on_change()

    def declare(self, tasks: Collection[TaskName]) -> None:
        """Takes over which tasks have finished by the word of a control service, in place of what it said before."""
        declared = frozenset(tasks) - {self._task}
        if declared != self._declared:
            self._declared = declared
            self.on_change()

    def answered(self, task: TaskName, incarnation: int) -> None:
        """Takes note of a task that was heard: if it is another one than the one that finished, it is back."""
        if any(task == _name(job, index) for job, tasks in self._cluster().items() for index in tasks):
            self._heard[task] = incarnation
        if self._incarnations.get(task, incarnation) != incarnation:
            del self._incarnations[task]
            self.on_change()

    def may_end(self) -> bool:
        """Whether this task, which only serves, has nobody left to serve.

        A parameter server (any job but a worker's) serves all workers; a worker serves the first of the chief, the
        master and worker 0 that is not itself. False in a cluster without such a task.
        """
        there = self._cluster()
        job = self._task.split("/")[1].removeprefix("job:")
        if job not in WORKER_JOBS:
            awaited = [_name(each, index) for each in WORKER_JOBS & set(there) for index in there[each]]
        else:
            awaited = next(
                ([leader] for each in _LEADERS if each in there and (leader := _name(each, 0)) != self._task), []
            )
        return bool(awaited) and all(task in self for task in awaited)


def _name(job: str, index: int) -> TaskName:
    return f"/job:{job}/replica:0/task:{index}"
