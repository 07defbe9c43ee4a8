"""gRPC's headers: what a request's fields mean, and the fields of an answer. No I/O. Used by calls.py.

Source: gRPC's PROTOCOL-HTTP2.md; RFC 9113, section 8, for what a well-formed request is.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, NamedTuple

from .frame_types import Code, StreamFault
from .hpack import Field, encode

if TYPE_CHECKING:
    from .handler import Failure, Metadata
    from .hpack import FieldRun

_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])\Z")
_UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+\Z")
_BAD_VALUE = re.compile(rb"[\0\r\n]|\A[ \t]|[ \t]\Z")
#: Fields of HTTP/1 connections, which have no place here.
_OF_CONNECTIONS = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
_PSEUDO = frozenset({b":method", b":path", b":scheme", b":authority"})
#: Fields that are gRPC's own, and ours; handlers see the others.
_OWN = frozenset(
    b"content-type te grpc-timeout grpc-encoding grpc-accept-encoding grpc-message-type content-length authorization "
    b"tenfold-role".split()
)
_UNSAFE = re.compile(rb"[^\x20-\x24\x26-\x7e]")


class Head(NamedTuple):
    """A request's headers."""

    path: bytes
    #: Seconds; None without a deadline.
    timeout: float | None
    encoding: bytes
    #: Those of the caller.
    metadata: tuple[Field, ...]
    #: 200, or what to answer in place of a gRPC status to a peer that does not speak gRPC.
    status: int = 200
    #: The value of that header, which handlers do not see.
    authorization: str | None = None
    #: The role that the caller asks with, if that is to be a lesser one than its own.
    as_role: str | None = None


class _Begun:
    """What a run of fields says, whatever comes after it; kept with the run (hpack.FieldRun.meaning)."""

    __slots__ = ("found", "head", "metadata")

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.found, self.metadata = _read(fields, {}, ())
        #: What it means where nothing comes after it, once that was asked.
        self.head: Head | None = None


def head_of(run: FieldRun, fields: list[Field]) -> Head:
    """What a request's fields mean: those of `run`, and the others. Raises StreamFault for a malformed request."""
    begun: _Begun | None = run.meaning
    if begun is None:
        begun = run.meaning = _Begun(run.fields)
    if fields:
        return _head(*_read(fields, begun.found, begun.metadata))
    if begun.head is None:
        begun.head = _head(begun.found, begun.metadata)
    return begun.head


def _read(
    fields: tuple[Field, ...] | list[Field], found: dict[bytes, bytes], metadata: tuple[Field, ...]
) -> tuple[dict[bytes, bytes], tuple[Field, ...]]:
    """Fields by name and the caller's own, after those that were `found` before. Raises StreamFault."""
    found, own = dict(found), list(metadata)
    regular = bool(own) or not found.keys() <= _PSEUDO
    for name, value in fields:
        if name[:1] == b":":
            if regular or name in found or name not in _PSEUDO:
                raise StreamFault(Code.PROTOCOL_ERROR, "the pseudo-header fields are wrong")
            found[name] = value
            continue
        regular = True
        check_field(name, value)
        if name in _OWN:
            found[name] = value
        else:
            own.append((name, value))
    return found, tuple(own)


def _head(found: dict[bytes, bytes], metadata: tuple[Field, ...]) -> Head:
    """Raises StreamFault."""
    path, method = found.get(b":path", b""), found.get(b":method", b"")
    if not path or not method or b":scheme" not in found:
        raise StreamFault(Code.PROTOCOL_ERROR, "a request without method, scheme or path")
    status = 200
    if method != b"POST":
        status = 405
    elif not found.get(b"content-type", b"").startswith(b"application/grpc"):
        status = 415
    timeout = parse_timeout(found[b"grpc-timeout"]) if b"grpc-timeout" in found else None
    shown = found[b"authorization"].decode("latin-1") if b"authorization" in found else None
    as_role = found[b"tenfold-role"].decode("latin-1") if b"tenfold-role" in found else None
    return Head(path, timeout, found.get(b"grpc-encoding", b"identity"), metadata, status, shown, as_role)


def check_field(name: bytes, value: bytes) -> None:
    """Raises StreamFault for a field that no request and no trailers may have."""
    if not _NAME.match(name) or _BAD_VALUE.search(value) or name in _OF_CONNECTIONS:
        raise StreamFault(Code.PROTOCOL_ERROR, "a field that HTTP/2 does not allow")
    if name == b"te" and value != b"trailers":
        raise StreamFault(Code.PROTOCOL_ERROR, "a te field other than trailers")


def parse_timeout(value: bytes) -> float:
    """Seconds. Raises StreamFault."""
    match = _TIMEOUT.match(value)
    if match is None:
        raise StreamFault(Code.PROTOCOL_ERROR, "a malformed grpc-timeout")
    return int(match[1]) * _UNITS[match[2]]


def readable(metadata: tuple[Field, ...]) -> tuple[tuple[str, str | bytes], ...]:
    """The caller's fields as handlers see them: values of "-bin" fields decoded. What cannot be is left out."""
    out: list[tuple[str, str | bytes]] = []
    for name, value in metadata:
        if not name.endswith(b"-bin"):
            out.append((name.decode("ascii"), value.decode("latin-1")))
            continue
        for part in value.split(b","):
            try:
                out.append((name.decode("ascii"), base64.b64decode(part + b"=" * (-len(part) % 4), validate=True)))
            except (binascii.Error, ValueError):
                continue
    return tuple(out)


# -- answers -----------------------------------------------------------------------------------------------------------

#: The headers of an answer, and the trailers of one that went well, without metadata.
HEADERS = encode(((b":status", b"200"), (b"content-type", b"application/grpc")))
TRAILERS = encode(((b"grpc-status", b"0"),))


def failure(said: Failure, accepted: bytes = b"") -> bytes:
    """The trailers of a call that failed. `accepted` tells which encodings would have done."""
    block = encode(((b"grpc-status", b"%d" % said.code), (b"grpc-message", percent(said.text))))
    if accepted:
        block += encode(((b"grpc-accept-encoding", accepted),))
    return block + encoded(said.metadata)


def http_status(status: int) -> bytes:
    """The headers for a caller that does not speak gRPC."""
    return encode(((b":status", b"%d" % status), (b"content-length", b"0")))


def percent(text: str) -> bytes:
    """`text` as grpc-message has it: everything beyond printable ASCII percent-encoded."""
    return _UNSAFE.sub(lambda match: b"%%%02X" % match[0][0], text.encode(errors="replace"))


def encoded(metadata: Metadata) -> bytes:
    """What goes behind HEADERS or TRAILERS."""
    fields: list[Field] = []
    for name, value in metadata:
        raw = value.encode("utf-8") if isinstance(value, str) else value
        if name.endswith("-bin"):
            raw = base64.b64encode(raw).rstrip(b"=")
        fields.append((name.lower().encode("ascii"), raw))
    return encode(fields) if fields else b""
