"""The index of runs: what it gives is always as the database has it, and it reads only what has changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from support.small_database import small_database
from tenfold_control_api.runs.index import RunIndex
from tenfold_control_api.runs.progress_table import ProgressTable
from tenfold_control_api.runs.record import LOCAL, RunRecord
from tenfold_control_api.runs.store import RunStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path


class CountingStore(RunStore):
    """Notes which runs are read in full."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.read: list[str] = []

    async def overview(self, run_ids: Sequence[str]) -> list[RunRecord]:
        self.read += sorted(run_ids)
        return await super().overview(run_ids)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[tuple[CountingStore, ProgressTable, RunIndex]]:
    async with small_database(tmp_path) as engine:
        store, progress = CountingStore(engine), ProgressTable(engine)
        yield store, progress, RunIndex(store, progress)


def a_run(name: str) -> RunRecord:
    given = {"jobs": {"worker": 1}, "entrypoint": ["python", "a.py"], "environment": {"SECRET": "x"}}
    return RunRecord(name, f"submission {name}", "print", LOCAL, given, 1.0)


def report(loss: float) -> dict[str, Any]:
    point = {"time": 1.0, "step": 1, "values": {"loss": loss}}
    rates = {"global_step": 1, "steps_per_second": None, "examples_per_second": None}
    return {"steps": 1, "figures": {}, "points": [point], "checkpoints": [], "logdirs": [], **rates}


async def losses(index: RunIndex) -> dict[str, Any]:
    found = await index.candidates()
    return {each.run.id: next(iter(each.values("loss")), None) for each in found}


async def test_only_what_has_changed_is_read_again(service: tuple[CountingStore, ProgressTable, RunIndex]) -> None:
    store, _, index = service
    for name in "abc":
        await store.add(a_run(name))

    first = await losses(index)
    await store.save(a_run("b"), replace(a_run("b"), version=2, details={"parameters": {"loss": 7}}))
    await store.remove("c")
    second = await losses(index)
    await losses(index)

    assert (first, second) == ({"a": None, "b": None, "c": None}, {"a": None, "b": 7})
    assert store.read == ["a", "b", "c", "b"]


async def test_figures_are_the_newest_wherever_they_were_reported(
    service: tuple[CountingStore, ProgressTable, RunIndex],
) -> None:
    store, here, index = service
    elsewhere = ProgressTable(store._engine)
    for name in "ab":
        await store.add(a_run(name))
    seen = [await losses(index)]

    await here.add("a", "worker", 0, report(0.5), 1.0)  # not written yet
    seen.append(await losses(index))
    await elsewhere.add("b", "worker", 0, report(3.0), 1.0)
    await elsewhere.flush()
    seen.append(await losses(index))
    await elsewhere.add("b", "worker", 0, report(2.0), 2.0)
    await elsewhere.flush()
    seen.append(await losses(index))
    await here.flush()
    here.release("a")
    seen.append(await losses(index))

    assert [list(each.values()) for each in seen] == [[None, None], [0.5, None], [0.5, 3.0], [0.5, 2.0], [0.5, 2.0]]
    assert store.read == ["a", "b"]


async def test_what_is_kept_has_no_environment(service: tuple[CountingStore, ProgressTable, RunIndex]) -> None:
    store, _, index = service
    await store.add(a_run("a"))

    (found,) = await index.candidates()

    assert found.run.submission == {"jobs": {"worker": 1}, "entrypoint": ["python", "a.py"]}


async def test_of_more_runs_than_are_kept_all_are_given(
    service: tuple[CountingStore, ProgressTable, RunIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenfold_control_api.runs.index._KEPT", 1)
    store, _, index = service
    for name in "ab":
        await store.add(a_run(name))

    assert await losses(index) == await losses(index) == {"a": None, "b": None}
    assert store.read == ["a", "b", "b"]
