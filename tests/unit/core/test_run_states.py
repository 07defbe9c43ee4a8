"""Why a run is as it is, in a line."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold_core.run_states import error_line, standing


def task(name: str, state: str, **more: Any) -> dict[str, Any]:
    job, _, index = name.partition("/")
    return {"job": job, "index": int(index), "state": state, "starts": 1, "error": None, **more}


BOOM = {"type": "ValueError", "message": "boom", "node": None, "task": None}


def test_the_cause_follows_the_task_that_it_came_from() -> None:
    error = {"type": "E", "message": "From /job:ps/replica:0/task:0:\nits cause\nmore", "node": "n"}

    assert error_line(error) == ": E, node n: its cause"


@pytest.mark.parametrize(
    ("tasks", "reason"),
    [
        ([task("ps/0", "running"), task("worker/0", "running")], "its tasks run"),
        ([task("worker/0", "waiting", starts=0)], "its tasks run"),
        ([task("ps/0", "running"), task("worker/0", "waiting")], "to start again: worker/0"),
        (
            [
                task("worker/0", "running"),
                task("worker/1", "failed", ended=2.0),
                task("worker/2", "failed", error=BOOM, ended=1.0),
            ],
            "worker/2 failed: ValueError: boom; the others go on",
        ),
    ],
)
def test_why_a_run_goes_on_as_it_does(tasks: list[dict[str, Any]], reason: str) -> None:
    assert standing(tasks) == reason
