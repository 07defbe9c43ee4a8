"""Says what a session that is being created waits for: after five seconds, and then again and again.

Used by grpc_master.py around CreateSession and Reset, which wait for their server, and there for the other tasks of the
cluster. step_notices.py does it for steps.
What is said goes to the logger `tenfold.session` as a warning, so to stderr unless a program says otherwise.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any, Self

from tenfold.session.grpc_errors import why_silent
from tenfold_core import errors
from tenfold_core.help_links import HANGS, link
from tenfold_core.open_files import TOLD

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.access.channel import TokenChannel
    from tenfold_core.access.tls import Certificates
    from tenfold_protos.examine_pb2 import ExamineRequest, ExamineResponse

_log = logging.getLogger("tenfold.session")

#: Seconds of waiting before it is said for the first time, and until it is said again.
FIRST_S, AGAIN_S = 5.0, 15.0
#: Seconds for a server, and for each task that it dials, to answer a question.
_ASK_S = 1.0
#: Tasks that are named in one line.
_NAMED = 5
#: What an HTTP/2 client says first, with empty settings: a gRPC server answers with its own.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_METHOD = "/tenfold.ExamineService/Examine"


class WaitNotice:
    """`with WaitNotice(why): call()` says `why()` while the call lasts long. `why` may block, and is called by a thread
    of its own; it is not waited for."""

    def __init__(self, why: Callable[[], str], first: float | None = None, again: float | None = None) -> None:
        self._why = why
        self._first = FIRST_S if first is None else first
        self._again = AGAIN_S if again is None else again
        self._over = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._watch, name="tenfold-wait-notice", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        pause = self._first
        while not self._over.wait(pause):
            try:
                why = self._why()
            except Exception as error:  # it is told for information only
                why = f"{type(error).__name__}: {error}"
            if self._over.is_set():
                return
            _log.warning("waiting for %s (what to do: %s)", why, link(HANGS))
            pause = self._again


def why_waiting(
    target: str,
    channel: Callable[[], TokenChannel],
    certificates: Certificates | None = None,
    done: str = "created the session",
) -> str:
    """Who is waited for, and why, at "grpc://host:port" now; `certificates` are those of a connection by TLS. `done` is
    what it has not done yet. Blocks for some seconds at most."""
    reason = why_no_grpc(target) if certificates is None else why_no_tls(target, certificates)
    if reason is not None:
        return f"{target}: {reason}"
    missing = _unreached(channel())
    if missing:
        more = f", and {len(missing) - _NAMED} more tasks" if len(missing) > _NAMED else ""
        return f"{'; '.join(missing[:_NAMED])}{more} (says the server at {target})"
    return f"{target}: it answers, and has not {done} yet"


def why_no_tls(target: str, certificates: Certificates) -> str | None:
    """Why TLS with the server at `target` does not come about; None where it does."""
    host, _, port = target.removeprefix("grpc://").rpartition(":")
    host = host.strip("[]")
    try:
        context = certificates.client_context()
        with (
            socket.create_connection((host, int(port)), timeout=_ASK_S) as peer,
            context.wrap_socket(peer, server_hostname=host) as secure,
        ):
            # only what it says after the handshake tells whether it takes our certificate
            secure.sendall(_PREFACE)
            secure.recv(64)
    except errors.OpError as error:
        return str(error.message)
    except ssl.SSLCertVerificationError as error:
        return f"its certificate is not accepted here: {error.verify_message}"
    except ssl.SSLError as error:
        return f"it does not accept TLS from here: {(error.reason or str(error)).replace('_', ' ').lower()}"
    except OSError:
        return why_silent(target)
    return None


def why_no_grpc(target: str) -> str | None:
    """Why no gRPC server can be talked to at `target`; None where one answers."""
    host, _, port = target.removeprefix("grpc://").rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_ASK_S) as peer:
            peer.sendall(_PREFACE)
            said = peer.recv(1024)
    except (ConnectionResetError, BrokenPipeError):
        said = b""
    except OSError:
        return why_silent(target)
    if said.startswith((b"HTTP/", b"<!DOCTYPE", b"<html")):  # some servers answer an unknown version with a bare page
        line = said.splitlines()[0].decode("latin-1")
        return (
            f"an HTTP server answers at that port, not gRPC ({line!r}). A session's target is the address of a task; a "
            "control service is named by tenfold://host:port/cluster"
        )
    if said[:1] in (b"\x15", b"\x16"):
        return "the server at that port speaks TLS, which a plain grpc:// target does not"
    if TOLD.encode() in said:
        return f"the server at that port sends connections away: {TOLD}"
    if not said:
        return "the server at that port closes connections at once; it may speak TLS, or is no gRPC server"
    if said[3:4] != b"\x04":
        return f"what answers at that port is no gRPC server (it says {said[:16]!r})"
    return None


def waits_of(channel: TokenChannel, handle: str, timeout: float) -> list[str]:
    """What the steps of a session wait for, on any task of its cluster; nothing if the server is not Tenfold's, or does
    not answer within `timeout` seconds, for which this blocks at most."""
    from tenfold_protos.examine_pb2 import ExamineRequest

    answer = _examined(channel, ExamineRequest(waits_of_session=handle, cluster=True, seconds=_ASK_S), timeout)
    return [] if answer is None else list(answer.wait)


def _examined(channel: TokenChannel, request: ExamineRequest, timeout: float) -> ExamineResponse | None:
    import grpc

    from tenfold_protos.examine_pb2 import ExamineRequest, ExamineResponse

    call: Any = channel.unary_unary(
        _METHOD,
        request_serializer=ExamineRequest.SerializeToString,
        response_deserializer=ExamineResponse.FromString,
    )
    try:
        found: ExamineResponse = call(request, timeout=timeout)
    except grpc.RpcError:
        return None
    return found


def _unreached(channel: TokenChannel) -> list[str]:
    """The tasks that the server does not reach, each with why; none for a server that is not Tenfold's."""
    from tenfold_protos.examine_pb2 import ExamineRequest

    answer = _examined(channel, ExamineRequest(seconds=_ASK_S, cluster=True), 5 * _ASK_S)
    if answer is None:
        return []
    return [
        f"{each.task} at {each.address}: {each.error}" if each.address else f"{each.task}: {each.error}"
        for each in answer.peer
        if each.error
    ]
