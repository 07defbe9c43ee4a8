"""Sessions and steps over REST against scripted masters: every body, every kind of failure."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.hand_clock import HandClock
from tenfold_control_api import session_service
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings
from tenfold_core import errors, open_inference, tensor_util
from tenfold_protos import config_pb2, graph_pb2, master_pb2

from .conftest import Gate, Masters, ScriptedMaster, declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

GRAPH = graph_pb2.GraphDef(node=[{"name": "x", "op": "Placeholder"}])
PROTOBUF = {"Content-Type": "application/x-protobuf"}
TARGET = "grpc://127.0.0.1:2222"


@pytest.fixture
async def master(api: httpx.AsyncClient, masters: Masters) -> ScriptedMaster:
    """The master of worker 0 of a complete cluster."""
    await declare(api, worker=1)
    await register(api, "worker", 0)
    return masters(TARGET)


async def create(api: httpx.AsyncClient, **body: Any) -> str:
    answer = await api.post("/v1/sessions", json={"cluster": "default", **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["name"])


def tensor(value: Any, name: str = "x:0") -> dict[str, Any]:
    return open_inference.to_json(name, np.asarray(value))


async def test_the_life_of_a_session(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    session = await create(api, graph_def=base64.b64encode(GRAPH.SerializeToString()).decode())

    step = await api.post(
        f"/v1/sessions/{session}/steps",
        json={"id": "7", "inputs": [tensor([1.5, 2.0])], "outputs": [{"name": "y:0"}, "z"], "targets": ["train"]},
    )
    extended = await api.post(f"/v1/sessions/{session}/graph:extend", json={"graph_def": {"node": [{"name": "b"}]}})
    shown = (await api.get(f"/v1/sessions/{session}")).json()
    closed = await api.delete(f"/v1/sessions/{session}")
    gone = await api.get(f"/v1/sessions/{session}")

    assert step.status_code == 200
    assert step.json() == {
        "id": "7",
        "outputs": [
            {"name": "y:0", "datatype": "FP64", "shape": [2], "data": [3.0, 4.0]},
            {"name": "z", "datatype": "FP64", "shape": [2], "data": [3.0, 4.0]},
        ],
    }
    assert master.steps == [(("x:0",), ("y:0", "z:0"), ("train",))]
    assert extended.json()["graph_version"] == 2
    assert (shown["state"], shown["master"], shown["target"]) == ("ready", "/job:worker/replica:0/task:0", TARGET)
    assert closed.json()["state"] == "closed"
    assert gone.status_code == 404
    assert len(master.closed) == 1


async def test_protobuf_bodies(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    request = master_pb2.CreateSessionRequest(graph_def=GRAPH)
    created = await api.post(
        "/v1/sessions", params={"cluster": "default"}, content=request.SerializeToString(), headers=PROTOBUF
    )
    session = master_pb2.CreateSessionResponse.FromString(created.content).session_handle
    run = master_pb2.RunStepRequest(fetch=["y:0"])
    run.feed.add(name="x:0").tensor.CopyFrom(tensor_util.make_tensor_proto(np.arange(3, dtype=np.int64)))
    stepped = await api.post(f"/v1/sessions/{session}/steps", content=run.SerializeToString(), headers=PROTOBUF)
    extend = master_pb2.ExtendSessionRequest(graph_def=GRAPH, current_graph_version=1)
    extended = await api.post(
        f"/v1/sessions/{session}/graph:extend", content=extend.SerializeToString(), headers=PROTOBUF
    )

    answer = master_pb2.RunStepResponse.FromString(stepped.content)
    assert created.headers["location"] == f"/v1/sessions/{session}"
    assert stepped.headers["content-type"] == "application/x-protobuf"
    assert tensor_util.make_ndarray(answer.tensor[0].tensor).tolist() == [0, 2, 4]
    assert master_pb2.ExtendSessionResponse.FromString(extended.content).new_graph_version == 2


async def test_errors_in_a_protobuf_body_where_asked_for(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    session = await create(api)
    master.step = failing(errors.OutOfRangeError(None, None, "the queue is empty"))
    run = master_pb2.RunStepRequest(fetch=["y:0"], store_errors_in_response_body=True)

    stepped = await api.post(f"/v1/sessions/{session}/steps", content=run.SerializeToString(), headers=PROTOBUF)

    answer = master_pb2.RunStepResponse.FromString(stepped.content)
    assert (answer.status_code, answer.status_error_message) == (errors.OUT_OF_RANGE, "the queue is empty")


async def test_the_binary_form(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    session = await create(api)
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    heads, parts = open_inference.write_tensors([("x:0", value, True)])
    head = json.dumps(
        {"inputs": heads, "outputs": ["a:0", {"name": "b:0", "parameters": {"binary_data": True}}]}
    ).encode()

    stepped = await api.post(
        f"/v1/sessions/{session}/steps",
        content=head + b"".join(parts),
        headers={"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(head))},
    )

    answer, binary = open_inference.split_body(stepped.content, stepped.headers["Inference-Header-Content-Length"])
    values = open_inference.read_tensors(answer["outputs"], binary, "outputs")
    np.testing.assert_array_equal(values["a:0"], value * 2)
    np.testing.assert_array_equal(values["b:0"], value * 2)
    assert "data" in answer["outputs"][0]
    assert "data" not in answer["outputs"][1]


async def test_the_config_reaches_the_master_with_a_timeout(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    await create(api, config={"allow_soft_placement": True})

    (config,) = master.configs
    assert config.allow_soft_placement
    assert config.operation_timeout_in_ms == 60_000


def failing(error: errors.OpError) -> Any:
    def step(feeds: Mapping[str, np.ndarray], fetches: Sequence[str], targets: Sequence[str]) -> list[np.ndarray]:
        raise error

    return step


@pytest.mark.parametrize(
    ("code", "status", "outcome"),
    [
        (errors.CANCELLED, 499, "unknown"),
        (errors.UNKNOWN, 500, "unknown"),
        (errors.INVALID_ARGUMENT, 400, None),
        (errors.DEADLINE_EXCEEDED, 504, "unknown"),
        (errors.NOT_FOUND, 404, None),
        (errors.ALREADY_EXISTS, 409, None),
        (errors.PERMISSION_DENIED, 403, None),
        (errors.RESOURCE_EXHAUSTED, 429, None),
        (errors.FAILED_PRECONDITION, 400, None),
        (errors.ABORTED, 409, None),
        (errors.OUT_OF_RANGE, 400, None),
        (errors.UNIMPLEMENTED, 501, None),
        (errors.INTERNAL, 500, None),
        (errors.UNAVAILABLE, 503, "unknown"),
        (errors.DATA_LOSS, 500, None),
        (errors.UNAUTHENTICATED, 401, None),
    ],
)
async def test_errors_of_a_step(
    api: httpx.AsyncClient, master: ScriptedMaster, code: int, status: int, outcome: str | None
) -> None:
    session = await create(api)
    message = "From /job:ps/replica:0/task:1:\nno\n\t [[{{node train/w}}]]"
    master.step = failing(errors.from_code(code, message))

    answer = await api.post(f"/v1/sessions/{session}/steps", json={"outputs": ["y:0"]})
    problem = answer.json()

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert (problem["code"], problem["detail"]) == (errors.code_name(code), message)
    assert (problem["task"], problem["node"]) == ("/job:ps/replica:0/task:1", "train/w")
    assert problem.get("outcome") == outcome
    if outcome == "unknown":
        assert problem["retryable"] is False, "a step that may have run must not be sent again unasked"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("[]", "a step is an object"),
        ("{", "not JSON"),
        ('{"fetches": []}', "no member 'fetches'"),
        ('{"inputs": {}}', "must be a list"),
        ('{"inputs": [{"name": "x"}]}', "datatype None"),
        ('{"outputs": [1]}', "takes names"),
        ('{"targets": [""]}', "takes names"),
        ('{"options": {"timeout_in_ms": "soon"}}', "is not the JSON of a RunOptions"),
        ('{"options": {"timeout_in_ms": -1}}', "at least 0"),
        ('{"inputs": [{"name":"x","datatype":"FP32","shape":[1],"data":[NaN]}]}', "NaN is not part of JSON"),
        (
            '{"inputs": [{"name":"x","datatype":"INT8","shape":[],"data":1},'
            '{"name":"x:0","datatype":"INT8","shape":[],"data":1}]}',
            "twice",
        ),
    ],
)
async def test_bad_steps_are_refused_and_the_next_one_runs(
    api: httpx.AsyncClient, master: ScriptedMaster, body: str, said: str
) -> None:
    session = await create(api)

    bad = await api.post(f"/v1/sessions/{session}/steps", content=body, headers={"Content-Type": "application/json"})
    good = await api.post(f"/v1/sessions/{session}/steps", json={"outputs": ["y:0"]})

    assert (bad.status_code, bad.json()["code"], bad.json()["outcome"]) == (400, "INVALID_ARGUMENT", "not-run")
    assert said in bad.json()["detail"]
    assert good.json()["outputs"][0]["data"] == [42]
    assert len(master.steps) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"cluster": "default", "graph_def": "%"}, "not the base64 of a GraphDef"),
        ({"cluster": "default", "graph_def": base64.b64encode(b"\xff\xff").decode()}, "but not of a GraphDef"),
        ({"cluster": "default", "graph_def": {"nodes": []}}, "not the JSON of a GraphDef"),
        ({"cluster": "default", "config": {"x": 1}}, "not the JSON of a ConfigProto"),
        ({"cluster": "default", "index": 0}, "names no task without a job"),
        ({"cluster": "default", "graph": ""}, "body.graph: Extra inputs"),
        ({}, "body.cluster: Field required"),
        ([], "a JSON object is expected"),
    ],
)
async def test_bad_sessions(api: httpx.AsyncClient, master: ScriptedMaster, body: Any, said: str) -> None:
    answer = await api.post("/v1/sessions", json=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_ARGUMENT")
    assert said in answer.json()["detail"]
    assert not master.sessions


@pytest.mark.parametrize(
    "path", ["/v1/sessions?cluster=default", "/v1/sessions/{}/steps", "/v1/sessions/{}/graph:extend"]
)
async def test_bytes_that_are_no_protobuf(api: httpx.AsyncClient, master: ScriptedMaster, path: str) -> None:
    session = await create(api)

    answer = await api.post(path.format(session), content=b"\xff\xff\xff", headers=PROTOBUF)

    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_ARGUMENT")
    assert "do not parse" in answer.json()["detail"]


async def test_no_task_is_ready(api: httpx.AsyncClient) -> None:
    await declare(api, ps=1, worker=1)

    anyone = await api.post("/v1/sessions", json={"cluster": "default"})
    someone = await api.post("/v1/sessions", json={"cluster": "default", "job": "ps", "index": 0})

    assert anyone.status_code == someone.status_code == 503
    assert someone.json()["missing_tasks"] == ["/job:ps/replica:0/task:0"]
    assert someone.json()["task"] == "/job:ps/replica:0/task:0"


def needing(*devices: str) -> dict[str, Any]:
    return {"graph_def": {"node": [{"name": f"n{i}", "op": "NoOp", "device": d} for i, d in enumerate(devices)]}}


async def test_tasks_that_the_graph_needs_and_are_not_there_are_told_at_once(database: str, masters: Masters) -> None:
    wall = HandClock()
    async with running_app(create_app(Settings(database=database), masters, wall_clock=wall)) as api:
        await declare(api, ps=2, worker=2)
        for job, index in [("ps", 0), ("worker", 0), ("worker", 1)]:
            await register(api, job, index)
        await api.post("/v1/clusters/default/tasks/worker/1:end", json={"state": "lost", "reason": "ended by SIGKILL"})
        wall.now += 12
        body = {"cluster": "default", **needing("/job:ps/task:1", "/job:worker/task:1", "/job:ps/task:0")}

        refused = await api.post("/v1/sessions", json=body)
        other = await api.post("/v1/sessions", json={"cluster": "default", **needing("/job:ps/task:0", "")})

    problem = refused.json()
    assert (refused.status_code, problem["type"]) == (503, "urn:tenfold:problem:tasks-missing")
    assert problem["missing_tasks"] == ["/job:ps/replica:0/task:1", "/job:worker/replica:0/task:1"]
    assert "/job:ps/replica:0/task:1 has never registered" in problem["detail"]
    assert "/job:worker/replica:0/task:1 is lost: ended by SIGKILL, 12 s ago" in problem["detail"]
    assert other.status_code == 201, "no task that it needs is missing"
    assert len(masters(TARGET).sessions) == 1


async def test_a_session_waits_for_tasks_where_it_is_told_to(api: httpx.AsyncClient, masters: Masters) -> None:
    await declare(api, ps=1, worker=1)
    body = {"cluster": "default", **needing("/job:ps/task:0")}
    in_vain = await api.post("/v1/sessions?wait=1ms", json=body)
    await register(api, "worker", 0)
    waiting = asyncio.create_task(api.post("/v1/sessions?wait=60s", json=body))
    for _ in range(10_000):
        if (await api.get("/metrics")).text.count("tenfold_control_watchers 1.0"):
            break

    await register(api, "ps", 0, "127.0.0.1:3333")

    assert (await waiting).status_code == 201
    assert (in_vain.status_code, in_vain.json()["type"]) == (503, "urn:tenfold:problem:no-master")
    assert (await api.post("/v1/sessions?wait=soon", json=body)).json()["type"].endswith("invalid-duration")


async def test_a_master_that_waits_in_vain_names_the_missing_tasks(api: httpx.AsyncClient, masters: Masters) -> None:
    await declare(api, worker=2)
    await register(api, "worker", 0)
    masters(TARGET).refusal = errors.DeadlineExceededError(None, None, "waited 1 s for /job:worker/replica:0/task:1")

    answer = await api.post("/v1/sessions", json={"cluster": "default"})

    assert (answer.status_code, answer.json()["code"]) == (504, "DEADLINE_EXCEEDED")
    assert answer.json()["missing_tasks"] == ["/job:worker/replica:0/task:1"]


async def test_extending_from_a_stale_version_is_aborted(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    session = await create(api)

    answer = await api.post(f"/v1/sessions/{session}/graph:extend", json={"graph_def": {}, "current_graph_version": 7})

    assert (answer.status_code, answer.json()["code"]) == (409, "ABORTED")


async def test_a_step_in_flight_fails_as_soon_as_its_master_is_lost(
    api: httpx.AsyncClient, master: ScriptedMaster
) -> None:
    session = await create(api)
    master.step = gate = Gate()
    step = asyncio.create_task(api.post(f"/v1/sessions/{session}/steps", json={"outputs": ["y:0"]}))
    await gate.wait_entered()

    await api.delete("/v1/clusters/default/tasks/worker/0", params={"reason": "the rack is on fire"})
    answer = (await step).json()
    gate.leave.set()

    assert (answer["code"], answer["task"], answer["outcome"]) == (
        "UNAVAILABLE",
        "/job:worker/replica:0/task:0",
        "unknown",
    )
    shown = (await api.get(f"/v1/sessions/{session}")).json()
    assert shown["state"] == "lost"


async def test_a_session_of_a_restarted_master_is_aborted(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    session = await create(api)
    await api.delete("/v1/clusters/default/tasks/worker/0")
    await register(api, "worker", 0, incarnation="b")

    answer = await api.post(f"/v1/sessions/{session}/steps", json={})

    assert (answer.status_code, answer.json()["code"]) == (409, "ABORTED")
    assert "was restarted" in answer.json()["detail"]
    assert not master.steps


async def test_limits_on_sessions_and_calls(database: str, masters: Masters) -> None:
    settings = Settings(database=database, max_sessions=1, call_threads=1, call_backlog=0)
    async with running_app(create_app(settings, masters)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        session = await create(api)
        masters(TARGET).step = gate = Gate()
        running = asyncio.create_task(api.post(f"/v1/sessions/{session}/steps", json={"outputs": ["y"]}))
        await gate.wait_entered()

        crowded = await api.post(f"/v1/sessions/{session}/steps", json={})
        second = await api.post("/v1/sessions", json={"cluster": "default"})
        gate.leave.set()

        assert (await running).status_code == 200
    assert (crowded.status_code, crowded.json()["outcome"]) == (429, "not-run")
    assert (second.status_code, second.json()["type"]) == (429, "urn:tenfold:problem:too-many-sessions")


@pytest.mark.parametrize(
    ("path", "more", "kind"),
    [
        ("gone", {"json": {}}, "no-such-session"),
        ("{}", {"content": b"x", "headers": {"Content-Type": "text/plain"}}, "unsupported-media-type"),
        ("{}", {"content": b"{", "headers": {"Content-Type": "application/json"}}, "malformed-json"),
        ("{}", {"content": b"\xff", "headers": PROTOBUF}, "malformed-message"),
        ("{}", {"json": {}, "headers": {"Idempotency-Key": "\x7f"}}, "invalid-idempotency-key"),
        ("{}", {"json": {"inputs": [{"name": "x", "datatype": "INT8", "shape": [2], "data": [1]}]}}, "invalid-tensor"),
        ("{}", {"json": {"parameters": {"binary_data_output": "yes"}}}, "invalid-step"),
        ("{}", {"content": b"{}" + b" " * 200, "headers": {"Content-Type": "application/json"}}, "body-too-large"),
    ],
)
async def test_what_was_refused_before_it_ran_says_so(
    database: str, masters: Masters, path: str, more: dict[str, Any], kind: str
) -> None:
    async with running_app(create_app(Settings(database=database, max_json_body=180), masters)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        session = await create(api)

        answer = await api.post(f"/v1/sessions/{path.format(session)}/steps", **more)

    assert (answer.json()["type"], answer.json()["outcome"]) == (f"urn:tenfold:problem:{kind}", "not-run")
    assert not masters(TARGET).steps


async def test_a_step_whose_task_was_lost_before_it_says_that_it_did_not_run(
    api: httpx.AsyncClient, master: ScriptedMaster
) -> None:
    session = await create(api)
    await api.post("/v1/clusters/default/tasks/worker/0:end", json={"state": "lost", "reason": "ended by SIGKILL"})

    answer = (await api.post(f"/v1/sessions/{session}/steps", json={})).json()

    assert (answer["type"], answer["outcome"]) == ("urn:tenfold:problem:session-lost", "not-run")
    assert not master.steps


async def test_an_answer_that_json_cannot_hold_says_that_the_step_is_done(
    api: httpx.AsyncClient, master: ScriptedMaster
) -> None:
    session = await create(api)
    master.step = lambda *_: [np.zeros(1, np.dtype([("a", np.int8)]))]

    answer = await api.post(f"/v1/sessions/{session}/steps", json={"outputs": ["y"]})

    assert (answer.status_code, answer.json()["outcome"]) == (501, "done")


async def test_a_step_that_found_no_thread_in_time_does_not_run_later(
    database: str, masters: Masters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its deadline runs while it is queued, and DELETE does not wait behind it: it reaches the master."""
    monkeypatch.setattr(session_service, "_SLACK", 0.05)
    async with running_app(create_app(Settings(database=database, call_threads=1), masters)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        session = await create(api)
        master = masters(TARGET)
        master.step = gate = Gate()
        running = asyncio.create_task(api.post(f"/v1/sessions/{session}/steps", json={"outputs": ["y"]}))
        await gate.wait_entered()

        queued = await api.post(f"/v1/sessions/{session}/steps", json={"options": {"timeout_in_ms": 1}})
        closed = await api.delete(f"/v1/sessions/{session}")

        assert (queued.status_code, queued.json()["type"]) == (504, "urn:tenfold:problem:call-not-started")
        assert (queued.json()["outcome"], closed.status_code, len(master.closed)) == ("not-run", 200, 1)
        gate.leave.set()
        assert (await running).status_code == 200
    assert len(master.steps) == 1


async def test_sessions_survive_a_restart_of_the_service(database: str, masters: Masters) -> None:
    async with running_app(create_app(Settings(database=database), masters)) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        session = await create(api)
        await api.post(f"/v1/sessions/{session}/graph:extend", json={"graph_def": {}})
    assert masters(TARGET).given_up
    async with running_app(create_app(Settings(database=database), masters)) as api:
        shown = (await api.get("/v1/sessions")).json()["sessions"]
        step = await api.post(f"/v1/sessions/{session}/steps", json={"outputs": ["y"]})

    assert [(s["name"], s["graph_version"]) for s in shown] == [(session, 2)]
    assert step.json()["outputs"][0]["data"] == [42]


async def test_idle_sessions_are_closed(database: str, masters: Masters) -> None:
    hand = HandClock()
    app = create_app(Settings(database=database, session_idle_timeout=100.0), masters, clock=hand)
    async with running_app(app) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        idle, busy = await create(api), await create(api)
        hand.now += 60
        await api.post(f"/v1/sessions/{busy}/steps", json={})
        hand.now += 60

        await app.state.control.sessions.sweep()

        assert (await api.get(f"/v1/sessions/{idle}")).status_code == 404
        assert (await api.get(f"/v1/sessions/{busy}")).json()["idle"] == 60.0


async def test_run_options_reach_the_master(api: httpx.AsyncClient, master: ScriptedMaster) -> None:
    seen: list[config_pb2.RunOptions] = []
    original = master.run_step

    def run_step(*args: Any) -> Any:
        seen.append(args[4])
        return original(*args)

    master.run_step = run_step  # type: ignore[method-assign]
    session = await create(api)

    await api.post(f"/v1/sessions/{session}/steps", json={"options": {"timeout_in_ms": 1500}})

    assert seen[0].timeout_in_ms == 1500
