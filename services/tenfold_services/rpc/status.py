"""The one place where an OpError becomes a gRPC status, and a failed call an OpError again.

Codes are the same numbers on both sides. A status travels in HTTP/2 metadata, of which peers take 16 KB at most, so its
message is bounded; the response body of RunStep and RunGraph carries it in full.
"""

from __future__ import annotations

from itertools import accumulate, takewhile
from typing import Any

import grpc

from tenfold_core import errors
from tenfold_core.open_files import TOLD

from ..limits import DEFAULT_LIMITS

#: The gRPC library's names of the codes.
STATUS_BY_NUMBER: dict[int, Any] = {code.value[0]: code for code in grpc.StatusCode}
_CUT = " […] "


def status_message(message: str, limit: int = DEFAULT_LIMITS.status_message_bytes) -> str:
    """`message` in at most `limit` bytes: where it is longer, the middle goes, as the node's name stands at the end.

    gRPC percent-encodes everything outside printable ASCII, three bytes for one.
    """
    if _wire_size(message) <= limit:
        return message
    half = max(1, (limit - 2 * len(_CUT) * 3) // 2)
    return _prefix(message, half) + _CUT + _prefix(message[::-1], half)[::-1]


def _wire_size(text: str) -> int:
    return sum(1 if 0x20 <= byte < 0x7F and byte != 0x25 else 3 for byte in text.encode())


def _prefix(text: str, limit: int) -> str:
    """As many characters of `text` as take up `limit` bytes on the wire."""
    sizes = accumulate(map(_wire_size, text))
    return text[: sum(1 for _ in takewhile(lambda size: size <= limit, sizes))]


def from_rpc_error(error: Any, task: str, address: str, method: str) -> errors.OpError:
    """The error of a call to another task's worker.

    What the task itself answered stays as it is; what the transport has to say names the task, the address and why.
    """
    code, details = error.code(), error.details() or ""
    number = int(code.value[0])
    if details.startswith("Stream removed ("):
        # it ended here before gRPC knew its status; the reason is in parentheses
        details = details.removeprefix("Stream removed (").removesuffix(")")
    broken = "RST_STREAM" in details or details == "Stream removed" or any(text in details for text in _CORRUPTED)
    if code is grpc.StatusCode.UNAVAILABLE or broken:
        if task in details:
            return errors.unavailable(details)
        return errors.unavailable(f"{task} at {address} cannot be reached: {reason(details)} ({method}).")
    if code is grpc.StatusCode.DEADLINE_EXCEEDED and details in ("", "Deadline Exceeded"):
        return errors.deadline_exceeded(f"{task} at {address} did not answer {method} in time.")
    if code is grpc.StatusCode.CANCELLED and not details.startswith("Step"):
        return errors.cancelled(f"{method} at {task} was cancelled: {details}")
    if code is grpc.StatusCode.UNIMPLEMENTED and details in ("", "Method not found!"):
        return errors.unimplemented(f"{task} at {address} does not serve {method}.")
    return errors.from_code(number, details)


#: What gRPC says, with UNKNOWN, where TLS found bytes that were changed on the way, or cannot send after it did.
_CORRUPTED = ("Unwrap failed", "Wrap failed")
#: What gRPC's texts contain → what it means. First match counts.
_REASONS = (
    ("Too many open files", "this process may open no more files and sockets (EMFILE, RLIMIT_NOFILE)"),
    (TOLD, TOLD),
    ("Connection refused", "connection refused, no server listens there"),
    ("DNS resolution failed", "its host name cannot be resolved"),
    ("address lookup failed", "its host name cannot be resolved"),
    ("Name or service not known", "its host name cannot be resolved"),
    ("No route to host", "no route to its host"),
    ("Network is unreachable", "its network is unreachable"),
    ("Host is unreachable", "its host is unreachable"),
    ("Connection timed out", "its host does not answer"),
    ("FD shutdown", "the connection was given up"),
    ("GOAWAY", "it is shutting down"),
    ("Socket closed", "the connection broke, its process ended"),
    ("Connection reset", "the connection broke, its process ended"),
    ("Broken pipe", "the connection broke, its process ended"),
    ("recvmsg", "the connection broke, its process ended"),
    *((text, "the connection broke, its bytes were changed on the way") for text in _CORRUPTED),
    ("RST_STREAM", "the connection broke, its process ended"),
    ("Stream removed", "the connection broke, its process ended"),
)


def reason(details: str) -> str:
    """gRPC's words in ours, with its own behind them where they say more."""
    for text, meaning in _REASONS:
        if text in details:
            return meaning
    return details or "no reason given"
