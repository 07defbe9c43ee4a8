"""A loop that loses a cancellation is ended all the same."""

from __future__ import annotations

import asyncio

from tenfold_control_api.loops import end_loop


async def test_a_loop_that_loses_its_first_cancellation() -> None:
    lost = asyncio.Event()
    entered = asyncio.Event()

    async def stubborn() -> None:
        while True:
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if lost.is_set():
                    raise
                lost.set()

    loop = asyncio.create_task(stubborn())
    await entered.wait()

    await end_loop(loop)

    assert lost.is_set()
    assert loop.cancelled()
    await end_loop(loop)
    await end_loop(None)
