"""Asks the processes of a run, or the tasks of a cluster, why nothing goes on: at once, and for two seconds in all.

Programs of a run are told in the answers to their reports, which come every second, and send what they know: nothing
has to reach them. Tasks of a cluster are asked over gRPC. Who does not answer in time is itself evidence. Called by
routes/why.py; evidence.py has what comes of it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tenfold.session.master_interface import WhyTellingMaster
from tenfold_control_api.cluster import TaskState
from tenfold_control_api.masters import Masters, Registered
from tenfold_control_api.problems import ApiError
from tenfold_control_api.why.evidence import Place
from tenfold_control_api.why.questions import Question, Questions
from tenfold_core import errors
from tenfold_core.device import task_name
from tenfold_core.exit_codes import signal_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.session.master_interface import MasterInterface
    from tenfold_control_api.cluster import Cluster, Task
    from tenfold_control_api.masters import MasterFactory
    from tenfold_control_api.runs.progress_table import ProgressTable
    from tenfold_control_api.runs.record import RunRecord
    from tenfold_protos.why_pb2 import TaskAnswer

#: Seconds for all answers together, and for one task over gRPC; the rest of two seconds is for the conclusion.
LONGEST_S, _CALL_S = 1.85, 1.6
#: Tasks that are asked over gRPC at once, those that wait for their turn, and runs that are asked at once.
_THREADS, _BACKLOG, _RUNS = 32, 4096, 64
_GRACE_S = 1.0
#: What a run's task without a program is.
_NOT_STARTED = "no program has been started for it, or has joined, yet"


class Gatherer:
    """Used on one event loop."""

    def __init__(self, factory: MasterFactory, progress: ProgressTable, wall: Callable[[], float]) -> None:
        # threads of its own: the other ones may all be held by steps that stand still
        self._masters = Masters(factory, threads=_THREADS, backlog=_BACKLOG)
        self._progress, self._wall = progress, wall
        self._questions = Questions(_RUNS)
        #: What requests wait for, by question.
        self._answered: dict[str, asyncio.Event] = {}

    async def stop(self) -> None:
        """Ends calls under way. Bounded."""
        await self._masters.close(_GRACE_S)

    # -- runs

    async def of_run(self, run: RunRecord) -> list[Place]:
        """The tasks of a run. Blocks until all programs that report have answered, `LONGEST_S` at most. Raises
        RESOURCE_EXHAUSTED."""
        rows = {(row["job"], row["index"]): row for row in run.tasks}
        tasks = [(job, index) for job, size in run.submission["jobs"].items() for index in range(size)]
        tasks += [task for task in rows if task not in tasks]
        heard = {(each.job, each.index): each.updated for each in await self._progress.of(run.id)}
        asked = [task for task in tasks if task in heard and task in rows and rows[task]["state"] == "running"]
        question = await self._ask(run.id, asked)
        places = []
        for job, index in tasks:
            row, answer = rows.get((job, index)), question.came.get((job, index))
            name, silence = task_name(job, index), ""
            if row is None:
                places.append(Place(name, "missing", _NOT_STARTED))
                continue
            if answer is None and (job, index) in asked:
                ago = max(0.0, self._wall() - heard[job, index])
                told = "it was asked and has not answered" if (job, index) in question.told else "it does not report"
                silence = f"{told}; its program was last heard of {ago:.0f} s ago"
            places.append(Place(name, row["state"], _reason(row), answer, silence))
        return places

    async def _ask(self, run: str, tasks: list[tuple[str, int]]) -> Question:
        event = asyncio.Event()
        question = self._questions.open(run, tasks, event.set)
        event = self._answered.setdefault(question.id, event)
        try:
            if question.waiting:
                async with asyncio.timeout(LONGEST_S):
                    await event.wait()
        except TimeoutError:
            pass  # who has not answered is still in `waiting`
        finally:
            self._questions.leave(question)
            if not question.askers:
                self._answered.pop(question.id, None)
        return question

    def order_for(self, run: str, job: str, index: int) -> str | None:
        """The question that a program which reports is to answer, if any. Never blocks."""
        return self._questions.for_program(run, job, index)

    def add(self, run: str, asked: str, job: str, index: int, answer: TaskAnswer) -> None:
        """What a program says. Raises NOT_FOUND for a question that does not wait for it."""
        self._questions.add(run, asked, job, index, answer)

    # -- clusters

    async def of_cluster(self, cluster: Cluster) -> list[Place]:
        """The tasks of a cluster. Blocks until all that are ready have answered, `LONGEST_S` at most."""
        said: dict[str, tuple[TaskAnswer | None, str]] = {}

        async def ask(task: Task) -> None:
            said[task.name] = await self._call(task)

        tasks = list(cluster.tasks.values())
        ready = {task.name: task for task in tasks if task.state is TaskState.READY and task.address is not None}
        asking = [asyncio.ensure_future(ask(task)) for task in ready.values()]
        if asking:
            _, late = await asyncio.wait(asking, timeout=LONGEST_S)
            for each in late:
                each.cancel()
        places = []
        for task in tasks:
            silence = f"no answer from {task.address} within {LONGEST_S:g} s" if task.name in ready else ""
            answer, silence = said.get(task.name, (None, silence))
            places.append(Place(task.name, str(task.state), task.reason, answer, silence))
        return places

    async def _call(self, task: Task) -> tuple[TaskAnswer | None, str]:
        """What the task says, or why it does not answer; neither of one that cannot tell."""
        try:
            target, known = f"grpc://{task.address}", Registered.of(task)
            return await self._masters.call(target, _why, limit=_CALL_S, task=task.name, known=known), ""
        except ApiError as error:
            if error.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED") and "outcome" not in error.extra:
                return None, error.detail
            return None, ""


def _why(master: MasterInterface, left: float) -> TaskAnswer:
    if not isinstance(master, WhyTellingMaster):
        raise errors.UnimplementedError(None, None, "This task does not say why it is stuck.")
    return master.why(left)


def _reason(row: object) -> str:
    """Why a run's task is in its state, in a few words."""
    assert isinstance(row, dict)
    error = row.get("error") or {}
    if error.get("message"):
        return str(error["message"]).splitlines()[0][:300]
    code = row.get("exit_code")
    if code is not None:
        return f"it was ended by {signal_name(-code)}" if code < 0 else f"it ended with exit code {code}"
    return ""
