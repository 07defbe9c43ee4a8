"""The gate before a model: requests side by side, a change alone, and none that is held back for long."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from tenfold_control_api.serving.gate import Gate


async def test_requests_go_through_side_by_side() -> None:
    gate = Gate()
    async with gate.through(), gate.through():
        pass


async def test_a_change_waits_for_those_inside_and_holds_others_back() -> None:
    gate, order = Gate(), []
    inside, leave = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with gate.through():
            inside.set()
            await leave.wait()
            order.append("first")

    async def change() -> None:
        async with gate.alone(60.0) as is_alone:
            order.append(f"change {is_alone}")

    async def second() -> None:
        async with gate.through():
            order.append("second")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(first())
        await inside.wait()
        tasks.create_task(change())
        await asyncio.sleep(0)
        tasks.create_task(second())
        await asyncio.sleep(0)
        assert order == []
        leave.set()
    assert order == ["first", "change True", "second"]


async def test_who_is_not_alone_in_time_lets_others_in() -> None:
    gate = Gate()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(gate.through())
        async with gate.alone(0.001) as is_alone:
            assert not is_alone
        async with gate.through():
            pass
    async with gate.alone(0.001) as is_alone:
        assert is_alone
