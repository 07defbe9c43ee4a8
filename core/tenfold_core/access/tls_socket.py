"""TLS over a connected socket, with the calls that links and the HTTP/2 server make: it reads into given memory, and
sends in pieces. The standard library's SSLSocket does neither, and may not be read and written by two threads at once.

TLS itself is ssl.SSLObject's, between two memory buffers; only that part is under a lock. One thread reads and one
writes at a time, as with the plain socket. Whether it blocks is the socket's own affair. Contexts: tls.py.
"""

from __future__ import annotations

import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Bytes taken from the socket at a time, and bytes encrypted before they must have left.
_RECEIVE_BYTES, _SEND_BYTES = 256 << 10, 256 << 10


def tls_over(sock: socket.socket, context: ssl.SSLContext, server_hostname: str | None = None) -> socket.socket:
    """A TlsSocket, which has a socket's calls as far as links and the HTTP/2 server make them, as one."""
    return cast("socket.socket", TlsSocket(sock, context, server_hostname=server_hostname))


class TlsSocket:
    """`sock` from now on speaks TLS. The handshake is made by the first calls that read or send."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, server_hostname: str | None = None) -> None:
        """The accepting end without `server_hostname`, else the connecting end, which checks the server's name."""
        self._sock = sock
        self._came, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._came, self._leaving, server_side=server_hostname is None, server_hostname=server_hostname
        )
        self._lock = threading.Lock()
        #: Encrypted and not taken by the socket yet; guarded by _sending.
        self._rest: bytes | memoryview = b""
        self._sending = threading.Lock()
        #: Bytes of the next message that were encrypted when the socket was full: its writer brings them again.
        self._owed = 0
        self._greeted = False
        self.family = sock.family

    def __getattr__(self, name: str) -> Any:
        # options, names and time-outs are the socket's own
        return getattr(self._sock, name)

    @property
    def certificate(self) -> dict[str, Any] | None:
        """The peer's, once the handshake is over; None where it showed none."""
        return self._tls.getpeercert() if self._greeted else None

    @property
    def greeted(self) -> bool:
        """Whether the handshake is over. Before that nothing can be sent."""
        return self._greeted

    @property
    def waiting(self) -> bool:
        """Whether something was received that nothing has taken yet, maybe not a whole record: the system does not
        tell of that any more."""
        return self._came.pending > 0 or (self._greeted and self._tls.pending() > 0)

    @property
    def half_sent(self) -> bool:
        """Whether a message is encrypted in part, and not reported as sent: only its rest can follow."""
        return self._owed > 0

    # -- the handshake -----------------------------------------------------------------------------------------------

    def handshake(self) -> bool:
        """Goes on with the handshake by what has come; whether it is over. What it has to say is sent, as far as the
        socket takes it. Raises ssl.SSLError for a peer that is not trusted, and what the socket raises."""
        return self._greet()

    def hear(self) -> None:
        """Receives once, for the handshake. Raises BlockingIOError, and EOFError where the peer hung up."""
        data = self._sock.recv(_RECEIVE_BYTES)
        if not data:
            raise EOFError("it hung up during the handshake of TLS")
        self._came.write(data)

    def _greet(self) -> bool:
        if not self._greeted:
            try:
                with self._lock:
                    self._tls.do_handshake()
                self._greeted = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                self._send_alert()
                raise
            self._send_rest()
        return self._greeted

    def _send_alert(self) -> None:
        """Tells the peer why, if the socket takes it."""
        try:
            self._sock.send(self._leaving.read())
        except OSError:
            return

    # -- receiving ---------------------------------------------------------------------------------------------------

    def recv(self, size: int, flags: int = 0) -> bytes:
        """As a socket's."""
        space = bytearray(size)
        return bytes(space[: self.recv_into(space, 0, flags)])

    def recv_into(self, space: Any, nbytes: int = 0, flags: int = 0) -> int:
        """As a socket's: fewer bytes than `space` has are all that there were. Raises BlockingIOError, ssl.SSLError."""
        view = memoryview(space)
        if nbytes:
            view = view[:nbytes]
        while not (got := self._decrypted(view)):
            data = self._sock.recv(_RECEIVE_BYTES, flags)
            if data:
                self._came.write(data)
            elif not self._came.eof:
                self._came.write_eof()
            else:
                return 0
        return max(got, 0)

    def take(self, space: Any) -> int:
        """As `recv_into` of what was received before; 0 where that is not a whole record, or the end."""
        return max(0, self._decrypted(memoryview(space)))

    def recvmsg(self, size: int, ancillary: int = 0, flags: int = 0) -> tuple[bytes, list[Any], int, Any]:
        """As a socket's; descriptors never come."""
        return self.recv(size, flags), [], 0, None

    def recvmsg_into(self, spaces: Sequence[Any]) -> tuple[int, list[Any], int, Any]:
        """As a socket's."""
        total = 0
        for space in spaces:
            try:
                got = self.recv_into(space)
            except BlockingIOError:
                if not total:
                    raise
                break
            total += got
            if got < len(space):
                break
        return total, [], 0, None

    def _decrypted(self, view: memoryview) -> int:
        """What can be read now; 0: more must come first, -1: the end."""
        got = 0
        try:
            if not self._greet():
                return 0
            with self._lock:
                while got < len(view):
                    count = self._tls.read(len(view) - got, view[got:])
                    if not count:
                        return got or -1
                    got += int(count)
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            # as on a plain connection: what ends without a word has ended
            return got or -1
        except ssl.SSLError:
            self._send_alert()
            raise
        self._send_rest()
        return got

    # -- sending -----------------------------------------------------------------------------------------------------

    def send(self, data: Any, flags: int = 0) -> int:
        """As a socket's. After BlockingIOError the same data must be brought again."""
        return self.sendmsg([data], (), flags)

    def sendmsg(self, pieces: Sequence[Any], ancillary: Any = (), flags: int = 0) -> int:
        """As a socket's, without descriptors."""
        with self._sending:
            self._flush(flags)
            if self._owed:
                owed, self._owed = self._owed, 0
                return owed
            if not self._greeted:
                raise BlockingIOError("the handshake of TLS is not over")
            with self._lock:
                taken = self._encrypt(pieces)
                self._rest = self._leaving.read()
            self._owed = taken
            self._flush(flags)
            self._owed = 0
            return taken

    def _encrypt(self, pieces: Sequence[Any]) -> int:
        taken = 0
        for piece in pieces:
            view = memoryview(piece).cast("B")[: _SEND_BYTES - taken]
            at = 0
            while at < len(view):
                at += self._tls.write(view[at:])
            taken += at
            if taken >= _SEND_BYTES:
                break
        return taken

    def _flush(self, flags: int = 0) -> None:
        """Sends what is encrypted. Raises BlockingIOError with the rest kept."""
        while len(self._rest):
            sent = self._sock.send(self._rest, flags)
            self._rest = memoryview(self._rest)[sent:]
        self._rest = b""

    def _send_rest(self) -> None:
        """What TLS itself has to say (the handshake, keys), unless a message is being sent: it goes with that."""
        if not self._leaving.pending or not self._sending.acquire(blocking=False):
            return
        try:
            with self._lock:
                more = self._leaving.read()
            self._rest = bytes(self._rest) + more
            self._flush()
        except BlockingIOError:
            return  # the next message takes it along
        finally:
            self._sending.release()

    # -- the end -----------------------------------------------------------------------------------------------------

    def shutdown(self, how: int) -> None:
        """As a socket's, after a last word of TLS where it is the sending half that ends."""
        if how != socket.SHUT_RD and self._greeted:
            try:
                with self._lock:
                    self._tls.unwrap()
            except ssl.SSLError:
                pass
            self._send_rest()
        self._sock.shutdown(how)

    def close(self) -> None:
        """As a socket's."""
        self._sock.close()
