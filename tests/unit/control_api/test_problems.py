"""Errors as data: the members of a problem, and what a database's or a master's error becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError

from tenfold_control_api.database import DatabaseAwayError
from tenfold_control_api.problems import MAX_DETAIL, ApiError, from_database_error, from_op_error
from tenfold_core import errors
from tenfold_core.log_setup import request_id
from tenfold_protos import node_def_pb2

TASK = "/job:worker/replica:0/task:1"


def test_a_problem_has_the_members_of_its_kind_and_its_own() -> None:
    error = ApiError("no-such-cluster", "there is none")
    assert (error.code, error.http_status, str(error)) == ("NOT_FOUND", 404, "NOT_FOUND: there is none")
    assert error.body("/v1/clusters/c") == {
        **{"type": "urn:tenfold:problem:no-such-cluster", "title": error.type.title, "status": 404},
        **{"detail": "there is none", "instance": "/v1/clusters/c", "code": "NOT_FOUND", "retryable": False},
        "help": "docs/how-to/by-symptom.md#no-such-cluster",
    }


def test_a_problem_says_what_else_is_known() -> None:
    error = ApiError(
        *("task-lost", "x" * (MAX_DETAIL + 1), TASK, "add"),
        retryable=True,
        missing_tasks=(TASK,),
        extra={"outcome": "unknown"},
    )
    token = request_id.set("name")
    try:
        body = error.body("/")
    finally:
        request_id.reset(token)
    assert len(body["detail"]) == MAX_DETAIL
    more = {key: body[key] for key in ("task", "node", "retryable", "missing_tasks", "request_id", "outcome")}
    assert more == {
        **{"task": TASK, "node": "add", "retryable": True, "missing_tasks": [TASK]},
        **{"request_id": "name", "outcome": "unknown"},
    }
    json.dumps(body)
    assert ApiError("task-lost", "x", retryable=False).body("/")["retryable"] is False


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OperationalError("SELECT secret", {}, Exception("disk full")), "disk full"),
        (InterfaceError("SELECT secret", {}, Exception("closed")), "closed"),
        (DatabaseAwayError(ConnectionRefusedError("refused")), "refused"),
        (DatabaseAwayError(TimeoutError()), "TimeoutError"),
        (IntegrityError("INSERT secret", {}, Exception("UNIQUE failed: secret")), "IntegrityError"),
        (OSError("secret"), "OSError"),
    ],
)
def test_a_databases_error_says_what_failed_and_nothing_of_the_statement(error: Exception, told: str) -> None:
    problem = from_database_error(error)
    assert (problem.kind, problem.headers) == ("database-unavailable", {"Retry-After": "1"})
    assert problem.detail == (
        f"the control service's database did not do its part ({told}); nothing was changed that was not answered."
    )


@pytest.mark.parametrize(
    ("message", "given", "task"),
    [
        (f"it happened on {TASK}/device:CPU:0", None, TASK),
        ("it happened on /job:ps/task:12", None, "/job:ps/task:12"),
        ("it happened on /job:ps/task:12", TASK, "/job:ps/task:12"),
        ("it happened", TASK, TASK),
        ("it happened in /job:9/task:1", None, None),
    ],
)
def test_a_masters_error_names_the_task_of_its_message(message: str, given: str | None, task: str | None) -> None:
    more: dict[str, Any] = {} if given is None else {"task": given}
    problem = from_op_error(errors.AbortedError(None, None, message), **more)
    assert (problem.code, problem.detail, problem.task, problem.node) == ("ABORTED", message, task, None)


def test_a_masters_error_names_its_node() -> None:
    node = node_def_pb2.NodeDef(name="add")
    problem = from_op_error(errors.InternalError(node, None, "why"), extra={"outcome": "done"})
    assert (problem.node, problem.extra) == ("add", {"outcome": "done"})


def test_a_code_that_nobody_knows_is_unknown() -> None:
    error = errors.OpError(None, None, "why", 99)
    assert from_op_error(error).code == "UNKNOWN"
