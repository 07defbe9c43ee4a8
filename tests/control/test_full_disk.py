"""A disk that has room for little: what a request is told /readyz tells, too, until there is room again.

tests/chaos/test_disk_fails.py has disks that take nothing at all.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
from typing import TYPE_CHECKING

from sqlalchemy import text

from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings

from .conftest import Masters, running_app

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


async def test_a_database_with_room_for_small_rows_alone_is_not_ready(sqlite: str) -> None:
    app = create_app(Settings(database=sqlite), Masters())
    async with running_app(app) as api:
        engine = app.state.control.store.engine

        async def pages(limit: int | None) -> None:
            """SQLite's own limit makes the error of a full disk; a few pages are left."""
            async with engine.connect() as db:
                count = (await db.execute(text("PRAGMA page_count"))).scalar_one()
                await db.execute(text(f"PRAGMA max_page_count = {count + 4 if limit is None else limit}"))

        await pages(None)
        # as large as a declaration may be
        wide = {"jobs": {f"j{number:050}": 1 for number in range(100)}}
        refused = [await api.put(f"/v1/clusters/c{number}", json=wide) for number in range(3)]
        away = await api.get("/readyz")
        await pages(1_000_000)
        ready = await api.get("/readyz")
        taken = await api.put("/v1/clusters/after", json=wide)

    assert refused[-1].status_code == 503
    assert (away.status_code, away.json()["type"]) == (503, "urn:tenfold:problem:database-unavailable")
    assert (ready.status_code, taken.status_code) == (200, 201)


async def test_a_folder_that_takes_no_package_is_not_ready(
    sqlite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "runs" / "packages"
    blocked.parent.mkdir()
    blocked.write_text("a file where the folder is to be")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as package:
        package.writestr("trainer.py", "print(1)")
    content = made.getvalue()
    where = f"/v1/packages/{hashlib.sha256(content).hexdigest()}"
    zipped = {"Content-Type": "application/zip"}
    settings = Settings(database=sqlite, allow_runs=True, runs_folder=str(tmp_path / "runs"))
    async with running_app(create_app(settings, Masters())) as api:
        before = await api.get("/readyz")
        refused = await api.put(where, content=content, headers=zipped)
        away = await api.get("/readyz")
        blocked.unlink()
        ready = await api.get("/readyz")
        taken = await api.put(where, content=content, headers=zipped)
    shutil.rmtree(tmp_path / "runs")

    assert (before.status_code, refused.status_code) == (200, 503)
    assert (away.status_code, away.json()["type"]) == (503, "urn:tenfold:problem:disk-unavailable")
    assert (ready.status_code, taken.status_code) == (200, 201)


async def test_no_answer_is_for_a_browser_to_guess_at(sqlite: str) -> None:
    async with running_app(create_app(Settings(database=sqlite), Masters())) as api:
        answers = [
            await api.get("/healthz"),
            await api.get("/v1/clusters"),
            await api.get("/v1/nothing"),
            await api.get("/metrics"),
            await api.post("/v1/sessions", content=b"{"),
            await api.get("/"),
        ]

    assert [answer.headers.get_list("X-Content-Type-Options") for answer in answers] == [["nosniff"]] * len(answers)
