"""The network of a simulated world: connections between processes, whose bytes come late, in pieces, or not at all.

One connection keeps its order, as TCP does; connections overtake each other. A cut resets connections, a partition
holds what is sent, one way or both, until it heals or the kernel gives the connection up. The ends of connections are
in sockets.py; gRPC's messages (grpc_channel.py) take the same ways by `post`.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
from typing import TYPE_CHECKING, Any

from simulated.sockets import SimulatedSocket

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulated.world import Process, World

#: Seconds after which a kernel gives up a connection over which nothing comes, where it was told to look.
_KEEPALIVE_SECONDS = 15.0


class Network:
    """Who hears whom. Hosts are names; a host's processes come and go."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._numbers = itertools.count(10_000)
        self._ports = itertools.count(30_000)
        self._sockets: dict[int, SimulatedSocket] = {}
        self.listeners: dict[int, SimulatedSocket] = {}
        #: What serves gRPC, by port: grpc_ends.SimulatedServer.
        self.servers: dict[int, Any] = {}
        #: Port → the host whose task has it.
        self.hosts: dict[int, str] = {}
        #: Calls over gRPC that are under way, in order.
        self.calls: dict[Any, None] = {}
        #: Directions in which nothing comes through: (from, to) → since when.
        self.blocked: dict[tuple[str, str], float] = {}
        #: What waits for the end of a partition, in order.
        self._held: dict[tuple[str, str], list[Callable[[], None]]] = {}
        #: Seconds that everything to or from a host takes more.
        self.slow: dict[str, float] = {}

    # -- ways -------------------------------------------------------------------------------------------------------

    def post(self, source: str, target: str, deliver: Callable[[], None], not_before: float = 0.0) -> float:
        """`deliver()` happens when a message has come from one host to another; when that is, unless it is held."""
        chance = self.world.chance.random
        delay = 0.0001 + 0.0004 * chance()
        if chance() < 0.05:
            delay += 0.05 * chance()
        if self.slow:
            delay += (self.slow.get(source, 0.0) + self.slow.get(target, 0.0)) * chance()
        when = max(self.world.now + delay, not_before)
        self.world.at(when, None, lambda: self._arrive(source, target, deliver))
        return when

    def _arrive(self, source: str, target: str, deliver: Callable[[], None]) -> None:
        if (source, target) in self.blocked:
            self._held.setdefault((source, target), []).append(deliver)
        else:
            deliver()

    def block(self, source: str, target: str) -> None:
        """From now on nothing comes through in this direction."""
        if (source, target) in self.blocked:
            return
        self.world.note(f"block {source} > {target}")
        began = self.blocked[source, target] = self.world.now
        for sock in list(self._sockets.values()):
            peer = sock.peer
            if peer is not None and {sock.process.host, peer.process.host} == {source, target} and sock.looks_for_life:
                self._give_up_later(sock, source, target, began)

    def _give_up_later(self, sock: SimulatedSocket, source: str, target: str, began: float) -> None:
        def look() -> None:
            if self.blocked.get((source, target)) == began:
                sock.fail(TimeoutError(errno.ETIMEDOUT, "Connection timed out"))

        self.world.after(_KEEPALIVE_SECONDS + self.world.chance.random(), "", look)

    def heal(self, source: str, target: str) -> None:
        """What was held comes now, in its order."""
        if self.blocked.pop((source, target), None) is None:
            return
        self.world.note(f"heal {source} > {target}")
        for deliver in self._held.pop((source, target), []):
            deliver()

    def cut(self, one: str, other: str) -> None:
        """Resets all connections between two hosts; what was on its way is lost."""
        self.world.note(f"cut {one} - {other}")
        for sock in list(self._sockets.values()):
            peer = sock.peer
            if peer is not None and sock.process.host == one and peer.process.host == other:
                for end in (sock, peer):
                    end.under_way.clear()
                    end.inbox.clear()
                    end.fail(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))
        for call in list(self.calls):
            if {call.source, call.target} == {one, other}:
                call.lost("Connection reset by peer")

    # -- connections -------------------------------------------------------------------------------------------------

    def process_of_this_turn(self) -> Process:
        loop: Any = asyncio.get_running_loop()
        process: Process = loop._process
        return process

    def new_number(self, sock: SimulatedSocket) -> int:
        number = next(self._numbers)
        self._sockets[number] = sock
        return number

    def new_port(self) -> int:
        return next(self._ports)

    def socket(self, fd: Any) -> SimulatedSocket:
        return self._sockets[fd] if isinstance(fd, int) else fd

    def connect(self, sock: SimulatedSocket, address: tuple[str, int], connected: asyncio.Future[None]) -> None:
        """Ends `connected` once the connection stands, or was refused."""
        source = sock.process
        listening = self.listeners.get(address[1])
        target = source.host if listening is None else listening.process.host

        def answer(result: SimulatedSocket | None) -> None:
            if not source.alive or connected.done():
                return
            if result is None:
                connected.set_exception(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))
            else:
                sock.peer = result
                connected.set_result(None)

        def arrive() -> None:
            now = self.listeners.get(address[1])
            made = None
            if now is not None and now is listening and now.backlog is not None and now.process.alive:
                made = self.world.within(now.process, SimulatedSocket)
                made.peer = sock
                now.backlog.append(made)
                now.process.loop.tell_readable(now)
            self.post(target, source.host, lambda: self.world.within(source, lambda: answer(made)))

        self.post(source.host, target, arrive)

    def carry(self, sock: SimulatedSocket, piece: bytes) -> None:
        """Sends a piece on its way to the other end."""
        peer = sock.peer
        assert peer is not None
        sock.under_way.append(piece)
        sock.unread += len(piece)

        def arrive() -> None:
            if not sock.under_way:
                return  # it was lost with its connection
            arrived = sock.under_way.popleft()
            sock.taken += len(arrived)
            peer.received += len(arrived)
            if peer.closed or not peer.process.alive:
                # the other end is gone: its kernel says so
                self.post(peer.process.host, sock.process.host, lambda: sock.fail(_reset()))
            elif peer.error is None:
                peer.inbox.append(arrived)
                peer.process.loop.tell_readable(peer)

        sock.arrives = self.post(sock.process.host, peer.process.host, arrive, sock.arrives)

    def was_read(self, sock: SimulatedSocket, count: int) -> None:
        """There is room again at the other end."""
        peer = sock.peer
        if peer is not None:
            peer.unread -= count
            peer.process.loop.tell_writable(peer)

    def closed(self, sock: SimulatedSocket) -> None:
        """The end of what a socket says comes after all of it."""
        self._sockets.pop(sock.fileno(), None)
        if sock.backlog is not None:
            if self.listeners.get(sock.port) is sock:
                del self.listeners[sock.port]
            for waiting in sock.backlog:
                waiting.close()
        peer = sock.peer
        if peer is not None and sock.error is None:
            self.carry(sock, b"")

    def process_ended(self, process: Process) -> None:
        """The kernel closes what a process had open."""
        for sock in list(self._sockets.values()):
            if sock.process is process:
                sock.close()
        for port, server in list(self.servers.items()):
            if server.process is process:
                del self.servers[port]
        for call in list(self.calls):
            call.process_ended(process)


def _reset() -> OSError:
    return ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
