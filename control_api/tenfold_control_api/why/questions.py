"""The questions of why a run stands still that wait for its programs. Pure: no I/O, no waiting; gather.py drives it.

A question is open for two seconds at most. Who asks meanwhile for the same run waits for the same answers.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenfold_protos.why_pb2 import TaskAnswer

Task = tuple[str, int]


@dataclass(slots=True)
class Question:
    """One, to the programs of a run."""

    run: str
    #: Those whose programs have not answered.
    waiting: set[Task]
    #: Called once nobody is waited for.
    done: Callable[[], None]
    id: str = field(default_factory=lambda: f"why-{uuid.uuid4().hex[:12]}")
    #: Those that were told, with the answer to a report.
    told: set[Task] = field(default_factory=set)
    came: dict[Task, TaskAnswer] = field(default_factory=dict)
    #: How many requests wait for it.
    askers: int = 0


class Questions:
    """The open ones of one service."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        #: By run.
        self._open: dict[str, Question] = {}

    def open(self, run: str, tasks: Iterable[Task], done: Callable[[], None]) -> Question:
        """The question to `tasks`: the one that is open, whose `done` is another one's, or a new one. Raises
        RESOURCE_EXHAUSTED."""
        found = self._open.get(run)
        if found is None:
            if len(self._open) >= self._limit:
                raise ApiError("too-many-questions", f"{len(self._open)} runs are being asked why; that is the limit.")
            found = self._open[run] = Question(run, set(tasks), done)
        found.askers += 1
        return found

    def for_program(self, run: str, job: str, index: int) -> str | None:
        """The question that a program which reports is to answer, by name. Never blocks."""
        question = self._open.get(run)
        if question is None or (job, index) not in question.waiting:
            return None
        question.told.add((job, index))
        return question.id

    def add(self, run: str, asked: str, job: str, index: int, answer: TaskAnswer) -> None:
        """What a program says. Raises NOT_FOUND for a question that does not wait for it."""
        question = self._open.get(run)
        if question is None or question.id != asked or (job, index) not in question.waiting:
            raise ApiError("no-such-question", f"question {asked} of run {run} does not wait for {job}/{index}.")
        question.came[job, index] = answer
        question.waiting.discard((job, index))
        if not question.waiting:
            question.done()

    def leave(self, question: Question) -> None:
        """A request waits no more; with the last one the question is over."""
        question.askers -= 1
        if not question.askers and self._open.get(question.run) is question:
            del self._open[question.run]
