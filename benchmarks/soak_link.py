#!/usr/bin/env python3
"""So many calls over a link that any leak shows: memory, descriptors and shared memory must stay flat.

A server process and this one, over each path: many small calls, then many calls of 1 MB each way. Prints what both
processes hold at the start, half-way and at the end, and fails if it grew. tests/process/test_link_soak.py runs it
with small numbers.

    python benchmarks/soak_link.py [--small 100000] [--large 10000] [--path unix+shm]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import dataclasses
import gc
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tenfold_link.aio.listener import LinkListener
from tenfold_link.aio.methods import LinkMethod
from tenfold_link.blocking.dial import connect
from tenfold_link.link_settings import LinkSettings
from tenfold_link.wire import handshake
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from tenfold_link.blocking.link import BlockingLink

PATHS = {"unix+shm": LinkSettings(), "unix": LinkSettings(shared_memory=False), "tcp": LinkSettings(mode="tcp")}
ECHO = 1
MB = 1 << 20
#: How much more a process may hold at the end than half-way.
SLACK_BYTES = 8 * MB


@dataclasses.dataclass(frozen=True)
class Held:
    """What one process holds."""

    resident: int
    shared: int
    descriptors: int

    @staticmethod
    def by(pid: int) -> Held:
        """Reads it from /proc, for a process of this user."""
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines if line.startswith("Rss"))
        kilobytes = {name: int(value.split()[0]) << 10 for name, value in fields.items()}
        return Held(kilobytes["RssAnon"], kilobytes["RssShmem"], len(os.listdir(f"/proc/{pid}/fd")))

    def __str__(self) -> str:
        return f"{self.resident / MB:7.1f} MB, {self.shared / MB:6.1f} MB shared, {self.descriptors:3d} descriptors"

    def grew_to(self, later: Held) -> bool:
        return (
            later.resident > self.resident + SLACK_BYTES
            or later.shared > self.shared + SLACK_BYTES
            or later.descriptors > self.descriptors
        )


async def serve() -> None:
    """The other process: answers a line of input with its address, echoes calls."""
    methods = {ECHO: LinkMethod("Echo", lambda link, header, buffers: (header, buffers))}
    async with LinkListener("/job:soak/replica:0/task:0", lambda link: methods) as listener:
        while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
            offer = listener.open_link(handshake.ask(LinkSettings()))
            print(base64.b64encode(offer.SerializeToString()).decode(), flush=True)


def call_many(link: BlockingLink, small: int, large: int) -> None:
    """`small` calls of 100 bytes and `large` ones of 1 MB each way. Checks every answer."""
    header = bytes(100)
    for _ in range(small):
        assert link.call(ECHO, header) == (header, [])
    data = np.arange(MB, dtype=np.uint8)
    for number in range(large):
        data[number % MB] ^= 1
        _, (back,) = link.call(ECHO, b"", [data])
        assert np.array_equal(back, data)


def soak(path: str, small: int, large: int) -> bool:
    """Whether both processes stayed flat over one path."""
    with subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("\n")
        server.stdin.flush()
        offer = link_pb2.OpenLinkResponse.FromString(base64.b64decode(server.stdout.readline()))
        link = connect(offer, "127.0.0.1:1", settings=PATHS[path])
        pids = {"client": os.getpid(), "server": server.pid}

        def look(when: str) -> dict[str, Held]:
            gc.collect()
            held = {process: Held.by(pid) for process, pid in pids.items()}
            for process, one in held.items():
                print(f"  {when:9} {process}: {one}")
            return held

        print(f"{link.path}: {small} calls of 100 bytes, {large} of 1 MB each way")
        look("start")
        started = time.monotonic()
        call_many(link, small // 2, large // 2)
        halfway = look("half-way")
        call_many(link, small - small // 2, large - large // 2)
        end = look("end")
        print(f"  {time.monotonic() - started:.1f} s")
        link.close()
        server.stdin.close()
        server.wait(30)
    return not any(halfway[process].grew_to(end[process]) for process in pids)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=100_000, help="calls of 100 bytes")
    parser.add_argument("--large", type=int, default=10_000, help="calls of 1 MB each way")
    parser.add_argument("--path", choices=PATHS, action="append", help="one path only (may be repeated)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve())
        return 0
    grew = [path for path in arguments.path or PATHS if not soak(path, arguments.small, arguments.large)]
    print(f"grew: {', '.join(grew)}" if grew else "flat")
    return bool(grew)


if __name__ == "__main__":
    sys.exit(main())
