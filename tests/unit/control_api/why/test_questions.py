"""Questions to the programs of a run: who is told, who is waited for, and when nobody is any more."""

from __future__ import annotations

import pytest

from tenfold_control_api.problems import ApiError
from tenfold_control_api.why.questions import Questions
from tenfold_protos.why_pb2 import TaskAnswer

TASKS = [("worker", 0), ("worker", 1)]


def test_each_program_is_told_until_it_has_answered() -> None:
    questions, done = Questions(8), []
    question = questions.open("run-1", TASKS, lambda: done.append(1))
    assert questions.for_program("run-1", "worker", 0) == question.id
    assert questions.for_program("run-1", "ps", 0) is None
    assert questions.for_program("run-2", "worker", 0) is None

    questions.add("run-1", question.id, "worker", 0, TaskAnswer(pid=1))
    assert (questions.for_program("run-1", "worker", 0), done) == (None, [])
    questions.add("run-1", question.id, "worker", 1, TaskAnswer(pid=2))

    assert done == [1]
    assert {task: answer.pid for task, answer in question.came.items()} == {("worker", 0): 1, ("worker", 1): 2}
    assert question.told == {("worker", 0)}


def test_who_asks_meanwhile_waits_for_the_same_question() -> None:
    questions = Questions(1)
    first = questions.open("run-1", TASKS, lambda: None)
    assert questions.open("run-1", TASKS, lambda: None) is first
    with pytest.raises(ApiError) as refused:
        questions.open("run-2", TASKS, lambda: None)
    assert refused.value.kind == "too-many-questions"

    questions.leave(first)
    assert questions.for_program("run-1", "worker", 0) == first.id
    questions.leave(first)
    assert questions.for_program("run-1", "worker", 0) is None
    assert questions.open("run-1", TASKS, lambda: None) is not first


@pytest.mark.parametrize(("asked", "index"), [("why-other", 0), (None, 7)])
def test_an_answer_that_nobody_waits_for(asked: str | None, index: int) -> None:
    questions = Questions(8)
    question = questions.open("run-1", TASKS, lambda: None)
    with pytest.raises(ApiError) as refused:
        questions.add("run-1", asked or question.id, "worker", index, TaskAnswer())
    assert refused.value.kind == "no-such-question"
    questions.leave(question)
    with pytest.raises(ApiError):
        questions.add("run-1", question.id, "worker", 0, TaskAnswer())
