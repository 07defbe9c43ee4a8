"""`GET /v1/sessions/{session}/placement`: pages, filters, and masters that do not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings
from tenfold_core import errors
from tenfold_protos import placement_pb2

from .conftest import ScriptedMaster, declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx


#: Texts of the scripted placement.
TEXTS = ("NoOp", "", "/job:worker/replica:0/task:0/device:CPU:0", "the only device", "Neg")


class Placing(ScriptedMaster):
    """A master whose graph has five nodes: a0 … a4, the last one a Neg."""

    asked = 0
    refusal_of_placement: errors.OpError | None = None

    def placement(self, handle: str, timeout: float | None) -> placement_pb2.GetPlacementResponse:
        self.asked += 1
        if self.refusal_of_placement is not None:
            raise self.refusal_of_placement
        answer = placement_pb2.GetPlacementResponse(text=TEXTS, graph_version=self.versions[handle])
        for index in range(5):
            answer.node.add(name=f"a{index}", op=4 if index == 4 else 0, requested=1, assigned=2, reason=3)
        answer.task.add(task="/job:worker/replica:0/task:0", nodes=5, variables=1, variable_bytes=8)
        return answer


@pytest.fixture
def placing() -> Placing:
    return Placing()


@pytest.fixture
async def placed(database: str, placing: Placing) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    """A service, and the path of a session's placement."""
    app = create_app(Settings(database=database), lambda *_: placing)
    async with running_app(app) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        session = (await api.post("/v1/sessions", json={"cluster": "default"})).json()["name"]
        yield api, f"/v1/sessions/{session}"


async def get(api: httpx.AsyncClient, path: str, **params: Any) -> Any:
    answer = await api.get(f"{path}/placement", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_whole(placed: tuple[httpx.AsyncClient, str]) -> None:
    api, path = placed

    found = await get(api, path)

    assert [node["name"] for node in found["nodes"]] == ["a0", "a1", "a2", "a3", "a4"]
    assert found["nodes"][4] == {
        "name": "a4",
        "op": "Neg",
        "requested": "",
        "assigned": "/job:worker/replica:0/task:0/device:CPU:0",
        "reason": "the only device",
    }
    assert found["tasks"] == [{"task": "/job:worker/replica:0/task:0", "nodes": 5, "variables": 1, "variable_bytes": 8}]
    assert (found["session"], found["graph_version"], found["next"]) == (path.rpartition("/")[2], 1, None)


async def test_pages_ask_the_master_once(placed: tuple[httpx.AsyncClient, str], placing: Placing) -> None:
    api, path = placed

    first = await get(api, path, limit=2)
    second = await get(api, path, limit=2, after=first["next"])
    third = await get(api, path, limit=2, after=second["next"])

    pages = [[node["name"] for node in page["nodes"]] for page in (first, second, third)]
    assert pages == [["a0", "a1"], ["a2", "a3"], ["a4"]]
    assert third["next"] is None
    assert placing.asked == 1


async def test_a_graph_that_has_grown_is_asked_for_again(
    placed: tuple[httpx.AsyncClient, str], placing: Placing
) -> None:
    api, path = placed
    await get(api, path)

    await api.post(f"{path}/graph:extend", json={"graph_def": {"node": [{"name": "b"}]}})

    assert (await get(api, path))["graph_version"] == 2
    assert placing.asked == 2


async def test_filters(placed: tuple[httpx.AsyncClient, str]) -> None:
    api, path = placed

    assert [node["name"] for node in (await get(api, path, op="NoOp", limit=3))["nodes"]] == ["a0", "a1", "a2"]
    assert (await get(api, path, op="NoOp", limit=4))["next"] is None
    assert [node["name"] for node in (await get(api, path, name="3"))["nodes"]] == ["a3"]


async def test_a_cursor_of_no_page(placed: tuple[httpx.AsyncClient, str]) -> None:
    api, path = placed

    answer = await api.get(f"{path}/placement?after=nowhere")

    assert answer.status_code == 400
    assert "after='nowhere' is not the `next` of a page" in answer.json()["detail"]


async def test_a_master_that_does_not_tell(placed: tuple[httpx.AsyncClient, str], placing: Placing) -> None:
    api, path = placed
    placing.refusal_of_placement = errors.UnimplementedError(None, None, "it is not Tenfold's")

    answer = await api.get(f"{path}/placement")

    assert answer.status_code == 501
    assert answer.json()["type"] == "urn:tenfold:problem:placement-unknown"
    assert answer.json()["task"] == "/job:worker/replica:0/task:0"


async def test_an_unknown_session(placed: tuple[httpx.AsyncClient, str]) -> None:
    api, _ = placed

    answer = await api.get("/v1/sessions/none/placement")

    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:tenfold:problem:no-such-session"
