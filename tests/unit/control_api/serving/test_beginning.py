"""Models that follow a training are loaded without being asked for, and tried again where they cannot be."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tenfold_control_api.problems import ApiError
from tenfold_control_api.serving import beginning
from tenfold_control_api.serving.beginning import Beginning


class Models:
    def __init__(self, *names: str) -> None:
        self.none_waits = asyncio.Event()
        self.names, self.trouble = [*names], ""
        self.tried: list[str] = []
        self.unread = 0

    async def waiting(self) -> list[str]:
        if self.unread:
            self.unread -= 1
            raise ApiError("invalid-model", "models.json cannot be read")
        return [*self.names]

    async def load(self, name: str) -> None:
        self.tried.append(name)
        if self.trouble and self.tried.count(name) < 4:
            raise ApiError("invalid-model", self.trouble)
        self.names.remove(name)
        if not self.names:
            self.none_waits.set()


async def until_none_waits(models: Models) -> None:
    async with asyncio.timeout(60):
        await models.none_waits.wait()
    models.none_waits.clear()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beginning, "_LOOK_S", 0.001)


async def test_each_is_loaded_once_however_often_its_session_is_gone() -> None:
    models = Models("a", "b")
    began = Beginning(models.waiting, models.load)
    began.start()
    await until_none_waits(models)
    assert sorted(models.tried) == ["a", "b"]
    models.names.append("a")
    await until_none_waits(models)
    assert sorted(models.tried) == ["a", "a", "b"]
    await began.stop()


async def test_what_cannot_be_loaded_is_tried_again_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    models = Models("a")
    models.trouble, models.unread = "there is no task", 2
    began = Beginning(models.waiting, models.load)
    with caplog.at_level(logging.INFO):
        began.start()
        await until_none_waits(models)
        await began.stop()
    assert models.tried == ["a"] * 4
    assert sum("there is no task" in each for each in caplog.messages) == 1
    assert sum("models.json" in each for each in caplog.messages) == 2


async def test_it_stops_while_it_loads() -> None:
    models, under_way = Models("a"), asyncio.Event()

    async def for_ever(name: str) -> None:
        under_way.set()
        await asyncio.Event().wait()

    began = Beginning(models.waiting, for_ever)
    began.start()
    await under_way.wait()
    await began.stop()
    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("control:begin")] == []
