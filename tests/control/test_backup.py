"""`tenfold backup` and `tenfold restore`: from each kind of database into each, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from tenfold.cli.main import cli
from tenfold_control_api import backup
from tenfold_control_api.app import create_app
from tenfold_control_api.backup import BackupError, restore, write_backup
from tenfold_control_api.database import DatabaseError
from tenfold_control_api.schema import SCHEMA_VERSION
from tenfold_control_api.service_settings import Settings

from .conftest import Masters, declare, register, running_app
from .test_migrations import fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

    from support.postgres import PostgresServer

RUN = {"entrypoint": ["python", "t.py"], "jobs": {"worker": 1}, "launcher": "external", "submission_id": "once"}


@pytest.fixture
def database(empty_database: str) -> str:
    return empty_database


@pytest.fixture(params=["sqlite", "postgres"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A second empty database."""
    if request.param == "sqlite":
        yield str(tmp_path / "other.db")
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database() as url:
        yield url


async def use(api: httpx.AsyncClient) -> dict[str, Any]:
    """Leaves something in every table that a backup holds; what the service then shows."""
    await declare(api, ps=1, worker=2)
    lease = (await register(api, "ps", 0))["lease"]["id"]
    await api.post("/v1/sessions", json={"cluster": "default"}, headers={"Idempotency-Key": "k"})
    source = {"commit": "abcd1234", "branch": "main", "dirty": True, "diff": "-a\n+b\n", "diff_truncated": False}
    run = (await api.post("/v1/runs", json=RUN)).json()["name"]
    report = {"recorded": {"source": source}, "steps": 3, "points": [{"time": 1.0, "step": 3, "values": {"loss": 0.1}}]}
    await api.post(f"/v1/runs/{run}/tasks/worker/0:report", json=report)
    await api.get("/v1/events", params={"after": 3, "wait": "20s"})
    program = {name: RUN[name] for name in ("entrypoint", "jobs")}
    await api.post("/v1/sweeps", json={"name": "s", "parameters": {"lr": {"values": [1]}}, "program": program})
    return {"lease": lease, "run": run, **await shown(api)}


async def shown(api: httpx.AsyncClient) -> dict[str, Any]:
    cluster = (await api.get("/v1/clusters/default")).json()
    runs = (await api.get("/v1/runs")).json()
    sessions = (await api.get("/v1/sessions")).json()["sessions"]
    sweeps = (await api.get("/v1/sweeps")).json()
    return {"cluster": cluster, "runs": runs, "sweeps": sweeps, "sessions": [each["name"] for each in sessions]}


def rows(file: Path) -> dict[str, list[Any]]:
    """What a backup holds, but for the clock, which goes on."""
    with zipfile.ZipFile(file) as package:
        found = {name: package.read(name).decode().splitlines() for name in package.namelist()}
    assert found.pop("manifest.json")
    return {
        name: [json.loads(line) for line in lines if "service_seconds" not in line] for name, lines in found.items()
    }


async def test_what_is_restored_is_what_was_there(database: str, other: str, tmp_path: Path) -> None:
    files = tmp_path / "first.zip", tmp_path / "second.zip"
    async with running_app(create_app(Settings(database=database, allow_runs=True), Masters())) as api:
        before = await use(api)
    written = await asyncio.to_thread(write_backup, database, str(files[0]))
    restored = await asyncio.to_thread(restore, other, str(files[0]))
    await asyncio.to_thread(write_backup, other, str(files[1]))

    async with running_app(create_app(Settings(database=other), Masters())) as api:
        after = await shown(api)
        renewed = await api.post(f"/v1/leases/{before['lease']}:renew")
        again = await api.post("/v1/runs", json=RUN)
        replayed = await api.post("/v1/sessions", json={"cluster": "default"}, headers={"Idempotency-Key": "k"})
        progress = (await api.get(f"/v1/runs/{before['run']}/progress")).json()["tasks"]
        last = written.last_event
        await api.put("/v1/clusters/new", json={"jobs": {"ps": 1}})
        events = (await api.get("/v1/events", params={"after": last, "wait": "20s"})).json()["events"]

    assert written == restored
    assert rows(files[0]) == rows(files[1])
    assert min(len(kept) for name, kept in rows(files[0]).items()) >= 1
    assert files[0].stat().st_mode & 0o777 == 0o600
    assert after == {name: before[name] for name in after}
    assert (renewed.status_code, again.status_code, replayed.headers["Idempotency-Replayed"]) == (200, 200, "true")
    assert progress[0]["curves"]["loss"]["values"] == [0.1]
    assert [event["id"] for event in events] == [last + 1]


async def test_a_backup_while_the_service_works(database: str, tmp_path: Path) -> None:
    file = tmp_path / "b.zip"
    async with running_app(create_app(Settings(database=database), Masters())) as api:
        for number in range(3):
            await api.put(f"/v1/clusters/c{number}", json={"jobs": {"ps": number + 1}})
        declaring = asyncio.gather(*(api.put(f"/v1/clusters/d{n}", json={"jobs": {"ps": 1}}) for n in range(20)))
        await asyncio.to_thread(write_backup, database, str(file))
        await declaring

    names = {row["name"] for row in rows(file)["tenfold_clusters.jsonl"]}
    assert {"c0", "c1", "c2"} <= names
    # of one moment: a cluster is there with its tasks or not at all
    assert {row["cluster"] for row in rows(file)["tenfold_tasks.jsonl"]} == names


@pytest.mark.parametrize("version", [1, 5])
async def test_the_backup_of_an_older_version_is_brought_up_to_date(
    request: pytest.FixtureRequest, database: str, other: str, version: int, tmp_path: Path
) -> None:
    fill(request, database, f"v{version}")
    file = str(tmp_path / "b.zip")

    written = await asyncio.to_thread(write_backup, database, file)
    await asyncio.to_thread(restore, other, file)
    async with running_app(create_app(Settings(database=other), Masters())) as api:
        cluster = (await api.get("/v1/clusters/default")).json()
        await declare(api, ps=1, worker=2)
        after = {"after": written.last_event, "wait": "20s"}
        events = (await api.get("/v1/events", params=after)).json()["events"]

    assert written.schema_version == version
    assert (cluster["version"], cluster["stop_with_workers"]) == (3, version == 5)
    assert events[0]["id"] == written.last_event + 1


async def test_nothing_is_lost_without_force(database: str, tmp_path: Path) -> None:
    file = str(tmp_path / "b.zip")
    async with running_app(create_app(Settings(database=database), Masters())) as api:
        await api.put("/v1/clusters/first", json={"jobs": {"ps": 1}})
    await asyncio.to_thread(write_backup, database, file)
    async with running_app(create_app(Settings(database=database), Masters())) as api:
        await api.put("/v1/clusters/second", json={"jobs": {"ps": 1}})
        with pytest.raises((BackupError, DatabaseError), match="control service"):
            await asyncio.to_thread(restore, database, file, force=True)

    with pytest.raises(BackupError, match=r"is not empty \(there is something in .*tenfold_clusters"):
        await asyncio.to_thread(restore, database, file)
    await asyncio.to_thread(restore, database, file, force=True)
    async with running_app(create_app(Settings(database=database), Masters())) as api:
        clusters = (await api.get("/v1/clusters")).json()["clusters"]

    assert [cluster["name"] for cluster in clusters] == ["first"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": "tar"}, "its format is 'tar'"),
        ({"schema_version": SCHEMA_VERSION + 1}, f"of version {SCHEMA_VERSION + 1}.*Restore it with the newer one"),
        ({"format_version": 2}, "in form 2"),
        ({"rows": None}, "manifest.json is not that of a backup"),
        ({"rows": {"tenfold_meta": 2}}, "its tables are not those of version"),
        ("fewer rows", "tenfold_clusters has 1 of 2 rows"),
        ("no json", "a row of tenfold_clusters cannot be read"),
        ("cut off", "not a whole backup"),
    ],
)
async def test_a_file_that_is_no_backup_changes_nothing(
    database: str, change: dict[str, Any] | str, why: str, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.zip", tmp_path / "bad.zip"
    async with running_app(create_app(Settings(database=database), Masters())) as api:
        for name in ("one", "two"):
            await api.put(f"/v1/clusters/{name}", json={"jobs": {"ps": 1}})
    await asyncio.to_thread(write_backup, database, str(good))
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(bad, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "manifest.json" and isinstance(change, dict):
                content = json.dumps({**json.loads(content), **change}).encode()
            if name == "tenfold_clusters.jsonl" and change == "fewer rows":
                content = content.splitlines(keepends=True)[0]
            if name == "tenfold_clusters.jsonl" and change == "no json":
                content = b"{\n" + content
            target.writestr(name, content)
    if change == "cut off":
        bad.write_bytes(good.read_bytes()[:-100])

    with pytest.raises(BackupError, match=why):
        await asyncio.to_thread(restore, database, str(bad), force=True)
    async with running_app(create_app(Settings(database=database), Masters())) as api:
        assert len((await api.get("/v1/clusters")).json()["clusters"]) == 2


async def test_a_backup_that_fails_leaves_the_one_before(
    sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "b.zip"
    async with running_app(create_app(Settings(database=sqlite), Masters())) as api:
        await declare(api, ps=1)
    await asyncio.to_thread(write_backup, sqlite, str(file))
    before = file.read_bytes()

    def fail(_: object) -> int:
        raise OSError("disk full")

    monkeypatch.setattr(backup, "last_given", fail)
    with pytest.raises(BackupError, match=r"b\.zip; disk full"):
        await asyncio.to_thread(write_backup, sqlite, str(file))

    assert file.read_bytes() == before
    assert [name for name in sorted(os.listdir(tmp_path)) if name.startswith("b.zip")] == ["b.zip"]


def tenfold(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_the_commands(sqlite: str, tmp_path: Path) -> None:
    file, other = str(tmp_path / "b.zip"), str(tmp_path / "other.db")

    async def serve() -> None:
        async with running_app(create_app(Settings(database=sqlite), Masters())) as api:
            await declare(api, ps=1)

    asyncio.run(serve())
    results = [
        tenfold("backup", file, "--database", sqlite),
        tenfold("restore", file, "--database", other),
        tenfold("restore", file, "--database", other),
        tenfold("restore", file, "--database", other, "--force"),
        tenfold("backup", file, "--database", str(tmp_path / "none.db")),
        tenfold("backup", str(tmp_path / "no" / "b.zip"), "--database", sqlite),
    ]

    assert [result.exit_code for result in results] == [0, 0, 1, 0, 1, 1], [result.output for result in results]
    assert f"b.zip: 5 rows of 12 tables, schema version {SCHEMA_VERSION}" in results[0].output
    assert results[1].output == f"restored 5 rows of 12 tables, schema version {SCHEMA_VERSION}\n"
    assert "add --force to lose what it holds" in results[2].output
    assert "none.db' cannot be used: there is no such file" in results[4].output
    assert "No such file or directory" in results[5].output
