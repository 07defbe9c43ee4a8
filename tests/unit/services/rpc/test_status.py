"""A failed call of gRPC as an error that says which task, and why."""

from __future__ import annotations

import grpc
import pytest

from tenfold_core import errors
from tenfold_core.open_files import TOLD
from tenfold_services.rpc.status import from_rpc_error, reason, status_message

TASK, ADDRESS = "/job:ps/replica:0/task:0", "host:2222"


class Failed:
    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


@pytest.mark.parametrize(
    ("code", "details", "why"),
    [
        (grpc.StatusCode.UNAVAILABLE, "Connection reset by peer", "the connection broke, its process ended"),
        (grpc.StatusCode.UNKNOWN, "Unwrap failed (TSI_DATA_CORRUPTED)", "its bytes were changed on the way"),
        (grpc.StatusCode.UNKNOWN, "Wrap failed (TSI_INTERNAL_ERROR)", "its bytes were changed on the way"),
    ],
)
def test_a_connection_that_broke_is_unavailable_whatever_grpc_calls_it(
    code: grpc.StatusCode, details: str, why: str
) -> None:
    error = from_rpc_error(Failed(code, details), TASK, ADDRESS, "RunGraph")

    assert isinstance(error, errors.UnavailableError)
    assert error.message.startswith(f"{TASK} at {ADDRESS} cannot be reached: ")
    assert why in error.message


def test_what_a_task_says_stays_what_it_is() -> None:
    error = from_rpc_error(Failed(grpc.StatusCode.UNKNOWN, "a kernel gave up"), TASK, ADDRESS, "RunGraph")

    assert isinstance(error, errors.UnknownError)
    assert error.message == "a kernel gave up"


UNAVAILABLE, CANCELLED = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED
LOST = f"{TASK} at {ADDRESS} cannot be reached: "


@pytest.mark.parametrize(
    ("code", "details", "kind", "message"),
    [
        (UNAVAILABLE, f"{TASK} is draining", errors.UnavailableError, f"{TASK} is draining"),
        (UNAVAILABLE, "", errors.UnavailableError, f"{LOST}no reason given (RunGraph)."),
        (UNAVAILABLE, "odd", errors.UnavailableError, f"{LOST}odd (RunGraph)."),
        (
            grpc.StatusCode.INTERNAL,
            "Received RST_STREAM with error code 2",
            errors.UnavailableError,
            f"{LOST}the connection broke, its process ended (RunGraph).",
        ),
        (
            grpc.StatusCode.UNKNOWN,
            "Stream removed",
            errors.UnavailableError,
            f"{LOST}the connection broke, its process ended (RunGraph).",
        ),
        (
            grpc.StatusCode.UNKNOWN,
            "Stream removed (Connection refused)",
            errors.UnknownError,
            "Connection refused",
        ),
        (
            UNAVAILABLE,
            "Stream removed (FD shutdown)",
            errors.UnavailableError,
            f"{LOST}the connection was given up (RunGraph).",
        ),
        (
            grpc.StatusCode.DEADLINE_EXCEEDED,
            "Deadline Exceeded",
            errors.DeadlineExceededError,
            f"{TASK} at {ADDRESS} did not answer RunGraph in time.",
        ),
        (
            grpc.StatusCode.DEADLINE_EXCEEDED,
            "",
            errors.DeadlineExceededError,
            f"{TASK} at {ADDRESS} did not answer RunGraph in time.",
        ),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "the step's", errors.DeadlineExceededError, "the step's"),
        (CANCELLED, "by the caller", errors.CancelledError, f"RunGraph at {TASK} was cancelled: by the caller"),
        (CANCELLED, "Step 7 was cancelled", errors.CancelledError, "Step 7 was cancelled"),
        (
            grpc.StatusCode.UNIMPLEMENTED,
            "Method not found!",
            errors.UnimplementedError,
            f"{TASK} at {ADDRESS} does not serve RunGraph.",
        ),
        (grpc.StatusCode.UNIMPLEMENTED, "", errors.UnimplementedError, f"{TASK} at {ADDRESS} does not serve RunGraph."),
        (grpc.StatusCode.UNIMPLEMENTED, "no such op", errors.UnimplementedError, "no such op"),
        (grpc.StatusCode.ABORTED, "Deadline Exceeded", errors.AbortedError, "Deadline Exceeded"),
        (grpc.StatusCode.NOT_FOUND, "", errors.NotFoundError, ""),
    ],
)
def test_a_failed_call_is_an_error_in_our_words(code: grpc.StatusCode, details: str, kind: type, message: str) -> None:
    error = from_rpc_error(Failed(code, details), TASK, ADDRESS, "RunGraph")
    assert (type(error), error.message) == (kind, message)


def test_no_details_are_no_text() -> None:
    error = from_rpc_error(Failed(UNAVAILABLE, None), TASK, ADDRESS, "RunGraph")  # type: ignore[arg-type]
    assert error.message == f"{LOST}no reason given (RunGraph)."


BROKE = "the connection broke, its process ended"


@pytest.mark.parametrize(
    ("details", "why"),
    [
        ("Too many open files", "this process may open no more files and sockets (EMFILE, RLIMIT_NOFILE)"),
        (f"x {TOLD} y", TOLD),
        ("errno 111: Connection refused", "connection refused, no server listens there"),
        ("DNS resolution failed for x", "its host name cannot be resolved"),
        ("address lookup failed", "its host name cannot be resolved"),
        ("Name or service not known", "its host name cannot be resolved"),
        ("No route to host", "no route to its host"),
        ("Network is unreachable", "its network is unreachable"),
        ("Host is unreachable", "its host is unreachable"),
        ("Connection timed out", "its host does not answer"),
        ("FD shutdown", "the connection was given up"),
        ("GOAWAY received", "it is shutting down"),
        ("Socket closed", BROKE),
        ("Connection reset", BROKE),
        ("Broken pipe", BROKE),
        ("recvmsg", BROKE),
        ("RST_STREAM", BROKE),
        ("Stream removed", BROKE),
    ],
)
def test_what_grpc_says_is_said_in_our_words(details: str, why: str) -> None:
    assert reason(details) == why


@pytest.mark.parametrize(
    ("message", "size"),
    [("abc", 3), ("a b~", 4), ("a\tb", 5), ("100%", 6), ("naïve", 10), ("\x7f", 3), ("\x1f", 3)],
)
def test_a_message_that_fits_stays_as_it_is(message: str, size: int) -> None:
    assert status_message(message, size) == message
    assert status_message(message, size - 1) != message


def test_of_a_long_message_the_middle_goes() -> None:
    message = "begin" + "x" * 500 + "end"
    cut = status_message(message, 100)
    assert cut == "begin" + "x" * 30 + " […] " + "x" * 32 + "end"  # 35 bytes on either side
    assert status_message("é" * 100, 100) == "é" * 5 + " […] " + "é" * 5
    assert status_message("x" * 9999) == "x" * 3569 + " […] " + "x" * 3569
    assert status_message("xyz" * 30, 1) == "x […] z"
