"""A failed call of gRPC as an error that says which task, and why."""

from __future__ import annotations

import grpc
import pytest

from tenfold_core import errors
from tenfold_services.rpc.status import from_rpc_error

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
