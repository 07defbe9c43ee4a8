"""`/v1/sweeps` over REST with scripted supervisors: settings, places, early stops, cancelling, resuming, restarts."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .conftest import PATIENCE, running_app
from .test_runs import ScriptedSupervisors, app_with, report

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

    from tenfold_control_api.control import Control

PROGRAM: dict[str, Any] = {"entrypoint": ["python", "t.py", "--size={layers}"], "jobs": {"worker": 1}}
BODY: dict[str, Any] = {
    "name": "first",
    "parameters": {"lr": {"values": [0.1, 0.9]}, "layers": {"low": 2, "high": 3}},
    "program": PROGRAM,
    "metric": "loss",
    "total_cores": 8,
}
PROBLEM = "urn:tenfold:problem:"


class Sweeps:
    """A service whose sweeps are looked after when the test says so, and what the runs of its sweep report."""

    def __init__(self, api: httpx.AsyncClient, control: Control) -> None:
        self.api, self.control = api, control

    async def create(self, **more: Any) -> httpx.Response:
        return await self.api.post("/v1/sweeps", json={**BODY, **more})

    async def look(self) -> dict[str, Any]:
        await self.control.sweeps.look()
        return await self.shown()

    async def shown(self, name: str = "first") -> dict[str, Any]:
        found: dict[str, Any] = (await self.api.get(f"/v1/sweeps/{name}")).json()
        return found

    async def run(self, trial: int) -> dict[str, Any]:
        name = (await self.shown())["trials"][trial]["run"]
        found: dict[str, Any] = (await self.api.get(f"/v1/runs/{name}")).json()
        return found

    async def tell(self, trial: int, state: str = "RUNNING", reason: str = "", **losses: float) -> None:
        """The trial's loss by step ("s3=0.5"), and then how its run stands."""
        path = f"/v1/runs/{(await self.run(trial))['name']}"
        points = [{"time": 1.0, "step": int(step[1:]), "values": {"loss": loss}} for step, loss in losses.items()]
        heard = [await self.api.post(f"{path}:report", json=report(reason=reason))]
        heard.append(await self.api.post(f"{path}/tasks/worker/0:report", json={"points": points}))
        heard.append(await self.api.post(f"{path}:report", json=report(state, reason)))
        assert all(answer.is_success for answer in heard), [answer.text for answer in heard]


@pytest.fixture
async def sweeps(database: str) -> AsyncIterator[Sweeps]:
    app = app_with(ScriptedSupervisors(), database)
    async with running_app(app) as api:
        yield Sweeps(api, app.state.control)


def states(sweep: dict[str, Any]) -> list[str]:
    return [trial["state"] for trial in sweep["trials"]]


async def test_each_setting_is_a_run_a_few_at_a_time(sweeps: Sweeps) -> None:
    created = await sweeps.create(parallel=2, program={**PROGRAM, "tags": ["mine"], "notes": "n"})
    started = await sweeps.look()
    first = await sweeps.run(0)
    await sweeps.tell(0, "SUCCEEDED", s1=3.0, s2=1.0)
    await sweeps.tell(1, s1=2.0)
    going = await sweeps.look()
    listed = (await sweeps.api.get("/v1/sweeps")).json()

    assert (created.status_code, created.headers["location"]) == (201, "/v1/sweeps/first")
    assert states(created.json()) == ["WAITING"] * 4
    assert states(started) == ["RUNNING"] * 2 + ["WAITING"] * 2
    assert first["entrypoint"] == ["python", "t.py", "--size=2", "--lr=0.1"]
    assert (first["submission_id"], first["display_name"], first["tags"]) == ("first-0", "first/0", ["first", "mine"])
    assert (first["parameters"], first["notes"]) == ({"lr": 0.1, "layers": 2}, "n")
    assert states(going) == ["SUCCEEDED", "RUNNING", "RUNNING", "WAITING"]
    assert [trial["best"] for trial in going["trials"]] == [1.0, 2.0, None, None]
    assert going["best"] == going["trials"][0]
    assert going["trials"][1]["parameters"] == {"lr": 0.1, "layers": 3}
    (summary,) = listed["sweeps"]
    assert (summary["settings"], summary["counts"]["RUNNING"], "trials" in summary) == (4, 2, False)


async def test_a_sweep_ends_with_its_runs_and_who_waits_is_told(sweeps: Sweeps) -> None:
    await sweeps.create(parallel=4)
    await sweeps.look()
    waits = asyncio.create_task(
        sweeps.api.get("/v1/sweeps/first", params={"ended": "true", "wait": f"{PATIENCE}s"}), name="waits"
    )
    for trial in range(3):
        await sweeps.tell(trial, "SUCCEEDED")
    await sweeps.tell(3, "FAILED", "worker/0 failed")

    active = await sweeps.api.delete("/v1/sweeps/first")
    ended = await sweeps.look()
    told = (await waits).json()
    deleted = await sweeps.api.delete("/v1/sweeps/first")
    gone = await sweeps.api.get("/v1/sweeps/first")

    assert (active.status_code, active.json()["type"]) == (400, f"{PROBLEM}sweep-active")
    assert (ended["state"], ended["reason"]) == ("FAILED", "1 of 4 trials have not succeeded")
    assert ended["trials"][3]["reason"] == "worker/0 failed"
    assert told == ended == deleted.json()
    assert (gone.status_code, gone.json()["type"]) == (404, f"{PROBLEM}no-such-sweep")
    assert len((await sweeps.api.get("/v1/runs")).json()["runs"]) == 4


async def test_the_worst_is_stopped_early(sweeps: Sweeps) -> None:
    await sweeps.create(parallel=4, stop_early={"min_others": 2})
    await sweeps.look()
    for trial, loss in enumerate((1.0, 2.0, 9.0)):
        await sweeps.tell(trial, s5=loss)
    await sweeps.look()
    worst = await sweeps.run(2)
    await sweeps.tell(2, "STOPPED", "SIGTERM")
    for trial in (0, 1, 3):
        await sweeps.tell(trial, "SUCCEEDED")

    ended = await sweeps.look()

    assert worst["stop"] == "by step 5 its best is 9, and the median of 2 others is 1.5"
    assert worst["tags"] == ["first", "stopped-early"]
    assert (ended["state"], ended["trials"][2]["stopped_early"]) == ("SUCCEEDED", True)
    assert ended["trials"][2]["reason"] == worst["stop"]


async def test_a_cancelled_sweep_starts_nothing_more_until_it_is_resumed(sweeps: Sweeps) -> None:
    await sweeps.create(parallel=1)
    await sweeps.look()
    stopping = (await sweeps.api.post("/v1/sweeps/first:cancel", json={"reason": "enough"})).json()
    early = await sweeps.api.post("/v1/sweeps/first:resume")
    await sweeps.look()
    asked = await sweeps.run(0)
    cancelled = await sweeps.look()
    again = (await sweeps.create(parallel=1)).json()

    resumed = (await sweeps.api.post("/v1/sweeps/first:resume")).json()
    going = await sweeps.look()

    assert (stopping["state"], stopping["stop"], early.json()["type"]) == (
        "RUNNING",
        "enough",
        f"{PROBLEM}sweep-active",
    )
    assert asked["stop"] == "enough"
    assert (cancelled["state"], cancelled["reason"]) == ("STOPPED", "enough")
    assert states(cancelled) == ["STOPPED"] + ["REFUSED"] * 3
    assert again == cancelled
    assert (resumed["state"], states(resumed)) == ("RUNNING", ["STOPPED"] + ["WAITING"] * 3)
    assert states(going) == ["STOPPED", "RUNNING", "WAITING", "WAITING"]


async def test_the_next_service_goes_on_where_the_last_one_was_killed(database: str) -> None:
    if "://" in database:
        pytest.skip("a killed service's place there is taken once its beats have stopped: test_replicas.py")
    app = app_with(ScriptedSupervisors(), database)
    async with running_app(app) as api:
        before = Sweeps(api, app.state.control)
        await before.create(parallel=3, stop_early={"min_others": 2})
        # it was killed before it could write down what it had started
        before.control.sweeps._change = lambda *_: asyncio.sleep(0, await_result())  # type: ignore[assignment,method-assign]
        await before.control.sweeps.look()

    app = app_with(ScriptedSupervisors(), database)
    async with running_app(app) as api:
        sweeps = Sweeps(api, app.state.control)
        going = await sweeps.look()
        await sweeps.tell(0, "SUCCEEDED", s5=1.0)
        await sweeps.tell(1, "SUCCEEDED", s5=2.0)
        await sweeps.look()
    app = app_with(ScriptedSupervisors(), database)
    async with running_app(app) as api:
        later = Sweeps(api, app.state.control)
        await later.tell(2, s5=9.0)
        await later.look()
        worst = await later.run(2)
        count = len((await api.get("/v1/runs")).json()["runs"])

    assert states(going) == ["RUNNING"] * 3 + ["WAITING"]
    # the curves of those that had ended before it started count
    assert worst["stop"] == "by step 5 its best is 9, and the median of 2 others is 1.5"
    assert count == 4


def await_result() -> Any:
    """What a change that was lost gives its caller."""

    class Lost:
        class state:
            final = False

        stop = None

    return Lost()


async def test_what_cannot_be_started_just_now_waits_and_what_is_refused_ends_the_sweep(database: str) -> None:
    app = app_with(ScriptedSupervisors(), database, max_active_runs=1)
    async with running_app(app) as api:
        sweeps = Sweeps(api, app.state.control)
        await sweeps.create()
        one = await sweeps.look()
        await sweeps.tell(0, "SUCCEEDED")
        other = (await api.post("/v1/runs", json={**PROGRAM, "submission_id": "first-2"})).json()
        waits = await sweeps.look()
        await api.post(f"/v1/runs/{other['name']}:stop", json={})
        goes_on = await sweeps.look()
        await sweeps.tell(1, "SUCCEEDED")
        await sweeps.look()
        refused = await sweeps.look()

    assert states(one) == ["RUNNING"] + ["WAITING"] * 3
    assert states(waits) == ["SUCCEEDED"] + ["WAITING"] * 3
    assert states(goes_on) == ["SUCCEEDED", "RUNNING", "WAITING", "WAITING"]
    assert states(refused) == ["SUCCEEDED", "SUCCEEDED", "REFUSED", "REFUSED"]
    assert refused["state"] == "FAILED"
    assert "submitted with another program" in refused["reason"]


@pytest.mark.parametrize(
    ("more", "status", "kind", "says"),
    [
        ({"parameters": {"lr": {"low": 0.1, "high": 0.5}}}, 400, "invalid-space", "endlessly many values"),
        ({"parameters": {"lr": {"low": 5, "high": 1}}}, 400, "invalid-space", "ends before it begins"),
        ({"parameters": {"lr": {}}}, 400, "invalid-space", "neither values nor low and high"),
        ({"parameters": {"lr": {"values": [1], "low": 1}}}, 400, "invalid-space", "give one of them"),
        ({"parameters": {"lr": {"low": 1, "high": 1e308, "step": 1e-300}}}, 400, "invalid-space", "10000 is the limit"),
        ({"program": {**PROGRAM, "launcher": "external"}}, 400, "invalid-launcher", "none with the launcher external"),
        ({"program": {**PROGRAM, "submission_id": "x"}}, 400, "invalid-request", "leave submission_id out"),
        ({"program": {**PROGRAM, "jobs": {"ps": 1}}}, 400, "run-without-worker", "nobody to end the run"),
        ({"metric": None, "stop_early": {}}, 400, "invalid-request", "name it as metric"),
        (
            {"program": {**PROGRAM, "resources": {"worker": {"cores": 9}}}},
            *(400, "sweep-without-room", "takes 9 cores"),
        ),
        ({"parallel": 3}, 409, "sweep-differs", "with another definition"),
        ({"name": "second"}, 429, "too-many-sweeps", "the limit is 1"),
        ({"colour": 1}, 400, "invalid-request", "colour"),
    ],
)
async def test_what_is_no_sweep_is_refused(sqlite_sweep: Sweeps, more: Any, status: int, kind: str, says: str) -> None:
    await sqlite_sweep.create()

    refused = await sqlite_sweep.create(**more)

    assert (refused.status_code, refused.json()["type"]) == (status, PROBLEM + kind)
    assert says in refused.text


@pytest.fixture
async def sqlite_sweep(tmp_path: Any, sqlite_with_tables: Any) -> AsyncIterator[Sweeps]:
    """A service with room for one sweep, on SQLite."""
    database = tmp_path / "control.db"
    database.write_bytes(sqlite_with_tables.read_bytes())
    app = app_with(ScriptedSupervisors(), str(database), max_active_sweeps=1)
    async with running_app(app) as api:
        yield Sweeps(api, app.state.control)


async def test_the_snippet_of_the_page(sqlite_sweep: Sweeps, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "rest.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```bash\ncurl -sS http://127.0.0.1:8080/v1/sweeps .* -d '(.*?)'\n```", page, re.DOTALL)

    body = json.loads(snippet.replace("/home/me/mnist", str(tmp_path)))
    created = (await sqlite_sweep.api.post("/v1/sweeps", json=body)).json()

    assert (created["name"], created["settings"], created["parallel"]) == ("first", 6, 2)


async def test_random_settings_and_the_name_of_a_key(sqlite_sweep: Sweeps) -> None:
    space = {"rate": {"low": 1e-4, "high": 0.1, "log": True}, "on": {"values": [True, 1]}}
    body = {**BODY, "name": None, "parameters": space, "random": {"count": 5, "seed": 3}}
    headers = {"Idempotency-Key": "k"}

    first = (await sqlite_sweep.api.post("/v1/sweeps", json=body, headers=headers)).json()
    again = (await sqlite_sweep.api.post("/v1/sweeps", json=body, headers=headers)).json()

    assert again == first
    rates = [trial["parameters"]["rate"] for trial in first["trials"]]
    assert len(set(rates)) == 5
    assert all(1e-4 <= rate <= 0.1 for rate in rates)
    assert {repr(trial["parameters"]["on"]) for trial in first["trials"]} <= {"True", "1"}


async def test_answers_have_tags_and_unknown_parameters_are_refused(sqlite_sweep: Sweeps) -> None:
    await sqlite_sweep.create()
    first = await sqlite_sweep.api.get("/v1/sweeps/first")

    same = await sqlite_sweep.api.get("/v1/sweeps/first", headers={"If-None-Match": first.headers["etag"]})
    misspelt = await sqlite_sweep.api.get("/v1/sweeps", params={"stat": "RUNNING"})

    assert same.status_code == 304
    assert (misspelt.status_code, "Did you mean 'state'?" in misspelt.text) == (400, True)
