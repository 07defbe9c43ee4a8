"""The exceptions of a step: one tree, one class a canonical status code.

    OpError
    ├── CancelledError 1          ├── ResourceExhaustedError 8   ├── InternalError 13
    ├── UnknownError 2            ├── FailedPreconditionError 9  ├── UnavailableError 14
    ├── InvalidArgumentError 3    ├── AbortedError 10            ├── DataLossError 15
    ├── DeadlineExceededError 4   ├── OutOfRangeError 11         └── UnauthenticatedError 16
    ├── NotFoundError 5           └── UnimplementedError 12
    ├── AlreadyExistsError 6
    └── PermissionDeniedError 7

The codes are gRPC's own numbers. Errors become data (code and message) at the RPC boundary and exceptions again
at the other end through `from_code`. Names follow tf.errors.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16

_NODE_REFERENCE = re.compile(r"\{\{node ([^}]+)\}\}")


class OpError(Exception):
    """A step, or the call that was to prepare one, failed.

    `code` is the canonical status code, `message` the text without decoration. `node_def` and `op` name the failing
    node where one is known; `op` is filled by the session, which alone has the client's graph.
    """

    code: int = UNKNOWN

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int | None = None) -> None:
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message
        if error_code is not None:
            self.code = error_code

    @property
    def error_code(self) -> int:
        """The canonical status code, TensorFlow's name for `code`."""
        return self.code

    @property
    def node_name(self) -> str | None:
        """The node named in the message as `{{node NAME}}`, or None."""
        found = _NODE_REFERENCE.search(self.message)
        return found.group(1) if found else None

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Graph objects do not travel between processes; code and text do.
        return from_code, (self.code, self.message)


class CancelledError(OpError):
    """The step was cancelled: by the client, or because the session closed."""

    code = CANCELLED

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "The operation was cancelled.") -> None:
        super().__init__(node_def, op, message)


class UnknownError(OpError):
    """An error of no canonical class."""

    code = UNKNOWN


class InvalidArgumentError(OpError):
    """An argument, a shape, a graph is wrong whatever the state of the system."""

    code = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """A deadline passed before the work was done."""

    code = DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """A named thing does not exist."""

    code = NOT_FOUND


class AlreadyExistsError(OpError):
    """A thing that was to be made exists."""

    code = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The caller is known and may not do this."""

    code = PERMISSION_DENIED


class ResourceExhaustedError(OpError):
    """Memory, a bound or a quota is used up."""

    code = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """The system is not in the state that this needs, e.g. a variable was not initialised."""

    code = FAILED_PRECONDITION


class AbortedError(OpError):
    """The work was given up, e.g. because a task restarted; a new session may succeed."""

    code = ABORTED


class OutOfRangeError(OpError):
    """The input is past its end, e.g. a closed and empty queue."""

    code = OUT_OF_RANGE


class UnimplementedError(OpError):
    """The operation or method exists and is not served here."""

    code = UNIMPLEMENTED


class InternalError(OpError):
    """An invariant of the runtime itself is broken."""

    code = INTERNAL


class UnavailableError(OpError):
    """A task cannot be reached now; trying again may help."""

    code = UNAVAILABLE


class DataLossError(OpError):
    """Stored data is damaged beyond repair."""

    code = DATA_LOSS


class UnauthenticatedError(OpError):
    """The caller did not authenticate itself."""

    code = UNAUTHENTICATED


#: Makers of errors that are no node's, as most of the runtime's own are: `errors.unavailable("…")`.
cancelled = partial(CancelledError, None, None)
unknown = partial(UnknownError, None, None)
invalid_argument = partial(InvalidArgumentError, None, None)
deadline_exceeded = partial(DeadlineExceededError, None, None)
not_found = partial(NotFoundError, None, None)
already_exists = partial(AlreadyExistsError, None, None)
permission_denied = partial(PermissionDeniedError, None, None)
resource_exhausted = partial(ResourceExhaustedError, None, None)
failed_precondition = partial(FailedPreconditionError, None, None)
aborted = partial(AbortedError, None, None)
out_of_range = partial(OutOfRangeError, None, None)
unimplemented = partial(UnimplementedError, None, None)
internal = partial(InternalError, None, None)
unavailable = partial(UnavailableError, None, None)
data_loss = partial(DataLossError, None, None)

_CLASSES: dict[int, type[OpError]] = {
    cls.code: cls
    for cls in (
        CancelledError,
        UnknownError,
        InvalidArgumentError,
        DeadlineExceededError,
        NotFoundError,
        AlreadyExistsError,
        PermissionDeniedError,
        ResourceExhaustedError,
        FailedPreconditionError,
        AbortedError,
        OutOfRangeError,
        UnimplementedError,
        InternalError,
        UnavailableError,
        DataLossError,
        UnauthenticatedError,
    )
}

_NAMES: dict[int, str] = {OK: "OK"} | {
    code: re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).upper() for code, cls in _CLASSES.items()
}


def exception_type_from_error_code(code: int) -> type[OpError]:
    """The class of a canonical code. Raises KeyError for OK and for numbers that are no code."""
    return _CLASSES[code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """The canonical code of a class of this tree."""
    return cls.code


def from_code(code: int, message: str, node_def: Any = None, op: Any = None) -> OpError:
    """Makes the exception of a canonical code; a number that is no code becomes UnknownError with that number."""
    cls = _CLASSES.get(code)
    if cls is None:
        return UnknownError(node_def, op, message, code)
    return cls(node_def, op, message)


def as_op_error(error: BaseException) -> OpError:
    """The error itself; of any other exception, which is a defect, an InternalError."""
    return error if isinstance(error, OpError) else internal(f"{type(error).__name__}: {error}")


def forget_frames(error: BaseException) -> None:
    """Lets `error`, and what caused it, go of the frames that it came through.

    An exception that is kept, or that is part of a cycle, keeps them and with them every array that they hold. For
    errors that have become data, or are about to be kept.
    """
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        found = pending.pop()
        if found is not None and id(found) not in seen:
            seen.add(id(found))
            found.__traceback__ = None
            pending += (found.__cause__, found.__context__)


def code_name(code: int) -> str:
    """`UNAVAILABLE` for 14; `CODE_99` for a number that is no code."""
    return _NAMES.get(code, f"CODE_{code}")
