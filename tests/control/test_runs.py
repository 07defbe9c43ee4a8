"""`/v1/runs` over REST with a scripted supervisors: submitting, reports, stopping, pages, silent supervisors."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import threading
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from starlette.requests import ClientDisconnect

from tenfold_control_api.app import create_app
from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs import log_stream
from tenfold_control_api.runs.packages import Packages
from tenfold_control_api.runs.supervisors import Found
from tenfold_control_api.service_settings import Settings

from .conftest import PATIENCE, Masters, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi import FastAPI

    from tenfold_control_api.runs.record import RunRecord

BODY: dict[str, Any] = {"entrypoint": ["python", "t.py"], "jobs": {"ps": 1, "worker": 2}}
SUPERVISOR = {"host": "here", "pid": 4711}


@dataclass
class ScriptedSupervisors:
    """Notes what it is asked for; what a look finds is the test's."""

    launched: list[str] = field(default_factory=list)
    nudged: list[str] = field(default_factory=list)
    cleared: list[str] = field(default_factory=list)
    found: Found | None = None
    refusal: OSError | None = None
    folder: Path | None = None
    #: Set when something was launched, when logs were asked for.
    started: threading.Event = field(default_factory=threading.Event)
    packages: Packages = field(default_factory=lambda: Packages(Path("/nonexistent"), unpacked_limit=0))
    read: threading.Event = field(default_factory=threading.Event)

    def launch(self, run: RunRecord, control: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.launched.append(run.id)
        self.started.set()

    def nudge(self, run: RunRecord) -> None:
        self.nudged.append(run.id)

    def look(self, run: RunRecord) -> Found | None:
        return self.found

    def clear(self, run: RunRecord) -> None:
        self.cleared.append(run.id)

    def logs(self, run: RunRecord) -> Path | None:
        self.read.set()
        return self.folder

    def output(self, run: RunRecord) -> Path | None:
        return self.folder

    def arriving(self, run: RunRecord) -> Path | None:
        return self.folder


def report(state: str = "RUNNING", reason: str = "its tasks run", **more: Any) -> dict[str, Any]:
    return {"state": state, "reason": reason, "attempt": 1, "supervisor": SUPERVISOR, **more}


def app_with(supervisors: ScriptedSupervisors, database: str, **settings: Any) -> FastAPI:
    known = Settings(database=database, allow_runs=True, **settings)
    return create_app(known, Masters(), supervisors=lambda *_: supervisors)


@pytest.fixture
def supervisors() -> ScriptedSupervisors:
    return ScriptedSupervisors()


@pytest.fixture
async def runs(database: str, supervisors: ScriptedSupervisors) -> AsyncIterator[httpx.AsyncClient]:
    """A service that starts runs by `supervisors`, and looks after them often."""
    app = app_with(supervisors, database, heartbeat=0.05, lease_ttl=30.0)
    async with running_app(app) as api:
        app.state.control.runs.serve_at("http://here")
        yield api


async def submit(api: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    answer = await api.post("/v1/runs", json={**BODY, **more})
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def happens(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, PATIENCE)


async def until(api: httpx.AsyncClient, run: str, **params: Any) -> dict[str, Any]:
    answer = await api.get(f"/v1/runs/{run}", params={"wait": f"{PATIENCE}s", **params})
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_run_is_started_reported_and_ends(runs: httpx.AsyncClient, supervisors: ScriptedSupervisors) -> None:
    created = await runs.post("/v1/runs", json={**BODY, "environment": {"SECRET": "x"}})
    run = created.json()
    path = f"/v1/runs/{run['name']}"
    assert (created.status_code, created.headers["location"]) == (201, path)
    assert (run["state"], run["environment"], run["tasks"]) == ("PENDING", ["SECRET"], [])
    waits = asyncio.create_task(until(runs, run["name"], ended="true"))

    tasks = [
        {"job": "worker", "index": 0, "state": "running", "starts": 1, "host": "here", "pid": 7, "started": 10.0},
        {"job": "worker", "index": 1, "state": "waiting"},
    ]
    heard = (await runs.post(f"{path}:report", json=report(tasks=tasks))).json()
    running = (await runs.get(path)).json()
    again = (await runs.post(f"{path}:report", json=report(tasks=tasks))).json()
    left = {"last_lines": ["oh"], "error": {"type": "E", "node": "n"}}
    ended = [{**tasks[0], "state": "failed", "exit_code": -9, **left}]
    await runs.post(f"{path}:report", json=report("FAILED", "worker/0 was ended by SIGKILL", tasks=ended))
    failed = await waits

    assert supervisors.launched == [run["name"]]
    assert heard == again == {"state": "RUNNING", "stop": None, "heartbeat": 0.05, "services": []}
    assert (running["state"], running["version"], running["attempt"]) == ("RUNNING", 2, 1)
    assert [task["name"] for task in running["tasks"]] == [f"/job:worker/replica:0/task:{i}" for i in (0, 1)]
    assert running["started"] is not None
    assert (failed["state"], failed["reason"], failed["version"]) == ("FAILED", "worker/0 was ended by SIGKILL", 3)
    (task,) = failed["tasks"]
    assert (task["signal"], task["last_lines"], task["error"]["node"]) == ("SIGKILL", ["oh"], "n")
    assert task["started"] == "1970-01-01T00:00:10.000Z"


async def test_who_looks_while_another_one_begins_to_wait_does_not_take_the_word_along(
    runs: httpx.AsyncClient, supervisors: ScriptedSupervisors
) -> None:
    run = await submit(runs)
    waits = asyncio.create_task(until(runs, run["name"], ended="true"))
    for _ in range(3):
        await runs.get(f"/v1/runs/{run['name']}")

    await runs.post(f"/v1/runs/{run['name']}:report", json=report("FAILED", "ended"))
    begun = time.monotonic()

    assert (await waits)["state"] == "FAILED"
    assert time.monotonic() - begun < PATIENCE / 2


async def test_the_same_submission_is_the_same_run(runs: httpx.AsyncClient, supervisors: ScriptedSupervisors) -> None:
    first = await submit(runs, submission_id="mnist-1")
    await until(runs, first["name"], after=0)
    await happens(supervisors.started)
    supervisors.started.clear()
    repeated = await runs.post("/v1/runs", json={**BODY, "submission_id": "mnist-1"})
    other = await runs.post("/v1/runs", json={**BODY, "submission_id": "mnist-1", "jobs": {"worker": 1}})
    both = await asyncio.gather(*(submit(runs, submission_id="mnist-2") for _ in range(5)))

    assert (repeated.status_code, repeated.json()["name"]) == (200, first["name"])
    assert (other.status_code, other.json()["type"]) == (409, "urn:tenfold:problem:submission-differs")
    assert len({run["name"] for run in both}) == 1
    await happens(supervisors.started)
    assert supervisors.launched == [first["name"], both[0]["name"]]


async def test_runs_are_off_unless_they_were_allowed(api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/runs", json=BODY)

    assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED")
    assert "--allow-runs" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"entrypoint": []}, "entrypoint"),
        ({"entrypoint": [""]}, "the entrypoint is empty"),
        ({"jobs": {"ps": 1}}, "nobody to end the run"),
        ({"working_dir": "relative"}, "working_dir 'relative' is not an absolute path"),
        ({"working_dir": "/no/such/folder"}, "not an absolute path of a folder"),
        ({"submission_id": "a b"}, "submission_id"),
        ({"success": "some"}, "success"),
        ({"restarts": {"limit": -1}}, "restarts.limit"),
        ({"environment": {"A=B": "c"}}, "not a name of a variable"),
        ({"deadline": 0}, "deadline"),
        ({"unknown": 1}, "unknown"),
        ({"jobs": {"worker": 20_000}}, "20000 tasks are too many"),
    ],
)
async def test_a_wrong_submission_is_refused(runs: httpx.AsyncClient, wrong: dict[str, Any], text: str) -> None:
    answer = await runs.post("/v1/runs", json={**BODY, **wrong})

    assert answer.status_code == 400
    assert text in answer.json()["detail"]


async def test_stopping_a_run_that_runs_tells_its_supervisor(
    runs: httpx.AsyncClient, supervisors: ScriptedSupervisors
) -> None:
    run = await submit(runs)
    path = f"/v1/runs/{run['name']}"
    await runs.post(f"{path}:report", json=report())

    asked = await runs.post(f"{path}:stop", json={"reason": "too slow"})
    again = await runs.post(f"{path}:stop", json={"reason": "again"})
    heard = (await runs.post(f"{path}:report", json=report())).json()
    early = await runs.delete(path)
    await runs.post(f"{path}:report", json=report("STOPPED", "too slow"))
    late = await runs.post(f"{path}:stop", json={})
    contrary = await runs.post(f"{path}:report", json=report("SUCCEEDED", "done"))
    gone = await runs.delete(path)

    assert (asked.json()["state"], again.json()["stop"]) == ("RUNNING", "too slow")
    assert supervisors.nudged == [run["name"]] * 2
    assert heard["stop"] == "too slow"
    assert (early.status_code, early.json()["type"]) == (400, "urn:tenfold:problem:run-active")
    assert late.json()["state"] == "STOPPED"
    assert (contrary.status_code, contrary.json()["type"]) == (410, "urn:tenfold:problem:run-ended")
    assert (gone.status_code, supervisors.cleared) == (200, [run["name"]])
    assert (await runs.get(path)).status_code == 404
    assert (await runs.post(f"{path}:report", json=report())).status_code == 404


async def test_a_run_that_has_not_started_is_stopped_at_once(database: str, supervisors: ScriptedSupervisors) -> None:
    # without an address nothing is started
    async with running_app(app_with(supervisors, database)) as api:
        run = await submit(api)

        stopped = (await api.post(f"/v1/runs/{run['name']}:stop", json={})).json()

    assert (stopped["state"], stopped["reason"], supervisors.launched) == ("STOPPED", "stopped by request", [])


async def test_another_supervisor_is_refused(runs: httpx.AsyncClient) -> None:
    run = await submit(runs)
    path = f"/v1/runs/{run['name']}:report"
    await runs.post(path, json=report())

    other = await runs.post(path, json={**report(), "supervisor": {"host": "there", "pid": 1}})

    assert (other.status_code, other.json()["type"]) == (410, "urn:tenfold:problem:run-taken")
    assert "process 4711 on here" in other.json()["detail"]


async def test_a_supervisor_that_cannot_be_started_fails_the_run(
    runs: httpx.AsyncClient, supervisors: ScriptedSupervisors
) -> None:
    supervisors.refusal = OSError(12, "Cannot allocate memory")
    run = await submit(runs)

    failed = await until(runs, run["name"], ended="true")

    assert failed["state"] == "FAILED"
    assert "its supervisor cannot be started: [Errno 12] Cannot allocate memory" in failed["reason"]


@pytest.mark.parametrize(
    ("found", "state", "reason"),
    [
        (Found(alive=False, last={"state": "SUCCEEDED", "reason": "done"}), "SUCCEEDED", "done"),
        (Found(alive=False, words="MemoryError"), "FAILED", "(process 4711 on here) ended: MemoryError"),
        (Found(alive=False, last={"state": "no state"}), "FAILED", "left a report that cannot be read"),
    ],
)
async def test_a_supervisor_that_is_gone(
    runs: httpx.AsyncClient, supervisors: ScriptedSupervisors, found: Found, state: str, reason: str
) -> None:
    run = await submit(runs)
    running = {"job": "worker", "index": 0, "state": "running"}
    await runs.post(f"/v1/runs/{run['name']}:report", json=report(tasks=[running]))

    supervisors.found = found
    ended = await until(runs, run["name"], ended="true")

    assert (ended["state"], reason in ended["reason"]) == (state, True), ended["reason"]


async def test_a_silent_supervisor_of_which_nobody_knows_fails_its_run(
    database: str, supervisors: ScriptedSupervisors
) -> None:
    app = app_with(supervisors, database, heartbeat=0.02, lease_ttl=0.2)
    async with running_app(app) as api:
        app.state.control.runs.serve_at("http://here")
        run = await submit(api)
        await api.post(f"/v1/runs/{run['name']}:report", json=report())

        failed = await until(api, run["name"], ended="true")

    assert failed["state"] == "FAILED"
    assert failed["reason"].startswith("nothing was heard of its supervisor (process 4711 on here) for ")


async def test_a_restarted_service_finds_its_runs(database: str) -> None:
    before, after = ScriptedSupervisors(), ScriptedSupervisors()
    async with running_app(app_with(before, database)) as api:
        waiting, running, ended = [(await submit(api))["name"] for _ in range(3)]
        for name, state in ((running, "RUNNING"), (ended, "SUCCEEDED")):
            await api.post(f"/v1/runs/{name}:report", json=report(state))

    app = app_with(after, database)
    async with running_app(app) as api:
        app.state.control.runs.serve_at("http://here")
        found = {run["name"]: run["state"] for run in (await api.get("/v1/runs")).json()["runs"]}
        await happens(after.started)

    assert found == {waiting: "PENDING", running: "RUNNING", ended: "SUCCEEDED"}
    # nobody had started it; the others are not started a second time
    assert (before.launched, after.launched) == ([], [waiting])


async def test_pages_and_states(runs: httpx.AsyncClient) -> None:
    names = [(await submit(runs))["name"] for _ in range(5)]
    await runs.post(f"/v1/runs/{names[2]}:report", json=report())
    seen: list[str] = []
    after: str | None = None
    for _ in range(3):
        params = {"limit": "2", **({"after": after} if after else {})}
        page = (await runs.get("/v1/runs", params=params)).json()
        seen += [run["name"] for run in page["runs"]]
        after = page["next"]
    chosen = (await runs.get("/v1/runs", params={"state": ["RUNNING", "FAILED"]})).json()["runs"]
    wrong = await runs.get("/v1/runs", params={"after": "?"})

    assert (seen, after) == (names[::-1], None)
    assert [run["name"] for run in chosen] == [names[2]]
    assert (wrong.status_code, "is not the `next`" in wrong.text) == (400, True)


async def test_there_is_a_bound_on_runs(database: str, supervisors: ScriptedSupervisors) -> None:
    async with running_app(app_with(supervisors, database, max_active_runs=1)) as api:
        first = await submit(api)
        refused = await api.post("/v1/runs", json=BODY)
        await api.post(f"/v1/runs/{first['name']}:stop", json={})
        allowed = await api.post("/v1/runs", json=BODY)

    assert (refused.status_code, refused.json()["type"]) == (429, "urn:tenfold:problem:too-many-runs")
    assert allowed.status_code == 201


async def test_a_run_that_others_start_is_only_told_of(api: httpx.AsyncClient) -> None:
    body = {**BODY, "launcher": "external", "working_dir": "/somewhere/else"}
    run = (await api.post("/v1/runs", json=body)).json()
    path = f"/v1/runs/{run['name']}"

    await api.post(f"{path}:report", json=report())
    await api.post(f"{path}:stop", json={"reason": "enough"})
    heard = (await api.post(f"{path}:report", json=report())).json()

    assert (run["launcher"], run["state"]) == ("external", "PENDING")
    assert heard == {"state": "RUNNING", "stop": "enough", "heartbeat": 2.0, "services": []}


async def test_tasks_elsewhere_send_what_they_leave(
    database: str, supervisors: ScriptedSupervisors, tmp_path: Path
) -> None:
    binary = {"Content-Type": "application/octet-stream"}
    async with running_app(app_with(supervisors, database, max_run_output=3 * 4096)) as api:
        run = (await submit(api))["name"]

        async def send(path: str, content: bytes, task: str = "worker/0", **more: Any) -> httpx.Response:
            params = {"path": path, "size": len(content), **more}
            return await api.put(f"/v1/runs/{run}/tasks/{task}/output", params=params, content=content, headers=binary)

        nowhere = await send("a.txt", b"a")
        supervisors.folder = tmp_path / "output"
        kept = await send("d/a.txt", b"content")
        answers = {
            "invalid-artifact": await send("../a", b"a"),
            "no-such-task": await send("a", b"a", "worker/7"),
            "output-too-large": await send("a", b"a" * 8192),
        }
        found = await api.get(f"/v1/runs/{run}/artifacts/d/a.txt")
        await api.post(f"/v1/runs/{run}:stop", json={})
        answers["run-ended"] = await send("late", b"a")

    assert (kept.status_code, found.content) == (204, b"content")
    assert nowhere.json()["type"].endswith("no-artifacts")
    assert {kind: answer.json()["type"].rpartition(":")[2] for kind, answer in answers.items()} == {
        kind: kind for kind in answers
    }


# -- packages


def a_zip(**files: bytes) -> tuple[str, bytes]:
    """A zip file of these files, and its sha256."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as package:
        for name, content in files.items():
            package.writestr(name, content)
    return hashlib.sha256(made.getvalue()).hexdigest(), made.getvalue()


async def put(api: httpx.AsyncClient, name: str, content: bytes, kind: str = "application/zip") -> httpx.Response:
    return await api.put(f"/v1/packages/{name}", content=content, headers={"Content-Type": kind})


async def test_a_package_is_uploaded_once_and_used(
    runs: httpx.AsyncClient, supervisors: ScriptedSupervisors, tmp_path: Path
) -> None:
    supervisors.packages = Packages(tmp_path, unpacked_limit=1000)
    name, content = a_zip(**{"t.py": b"print()"})

    missing = await runs.post("/v1/runs", json={**BODY, "package": name})
    before = await runs.get(f"/v1/packages/{name}")
    first, again = await put(runs, name, content), await put(runs, name, content)
    there = await runs.get(f"/v1/packages/{name}")
    run = await submit(runs, package=name)
    typo = await runs.post("/v1/runs", json={**BODY, "package": name, "entrypoint": ["python", "u.py"]})
    both = await runs.post("/v1/runs", json={**BODY, "package": name, "working_dir": str(tmp_path)})

    assert (missing.status_code, "Upload it first" in missing.text, before.status_code) == (404, True, 404)
    assert (first.status_code, again.status_code, there.status_code) == (201, 200, 200)
    assert (run["package"], both.status_code) == (name, 400)
    assert (typo.status_code, typo.json()["errors"][0]["pointer"]) == (400, "#/entrypoint/1")
    assert typo.json()["detail"] == f"there is no file 'u.py' in the package {name}, in which the run starts."
    assert len((await runs.get("/v1/runs")).json()["runs"]) == 1


async def test_a_package_that_cannot_be_used(
    runs: httpx.AsyncClient, supervisors: ScriptedSupervisors, tmp_path: Path
) -> None:
    supervisors.packages = Packages(tmp_path / "packages", unpacked_limit=1000)
    name, content = a_zip(trainer=b"print()")
    large, bomb = a_zip(zeros=bytes(10_000))
    text = hashlib.sha256(b"text").hexdigest()

    other_name = await put(runs, text, content)
    no_zip = await put(runs, text, b"text")
    too_large = await put(runs, large, bomb)
    kind = await put(runs, name, content, "text/plain")
    no_name = await put(runs, "abc", content)

    assert (other_name.status_code, f"not {text}" in other_name.text) == (400, True)
    assert (no_zip.status_code, "is not a zip file" in no_zip.text) == (400, True)
    assert (too_large.status_code, "10000 bytes unpacked" in too_large.text) == (413, True)
    assert (kind.status_code, no_name.status_code) == (415, 400)
    assert not (tmp_path / "packages").exists()


def test_unpacking_stays_in_its_folder_and_keeps_modes(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as package:
        for name, mode in (("../../outside", 0), ("/absolute", 0), ("sub/run.sh", 0o755)):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            package.writestr(entry, b"x")
    name = hashlib.sha256(made.getvalue()).hexdigest()
    packages = Packages(tmp_path / "packages", unpacked_limit=1000)
    packages.add(name, made.getvalue())

    packages.unpack(name, tmp_path / "a" / "b")

    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {f"packages/{name}.zip", "a/b/outside", "a/b/absolute", "a/b/sub/run.sh"}
    assert (tmp_path / "a/b/sub/run.sh").stat().st_mode & 0o777 == 0o755
    packages.forget(time.time() + 1.0)
    assert not packages.has(name)


# -- progress


def program_report(step: int | None, **more: Any) -> dict[str, Any]:
    points = [{"time": 10.0, "step": step, "values": {"loss": 0.5, "gap": "NaN"}}]
    return {"steps": 7, "global_step": step, "points": points, "figures": {"resident_bytes": 1e6}, **more}


async def test_programs_say_how_far_they_are(runs: httpx.AsyncClient) -> None:
    run = await submit(runs)
    path = f"/v1/runs/{run['name']}"
    before = (await runs.get(path)).json()["progress"]

    told = await runs.post(f"{path}/tasks/worker/0:report", json=program_report(3, steps_per_second=1.5))
    await runs.post(f"{path}/tasks/worker/1:report", json=program_report(5, checkpoints=[{"time": 1, "path": "/c-5"}]))
    later = [{"time": 20.0, "step": 15}, {"time": 22.0, "step": 25}]
    await runs.post(f"{path}/tasks/worker/1:report", json={**program_report(25, last_step=400), "points": later})
    progress = (await runs.get(path)).json()["progress"]
    (listed,) = (await runs.get("/v1/runs")).json()["runs"]
    curves = (await runs.get(f"{path}/progress")).json()
    unknown = await runs.post(f"{path}/tasks/worker/2:report", json=program_report(1))
    wrong = await runs.post(f"{path}/tasks/worker/0:report", json={"points": [{"time": 1, "values": {"a": "x"}}]})

    assert before is None
    assert told.json() == {"heartbeat": 1.0, "stop": None, "trace": None, "why": None, "services": []}
    assert (progress["global_step"], progress["values"]) == (25, {"loss": 0.5, "gap": "NaN"})
    assert (progress["last_step"], progress["percent"]) == (400, 6.2)
    # 20 steps in 12 s
    assert progress["seconds_left"] == 225.0
    assert progress["checkpoint"] == "/c-5"
    assert listed["progress"] == progress
    assert [(task["job"], task["index"], task["global_step"]) for task in curves["tasks"]] == [
        ("worker", 0, 3),
        ("worker", 1, 25),
    ]
    assert [task["last_step"] for task in curves["tasks"]] == [None, 400]
    assert curves["tasks"][0]["curves"]["gap"] == {"times": [10.0], "steps": [3], "values": ["NaN"]}
    assert curves["tasks"][0]["figures"] == {"resident_bytes": 1e6}
    assert (unknown.status_code, wrong.status_code) == (404, 400)


async def test_programs_tell_of_their_tables(runs: httpx.AsyncClient) -> None:
    path = f"/v1/runs/{(await submit(runs))['name']}"
    table = {"name": "user/part_0", "kind": "EmbeddingVariable", "rows": 30, "bytes": 900, "lookups": 4, "found": 3}
    before = (await runs.get(f"{path}/progress")).json()["tables"]
    sums = {"table_rows": 50.0, "table_bytes": 1000.0, "tables_left_out": 2.0}
    told = await runs.post(f"{path}/tasks/ps/0:report", json={"figures": sums, "tables": [table]})
    other = {**table, "name": "user/part_1", "rows": 10}
    await runs.post(f"{path}/tasks/worker/0:report", json={"tables": [other]})
    wrong = await runs.post(f"{path}/tasks/ps/0:report", json={"tables": [{**table, "rows": "many"}]})

    found = (await runs.get(f"{path}/progress")).json()

    assert (before, told.status_code, wrong.status_code) == (None, 200, 400)
    assert wrong.json()["errors"][0]["pointer"] == "#/tables/0/rows"
    unknown = {"waiting": None, "evicted": None, "quota_bytes": None}
    assert [task["tables"] for task in found["tasks"]] == [[{**table, **unknown}], [{**other, **unknown}]]
    (user,) = found["tables"]["tables"]
    assert (user["name"], user["parts"], user["rows"], user["hit_rate"]) == ("user", 2, 40, 0.75)
    assert (found["tables"]["rows"], found["tables"]["bytes"], found["tables"]["left_out"]) == (60, 1900, 2)
    assert found["tasks"][0]["used"]["rows"]["values"] == [50.0]


async def test_progress_outlives_the_service_and_the_run_and_goes_with_it(
    database: str, supervisors: ScriptedSupervisors
) -> None:
    async with running_app(app_with(supervisors, database)) as api:
        path = f"/v1/runs/{(await submit(api))['name']}"
        await api.post(f"{path}/tasks/worker/0:report", json=program_report(3))

    async with running_app(app_with(supervisors, database, heartbeat=0.05)) as api:
        found = (await api.get(path)).json()["progress"]
        await api.post(f"{path}/tasks/worker/0:report", json=program_report(4))
        await api.post(f"{path}:report", json=report("SUCCEEDED", "done"))
        late = await api.post(f"{path}/tasks/worker/0:report", json=program_report(5))
        ended = (await api.get(f"{path}/progress")).json()
        await api.delete(path)

    async with running_app(app_with(supervisors, database)) as api:
        gone = await api.get(f"{path}/progress")

    assert found["global_step"] == 3
    assert (late.status_code, late.json()["type"]) == (410, "urn:tenfold:problem:run-ended")
    assert ended["tasks"][0]["curves"]["loss"]["steps"] == [3, 4]
    assert gone.status_code == 404


# -- logs


def write(folder: Path, task: str, *texts: str, number: int = 0, start: float = 0.0) -> None:
    """One line a second from `start` on."""
    with (folder / f"{task}.{number:08}.log").open("a") as file:
        for at, text in enumerate(texts):
            file.write(f"2026-11-24T03:30:{at + start:09.6f}Z INFO    {task.replace('-', '/')} {text}\n")


async def test_logs(runs: httpx.AsyncClient, supervisors: ScriptedSupervisors, tmp_path: Path) -> None:
    run = await submit(runs)
    path = f"/v1/runs/{run['name']}/logs"
    nothing = await runs.get(path)
    supervisors.folder = tmp_path
    write(tmp_path, "ps-0", "a", "c")
    write(tmp_path, "worker-1", "b", start=0.5)

    lines = (await runs.get(path, params={"tail": 2})).json()["lines"]
    text = await runs.get(path, params={"format": "text", "task": ["worker/1"]})
    silent = (await runs.get(path, params={"task": ["worker/0"]})).json()["lines"]
    unknown = await runs.get(path, params={"task": ["worker/7"]})

    assert (nothing.status_code, nothing.json()["type"]) == (404, "urn:tenfold:problem:no-logs")
    assert [(line["task"], line["text"]) for line in lines] == [("worker/1", "b"), ("ps/0", "c")]
    assert text.text == "2026-11-24T03:30:00.500000Z INFO    worker/1 b\n"
    assert silent == []
    assert (unknown.status_code, "it has ps/0, worker/0, worker/1" in unknown.text) == (404, True)


Events = list[tuple[str, Any, str]]


async def events(api: httpx.AsyncClient, path: str, last: str | None = None, **params: Any) -> Events:
    """The events of a stream until it ends: (name, data, id)."""
    headers = {} if last is None else {"Last-Event-ID": last}
    answer = await api.get(path, params={"follow": "true", **params}, headers=headers, timeout=PATIENCE)
    assert answer.is_success, answer.text
    found = []
    for block in answer.text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields.get("event", ""), json.loads(fields["data"]), fields.get("id", "")))
    return found


async def test_following_logs_to_the_end_and_from_an_event_on(
    runs: httpx.AsyncClient, supervisors: ScriptedSupervisors, tmp_path: Path
) -> None:
    run = await submit(runs)
    path, supervisors.folder = f"/v1/runs/{run['name']}", tmp_path
    write(tmp_path, "worker-0", "old", "before")
    follows = asyncio.create_task(events(runs, f"{path}/logs", tail=1))
    await happens(supervisors.read)
    await runs.post(f"{path}:report", json=report())
    write(tmp_path, "worker-0", "after", number=1)
    write(tmp_path, "ps-0", "new task")
    await runs.post(f"{path}:report", json=report("SUCCEEDED", "done"))

    seen = await follows
    rest = await events(runs, f"{path}/logs", last=seen[0][2])
    wrong = await runs.get(f"{path}/logs", params={"follow": "true"}, headers={"Last-Event-ID": "worker/0:x:1"})

    texts = [line["text"] for _, data, _ in seen[:-1] for line in data["lines"]]
    assert texts[0] == "before"
    assert sorted(texts[1:]) == ["after", "new task"]
    assert seen[-1][:2] == ("end", {"state": "SUCCEEDED"})
    again = [line["text"] for _, data, _ in rest[:-1] for line in data["lines"]]
    assert sorted(texts[:1] + again) == ["after", "before", "new task"] or seen[0][1]["lines"][1:]
    assert wrong.status_code == 400
    assert followers(runs) == 0


def followers(api: httpx.AsyncClient) -> int:
    transport = api._transport
    assert isinstance(transport, httpx.ASGITransport)
    app: Any = transport.app
    count: int = app.state.control.runs.followers.total()
    return count


async def test_so_many_may_follow_logs_and_no_more(
    database: str, supervisors: ScriptedSupervisors, tmp_path: Path
) -> None:
    app = app_with(supervisors, database, heartbeat=0.05, lease_ttl=30.0, max_followers=1)
    async with running_app(app) as api:
        app.state.control.runs.serve_at("http://here")
        run = await submit(api)
        path, supervisors.folder = f"/v1/runs/{run['name']}", tmp_path
        write(tmp_path, "worker-0", "text")
        follows = asyncio.create_task(events(api, f"{path}/logs", tail=1))
        await happens(supervisors.read)

        refused = await api.get(f"{path}/logs", params={"follow": "true"})
        await api.post(f"{path}:report", json=report("SUCCEEDED", "done"))
        await follows
        again = await api.get(f"{path}/logs", params={"follow": "true"}, timeout=PATIENCE)

    assert (refused.status_code, again.status_code) == (429, 200)
    assert refused.json()["type"].endswith("too-many-followers")
    assert "1 requests follow logs; that is the limit" in refused.text


async def test_one_caller_does_not_take_all_places_of_followers(
    database: str, supervisors: ScriptedSupervisors
) -> None:
    app = app_with(supervisors, database, max_followers=3, max_followers_per_caller=2)
    async with running_app(app):
        runs = app.state.control.runs
        with runs.follower("a guest"), runs.follower("a guest"):
            with pytest.raises(ApiError, match="2 requests of this caller follow logs; that is the limit"):
                runs.follower("a guest").__enter__()
            with runs.follower("the owner"), pytest.raises(ApiError, match="EXHAUSTED: 3 requests follow logs"):
                runs.follower("another").__enter__()
        assert not runs.followers


async def test_who_is_gone_before_the_first_line_keeps_no_place(
    database: str, supervisors: ScriptedSupervisors, tmp_path: Path
) -> None:
    app = app_with(supervisors, database, heartbeat=0.05, lease_ttl=30.0)
    async with running_app(app) as api:
        runs = app.state.control.runs
        run, supervisors.folder = await submit(api), tmp_path
        record = await runs.get(run["name"])
        response = await log_stream.follow(runs, record, None, 1, None, "a guest")
        assert runs.followers == {"a guest": 1}

        async def send(message: object) -> None:
            raise OSError("the connection is gone")

        with pytest.raises(ClientDisconnect):
            await response({"type": "http", "asgi": {"spec_version": "2.4"}}, send, send)

        assert not runs.followers


async def test_a_run_of_a_launcher_is_supervised_and_says_which(
    runs: httpx.AsyncClient, supervisors: ScriptedSupervisors
) -> None:
    asked = {"launcher": "ssh", "launcher_options": {"hosts": "n1"}, "resources": {"worker": {"cores": 2}}}
    found = await submit(runs, **asked)
    await happens(supervisors.started)

    assert (found["launcher"], found["state"], supervisors.launched) == ("ssh", "PENDING", [found["name"]])


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ({"launcher": "nobodys"}, "invalid-launcher", "there is no launcher 'nobodys'; there are local, ssh"),
        (
            {"launcher": "ssh", "launcher_options": {"colour": "red"}},
            "invalid-launcher",
            "ssh has no option 'colour'; it has hosts, hosts_file, place, sync, folder, scratch, python, config",
        ),
        ({"launcher": "slurm"}, "launcher-not-usable", "cannot be used on the control service's machine: there is no"),
    ],
)
async def test_a_launcher_is_checked_when_a_run_is_submitted(
    runs: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], kind: str, words: str
) -> None:
    monkeypatch.setenv("PATH", "")
    answer = await runs.post("/v1/runs", json={**BODY, **more})

    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (400, f"urn:tenfold:problem:{kind}")
    assert words in problem["detail"]


async def test_a_submission_without_a_launcher_is_kept_as_before_there_were_any(
    runs: httpx.AsyncClient, supervisors: ScriptedSupervisors
) -> None:
    first = await submit(runs, submission_id="same")
    again = await submit(runs, submission_id="same", launcher_options={}, resources={})

    assert again["name"] == first["name"]
