"""The control service's refusals: RFC 9457 problem details, turned back into TensorFlow's errors.

Used by every module of this package. The exception that the caller sees is of the class of the canonical code
(`tf.errors.UnavailableError`, …); its `__cause__` is a `ControlProblem` with the rest of the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

#: For an answer without a canonical code (from a proxy in between): HTTP status → code.
_BY_STATUS = {
    400: errors.INVALID_ARGUMENT,
    401: errors.UNAUTHENTICATED,
    403: errors.PERMISSION_DENIED,
    404: errors.NOT_FOUND,
    409: errors.ABORTED,
    410: errors.FAILED_PRECONDITION,
    413: errors.RESOURCE_EXHAUSTED,
    429: errors.RESOURCE_EXHAUSTED,
    499: errors.CANCELLED,
    501: errors.UNIMPLEMENTED,
    502: errors.UNAVAILABLE,
    503: errors.UNAVAILABLE,
    504: errors.DEADLINE_EXCEEDED,
}
_BY_NAME = {errors.code_name(code): code for code in range(1, 17)}


class ControlProblem(Exception):
    """An answer that is not 2xx. `members` is the problem object, empty if the body was not one."""

    def __init__(self, status: int, members: Mapping[str, Any], text: str) -> None:
        super().__init__(text)
        self.status = status
        self.members = members

    @property
    def kind(self) -> str:
        """The last part of the problem's type, e.g. `lease-ended`; empty when it has none."""
        return str(self.members.get("type", "")).removeprefix("urn:tenfold:problem:")

    @property
    def help(self) -> str:
        """Where the documentation says what to do; empty when the service does not tell."""
        return str(self.members.get("help") or "")

    @property
    def missing_tasks(self) -> tuple[str, ...]:
        """Names of the tasks that did not come while the service waited for them."""
        return tuple(self.members.get("missing_tasks", ()))

    @property
    def outcome(self) -> str | None:
        """What happened to a step: `not-run`, `unknown` or `done`; None when the error itself is the answer."""
        found = self.members.get("outcome")
        return found if isinstance(found, str) else None

    @property
    def retryable(self) -> bool:
        """Whether sending the same request again may help, according to the service."""
        return bool(self.members.get("retryable", self.status in (429, 502, 503, 504)))


def error_of(status: int, members: Mapping[str, Any], text: str) -> errors.OpError:
    """The exception for an answer, with its `ControlProblem` as `__cause__`."""
    code = _BY_NAME.get(str(members.get("code")), _BY_STATUS.get(status, errors.UNKNOWN))
    detail = str(members.get("detail") or members.get("title") or text[:2000] or f"HTTP {status}")
    error = errors.from_code(code, detail)
    error.__cause__ = problem = ControlProblem(status, members, f"HTTP {status}: {detail}")
    if problem.help:
        error.add_note(f"What to do: {problem.help}")
    return error


def problem_of(error: BaseException) -> ControlProblem | None:
    """The problem behind an exception that this package raised; None when the service did not answer at all."""
    return error.__cause__ if isinstance(error.__cause__, ControlProblem) else None
