"""What the layers share: headers, answers, problems of steps and of /v2, and paths as logs may have them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenfold_control_api.asgi import acting, header, logged_path, problem_body, send_answer, send_problem
from tenfold_control_api.problems import ApiError


def scope(path: str = "/v1/clusters", method: str = "POST", *headers: tuple[bytes, bytes]) -> Any:
    return {"type": "http", "path": path, "method": method, "headers": list(headers)}


async def sent(call: Any, *given: Any) -> list[Any]:
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    await call(*(send if each is send_here else each for each in given))
    return messages


send_here = object()


def test_the_first_header_of_a_name_counts_whatever_its_case() -> None:
    asked = scope("/", "GET", (b"x-a", b"1"), (b"x-name", b"k\xe4se"), (b"x-name", b"2"))
    assert header(asked, "X-Name") == "käse"
    assert header(asked, "x-other") is None


async def test_an_answer_has_one_length_and_that_is_its_own() -> None:
    headers = [("Content-Length", "99"), ("X-Name", "käse")]
    assert await sent(send_answer, send_here, 201, headers, b"body") == [
        {
            "type": "http.response.start",
            "status": 201,
            "headers": [(b"x-name", b"k\xe4se"), (b"content-length", b"4")],
        },
        {"type": "http.response.body", "body": b"body"},
    ]


async def test_a_problem_has_its_headers_and_its_request_as_instance() -> None:
    start, body = await sent(
        send_problem, scope(), send_here, ApiError("in-progress", "wait", headers={"Retry-After": "1"})
    )
    assert start["status"] == 409
    assert start["headers"][:2] == [(b"content-type", b"application/problem+json"), (b"retry-after", b"1")]
    assert json.loads(body["body"])["instance"] == "/v1/clusters"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/v1/leases/0123456789", "/v1/leases/012345…"),
        ("/v1/leases/0123456789:renew", "/v1/leases/012345…:renew"),
        ("/v1/leases/01:renew", "/v1/leases/01…:renew"),
        ("/v1/sessions/0123456789", "/v1/sessions/0123456789"),
        ("/x/v1/leases/0123456789", "/x/v1/leases/0123456789"),
    ],
)
def test_a_log_has_the_beginning_of_a_lease_alone(path: str, shown: str) -> None:
    assert logged_path(scope(path)) == shown


@pytest.mark.parametrize(
    ("kind", "began", "outcome", "retryable"),
    [
        ("no-such-session", False, "not-run", False),
        ("internal-error", False, "not-run", False),
        ("database-unavailable", False, "not-run", True),
        ("no-such-session", True, None, False),
        ("internal-error", True, "unknown", False),
        ("database-unavailable", True, "unknown", False),
    ],
)
def test_a_problem_of_a_step_says_what_became_of_the_step(
    kind: str, began: bool, outcome: str | None, retryable: bool
) -> None:
    asked = scope("/v1/sessions/s/steps")
    if began:
        acting(asked)()
    body = problem_body(asked, ApiError(kind, "x"))
    assert (body.get("outcome"), body["retryable"]) == (outcome, retryable)


@pytest.mark.parametrize(
    ("path", "method"),
    [("/v1/sessions/s/steps", "GET"), ("/v1/sessions/s/steps/1", "POST"), ("/v1/sessions", "POST")],
)
def test_other_requests_have_no_outcome(path: str, method: str) -> None:
    assert "outcome" not in problem_body(scope(path, method), ApiError("internal-error", "x"))


def test_an_error_that_knows_its_outcome_is_believed() -> None:
    body = problem_body(scope("/v1/sessions/s/steps"), ApiError("in-progress", "x", extra={"outcome": "done"}))
    assert body["outcome"] == "done"


def test_clients_of_the_open_inference_protocol_read_error() -> None:
    assert problem_body(scope("/v2/models/m/infer"), ApiError("internal-error", "why"))["error"] == "why"
    assert "error" not in problem_body(scope(), ApiError("internal-error", "why"))


def test_acting_is_one_for_all_layers() -> None:
    asked = scope()
    first = acting(asked)
    assert (first.began, first.undo) == (False, None)
    first()
    assert acting(asked) is first
    assert first.began
