"""Which tasks have finished: who is believed, who is back, and when a task that only serves may end."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold_services.finished import ANY_LIFE, FinishedTasks

PS, FIRST, SECOND, CHIEF = (
    f"/job:{job}/replica:0/task:{index}" for job, index in (("ps", 0), ("worker", 0), ("worker", 1), ("chief", 0))
)
CLUSTER: dict[str, Any] = {"ps": {0: ""}, "worker": {0: "", 1: ""}}


def finished(task: str = PS, cluster: dict[str, Any] = CLUSTER) -> FinishedTasks:
    return FinishedTasks(task, lambda: cluster)


def test_only_other_tasks_of_the_cluster_are_noted() -> None:
    table = finished()

    table.note({FIRST: 1, PS: 2, "/job:worker/replica:0/task:7": 3, "nonsense": 4})

    assert dict(table.known) == {FIRST: 1}
    assert FIRST in table
    assert SECOND not in table


def test_a_task_that_answers_as_another_incarnation_is_back() -> None:
    table = finished()
    table.note({FIRST: 1})

    table.answered(FIRST, 1)
    assert FIRST in table, "it answers while it stops"
    table.answered(FIRST, 2)
    table.answered(SECOND, 5)

    assert not table.known


def test_every_change_is_told_and_nothing_else() -> None:
    table, told = finished(), []
    table.on_change = lambda: told.append(dict(table.known))

    table.note({FIRST: 1})
    table.note({FIRST: 1})
    table.note({FIRST: 2})
    table.answered(FIRST, 3)

    assert told == [{FIRST: 1}, {FIRST: 2}, {}]


def test_a_former_life_is_old_news() -> None:
    """A task that missed another's return may still tell that it finished."""
    table = finished()
    table.note({FIRST: 1, SECOND: 5})

    table.answered(FIRST, 2)
    table.note({FIRST: 1})
    assert FIRST not in table
    table.note({FIRST: 2})
    table.answered("/job:stranger/replica:0/task:0", 7)

    assert dict(table.known) == {SECOND: 5, FIRST: 2}


def test_the_word_of_a_control_service_holds_until_its_next() -> None:
    table, told = finished(), []
    table.on_change = lambda: told.append(table.may_end())

    table.declare([FIRST, PS])
    table.note({SECOND: 1})
    table.declare([FIRST])
    table.declare([])

    assert told == [False, True, False]
    assert PS not in table


def test_what_a_control_service_says_is_handed_on_as_the_life_that_was_heard() -> None:
    table = finished()
    table.answered(FIRST, 1)

    table.declare([FIRST, SECOND])
    assert table.known == {FIRST: 1, SECOND: ANY_LIFE}

    table.answered(FIRST, 2)
    table.answered(SECOND, 5)
    assert not table.known, "both are back, whatever the spec of that moment says"
    assert FIRST in table, "for this task the control service's word holds"


def test_whichever_life_finished_one_that_is_heard_is_back() -> None:
    table = finished()
    table.note({FIRST: ANY_LIFE})
    assert FIRST in table

    table.answered(FIRST, 1)
    table.note({FIRST: ANY_LIFE})
    assert FIRST not in table

    table.note({FIRST: 1})
    table.note({FIRST: ANY_LIFE})
    assert table.known == {FIRST: 1}, "the better news stays"


def test_a_new_life_is_told_once_and_its_own_never() -> None:
    table, seen = finished(), []
    table.on_new_life = seen.append

    for incarnation in (1, 1, 2):
        table.answered(FIRST, incarnation)
    table.answered(PS, 3)
    table.answered("/job:worker/replica:0/task:00", 4)
    table.answered("/job:worker/replica:0/task:7", 5)
    assert table.met(SECOND, 6)
    assert not table.met(SECOND, 6)

    assert seen == [FIRST, FIRST]
    assert [table.heard(task) for task in (FIRST, SECOND, PS)] == [True, True, False]


def test_a_task_that_has_finished_says_so_itself() -> None:
    table = finished()
    table.note({FIRST: 1})

    table.finish(9)

    assert table.known == {FIRST: 1, PS: 9}


@pytest.mark.parametrize(
    ("task", "cluster", "gone", "may_end"),
    [
        (PS, CLUSTER, [], False),
        (PS, CLUSTER, [FIRST], False),
        (PS, CLUSTER, [FIRST, SECOND], True),
        (PS, CLUSTER | {"chief": {0: ""}}, [FIRST, SECOND], False),
        (PS, CLUSTER | {"chief": {0: ""}}, [FIRST, SECOND, CHIEF], True),
        (PS, CLUSTER | {"evaluator": {0: ""}}, [FIRST, SECOND], True),
        (SECOND, CLUSTER, [FIRST], True),
        (FIRST, CLUSTER, [SECOND], False),
        (FIRST, CLUSTER | {"chief": {0: ""}}, [CHIEF], True),
        (SECOND, CLUSTER | {"chief": {0: ""}}, [FIRST], False),
        (PS, {"ps": {0: "", 1: ""}}, ["/job:ps/replica:0/task:1"], False),
    ],
)
def test_who_only_serves_may_end_with_those_that_it_serves(
    task: str, cluster: dict[str, Any], gone: list[str], may_end: bool
) -> None:
    table = finished(task, cluster)

    table.note(dict.fromkeys(gone, 1))

    assert table.may_end() is may_end
