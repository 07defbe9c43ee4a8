"""A proxy between the two ends of links, which loses, repeats and cuts off single frames.

    connecting end ── Unix socket or TCP ──► FrameProxy ── the same ──► listener of a task

It is put in place by the answer to OpenLink, where `rewrite` writes its own addresses over the task's (CallProxy does
that). Descriptors that come with a first frame go along, so shared memory works across it as without. A frame is told
by what it says and of which call: "REQUEST RUN_STEP", "REPLY RUN_STEP", "NOTIFY PUSH", "PING". Each connection has two
threads, one for each direction.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import socket
import threading
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Self

from support.faults.fates import Script
from support.moments import PATIENCE
from tenfold_link.wire.calls import LinkCall
from tenfold_link.wire.frames import PREFIX, ROW, FrameKind
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from types import TracebackType

_READ = 1 << 16


class FrameFate(Enum):
    """What becomes of a frame, as a sentence."""

    SWALLOWED = "The frame never arrives; the link goes on."
    REPEATED = "The frame arrives twice."
    CUT_BEFORE = "The connection ends before the frame arrives."
    CUT_AFTER = "The frame arrives, and then the connection ends."


class _Piece(NamedTuple):
    """A whole frame as it came."""

    kind: FrameKind
    method: int
    call: int
    data: bytes


class _Pieces:
    """Cuts a stream into frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def take(self, data: bytes) -> list[_Piece]:
        self._data += data
        found: list[_Piece] = []
        while (size := self._size()) is not None and size <= len(self._data):
            _, kind, _, method, _, _, call = PREFIX.unpack_from(self._data)
            found.append(_Piece(FrameKind(kind), method, call, bytes(self._data[:size])))
            del self._data[:size]
        return found

    def _size(self) -> int | None:
        """Of the frame that comes next; None as long as its table is not there."""
        if len(self._data) < PREFIX.size:
            return None
        _, _, _, _, header, rows, _ = PREFIX.unpack_from(self._data)
        table = PREFIX.size + rows * ROW.size
        if len(self._data) < table:
            return None
        inline = (size for size, block, _ in ROW.iter_unpack(self._data[PREFIX.size : table]) if not block)
        return table + int(header) + sum(inline)


class _Connection:
    """One link through the proxy."""

    def __init__(self, connecting: socket.socket, listening: socket.socket, script: Script) -> None:
        self._ends, self._script = (connecting, listening), script
        #: By the end that made the call, its number → the call.
        self._calls: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._threads = [
            threading.Thread(target=self._pass_on, args=(number,), name="frame proxy", daemon=True) for number in (0, 1)
        ]
        for thread in self._threads:
            thread.start()

    def _pass_on(self, number: int) -> None:
        """What the end of that number says."""
        source, sink = self._ends[number], self._ends[1 - number]
        pieces = _Pieces()
        with contextlib.suppress(OSError):
            while True:
                fds: list[int] = []
                if source.family == socket.AF_UNIX:
                    data, fds, _, _ = socket.recv_fds(source, _READ, 4)
                else:
                    data = source.recv(_READ)
                if not data:
                    break
                for piece in pieces.take(data):
                    self._meet(piece, number, sink, fds)
                    for fd in fds:
                        os.close(fd)
                    fds = []
        self.cut()

    def _meet(self, piece: _Piece, number: int, sink: socket.socket, fds: list[int]) -> None:
        fate = self._script.fate_of(self._name(piece, number))
        if fate is FrameFate.CUT_BEFORE:
            self.cut()
        elif fate is not FrameFate.SWALLOWED:
            if fds:
                socket.send_fds(sink, [piece.data], fds)
            else:
                sink.sendall(piece.data * (2 if fate is FrameFate.REPEATED else 1))
        if fate is FrameFate.CUT_AFTER:
            self.cut(gently=True)
        if fate is not None:
            self._script.happened.set()

    def _name(self, piece: _Piece, number: int) -> str:
        kind, mine, theirs = piece.kind, self._calls[number], self._calls[1 - number]
        if kind is FrameKind.REQUEST:
            mine[piece.call] = piece.method
            return f"REQUEST {LinkCall(piece.method).name}"
        if kind is FrameKind.NOTIFY:
            return f"NOTIFY {LinkCall(piece.method).name}"
        if kind is FrameKind.CANCEL:
            return f"CANCEL {LinkCall(mine[piece.call]).name}"
        if kind in (FrameKind.REPLY, FrameKind.ERROR):
            return f"{kind.name} {LinkCall(theirs[piece.call]).name}"
        return kind.name

    def cut(self, *, gently: bool = False) -> None:
        """Ends both halves; `gently`: what was sent still arrives."""
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_WR if gently else socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        for thread in self._threads:
            thread.join(PATIENCE)
        for end in self._ends:
            end.close()


class FrameProxy:
    """Before the listener of one task; `with`. `script` says what it does, by the names of frames."""

    def __init__(self) -> None:
        self.script = Script()
        self._name = f"tenfold-proxy-{secrets.token_hex(8)}".encode()
        #: Where the task listens, once an answer has said so.
        self._unix, self._tcp = b"", 0
        self._connections: list[_Connection] = []
        self._doors: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def rewrite(self, body: bytes) -> bytes:
        """The answer to OpenLink, with the proxy in the place of the task."""
        answer = link_pb2.OpenLinkResponse.FromString(body)
        self._unix, self._tcp = answer.unix_name or self._unix, answer.tcp_port
        if answer.unix_name:
            answer.unix_name = self._name
        answer.tcp_port = self._doors[1].getsockname()[1]
        return answer.SerializeToString()

    def cut(self) -> None:
        """Ends all links that go through here."""
        for connection in list(self._connections):
            connection.cut()

    def __enter__(self) -> Self:
        unix, tcp = socket.socket(socket.AF_UNIX), socket.create_server(("127.0.0.1", 0))
        unix.bind(b"\0" + self._name)
        unix.listen()
        self._doors = [unix, tcp]
        self._threads = [threading.Thread(target=self._accept, args=(door,), daemon=True) for door in self._doors]
        for thread in self._threads:
            thread.start()
        return self

    def _accept(self, door: socket.socket) -> None:
        with contextlib.suppress(OSError):
            for _ in itertools.count():
                connecting, _ = door.accept()
                try:
                    listening = self._dial(door.family)
                except OSError:
                    connecting.close()
                    continue
                self._connections.append(_Connection(connecting, listening, self.script))

    def _dial(self, family: socket.AddressFamily) -> socket.socket:
        if family != socket.AF_UNIX:
            return socket.create_connection(("127.0.0.1", self._tcp), timeout=None)
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(b"\0" + self._unix)
        return sock

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for door in self._doors:
            with contextlib.suppress(OSError):
                door.shutdown(socket.SHUT_RDWR)
            door.close()
        for thread in self._threads:
            thread.join(PATIENCE)
        for connection in self._connections:
            connection.close()
