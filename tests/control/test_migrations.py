"""Databases of older versions are brought up to date, newer ones refused; starts at once, starts that are cut off.

databases/ has dumps that services of versions 1 and 5 left, which knew nothing of alembic.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from tenfold_control_api.app import create_app
from tenfold_control_api.database import DatabaseError
from tenfold_control_api.migrations import run
from tenfold_control_api.migrations.versions import v2_stop_with_workers, v5_events, v12_newest
from tenfold_control_api.runs.progress_table import ProgressTable
from tenfold_control_api.schema import SCHEMA_VERSION, metadata
from tenfold_control_api.service_settings import Settings
from tenfold_control_api.store import ControlStore

from .conftest import Masters, declare, running_app

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from support.postgres import PostgresServer

DUMPS = Path(__file__).parent / "databases"


@pytest.fixture
def database(empty_database: str) -> str:
    return empty_database


def fill(request: pytest.FixtureRequest, database: str, dump: str) -> None:
    """Runs SQL in the empty database: the name of a dump, without its kind, or statements."""
    kind = "postgres" if "://" in database else "sqlite"
    script = (DUMPS / f"{dump}.{kind}.sql").read_text(encoding="utf-8") if dump[1:].isdecimal() else dump
    if kind == "sqlite":
        with contextlib.closing(sqlite3.connect(database)) as db:
            db.executescript(script)
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        server.sql(script, database.partition("@/")[2].partition("?")[0])


async def ask(database: str, query: str) -> Any:
    """The first value that the query gives; of an open service's store or of the database itself."""
    store = ControlStore(database)
    async with store.engine.connect() as db:
        value = await db.scalar(text(query))
    await store.engine.dispose()
    return value


async def versions(database: str) -> tuple[str, str]:
    """The version as alembic and as services from before it read it."""
    query = "SELECT value FROM tenfold_meta WHERE key = 'schema_version'"
    return await ask(database, "SELECT version_num FROM tenfold_version"), await ask(database, query)


@pytest.mark.parametrize("version", [1, 5])
async def test_a_database_from_before_is_brought_up_to_date(
    request: pytest.FixtureRequest, database: str, version: int
) -> None:
    fill(request, database, f"v{version}")

    async with running_app(create_app(Settings(database=database), Masters())) as api:
        cluster = (await api.get("/v1/clusters/default")).json()
        renewed = await api.post("/v1/leases/lease-1:renew")
        ended = await api.post("/v1/leases/lease-2:renew")
        session = (await api.get("/v1/sessions/5e55")).json()
        runs = (await api.get("/v1/runs")).json()["runs"]
        await declare(api, ps=1, worker=2)
        events = (await api.get("/v1/events", params={"after": int(version == 5), "wait": "20s"})).json()["events"]

    assert await versions(database) == (str(SCHEMA_VERSION), str(SCHEMA_VERSION))
    assert (cluster["version"], cluster["stop_with_workers"]) == (3, version == 5)
    assert (renewed.status_code, ended.status_code, ended.json()["outcome"]) == (200, 410, "finished")
    assert session["master"] == "/job:ps/replica:0/task:0"
    assert [run["state"] for run in runs] == ([] if version == 1 else ["SUCCEEDED"])
    # the number of the event that was deleted is not given again
    assert events[0]["id"] == (1 if version == 1 else 3)


async def test_the_steps_make_what_is_declared(database: str) -> None:
    def differences(db: Connection) -> list[Any]:
        options = {"compare_type": True, "compare_server_default": True, "version_table": run.VERSION_TABLE}
        found: list[Any] = compare_metadata(MigrationContext.configure(db, opts=options), metadata)
        return found

    store = ControlStore(database)
    await store.open()
    async with store.engine.connect() as db:
        found = await db.run_sync(differences)
    await store.close()

    assert found == []
    assert run._scripts().get_current_head() == str(SCHEMA_VERSION)


@pytest.mark.parametrize("version", [0, 1])
async def test_of_services_that_start_at_once_one_makes_the_step(
    request: pytest.FixtureRequest, postgres: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(request, postgres, f"v{version}" if version else "")
    made: list[int] = []
    upgrade = v5_events.upgrade
    monkeypatch.setattr(run._scripts().get_revision("5").module, "upgrade", lambda op: (made.append(1), upgrade(op)))
    stores = [ControlStore(postgres) for _ in range(4)]

    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(store.close() for store in stores))

    assert made == [1]
    assert await versions(postgres) == (str(SCHEMA_VERSION), str(SCHEMA_VERSION))


@pytest.mark.parametrize("since_alembic", [True, False])
async def test_a_newer_database_is_refused(request: pytest.FixtureRequest, database: str, since_alembic: bool) -> None:
    if since_alembic:
        store = ControlStore(database)
        await store.open()
        await store.close()
        fill(request, database, "UPDATE tenfold_version SET version_num = '99'")
    else:
        fill(request, database, "v5")
        fill(request, database, "UPDATE tenfold_meta SET value = '99' WHERE key = 'schema_version'")

    why = f"its tables have version 99; this control service knows them up to version {SCHEMA_VERSION}"
    with pytest.raises(DatabaseError, match=why):
        await ControlStore(database).open()


async def test_a_step_that_fails_leaves_the_version_before(
    request: pytest.FixtureRequest, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(request, database, "v1")

    def fail(op: Any) -> None:
        v2_stop_with_workers.upgrade(op)
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(run._scripts().get_revision("2").module, "upgrade", fail)
        with pytest.raises(DatabaseError, match="disk full"):
            await ControlStore(database).open()
    before = await ask(database, "SELECT value FROM tenfold_meta")
    store = ControlStore(database)
    await store.open()
    await store.close()

    assert before == "1"
    assert (await versions(database))[0] == str(SCHEMA_VERSION)


async def test_the_newest_values_are_taken_out_of_the_curves(
    request: pytest.FixtureRequest, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows that a service of version 11 wrote, and of those that have no newest values yet."""
    monkeypatch.setattr(v12_newest, "_ROWS", 2)
    store = ControlStore(database)
    async with store.engine.begin() as db:
        await db.run_sync(run.upgrade, 11)
    await store.engine.dispose()
    for index, newest in enumerate(("'{}'", "NULL", "'{}'")):
        curve = {"points": [[1.0, 1, 2.0]], "stride": 1, "skipped": 0, "last": [2.0, index, 0.5 + index]}
        body = {"updated": 7.0, "steps": 3, "global_step": index, "curves": {"loss": curve}}
        body |= {"steps_per_second": None, "checkpoints": [{"time": 1.0, "path": "a"}, {"time": 2.0, "path": "b"}]}
        row = f"'r', 'worker', {index}, '{json.dumps(body)}', {newest}"
        fill(request, database, f"INSERT INTO tenfold_progress VALUES ({row})")

    await store.open()
    found = (await ProgressTable(store.engine).newest_of(["r"]))["r"]
    await store.close()

    assert [(task.index, task.updated, task.steps, task.global_step) for task in found] == [
        (index, 7.0, 3, index) for index in range(3)
    ]
    assert [task.curves["loss"].last for task in found] == [(2.0, index, 0.5 + index) for index in range(3)]
    assert [task.checkpoints for task in found] == [[{"time": 2.0, "path": "b"}]] * 3


async def test_a_first_start_that_was_cut_off_is_begun_again(request: pytest.FixtureRequest, database: str) -> None:
    fill(request, database, "v1")
    for name in ("answers", "sessions", "leases", "tasks", "clusters", "meta"):
        fill(request, database, f"DELETE FROM tenfold_{name}")

    store = ControlStore(database)
    await store.open()
    await store.close()

    assert await versions(database) == (str(SCHEMA_VERSION), str(SCHEMA_VERSION))


async def test_a_table_of_somebody_else_is_left_alone(request: pytest.FixtureRequest, database: str) -> None:
    fill(request, database, "CREATE TABLE tenfold_runs (x INTEGER)")
    fill(request, database, "INSERT INTO tenfold_runs VALUES (1)")

    with pytest.raises(DatabaseError, match="there is a table tenfold_runs that no version 0 of it has"):
        await ControlStore(database).open()
    assert await ask(database, "SELECT x FROM tenfold_runs") == 1
