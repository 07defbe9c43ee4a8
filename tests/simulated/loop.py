"""The event loop of one simulated process: asyncio's promises, with the world's time, and run by the world (world.py).

What was called soon runs in that order, as in asyncio; which process goes on next is the world's to choose. A process
that was killed has a loop that takes nothing more.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from typing import TYPE_CHECKING, Any

from simulated.boundary import LeftTheSimulationError

if TYPE_CHECKING:
    import contextvars
    import socket
    from collections.abc import Callable

    from simulated.sockets import SimulatedSocket
    from simulated.world import Process, World


class _Future(asyncio.Future[Any]):
    """Sets of it are gone through in an order that is the same in each run."""

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class _Task(asyncio.Task[Any]):
    """As `_Future`."""

    def __init__(self, number: int, coro: Any, **keywords: Any) -> None:
        self._number = number
        super().__init__(coro, **keywords)

    def __hash__(self) -> int:
        return self._number


class ProcessLoop(asyncio.AbstractEventLoop):
    """Belongs to `process`. What it lacks of asyncio's interface no task uses: that raises NotImplementedError."""

    def __init__(self, world: World, process: Process) -> None:
        self._world, self._process = world, process
        self.ready: deque[asyncio.Handle] = deque()
        #: What is called when a socket can be read, or written: by its number.
        self.readers: dict[int, asyncio.Handle] = {}
        self.writers: dict[int, asyncio.Handle] = {}
        #: Tasks that were made and have not ended, in order.
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self._numbers = itertools.count(1)

    # -- calls -----------------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._world.now

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if self._process.alive:
            self.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._world.now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        if self._process.alive:
            self._world.at(when, self._process, timer)
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """The world drops it when its time comes."""

    # -- futures and tasks -------------------------------------------------------------------------------------------

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(next(self._numbers), self)

    def create_task(self, coro: Any, *, name: str | None = None, **keywords: Any) -> asyncio.Task[Any]:
        number = next(self._numbers)
        task = _Task(number, coro, loop=self, name=name or f"task-{number}", **keywords)
        self.tasks[task] = None
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(task, None)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return not self._process.alive

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._process.alive:
            error = context.get("exception")
            self._world.broken(f"{self._process.name}: {context.get('message')}: {error!r}", error)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        raise LeftTheSimulationError(f"{func} was to run on a thread of an executor")

    # -- sockets -----------------------------------------------------------------------------------------------------

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        sock = self._world.network.socket(fd)
        self.readers[sock.fileno()] = asyncio.Handle(callback, args, self, None)
        if sock.is_readable:
            self.tell_readable(sock)

    def remove_reader(self, fd: Any) -> bool:
        number = fd if isinstance(fd, int) else fd.fileno()
        handle = self.readers.pop(number, None)
        if handle is not None:
            handle.cancel()
        return handle is not None

    def add_writer(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        sock = self._world.network.socket(fd)
        self.writers[sock.fileno()] = asyncio.Handle(callback, args, self, None)
        self.tell_writable(sock)

    def remove_writer(self, fd: Any) -> bool:
        number = fd if isinstance(fd, int) else fd.fileno()
        handle = self.writers.pop(number, None)
        if handle is not None:
            handle.cancel()
        return handle is not None

    def tell_readable(self, sock: SimulatedSocket) -> None:
        """Calls the socket's reader soon, and again as long as there is something to read: as select does."""
        if not sock.told_readable and sock.fileno() in self.readers and self._process.alive:
            sock.told_readable = True
            self.call_soon(self._read, sock)

    def _read(self, sock: SimulatedSocket) -> None:
        sock.told_readable = False
        handle = self.readers.get(sock.fileno())
        if handle is not None and sock.is_readable:
            handle._run()
            if sock.is_readable:
                self.tell_readable(sock)

    def tell_writable(self, sock: SimulatedSocket) -> None:
        """Calls the socket's writer soon, and again as long as it can be written."""
        if not sock.told_writable and sock.fileno() in self.writers and sock.is_writable and self._process.alive:
            sock.told_writable = True
            self.call_soon(self._write, sock)

    def _write(self, sock: SimulatedSocket) -> None:
        sock.told_writable = False
        handle = self.writers.get(sock.fileno())
        if handle is not None and sock.is_writable:
            handle._run()
            self.tell_writable(sock)

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        connected = self.create_future()
        self._world.network.connect(sock, address, connected)  # type: ignore[arg-type]
        await connected

    async def getaddrinfo(self, host: Any, port: Any, **keywords: Any) -> Any:
        import socket as constants

        return [(constants.AF_INET, constants.SOCK_STREAM, 6, "", (host, port or 0))]
