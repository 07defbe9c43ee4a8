"""A hostile peer: malformed and malicious requests to every door of a cluster, as many as wanted, the same for a seed.

    python tests/process/hostile.py [--requests 100000] [--seed 0] [--patience 30]

Starts a control service, a ps and a worker as processes and attacks all three: gRPC (hostile_requests.py, with graphs
of hostile_graphs.py), links and REST (hostile_sockets.py). Prints what was answered, how long the slowest answer of
each kind took, what the processes hold after every fifth of the way, and whether a real session still trains; the last
line sums it up. Ends with status 1 if a process died, hung, grew, or serves no more. test_hostile.py does the
same with fewer requests.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import urllib.error
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import grpc
import psutil

import tenfold as tf
from process.hostile_graphs import FED, FETCHES, SMALL
from process.hostile_requests import CLOSE, CREATE, RECV, REGISTER, RUN, Attack, fed_step
from process.hostile_sockets import attack_link, attack_rest
from support.task_processes import CLI, Tasks, static_cluster
from tenfold_protos import graph_pb2, master_pb2, worker_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: Seconds after which a call counts as hanging, and for anything else that should happen.
PATIENCE = 30.0
#: What one tensor may take in the attacked tasks, and each of them as a whole: the attack must not take the machine.
TENSOR_BYTES, TASK_BYTES = 16 << 20, 3 << 30
#: Freed blocks go back to the system at once, or what the C library keeps for later would look like growth. Kernels'
#: memory (tenfold_kernels.memory) goes back within seconds.
ENVIRONMENT = {
    "TENFOLD_TENSOR_BYTES": str(TENSOR_BYTES),
    "MALLOC_TRIM_THRESHOLD_": str(128 << 10),
    "MALLOC_MMAP_THRESHOLD_": str(128 << 10),
}
#: Seconds for a call that may rightly wait: a tensor that is never produced.
GLANCE = 0.2
#: Seconds within which the processes should have come to rest, kernels included whose steps are over.
REST_SECONDS = 120.0
#: Calls under way at once.
WINDOW = 8
#: Of so many requests one goes to a link, and one to the control service.
LINK_EVERY, REST_EVERY = 25, 25
#: A session serves so many requests, unless a hostile one closes it before.
SESSION_REQUESTS = 2000
#: MiB and descriptors by which a process may grow between a fifth of the way and its end, however long the way is: what
#: is compiled and loaded late, but no tensor of a failed step.
GROWN_MIB, GROWN_FILES = 64, 8
#: Registrations of a graph of 5,000 nodes at each task before all others: what it keeps of them has a limit, which is
#: reached before anything is measured; one for so many requests, since a few requests do not reach it.
FILLING, FILLING_EVERY = 30, 500


@dataclass
class Result:
    """What came of an attack."""

    requests: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    #: Kind of request → (seconds of its slowest answer, number of the request).
    worst: dict[str, tuple[float, int]] = field(default_factory=dict)
    #: Requests that had no answer in time, as "number kind method".
    hung: list[str] = field(default_factory=list)
    #: Process → (MiB resident, descriptors), after each fifth of the way.
    marks: list[dict[str, tuple[float, int]]] = field(default_factory=list)

    def note(self, kind: str, number: int, seconds: float, answer: str) -> None:
        """A request was answered."""
        self.requests += 1
        self.answers[answer] += 1
        self.worst[kind] = max(self.worst.get(kind, (0.0, 0)), (seconds, number))

    def summary(self, seed: int, works: bool) -> str:
        """One line."""
        slowest = max((seconds for seconds, _ in self.worst.values()), default=0.0)
        return (
            f"{self.requests} requests of seed {seed}: {len(self.hung)} hung, {len(self.grown())} of "
            f"{len(self.marks[0])} processes grew, slowest answer {slowest:.1f} s, "
            f"a real session trains afterwards: {works}"
        )

    def grown(self) -> list[str]:
        """The processes that hold more than they should."""
        before, after = self.marks[0], self.marks[-1]
        return [
            name
            for name, (memory, files) in after.items()
            if memory > before[name][0] + GROWN_MIB or files > before[name][1] + GROWN_FILES
        ]


@dataclass
class _Flight:
    """A call under way."""

    number: int
    kind: str
    name: str
    path: str
    call: Any
    began: float
    ended: float = 0.0


def attack(
    tasks: dict[str, tuple[str, int]], requests: int, seed: int, control: tuple[str, int], patience: float
) -> Result:
    """Sends so many requests, in turn to each task: name → (address, pid). `control`: (URL, pid) of a control service.

    Raises if a process answers no more.
    """
    result = Result()
    pids = {name: pid for name, (_, pid) in tasks.items()} | {"control": control[1]}
    channels = {
        name: grpc.insecure_channel(address, options=[("grpc.max_send_message_length", -1)])
        for name, (address, _) in tasks.items()
    }
    try:
        for _ in _Driver(channels, seed, result, control[0], patience).drive(requests):
            result.marks.append(held_at_rest(pids))
    finally:
        for channel in channels.values():
            channel.close()
    return result


class _Driver:
    """Sends the requests and takes the answers."""

    def __init__(
        self, channels: dict[str, grpc.Channel], seed: int, result: Result, control: str, patience: float
    ) -> None:
        self._channels, self._result, self._control, self._patience = channels, result, control, patience
        self._attacker = Attack(seed)
        self._random = random.Random(seed + 1)
        #: The task whose master has the session.
        self._own = list(channels)[-1]
        self._opened = -SESSION_REQUESTS
        #: Fetches that the session has run with small feeds.
        self._warm: set[str] = set()

    def drive(self, requests: int) -> Iterator[None]:
        """Sends them; yields after each fifth, when all are answered."""
        names = list(self._channels)
        for channel in self._channels.values():
            _fill(channel, min(FILLING, requests // FILLING_EVERY), self._patience)
        self._renew(0)
        for fetch in FETCHES:
            self._run_small(fetch, 0)
        ends = {requests * fifth // 5 - 1 for fifth in range(1, 6)}
        flying: deque[_Flight] = deque()
        for number in range(requests):
            if number - self._opened >= SESSION_REQUESTS:
                self._renew(number)
            name = names[number % len(names)]
            if number % LINK_EVERY == 7:
                self._other("link", number, partial(attack_link, self._channels[name], self._random, self._patience))
            elif number % REST_EVERY == 13:
                self._other("REST", number, partial(attack_rest, self._control, self._random, self._patience))
            else:
                flying.append(self._send(number, name))
            while len(flying) >= WINDOW:
                self._land(flying.popleft())
            if number in ends:
                while flying:
                    self._land(flying.popleft())
                yield
        _close(self._channels[self._own], self._attacker.session, self._patience)

    def _send(self, number: int, name: str) -> _Flight:
        kind, path, message = self._attacker.request()
        if kind in ("hostile sizes", "long lists", "partial runs and callables"):
            name = self._own
        if kind == "hostile sizes" and self._attacker.fetch not in self._warm:
            self._run_small(self._attacker.fetch, number)
        seconds = GLANCE if path == RECV else self._patience
        method: Any = self._channels[name].unary_unary(path)
        call = method.future(message, timeout=seconds)
        flight = _Flight(number, kind, name, path, call, time.monotonic())
        call.add_done_callback(lambda _: setattr(flight, "ended", time.monotonic()))
        return flight

    def _land(self, flight: _Flight) -> None:
        error = flight.call.exception()
        seconds = (flight.ended or time.monotonic()) - flight.began
        if error is None:
            self._result.note(flight.kind, flight.number, seconds, "OK")
            response = master_pb2.CreateSessionResponse() if flight.path == CREATE else None
            if response is not None and flight.kind != "sessions left open":
                response.ParseFromString(flight.call.result())
                _close(self._channels[flight.name], response.session_handle, self._patience)
            if flight.path == RUN and flight.kind == "hostile sizes":
                answer = master_pb2.RunStepResponse.FromString(flight.call.result())
                if "is not found" in answer.status_error_message:
                    # a hostile Reset closes every session of its master
                    self._renew(flight.number)
            return
        code = error.code().name
        # a request may bring a deadline of its own, which the server then says has passed
        answered = ("tenfold-said", "1") in (error.trailing_metadata() or ())
        if code == "DEADLINE_EXCEEDED" and flight.path != RECV and not answered:
            self._result.hung.append(f"{flight.number} {flight.kind} {flight.path}")
        if code == "UNAVAILABLE" and not answered:
            raise AssertionError(
                f"request {flight.number}, {flight.kind}, {flight.path}: {flight.name} is gone: {error}"
            )
        self._result.note(flight.kind, flight.number, seconds, code)

    def _other(self, kind: str, number: int, send: Callable[[], str]) -> None:
        """A request to another door; nothing else is sent meanwhile."""
        began = time.monotonic()
        try:
            answer = send()
        except (TimeoutError, urllib.error.URLError, grpc.RpcError) as error:
            self._result.hung.append(f"{number} {kind}: {error}")
            answer = "HUNG"
        self._result.note(kind, number, time.monotonic() - began, answer)

    def _renew(self, number: int) -> None:
        """Another session for steps with hostile sizes."""
        channel = self._channels[self._own]
        if self._attacker.session:
            _close(channel, self._attacker.session, self._patience)
        self._attacker.session = _open(channel, FED, self._patience)
        self._opened = number
        self._warm.clear()

    def _run_small(self, fetch: str, number: int) -> None:
        """Runs a step until the server takes it for a short one."""
        self._warm.add(fetch)
        call: Any = self._channels[self._own].unary_unary(RUN)
        request = fed_step(self._attacker.session, fetch, SMALL).SerializeToString()
        for _ in range(3):
            try:
                call(request, timeout=self._patience)
            except grpc.RpcError as error:
                self._result.hung.append(f"{number} small feeds for {fetch}: {error}")


def _open(channel: grpc.Channel, graph: graph_pb2.GraphDef, seconds: float) -> str:
    request = master_pb2.CreateSessionRequest(graph_def=graph).SerializeToString()
    call: Any = channel.unary_unary(CREATE)
    answer = call(request, timeout=seconds)
    return master_pb2.CreateSessionResponse.FromString(answer).session_handle


def _close(channel: grpc.Channel, handle: str, seconds: float) -> None:
    request = master_pb2.CloseSessionRequest(session_handle=handle).SerializeToString()
    call: Any = channel.unary_unary(CLOSE)
    try:
        call(request, timeout=seconds)
    except grpc.RpcError as error:
        # a hostile Reset closes every session of its master
        if error.code().name != "ABORTED":  # type: ignore[attr-defined]
            raise


def _fill(channel: grpc.Channel, count: int, seconds: float) -> None:
    """Registers so many graphs without a session."""
    graph = graph_pb2.GraphDef(node=[{"name": "n0", "op": "NoOp"}])
    for i in range(1, 5000):
        graph.node.add(name=f"n{i}", op="NoOp", input=[f"^n{i - 1}"])
    request = worker_pb2.RegisterGraphRequest(graph_def=graph).SerializeToString()
    call: Any = channel.unary_unary(REGISTER)
    for _ in range(count):
        call(request, timeout=seconds)


def held_at_rest(pids: dict[str, int]) -> dict[str, tuple[float, int]]:
    """What the processes hold once they compute nothing: kernels whose steps are over still hold tensors."""
    end = time.monotonic() + REST_SECONDS
    clock, busy = threading.Event(), True
    while busy and time.monotonic() < end:
        before = {name: _computed(pid) for name, pid in pids.items()}
        clock.wait(1.0)
        busy = any(_computed(pid) - before[name] > 0.1 for name, pid in pids.items())
    return {name: held(pid) for name, pid in pids.items()}


def _computed(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    used = psutil.Process(pid).cpu_times()
    return used.user + used.system


def held(pid: int) -> tuple[float, int]:
    """(MiB resident, open descriptors) of a process."""
    process = psutil.Process(pid)
    return process.memory_info().rss / (1 << 20), process.num_fds()


def trains(target: str) -> bool:
    """Whether a session of ours still trains on the attacked cluster."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [3], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(tf.square(w - 1.0))
        update = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
        with tf.Session(target) as session:
            session.run(w.initializer)
            for _ in range(10):
                session.run(update)
            return bool(session.run(loss) < 1e-4)


@contextlib.contextmanager
def attacked_cluster() -> Iterator[Tasks]:
    """A ps and a worker that have little memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    before = dict(os.environ)
    with contextlib.ExitStack() as stack:
        try:
            # children begin with what their parent has
            os.environ |= ENVIRONMENT
            resource.setrlimit(resource.RLIMIT_DATA, (TASK_BYTES, hard))
            cluster = stack.enter_context(static_cluster(ps=1, worker=1))
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
            for name in ENVIRONMENT.keys() - before.keys():
                del os.environ[name]
            os.environ |= before
        yield cluster


def attack_cluster(requests: int, seed: int, patience: float = PATIENCE) -> tuple[Result, bool]:
    """Attacks a cluster and its control service; (what came of it, whether a real session still trains)."""
    with attacked_cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        children = cluster.children
        tasks = {
            f"{job}/{index}": (cluster.addresses[job][index], children.pid(f"{job}/{index}"))
            for job, index in cluster.names
        }
        children.start("control", [*CLI, "control", "--port", "0", "--database", f"{folder}/control.db"], stage=1)
        address = children.wait_for_line("control", r"listening on (http://\S+)", 2 * PATIENCE)[1]
        result = attack(tasks, requests, seed, (address, children.pid("control")), patience)
        works = trains(cluster.target("worker", 0))
        os.kill(children.pid("control"), signal.SIGTERM)
        children.wait_for_exit(["control"], PATIENCE)
        return result, works


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds after which a request has hung")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    result, works = attack_cluster(options.requests, options.seed, options.patience)
    for code, count in result.answers.most_common():
        print(f"{code:24}{count:8}")
    for kind, (seconds, number) in sorted(result.worst.items(), key=lambda item: -item[1][0]):
        print(f"{kind:32}{seconds:8.2f} s at most, request {number}")
    for name in result.marks[0]:
        held_then = [mark[name] for mark in result.marks]
        print(
            f"{name}: {' → '.join(f'{memory:.0f}' for memory, _ in held_then)} MiB, "
            f"{held_then[0][1]} → {held_then[-1][1]} descriptors"
        )
    for one in result.hung:
        print(f"hung: {one}")
    print(f"{result.summary(options.seed, works)}; {time.monotonic() - began:.0f} s")
    return int(bool(result.grown()) or bool(result.hung) or not works)


if __name__ == "__main__":
    sys.exit(main())
