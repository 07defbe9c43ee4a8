"""The serving end of gRPC in a simulated world: what http2/server.py's Http2Server is there.

What Tenfold puts around a call is real: the gate, the tables of services, status and its words. Calls come from
grpc_channel.py, as messages of the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulated.inside import the_world
from tenfold_services.http2.handler import Failure

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from simulated.grpc_channel import SimulatedCall
    from tenfold_core.access.gate import Caller
    from tenfold_core.access.roles import Role


class SimulatedServer:
    """What serves gRPC on a port of the process in whose turn it is started."""

    def __init__(
        self, find: Callable[[str], Any], settings: Any = None, gate: Any = None, certificates: Any = None
    ) -> None:
        self._find, self._gate = find, gate
        self._running: dict[SimulatedCall, asyncio.Task[Any]] = {}
        self._port, self._stopped = 0, False

    async def start(self, host: str, port: int) -> int:
        self._network = the_world().network
        self.process = self._network.process_of_this_turn()
        self._port = port or self._network.new_port()
        if self._port in self._network.servers:
            raise OSError(98, "Address already in use")
        self._network.servers[self._port] = self
        return self._port

    async def stop(self, grace: float | None) -> None:
        """No new calls; those that run are cancelled."""
        self._stopped = True
        if self._network.servers.get(self._port) is self:
            del self._network.servers[self._port]
        for call, task in list(self._running.items()):
            task.cancel()
            call.answer(Failure(14, "GOAWAY received"))

    def serve(self, call: SimulatedCall) -> None:
        """In the process's turn: as http2/calls.py."""
        if self._stopped:
            call.answer(Failure(14, "GOAWAY received"))
            return
        handler = self._find(call.path)
        if handler is None:
            call.answer(Failure(12, "Method not found!"))
            return
        caller = self._gate.neighbour(("127.0.0.1", 1), ("127.0.0.1", self._port), 2)._replace(name=call.source)
        refused = self._gate.refusal(caller.role, handler.needs, call.path.strip("/"))
        if refused is not None:
            call.answer(Failure(refused.code, refused.message))
            return
        outcome = handler.begin(call.request, _Context(call, caller))
        if isinstance(outcome, (bytes, list, Failure)):
            call.answer(outcome)
            return
        task = self.process.loop.create_task(outcome, name=f"serve:{call.path}")
        self._running[call] = task
        if call.deadline is not None:
            self.process.loop.call_at(call.deadline, task.cancel)

        def over(done: asyncio.Task[Any]) -> None:
            self._running.pop(call, None)
            if not done.cancelled():
                call.answer(done.result())

        task.add_done_callback(over)

    def cancel(self, call: SimulatedCall) -> None:
        """The caller is gone."""
        task = self._running.get(call)
        if task is not None:
            task.cancel()


class _Context:
    """The part of a call's context that handlers use."""

    def __init__(self, call: SimulatedCall, caller: Caller) -> None:
        self._call, self._caller = call, caller

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        """Nobody looks at it here."""

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        self._call.trailing = tuple(trailing_metadata)

    def invocation_metadata(self) -> Any:
        return ()

    def time_remaining(self) -> float | None:
        return None if self._call.deadline is None else self._call.deadline - the_world().now

    def peer(self) -> str:
        return f"ipv4:127.0.0.1:{self._call.number}"

    def who(self) -> str:
        return self._caller.name

    def caller(self) -> Caller:
        return self._caller

    def role(self) -> Role:
        return self._caller.role
