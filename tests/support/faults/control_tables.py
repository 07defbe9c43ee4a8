"""What must hold of the control service's tables whenever no request is under way, wherever it was killed."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, text

from tenfold_control_api import schema
from tenfold_control_api.database import database_url, open_engine
from tenfold_core.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Rows = list["Mapping[str, Any]"]


def breaches(database: str) -> list[str]:
    """What does not hold, in words. Blocks."""
    return asyncio.run(_breaches(database))


async def _breaches(database: str) -> list[str]:
    engine = open_engine(database_url(database))
    tables: dict[str, Rows] = {}
    found = []
    async with engine.connect() as db:
        for table in schema.metadata.sorted_tables:
            tables[table.name.removeprefix("tenfold_")] = list((await db.execute(select(table))).mappings())
        if db.dialect.name == "sqlite":
            found += [str(row) for row in await db.execute(text("PRAGMA integrity_check")) if row[0] != "ok"]
            found += [f"foreign key: {row}" for row in await db.execute(text("PRAGMA foreign_key_check"))]
    await engine.dispose()
    return [*found, *_of_clusters(tables), *_of_runs(tables), *_of_answers(tables)]


def _of_clusters(tables: Mapping[str, Rows]) -> Iterator[str]:
    sizes = {row["name"]: dict(json.loads(row["jobs"])) for row in tables["clusters"]}
    for cluster, jobs in sizes.items():
        wanted = {(job, index) for job, size in jobs.items() for index in range(size)}
        there = {(row["job"], row["task_index"]) for row in tables["tasks"] if row["cluster"] == cluster}
        if there != wanted:
            yield f"cluster {cluster} declares {sorted(wanted)} and has {sorted(there)}"
    live = {row["id"]: row for row in tables["leases"] if row["state"] == "live"}
    for task in tables["tasks"]:
        ready, lease = task["state"] == "ready", live.pop(task["lease_id"], None)
        place = (task["cluster"], task["job"], task["task_index"])
        if ready != (lease is not None):
            yield f"task {place} is {task['state']}, and its lease is {'' if lease else 'not '}live"
        elif lease is not None and (lease["cluster"], lease["job"], lease["task_index"]) != place:
            yield f"task {place} holds the lease of another place"
    yield from (f"lease {name} is live, and nobody's" for name in live)
    for lease in tables["leases"]:
        if lease["state"] == "ended" and (lease["outcome"] is None or lease["ended"] is None):
            yield f"lease {lease['id']} has ended without saying how"
    for session in tables["sessions"]:
        if session["cluster"] not in sizes:
            yield f"session {session['id']} is of cluster {session['cluster']}, which is not there"


def _of_runs(tables: Mapping[str, Rows]) -> Iterator[str]:
    there = {row["id"] for row in tables["runs"]}
    for run in tables["runs"]:
        if RunState(run["state"]).final != (run["ended"] is not None):
            yield f"run {run['id']} is {run['state']}, and ended at {run['ended']}"
    strays = [row["run"] for row in tables["progress"] if row["run"] not in there]
    yield from (f"run {run} is not there, and has progress" for run in strays)


def _of_answers(tables: Mapping[str, Rows]) -> Iterator[str]:
    for answer in tables["answers"]:
        if (answer["state"] == "done") != (answer["status"] is not None):
            yield f"an answer is {answer['state']} with status {answer['status']}"
