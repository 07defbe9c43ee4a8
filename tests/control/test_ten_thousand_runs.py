"""Ten thousand runs in a list: what a page of it costs, with a filter and without."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from sqlalchemy import insert

from tenfold_control_api import schema
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings
from tenfold_control_api.store import ControlStore

from .conftest import Masters, running_app

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(240)]

RUNS = 10_000
#: Seconds of the service's processor for one list. It takes 0.1 on a quiet machine; before the newest figures had a
#: table, and were kept from list to list, it took 0.9.
BOUND = 0.5


@pytest.fixture
def database(tmp_path: Any) -> str:
    """One kind is enough: what is measured is Python."""
    return str(tmp_path / "control.db")


async def fill(database: str) -> None:
    """Runs whose learning rate and loss grow with their number; curves as large as those of a short training."""
    curves = " " * 4000
    runs, progress, newest = [], [], []
    for at in range(RUNS):
        name = f"r{at:05d}"
        submission = {"entrypoint": ["python", "trainer.py"], "jobs": {"worker": 1}, "environment": {}}
        submission |= {"working_dir": None, "success": "chief", "restarts": {"limit": 0}, "deadline": None}
        details = {"tags": ["odd" if at % 2 else "even"], "parameters": {"lr": at / RUNS, "layers": at % 5}}
        times = {"created": float(at), "started": float(at), "ended": float(at + 1)}
        plain = {"submission_id": name, "fingerprint": "", "launcher": "external", "state": "SUCCEEDED", "reason": ""}
        count = {"version": 1, "attempt": 1, "restarts": 0, "reports": 0}
        texts = {"submission": json.dumps(submission), "details": json.dumps(details), "tasks": "[]"}
        runs.append({"id": name, **plain, **times, **count, **texts})
        key = {"run": name, "job": "worker", "task_index": 0}
        told = {"updated": 1.0, "steps": 9, "global_step": at, "steps_per_second": 2.0, "examples_per_second": None}
        told |= {"values": {"loss": [1.0, at, float(at)]}, "checkpoints": []}
        progress.append({**key, "body": curves})
        newest.append({**key, "updated": 1.0, "body": json.dumps(told)})
    store = ControlStore(database)
    await store.open()
    async with store.engine.begin() as db:
        for table, rows in ((schema.runs, runs), (schema.progress, progress), (schema.newest, newest)):
            await db.execute(insert(table), rows)
    await store.close()


async def test_a_filter_over_all_costs_little(database: str) -> None:
    await fill(database)
    wanted: dict[str, Any] = {"filter": "tag=odd and lr>0.5", "sort": "-loss", "limit": 25}
    async with running_app(create_app(Settings(database=database), Masters())) as api:
        costs = []
        for _ in range(4):
            began = time.process_time()
            answer = (await api.get("/v1/runs", params=wanted)).raise_for_status().json()
            costs.append(time.process_time() - began)
        began = time.process_time()
        page = (await api.get("/v1/runs", params={"limit": 50})).raise_for_status().json()
        unfiltered = time.process_time() - began

    assert [run["name"] for run in answer["runs"]] == [f"r{RUNS - 1 - 2 * at:05d}" for at in range(25)]
    assert [run["name"] for run in page["runs"]] == [f"r{RUNS - 1 - at:05d}" for at in range(50)]
    assert page["runs"][0]["progress"]["values"] == {"loss": RUNS - 1}
    # the first one reads them all
    assert min(costs[1:]) < BOUND
    assert unfiltered < BOUND
