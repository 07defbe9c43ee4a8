#!/usr/bin/env python3
"""A thousand tasks on one control service: heartbeats with figures once a second, listings and scrapes beside them.

The service is a process of its own (`tenfold control`), the tasks are connections of this one, each with a heartbeat of
the size that a real task sends. A heartbeat's time counts from the moment it was due, so a service (or this process)
that falls behind shows. Then many more tasks register, and are listed in pages. Prints percentiles, processor time of
both sides and the service's memory over time; fails over the limits unless `--no-limits`.
tests/control/test_load.py runs it with small numbers. With `--services` the tasks are spread over several services on
one PostgreSQL database, as tasks spread themselves over the addresses that they know.

    python benchmarks/control_load.py [--tasks 1000] [--every 1] [--seconds 60] [--registered 10000] [--json FILE]
    python benchmarks/control_load.py --tasks 10000 --every 10 --services 3 --database postgresql://…
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

CLUSTER, MANY = "load", "many"
#: Milliseconds at most, 99 of 100.
HEARTBEAT_MS, LISTING_MS = 50.0, 200.0
#: Bytes a minute that the service's memory may grow by, after the first tenth of the time.
GROWTH_PER_MINUTE = 2 << 20
PAGE = 500
#: Registrations under way at a time.
_AT_ONCE = 32


class Connection(asyncio.Protocol):
    """HTTP/1.1 to the service, one request at a time. Cheap: what it costs here is not left for the service."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._head: bytes | None = None
        self._buffer = bytearray()
        self._need = -1
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    @classmethod
    async def to(cls, port: int) -> Connection:
        _, made = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        if self._need < 0:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            length = re.search(rb"content-length: (\d+)", buffer[:end], re.IGNORECASE)
            assert length is not None, bytes(buffer[:end])
            self._head, self._need = bytes(buffer[:end]), end + 4 + int(length[1])
        if len(buffer) >= self._need:
            assert self._head is not None
            assert self._answer is not None
            body = bytes(buffer[len(self._head) + 4 : self._need])
            del buffer[: self._need]
            self._need = -1
            if not self._answer.done():
                self._answer.set_result((int(self._head[9:12]), body))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the control service closed the connection"))

    async def send(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """The status and the body of the answer."""
        assert self._transport is not None
        if self._transport.is_closing():
            raise ConnectionError("the control service closed the connection")
        self._answer = asyncio.get_running_loop().create_future()
        kind = "content-type: application/json\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{kind}content-length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)
        return await self._answer

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """JSON for JSON. Raises for a refusal."""
        status, answer = await self.send(method, path, b"" if body is None else json.dumps(body).encode())
        if not 200 <= status < 300:
            raise RuntimeError(f"{method} {path}: {status}: {answer[:500]!r}")
        return json.loads(answer) if answer else None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


@dataclass
class Times:
    """How long requests of one kind took, in milliseconds."""

    taken: list[float] = field(default_factory=list)

    def at(self, share: float) -> float:
        ordered = sorted(self.taken)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")

    def summary(self) -> dict[str, float]:
        return {
            "count": len(self.taken),
            "p50_ms": round(self.at(0.5), 2),
            "p99_ms": round(self.at(0.99), 2),
            "max_ms": round(max(self.taken, default=float("nan")), 2),
        }


def figures(index: int, steps: int) -> dict[str, Any]:
    """What a worker with four parameter servers sends; a kilobyte."""
    return {
        "cpu_seconds": 12.5 + steps / 7,
        "minor_faults": 41_000 + steps,
        "threads": 23,
        "resident_bytes": 218_103_808 + 4096 * steps,
        "shared_bytes": 61_865_984,
        "variables": 0,
        "variable_bytes": 0,
        "steps": 173 * steps,
        "sessions": 1,
        "bytes_sent": 912_345_678 + 1_000_000 * steps,
        "bytes_received": 922_345_678 + 1_000_000 * steps,
        "long_kernels": 0,
        "peers": [
            {"task": f"/job:ps/replica:0/task:{ps}", "bytes_sent": 31_415_926 + index, "bytes_received": 27_182_818}
            for ps in range(4)
        ],
        "queues": [{"name": "shuffle_batch/random_shuffle_queue", "size": 1211, "capacity": 2000}],
    }


@dataclass
class Services:
    """The control services, and what the system says of their processes, together."""

    ports: list[int]
    pids: list[int]

    def port_of(self, index: int) -> int:
        """Where the task of that number sends its heartbeats."""
        return self.ports[index % len(self.ports)]

    def resident(self) -> int:
        """Bytes."""
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids)
        return pages * os.sysconf("SC_PAGE_SIZE")

    def seconds(self) -> float:
        """Of processor time."""
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids]
        return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")

    def waited(self) -> float:
        """Seconds for which their event loops could have run, and other processes had the cores; the mean of them."""
        each = [int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) for pid in self.pids]
        return sum(each) / len(each) / 1e9


async def register_all(connection: Connection, services: Services, cluster: str, count: int) -> list[str]:
    """Leases of `count` tasks of one job."""
    await connection.ask("PUT", f"/v1/clusters/{cluster}", {"jobs": {"worker": count}})
    leases = [""] * count
    left = iter(range(count))

    async def some(number: int) -> None:
        own = await Connection.to(services.port_of(number))
        for index in left:
            task = {
                "address": f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}:2222",
                "incarnation": f"{index + 1:x}",
                "devices": [{"name": f"/job:worker/replica:0/task:{index}/device:CPU:0", "memory_limit": 1 << 34}],
            }
            answer = await own.ask("PUT", f"/v1/clusters/{cluster}/tasks/worker/{index}", task)
            leases[index] = answer["lease"]["id"]
        own.close()

    await asyncio.gather(*(some(number) for number in range(_AT_ONCE)))
    return leases


class Load:
    """The simulated tasks and who looks at them, for some time."""

    def __init__(self, services: Services, leases: list[str], seconds: float, every: float) -> None:
        self._services, self._leases, self._seconds, self._every = services, leases, seconds, every
        self.heartbeats, self.listings, self.tasks, self.scrapes = Times(), Times(), Times(), Times()
        #: (seconds since the start, bytes)
        self.memory: list[tuple[float, int]] = []
        #: Cores that the service and this process used, and the share of the time that the service waited for one.
        self.cores = self.own_cores = self.waited = 0.0

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        gc.freeze()
        begin, cpu, own = loop.time() + 0.5, self._services.seconds(), time.process_time()
        waited = self._services.waited()
        end = begin + self._seconds
        order = random.Random(7)
        workers: list[Awaitable[None]] = [
            self._beat(index, begin + order.random() * self._every, end) for index in range(len(self._leases))
        ]
        workers += [
            self._look(self.listings, f"/v1/clusters/{CLUSTER}/jobs", 1.0, begin, end),
            self._look(self.tasks, f"/v1/clusters/{CLUSTER}/tasks?limit={PAGE}", 1.0, begin + 0.5, end),
            self._look(self.scrapes, "/metrics", 5.0, begin + 0.25, end),
            self._watch_memory(begin, end),
        ]
        await asyncio.gather(*workers)
        took = loop.time() - begin
        self.cores = (self._services.seconds() - cpu) / took
        self.waited = (self._services.waited() - waited) / took
        self.own_cores = (time.process_time() - own) / took

    async def _beat(self, index: int, due: float, end: float) -> None:
        loop, path, steps = asyncio.get_running_loop(), f"/v1/leases/{self._leases[index]}:renew", 0
        connection: Connection | None = None
        while due < end:
            await asyncio.sleep(due - loop.time())
            if connection is None:
                # the service gives up one that says nothing at first
                connection = await Connection.to(self._services.port_of(index))
            steps += 1
            body = json.dumps({"figures": figures(index, steps)}).encode()
            status, answer = await connection.send("POST", path, body)
            self.heartbeats.taken.append((loop.time() - due) * 1e3)
            assert status == 200, answer
            due += self._every
        if connection is not None:
            connection.close()

    async def _look(self, times: Times, path: str, every: float, due: float, end: float) -> None:
        loop, connection = asyncio.get_running_loop(), await Connection.to(self._services.port_of(0))
        while due < end:
            await asyncio.sleep(due - loop.time())
            status, answer = await connection.send("GET", path)
            times.taken.append((loop.time() - due) * 1e3)
            assert status == 200, answer[:500]
            due += every
        connection.close()

    async def _watch_memory(self, begin: float, end: float) -> None:
        loop, due = asyncio.get_running_loop(), begin
        while due < end:
            await asyncio.sleep(due - loop.time())
            self.memory.append((due - begin, self._services.resident()))
            due += 1.0

    def growth(self) -> float:
        """Bytes a minute, by the medians of the second and the last tenth of the time."""
        part = max(1, len(self.memory) // 10)
        early, late = self.memory[part : 2 * part] or self.memory[:1], self.memory[-part:]
        middle = [sorted(each)[len(each) // 2] for each in (early, late)]
        size = [sorted(bytes_ for _, bytes_ in each)[len(each) // 2] for each in (early, late)]
        minutes = (middle[1][0] - middle[0][0]) / 60
        return (size[1] - size[0]) / minutes if minutes > 0 else 0.0


async def list_in_pages(port: int, count: int) -> tuple[Times, Times]:
    """All tasks of MANY in pages; and small requests beside that, which wait as long as the event loop is held up."""
    pages, beside, done = Times(), Times(), asyncio.Event()

    async def small() -> None:
        connection = await Connection.to(port)
        while not done.is_set():
            begin = time.perf_counter()
            await connection.send("GET", "/healthz")
            beside.taken.append((time.perf_counter() - begin) * 1e3)
            await asyncio.sleep(0.002)
        connection.close()

    watching = asyncio.create_task(small(), name="small")
    connection = await Connection.to(port)
    for _ in range(3):
        after, names = None, []
        while True:
            path = f"/v1/clusters/{MANY}/tasks?limit={PAGE}" + (f"&after={after}" if after is not None else "")
            begin = time.perf_counter()
            status, answer = await connection.send("GET", path)
            pages.taken.append((time.perf_counter() - begin) * 1e3)
            assert status == 200, answer[:500]
            page = json.loads(answer)
            names += [task["name"] for task in page["tasks"]]
            after = page["next"]
            if after is None:
                break
        assert len(set(names)) == count, len(set(names))
    done.set()
    await watching
    connection.close()
    return pages, beside


async def measure(services: Services, options: argparse.Namespace) -> dict[str, Any]:
    port = services.port_of(0)
    connection = await Connection.to(port)
    begin = time.perf_counter()
    leases = await register_all(connection, services, CLUSTER, options.tasks)
    registered = time.perf_counter() - begin
    print(f"{options.tasks} tasks registered in {registered:.1f} s", flush=True)
    load = Load(services, leases, options.seconds, options.every)
    connection.close()
    await load.run()
    # a fresh one: the service closes what was idle meanwhile
    connection = await Connection.to(port)
    job = await connection.ask("GET", f"/v1/clusters/{CLUSTER}/jobs/worker")
    assert job["counts"]["ready"] == options.tasks, job["counts"]
    # each service shows the figures of the tasks that tell it theirs
    shown = [task["figures"] for task in job["tasks"] if task["figures"] is not None]
    assert len(shown) == len(job["tasks"]) or options.services > 1
    assert all(figures["queues"][0]["size"] == 1211 for figures in shown)
    found: dict[str, Any] = {
        "tasks": options.tasks,
        "services": options.services,
        "every": options.every,
        "tasks_registered_s": round(registered, 1),
        "seconds": options.seconds,
        "heartbeat": load.heartbeats.summary(),
        "listing": load.listings.summary(),
        "page": load.tasks.summary(),
        "scrape": load.scrapes.summary(),
        "service_cores": round(load.cores, 2),
        "load_cores": round(load.own_cores, 2),
        "service_waited_for_a_core": round(load.waited, 2),
        "memory_mib": [round(bytes_ / 2**20, 1) for _, bytes_ in load.memory[:: max(1, len(load.memory) // 20)]],
        "growth_mib_per_minute": round(load.growth() / 2**20, 2),
    }
    if options.registered:
        begin = time.perf_counter()
        await register_all(connection, services, MANY, options.registered)
        found["registering_s"] = round(time.perf_counter() - begin, 1)
        pages, beside = await list_in_pages(port, options.registered)
        found |= {"registered": options.registered, "pages": pages.summary(), "beside_pages": beside.summary()}
    return found


def started(stack: contextlib.ExitStack, count: int, database: str, every: float) -> Services:
    """Control services on one database, which end with `stack`."""
    command = [sys.executable, "-m", "tenfold.cli", "control", "--port", "0", "--database", database]
    environment = {**os.environ, "TENFOLD_CONTROL_HEARTBEAT": f"{every:g}", "TENFOLD_CONTROL_LEASE_TTL": "600"}
    services = Services([], [])
    for _ in range(count):
        service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        stack.enter_context(service)
        stack.callback(service.terminate)
        assert service.stdout is not None
        address = re.search(r"http://\S+:(\d+)", service.stdout.readline())
        assert address is not None, "the control service did not start"
        services.ports.append(int(address[1]))
        services.pids.append(service.pid)
    return services


def over(found: dict[str, Any]) -> Iterator[str]:
    """What is over its limit."""
    for name, limit in (("heartbeat", HEARTBEAT_MS), ("listing", LISTING_MS), ("page", LISTING_MS)):
        if found[name]["p99_ms"] > limit:
            yield f"p99 of a {name} is {found[name]['p99_ms']} ms; the limit is {limit:g} ms"
    if found["growth_mib_per_minute"] * 2**20 > GROWTH_PER_MINUTE:
        yield f"memory grows by {found['growth_mib_per_minute']} MiB a minute"


def shown(found: dict[str, Any]) -> str:
    lines = []
    for name, value in found.items():
        if isinstance(value, dict):
            p50, p99, most = (value[key] for key in ("p50_ms", "p99_ms", "max_ms"))
            value = f"p50 {p50:g} ms, p99 {p99:g} ms, max {most:g} ms of {value['count']:g}"
        lines.append(f"{name:24} {value}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=1000, help="tasks that send heartbeats")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two heartbeats of a task")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they do")
    parser.add_argument("--services", type=int, default=1, help="control services, on the one database")
    parser.add_argument("--database", help="of several services: postgresql://…, empty (default: a file, for one)")
    parser.add_argument("--registered", type=int, default=10_000, help="tasks that are listed in pages; 0: none")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--no-limits", action="store_true", help="exit with 0 whatever the figures are")
    parser.add_argument("--hold", action="store_true", help="wait for Enter before the load, to look at the process")
    options = parser.parse_args(arguments)
    if options.services > 1 and options.database is None:
        parser.error("several services need a database that they share: --database postgresql://…")
    with tempfile.TemporaryDirectory(prefix="tenfold-bench-") as folder, contextlib.ExitStack() as stack:
        services = started(stack, options.services, options.database or f"{folder}/control.db", options.every)
        if options.hold:
            input(f"the control services are processes {services.pids}; Enter goes on ")
        found = asyncio.run(measure(services, options))
    print(shown(found))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))
    failed = list(over(found))
    for line in failed:
        print(line)
    return 1 if failed and not options.no_limits else 0


if __name__ == "__main__":
    sys.exit(main())
