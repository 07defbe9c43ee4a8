"""What stores' libraries raise: as which OSError it is told, and what is tried again, how long."""

from __future__ import annotations

import errno
import itertools

import pytest

from tenfold_core import errors, url_errors
from tenfold_core.file_errors import os_errors
from tenfold_core.url_errors import as_os_error, attempt


class NoCredentialsError(Exception):
    """As botocore's."""


class EndpointConnectionError(Exception):
    """As botocore's."""


class FileExpired(OSError):
    """As s3fs's."""


class HttpError(Exception):
    """As gcsfs's."""

    def __init__(self, code: int) -> None:
        super().__init__(f"said {code}")
        self.code = code


class Clock:
    """Seconds that pass when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(url_errors, "time", made)
    return made


@pytest.mark.parametrize(
    ("raised", "number"),
    [
        (FileNotFoundError("b/x"), errno.ENOENT),
        (PermissionError("Access Denied"), errno.EACCES),
        (FileExistsError("b/x"), errno.EEXIST),
        (TimeoutError(), errno.ETIMEDOUT),
        (OSError(errno.EBUSY, "Please reduce your request rate."), errno.EAGAIN),
        (OSError(errno.ENOSPC, "full"), errno.ENOSPC),
        (OSError("odd"), errno.EIO),
        (NoCredentialsError("Unable to locate credentials"), errno.EACCES),
        (EndpointConnectionError("Could not connect"), errno.EHOSTUNREACH),
        (FileExpired("changed"), errno.ESTALE),
        (HttpError(404), errno.ENOENT),
        (HttpError(403), errno.EACCES),
        (HttpError(429), errno.EAGAIN),
        (HttpError(503), errno.EAGAIN),
        (HttpError(418), errno.EIO),
        (NotImplementedError(), errno.ENOSYS),
        (ModuleNotFoundError("No module named x"), errno.ENOSYS),
        (ValueError("Invalid bucket name"), errno.EINVAL),
        (RuntimeError("odd"), errno.EIO),
    ],
)
def test_what_is_raised_has_a_number_and_a_reason(raised: Exception, number: int) -> None:
    found = as_os_error("s3://b/x", raised)

    assert found.errno == number
    assert found.strerror


def test_a_reason_is_what_the_store_said_unless_it_is_the_name_alone() -> None:
    assert as_os_error("s3://b/x", FileNotFoundError("The specified bucket does not exist")).strerror == (
        "The specified bucket does not exist"
    )
    assert as_os_error("s3://b/x", FileNotFoundError("b/x")).strerror == "No such file or directory"
    assert as_os_error("memory://x", FileNotFoundError("/x")).strerror == "No such file or directory"


def test_who_is_not_let_in_hears_where_credentials_come_from() -> None:
    for error in (NoCredentialsError("Unable to locate credentials"), PermissionError("Forbidden")):
        text = str(as_os_error("s3://b/x", error))
        assert "AWS_ACCESS_KEY_ID" in text
        assert str(error) in text
    assert "GOOGLE_APPLICATION_CREDENTIALS" in str(as_os_error("gs://b/x", HttpError(403)))


def test_a_store_that_is_busy_is_asked_again(clock: Clock) -> None:
    answers = [OSError(errno.EBUSY, "SlowDown"), EndpointConnectionError("gone"), b"found"]

    def call() -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert attempt("s3://b/x", call) == b"found"
    assert 0 < clock.now < 1


def test_pauses_grow_and_end_in_the_error_with_the_name(clock: Clock) -> None:
    tries = []

    def call() -> None:
        tries.append(clock.now)
        raise EndpointConnectionError("Could not connect to the endpoint")

    with pytest.raises(errors.UnavailableError) as failed, os_errors("s3://b/x"):
        attempt("s3://b/x", call)

    assert failed.value.message.startswith("s3://b/x; Could not connect to the endpoint (")
    assert f"({len(tries)} tries in " in failed.value.message
    pauses = [after - before for before, after in itertools.pairwise(tries)]
    assert pauses[0] <= 0.1
    assert pauses[-1] > 10 * pauses[0]
    assert clock.now <= url_errors.DEADLINE


def test_what_will_not_change_is_not_tried_again(clock: Clock) -> None:
    tries = []

    def call() -> None:
        tries.append(None)
        raise FileNotFoundError("b/x")

    with pytest.raises(FileNotFoundError) as failed:
        attempt("s3://b/x", call)

    assert failed.value.filename == "s3://b/x"
    assert len(tries) == 1
    assert clock.now == 0
