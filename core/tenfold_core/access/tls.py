"""Certificates: the PEM files of a process, the contexts made of them, and the role that a peer's certificate gives.

Both ends show one: the accepting end may also accept a peer without, which then shows a token. The files are looked at
again for each new connection, so that certificates are changed without a restart. `tenfold certs new` makes them.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_core.access.roles import Role, role_named
from tenfold_core.loopback import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_log = logging.getLogger(__name__)

#: The first byte of a TLS connection: a handshake record.
FIRST_BYTE = 0x16
#: Read at most: of one PEM file.
_FILE_BYTES = 1 << 20


class Certificates:
    """The contents of a process's PEM files, as they are now. Any thread."""

    def __init__(self, cert: str | None, key: str | None, ca: str | None, *, always: bool = False) -> None:
        """PEM files: this process's certificate (and those between it and the authority), its key, and the authorities
        whose certificates count. `always` also speaks TLS with addresses of this machine. Raises InvalidArgumentError
        naming the variable or the file that is missing or wrong."""
        self._always = always
        given = {"TENFOLD_TLS_CERT": cert, "TENFOLD_TLS_KEY": key, "TENFOLD_TLS_CA": ca}
        missing = [name for name, path in given.items() if path is None]
        if missing:
            raise errors.invalid_argument(f"TLS needs {' and '.join(given)}; {' and '.join(missing)} is not set.")
        self._paths = [str(path) for path in given.values()]
        self._lock = threading.Lock()
        self._seen: list[Any] = []
        self._contents: tuple[bytes, bytes, bytes] = (b"", b"", b"")
        self._contexts: dict[tuple[bool, str], ssl.SSLContext] = {}
        #: Those that fitted last: what they are followed by may not.
        self._good: dict[tuple[bool, str], ssl.SSLContext] = {}
        self.server_context()

    def wanted_at(self, address: str) -> bool:
        """Whether a connection to `address`, "host:port", is made with TLS."""
        return self._always or not is_loopback(host_of(address))

    def contents(self) -> tuple[bytes, bytes, bytes]:
        """Certificate, key and authorities, for libraries that take them so."""
        with self._lock:
            self._look()
            return self._contents

    def server_context(self, protocol: str = "h2") -> ssl.SSLContext:
        """For accepting: a peer's certificate must be an authority's, and may be absent. `protocol` is ALPN's name of
        what is spoken then. Of files that do not fit each other any more those before count, which the log tells."""
        return self._context(True, protocol)

    def client_context(self, protocol: str = "h2") -> ssl.SSLContext:
        """For connecting: the server's certificate must be an authority's, and have the name that was dialled."""
        return self._context(False, protocol)

    def _context(self, server: bool, protocol: str) -> ssl.SSLContext:
        key = (server, protocol)
        with self._lock:
            self._look()
            found = self._contexts.get(key)
            if found is None:
                try:
                    found = self._good[key] = self._made(server, protocol)
                except errors.InvalidArgumentError as error:
                    if key not in self._good:
                        raise
                    _log.warning("%s Those before stay in use.", error.message)
                    found = self._good[key]
                self._contexts[key] = found
            return found

    def _made(self, server: bool, protocol: str) -> ssl.SSLContext:
        cert, key, ca = self._paths
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols([protocol])
        if server:
            context.verify_mode = ssl.CERT_OPTIONAL
            # connections last; a ticket that nobody reads would break the one that it comes over
            context.num_tickets = 0
        try:
            context.load_cert_chain(cert, key)
            context.load_verify_locations(cafile=ca)
        except (OSError, ssl.SSLError) as error:
            raise errors.invalid_argument(f"the certificates {cert}, {key} and {ca} do not fit: {error}.") from None
        return context

    def _look(self) -> None:
        """Reads the files again if they have changed. Under the lock."""
        seen: list[Any] = []
        try:
            for path in self._paths:
                state = os.stat(path)
                seen.append((state.st_mtime_ns, state.st_size, state.st_ino))
            if seen == self._seen:
                return
            contents = [_read(path) for path in self._paths]
        except OSError as error:
            if self._seen:
                return  # as they were, until they can be read again
            raise errors.invalid_argument(f"a file of TLS cannot be read: {error}.") from None
        self._seen, self._contents = seen, (contents[0], contents[1], contents[2])
        self._contexts.clear()


class FreshContext(ssl.SSLContext):
    """A context for libraries that take one for good: each connection is made with the one that `current` gives then,
    so that certificates are changed under way."""

    current: Callable[[], ssl.SSLContext]

    @classmethod
    def of(cls, current: Callable[[], ssl.SSLContext], *, server: bool) -> FreshContext:
        """Raises what `current` raises, now and with each connection."""
        made = cls(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        made.current = current
        current()
        return made

    def wrap_bio(self, *args: Any, **keywords: Any) -> ssl.SSLObject:
        """As the current context's."""
        return self.current().wrap_bio(*args, **keywords)

    def wrap_socket(self, *args: Any, **keywords: Any) -> ssl.SSLSocket:
        """As the current context's."""
        return self.current().wrap_socket(*args, **keywords)


def trusting(ca: str | None, protocol: str = "h2") -> ssl.SSLContext:
    """For connecting without a certificate of one's own, to servers of the authorities in this PEM file; None: of those
    that the system trusts. Raises InvalidArgumentError."""
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise errors.invalid_argument(f"TENFOLD_TLS_CA, {ca}, cannot be used: {error}.") from None
    context.set_alpn_protocols([protocol])
    return context


def role_of(certificate: Mapping[str, Any] | None) -> Role:
    """What a peer with this certificate, one that was verified, may do: the role in its organizational unit, else that
    of a task. `certificate` is SSLObject.getpeercert()'s."""
    if not certificate:
        return Role.NONE
    for part in certificate.get("subject", ()):
        for name, value in part:
            if name == "organizationalUnitName":
                try:
                    return role_named(str(value))
                except ValueError:
                    return Role.NONE
    return Role.REGISTER


def name_of(certificate: Mapping[str, Any]) -> str:
    """The common name in a certificate."""
    return next(
        (str(value) for part in certificate.get("subject", ()) for name, value in part if name == "commonName"), ""
    )


def reason_of(error: ssl.SSLError) -> str:
    """Why a handshake failed, in words: "its certificate is not good: certificate has expired"."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not good: {error.verify_message}"
    return (error.reason or str(error)).lower().replace("_", " ")


def host_of(address: str) -> str:
    """The host of "host:port", as certificates name it."""
    return address.rpartition(":")[0].strip("[]") or "localhost"


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(_FILE_BYTES)
