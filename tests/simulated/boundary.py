"""Where a simulated cluster ends: for the machine's clocks, randomness, threads and sockets it gets the world's.

`install()` comes first in a process of its own (run.py), before anything of Tenfold is imported, as many modules take a
clock by name. Inside of a world each clock tells the world's time, each random number comes of its seed, and what would
make two runs differ or wait for the machine (a thread, a sleep, a socket that is not the network's) raises.
Decision 0090 says why it is done here and not by passing clocks around.
"""

from __future__ import annotations

import asyncio  # noqa: F401 - loads ssl, which derives a class of socket.socket before that is another
import functools
import os
import random
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from simulated.inside import inside

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulated.world import World

_MAIN = threading.get_ident()
#: Wall time at the beginning of every world.
EPOCH = 1_700_000_000.0


class LeftTheSimulationError(AssertionError):
    """Something wanted to wait for the machine, or to be told apart from the next run."""


def enter(world: World) -> None:
    """From now on, on the main thread, the machine is the world's."""
    inside.world = world


def leave() -> None:
    """Gives the machine back."""
    inside.world = None


def _world() -> World | None:
    return inside.world if inside.world is not None and threading.get_ident() == _MAIN else None


def install() -> None:
    """Puts the world's clocks and the rest in place. Once for a process, which is for simulations alone."""
    for name, scale in (("monotonic", 0), ("perf_counter", 0), ("monotonic_ns", 1), ("perf_counter_ns", 1)):
        setattr(time, name, _clock(getattr(time, name), 0.0, scale))
    for name, scale in (("time", 0), ("time_ns", 1)):
        setattr(time, name, _clock(getattr(time, name), EPOCH, scale))
    time.thread_time_ns = _processor_clock(time.thread_time_ns)
    time.sleep = _outside("time.sleep", time.sleep)
    os.urandom = random._urandom = _random_bytes(os.urandom)  # type: ignore[attr-defined]
    threading.Thread.start = _outside("a thread", threading.Thread.start)  # type: ignore[method-assign]
    from simulated.sockets import SimulatedSocket

    socket.socket = SimulatedSocket  # type: ignore[assignment, misc]


def install_grpc() -> None:
    """Puts both ends of gRPC in place, a machine of one user that never lacks memory, settings that no variable of the
    environment changes, processors that flush no denormals (a thread would load what does that), and a memory of what
    was compiled: the graphs of all seeds are the same. After `install`."""
    from grpc import aio

    from simulated.grpc_channel import SimulatedChannel
    from simulated.grpc_server import SimulatedServer
    from tenfold_compiler.write import codegen
    from tenfold_core import env_settings, memory_limits
    from tenfold_core.access.gate import EVERYBODY, Gate
    from tenfold_kernels import denormals
    from tenfold_services.http2 import server

    aio.insecure_channel = lambda address, options=None: SimulatedChannel(address)  # type: ignore[assignment]
    server.Http2Server = SimulatedServer  # type: ignore[misc, assignment]
    Gate.accepted = lambda self, sock: EVERYBODY  # type: ignore[method-assign]
    memory_limits.available = lambda: 1 << 40
    env_settings.read = lambda defaults, *_: defaults  # type: ignore[misc]
    denormals.mode = denormals._nothing, denormals._no_need
    codegen.compile = functools.cache(compile)  # type: ignore[attr-defined]


def _clock(real: Callable[[], Any], epoch: float, nanoseconds: int) -> Callable[[], Any]:
    def read() -> Any:
        world = _world()
        if world is None:
            return real()
        now = epoch + world.now
        return int(now * 1e9) if nanoseconds else now

    return read


def _processor_clock(real: Callable[[], int]) -> Callable[[], int]:
    def read() -> int:
        world = _world()
        return real() if world is None else world.processor_time()

    return read


def _random_bytes(real: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def read(size: int) -> bytes:
        world = _world()
        return real(size) if world is None else world.chance.randbytes(size)

    return read


def _outside(what: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def refuse(*arguments: Any, **keywords: Any) -> Any:
        if _world() is not None:
            raise LeftTheSimulationError(f"{what} was asked for in a simulated cluster: {arguments}")
        return real(*arguments, **keywords)

    return refuse
