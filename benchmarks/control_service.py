"""10. The control service: tasks register → spec → session → first step, in cold processes; then steps over REST.

The cold start is timed from the launch of the processes (a ps, a worker, a client; for Tenfold a control service too)
to the client's first result. TensorFlow has no control service: its servers get their addresses as arguments.
Started as `control_service.py client …` this file is that client.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
from harness import Case, Effort, Process, Subject, Topology, Wish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tenfold.cli.local import LocalCluster
    from tenfold.control import ControlClient

SIDES = (harness.TENFOLD, harness.TENSORFLOW)
CLUSTER = Topology(servers=("ps:0", "worker:0"), clients=("@worker:0",), pinned=False)

COLD = Case(
    "cold start: launch → first step",
    CLUSTER,
    harness.not_a_program,
    {"tenfold": 3},
    note="Tenfold with control service and registration, TensorFlow with addresses given by hand",
)
#: Of what is timed on a running cluster.
LIMITS_US = {"POST session": 150_000.0, "REST step": 1500.0, "a missing task is reported": 1e6}


def build_graph(tf: Any) -> tuple[Any, Any, Any]:
    """A variable on the ps and a product on the worker: (graph, initializer, fetch)."""
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable([[1.0, 2.0]], name="v")
        with tf.device("/job:worker/task:0"):
            product = tf.multiply(v, 21.0, name="product")
        init = tf.global_variables_initializer()
    return graph, init, product


def first_step(runtime: str, where: str) -> None:
    """The client process of a cold start; `where` is the control service's URL or the worker's target."""
    from role import load_runtime

    tf = load_runtime(runtime)
    target = where
    if runtime == "tenfold":
        from tenfold.control import ControlClient

        with ControlClient(where) as control:
            spec = control.wait_for_spec("default", until_complete=True, timeout=60).cluster_spec()
        target = "grpc://" + spec.task_address("worker", 0)
    graph, init, product = build_graph(tf)
    with tf.Session(target, graph=graph) as sess:
        sess.run(init)
        print(json.dumps(sess.run(product).tolist()), flush=True)
    os._exit(0)


def run_client(python: str, runtime: str, where: str) -> None:
    client = [python, __file__, "client", runtime, where]
    done = subprocess.run(client, capture_output=True, text=True, timeout=240)
    if done.returncode:
        raise RuntimeError(f"the client of {runtime} ended with {done.returncode}: {done.stderr[-600:]}")
    assert json.loads(done.stdout.splitlines()[-1]) == [[21.0, 42.0]], done.stdout


def cold_tenfold(pythons: Mapping[str, str], folder: Path) -> float:
    """Microseconds from the launch to the first result. LocalCluster starts control service and tasks as users do."""
    from tenfold.cli.local import LocalCluster

    start = time.perf_counter()
    with LocalCluster(ps=1, workers=1) as cluster:
        run_client(pythons["tenfold"], "tenfold", cluster.control_url)
        return (time.perf_counter() - start) * 1e6


def cold_tensorflow(pythons: Mapping[str, str], folder: Path) -> float:
    start = time.perf_counter()
    ports = harness.free_ports(2)
    addresses = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]}
    side = harness.side_as_json(harness.TENSORFLOW)
    base = {"side": side, "cluster": addresses, "role": "server", "cores": sorted(os.sched_getaffinity(0))}
    servers = [
        Process(harness.TENSORFLOW, task, {**base, "task": task}, pythons["tensorflow"], folder)
        for task in ("ps:0", "worker:0")
    ]
    try:
        # As in a script: all processes at once; the session waits for the servers.
        run_client(pythons["tensorflow"], "tensorflow", f"grpc://{addresses['worker'][0]}")
        return (time.perf_counter() - start) * 1e6
    finally:
        for server in servers:
            server.stop()


class Rest:
    """One kept-alive connection to the control service with minimal client code, so that the service is what is timed.

    A request leaves in one piece, and of the answer's head only status and length are read: http.client costs as much
    as all of the service's own work on a step, httpx three times that.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._address = (host, int(port))
        self._shown = "" if token is None else f"Authorization: Bearer {token}\r\n"
        self._sock: socket.socket | None = None
        self._used = 0.0

    def send(self, method: str, path: str, body: bytes | None, content_type: str, expected: int = 300) -> bytes:
        """The answer's body. Raises RuntimeError for a status that is not below `expected`."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._address[0]}\r\nContent-Type: {content_type}\r\n{self._shown}"
        sock = self._connected()
        sock.sendall(f"{head}Content-Length: {len(body or b'')}\r\n\r\n".encode() + (body or b""))
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._received(sock)
        top, _, rest = answer.partition(b"\r\n\r\n")
        lines = top.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        while len(rest) < length:
            rest += self._received(sock)
        if int(lines[0].split()[1]) >= expected:
            raise RuntimeError(f"{method} {path}: {lines[0].decode()} {rest[:300]!r}")
        return rest

    def _connected(self) -> socket.socket:
        """The connection, made anew where the service may have closed it meanwhile (uvicorn does after 5 s)."""
        now = time.monotonic()
        if self._sock is None or now - self._used > 2.0:
            self.close()
            self._sock = socket.create_connection(self._address, timeout=60)
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._used = now
        return self._sock

    def _received(self, sock: socket.socket) -> bytes:
        some = sock.recv(1 << 16)
        if not some:
            raise RuntimeError("the control service closed the connection")
        return some

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()

    def ask(self, method: str, path: str, body: Any = None, expected: int = 300) -> dict[str, Any]:
        """Sends JSON, returns the answer's JSON."""
        text = json.dumps(body).encode() if body is not None else None
        answer = self.send(method, path, text, "application/json", expected)
        parsed: dict[str, Any] = json.loads(answer) if answer else {}
        return parsed


def timed_once(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


def repeat(call: Callable[[], Any], seconds: float) -> dict[str, float]:
    taken: list[float] = []
    deadline = time.monotonic() + seconds
    while len(taken) < 3 or time.monotonic() < deadline:
        taken.append(timed_once(call))
    taken.sort()
    return {"p50_us": statistics.median(taken), "p99_us": taken[int(0.99 * (len(taken) - 1))]}


class Warm:
    """One running cluster, and the calls timed on it, by name: registering, opening a session, steps over REST."""

    def __init__(self, cluster: LocalCluster, control: ControlClient, tasks: int) -> None:
        """`tasks` is how many will register."""
        from google.protobuf import json_format

        import tenfold as tf

        self._tf, self._control = tf, control
        self._rest = Rest(cluster.control_url)
        self._graph, self._init, self._product = build_graph(tf)
        self._target = f"grpc://{cluster.addresses['worker', 0]}"
        definition = json_format.MessageToDict(self._graph.as_graph_def(), preserving_proto_field_name=True)
        self._wanted = {"cluster": "default", "job": "worker", "index": 0, "graph_def": definition}
        self._rest.ask("PUT", "/v1/clusters/extra", {"jobs": {"worker": tasks}})
        self._rest.ask("PUT", "/v1/clusters/missing", {"jobs": {"worker": 1}})
        #: Name of the call → round → figures.
        self.found: dict[str, dict[int, dict[str, float]]] = {}

    def round(self, number: int, seconds: float) -> None:
        """One round. Every step's answer is checked once."""
        register = functools.partial(self._register, number)
        self._note("a task registers, and is in the spec", number, timed_once(register))
        refused = functools.partial(self._rest.ask, "POST", "/v1/sessions", {**self._wanted, "cluster": "missing"}, 504)
        self._note("a missing task is reported", number, timed_once(refused))
        before = time.perf_counter()
        name = self._rest.ask("POST", "/v1/sessions", self._wanted)["name"]
        self._note("POST session", number, (time.perf_counter() - before) * 1e6)

        steps = f"/v1/sessions/{name}/steps"
        self._rest.ask("POST", steps, {"targets": [self._init.name]})
        step = functools.partial(self._rest.ask, "POST", steps, {"outputs": [{"name": self._product.name}]})
        self._note("REST step, first", number, timed_once(step))
        assert step()["outputs"][0]["data"] == [21.0, 42.0]
        self._note("REST step", number, repeat(step, seconds))
        self._note("REST step, protobuf", number, repeat(self._protobuf_step(steps), seconds))
        session = self._control.session(name)
        call = functools.partial(session.run, self._product)
        self._note("REST step by ControlClient", number, repeat(call, seconds))
        # for comparison: a request that does nothing, and the same step over a link
        probe = functools.partial(self._rest.ask, "GET", "/healthz")
        self._note("GET /healthz", number, repeat(probe, seconds / 2))
        with self._tf.Session(self._target, graph=self._graph) as sess:
            direct = functools.partial(sess.run, self._product)
            direct()
            self._note("the same step by a Session", number, repeat(direct, seconds / 2))
        self._rest.ask("DELETE", f"/v1/sessions/{name}")

    def close(self) -> None:
        self._rest.close()

    def _note(self, name: str, number: int, figures: float | dict[str, float]) -> None:
        both = figures if isinstance(figures, dict) else {"p50_us": figures, "p99_us": figures}
        self.found.setdefault(name, {})[number] = both

    def _register(self, number: int) -> None:
        task = {"address": f"127.0.0.1:{2000 + number}", "incarnation": f"{number + 1:x}"}
        self._rest.ask("PUT", f"/v1/clusters/extra/tasks/worker/{number}", task)
        self._rest.ask("GET", "/v1/clusters/extra/spec?after=0&wait=5s")

    def _protobuf_step(self, path: str) -> Callable[[], object]:
        from tenfold_protos import master_pb2

        body = master_pb2.RunStepRequest(fetch=[self._product.name]).SerializeToString()

        def step() -> master_pb2.RunStepResponse:
            answer = self._rest.send("POST", path, body, "application/x-protobuf")
            return master_pb2.RunStepResponse.FromString(answer)

        from tenfold_core import tensor_util

        assert tensor_util.make_ndarray(step().tensor[0].tensor).tolist() == [[21.0, 42.0]]
        return step


def cold_row(effort: Effort, wish: Wish) -> dict[str, Any]:
    starts = {side.name: side for side in SIDES if wish.takes(side)}
    with tempfile.TemporaryDirectory(prefix="tenfold-bench-", ignore_cleanup_errors=True) as folder:
        cold: dict[str, dict[int, dict[str, float]]] = {name: {} for name in starts}
        # the first run of each side fills the caches and is not counted
        for number in range(-1, max(3, effort.rounds // 2)):
            for name in cold:
                start = cold_tenfold if name == "tenfold" else cold_tensorflow
                taken = start(wish.pythons, Path(folder))
                if number >= 0:
                    cold[name][number] = {"p50_us": taken, "p99_us": taken}
    return harness.row_of(COLD, cold, starts, {}, "equal", 0.0)


def rows(effort: Effort, wish: Wish) -> Iterator[dict[str, Any]]:
    from tenfold.cli.local import LocalCluster
    from tenfold.control import ControlClient

    if wish.only in COLD.name:
        yield cold_row(effort, wish)
    if not wish.takes(harness.TENFOLD):
        return
    with LocalCluster(ps=1, workers=1) as cluster, ControlClient(cluster.control_url) as control:
        control.wait_for_spec("default", until_complete=True, timeout=60)
        warm = Warm(cluster, control, effort.rounds)
        for number in range(effort.rounds):
            warm.round(number, effort.seconds)
        warm.close()
    for name, rounds in warm.found.items():
        if wish.only in name:
            limits = {"tenfold": LIMITS_US[name]} if name in LIMITS_US else {}
            case = Case(name, CLUSTER, harness.not_a_program, limits_us=limits)
            yield harness.row_of(case, {"tenfold": rounds}, {"tenfold": harness.TENFOLD}, {}, "equal", 0.0)


SUBJECT = Subject("10", "control_service", "control service", rows=rows)

if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        first_step(*sys.argv[2:])
    else:
        harness.main(SUBJECT)
