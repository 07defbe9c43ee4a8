"""From a failed RPC to an `OpError` that names the target, the task and the reason.

The one place where the client maps gRPC's errors. Status codes and error classes share their numbers, so this module
mostly adds text: gRPC's "Deadline Exceeded" names neither the server nor the reason why it did not answer. Called by
grpc_master.py.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from tenfold.session.master_interface import SESSION_CLOSED
from tenfold_core import errors
from tenfold_core.open_files import TOLD

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc

#: Texts of gRPC itself, not of a server; they carry no information.
_BARE_DEADLINE = frozenset({"Deadline Exceeded", "", None})
_BARE_CANCEL = frozenset({"Channel closed!", "Locally cancelled by application!", "CANCELLED", "Cancelled", "", None})
_BARE_UNIMPLEMENTED = frozenset({"Method not found!", "", None})
_STREAM_REMOVED = "Stream removed"
#: TLS found bytes that were changed on the way, or has nothing to send with after it.
_CORRUPTED = ("Unwrap failed", "Wrap failed")
_LOCAL_REASONS = {
    "Deadline Exceeded": errors.DEADLINE_EXCEEDED,
    "Channel closed!": errors.CANCELLED,
    "Locally cancelled by application!": errors.CANCELLED,
}
#: Seconds for the one connection attempt that finds out why a server did not answer.
_PROBE_SECONDS = 1.0
#: And for what is said on it at once.
_SAYS_SECONDS = 0.25
_SILENT = "it accepts connections but sent no answer"


def from_rpc_error(
    error: grpc.RpcError,
    method: str,
    target: str,
    task: str | None,
    timeout: float | None,
    silent: Callable[[str], str] | None = None,
) -> errors.OpError:
    """The error of a call of `method` that ended with a gRPC status.

    `task` is the server's task name, if the server has sent it. After a passed deadline blocks up to a second, to find
    out whether anything listens at the address: `silent(target)`, by default why_silent, says why there was no answer.
    """
    code, details = _status(error)
    if details is not None and details.startswith(_STREAM_REMOVED):
        # The call ended here before gRPC knew its status; the reason is in parentheses.
        reason = details.removeprefix(_STREAM_REMOVED).strip(" ()")
        code = _LOCAL_REASONS.get(reason, errors.UNAVAILABLE)
        details = reason or details
    if code == errors.UNKNOWN and details is not None and any(text in details for text in _CORRUPTED):
        code = errors.UNAVAILABLE
    server = f"{target} ({task})" if task else target
    if code == errors.DEADLINE_EXCEEDED and details in _BARE_DEADLINE:
        waited = "its deadline" if timeout is None else f"{timeout:g} s"
        return errors.DeadlineExceededError(
            None, None, f"{method} on {server} was not answered within {waited}: {(silent or why_silent)(target)}"
        )
    if code == errors.CANCELLED and details in _BARE_CANCEL:
        return errors.CancelledError(None, None, SESSION_CLOSED)
    if code == errors.UNAVAILABLE and not _said_by_server(error):
        return errors.UnavailableError(
            None, None, f"{method} failed: the server at {server} cannot be reached or has died: {details}"
        )
    if code == errors.UNIMPLEMENTED and details in _BARE_UNIMPLEMENTED:
        return errors.UnimplementedError(None, None, f"The server at {server} does not serve {method}.")
    return errors.from_code(code, details or f"{method} on {server} failed without saying why")


def why_silent(target: str) -> str:
    """One clause on what happens when one connects to `target` now. Blocks for little more than a second."""
    host, _, port = target.removeprefix("grpc://").rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_SECONDS) as peer:
            return f"it sends connections away: {TOLD}" if _is_sent_away(peer) else _SILENT
    except socket.gaierror as error:
        return f"the host name {host!r} does not resolve ({error.strerror})"
    except ConnectionRefusedError:
        return "connection refused, no server listens at that address"
    except TimeoutError:
        return f"nothing answers a connection attempt within {_PROBE_SECONDS:g} s"
    except OSError as error:
        return f"it cannot be reached ({error.strerror or error})"


def _is_sent_away(peer: socket.socket) -> bool:
    """Whether the server says at once that it has no room for a connection. A server that has some says nothing of
    it, and is waited for a moment."""
    peer.settimeout(_SAYS_SECONDS)
    try:
        return TOLD.encode() in peer.recv(1024)
    except OSError:
        return False


def _said_by_server(error: grpc.RpcError) -> bool:
    """True if a Tenfold server ended the call with this status itself; its text is about another task."""
    trailing = getattr(error, "trailing_metadata", None)
    return trailing is not None and any(key == "tenfold-said" for key, _ in trailing() or ())


def _status(error: grpc.RpcError) -> tuple[int, str | None]:
    """Code and text of the status; a bare RpcError has neither."""
    code = getattr(error, "code", None)
    details = getattr(error, "details", None)
    if code is None or details is None:
        return errors.UNKNOWN, str(error)
    return int(code().value[0]), details()
