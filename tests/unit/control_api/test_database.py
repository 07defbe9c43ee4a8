"""Which database a URL means, how it is shown, and that a file has one service at a time."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from support.small_database import small_database
from tenfold_control_api import database as module
from tenfold_control_api.database import (
    DatabaseAwayError,
    DatabaseError,
    FileLock,
    check_file,
    database_url,
    first_row,
    open_engine,
    open_schema,
    shown,
)
from tenfold_control_api.schema import meta

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("control.db", "sqlite+aiosqlite:///control.db"),
        ("/var/control.db", "sqlite+aiosqlite:////var/control.db"),
        ("sqlite:///control.db", "sqlite+aiosqlite:///control.db"),
        ("sqlite+pysqlite:////var/control.db", "sqlite+aiosqlite:////var/control.db"),
        ("postgresql://ann@host/name?ssl=require", "postgresql+asyncpg://ann@host/name?ssl=require"),
    ],
)
def test_a_url_gets_a_driver_that_does_not_block(given: str, url: str) -> None:
    assert database_url(given).render_as_string() == url


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "it is in memory and would be lost with the process; name a file, as in sqlite:///control.db."),
        (":memory:", "it is in memory"),
        ("sqlite://", "it is in memory"),
        ("sqlite:///:memory:", "it is in memory"),
        ("sqlite://host/control.db", "a file has no host; write three slashes after sqlite:, as in sqlite:///control."),
        ("sqlite://ann@/control.db", "a file has no host"),
        ("sqlite:///control.db?mode=ro", "options of an SQLite URL are not supported; name the file alone, as in"),
        ("file:control.db", "options of an SQLite URL are not supported"),
        ("con\0trol.db", "a file's name has no null character."),
        ("mysql://host/name", "database 'mysql' is not supported. Use sqlite:///FILE, or postgresql://USER@HOST/NAME"),
        (
            "postgresql://host:port/name",
            "it is not a database URL; use sqlite:///FILE, or postgresql://USER@HOST/NAME.",
        ),
        ("://", "it is not a database URL"),
    ],
)
def test_what_cannot_be_used_says_why(given: str, words: str) -> None:
    with pytest.raises(DatabaseError) as raised:
        database_url(given)
    assert str(raised.value).startswith(words)


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("control.db", "control.db"),
        ("sqlite:///control.db", "sqlite:///control.db"),
        ("postgresql://ann@host/name", "postgresql://ann@host/name"),
        ("postgresql://ann:secret@host/name", "postgresql://ann:***@host/name"),
        ("postgresql://host/name?password=secret&ssl=on", "postgresql://host/name?ssl=on"),
        ("postgresql://ann:secret@host:port/name", "postgresql://…@host:port/name"),
        ("postgresql://host:port/name", "postgresql://host:port/name"),
    ],
)
def test_no_password_is_shown(given: str, safe: str) -> None:
    assert shown(given) == safe


def test_a_file_is_made_private_and_has_one_service(tmp_path: Path) -> None:
    name = str(tmp_path / "control.db")
    lock = FileLock(name)
    lock.acquire()
    assert stat.S_IMODE(os.stat(name).st_mode) == 0o600
    with pytest.raises(DatabaseError) as raised:
        FileLock(name).acquire()
    assert str(raised.value).startswith(f"another control service (process {os.getpid()}) uses this database ({name}")

    lock.release()
    lock.release()
    again = FileLock(name)
    again.acquire()
    again.release()


def test_its_folder_is_made_private_too_and_a_folder_is_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    lock = FileLock(str(folder / "control.db"))
    lock.acquire()
    lock.release()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with pytest.raises(DatabaseError, match=r"^it is a folder; name a file in it\.$"):
        FileLock(str(folder)).acquire()


def test_the_rights_of_others_are_taken_away_and_ours_stay(tmp_path: Path) -> None:
    file = tmp_path / "control.db"
    file.touch()
    file.chmod(0o764)
    lock = FileLock(str(file))
    lock.acquire()
    lock.release()
    assert stat.S_IMODE(file.stat().st_mode) == 0o700


def test_a_file_that_is_no_database_is_refused_and_free_for_another(tmp_path: Path) -> None:
    file = tmp_path / "control.db"
    file.write_text("this is not a database, " * 100)
    for _ in range(2):
        with pytest.raises(DatabaseError, match="file is not a database"):
            FileLock(str(file)).acquire()
    with pytest.raises(DatabaseError):
        check_file(str(tmp_path / "no" / "control.db"))


def test_a_file_that_is_being_written_elsewhere_is_no_fault_of_its_own(tmp_path: Path) -> None:
    name = str(tmp_path / "control.db")
    check_file(name)
    with sqlite3.connect(name) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


async def test_a_commit_is_on_the_disk_and_what_is_referred_to_exists(tmp_path: Path) -> None:
    names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    async with small_database(tmp_path) as engine, engine.connect() as db:
        found = [(await db.execute(text(f"PRAGMA {name}"))).scalar() for name in names]
    assert found == ["wal", 2, 1, 5000]


async def test_a_transaction_is_committed_or_nothing_is_written(tmp_path: Path) -> None:
    async with small_database(tmp_path) as engine:
        async with engine.begin() as db:
            await db.execute(meta.insert().values(key="a", value="1"))

        async def write(key: str, error: Exception | None = None) -> None:
            async with engine.begin() as db:
                await db.execute(meta.insert().values(key=key, value="2"))
                if error is not None:
                    raise error

        with pytest.raises(KeyError):
            await write("b", KeyError("no error of the database"))
        with pytest.raises(IntegrityError):
            await write("a")
        row = await first_row(engine, meta.select().order_by(meta.c.key))
        assert row is not None
        assert dict(row) == {"key": "a", "value": "1"}
        assert await first_row(engine, meta.select().where(meta.c.key == "b")) is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError("refused"), "refused"),
        (TimeoutError(), "TimeoutError"),
        (EOFError("gone"), "gone"),
        (sqlite3.OperationalError("locked"), "locked"),
    ],
)
async def test_what_a_driver_or_the_system_raises_is_an_error_of_the_database(
    tmp_path: Path, error: Exception, words: str
) -> None:
    async with small_database(tmp_path) as engine:
        with pytest.raises(DatabaseAwayError) as raised:
            async with engine.connect():
                raise error
    assert (str(raised.value), raised.value.orig) == (words, error)
    assert isinstance(raised.value, SQLAlchemyError)


async def test_a_schema_is_made_once_and_errors_are_said_as_the_databases(tmp_path: Path) -> None:
    engine = open_engine(database_url(str(tmp_path / "control.db")))
    try:
        await open_schema(engine)
        await open_schema(engine)
        async with engine.begin() as db:
            tables = [row[0] for row in await db.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'"))]
    finally:
        await engine.dispose()
    assert {table.name for table in meta.metadata.sorted_tables} <= set(tables)

    class Broken:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def connect(self) -> Any:
            raise self.error

    for error, words in (
        (DatabaseError("as it is"), "as it is"),
        (ValueError("a bad option"), "a bad option."),
        (ValueError(), "ValueError."),
        (IntegrityError("statement", {}, Exception("of the driver")), "of the driver."),
    ):
        with pytest.raises(DatabaseError) as raised:
            await open_schema(cast("Any", Broken(error)))
        assert str(raised.value) == words


def test_servers_get_several_connections_with_times(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def create(_: Any, **given: Any) -> Any:
        made.append(given)
        return SimpleNamespace(sync_engine="the engine")

    monkeypatch.setattr(module, "create_async_engine", create)
    monkeypatch.setattr(module, "Database", lambda engine: engine)
    url = database_url("postgresql://host/name")

    assert [open_engine(url), open_engine(url, patient=True)] == ["the engine"] * 2

    same = {"pool_pre_ping": True, "pool_size": 8, "max_overflow": 8, "pool_timeout": 10}
    who = {"server_settings": {"application_name": "tenfold-control"}, "timeout": 5.0}
    assert made == [{**same, "connect_args": {**who, "command_timeout": 20.0}}, {**same, "connect_args": who}]


def test_a_driver_that_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> Any:
        raise ImportError("no asyncpg")

    monkeypatch.setattr(module, "create_async_engine", missing)
    with pytest.raises(DatabaseError) as raised:
        open_engine(database_url("postgresql://host/name"))
    assert str(raised.value) == "its driver is missing: pip install 'tenfold[postgres]' (no asyncpg)."


class SlowConnection:
    """A connection that is made once the test says so."""

    def __init__(self) -> None:
        self.asked, self.made, self.closed = asyncio.Event(), asyncio.Event(), 0

    async def __aenter__(self) -> SlowConnection:
        self.asked.set()
        await self.made.wait()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        self.closed += 1


async def test_a_caller_cancelled_while_it_connects_leaves_no_connection(tmp_path: Path) -> None:
    connection, engine = SlowConnection(), open_engine(database_url(str(tmp_path / "d.db")))
    used: list[int] = []

    async def use() -> None:
        async with engine._block(cast("Any", connection)):
            used.append(connection.closed)

    cancelled = asyncio.create_task(use())
    await connection.asked.wait()
    cancelled.cancel()
    await asyncio.sleep(0)
    connection.made.set()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert (connection.closed, used) == (1, [])

    await use()
    assert (connection.closed, used) == (2, [1])


@pytest.mark.parametrize("method", ["__aenter__", "close"])
async def test_its_end_waits_for_the_connections_of_cancelled_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    engine = open_engine(database_url(str(tmp_path / "d.db")))
    there, begun, go_on = [0], asyncio.Event(), asyncio.Event()
    as_ever = getattr(AsyncConnection, method)

    def count(name: str, change: int) -> None:
        event.listen(engine.sync_engine, name, lambda *_: there.append(there[-1] + change))

    async def slow(connection: AsyncConnection) -> Any:
        begun.set()
        await go_on.wait()
        return await as_ever(connection)

    async def call() -> None:
        async with engine.connect() as db:
            await db.execute(text("SELECT 1"))

    count("connect", 1)
    count("close", -1)
    monkeypatch.setattr(AsyncConnection, method, slow)
    caller = asyncio.create_task(call())
    await begun.wait()
    # twice, as by a deadline and by who stops the service
    for _ in range(2):
        caller.cancel()
        await asyncio.sleep(0)
    end = asyncio.create_task(engine.dispose())
    with pytest.raises(asyncio.CancelledError):
        await caller
    await asyncio.sleep(0)
    assert not end.done()
    go_on.set()
    await end
    assert (max(there), there[-1]) == (1, 0)


async def test_its_end_waits_for_the_connection_that_is_in_use(tmp_path: Path) -> None:
    engine = open_engine(database_url(str(tmp_path / "d.db")))
    there, begun, go_on = [0], asyncio.Event(), asyncio.Event()
    event.listen(engine.sync_engine, "connect", lambda *_: there.append(there[-1] + 1))
    event.listen(engine.sync_engine, "close", lambda *_: there.append(there[-1] - 1))

    async def call() -> None:
        async with engine.connect() as db:
            begun.set()
            await go_on.wait()
            await db.execute(text("SELECT 1"))

    caller = asyncio.create_task(call())
    await begun.wait()
    end = asyncio.create_task(engine.dispose())
    for _ in range(3):
        await asyncio.sleep(0)
    assert not end.done()
    go_on.set()
    await caller
    await end
    assert (max(there), there[-1]) == (1, 0)


async def test_a_statement_that_is_cancelled_twice_leaves_nothing_under_way(tmp_path: Path) -> None:
    """As by who ends a loop of the service, and again half a second later, while a file's last connection closes."""
    engine, begun, go_on = open_engine(database_url(str(tmp_path / "d.db"))), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        go_on.wait(10)

    async def call() -> None:
        async with engine.connect() as db:
            driver: Any = (await db.get_raw_connection()).driver_connection
            await driver.create_function("wait", 0, wait)
            await db.execute(text("SELECT wait()"))

    caller = asyncio.create_task(call())
    assert await asyncio.to_thread(begun.wait, 10)
    for _ in range(2):
        caller.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await engine.dispose()

    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left or not (await asyncio.wait(left, timeout=5))[1], left
