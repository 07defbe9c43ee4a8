"""Opens the database: which engine a URL means, durability settings, one process per SQLite file, the schema's version.

Called by store.py. SQLite runs in WAL mode with synchronous=FULL, so a commit is on the disk when it returns. SQLite's
single writer is one pooled connection; a lock file keeps a second control service off the same file. PostgreSQL may be
shared.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.util.concurrency import in_greenlet

from tenfold_control_api.migrations import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from sqlalchemy import Engine, RowMapping, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

T = TypeVar("T")

#: As what PostgreSQL shows our connections.
APPLICATION = "tenfold-control"
#: Modules of the drivers, and of what stands between one of them and SQLAlchemy.
_DRIVERS = ("asyncpg", "aiosqlite", "sqlite3")
_WHAT_WOULD_DO = "use sqlite:///FILE, or postgresql://USER@HOST/NAME"


#: Seconds for a connection to a server, and for the answer to a statement: a server that hangs is one that is away.
_CONNECT_S, STATEMENT_S = 5.0, 20.0
#: Values of one IN: SQLite takes 32,766 variables, old ones 999.
_VALUES = 900


class DatabaseError(Exception):
    """The database cannot be used; the message says why and what to do."""


class DatabaseAwayError(SQLAlchemyError):
    """The database did not do its part, in words of its driver or of the system. SQLAlchemy passes on what a driver
    raises as it connects, and what is no error of the driver's (a refused connection, a time-out)."""

    def __init__(self, orig: BaseException) -> None:
        super().__init__(f"{orig}" or type(orig).__name__)
        self.orig = orig


class Database(AsyncEngine):
    """An engine whose every error, of whatever kind, is a SQLAlchemyError. All access goes through `begin` and
    `connect`, within whose blocks nothing else is done."""

    def __init__(self, sync_engine: Engine) -> None:
        super().__init__(sync_engine)
        #: What takes a connection from the pool, uses it, or gives it back, whatever becomes of its caller.
        self._under_way: set[asyncio.Future[Any]] = set()

    def connect(self) -> AbstractAsyncContextManager[AsyncConnection]:  # type: ignore[override]
        """As the engine's, for `async with` alone."""
        return self._block(super().connect())

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """The same, in a transaction that is committed at the end."""
        async with self.connect() as db, db.begin():
            yield db

    async def dispose(self, close: bool = True) -> None:
        """As the engine's, once all connections are back, those of cancelled callers too: one that came later would
        belong to nobody. Bounded by the bounds of connections and statements. Not within a block."""
        while self._under_way:
            await asyncio.wait(self._under_way)
        await super().dispose(close)

    @contextlib.asynccontextmanager
    async def _block(self, opened: AsyncConnection) -> AsyncIterator[AsyncConnection]:
        try:
            db = await self._entered(opened)
            used = self._begun(asyncio.get_running_loop().create_future())
            try:
                yield db
            finally:
                closing = self._begun(opened.close())
                used.set_result(None)
                await asyncio.shield(closing)
        except SQLAlchemyError:
            raise
        except Exception as error:
            if isinstance(error, OSError | EOFError) or type(error).__module__.partition(".")[0] in _DRIVERS:
                raise DatabaseAwayError(error) from error
            raise

    async def _entered(self, opened: AsyncConnection) -> AsyncConnection:
        """The connection, taken from the pool. One whose caller is cancelled meanwhile is given back: a connection that
        is half made would belong to nobody, and stay open until it is collected."""
        entering = self._begun(opened.__aenter__())
        try:
            return await asyncio.shield(entering)
        except asyncio.CancelledError:
            await asyncio.shield(self._begun(_given_back(entering, opened)))
            raise

    def _begun(self, work: Awaitable[T]) -> asyncio.Future[T]:
        begun = asyncio.ensure_future(work)
        self._under_way.add(begun)
        begun.add_done_callback(self._ended)
        return begun

    def _ended(self, done: asyncio.Future[Any]) -> None:
        self._under_way.discard(done)
        if not done.cancelled():
            done.exception()  # read, so that asyncio does not log that of a caller who has gone


async def _given_back(entering: Awaitable[object], opened: AsyncConnection) -> None:
    with contextlib.suppress(Exception):
        await entering
        await opened.close()


def database_url(database: str) -> URL:
    """A SQLAlchemy URL with an async driver, from a URL, a DSN or a file name.

    Raises DatabaseError for another kind, and for one in memory: the service's answers must survive its restart.
    """
    if "://" not in database:
        return _file_url(URL.create("sqlite+aiosqlite", database=database))
    try:
        url = make_url(database)
    except (ArgumentError, ValueError):
        raise DatabaseError(f"it is not a database URL; {_WHAT_WOULD_DO}.") from None
    match url.get_backend_name():
        case "sqlite":
            return _file_url(url.set(drivername="sqlite+aiosqlite"))
        case "postgresql" | "postgres":
            return url.set(drivername="postgresql+asyncpg")
        case other:
            raise DatabaseError(
                f"database {other!r} is not supported. Use sqlite:///FILE, or postgresql://USER@HOST/NAME when several "
                "control services share it."
            )


def _file_url(url: URL) -> URL:
    """`url`, if it names an SQLite file plainly, so that the lock beside the file is the file's."""
    name = url.database or ""
    if name in ("", ":memory:"):
        raise DatabaseError(
            "it is in memory and would be lost with the process; name a file, as in sqlite:///control.db."
        )
    if url.host or url.username or url.port:
        raise DatabaseError(f"a file has no host; write three slashes after sqlite:, as in sqlite:///{name}.")
    if url.query or name.startswith("file:"):
        raise DatabaseError("options of an SQLite URL are not supported; name the file alone, as in sqlite:///FILE.")
    if "\0" in name:
        raise DatabaseError("a file's name has no null character.")
    return url


def shown(database: str) -> str:
    """`database` as messages may show it: without a password."""
    try:
        url = make_url(database) if "://" in database else None
        if url is None:
            return database
        secret = [key for key in url.query if "password" in key]
        if url.password is None and not secret:
            return database
        return url.difference_update_query(secret).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        scheme, _, rest = database.partition("://")
        return f"{scheme}://…@{rest.rpartition('@')[2]}" if "@" in rest else database


def check_file(database: str) -> None:
    """Raises DatabaseError for what SQLite cannot open, read as a database, or write to.

    Called before the engine opens the file: where that fails, the driver leaves a thread that may still call the event
    loop after it is closed.
    """
    try:
        with contextlib.closing(sqlite3.connect(database, timeout=5, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise DatabaseError(f"{error}.") from error


def _keep_private(database: str) -> None:
    """Makes the file, if it is not there, and takes the rights of others away: it holds requests and environments of
    programs. SQLite gives the files beside it the same rights. Where that is not possible check_file says more."""
    with contextlib.suppress(OSError):
        fd = os.open(database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(fd, os.fstat(fd).st_mode & 0o700)
        finally:
            os.close(fd)


class FileLock:
    """Held while this process owns a SQLite file. The kernel releases it when the process ends, even by SIGKILL."""

    def __init__(self, database: str) -> None:
        self._database, self._path = database, Path(f"{database}.lock")
        self._fd: int | None = None

    def acquire(self) -> None:
        """Never waits. Raises DatabaseError naming the process that holds the file, or why it is not usable."""
        if Path(self._database).is_dir():
            raise DatabaseError("it is a folder; name a file in it.")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DatabaseError(f"cannot open {self._path}: {error.strerror}.") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise DatabaseError(
                f"another control service (process {holder}) uses this database ({self._path}). Stop it, name "
                "another file (--database, TENFOLD_DATABASE), or give both a postgresql:// database, which several may "
                "share."
            ) from None
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        self._fd = fd
        try:
            _keep_private(self._database)
            check_file(self._database)
        except DatabaseError:
            self.release()
            raise

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def in_parts(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """The values, as many at a time as one statement takes for sure."""
    return (values[at : at + _VALUES] for at in range(0, len(values), _VALUES))


async def first_row(engine: AsyncEngine, chosen: Select[Any]) -> RowMapping | None:
    """The first row of what is chosen, if there is one."""
    async with engine.connect() as db:
        row: RowMapping | None = (await db.execute(chosen)).mappings().first()
        return row


def open_engine(url: URL, *, patient: bool = False) -> Database:
    """An engine with the durability that 2xx promises. Opens nothing yet. `patient`: for statements that may take long.
    Raises DatabaseError for a driver that is not installed."""
    if url.get_backend_name() != "sqlite":
        who: dict[str, Any] = {"server_settings": {"application_name": APPLICATION}, "timeout": _CONNECT_S}
        if not patient:
            who["command_timeout"] = STATEMENT_S
        try:
            made = create_async_engine(
                url, pool_pre_ping=True, pool_size=8, max_overflow=8, pool_timeout=10, connect_args=who
            )
        except ImportError as error:
            raise DatabaseError(f"its driver is missing: pip install 'tenfold[postgres]' ({error}).") from None
        return Database(made.sync_engine)
    engine = Database(create_async_engine(url, pool_size=1, max_overflow=0, pool_timeout=30).sync_engine)
    dialect, terminate = engine.dialect, engine.dialect.do_terminate

    def close(connection: Any) -> None:
        """Of a statement that was cancelled. To terminate closes in a task of its own, and cancelled again, stops the
        driver's thread beside it: that task then waits for ever for a thread that has ended."""
        (dialect.do_close if in_greenlet() else terminate)(connection)

    dialect.do_terminate = close  # type: ignore[assignment, method-assign]

    @event.listens_for(engine.sync_engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=5000"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    return engine


async def open_schema(engine: AsyncEngine) -> None:
    """`prepare_schema`, with every error of the driver as a DatabaseError: until the first connection is made, drivers
    raise errors of their own for a wrong password or an unknown option."""
    try:
        await prepare_schema(engine)
    except DatabaseError:
        raise
    except DBAPIError as error:
        raise DatabaseError(f"{error.orig}.") from error
    except Exception as error:
        raise DatabaseError(f"{str(error) or type(error).__name__}.") from error


async def prepare_schema(engine: AsyncEngine) -> None:
    """Makes the tables where they are missing, and brings those of an older version up to date.

    Raises DatabaseError for a database of a version that is not known.
    """
    async with engine.connect() as db:
        if await db.run_sync(run.up_to_date):
            return
    try:
        async with engine.begin() as db:
            await db.run_sync(run.upgrade)
    except run.SchemaError as error:
        raise DatabaseError(str(error)) from None
