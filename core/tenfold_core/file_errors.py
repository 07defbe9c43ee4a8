"""What an operating system or a store says of a file, as the step's error. Used by whoever opens files.

The classes are those that TensorFlow's file systems choose (its platform/error.cc).
"""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLASSES: dict[int, type[errors.OpError]] = {
    errno.ENOENT: errors.NotFoundError,
    errno.ENOTDIR: errors.FailedPreconditionError,
    errno.EISDIR: errors.FailedPreconditionError,
    errno.EEXIST: errors.AlreadyExistsError,
    errno.EACCES: errors.PermissionDeniedError,
    errno.EPERM: errors.PermissionDeniedError,
    errno.EROFS: errors.FailedPreconditionError,
    errno.ENOSPC: errors.ResourceExhaustedError,
    errno.EDQUOT: errors.ResourceExhaustedError,
    errno.EMFILE: errors.ResourceExhaustedError,
    errno.ENAMETOOLONG: errors.InvalidArgumentError,
    errno.EINVAL: errors.InvalidArgumentError,
    errno.ENOSYS: errors.UnimplementedError,
    errno.ESTALE: errors.AbortedError,
    errno.EAGAIN: errors.UnavailableError,
    errno.ECONNREFUSED: errors.UnavailableError,
    errno.ECONNRESET: errors.UnavailableError,
    errno.EHOSTUNREACH: errors.UnavailableError,
    errno.ETIMEDOUT: errors.DeadlineExceededError,
}


def os_error(name: str, error: OSError) -> errors.OpError:
    """The step's error for what the operating system said of a file: TensorFlow's class and its `NAME; reason`."""
    kind = _CLASSES.get(error.errno or 0, errors.UnknownError)
    return kind(None, None, f"{name}; {error.strerror or error}")


@contextlib.contextmanager
def os_errors(name: str) -> Iterator[None]:
    """Turns an OSError of the block into the step's error about the file `name`."""
    try:
        yield
    except OSError as error:
        raise os_error(name, error) from None
    except ValueError as error:  # a name with a zero byte in it
        raise errors.InvalidArgumentError(None, None, f"{name!r}; {error}") from None
