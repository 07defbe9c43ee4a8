"""A session at a master with scripted workers; whatever it started has ended with the test."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.fake_cluster import FakeCluster

from .sessions import FAST, MASTER, OTHER, PS, OpenSession, session


@pytest.fixture
async def opened() -> Any:
    cluster = FakeCluster(MASTER, PS, OTHER)
    master = cluster.master(FAST)
    yield OpenSession(cluster, master, await session(cluster, master))
    await master.stop()
    cluster.check_consumed()
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
