"""Which tasks of the cluster have finished or are lost, as far as this task knows. Pure: no I/O, no clock.

Tasks tell each other as they start and stop (peers.py); a master that misses a task asks those that answer
(master/device_finder.py); a control service knows of those that registered with it. A killed task has not finished: it
may come back, and is waited for, unless a control service says that it is lost. In TensorFlow CreateSession waits for
ever for a worker that is done, and a parameter server never ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.device import task_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from .interfaces import TaskName

#: Jobs whose end is the end of the training.
WORKER_JOBS = frozenset({"chief", "master", "worker"})
#: One of these, the first that the cluster has, decides when a worker that only serves may end.
_LEADERS = ("chief", "master", "worker")
#: In place of an incarnation: the task has finished, whichever life it was.
ANY_LIFE = 0


class FinishedTasks:
    """Task → the incarnation that finished. Holds tasks of the cluster only, so it is as bounded as that is."""

    def __init__(self, task: TaskName, cluster: Callable[[], Mapping[str, Collection[int]]]) -> None:
        """`task` is this one; `cluster()` says which tasks there are, job → indices."""
        self.task, self._cluster = task, cluster
        self._incarnations: dict[TaskName, int] = {}
        #: The incarnation of a task that was last heard itself. What is told of another one is old news.
        self._heard: dict[TaskName, int] = {}
        #: What a control service says, as a whole and anew with each of its specs, and as whom each was last heard
        #: when that was said first.
        self._declared: dict[TaskName, int] = {}
        #: Tasks that are lost by the word of a control service, as a whole and anew with each of its specs.
        self.lost: frozenset[TaskName] = frozenset()
        #: Called after every change.
        self.on_change: Callable[[], None] = lambda: None
        #: Called with a task that was heard for the first time in its present life: it may not know what we do.
        self.on_new_life: Callable[[TaskName], None] = lambda task: None

    def __contains__(self, task: TaskName) -> bool:
        return task in self._incarnations or task in self._declared

    @property
    def known(self) -> dict[TaskName, int]:
        """What the others may be told, task → incarnation or ANY_LIFE. A task that is back is left out."""
        declared = {task: life for task, life in self._declared.items() if self._heard.get(task, ANY_LIFE) == life}
        return {**declared, **self._incarnations}

    def heard(self, task: TaskName) -> bool:
        """Whether the task was ever heard itself."""
        return task in self._heard

    def note(self, finished: Mapping[TaskName, int]) -> Collection[TaskName]:
        """Adds what a peer says; what was news. Leaves out this task, tasks of other clusters, former incarnations."""
        news = {
            task: incarnation
            for task, incarnation in finished.items()
            if self._is_other(task)
            and self._incarnations.get(task) != incarnation
            and self._heard.get(task, incarnation) == incarnation
            and not (incarnation == ANY_LIFE and task in self._incarnations)
        }
        if news:
            self._incarnations.update(news)
            self.on_change()
        return news

    def finish(self, incarnation: int) -> None:
        """This task itself has finished, and the others may be told."""
        self._incarnations[self.task] = incarnation

    def declare(self, tasks: Collection[TaskName], lost: Collection[TaskName] = ()) -> None:
        """Takes over which tasks have finished, and which are lost, by the word of a control service, in place of what
        it said before."""
        self.lost = frozenset(lost) - {self.task}
        before = self._declared
        self._declared = {
            task: before.get(task, self._heard.get(task, ANY_LIFE)) for task in tasks if task != self.task
        }
        if self._declared.keys() != before.keys():
            self.on_change()

    def answered(self, task: TaskName, incarnation: int) -> None:
        """Takes note of a task that was heard: if it is another one than the one that finished, it is back."""
        if self.met(task, incarnation):
            self.on_new_life(task)

    def met(self, task: TaskName, incarnation: int) -> bool:
        """`answered`, of a task that is told what this one knows as they speak. Whether it is a new life."""
        is_new = self._is_other(task) and self._heard.get(task) != incarnation
        if is_new:
            self._heard[task] = incarnation
        if task != self.task and self._incarnations.get(task, incarnation) != incarnation:
            del self._incarnations[task]
            self.on_change()
        return is_new

    def may_end(self) -> bool:
        """Whether this task, which only serves, has no task left to serve.

        A parameter server (any job but a worker's) serves all workers; a worker serves the first of the chief, the
        master and worker 0 that is not itself. False in a cluster without such a task.
        """
        there = self._cluster()
        job = self.task.split("/")[1].removeprefix("job:")
        if job not in WORKER_JOBS:
            awaited = [task_name(each, index) for each in WORKER_JOBS & set(there) for index in there[each]]
        else:
            awaited = next(
                ([leader] for each in _LEADERS if each in there and (leader := task_name(each, 0)) != self.task), []
            )
        return bool(awaited) and all(task in self for task in awaited)

    def _is_other(self, task: TaskName) -> bool:
        """Whether it is a task of the cluster, and not this one."""
        job, _, digits = task.removeprefix("/job:").partition("/replica:0/task:")
        index = int(digits) if digits.isdecimal() and len(digits) < 10 else -1
        return task != self.task and index in self._cluster().get(job, ()) and task == task_name(job, index)
