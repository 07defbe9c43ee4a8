"""What runs are called, over REST: with the submission, by PATCH, and as programs record it; bounds and owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .conftest import running_app
from .test_runs import SUPERVISOR, ScriptedSupervisors, app_with, report, submit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

SOURCE = {"commit": "abcd1234", "branch": "main", "dirty": True, "diff": "-a\n+b\n", "diff_truncated": False}


@pytest.fixture
async def api(database: str) -> AsyncIterator[httpx.AsyncClient]:
    async with running_app(app_with(ScriptedSupervisors(), database)) as client:
        yield client


def told(**recorded: Any) -> dict[str, Any]:
    return {"steps": 1, "recorded": recorded}


async def test_a_submission_says_what_the_run_is_called(api: httpx.AsyncClient) -> None:
    called = {
        "display_name": "wide",
        "tags": ["a"],
        "notes": "n",
        "parameters": {"lr": 0.1, "on": True, "k": 3, "o": "x"},
    }

    run = await submit(api, **called, source=SOURCE)

    assert {name: run[name] for name in called} == called
    assert run["source"] == {
        **{"commit": "abcd1234", "branch": "main", "dirty": True, "diff_bytes": 6, "diff_truncated": False},
    }
    assert (await api.get(f"/v1/runs/{run['name']}/diff")).text == "-a\n+b\n"


async def test_the_same_submission_under_another_name_is_the_same_run(api: httpx.AsyncClient) -> None:
    first = await submit(api, submission_id="s", tags=["a"])
    second = await submit(api, submission_id="s", tags=["b"])

    assert (second["name"], second["tags"]) == (first["name"], ["a"])


async def test_an_edit_changes_the_version_and_what_is_left_out_stays(api: httpx.AsyncClient) -> None:
    run = await submit(api, tags=["a"], parameters={"lr": 0.1})
    path = f"/v1/runs/{run['name']}"

    edited = (await api.patch(path, json={"add_tags": ["b"], "parameters": {"lr": None, "x": 1}})).json()
    same = (await api.patch(path, json={"add_tags": ["b"]})).json()

    assert (edited["tags"], edited["parameters"], edited["version"]) == (["a", "b"], {"x": 1}, run["version"] + 1)
    assert same["version"] == edited["version"]


async def test_a_run_that_has_ended_can_still_be_edited(api: httpx.AsyncClient) -> None:
    run = await submit(api, launcher="external")
    path = f"/v1/runs/{run['name']}"
    await api.post(f"{path}:report", json=report("SUCCEEDED", supervisor=SUPERVISOR))

    edited = (await api.patch(path, json={"notes": "converged"})).json()

    assert (edited["state"], edited["notes"]) == ("SUCCEEDED", "converged")


async def test_what_a_program_records_is_kept_and_the_first_worker_counts(api: httpx.AsyncClient) -> None:
    run = await submit(api, parameters={"lr": 0.1})
    path = f"/v1/runs/{run['name']}"
    mine = {"parameters": {"lr": 0.5, "b": 2}, "versions": {"python": "3.12"}, "seed": 7, "source": SOURCE}

    first = await api.post(f"{path}/tasks/worker/0:report", json=told(**mine))
    second = await api.post(
        f"{path}/tasks/worker/1:report", json=told(parameters={"b": 9}, source={**SOURCE, "diff": "x"})
    )
    found = (await api.get(path)).json()

    assert (first.status_code, second.status_code) == (200, 200)
    assert (found["parameters"], found["seed"], found["versions"]) == ({"lr": 0.1, "b": 2}, 7, {"python": "3.12"})
    assert (await api.get(f"{path}/diff")).text == "-a\n+b\n"


async def test_a_deleted_run_leaves_no_diff(api: httpx.AsyncClient) -> None:
    run = await submit(api, launcher="external", source=SOURCE)
    path = f"/v1/runs/{run['name']}"
    await api.post(f"{path}:report", json=report("SUCCEEDED", supervisor=SUPERVISOR))

    await api.delete(path)

    assert (await api.get(f"{path}/diff")).status_code == 404


@pytest.mark.parametrize(
    "edit",
    [
        {"tags": ["two words"]},
        {"tags": ["a=b"]},
        {"tags": [""]},
        {"display_name": ""},
        {"parameters": {"lr": [1]}},
        {"parameters": {"": 1}},
        {"parameters": {"x": "y" * 1001}},
        {"unknown": 1},
        {"tags": "a"},
    ],
)
async def test_an_edit_that_is_malformed_is_refused(api: httpx.AsyncClient, edit: dict[str, Any]) -> None:
    run = await submit(api)

    answer = await api.patch(f"/v1/runs/{run['name']}", json=edit)

    assert answer.status_code == 400, answer.text
    assert answer.json()["type"].endswith("invalid-request")


async def test_an_edit_of_no_run_is_not_found(api: httpx.AsyncClient) -> None:
    assert (await api.patch("/v1/runs/none", json={})).status_code == 404


async def reported(api: httpx.AsyncClient, loss: float, **called: Any) -> str:
    """The name of a run whose program has reported that loss."""
    run = await submit(api, **called)
    point = {"time": 1.0, "step": 1, "values": {"loss": loss}}
    await api.post(f"/v1/runs/{run['name']}/tasks/worker/0:report", json={"steps": 1, "points": [point]})
    return str(run["name"])


async def test_runs_are_filtered_and_sorted_in_pages(api: httpx.AsyncClient) -> None:
    found = [
        await reported(api, loss, tags=["x"], parameters={"lr": lr}) for loss, lr in ((3.0, 1), (1.0, 2), (2.0, 3))
    ]
    await reported(api, 0.5, parameters={"lr": 4})
    params: dict[str, Any] = {"filter": "tag=x and lr>=1", "sort": "loss", "limit": 2}

    first = (await api.get("/v1/runs", params=params)).json()
    second = (await api.get("/v1/runs", params={**params, "after": first["next"]})).json()
    newest = (await api.get("/v1/runs", params={"filter": "tag=x"})).json()["runs"]
    worst = (await api.get("/v1/runs", params={"sort": "-loss", "limit": 1})).json()["runs"]

    assert [run["name"] for run in (*first["runs"], *second["runs"])] == [found[1], found[2], found[0]]
    assert second["next"] is None
    assert [run["name"] for run in newest] == found[::-1]
    assert [run["progress"]["values"]["loss"] for run in worst] == [3.0]


async def test_a_filter_finds_what_is_only_in_the_database(database: str) -> None:
    async with running_app(app_with(ScriptedSupervisors(), database)) as api:
        name = await reported(api, 1.0)
    async with running_app(app_with(ScriptedSupervisors(), database)) as api:
        found = (await api.get("/v1/runs", params={"filter": "loss<2", "sort": "loss"})).json()["runs"]

    assert [run["name"] for run in found] == [name]


async def test_a_malformed_filter_is_pointed_at(api: httpx.AsyncClient) -> None:
    answer = await api.get("/v1/runs", params={"filter": "lr>0.1 or or"})

    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (400, "urn:tenfold:problem:invalid-filter")
    assert problem["position"] == 10
    assert "expected a name" in problem["detail"]


async def test_a_page_of_another_order_is_refused(api: httpx.AsyncClient) -> None:
    for _ in range(2):
        await submit(api)
    place = (await api.get("/v1/runs", params={"limit": 1})).json()["next"]

    answer = await api.get("/v1/runs", params={"sort": "loss", "after": place})

    assert answer.json()["type"].endswith("invalid-cursor")


async def test_runs_are_compared(api: httpx.AsyncClient) -> None:
    first = await reported(api, 3.0, parameters={"batch": 32, "lr": 0.1})
    second = await reported(api, 1.0, parameters={"batch": 32, "lr": 0.2})

    found = (await api.get("/v1/runs:compare", params={"run": [second, first, second], "scalar": "loss"})).json()
    missing = await api.get("/v1/runs:compare", params={"run": [first, "none"]})
    nothing = await api.get("/v1/runs:compare")

    assert [run["name"] for run in found["runs"]] == [second, first]
    assert [(row["name"], row["differs"], row["values"]) for row in found["parameters"]] == [
        ("lr", True, [0.2, 0.1]),
        ("batch", False, [32, 32]),
    ]
    assert [(each["name"], each["newest"]) for each in found["scalars"]] == [("loss", [1.0, 3.0])]
    assert (missing.status_code, nothing.status_code) == (404, 400)
