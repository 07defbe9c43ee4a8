"""Events as rows: in their order, with ids that only grow, and what is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.small_database import small_database
from tenfold_control_api.events.event import Event
from tenfold_control_api.events.store import EventStore, go_on_after, last_given

if TYPE_CHECKING:
    from pathlib import Path


def an_event(time: float) -> Event:
    return Event("task", "lost", "worker/0", "silent", time, "c", "r", {"exit_code": 9}, owner="ann")


async def test_events_get_ids_in_their_order_and_come_back_as_they_were(tmp_path: Path) -> None:
    async with small_database(tmp_path) as engine:
        store = EventStore(engine)
        assert await store.bounds() == (1, 0)

        written = await store.add([an_event(1.0), an_event(2.0), an_event(3.0)])

        assert [event.id for event in written] == [1, 2, 3]
        assert await store.after(0, 9) == written
        assert await store.after(1, 1) == written[1:2]
        assert await store.after(3, 9) == []
        assert await store.bounds() == (1, 3)


async def test_ids_go_on_after_those_that_are_forgotten(tmp_path: Path) -> None:
    async with small_database(tmp_path) as engine:
        store = EventStore(engine)
        await store.add([an_event(1.0), an_event(2.0)])
        await store.forget(2.0)
        assert [event.id for event in await store.after(0, 9)] == [2]
        assert await store.bounds() == (2, 2)
        await store.forget(3.0)
        assert await store.bounds() == (3, 2)
        assert [event.id for event in await store.add([an_event(9.0)])] == [3]


async def test_a_restored_database_goes_on_where_the_other_one_was(tmp_path: Path) -> None:
    async with small_database(tmp_path) as engine:
        store = EventStore(engine)
        async with engine.begin() as db:
            await db.run_sync(go_on_after, 0)
            assert await db.run_sync(last_given) == 0
            await db.run_sync(go_on_after, 5)
            await db.run_sync(go_on_after, 7)
            assert await db.run_sync(last_given) == 7
        assert [event.id for event in await store.add([an_event(1.0)])] == [8]
