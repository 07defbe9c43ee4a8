"""The tasks of a run as their pods show them: what has ended and how, what the API server is still to be told, what
takes too long. A synchronous machine without a clock or a connection of its own; kubernetes_pods.py drives it, under
its lock.

A task has *ended* when its pod says so, and is *over* once its last lines are there: only then its exit code counts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold.cli.children import KEPT_LINES
from tenfold.launchers.kubernetes_status import Ended, as_asked, gone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tenfold.launchers.kubernetes_status import PodView

#: The signals that a task is ended by, and the grace of the second one in seconds, the least that Kubernetes has.
TERM, KILL, KILL_GRACE = 15, 9, 1
#: Seconds beyond its grace after which a pod's node is taken for lost; for the last lines of a task that has ended;
#: before the server is told again.
_NODE_S, _LAST_LINES_S, _AGAIN_S = 30.0, 15.0, 5.0


@dataclass(slots=True, eq=False)
class PodTask:
    """One start of a task. Times are those that the verbs were given."""

    name: str
    pod: str
    stage: int
    begun: float
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    #: The server has its pod.
    created: bool = False
    view: PodView | None = None
    #: The signal it is to end by, the one that the server knows of, since when, and when it may be told again.
    asked: int | None = None
    told: int | None = None
    told_at: float = 0.0
    again_at: float = 0.0
    ended: Ended | None = None
    seen_at: float = 0.0
    #: Whether its lines are read, and whether all of them have been.
    followed: bool = False
    read: bool = False
    #: None until it is over.
    exit_code: int | None = None
    over_at: float = 0.0
    error: dict[str, str] | None = None
    #: What it waits for, as was said last.
    waits: str = ""

    @property
    def has_started(self) -> bool:
        return self.view is not None and self.view.started


@dataclass(frozen=True, slots=True)
class News:
    """What follows from a look at a pod."""

    #: Whose lines are to be read from now on.
    follow: PodTask | None = None
    #: A line for who watches the run.
    say: str = ""


class PodTasks:
    """All tasks of a run; the newest start of each. Not thread-safe."""

    def __init__(self, grace: float, patience: float) -> None:
        """`grace`: seconds that a pod has after SIGTERM; `patience`: those that it has to start."""
        self._grace, self._patience = grace, patience
        self._tasks: dict[str, PodTask] = {}
        #: Pods that are not wanted any more → the seconds that they get to end.
        self._unwanted: dict[str, int] = {}

    def __getitem__(self, name: str) -> PodTask:
        return self._tasks[name]

    def get(self, name: str) -> PodTask | None:
        return self._tasks.get(name)

    @property
    def running(self) -> list[PodTask]:
        return [task for task in self._tasks.values() if task.exit_code is None]

    # -- what happens

    def begin(self, name: str, pod: str, stage: int, now: float) -> PodTask:
        """A new start, also in place of one that is over."""
        task = self._tasks[name] = PodTask(name, pod, stage, now)
        return task

    def on_pod(self, seen: PodView, is_gone: bool, now: float) -> News:
        """A pod as it is, or was last."""
        task = next((each for each in self._tasks.values() if each.pod == seen.name), None)
        if task is None or task.exit_code is not None:
            return News()
        if is_gone:
            last = seen if seen.ended is not None or task.view is None else task.view
            self._note_end(task, gone(last, task.asked), now)
        elif seen.ended is not None:
            self._note_end(task, as_asked(seen.ended, task.asked), now)
        elif seen.refused is not None:
            self._note_end(task, Ended(1, seen.refused), now)
            self._unwanted[task.pod] = KILL_GRACE
        task.view = seen
        follow = seen.started and not task.followed and not is_gone
        task.followed = task.followed or follow
        say = ""
        if seen.waits and seen.waits != task.waits and not seen.started:
            task.waits = seen.waits
            say = f"{task.name} waits: {seen.waits}"
        self._settle(task, now)
        return News(task if follow else None, say)

    def on_list(self, known: Iterable[PodTask], there: Collection[str], now: float) -> None:
        """A list of all pods: those of `known`, whose pods were made before it, that are not `there` are gone."""
        for task in known:
            if task.pod not in there and task.exit_code is None:
                self._note_end(task, gone(task.view, task.asked), now)
                self._settle(task, now)

    def all_read(self, task: PodTask, now: float) -> None:
        """There are no more lines."""
        task.read = True
        self._settle(task, now)

    def refuse(self, task: PodTask, why: str, now: float) -> None:
        """The server does not take the task."""
        self._finish(task, Ended(1, {"type": "KubernetesRefused", "message": why}), now)

    def lose_all(self, why: str, now: float) -> None:
        """Nobody knows what becomes of the pods, and they are not to go on."""
        for task in self.running:
            self._finish(task, _lost(why), now)

    # -- what is to be told

    def ask(self, tasks: Iterable[PodTask], signal: int) -> None:
        """They are to end by that signal."""
        for task in tasks:
            if task.exit_code is None and task.asked != KILL:
                task.asked = signal

    def to_tell(self, now: float) -> list[PodTask]:
        """The tasks of whose wished end the server does not know."""
        return [
            task
            for task in self.running
            if task.asked is not None
            and task.told not in (task.asked, KILL)
            and task.created
            and task.ended is None
            and now >= task.again_at
        ]

    def told(self, task: PodTask, signal: int, now: float) -> None:
        task.told, task.told_at = signal, now

    def not_told(self, task: PodTask, now: float) -> None:
        """It did not answer: again in a while."""
        task.again_at = now + _AGAIN_S

    def take_unwanted(self) -> dict[str, int]:
        """The pods that are to be deleted, with their grace; each is given once."""
        found, self._unwanted = self._unwanted, {}
        return found

    def overdue(self, now: float) -> list[str]:
        """Ends what takes too long; a line about each."""
        said = []
        for task in self.running:
            if not task.created:
                continue
            if task.ended is not None:
                if now > task.seen_at + _LAST_LINES_S:
                    said.append(f"the last lines of {task.name} may be missing: its log does not end")
                    self._finish(task, task.ended, now)
            elif task.told is None and task.view is not None and task.view.deleted is not None:
                # somebody else has deleted it: an eviction, a drain, a node that does not answer
                task.told, task.told_at = TERM, now + task.view.deleted - self._grace
            elif task.told is not None:
                grace = self._grace if task.told == TERM else KILL_GRACE
                if now > task.told_at + grace + _NODE_S:
                    where = task.view.node if task.view is not None and task.view.node else "its node"
                    self._give_up(task, _lost(f"{where} does not end pod/{task.pod}"), 0, now)
            elif not task.has_started and now > task.begun + self._patience:
                why = f"not within {self._patience:g} s: {task.waits or 'nothing is known of why'}"
                self._give_up(task, Ended(1, {"type": "NotStarted", "message": why}), KILL_GRACE, now)
        return said

    # -- inside

    def _note_end(self, task: PodTask, ended: Ended, now: float) -> None:
        if task.ended is None:
            task.ended, task.seen_at = ended, now

    def _settle(self, task: PodTask, now: float) -> None:
        if task.ended is not None and task.exit_code is None and (task.read or not task.followed):
            self._finish(task, task.ended, now)

    def _give_up(self, task: PodTask, ended: Ended, grace: int, now: float) -> None:
        self._unwanted[task.pod] = grace
        self._finish(task, ended, now)

    def _finish(self, task: PodTask, ended: Ended, now: float) -> None:
        task.ended, task.exit_code, task.error, task.over_at = ended, ended.code, ended.error, now


def _lost(why: str) -> Ended:
    return Ended(-KILL, {"type": "HostLost", "message": why})
