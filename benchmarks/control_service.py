"""10. The control service: tasks register → spec → session → first step, in cold processes; then steps over REST.

The cold start is timed from the launch of the processes (a ps, a worker, a client; for Tenfold a control service too)
to the client's first result. TensorFlow has nothing like the control service: its servers get their addresses by hand.
Started as `control_service.py client …` this file is that client.
"""

from __future__ import annotations

import functools
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
from harness import Case, Effort, Measure, Process, Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CLUSTER = Topology(servers=("ps:0", "worker:0"), clients=("@worker:0",), pinned=False)


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
    done = subprocess.run(
        [python, __file__, "client", runtime, where], check=True, capture_output=True, text=True, timeout=120
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [[21.0, 42.0]], done.stdout


def cold_tenfold(pythons: Mapping[str, str], folder: Path) -> float:
    """Microseconds from nothing to the first result. LocalCluster starts control service and tasks as users do."""
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
        # As a script would: everything at once; the session waits for the servers.
        run_client(pythons["tensorflow"], "tensorflow", f"grpc://{addresses['worker'][0]}")
        return (time.perf_counter() - start) * 1e6
    finally:
        for server in servers:
            server.stop()


class Rest:
    """One kept-alive connection to the control service, with nothing around it."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        text = json.dumps(body).encode() if body is not None else None
        self._connection.request(method, path, text, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        answer = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {answer[:300]!r}")
        parsed: dict[str, Any] = json.loads(answer) if answer else {}
        return parsed

    def close(self) -> None:
        self._connection.close()


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


def warm(effort: Effort) -> dict[str, dict[int, dict[str, float]]]:
    """On one running cluster, by what was timed: registering, opening a session, steps over REST and past it."""
    from google.protobuf import json_format

    import tenfold as tf
    from tenfold.cli.local import LocalCluster
    from tenfold.control import ControlClient

    graph, init, product = build_graph(tf)
    found: dict[str, dict[int, dict[str, float]]] = {}

    def note(name: str, number: int, figures: float | dict[str, float]) -> None:
        both = figures if isinstance(figures, dict) else {"p50_us": figures, "p99_us": figures}
        found.setdefault(name, {})[number] = both

    with LocalCluster(ps=1, workers=1) as cluster, ControlClient(cluster.control_url) as control:
        control.wait_for_spec("default", until_complete=True, timeout=60)
        rest = Rest(cluster.control_url)
        definition = json_format.MessageToDict(graph.as_graph_def(), preserving_proto_field_name=True)
        wanted = {"cluster": "default", "job": "worker", "index": 0, "graph_def": definition}
        rest.ask("PUT", "/v1/clusters/extra", {"jobs": {"worker": effort.rounds}})
        for number in range(effort.rounds):
            task = {"address": f"127.0.0.1:{2000 + number}", "incarnation": f"{number + 1:x}"}
            where = f"/v1/clusters/extra/tasks/worker/{number}"

            def register(where: str = where, task: dict[str, str] = task) -> None:
                rest.ask("PUT", where, task)
                rest.ask("GET", "/v1/clusters/extra/spec?after=0&wait=5s")

            note("a task registers, and is in the spec", number, timed_once(register))
            before = time.perf_counter()
            name = rest.ask("POST", "/v1/sessions", wanted)["name"]
            note("POST session", number, (time.perf_counter() - before) * 1e6)
            steps = f"/v1/sessions/{name}/steps"
            rest.ask("POST", steps, {"targets": [init.name]})
            step = functools.partial(rest.ask, "POST", steps, {"outputs": [{"name": product.name}]})
            note("REST step, first", number, timed_once(step))
            note("REST step", number, repeat(step, effort.seconds))
            session = control.session(name)
            note("REST step by ControlClient", number, repeat(functools.partial(session.run, product), effort.seconds))
            rest.ask("DELETE", f"/v1/sessions/{name}")
        rest.close()
    return found


def run(effort: Effort, pythons: Mapping[str, str], *_: object, say: Callable[[str], None] = print) -> Any:
    """Measures the subject; the same shape as harness.run_subject gives."""
    started = time.monotonic()
    rows = []
    sides = {side.name: side for side in (harness.TENFOLD, harness.TENSORFLOW)}
    say("\n10. control service")
    with tempfile.TemporaryDirectory(prefix="tenfold-bench-", ignore_cleanup_errors=True) as folder:
        cold: dict[str, dict[int, dict[str, float]]] = {name: {} for name in sides if name in pythons}
        for number in range(max(3, effort.rounds // 2)):
            for name in cold:
                started_cluster = cold_tenfold if name == "tenfold" else cold_tensorflow
                taken = started_cluster(pythons, Path(folder))
                cold[name][number] = {"p50_us": taken, "p99_us": taken}
    case = Case(
        "cold start: launch → first step",
        CLUSTER,
        not_a_program,
        {"tenfold": 3},
        note="Tenfold with control service and registration, TensorFlow with addresses given by hand",
    )
    rows.append(harness.row_of(case, cold, sides, {}, "equal", 0.0))
    say(harness.row_text(rows[-1]))
    limits = {"POST session": 150_000.0, "REST step": 1500.0}
    for name, rounds in warm(effort).items():
        limit = {"tenfold": limits[name]} if name in limits else {}
        case = Case(name, CLUSTER, not_a_program, limits_us=limit)
        rows.append(harness.row_of(case, {"tenfold": rounds}, sides, {}, "equal", 0.0))
        say(harness.row_text(rows[-1]))
    return harness.subject_record("10", "control_service", "control service", effort, started, rows)


def not_a_program(context: object) -> Measure:
    raise NotImplementedError("this row is not measured by a client of the harness")


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        first_step(sys.argv[2], sys.argv[3])
    else:
        harness.main_of("10", "control service", run)
