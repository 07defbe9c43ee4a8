"""A database of the control service in a file of a test's own, with all tables, as `open_engine` opens it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tenfold_control_api import schema
from tenfold_control_api.database import database_url, open_engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tenfold_control_api.database import Database


@contextlib.asynccontextmanager
async def small_database(folder: Path) -> AsyncIterator[Database]:
    """The engine, closed at the end."""
    engine = open_engine(database_url(str(folder / "control.db")))
    try:
        async with engine.begin() as db:
            await db.run_sync(schema.meta.metadata.create_all)
        yield engine
    finally:
        await engine.dispose()
