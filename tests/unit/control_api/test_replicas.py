"""Which control services share the database and live: by counts that go on, and what is known of each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest
from sqlalchemy import select, update

from support.hand_clock import HandClock
from support.small_database import small_database
from tenfold_control_api.replicas import Replicas
from tenfold_control_api.schema import services
from tenfold_control_api.service_settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tenfold_control_api.database import Database


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Database]:
    async with small_database(tmp_path) as opened:
        yield opened


class Service:
    def __init__(self, engine: Database, *, shared: bool = True, heartbeat: float = 2.0) -> None:
        self.clock = HandClock()
        settings = Settings(heartbeat=heartbeat, lease_ttl=10.0)
        self.replicas = Replicas(engine, settings, shared=shared, clock=self.clock, wall_clock=lambda: 500.0)

    async def wait(self, turns: int, *others: Service) -> None:
        """2.5 s go by each time; the others go on to say that they live."""
        for _ in range(turns):
            self.clock.now += 2.5
            for other in others:
                await other.replicas.beat()
            await self.replicas.beat()


async def rows(engine: Database) -> list[Any]:
    async with engine.connect() as db:
        return list((await db.execute(select(services).order_by(services.c.beats))).mappings())


async def test_a_service_counts_in_a_row_of_its_own(engine: Database) -> None:
    service = Service(engine)
    service.replicas.serve_at("http://10.0.0.1:1")
    await service.replicas.beat()
    ((row),) = await rows(engine)
    assert (row["id"], row["started"], row["beats"], row["address"]) == (
        *(service.replicas.id, 500.0),
        *(0, "http://10.0.0.1:1"),
    )
    await service.replicas.beat()
    await Service(engine).replicas.beat()
    assert [row["beats"] for row in await rows(engine)] == [0, 1]
    assert len({row["id"] for row in await rows(engine)}) == 2


async def test_one_alone_knows_nobody_and_writes_nothing(engine: Database) -> None:
    service = Service(engine, shared=False)
    assert not service.replicas.shared
    await service.replicas.start()
    await service.replicas.observe()
    assert await service.replicas.alive(service.replicas.id)
    assert not await service.replicas.alive("other")
    assert await service.replicas.living() == [service.replicas.id]
    await service.replicas.stop()
    assert await rows(engine) == []


async def test_another_lives_as_long_as_it_counts(engine: Database, caplog: pytest.LogCaptureFixture) -> None:
    mine, other = Service(engine), Service(engine)
    assert mine.replicas.shared
    other.replicas.serve_at("http://10.0.0.2:1")
    await other.replicas.beat()

    assert await mine.replicas.alive(other.replicas.id)
    assert mine.replicas.addresses() == ["http://10.0.0.2:1"]
    await mine.wait(5, other)
    assert await mine.replicas.living() == [mine.replicas.id, other.replicas.id]

    await mine.wait(3)
    assert await mine.replicas.alive(other.replicas.id)
    assert caplog.records == []
    await mine.wait(1)

    assert not await mine.replicas.alive(other.replicas.id)
    assert [row["id"] for row in await rows(engine)] == [mine.replicas.id]
    assert mine.replicas.addresses() == []
    assert [each.getMessage() for each in caplog.records] == [
        "control service http://10.0.0.2:1 does not answer any more"
    ]


async def test_one_without_an_address_is_named_by_its_id(engine: Database, caplog: pytest.LogCaptureFixture) -> None:
    mine, other = Service(engine), Service(engine)
    await other.replicas.beat()
    await mine.replicas.observe()
    assert mine.replicas.addresses() == []
    await mine.wait(4)
    assert caplog.records[0].getMessage() == f"control service {other.replicas.id} does not answer any more"


async def test_one_that_counted_at_the_last_moment_keeps_its_row(engine: Database) -> None:
    mine, other = Service(engine), Service(engine)
    await other.replicas.beat()
    await mine.wait(3)
    observe = mine.replicas.observe

    async def late() -> None:
        await observe()
        async with engine.begin() as db:
            await db.execute(update(services).where(services.c.id == other.replicas.id).values(beats=9))

    mine.replicas.observe = late  # type: ignore[method-assign]
    await mine.wait(1)
    assert len(await rows(engine)) == 2
    mine.replicas.observe = observe  # type: ignore[method-assign]
    assert await mine.replicas.alive(other.replicas.id)


@pytest.mark.parametrize(
    ("host", "address", "known"),
    [
        ("mine", "http://127.0.0.1:1", True),
        ("other", "http://127.0.0.1:1", False),
        ("other", "http://localhost:1", False),
        ("other", "http://10.0.0.2:1", True),
        ("other", None, False),
    ],
)
async def test_an_address_of_another_machine_alone_is_not_told(
    engine: Database, host: str, address: str | None, known: bool
) -> None:
    mine, other = Service(engine), Service(engine)
    cast("Any", mine.replicas)._host, cast("Any", other.replicas)._host = "mine", host
    if address is not None:
        other.replicas.serve_at(address)
    await other.replicas.beat()
    await mine.replicas.observe()
    assert mine.replicas.addresses() == ([address] if known else [])
    assert await mine.replicas.alive(other.replicas.id)


async def test_one_that_stops_is_gone_at_once(engine: Database) -> None:
    mine, other = Service(engine), Service(engine)
    await mine.replicas.start()
    await other.replicas.start()
    await mine.replicas.observe()
    assert await mine.replicas.alive(other.replicas.id)
    await other.replicas.stop()
    assert [row["id"] for row in await rows(engine)] == [mine.replicas.id]
    assert await mine.replicas.living() == [mine.replicas.id]
    assert not await mine.replicas.alive(other.replicas.id)
    await mine.replicas.stop()


async def test_a_beat_that_fails_is_tried_again(engine: Database, caplog: pytest.LogCaptureFixture) -> None:
    service = Service(engine, heartbeat=0.001)
    await service.replicas.start()
    again = asyncio.Event()
    beats = [0]

    async def broken() -> None:
        beats[0] += 1
        if beats[0] == 2:
            again.set()
        raise OSError("the database is away")

    service.replicas.beat = broken  # type: ignore[method-assign]
    await again.wait()
    assert "this service could not say that it lives; it tries again" in caplog.text
    await service.replicas.stop()


async def test_a_new_address_is_told_at_once(engine: Database) -> None:
    service = Service(engine, heartbeat=9.0)
    await service.replicas.start()
    told = asyncio.Event()
    beat = service.replicas.beat

    async def noted() -> None:
        await beat()
        told.set()

    service.replicas.beat = noted  # type: ignore[method-assign]
    service.replicas.serve_at("http://10.0.0.1:1")
    await told.wait()
    assert (await rows(engine))[0]["address"] == "http://10.0.0.1:1"
    await service.replicas.stop()


async def test_a_stop_without_a_database_is_no_error() -> None:
    class Away:
        def begin(self) -> Any:
            raise OSError("away")

    await Service(cast("Any", Away())).replicas.stop()
