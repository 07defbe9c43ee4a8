"""A control service's database with thousands of runs, written at once. For tests of lists, and their benchmark."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3

from tenfold_control_api.store import ControlStore


def fill(path: str, count: int) -> None:
    """Makes an SQLite file with so many ended runs, whose learning rate and loss grow with their number."""
    asyncio.run(_make_tables(path))
    runs, progress, newest = [], [], []
    for at in range(count):
        name = f"r{at:05d}"
        submission = {"entrypoint": ["python", "trainer.py"], "jobs": {"worker": 1}, "environment": {}}
        submission |= {"working_dir": None, "success": "chief", "restarts": {"limit": 0}, "deadline": None}
        details = {"tags": ["odd" if at % 2 else "even"], "parameters": {"lr": at / count, "layers": at % 5}}
        runs.append((name, name, json.dumps(submission), at, at, at + 1, json.dumps(details)))
        told = {"updated": 1.0, "steps": 9, "global_step": at, "steps_per_second": 2.0, "examples_per_second": None}
        told |= {"values": {"loss": [1.0, at, float(at)]}, "checkpoints": []}
        progress.append((name, " " * 1000))
        newest.append((name, json.dumps(told)))
    of_runs = "id, submission_id, submission, created, started, ended, details"
    plain = "fingerprint, launcher, state, reason, version, attempt, restarts, reports, tasks"
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        values = "?, ?, ?, ?, ?, ?, ?, '', 'external', 'SUCCEEDED', '', 1, 1, 0, 0, '[]'"
        db.executemany(f"INSERT INTO tenfold_runs ({of_runs}, {plain}) VALUES ({values})", runs)
        db.executemany("INSERT INTO tenfold_progress VALUES (?, 'worker', 0, ?)", progress)
        db.executemany("INSERT INTO tenfold_newest VALUES (?, 'worker', 0, 1.0, ?)", newest)


async def _make_tables(database: str) -> None:
    store = ControlStore(database)
    await store.open()
    await store.close()
