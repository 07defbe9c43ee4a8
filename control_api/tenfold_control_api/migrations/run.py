"""Which version the tables have, and the steps to another one. Blocking; a caller with an event loop uses `run_sync`.

A change of version is one transaction, on PostgreSQL under a lock that a second service waits for: tables are of one
version or the next, and of services that start at once one makes it.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, func, insert, inspect, select, table, text

from tenfold_control_api.schema import SCHEMA_VERSION, meta

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

#: Where alembic keeps the version.
VERSION_TABLE = "tenfold_version"
#: Holds while the version changes, and when something else must not meet that. Any number will do.
_LOCK = 0x7E_4F_01D
#: Versions up to this one were made without alembic, which tables with them.
_ADOPTED = {
    1: ("tenfold_answers", "tenfold_sessions", "tenfold_leases", "tenfold_tasks", "tenfold_clusters", "tenfold_meta"),
    3: ("tenfold_runs",),
    4: ("tenfold_progress",),
    5: ("tenfold_events",),
}


class SchemaError(Exception):
    """The tables are of a version that this service does not know."""


def version(db: Connection) -> str | None:
    """The version that the tables have; None where there are none."""
    names = set(inspect(db).get_table_names())
    if VERSION_TABLE in names:
        return str(db.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")))
    if meta.name not in names:
        return None
    return db.scalar(select(meta.c.value).where(meta.c.key == "schema_version"))


def up_to_date(db: Connection) -> bool:
    """Whether there is nothing to do. Does not load alembic, which takes longer than all else at a start."""
    return version(db) == str(SCHEMA_VERSION) and inspect(db).has_table(VERSION_TABLE)


def upgrade(db: Connection, to: int = SCHEMA_VERSION) -> None:
    """`steps` in a transaction that begins here, under a lock; the caller commits."""
    lock(db)
    steps(db, to)


def steps(db: Connection, to: int = SCHEMA_VERSION) -> None:
    """Makes the tables, or brings them up to version `to`, in the caller's transaction, which has begun with `lock`.

    Raises SchemaError for those of a newer version.
    """
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    found = version(db)
    known = [str(number) for number in range(1, SCHEMA_VERSION + 1)]
    if found is not None and found not in known:
        raise SchemaError(
            f"its tables have version {found}; this control service knows them up to version {SCHEMA_VERSION}. "
            "Start the newer service, or name another database."
        )
    scripts = _scripts()

    def missing(present: Any, _: MigrationContext) -> Any:
        # present is what alembic's own table says: nothing of tables that were made without it
        return scripts._upgrade_revs(str(to), present or "base")

    context = MigrationContext.configure(db, opts={"fn": missing, "version_table": VERSION_TABLE})
    if VERSION_TABLE not in inspect(db).get_table_names():
        _adopt(db, int(found or 0))
        if found is not None:
            context.stamp(scripts, found)
    context.run_migrations(op=Operations(context))
    # services from before alembic look here, and refuse what they do not know
    db.execute(delete(meta).where(meta.c.key == "schema_version"))
    db.execute(insert(meta).values(key="schema_version", value=str(to)))


def lock(db: Connection) -> None:
    """Nothing else changes the tables until this transaction ends, of which this is the beginning."""
    if db.dialect.name == "sqlite":
        # also makes the driver leave statements that define tables within the transaction
        db.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        db.execute(select(func.pg_advisory_xact_lock(_LOCK)))


def _adopt(db: Connection, found: int) -> None:
    """Drops the tables of later versions than `found` that a start which was cut off has left; they are empty."""
    there = set(inspect(db).get_table_names())
    for since, names in sorted(_ADOPTED.items(), reverse=True):
        for name in names if since > found else ():
            if name not in there:
                continue
            if db.scalar(select(func.count()).select_from(table(name))):
                raise SchemaError(f"there is a table {name} that no version {found} of it has; name another database.")
            db.execute(text(f"DROP TABLE {name}"))


@functools.cache
def _scripts() -> ScriptDirectory:
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(Path(__file__).parent))
