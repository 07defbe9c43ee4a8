"""The calling end of gRPC in a simulated world: what `grpc.aio.insecure_channel` gives there.

A call's request and its answer are messages of network.py, each on a way of its own, so that calls overtake each other
as streams do. A lost connection fails the calls that are under way on it, whether they were served or not, with gRPC's
own texts. The other end is grpc_server.py.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from grpc import aio

from simulated.inside import the_world
from tenfold_services.http2.handler import Failure
from tenfold_services.rpc.status import STATUS_BY_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from simulated.grpc_server import SimulatedServer
    from simulated.world import Process

#: What a message that comes a second time may ask for: the rest is not sent twice, by gRPC or by who asks.
REPEATABLE = frozenset(
    ("GetStatus", "CleanupGraph", "CloseSession", "DeleteWorkerSession", "ExchangeFinished", "RunStep")
)


class SimulatedChannel:
    """A channel of the process in whose turn it was opened."""

    def __init__(self, address: str) -> None:
        self.network = the_world().network
        self.process = self.network.process_of_this_turn()
        self.port = int(address.rpartition(":")[2] or 0) if address else 0
        #: Calls that are under way, in order.
        self.calls: dict[SimulatedCall, None] = {}
        #: It failed to connect, and does not try again before this time.
        self.not_before, self.failures = 0.0, 0
        self.is_closed = False

    def unary_unary(self, path: str, request_serializer: Any = None, response_deserializer: Any = None) -> Any:
        def call(
            request: Any, timeout: float | None = None, wait_for_ready: bool | None = None, metadata: Any = None
        ) -> SimulatedCall:
            if self.is_closed:
                raise aio.UsageError("Channel is closed.")
            return SimulatedCall(self, path, request_serializer(request), response_deserializer, timeout)

        return call

    async def close(self, grace: float | None = None) -> None:
        self.is_closed = True
        for call in list(self.calls):
            call.cancel("Channel closed.")

    async def __aenter__(self) -> SimulatedChannel:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class SimulatedCall:
    """One call, from its client's end. `lost` and what else the network calls happens between turns."""

    def __init__(
        self, channel: SimulatedChannel, path: str, request: bytes, parse: Callable[[bytes], Any], timeout: float | None
    ) -> None:
        self._channel, self.path, self.request, self._parse = channel, path, request, parse
        network = self._network = channel.network
        world = self._world = network.world
        self.number = next(network._numbers)
        self.deadline = None if timeout is None else world.now + timeout
        self.process = channel.process
        self.trailing: tuple[Any, ...] = ()
        #: Whether its own deadline ended it.
        self.expired = False
        self._end: asyncio.Future[Any] = channel.process.loop.create_future()
        self.source, self.target = channel.process.host, network.hosts[channel.port]
        self._served_by: SimulatedServer | None = None
        self._timer = None
        channel.calls[self] = None
        network.calls[self] = None
        if timeout is not None:
            self._timer = channel.process.loop.call_later(timeout, self._expire)
        if world.now < channel.not_before:
            channel.process.loop.call_soon(self._fail, 14, "failed to connect: Connection refused")
            return
        network.post(self.source, self.target, self._arrive)
        if path.rpartition("/")[2] in REPEATABLE and world.repeats and world.chance.random() < world.repeats:
            world.note(f"repeat {path} {self.source} > {self.target}")
            network.post(self.source, self.target, self._arrive_again)

    # -- the client's end ----------------------------------------------------------------------------------------------

    def __await__(self) -> Generator[Any, None, Any]:
        return self._result().__await__()

    async def _result(self) -> Any:
        try:
            return await self._end
        except asyncio.CancelledError:
            # who waited is gone, and took the future along
            if self in self._network.calls:
                self._forget()
                self._tell_server()
            raise

    async def trailing_metadata(self) -> tuple[Any, ...]:
        return self.trailing

    def cancel(self, why: str = "Locally cancelled by application!") -> None:
        """Ends it, and lets the server know."""
        if not self._end.done():
            self._fail(1, why)
            self._tell_server()

    def _expire(self) -> None:
        if not self._end.done():
            self.expired = True
            self._fail(4, "Deadline Exceeded")
            self._tell_server()

    def _tell_server(self) -> None:
        server = self._served_by
        if server is not None:
            process = server.process

            def arrive() -> None:
                if process.alive:
                    process.loop.call_soon(server.cancel, self)

            self._network.post(self.source, self.target, arrive)

    def _fail(self, code: int, details: str) -> None:
        if self._end.done():
            return
        self._forget()
        failure = aio.AioRpcError(STATUS_BY_NUMBER[code], aio.Metadata(), aio.Metadata(), details, details)
        self._end.set_exception(failure)
        self._end.exception()  # who gave the call up does not look

    def _forget(self) -> None:
        self._channel.calls.pop(self, None)
        self._network.calls.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    # -- on its way ----------------------------------------------------------------------------------------------------

    def _arrive(self) -> None:
        server: SimulatedServer | None = self._network.servers.get(self._channel.port)
        if self._end.done() or not self.process.alive:
            return
        if server is None:
            self._network.post(self.target, self.source, self._refused)
            return
        self._served_by = server
        self._channel.failures = 0
        server.process.loop.call_soon(server.serve, self)

    def _arrive_again(self) -> None:
        """The same message once more, whose answer nobody hears."""
        server: SimulatedServer | None = self._network.servers.get(self._channel.port)
        if server is not None and self.process.alive:
            server.process.loop.call_soon(server.serve, _Echo(self))

    def _refused(self) -> None:
        channel = self._channel
        if self.process.alive and not self._end.done():
            channel.failures += 1
            channel.not_before = self._world.now + min(1.0, 0.1 * 1.6**channel.failures)
            self._in_client(14, "failed to connect to all addresses; last error: Connection refused")

    def answer(self, outcome: Any) -> None:
        """From the server's turn: the outcome sets off."""
        process = self._served_by.process if self._served_by is not None else None

        def arrive() -> None:
            if not self.process.alive or self._end.done() or self not in self._network.calls:
                return
            self.process.loop.call_soon(self._take, outcome)

        if process is not None:
            self._network.post(process.host, self.source, arrive)

    def _take(self, outcome: Any) -> None:
        if self._end.done():
            return
        if isinstance(outcome, Failure):
            self._fail(outcome.code, outcome.text)
            return
        self._forget()
        try:
            self._end.set_result(self._parse(b"".join(outcome) if isinstance(outcome, list) else outcome))
        except Exception as error:
            self._end.set_exception(error)

    def lost(self, why: str) -> None:
        """The connection broke: neither end hears more of the other."""
        self._network.calls.pop(self, None)
        self._in_client(14, why)
        if self._served_by is not None and self._served_by.process.alive:
            self._served_by.process.loop.call_soon(self._served_by.cancel, self)

    def _in_client(self, code: int, details: str) -> None:
        if self.process.alive:
            self.process.loop.call_soon(self._fail, code, details)

    def process_ended(self, process: Process) -> None:
        """One of its ends is gone: the other one hears of it when that comes through."""
        if process is self.process:
            self._forget()
            self._tell_server()
        elif self._served_by is not None and self._served_by.process is process:
            self._network.post(self.target, self.source, lambda: self.lost("Socket closed"))


class _Echo:
    """A repeated call, as the server sees it."""

    def __init__(self, call: SimulatedCall) -> None:
        self.path, self.request, self.deadline, self.number = call.path, call.request, call.deadline, call.number
        self.source = call.source
        self.trailing: tuple[Any, ...] = ()

    def answer(self, outcome: Any) -> None:
        """Nobody hears it."""
