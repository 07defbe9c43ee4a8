"""Why something stands still, over REST: runs whose programs the test is, and clusters whose tasks are scripted."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings
from tenfold_control_api.why import gather
from tenfold_core import errors
from tenfold_protos.why_pb2 import StackFrame, TaskAnswer, ThreadStack

from .conftest import PATIENCE, ScriptedMaster, declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx

PS, W0, W1 = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"
PROTOBUF = {"Content-Type": "application/x-protobuf"}
RUN = {"entrypoint": ["python"], "launcher": "external", "jobs": {"ps": 1, "worker": 2}}
ADMIN, OWNER, READER = "tenfold-admin", "tenfold-owner", "tenfold-reader"


def task(job: str, index: int, state: str = "running", **more: Any) -> dict[str, Any]:
    return {"job": job, "index": index, "state": state, **more}


def report(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {"state": "RUNNING", "reason": "", "attempt": 1, "supervisor": {"host": "here", "pid": 1}, "tasks": tasks}


class Telling(ScriptedMaster):
    """A master whose task tells why nothing goes on: `says`, an error, or nothing until `held` is set."""

    says: TaskAnswer | errors.OpError = TaskAnswer()
    held: threading.Event | None = None

    def why(self, timeout: float) -> TaskAnswer:
        if self.held is not None and not self.held.wait(min(timeout, PATIENCE)):
            raise errors.DeadlineExceededError(None, None, "Examine: no answer")
        if isinstance(self.says, errors.OpError):
            raise self.says
        return self.says


class Tasks:
    """The factory: by target."""

    def __init__(self) -> None:
        self.made: dict[str, Telling] = {}

    def __call__(self, target: str, *_: object) -> Telling:
        return self.made.setdefault(target, Telling())


@pytest.fixture
def tasks() -> Tasks:
    return Tasks()


@pytest.fixture
async def api(sqlite: str, tasks: Tasks) -> AsyncIterator[httpx.AsyncClient]:
    async with running_app(create_app(Settings(database=sqlite), tasks)) as client:
        yield client


@pytest.fixture
async def run(api: httpx.AsyncClient) -> str:
    """The path of a run whose programs have reported; worker 1 has failed."""
    path = f"/v1/runs/{(await api.post('/v1/runs', json=RUN)).json()['name']}"
    rows = (task("ps", 0), task("worker", 0), task("worker", 1, "failed", exit_code=-9))
    answer = await api.post(f"{path}:report", json=report(*rows))
    assert answer.is_success, answer.text
    for place in ("ps/0", "worker/0"):
        assert (await api.post(f"{path}/tasks/{place}:report", json={})).json()["why"] is None
    return path


async def asked(api: httpx.AsyncClient, run: str, place: str) -> str:
    """The question that the program of `place` is told, once it is."""
    async with asyncio.timeout(PATIENCE):
        while True:
            told = (await api.post(f"{run}/tasks/{place}:report", json={})).json()["why"]
            if told is not None:
                return str(told["id"])
            await asyncio.sleep(0)  # a report is answered without waiting for anything


async def answered(api: httpx.AsyncClient, run: str, place: str, found: TaskAnswer) -> str:
    question = await asked(api, run, place)
    path = f"{run}/why/{question}/tasks/{place}"
    answer = await api.put(path, content=found.SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 204, answer.text
    return path


def waiting() -> TaskAnswer:
    found = TaskAnswer(task=PS, host="h", pid=3)
    found.wait.add(kind="gradients", node="take", op="TakeGradient", resource="g", have=1, need=2, step=1, master=W0)
    return found


async def test_the_programs_of_a_run_are_asked_by_their_reports(api: httpx.AsyncClient, run: str) -> None:
    asking = asyncio.create_task(api.get(f"{run}:why"))
    path = await answered(api, run, "ps/0", waiting())
    await answered(api, run, "worker/0", TaskAnswer(task=W0))
    answer = await asking

    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["kind"], found["task"], found["silent"]) == ("absent", W1, [])
    assert found["suspect"] == f"{W1} is failed: it was ended by SIGKILL."
    assert found["because"] == [f"'take' (TakeGradient) at {PS} waits for 'g', which has 1 of 2 gradients"]
    assert [each["answered"] for each in found["tasks"]] == [True, True, False]
    # the question is over
    late = await api.put(path, content=b"", headers=PROTOBUF)
    assert late.json()["type"] == "urn:tenfold:problem:no-such-question"
    assert (await api.post(f"{run}/tasks/ps/0:report", json={})).json()["why"] is None


async def test_who_does_not_answer_in_time_is_named(
    api: httpx.AsyncClient, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "LONGEST_S", 1.0)
    asking = asyncio.create_task(api.get(f"{run}:why"))
    await asked(api, run, "worker/0")
    found = (await asking).json()

    assert found["silent"] == [PS, W0]
    silences = {each["name"]: each["silence"] for each in found["tasks"]}
    assert silences[PS].startswith("it does not report; its program was last heard of ")
    assert silences[W0].startswith("it was asked and has not answered; ")
    assert found["kind"] == "silent"


async def test_a_run_that_has_ended_or_is_none(api: httpx.AsyncClient, run: str) -> None:
    await api.post(f"{run}:report", json={**report(), "state": "FAILED"})
    assert (await api.get(f"{run}:why")).json()["type"] == "urn:tenfold:problem:run-ended"
    assert (await api.get("/v1/runs/run-none:why")).json()["type"] == "urn:tenfold:problem:no-such-run"


async def test_a_run_of_which_nobody_has_reported_is_answered_at_once(api: httpx.AsyncClient) -> None:
    path = f"/v1/runs/{(await api.post('/v1/runs', json=RUN)).json()['name']}"
    found = (await api.get(f"{path}:why")).json()
    assert (found["kind"], found["silent"]) == ("absent", [])
    assert "no program has been started for it" in found["suspect"]


# -- clusters


@pytest.fixture
async def cluster(api: httpx.AsyncClient) -> str:
    await declare(api, ps=1, worker=2)
    for number, (job, index) in enumerate((("ps", 0), ("worker", 0))):
        await register(api, job, index, f"127.0.0.1:{3000 + number}")
    return "/v1/clusters/default:why"


async def test_the_tasks_of_a_cluster_are_asked(api: httpx.AsyncClient, cluster: str, tasks: Tasks) -> None:
    tasks("grpc://127.0.0.1:3000").says = waiting()
    found = (await api.get(cluster)).json()

    assert (found["kind"], found["task"]) == ("absent", W1)
    assert found["tasks"][0]["waits"][0]["text"].endswith("waits for 'g', which has 1 of 2 gradients")
    assert (await api.get("/v1/clusters/none:why")).json()["type"] == "urn:tenfold:problem:no-such-cluster"


async def test_a_task_that_hangs_is_named_and_one_that_cannot_tell_is_not(
    api: httpx.AsyncClient, cluster: str, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "_CALL_S", 0.2)
    held = tasks("grpc://127.0.0.1:3000").held = threading.Event()
    tasks("grpc://127.0.0.1:3001").says = errors.UnimplementedError(None, None, "TensorFlow's")
    found = (await api.get(cluster)).json()
    held.set()

    assert found["silent"] == [PS]
    assert (found["kind"], found["task"]) == ("silent", PS)


async def test_a_session_is_told_of_its_own_waits(api: httpx.AsyncClient, cluster: str, tasks: Tasks) -> None:
    session = (await api.post("/v1/sessions", json={"cluster": "default"})).json()["name"]
    says = tasks("grpc://127.0.0.1:3000").says = waiting()
    assert isinstance(says, TaskAnswer)
    says.wait.add(kind="elements", node="mine", op="Dequeue", resource="q", need=1, session="0000000000000001")
    found = (await api.get(f"/v1/sessions/{session}:why")).json()

    assert (found["of"], found["name"]) == ("session", session)
    assert [wait["node"] for each in found["tasks"] for wait in each["waits"]] == ["mine"]


@pytest.fixture
async def guarded(sqlite: str, tasks: Tasks, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A service with callers of several roles."""
    (tmp_path / "tokens").write_text(f"{ADMIN}\n{OWNER} role=run name=owner\n{READER} role=read name=reader")
    settings = Settings(database=sqlite, token_file=str(tmp_path / "tokens"))
    app = create_app(settings, tasks)
    async with running_app(app, headers={"Authorization": f"Bearer {ADMIN}"}) as client:
        yield client


async def test_of_other_callers_sessions_a_cluster_tells_that_they_wait(
    guarded: httpx.AsyncClient, tasks: Tasks
) -> None:
    await declare(guarded, ps=1)
    await register(guarded, "ps", 0, "127.0.0.1:3000")
    own = {"Authorization": f"Bearer {OWNER}"}
    assert (await guarded.post("/v1/sessions", json={"cluster": "default"}, headers=own)).is_success
    says = TaskAnswer(task=PS)
    for session, name in (("0000000000000001", "mine"), ("other", "secret")):
        says.wait.add(kind="elements", node=name, op="Dequeue", resource=f"{name}_q", need=1, session=session)
    frame = StackFrame(file="secret.py", line=1, function="f")
    says.thread.append(ThreadStack(name="main", main=True, frame=[frame]))
    tasks("grpc://127.0.0.1:3000").says = says

    texts = {}
    for token in (ADMIN, OWNER, READER):
        answer = await guarded.get("/v1/clusters/default:why", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200, answer.text
        texts[token] = answer.text

    assert "secret.py" in texts[ADMIN]
    assert "mine_q" in texts[OWNER]
    assert "secret" not in texts[OWNER] + texts[READER]
    assert "mine" not in texts[READER]
    assert texts[READER].count("another caller's") >= 2


async def test_an_answer_comes_from_who_may_register(guarded: httpx.AsyncClient) -> None:
    path = "/v1/runs/run-1/why/why-1/tasks/worker/0"
    for token, status in ((READER, 403), (OWNER, 403), (ADMIN, 404)):
        headers = {**PROTOBUF, "Authorization": f"Bearer {token}"}
        assert (await guarded.put(path, content=b"", headers=headers)).status_code == status
    wrong = await guarded.put(path, json={})
    assert wrong.status_code == 415
