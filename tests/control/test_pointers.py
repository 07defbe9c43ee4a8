"""Where in its body a request is wrong: `errors` has a JSON Pointer, whoever found the fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenfold_protos import master_pb2

from .conftest import declare, register

if TYPE_CHECKING:
    import httpx

GRAPH = {"node": [{"name": "x", "op": "Placeholder"}]}
X = {"name": "x", "datatype": "FP32", "shape": [2], "data": [1.0, 2.0]}


async def pointers(answer: httpx.Response) -> list[str]:
    problem = answer.json()
    assert answer.status_code >= 400, answer.text
    assert all(each["detail"] for each in problem["errors"])
    return [each["pointer"] for each in problem["errors"]]


@pytest.mark.parametrize(
    ("step", "pointer"),
    [
        ([], "#"),
        ({"a/b": 1}, "#/a~1b"),
        ({"id": 3}, "#/id"),
        ({"inputs": {}}, "#/inputs"),
        ({"inputs": [X, 3]}, "#/inputs/1"),
        ({"inputs": [X, {**X, "name": ""}]}, "#/inputs/1/name"),
        ({"inputs": [X, X]}, "#/inputs/1/name"),
        ({"inputs": [X, {**X, "name": "x:0"}]}, "#/inputs/1/name"),
        ({"inputs": [{**X, "datatype": "FP31"}]}, "#/inputs/0/datatype"),
        ({"inputs": [{**X, "shape": [-1]}]}, "#/inputs/0/shape"),
        ({"inputs": [{**X, "shape": [3]}]}, "#/inputs/0/data"),
        ({"inputs": [{**X, "data": ["a", "b"]}]}, "#/inputs/0/data"),
        ({"inputs": [{**X, "parameters": 3}]}, "#/inputs/0/parameters"),
        ({"inputs": [{**X, "parameters": {"binary_data_size": 8}}]}, "#/inputs/0/parameters/binary_data_size"),
        ({"outputs": ["y", 3]}, "#/outputs/1"),
        ({"outputs": [{"name": 3}]}, "#/outputs/0/name"),
        ({"outputs": [{"name": "y", "parameters": {"binary_data": 1}}]}, "#/outputs/0/parameters/binary_data"),
        ({"outputs": [{"name": "y", "parameters": 1}]}, "#/outputs/0/parameters"),
        ({"targets": ["t", ""]}, "#/targets/1"),
        ({"targets": "t"}, "#/targets"),
        ({"options": 3}, "#/options"),
        ({"options": {"no_such": 1}}, "#/options"),
        ({"options": {"timeout_in_ms": -1}}, "#/options/timeout_in_ms"),
        ({"parameters": {"binary_data_output": 1}}, "#/parameters/binary_data_output"),
    ],
)
async def test_of_a_step(api: httpx.AsyncClient, step: Any, pointer: str) -> None:
    await declare(api, worker=1)
    await register(api, "worker", 0)
    session = (await api.post("/v1/sessions", json={"cluster": "default", "graph_def": GRAPH})).json()["name"]

    answer = await api.post(f"/v1/sessions/{session}/steps", json=step)

    assert await pointers(answer) == [pointer]
    assert answer.json()["errors"][0]["detail"] == answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body", "pointer"),
    [
        ("PUT", "/v1/clusters/other", {"jobs": {"ps": 1, "a b": 1}}, "#/jobs/a%20b"),
        ("PUT", "/v1/clusters/other", {"jobs": {}}, "#/jobs"),
        ("PUT", "/v1/clusters/other", {"jobs": {"ps": 1_000_000}}, "#/jobs"),
        ("PUT", "/v1/clusters/default/tasks/worker/0", {"address": "here"}, "#/address"),
        ("POST", "/v1/clusters/default/tasks/worker/0:end", {"state": "finished", "exit_code": 3}, "#/exit_code"),
        ("POST", "/v1/sessions", {"cluster": "none", "graph_def": GRAPH}, "#/cluster"),
        ("POST", "/v1/sessions", {"cluster": "default", "job": "none", "graph_def": GRAPH}, "#/job"),
        ("POST", "/v1/sessions", {"cluster": "default", "job": "worker", "index": 9, "graph_def": GRAPH}, "#/index"),
        ("POST", "/v1/sessions", {"cluster": "default", "index": 1, "graph_def": GRAPH}, "#/index"),
        ("POST", "/v1/sessions", {"cluster": "default", "graph_def": "?"}, "#/graph_def"),
        ("POST", "/v1/sessions", {"cluster": "default", "graph_def": {"nodes": []}}, "#/graph_def"),
        ("POST", "/v1/sessions", {"cluster": "default", "graph_def": GRAPH, "config": {"q": 1}}, "#/config"),
    ],
)
async def test_of_other_bodies(api: httpx.AsyncClient, method: str, path: str, body: Any, pointer: str) -> None:
    await declare(api, worker=1)
    await register(api, "worker", 0)

    assert await pointers(await api.request(method, path, json=body)) == [pointer]


async def test_no_pointer_leads_into_what_is_no_json(api: httpx.AsyncClient) -> None:
    """The same faults of a protobuf body and of a query."""
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]
    raw = master_pb2.CreateSessionRequest().SerializeToString()

    protobuf = await api.post(
        "/v1/sessions", params={"cluster": "none"}, content=raw, headers={"Content-Type": "application/x-protobuf"}
    )
    query = await api.delete(f"/v1/leases/{lease}", params={"state": "finished", "exit_code": 3})

    assert (protobuf.json()["type"], protobuf.status_code) == ("urn:tenfold:problem:no-such-cluster", 404)
    assert (query.json()["type"], query.status_code) == ("urn:tenfold:problem:failed-is-not-finished", 400)
    assert not {"errors"} & (protobuf.json().keys() | query.json().keys())


async def test_of_text_that_is_no_json(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/sessions", content=b"{", headers={"Content-Type": "application/json"})

    assert await pointers(answer) == ["#"]
