#!/usr/bin/env python3
"""Bandwidth and latency of a link between two hosts, beside iperf3's and a bare socket's over the same wire.

Two hosts on this machine (tests/support/faults/lan.py): network namespaces that a veth pair and a bridge join. With a
delay it is netem, where the kernel has it, else a relay of ours between two TUN devices, which the table says: it
bounds what both sides can reach. All sides take turns, round after round; a figure is the median over the rounds, a
ratio is taken within a round. Needs root and iperf3.

    sudo python benchmarks/hosts_apart.py [--rounds 5] [--seconds 2] [--round-trips 0 10] [--megabytes 64]

iperf3 N: that many streams. "client to task": a program's link to a task, as feeds go; "task to client": as fetches go;
"task to task": as tensors are pushed, and "alone": the same without further connections.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.faults.lan import Lan, why_not
from tenfold_link.aio import dial as aio_dial
from tenfold_link.aio.listener import LinkListener
from tenfold_link.aio.methods import LinkMethod
from tenfold_link.blocking.dial import connect
from tenfold_link.link_settings import LinkSettings
from tenfold_link.wire import handshake
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold_link.aio.link import Link

ECHO, TAKE, GIVE = 1, 2, 3
#: The hosts, and the ports of the one that serves.
CLIENT, SERVER, IPERF_PORT, PLAIN_PORT = "near", "far", 5201, 5202
#: Seconds beyond the time of a measurement.
PATIENCE = 60.0
#: Calls of the small messages, and their bytes each way.
SMALL_CALLS, SMALL_BYTES = 300, 100
IPERF_STREAMS = (1, 4)
LINKS = ("client to task", "task to client", "task to task")
#: The same with TENFOLD_LINK_STREAMS=1, where the wire has a delay.
ALONE = " alone"
#: What a link is compared with.
BANDWIDTHS = (*(f"iperf3 {count}" for count in IPERF_STREAMS), *LINKS, f"task to task{ALONE}")


# -- the other host ------------------------------------------------------------------------------------------------


async def serve(host: str, megabytes: int) -> None:
    """Answers each line of input with the offer of a link."""
    data = np.ones(megabytes << 20, np.uint8)
    methods = {
        ECHO: LinkMethod("Echo", lambda link, header, buffers: (header, buffers)),
        TAKE: LinkMethod("Take", lambda link, header, buffers: None),
        GIVE: LinkMethod("Give", lambda link, header, buffers: (b"", [data])),
    }
    threading.Thread(target=serve_plain, args=(host,), daemon=True).start()
    async with LinkListener("/job:far/replica:0/task:0", lambda link: methods, LinkSettings(), host) as listener:
        while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
            offer = listener.open_link(handshake.ask(LinkSettings()))
            print(base64.b64encode(offer.SerializeToString()).decode(), flush=True)


def serve_plain(host: str) -> None:
    """Sends back what comes, over a bare socket."""
    with socket.create_server((host, PLAIN_PORT)) as listening:
        while True:
            sock, _ = listening.accept()
            with sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while data := sock.recv(SMALL_BYTES):
                    sock.sendall(data)


# -- this host -----------------------------------------------------------------------------------------------------


def measure(what: str, offer: str, host: str, seconds: float, megabytes: int) -> Any:
    """One figure: bytes a second, or seconds for the latencies; and the connections of the link."""
    settings = LinkSettings(streams=1) if what.endswith(ALONE) else LinkSettings()
    what = what.removesuffix(ALONE)
    if what == "bare socket":
        return {"figure": plain_latency(host), "connections": 1}
    answer = link_pb2.OpenLinkResponse.FromString(base64.b64decode(offer))
    if what == "task to task":
        return asyncio.run(push(answer, host, seconds, megabytes, settings))
    link = connect(answer, f"{host}:1", settings=settings)
    data = np.arange(megabytes << 20, dtype=np.uint8)
    try:
        _, (back,) = link.call(ECHO, b"", [data], timeout=PATIENCE)
        assert np.array_equal(back, data)
        del back
        if what == "link":
            figure = latency(lambda: link.call(ECHO, bytes(SMALL_BYTES), timeout=PATIENCE))
        elif what == "client to task":
            began, count = time.monotonic(), 0
            while time.monotonic() < began + seconds:
                link.notify(TAKE, b"", [data])
                count += 1
            link.call(ECHO, timeout=PATIENCE)
            figure = count * data.nbytes / (time.monotonic() - began)
        else:
            figure = fetch(lambda: link.call(GIVE, timeout=PATIENCE)[1][0].nbytes, seconds)
        return {"figure": figure, "connections": link.connections}
    finally:
        link.close()


def fetch(get: Callable[[], int], seconds: float) -> float:
    """Bytes a second of several threads, so that one asks while another one's answer is under way."""
    began, got = time.monotonic(), [0, 0, 0]

    def work(place: int) -> None:
        while time.monotonic() < began + seconds:
            got[place] += get()

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(got))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE + seconds)
    return sum(got) / (time.monotonic() - began)


async def push(
    answer: link_pb2.OpenLinkResponse, host: str, seconds: float, megabytes: int, settings: LinkSettings
) -> Any:
    link: Link = await aio_dial.connect(answer, f"{host}:1", settings=settings)
    data = np.arange(megabytes << 20, dtype=np.uint8)
    await link.call(ECHO, b"", [data])
    began, count = time.monotonic(), 0
    while time.monotonic() < began + seconds:
        await link.notify(TAKE, b"", [data])
        count += 1
    await link.call(ECHO)
    figure = count * data.nbytes / (time.monotonic() - began)
    connections = link.connections
    await link.close()
    return {"figure": figure, "connections": connections}


def plain_latency(host: str) -> float:
    with socket.create_connection((host, PLAIN_PORT), timeout=PATIENCE) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def there_and_back() -> None:
            sock.sendall(bytes(SMALL_BYTES))
            left = SMALL_BYTES
            while left:
                left -= len(sock.recv(left))

        return latency(there_and_back)


def latency(call: Callable[[], object]) -> float:
    """Seconds, the median of some calls."""
    for _ in range(20):
        call()
    times = []
    for _ in range(SMALL_CALLS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


# -- the driver ----------------------------------------------------------------------------------------------------


class Bench:
    """Two hosts, and the process that serves on one of them."""

    def __init__(self, lan: Lan, seconds: float, megabytes: int) -> None:
        self._lan, self._seconds, self._megabytes = lan, seconds, megabytes
        self._host = lan.hosts[SERVER].address
        self.connections: dict[str, int] = {}
        program = [sys.executable, __file__, "--serve", self._host, "--megabytes", str(megabytes)]
        self._server = lan.inside(
            SERVER, lambda: subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(PATIENCE)
        self._server.stdout.close()

    def link(self, what: str) -> float:
        """A figure of a link, or of the bare socket."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write("\n")
        self._server.stdin.flush()
        offer = self._server.stdout.readline().strip()
        given = [offer, self._host, str(self._seconds), str(self._megabytes)]
        program = [sys.executable, __file__, "--measure", what, *given]
        found = json.loads(self._lan.run(CLIENT, *program, seconds=2 * PATIENCE + self._seconds))
        self.connections[what] = found["connections"]
        return float(found["figure"])

    def iperf(self, streams: int) -> float:
        """Bytes a second that arrive."""
        port = str(IPERF_PORT)
        server = self._lan.inside(
            SERVER,
            lambda: subprocess.Popen(
                ["iperf3", "-s", "-1", "-p", port, "--forceflush"], stdout=subprocess.PIPE, text=True
            ),
        )
        try:
            assert server.stdout is not None
            for line in server.stdout:
                if "listening" in line.lower():
                    break
            told = self._lan.run(
                CLIENT, "iperf3", "-c", self._host, "-p", port, "-t", f"{self._seconds:.0f}", "-P", str(streams), "-J",
                seconds=PATIENCE + self._seconds,
            )  # fmt: skip
            return float(json.loads(told)["end"]["sum_received"]["bits_per_second"]) / 8
        finally:
            server.kill()
            server.wait(PATIENCE)
            assert server.stdout is not None
            server.stdout.close()


def rounds(lan: Lan, count: int, seconds: float, megabytes: int) -> Iterator[str]:
    """The lines of the tables of one wire."""
    bench = Bench(lan, seconds, megabytes)
    found: dict[str, list[float]] = {name: [] for name in (*BANDWIDTHS, "bare socket", "link")}
    try:
        for _ in range(count):
            for streams in IPERF_STREAMS:
                found[f"iperf3 {streams}"].append(bench.iperf(streams))
            for what in (*BANDWIDTHS[len(IPERF_STREAMS) :], "bare socket", "link"):
                found[what].append(bench.link(what))
    finally:
        bench.close()
    yield "| side | connections | GB/s | of iperf3 1 | of iperf3 4 |"
    yield "|---|---|---|---|---|"
    for name in BANDWIDTHS:
        shares = [
            statistics.median(mine / other for mine, other in zip(found[name], found[f"iperf3 {n}"], strict=True))
            for n in IPERF_STREAMS
        ]
        there = bench.connections.get(name) or name.rpartition(" ")[2]
        of_iperf = " | ".join(f"{share:.2f}" for share in shares)
        yield f"| {name} | {there} | {statistics.median(found[name]) / 1e9:.2f} | {of_iperf} |"
    yield ""
    yield f"| {SMALL_BYTES} bytes each way, p50 | ms |"
    yield "|---|---|"
    for name in ("bare socket", "link"):
        yield f"| {name} | {statistics.median(found[name]) * 1e3:.3f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--round-trips", type=float, nargs="+", default=[0.0, 10.0], help="milliseconds")
    parser.add_argument("--megabytes", type=int, default=64, help="of one buffer")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.serve, arguments.megabytes))
        return 0
    if arguments.measure:
        what, offer, host, seconds, megabytes = arguments.measure
        print(json.dumps(measure(what, offer, host, float(seconds), int(megabytes))))
        return 0
    if why := why_not() or ("" if shutil.which("iperf3") else "there is no `iperf3` here: install it"):
        print(why, file=sys.stderr)
        return 1
    print(f"{os.cpu_count()} cores, kernel {os.uname().release.partition('-')[0]}, buffers of {arguments.megabytes} MB")
    for milliseconds in arguments.round_trips:
        with Lan(CLIENT, SERVER, delay=milliseconds / 2e3) as lan:
            wire = {"": "veth and a bridge", "netem": "veth, a bridge and netem", "relay": "TUN devices and a relay"}
            print(f"\n## {milliseconds:g} ms there and back: {wire[lan.delayed_by]}\n")
            for line in rounds(lan, arguments.rounds, arguments.seconds, arguments.megabytes):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
