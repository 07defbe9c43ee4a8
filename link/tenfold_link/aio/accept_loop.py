"""Accepts the connections of a port, as far as there are places, descriptors and, for strangers, time. One loop.

Used by listener.py, the HTTP/2 server, services/rpc/grpcio_port.py and tunnels. What a stranger sends costs far more
time than bytes, a refused call some 60 µs for ten bytes, and it can open another connection when the quota of one is
used up. So all strangers of a port share a part of the loop's time, and those who are known go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import deque
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.gate import NOBODY, Caller
from tenfold_core.access.peer_user import unmapped
from tenfold_core.access.roles import Role
from tenfold_core.open_files import Reserve
from tenfold_link.wire import sockets
from tenfold_link.wire.apart import apart

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.access.gate import Gate
    from tenfold_core.access.places import Places

Key = TypeVar("Key")

_log = logging.getLogger(__name__)

#: Seconds for accepting in one turn of the loop: the system tells again of those who still wait.
_TURN_SECONDS = 0.004
#: How long a socket rests after an accept that failed.
_AGAIN_SECONDS = 1.0


class StrangersTime:
    """A bucket of seconds that time fills and turns empty, and a queue of those who wait for it."""

    def __init__(self, share: float = 0.1, most: float = 0.004) -> None:
        """`share` of each second; `most` may be saved up."""
        self._loop, self._share, self._most = asyncio.get_running_loop(), share, most
        self._left, self._at = most, perf_counter()
        #: Turns that are due, in their order; while there are some, a timer runs.
        self._waiting: deque[Callable[[], None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def has_some(self) -> bool:
        """Whether a turn may begin now."""
        now = perf_counter()
        self._left, self._at = min(self._most, self._left + (now - self._at) * self._share), now
        return self._left > 0

    def spend(self, seconds: float) -> None:
        """A turn took so long."""
        self._left -= seconds

    def wait(self, turn: Callable[[], None], *, first: bool = False) -> None:
        """Has `turn()` called when there is some again, after those who wait already; or before them."""
        if first:
            self._waiting.appendleft(turn)
        else:
            self._waiting.append(turn)
        self._arm()

    def close(self) -> None:
        """Forgets who waits."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is None and self._waiting:
            self._timer = self._loop.call_later(max(0.001, -self._left / self._share), self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        while self._waiting and self.has_some():
            self._waiting.popleft()()
        self._arm()


class AcceptLoop(Generic[Key]):
    """Accepts at each socket that it is to `watch`, until `close`. A Key stands for a connection in `places`."""

    def __init__(
        self,
        port: str,
        gate: Gate | None,
        places: Places[Key],
        take: Callable[[socket.socket, Any, Caller], Key | None],
        *,
        limit: str,
        strangers: StrangersTime | None = None,
        full: Callable[[], str | None] = lambda: None,
        say_no_room: Callable[[socket.socket], None] = lambda sock: None,
        action: str = "connect",
    ) -> None:
        """`gate` tells who comes; without one, everybody is a stranger. `take(sock, address, caller)` has a connection
        that has a place: it does not block, raises OSError where the peer is gone, and gives None where it is over
        already. A key that is a task leaves its place when it ends. `full()` says why no stranger is taken; `limit`
        names the setting of `places`; `say_no_room` may tell who is sent away for want of descriptors."""
        self._port, self._gate, self._places, self._take = port, gate, places, take
        self._limit, self._strangers, self._full = limit, strangers or StrangersTime(), full
        self._say_no_room, self._action = say_no_room, action
        self._loop = asyncio.get_running_loop()
        self._reserve = Reserve(port, sockets.close)
        self.sockets: set[socket.socket] = set()

    def watch(self, *listening: socket.socket) -> None:
        """Accepts at these sockets, which listen and do not block; closes them in the end."""
        self.sockets.update(listening)
        for sock in listening:
            self._watch(sock)

    def close(self) -> None:
        """Accepts no more. Twice is no error."""
        for sock in self.sockets:
            self._loop.remove_reader(sock)
            if sock.family == socket.AF_UNIX:
                apart.close(sock.close)  # with it go all that wait there
            else:
                sock.close()
        self.sockets.clear()
        self._reserve.close()
        self._strangers.close()

    def _watch(self, listening: socket.socket) -> None:
        if listening in self.sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def _rest(self, listening: socket.socket) -> None:
        self._loop.remove_reader(listening)
        self._loop.call_later(_AGAIN_SECONDS, self._watch, listening)

    def _accept(self, listening: socket.socket) -> None:
        turn = began = perf_counter()
        while began - turn < _TURN_SECONDS:
            if not self._strangers.has_some():
                # they use up theirs: who comes waits with them, ahead of what they send
                self._loop.remove_reader(listening)
                self._strangers.wait(partial(self._watch, listening), first=True)
                return
            if listening.family == socket.AF_UNIX and not apart.has_room:
                self._rest(listening)
                return
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                sent_away = self._reserve.sent_away(listening, error, self._say_no_room)
                if sent_away is None:
                    self._rest(listening)
                if not sent_away:
                    return
            else:
                if self._let_in(sock, address):
                    self._strangers.spend(perf_counter() - began)
                    return  # a task that had to make room for it ends in the next turn
            began = perf_counter()

    def _let_in(self, sock: socket.socket, address: Any) -> bool:
        """Gives a connection its place, or closes it; whether it is a stranger's."""
        try:
            sock.setblocking(False)
            if sock.family == socket.AF_UNIX:
                host, caller = "", Caller(Role.ADMIN, f"user {sockets.owner(sock)}")
                if not sockets.is_own(sock):
                    caller = caller._replace(role=Role.NONE)
                    self._refuse(sock, address, caller, "a Unix socket of another user's")
                    return False
            else:
                host, caller = unmapped(address[0]), NOBODY if self._gate is None else self._gate.accepted(sock)
            group = host if caller is NOBODY else caller.name
            known = caller.role is not Role.NONE
            why = None if known else self._full()
            if why is None and (why := self._places.refusal(group, known=known)) is not None:
                why = f"{why} ({self._limit})"
            if why is not None:
                self._refuse(sock, address, caller, why)
            elif (key := self._take(sock, address, caller)) is not None:
                self._places.add(key, group, known=known)
                if isinstance(key, asyncio.Task):
                    key.add_done_callback(partial(self._ended, sock))
            return not known
        except OSError:
            sockets.close(sock)  # the peer is gone already
        except errors.ResourceExhaustedError:
            # nobody can be accepted without a file to ask the system with, which user it is
            with contextlib.suppress(OSError):
                self._say_no_room(sock)
            sockets.close(sock)
            self._reserve.tell()
        return False

    def _refuse(self, sock: socket.socket, address: Any, caller: Caller, why: str) -> None:
        level = logging.DEBUG if caller.role is Role.NONE else logging.WARNING
        name = shown(sock, address)
        _log.log(level, "%s: a connection from %s is refused: %s.", self._port, name, why)
        audit.refusals.note(caller, self._action, why, address=name)
        sockets.close(sock)

    def _ended(self, sock: socket.socket, key: Any) -> None:
        self._places.leave(key)
        if key.cancelled():
            sock.close()  # it may not have begun


def shown(sock: socket.socket, address: Any) -> str:
    """The address of the peer of `sock`, as gRPC writes it."""
    if sock.family == socket.AF_UNIX:
        return "its own machine"
    host = unmapped(address[0])
    return f"ipv6:[{host}]:{address[1]}" if ":" in host else f"ipv4:{host}:{address[1]}"
