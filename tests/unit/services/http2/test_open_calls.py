"""What the calls of a server share: handlers by path, places, and the end of all of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tenfold_core.access.gate import Gate
from tenfold_core.memory_limits import tensor_limit
from tenfold_services.http2 import open_calls
from tenfold_services.http2.handler import Failure
from tenfold_services.http2.http2_settings import Http2Settings
from tenfold_services.http2.open_calls import OpenCalls

if TYPE_CHECKING:
    import pytest


class Call:
    """An open call that is over once it is given up."""

    def __init__(self, calls: OpenCalls) -> None:
        self.calls, self.failures = calls, []

    def give_up(self, failure: Failure) -> None:
        self.failures.append(failure)
        self.calls.over(self)


class Wire:
    host = "10.0.0.1"


WIRE: Any = Wire()


def made(find: Any = lambda path: None, **settings: Any) -> OpenCalls:
    return OpenCalls(find, Http2Settings(**settings), Gate("here"))


async def test_bounds_are_those_of_the_settings_or_what_one_tensor_takes() -> None:
    calls = made()
    assert (calls.budget.limit, calls.most_unread) == (tensor_limit(), tensor_limit())
    calls = made(buffered_bytes=5, unread_bytes=6)
    assert (calls.budget.limit, calls.most_unread) == (5, 6)
    assert len(calls.allocate(100)) >= 100
    assert calls.loop is asyncio.get_running_loop()
    calls.recognized(WIRE)


async def test_strangers_have_the_settings_share() -> None:
    calls = made(strangers_share=0.5, strangers_seconds=0.25)
    assert (calls.strangers._share, calls.strangers._most) == (0.5, 0.25)


async def test_a_handler_is_looked_up_once() -> None:
    asked: list[str] = []

    def find(path: str) -> Any:
        asked.append(path)
        return f"handler of {path}" if path != "/none" else None

    calls = made(find)
    assert calls.handler(b"/a/B") == calls.handler(b"/a/B") == ("handler of /a/B", "/a/B")
    assert asked == ["/a/B"]
    assert calls.handler(b"/none") is None
    assert calls.handler(b"/none") is None
    assert asked == ["/a/B", "/none", "/none"], "what there is not is not remembered"
    assert calls.handler(b"/\xff") == ("handler of /\N{REPLACEMENT CHARACTER}", "/\N{REPLACEMENT CHARACTER}")


async def test_so_many_paths_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_calls, "_MOST_PATHS", 2)
    asked: list[str] = []

    def find(path: str) -> Any:
        asked.append(path)
        return path

    calls = made(find)
    for path in (b"a", b"b", b"c", b"a", b"b", b"c"):
        assert calls.handler(path) is not None
    assert asked == ["a", "b", "c", "c"]


async def test_a_thousand_of_a_server_that_serves_any() -> None:
    calls = made(lambda path: path)
    for number in range(1002):
        assert calls.handler(b"%d" % number) == (str(number), str(number))
    assert len(calls._handlers) == 1000


async def test_a_call_has_a_place_until_it_is_over() -> None:
    calls = made(calls=4)
    first, second, third = (Call(calls) for _ in range(3))
    assert calls.begin(first, WIRE) is None
    assert calls.begin(second, WIRE) is None
    refused = calls.begin(third, WIRE)
    assert refused is not None
    assert "This connection has 2 of 4 calls" in refused
    assert calls.open == {first: WIRE, second: WIRE, third: WIRE}
    calls.over(third)
    calls.over(third)
    calls.over(second)
    assert list(calls.open) == [first]
    assert calls.begin(second, WIRE) is None


async def test_all_are_ended_as_unavailable() -> None:
    calls = made()
    ends = [Call(calls) for _ in range(3)]
    for call in ends:
        calls.begin(call, WIRE)
    calls.end_all("it stops")
    assert [call.failures for call in ends] == [[Failure(14, "it stops")]] * 3
    assert calls.open == {}


async def test_waiting_for_the_last_call() -> None:
    calls = made()
    await calls.drained(0)
    first, second = Call(calls), Call(calls)
    calls.begin(first, WIRE)
    calls.begin(second, WIRE)
    waits = [asyncio.create_task(calls.drained(60.0)) for _ in range(2)]
    await asyncio.sleep(0)
    calls.over(first)
    await asyncio.sleep(0)
    assert not any(wait.done() for wait in waits)
    calls.over(second)
    async with asyncio.timeout(20):
        await asyncio.gather(*waits)


async def test_waiting_again_waits_again_and_has_an_end() -> None:
    calls = made()
    first, second = Call(calls), Call(calls)
    calls.begin(first, WIRE)
    wait = asyncio.create_task(calls.drained(60.0))
    await asyncio.sleep(0)
    calls.over(first)
    await wait
    calls.begin(second, WIRE)
    await calls.drained(0.001)
    assert list(calls.open) == [second]
