"""Accepted when, by curl alone: one sees the cluster come up, opens a session with a GraphDef, feeds and fetches a
step, reads job status, closes; kills a worker and sees it reported lost, by name, within its lease.

    tenfold up ──► control service ◄── curl
              └──► ps:0, worker:0, worker:1

Tenfold makes the GraphDef and nothing else: every request is a curl process of its own.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest

import tenfold as tf
from support.task_processes import CLI, PATIENCE, task_name
from tenfold.cli.children import Children
from tenfold_control_api.service_settings import Settings
from tenfold_core import tensor_util
from tenfold_protos import graph_pb2, master_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

JSON, PROTOBUF = "application/json", "application/x-protobuf"
NAMES = [task_name("ps", 0), task_name("worker", 0), task_name("worker", 1)]
#: How much later than the end of its lease a task may be reported lost.
SLACK = 3.0


@dataclass(frozen=True)
class Answer:
    """What curl got."""

    status: int
    media_type: str
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Curl:
    """curl against one control service."""

    url: str

    def __call__(self, method: str, path: str, body: bytes | None = None, media_type: str = JSON) -> Answer:
        data = [] if body is None else ["--data-binary", "@-", "-H", f"Content-Type: {media_type}"]
        done = subprocess.run(
            ["curl", "-sS", "-X", method, "-w", "\n%{http_code} %{content_type}", *data, self.url + path],
            input=body or b"",
            capture_output=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        answer, _, ending = done.stdout.rpartition(b"\n")
        status, _, kind = ending.decode().partition(" ")
        return Answer(int(status), kind.partition(";")[0], answer)

    def get(self, path: str) -> Answer:
        return self("GET", path)

    def post(self, path: str, body: Any) -> Answer:
        return self("POST", path, json.dumps(body).encode())

    def spec_after(self, version: int | None, **more: str) -> Any:
        """One long-poll: the spec once it is newer than `version`."""
        after = {} if version is None else {"after": str(version)}
        query = "&".join(f"{name}={value}" for name, value in {**after, "wait": "30s", **more}.items())
        return self.get(f"/v1/clusters/default/spec?{query}").json


@pytest.fixture(scope="module")
def up() -> Iterator[Children]:
    """`tenfold up` with a ps and two workers, as a user starts it; perhaps not yet complete."""
    with Children() as children:
        children.start("up", [*CLI, "up", "--ps", "1", "--workers", "2", "--control-port", "0"])
        yield children


@pytest.fixture(scope="module")
def curl(up: Children) -> Curl:
    return Curl(up.wait_for_line("up", r"control +\| .*listening on (http://\S+)", PATIENCE)[1])


@pytest.fixture(scope="module")
def complete(curl: Curl) -> Any:
    """The spec, once no task is missing."""
    return curl.spec_after(None, complete="true")


def graph_def() -> graph_pb2.GraphDef:
    """y = 2·x + w: x [None] fed on the ps, w = 10 a variable there, y on worker 1; init makes w."""
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            x = tf.placeholder(tf.float32, [None], name="x")
            w = tf.Variable(10.0, name="w")
            tf.group(w.initializer, name="init")
        with tf.device("/job:worker/task:1"):
            tf.add(2.0 * x, w, name="y")
    graph_def: graph_pb2.GraphDef = graph.as_graph_def()
    return graph_def


def test_the_cluster_is_seen_coming_up(curl: Curl) -> None:
    spec = curl.spec_after(None)
    seen = [spec]
    while not spec["complete"]:
        spec = curl.spec_after(spec["version"])
        seen.append(spec)

    for each in seen:
        assert each["missing_tasks"] == [task["name"] for task in each["tasks"] if task["state"] != "ready"]
    versions = [each["version"] for each in seen]
    assert versions == sorted(set(versions))
    assert [task["name"] for task in spec["tasks"]] == NAMES
    assert {job: len(tasks) for job, tasks in spec["spec"].items()} == {"ps": 1, "worker": 2}
    assert curl.get("/healthz").status == curl.get("/readyz").status == 200


def test_job_status(curl: Curl, complete: Any) -> None:
    jobs = curl.get("/v1/clusters/default/jobs").json["jobs"]
    worker = curl.get("/v1/clusters/default/jobs/worker").json
    task = curl.get("/v1/clusters/default/jobs/worker/tasks/1").json

    assert [(job["name"], job["state"], job["counts"]["ready"]) for job in jobs] == [
        ("ps", "ready", 1),
        ("worker", "ready", 2),
    ]
    assert (worker["missing_tasks"], worker["tasks"][1]) == (
        [],
        {**task, "last_heartbeat_age": pytest.approx(0, abs=10)},
    )
    assert (task["name"], task["state"], task["address"]) == (NAMES[2], "ready", complete["spec"]["worker"]["1"])
    assert [device["name"] for device in task["devices"]] == [f"{NAMES[2]}/device:CPU:0"]


def test_a_session_in_json(curl: Curl, complete: Any) -> None:
    encoded = base64.b64encode(graph_def().SerializeToString()).decode()

    created = curl.post("/v1/sessions", {"cluster": "default", "job": "worker", "index": 0, "graph_def": encoded})
    path = f"/v1/sessions/{created.json['name']}"
    made = curl.post(f"{path}/steps", {"targets": ["init"]})
    x = {"name": "x:0", "datatype": "FP32", "shape": [3], "data": [1, 2, 3]}
    step = curl.post(f"{path}/steps", {"id": "first", "inputs": [x], "outputs": [{"name": "y:0"}, {"name": "w:0"}]})
    seen = curl.get(path)
    listed = curl.get("/v1/sessions")
    closed = curl("DELETE", path)
    gone = curl.get(path)

    assert (created.status, created.json["master"]) == (201, NAMES[1])
    assert (made.status, made.json["outputs"]) == (200, [])
    assert (step.status, step.json["id"]) == (200, "first")
    assert step.json["outputs"] == [
        {"name": "y:0", "datatype": "FP32", "shape": [3], "data": [12.0, 14.0, 16.0]},
        {"name": "w:0", "datatype": "FP32", "shape": [], "data": [10.0]},
    ]
    assert (seen.status, seen.json["state"]) == (200, "ready")
    assert created.json["name"] in [each["name"] for each in listed.json["sessions"]]
    assert (closed.status, closed.json["state"]) == (200, "closed")
    assert (gone.status, gone.media_type, gone.json["code"]) == (404, "application/problem+json", "NOT_FOUND")


def test_a_session_in_raw_protobuf(curl: Curl, complete: Any) -> None:
    creation = master_pb2.CreateSessionRequest(graph_def=graph_def()).SerializeToString()
    init = master_pb2.RunStepRequest(target=["init"]).SerializeToString()
    request = master_pb2.RunStepRequest(fetch=["y:0"])
    value = tensor_util.make_tensor_proto(np.array([1.0, 2.0], np.float32))
    request.feed.add(name="x:0").tensor.CopyFrom(value)

    created = curl("POST", "/v1/sessions?cluster=default&job=ps&index=0", creation, PROTOBUF)
    handle = master_pb2.CreateSessionResponse.FromString(created.body).session_handle
    made = curl("POST", f"/v1/sessions/{handle}/steps", init, PROTOBUF)
    step = curl("POST", f"/v1/sessions/{handle}/steps", request.SerializeToString(), PROTOBUF)
    closed = curl("DELETE", f"/v1/sessions/{handle}")

    assert [each.status for each in (created, made, step, closed)] == [201, 200, 200, 200]
    assert {each.media_type for each in (created, made, step)} == {PROTOBUF}
    (fetched,) = master_pb2.RunStepResponse.FromString(step.body).tensor
    assert fetched.name == "y:0"
    assert tensor_util.make_ndarray(fetched.tensor).tolist() == [12.0, 14.0]


def test_a_graph_that_grows(curl: Curl, complete: Any) -> None:
    with tf.Graph().as_default() as graph:
        tf.constant(3.0, name="a")
    first = graph.as_graph_def()
    with graph.as_default():
        tf.square(graph.get_tensor_by_name("a:0"), name="b")
    rest = graph_pb2.GraphDef(node=list(graph.as_graph_def().node)[len(first.node) :])
    encoded = [base64.b64encode(each.SerializeToString()).decode() for each in (first, rest)]

    session = curl.post("/v1/sessions", {"cluster": "default", "graph_def": encoded[0]}).json
    path = f"/v1/sessions/{session['name']}"
    extended = curl.post(f"{path}/graph:extend", {"graph_def": encoded[1]})
    step = curl.post(f"{path}/steps", {"outputs": ["b"]})
    curl("DELETE", path)

    assert extended.json["graph_version"] == session["graph_version"] + 1
    assert step.json["outputs"][0]["data"] == [9.0]


def test_a_killed_worker_is_reported_lost_by_name_at_once(up: Children, curl: Curl, complete: Any) -> None:
    """Last in this file: the cluster is not whole again after it."""
    encoded = base64.b64encode(graph_def().SerializeToString()).decode()
    session = curl.post("/v1/sessions", {"cluster": "default", "job": "worker", "index": 0, "graph_def": encoded}).json
    steps = f"/v1/sessions/{session['name']}/steps"
    assert curl.post(steps, {"targets": ["init"]}).status == 200
    version = curl.spec_after(None)["version"]

    family = psutil.Process(up.pid("up")).children(recursive=True)
    (worker,) = [each for each in family if re.search(r"--job worker --index 1\b", " ".join(each.cmdline()))]
    worker.kill()
    killed = time.monotonic()
    step = curl.post(
        steps, {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}], "outputs": ["y"]}
    )
    told = time.monotonic() - killed
    spec = curl.spec_after(version)
    took = time.monotonic() - killed
    task = curl.get("/v1/clusters/default/jobs/worker/tasks/1").json
    job = curl.get("/v1/clusters/default/jobs/worker").json

    assert (step.status, step.json["code"], step.json["task"]) == (503, "UNAVAILABLE", NAMES[2])
    assert NAMES[2] in step.json["detail"]
    assert told < 5
    # who started it saw it die: long before its lease has run out
    assert took < min(SLACK, Settings().lease_ttl / 2)
    assert (spec["complete"], spec["missing_tasks"]) == (False, [NAMES[2]])
    assert task["state"] == "lost"
    assert (task["reason"], task["exit_code"]) == ("ended by SIGKILL", -9)
    assert (job["counts"]["lost"], job["counts"]["ready"]) == (1, 1)
    assert job["missing_tasks"] == [NAMES[2]]
    # The others go on.
    assert curl.post(steps, {"outputs": ["w"]}).json["outputs"][0]["data"] == [10.0]
    up.wait_for_line("up", "worker/1 was ended by SIGKILL", PATIENCE)
