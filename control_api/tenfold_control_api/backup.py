"""Backups: all rows of a database in one zip file, from SQLite or PostgreSQL and for either.

`manifest.json` has the version of the tables and how many rows each has, `TABLE.jsonl` a row in each line. A backup is
of one moment, also while services work. It is restored in one transaction: the tables are made in the version that
the backup has (migrations), filled, and brought up to date. What runs left in their folders is no part of it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, MetaData, Table, delete, func, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

from tenfold_control_api.database import APPLICATION, DatabaseError, FileLock, database_url, open_engine
from tenfold_control_api.events.store import go_on_after, last_given
from tenfold_control_api.migrations import run
from tenfold_control_api.schema import SCHEMA_VERSION, events, meta, services
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.errors import OpError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import URL

_FORMAT, _FORMAT_VERSION = "tenfold-control-backup", 1
_MANIFEST = "manifest.json"
_PREFIX = "tenfold_"
#: Tables that say nothing beyond the moment.
_LEFT_OUT = (run.VERSION_TABLE, services.name)
#: Rows that are read and written at once.
_ROWS = 500
#: Bytes of a manifest, and of one line.
_MANIFEST_LIMIT, _LINE_LIMIT = 1 << 20, 1 << 30


class BackupError(Exception):
    """The backup cannot be made or restored; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds."""

    #: Of the tables.
    schema_version: int
    #: Table → number of rows.
    rows: dict[str, int]
    #: The highest id that an event has had: no later one gets it again.
    last_event: int


def write_backup(database: str, file: str) -> Manifest:
    """Writes a backup, whole or not at all. Blocks. Raises BackupError, DatabaseError."""
    url = database_url(database)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise DatabaseError("there is no such file.")  # to open it would make it
    return asyncio.run(_write(url, file))


async def _write(url: URL, file: str) -> Manifest:
    engine = open_engine(url, patient=True)
    try:
        async with engine.connect() as db:
            if db.dialect.name != "sqlite":
                await db.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with AtomicFile(file) as out:
                os.fchmod(out.fileno(), 0o600)  # it holds what the database holds
                with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
                    return await db.run_sync(_dump, package)
    except OpError as error:
        raise BackupError(f"{error.message}.") from error
    except (SQLAlchemyError, OSError) as error:
        raise DatabaseError(f"{getattr(error, 'orig', None) or error}.") from error
    finally:
        await engine.dispose()


def restore(database: str, file: str, *, force: bool = False) -> Manifest:
    """Fills a database from a backup, all of it or nothing; with `force` also one that holds something, which is lost.

    Blocks. Raises BackupError for a file of another kind, for a database that is not empty, and while it is in use.
    """
    try:
        with zipfile.ZipFile(file) as package:
            manifest = _manifest(package)
            asyncio.run(_fill(database_url(database), package, manifest, force))
            return manifest
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise BackupError(f"{file} is not a whole backup: {error}.") from error
    except OSError as error:
        raise BackupError(f"{file}: {error.strerror or error}.") from error


async def _fill(url: URL, package: zipfile.ZipFile, manifest: Manifest, force: bool) -> None:
    lock = FileLock(url.database) if url.get_backend_name() == "sqlite" and url.database else None
    engine = open_engine(url, patient=True)
    if lock is not None:
        lock.acquire()
    try:
        async with engine.begin() as db:
            await db.run_sync(_load, package, manifest, force)
    except (run.SchemaError, SQLAlchemyError, OSError) as error:
        raise DatabaseError(f"{getattr(error, 'orig', None) or error}.") from error
    finally:
        await engine.dispose()
        if lock is not None:
            lock.release()


# -- out of a database


def _dump(db: Connection, package: zipfile.ZipFile) -> Manifest:
    if db.dialect.name == "sqlite":
        db.exec_driver_sql("BEGIN")
    version = run.version(db)
    if version is None or not version.isdecimal() or int(version) > SCHEMA_VERSION:
        known = f"it has no tables of version 1 to {SCHEMA_VERSION}"
        raise DatabaseError(f"{known}; it has version {version}." if version else f"{known}: no service has used it.")
    rows: dict[str, int] = {}
    for table in _tables(db):
        rows[table.name] = 0
        with package.open(f"{table.name}.jsonl", "w") as out:
            order = [column for column in table.primary_key]
            chosen = select(table).order_by(*order).execution_options(yield_per=_ROWS)
            for row in db.execute(chosen).mappings():
                out.write(json.dumps({name: _plain(value) for name, value in row.items()}).encode() + b"\n")
                rows[table.name] += 1
    manifest = Manifest(int(version), rows, last_given(db) if events.name in rows else 0)
    content = {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "schema_version": manifest.schema_version,
        "rows": rows,
        "last_event": manifest.last_event,
    }
    package.writestr(_MANIFEST, json.dumps(content, indent=1))
    return manifest


def _tables(db: Connection) -> list[Table]:
    """Our tables as they are, those that others refer to first."""
    found = MetaData()
    found.reflect(db, only=lambda name, _: name.startswith(_PREFIX) and name not in _LEFT_OUT)
    return found.sorted_tables


def _plain(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


# -- into a database


def _manifest(package: zipfile.ZipFile) -> Manifest:
    with package.open(_MANIFEST) as file:
        try:
            content = json.loads(file.read(_MANIFEST_LIMIT))
            form, version = content["format_version"], int(content["schema_version"])
            rows = {str(name): int(count) for name, count in content["rows"].items()}
            made_by, last_event = content["format"], int(content["last_event"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise _broken(package, f"{_MANIFEST} is not that of a backup") from None
    if made_by != _FORMAT:
        raise _broken(package, f"its format is {made_by!r}")
    if form != _FORMAT_VERSION or not 1 <= version <= SCHEMA_VERSION:
        raise BackupError(
            f"{package.filename} is a backup of tables of version {version}, in form {form}; "
            f"this version of Tenfold knows tables up to version {SCHEMA_VERSION} and "
            f"form {_FORMAT_VERSION}. Restore it with the newer one."
        )
    return Manifest(version, rows, last_event)


def _broken(package: zipfile.ZipFile, why: str) -> BackupError:
    return BackupError(f"{package.filename} is not a whole backup: {why}.")


def _load(db: Connection, package: zipfile.ZipFile, manifest: Manifest, force: bool) -> None:
    run.lock(db)
    if others := _others(db):
        raise BackupError(f"{others} connections of control services are open: stop the services first.")
    there = [table for table in _tables(db) if table.name != meta.name]
    full = [table.name for table in there if db.scalar(select(func.count()).select_from(table))]
    if full and not force:
        raise BackupError(
            f"the database is not empty (there is something in {', '.join(full)}). Name another one, or add --force to "
            "lose what it holds."
        )
    for name in [*(table.name for table in reversed(_tables(db))), *_LEFT_OUT]:
        db.execute(text(f"DROP TABLE IF EXISTS {name}"))
    run.steps(db, manifest.schema_version)
    db.execute(delete(meta))
    tables = {table.name: table for table in _tables(db)}
    if tables.keys() != manifest.rows.keys():
        raise _broken(package, f"its tables are not those of version {manifest.schema_version}")
    for name, table in tables.items():
        count = 0
        for batch in _batches(package, name):
            db.execute(insert(table), batch)
            count += len(batch)
        if count != manifest.rows[name]:
            raise _broken(package, f"{name} has {count} of {manifest.rows[name]} rows")
    if events.name in tables:
        go_on_after(db, manifest.last_event)
    run.steps(db)


def _others(db: Connection) -> int:
    """Connections of services; on SQLite the file's lock says that there are none."""
    if db.dialect.name == "sqlite":
        return 0
    mine = "datname = current_database() AND pid <> pg_backend_pid()"
    query = text(f"SELECT count(*) FROM pg_stat_activity WHERE {mine} AND application_name = :name")
    return int(db.scalar(query, {"name": APPLICATION}) or 0)


def _batches(package: zipfile.ZipFile, table: str) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    with package.open(f"{table}.jsonl") as lines:
        while line := lines.readline(_LINE_LIMIT):
            try:
                row = json.loads(line)
                batch.append({name: _value(value) for name, value in row.items()})
            except (ValueError, AttributeError, TypeError) as error:
                raise _broken(package, f"a row of {table} cannot be read: {error}") from None
            if len(batch) == _ROWS:
                yield batch
                batch = []
    if batch:
        yield batch


def _value(value: Any) -> Any:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value
