"""Connections that break in the middle of 64 MB, and bytes that arrive other than they were sent.

Between the client and the worker, and between the worker and the ps, there is a proxy (tests/support/faults/middle.py),
for gRPC and for links. A reset is an error with the task's name, whatever was under way, and the next step works. With
TLS the same holds for any garbling: nothing wrong is ever accepted. In the clear, over links, nothing but TCP's own
checksum looks at what a tensor holds: there the promise is that each step ends, that no process does, and that the next
step is right.
"""

from __future__ import annotations

import random
import re
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest

import tenfold as tf
from support.certs import HOSTS, access
from support.faults.middle import Fault, Middle
from support.ports import free_ports
from support.task_processes import CLI, PATIENCE, static_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tenfold.cli.children import Children

#: Where tasks are, and where the others find them: at the same ports of another address of loopback.
HERE, THERE = "127.0.0.1", "127.0.0.2"
MANY, FEW = 64 << 20, 256 << 10
#: Transport → TENFOLD_LINK, and whether it is TLS.
TRANSPORTS = {"link": ("tcp", False), "grpc": ("off", False), "tls-link": ("tcp", True), "tls-grpc": ("off", True)}
TASKS = ("ps/0", "worker/0")
#: Between whom, and which way → the proxies through which those bytes may go, by the task that was dialled: either of
#: two tasks may have dialled the other.
ROUTES = {
    ("client-worker", "there"): [("worker/0", "there")],
    ("client-worker", "back"): [("worker/0", "back")],
    ("worker-ps", "there"): [("ps/0", "there"), ("worker/0", "back")],
    ("worker-ps", "back"): [("ps/0", "back"), ("worker/0", "there")],
}
#: Whom the error names.
NAMED = {"client-worker": "/job:worker/replica:0/task:0", "worker-ps": "/job:(worker|ps)/replica:0/task:0"}
LOST = (tf.errors.UnavailableError, tf.errors.AbortedError)
#: Seconds until the error, as promised, and the deadline of steps for which that is not promised; what a busy machine
#: may add.
LONGEST, BUSY = 15.0, 3.0


class Proxied:
    """A ps and a worker that are reached through proxies only, and a session at the worker."""

    def __init__(
        self, children: Children, middles: dict[str, Middle], target: str, nbytes: int, deadline: float | None
    ) -> None:
        self._children, self._middles, self._target = children, middles, target
        self._options = None if deadline is None else tf.RunOptions(timeout_in_ms=int(deadline * 1000))
        count = nbytes // 4
        self._graph = tf.Graph()
        with self._graph.as_default():
            with tf.device("/job:worker/task:0"):
                self._first = tf.placeholder(tf.int32, [])
                numbers = tf.range(count) + self._first
                self._fed = tf.placeholder(tf.int32, [count])
                self._echo = tf.bitwise.invert(self._fed)
            with tf.device("/job:ps/task:0"):
                kept = tf.get_variable("kept", [count], tf.int32, tf.zeros_initializer(), use_resource=False)
                self._write = tf.assign(kept, numbers).op
                self._initialized = tf.global_variables_initializer()
            with tf.device("/job:worker/task:0"):
                self._right = tf.reduce_all(tf.equal(tf.identity(kept), numbers))
        self._open()
        self._session.run(self._initialized)
        self._sent = np.arange(count, dtype=np.int32)
        #: What the next write writes, so that what was written before is not taken for it.
        self._next = 0
        self._writes()

    def _open(self) -> None:
        self._session = tf.Session(self._target, graph=self._graph)

    def close(self) -> None:
        with suppress(tf.errors.OpError):
            self._session.close()

    def moves(self, place: str, direction: str) -> Callable[[], bool]:
        """A step that moves all the bytes between those two in that direction; its result: whether they are right.

        What the worker dials is "there", what comes back "back".
        """
        if place == "client-worker":
            return self._echoes
        return self._writes if direction == "there" else self._reads

    def _run(self, fetch: Any, feeds: dict[Any, Any]) -> Any:
        return self._session.run(fetch, feeds, options=self._options)

    def _echoes(self) -> bool:
        return bool(np.array_equal(self._run(self._echo, {self._fed: self._sent}), ~self._sent))

    def _writes(self) -> bool:
        self._next += 1
        self._run(self._write, {self._first: self._next})
        return self._reads()

    def _reads(self) -> bool:
        return bool(self._run(self._right, {self._first: self._next}))

    def struck(self, route: tuple[str, str], fault: Fault, step: Callable[[], bool]) -> bool | tf.errors.OpError:
        """How the step ends that the fault strikes, and that it does in time."""
        middles = [self._middles[name] for name, _ in ROUTES[route]]
        before = sum(middle.struck for middle in middles)
        for middle, (_, direction) in zip(middles, ROUTES[route], strict=True):
            middle.set(replace(fault, direction=direction))
        began = time.monotonic()
        try:
            return step()
        except tf.errors.OpError as error:
            return error
        finally:
            # a write is two steps
            assert time.monotonic() - began < 2 * (LONGEST + BUSY)
            for middle in middles:
                middle.set(None)
            assert sum(middle.struck for middle in middles) > before, "the fault has not struck"

    def healed(self, step: Callable[[], bool]) -> bool:
        """Whether the step works again, in this session or in a new one."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(tf.errors.OpError):
                if step():
                    return True
            self.close()
            with suppress(tf.errors.OpError):
                self._open()
                self._writes()
        return False

    def memory(self) -> dict[str, int]:
        """Bytes that each process has."""
        return {name: psutil.Process(self._children.pid(name)).memory_info().rss for name in TASKS}

    def descriptors(self) -> dict[str, int]:
        return {name: psutil.Process(self._children.pid(name)).num_fds() for name in TASKS}

    def alive(self) -> bool:
        return self._children.wait_for_exit(list(TASKS), 0) is None


@contextmanager
def proxied(transport: str, folder: Path, nbytes: int, deadline: float | None = None) -> Iterator[Proxied]:
    link, tls = TRANSPORTS[transport]
    ports = dict(zip(TASKS, free_ports(2), strict=True))
    with pytest.MonkeyPatch.context() as patch, static_cluster() as tasks, ExitStack() as stack:
        patch.setenv("TENFOLD_LINK", link)
        if tls:
            mine = access(folder, hosts=(*HOSTS, THERE))
            for name in ("cert", "key", "ca"):
                patch.setenv(f"TENFOLD_TLS_{name.upper()}", str(getattr(mine, f"tls_{name}")))
            patch.setenv("TENFOLD_TLS", "always")
        tasks.addresses = {name.split("/")[0]: [f"{THERE}:{port}"] for name, port in ports.items()}
        middles = {}
        for name, port in ports.items():
            stack.enter_context(middle := Middle((THERE, port), (HERE, port)))
            middles[name] = middle
        for name, port in ports.items():
            tasks.launch(name, [*CLI, "task", *_options(name, tasks.addresses), "--bind", f"{HERE}:{port}"])
        for name, port in ports.items():
            tasks.children.wait_for_line(name, "listening on grpc://", PATIENCE)
            if link == "tcp":
                # links have a port of their own, which dialling asks for: at the address that it knows
                [own] = _listening(tasks.children.pid(name)) - {port}
                stack.enter_context(middle := Middle((THERE, own), (HERE, own)))
                middles[name] = middle
        cluster = Proxied(tasks.children, middles, f"grpc://{THERE}:{ports['worker/0']}", nbytes, deadline)
        try:
            yield cluster
        finally:
            cluster.close()


def _options(name: str, addresses: dict[str, list[str]]) -> list[str]:
    job, _, index = name.partition("/")
    return ["--job", job, "--index", index, "--cluster", str(addresses).replace("'", '"')]


def _listening(pid: int) -> set[int]:
    """The TCP ports at which the process listens."""
    found = psutil.Process(pid).net_connections("tcp4")
    return {connection.laddr.port for connection in found if connection.status == psutil.CONN_LISTEN}


#: After so many resets the memory that a process keeps for further use is there.
WARM = 2
#: With other transports than links in the clear not every route is tried again.
RESETS = [
    *(("link", *route) for route in ROUTES),
    *((transport, "worker-ps", "back") for transport in ("grpc", "tls-link", "tls-grpc")),
    *((transport, "client-worker", "there") for transport in ("grpc", "tls-link")),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("transport", "place", "direction", "resets"),
    [("link", "worker-ps", "back", 2), *(pytest.param(*each, 8, marks=pytest.mark.long) for each in RESETS)],
)
def test_a_reset_in_the_middle_of_a_large_tensor(
    tmp_path: Path, transport: str, place: str, direction: Any, resets: int
) -> None:
    with proxied(transport, tmp_path, MANY) as cluster:
        step = cluster.moves(place, direction)
        assert [step() for _ in range(4)] == [True] * 4
        memory, descriptors = cluster.memory(), cluster.descriptors()
        ends = []
        for number in range(resets):
            fault = Fault("reset", direction, MANY * (number + 1) // (resets + 2))
            ends.append(cluster.struck((place, direction), fault, step))
            assert cluster.healed(step)
            if number == WARM:
                memory = cluster.memory()
        grown = {name: now - memory[name] for name, now in cluster.memory().items()}
        more = {name: now - descriptors[name] for name, now in cluster.descriptors().items()}

    for end in ends:
        assert isinstance(end, LOST), end
        assert re.search(NAMED[place], end.message), end
    # less than a tensor for each; a new session takes some of its own until the old one is collected
    assert resets <= WARM or max(grown.values()) < 4 * MANY, grown
    assert max(more.values()) <= 8, more


def fault_of(seed: int) -> tuple[tuple[str, str], Fault]:
    """Who is garbled, and how. Every other one strikes the first bytes, where the message says what it is."""
    chance = random.Random(seed)
    route = chance.choice(list(ROUTES))
    kind: Any = ("flip", "cut", "repeat")[seed % 3]
    at = chance.randrange(200) if seed % 2 else chance.randrange(FEW)
    return route, Fault(kind, "there", at, seed)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("transport", "seeds"),
    [("tls-link", 3), *(pytest.param(each, 18, marks=pytest.mark.long) for each in ("tls-link", "tls-grpc"))],
)
def test_with_tls_what_is_garbled_is_never_accepted(tmp_path: Path, transport: str, seeds: int) -> None:
    with proxied(transport, tmp_path, FEW) as cluster:
        for seed in range(seeds):
            route, fault = fault_of(seed)
            step = cluster.moves(*route)
            end = cluster.struck(route, fault, step)
            assert end is True or isinstance(end, LOST), (route, fault, end)
            assert end is True or re.search(NAMED[route[0]], end.message), (route, fault, end)
            assert cluster.healed(step), (route, fault)
            assert cluster.alive(), (route, fault)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_in_the_clear_each_step_ends_and_the_next_one_is_right(tmp_path: Path) -> None:
    with proxied("link", tmp_path, FEW, LONGEST) as cluster:
        memory, descriptors = cluster.memory(), cluster.descriptors()
        for seed in range(18):
            route, fault = fault_of(seed)
            step = cluster.moves(*route)
            # its result may be wrong: nothing promises that it is right
            cluster.struck(route, fault, step)
            assert cluster.healed(step), (route, fault)
            assert cluster.alive(), (route, fault)
        grown = {name: now - memory[name] for name, now in cluster.memory().items()}
        more = {name: now - descriptors[name] for name, now in cluster.descriptors().items()}

    assert max(grown.values()) < 256 << 20, grown
    assert max(more.values()) <= 12, more
