"""Models that are loaded a second time, beside themselves: one model after the other, for the memory of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tenfold_control_api.service_settings import Settings
from tenfold_control_api.serving.loading import Loaded
from tenfold_control_api.serving.service import ModelService
from tenfold_control_api.serving.shapes import ModelRegistration

if TYPE_CHECKING:
    from pathlib import Path


class Copies:
    """Sessions and a loader: how many copies there are."""

    def __init__(self) -> None:
        self.now, self.most = 0, 0

    async def load(self, name: str, registration: ModelRegistration, version: str, path: str, *_: Any) -> Loaded:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        return Loaded(registration, version, path, SimpleNamespace(id=name), {}, 0.0)  # type: ignore[arg-type]

    async def close(self, session: str, why: str) -> None:
        self.now -= 1


async def test_one_model_at_a_time_has_two_copies(tmp_path: Path) -> None:
    copies = Copies()
    service = ModelService(copies, Settings(models_folder=str(tmp_path)))  # type: ignore[arg-type]
    service._loader = copies  # type: ignore[assignment]
    names = ("a", "b", "c")
    first = {name: await service._load(name, ModelRegistration(), "1", "there") for name in names}
    service._loaded = dict(first)
    first["a"].users = 1

    replaced = [asyncio.create_task(service._replace(name, first[name])) for name in names]
    async with asyncio.timeout(60):
        while service._loaded["a"] is first["a"]:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
    assert [service._loaded[name] is first[name] for name in names] == [False, True, True]
    first["a"].users = 0
    service._close_if_over(first["a"])
    async with asyncio.timeout(60):
        await asyncio.gather(*replaced)

    assert copies.most == 4
    assert copies.now == 3
    assert not any(service._loaded[name] is first[name] for name in names)
    await service.stop()
