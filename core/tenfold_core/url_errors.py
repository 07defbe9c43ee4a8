"""What the libraries of stores raise, as an OSError with a number and a reason; and which of it is worth another try.

Each library has exceptions of its own, and fsspec's file systems raise OSErrors without a number. They are known here
by the names of their classes, so that nothing is imported. Used by url_files.py and url_streams.py.
"""

from __future__ import annotations

import errno
import os
import random
import time
from typing import TYPE_CHECKING, TypeVar

from tenfold_core.file_names import row

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

#: Seconds in which a call is tried again. The libraries' own time-outs bound one try: 5 to connect, 15 to read (s3fs).
DEADLINE = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0

_NO_CREDENTIALS = {
    *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "TokenRetrievalError"),
    *("ProfileNotFound", "DefaultCredentialsError", "RefreshError", "NoAuthTokenError", "SSOTokenLoadError"),
}
_UNREACHABLE = {
    *("EndpointConnectionError", "ConnectTimeoutError", "ConnectionClosedError", "ConnectionError", "HTTPClientError"),
    *("ProxyConnectionError", "ClientConnectorError", "ClientConnectionError", "ClientOSError", "ClientPayloadError"),
    *("ServerDisconnectedError", "ResponseStreamingError", "IncompleteReadError", "TransportError", "SSLError"),
}
_TOO_SLOW = {"ReadTimeoutError", "ServerTimeoutError", "FSTimeoutError"}
#: The file was replaced while it was read.
_EXPIRED = {"FileExpired"}

_BY_CLASS: dict[type[OSError], int] = {
    FileNotFoundError: errno.ENOENT,
    FileExistsError: errno.EEXIST,
    PermissionError: errno.EACCES,
    IsADirectoryError: errno.EISDIR,
    NotADirectoryError: errno.ENOTDIR,
    TimeoutError: errno.ETIMEDOUT,
    ConnectionError: errno.EHOSTUNREACH,
}
#: By the status of an HTTP answer, for what gcsfs raises.
_BY_STATUS = {400: errno.EINVAL, 401: errno.EACCES, 403: errno.EACCES, 404: errno.ENOENT, 412: errno.ESTALE}
_BUSY = (errno.EBUSY, errno.EREMOTEIO)
_TRANSIENT = {
    *(errno.EAGAIN, errno.ETIMEDOUT, errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE),
    *(errno.EHOSTUNREACH, errno.ENETUNREACH),
}


def as_os_error(url: str, error: Exception) -> OSError:
    """The error of a library as an OSError with `errno` and `strerror`."""
    names = {kind.__name__ for kind in type(error).__mro__}
    text = str(error) or type(error).__name__
    if names & _EXPIRED:
        return OSError(errno.ESTALE, "it was replaced while it was read")
    if names & _NO_CREDENTIALS:
        return _refused(url, f"no credentials: {text}")
    if names & _TOO_SLOW:
        return OSError(errno.ETIMEDOUT, text)
    if isinstance(error, OSError):
        return _numbered(url, error)
    if names & _UNREACHABLE:
        return OSError(errno.EHOSTUNREACH, text)
    status = getattr(error, "code", getattr(error, "status", None))
    if isinstance(status, str) and status.isdecimal():
        status = int(status)
    if isinstance(status, int):
        busy = status == 429 or status >= 500
        number = errno.EAGAIN if busy else _BY_STATUS.get(status, errno.EIO)
        return _refused(url, text) if number == errno.EACCES else OSError(number, text)
    if isinstance(error, ImportError):
        return OSError(errno.ENOSYS, f"a library of this file system is not installed: {text}")
    if isinstance(error, NotImplementedError):
        return OSError(errno.ENOSYS, f"this file system cannot do that ({text})")
    if isinstance(error, (ValueError, TypeError)) or "ParamValidationError" in names:
        return OSError(errno.EINVAL, text)
    return OSError(errno.EIO, f"{type(error).__name__}: {text}")


def _numbered(url: str, error: OSError) -> OSError:
    number = error.errno
    reason = error.strerror
    if number is None:
        number = next((code for kind, code in _BY_CLASS.items() if isinstance(error, kind)), errno.EIO)
        told = str(error.args[0]) if error.args else ""
        # some tell the name only, which whoever reads the error has already
        reason = told if told and told.strip("/") not in url and "/" not in told.partition(" ")[0] else ""
    if number in _BUSY:
        number = errno.EAGAIN
    reason = reason or os.strerror(number)
    if number in (errno.EACCES, errno.EPERM):
        return _refused(url, reason)
    return OSError(number, reason)


def _refused(url: str, reason: str) -> OSError:
    where = row(url).credentials
    hint = f" (credentials come from {where})" if where else ""
    return OSError(errno.EACCES, f"{reason.rstrip('.')}{hint}")


def attempt(url: str, call: Callable[[], T]) -> T:
    """What `call` returns, tried again with growing pauses while the store is busy or out of reach, for DEADLINE.

    `call` may be repeated without harm. Raises OSError.
    """
    begin = time.monotonic()
    pause, tries = _FIRST_PAUSE, 0
    while True:
        tries += 1
        try:
            return call()
        except Exception as error:
            found = as_os_error(url, error)
            spent = time.monotonic() - begin
            if found.errno not in _TRANSIENT or spent + pause > DEADLINE:
                more = f" ({tries} tries in {spent:.0f} s)" if tries > 1 else ""
                raise OSError(found.errno, f"{found.strerror}{more}", url) from error
        time.sleep(pause * random.uniform(0.5, 1))
        pause = min(2 * pause, _LONGEST_PAUSE)
