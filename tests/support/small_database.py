"""A database of the control service in a file of a test's own, with all tables, as `open_engine` opens it."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING

from sqlalchemy import create_engine

from tenfold_control_api import schema
from tenfold_control_api.database import database_url, open_engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tenfold_control_api.database import Database


@functools.cache
def _empty() -> bytes:
    """A file with all tables; making them once saves each test a dozen commits."""
    engine = create_engine("sqlite://")
    try:
        schema.meta.metadata.create_all(engine)
        with engine.connect() as db:
            driver = db.connection.driver_connection
            assert driver is not None
            return bytes(driver.serialize())
    finally:
        engine.dispose()


def empty_database(folder: Path) -> str:
    """The path of a file with all tables, and nothing in them."""
    path = folder / "control.db"
    path.write_bytes(_empty())
    return str(path)


@contextlib.asynccontextmanager
async def small_database(folder: Path) -> AsyncIterator[Database]:
    """The engine of such a file, closed at the end."""
    engine = open_engine(database_url(empty_database(folder)))
    try:
        yield engine
    finally:
        await engine.dispose()
