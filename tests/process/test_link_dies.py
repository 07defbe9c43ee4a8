"""kill -9 of either end of a link: calls in both directions end with a reason, and no shared memory stays behind.

this process ◄── link ──► link_main.py, as a process of its own, killed in the middle of everything
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pytest

from support.links import ADDRESS, CLIENT, ECHO, HOLD, PATHS, SERVER, WAIT, Service
from tenfold_core import errors
from tenfold_link.aio.dial import connect
from tenfold_link.aio.listener import LinkListener
from tenfold_link.blocking.dial import connect as connect_blocking
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire import handshake
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_link.link_settings import LinkSettings

MAIN = Path(__file__).with_name("link_main.py")
MB = 1 << 20
#: The path with the most that can be left behind; the others only in `make test-thorough`.
QUICK_PATHS = [path if path == "unix+shm" else pytest.param(path, marks=pytest.mark.thorough) for path in PATHS]


class Process:
    """link_main.py, ended with the test."""

    def __init__(self, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(MAIN.parents[1])}
        self.process = subprocess.Popen(
            [sys.executable, str(MAIN), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self) -> link_pb2.OpenLinkResponse:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return link_pb2.OpenLinkResponse.FromString(base64.b64decode(self.line()))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def end(self) -> None:
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@pytest.fixture
def listening() -> Iterator[Process]:
    process = Process("serve")
    assert process.line() == "listening"
    yield process
    process.end()


def arenas(pid: int | str) -> set[str]:
    """The arenas that the process maps, by inode; none where we may not look, or it is gone."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return set()
    return {line.split()[4] for line in lines if "memfd:tenfold-link" in line}


@pytest.mark.parametrize("path", QUICK_PATHS)
async def test_the_listening_end_is_killed(listening: Process, path: str) -> None:
    mine = Service()
    answer = await asyncio.to_thread(listening.ask)
    link = await connect(answer, ADDRESS, on_link=mine.methods, settings=PATHS[path])
    link.reserve(4 * MB)
    call = link.call_nowait(WAIT, b"", [np.ones(2 * MB, np.uint8)])
    assert await asyncio.to_thread(listening.line) == "entered"
    blocks = link._arena.taken if link._arena is not None else None

    listening.kill()

    with pytest.raises(errors.UnavailableError, match=f"The link to {SERVER} ended: the connection broke"):
        await call
    with pytest.raises(errors.UnavailableError, match="the connection broke"):
        await link.call(ECHO)
    assert blocks == (1 if path == "unix+shm" else None)
    gc.collect()
    assert not arenas(os.getpid())


@pytest.mark.parametrize("path", QUICK_PATHS)
def test_the_server_of_a_blocking_client_is_killed(listening: Process, path: str) -> None:
    link = connect_blocking(listening.ask(), ADDRESS, settings=PATHS[path])
    link.reserve(4 * MB)
    link.call(HOLD, b"", [np.ones(2 * MB, np.uint8)])
    assert listening.line() == "held 1"

    listening.kill()

    with pytest.raises(errors.UnavailableError, match=f"The link to {SERVER} ended: the connection broke"):
        link.call(WAIT)
    assert link.closed
    gc.collect()
    assert not arenas(os.getpid())


async def test_the_dialing_end_is_killed() -> None:
    service = Service()
    async with LinkListener(SERVER, service.methods) as listener:
        offer = listener.open_link(handshake.ask(DEFAULT_LINK_SETTINGS, CLIENT))
        other = await asyncio.to_thread(Process, "dial", base64.b64encode(offer.SerializeToString()).decode())
        try:
            assert await asyncio.to_thread(other.line) == "connected unix+shm"
            (link,) = listener.links
            link.reserve(32 * MB)
            await link.call(HOLD, b"", [np.ones(16 * MB, np.uint8)])
            assert await asyncio.to_thread(other.line) == "held 1"
            call = link.call_nowait(WAIT)
            assert await asyncio.to_thread(other.line) == "entered"
            assert len(arenas(os.getpid())) == len(arenas(other.process.pid)) == 2

            other.kill()

            with pytest.raises(errors.UnavailableError, match=f"The link to {CLIENT} ended: the connection broke"):
                await call
        finally:
            other.end()
        assert not listener.links
    service.links.clear()
    del link
    gc.collect()
    assert not arenas(os.getpid())


def test_both_ends_are_killed_and_the_memory_is_gone() -> None:
    server = Process("serve")
    assert server.line() == "listening"
    client = Process("dial", base64.b64encode(server.ask().SerializeToString()).decode())
    assert client.line() == "connected unix+shm"
    theirs = arenas(server.process.pid)
    assert len(theirs) == 2
    assert arenas(client.process.pid) == theirs

    server.end()
    assert client.line().startswith(f"closed The link to {SERVER} ended: the connection broke")
    assert not arenas(client.process.pid), "the survivor has let go"
    client.end()

    # a memory file without a name lives as long as a process maps it, and no longer
    assert not any(arenas(pid) & theirs for pid in os.listdir("/proc") if pid.isdigit())


@pytest.mark.parametrize("settings", PATHS.values(), ids=PATHS)
def test_a_stopped_server_is_noticed(listening: Process, settings: LinkSettings) -> None:
    patient = dataclasses.replace(settings, ping_every_seconds=0.2, ping_answer_seconds=0.2)
    link = connect_blocking(listening.ask(), ADDRESS, settings=patient)
    link.call(ECHO)

    psutil.Process(listening.process.pid).suspend()

    with pytest.raises(errors.UnavailableError, match="it has not said anything for"):
        link.call(ECHO)
