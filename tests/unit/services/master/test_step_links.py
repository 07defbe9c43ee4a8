"""Sets of links of one step: one wait for all of them, and what a link that ends does to it."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tenfold_core import errors
from tenfold_services.master import step_links as lines_module
from tenfold_services.master.arrangement import Arrangement
from tenfold_services.master.caller_cluster_steps import CallerClusterGraph
from tenfold_services.master.step_links import StepLinkPool, StepLinks

if TYPE_CHECKING:
    from collections.abc import Iterator


class FakeLink:
    """As much of a StepLink as StepLinks uses, over a socket pair."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.heard: list[bytes] = []
        self.closed = False
        self.looked_for_life = self.ended = 0
        self.on_notice: Any = None

    def fileno(self) -> int:
        return self.ours.fileno()

    def receive(self) -> None:
        data = self.ours.recv(100)
        self.heard.append(data)
        self.closed = not data

    def check_life(self) -> None:
        self.looked_for_life += 1

    def end(self) -> None:
        self.ended += 1
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def links() -> Iterator[dict[str, FakeLink]]:
    made = {"ps:0": FakeLink(), "ps:1": FakeLink()}
    yield made
    for link in made.values():
        link.end()


@pytest.fixture
def lines(links: dict[str, FakeLink], monkeypatch: pytest.MonkeyPatch) -> StepLinks:
    monkeypatch.setattr(lines_module, "_TICK", 1)
    made = StepLinks()
    for task, link in links.items():
        made.put(task, cast("Any", link))
    return made


def test_one_wait_reads_from_all_that_have_something(lines: StepLinks, links: dict[str, FakeLink]) -> None:
    for link in links.values():
        link.theirs.send(b"x")
    lines.receive()
    assert [link.heard for link in links.values()] == [[b"x"], [b"x"]]


def test_peers_that_stay_silent_are_looked_after(lines: StepLinks, links: dict[str, FakeLink]) -> None:
    lines.receive()
    assert [link.looked_for_life for link in links.values()] == [1, 1]
    links["ps:1"].theirs.send(b"x")
    lines.receive()
    assert [link.looked_for_life for link in links.values()] == [1, 1]


def test_a_link_that_ended_is_no_longer_waited_for(lines: StepLinks, links: dict[str, FakeLink]) -> None:
    links["ps:0"].theirs.close()
    lines.receive()
    assert links["ps:0"].heard == [b""]
    assert not lines.has(["ps:1", "ps:0"])
    assert lines.has(["ps:1"])
    lines.receive()
    assert links["ps:0"].heard == [b""], "what is at its end is always ready"
    links["ps:1"].theirs.send(b"x")
    lines.receive()
    assert links["ps:1"].heard == [b"x"]


def test_a_new_link_takes_the_place_of_the_old_one(lines: StepLinks, links: dict[str, FakeLink]) -> None:
    lines.receive()
    new = FakeLink()
    lines.put("ps:0", cast("Any", new))
    assert links["ps:0"].ended == 1
    new.theirs.send(b"x")
    lines.receive()
    assert new.heard == [b"x"]
    new.end()


def test_a_task_on_our_core_is_called_last() -> None:
    others: Any = {f"ps:{index}": SimpleNamespace() for index in range(3)}
    pushes = Arrangement("here", cast("Any", None), {"here": cast("Any", None), **others}, {}, frozenset())
    graph = CallerClusterGraph(*(cast("Any", None),) * 3, pushes, *(cast("Any", None),) * 2)
    assert graph.order == ("ps:0", "ps:1", "ps:2")
    graph.call_last("ps:0")
    assert graph.order == ("ps:1", "ps:2", "ps:0")
    graph.call_last("ps:2")
    assert graph.order == ("ps:1", "ps:0", "ps:2")


def test_links_are_ended_and_hear_nothing_more(lines: StepLinks, links: dict[str, FakeLink]) -> None:
    for link in links.values():
        link.on_notice = print
    lines.end()
    assert lines.links == {}
    assert [(link.ended, link.on_notice) for link in links.values()] == [(1, None), (1, None)]
    assert not lines.has(["ps:0"])
    assert lines.has([])


def test_a_task_s_link_goes_without_another_one(lines: StepLinks, links: dict[str, FakeLink]) -> None:
    lines.put("ps:0", None)
    assert links["ps:0"].ended == 1
    assert list(lines.links) == ["ps:1"]
    lines.put("ps:7", None)  # it had none
    assert list(lines.links) == ["ps:1"]


def test_ends_are_noticed_without_waiting(lines: StepLinks, links: dict[str, FakeLink]) -> None:
    lines.notice_ends()
    assert [link.heard for link in links.values()] == [[], []]
    assert [link.looked_for_life for link in links.values()] == [0, 0]
    links["ps:0"].theirs.close()
    links["ps:1"].theirs.send(b"x")
    lines.notice_ends()
    assert [link.heard for link in links.values()] == [[b""], [b"x"]]
    assert not lines.has(["ps:0"])
    lines.notice_ends()
    assert links["ps:0"].heard == [b""], "it is looked at no more"


# -- the sets of a task ------------------------------------------------------------------------------------------------


class Dialled:
    """Worker of a task: `ask_link` as the event loop runs it."""

    def __init__(self, task: str, error: BaseException | None = None) -> None:
        self.task, self.address, self.error = task, f"{task}.example:1", error
        self.asked = 0

    async def ask_link(self, settings: Any) -> str:
        assert settings is SETTINGS
        self.asked += 1
        if self.error is not None:
            raise self.error
        return f"answer of {self.task}"


SETTINGS: Any = SimpleNamespace(retry_seconds=5.0)


class Clock:
    """In place of the module's `time`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(lines_module, "time", SimpleNamespace(monotonic=lambda: self.now))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """What links were opened with; they are FakeLinks."""
    found: list[tuple[Any, ...]] = []
    made: list[FakeLink] = []

    def connect(*arguments: Any) -> FakeLink:
        found.append(arguments)
        made.append(FakeLink())
        return made[-1]

    monkeypatch.setattr(lines_module, "connect_for_steps", connect)
    yield found
    for link in made:
        link.end()


def pool_of() -> StepLinkPool:
    return StepLinkPool(asyncio.get_running_loop(), SETTINGS, cast("Any", "credentials"))


async def take(pool: StepLinkPool, *workers: Dialled) -> StepLinks | None:
    return await asyncio.to_thread(pool.take, cast("Any", {worker.task: worker for worker in workers}))


async def test_links_are_opened_once_and_lent_again(dialled: list[Any], clock: Clock) -> None:
    pool, ps, other = pool_of(), Dialled("ps:0"), Dialled("ps:1")
    lines = await take(pool, ps)
    assert lines is not None
    assert dialled == [("answer of ps:0", "ps:0.example:1", "ps:0", SETTINGS, "credentials")]
    pool.give(lines)
    assert lines.given_back == clock.now

    assert await take(pool, ps, other) is lines
    assert list(lines.links) == ["ps:0", "ps:1"]
    assert (ps.asked, other.asked) == (1, 1)


async def test_the_links_used_last_are_lent_first(dialled: list[Any], clock: Clock) -> None:
    pool = pool_of()
    first, second = await take(pool), await take(pool)
    assert first is not None
    assert second is not None
    assert first is not second
    pool.give(first)
    pool.give(second)
    assert await take(pool) is second


async def test_no_more_sets_are_made_than_a_task_keeps(dialled: list[Any], clock: Clock) -> None:
    pool = pool_of()
    made = [await take(pool) for _ in range(17)]
    assert [lines is not None for lines in made] == [True] * 16 + [False]
    assert made[3] is not None
    pool.give(made[3])
    assert await take(pool) is made[3]


@pytest.mark.parametrize(("idle", "noticed"), [(0.1, False), (0.101, True)])
async def test_links_that_were_unused_are_looked_at_first(
    dialled: list[Any], clock: Clock, idle: float, noticed: bool
) -> None:
    clock.now = 0.0
    pool, ps = pool_of(), Dialled("ps:0")
    lines = await take(pool, ps)
    assert lines is not None
    link = cast("FakeLink", lines.links["ps:0"])
    pool.give(lines)
    link.theirs.close()
    clock.now = idle

    assert await take(pool, ps) is lines
    assert link.heard == ([b""] if noticed else [])
    assert (lines.links["ps:0"] is not cast("Any", link)) == noticed
    assert ps.asked == 1 + noticed


async def test_a_task_that_cannot_be_reached_is_not_tried_for_a_while(
    dialled: list[Any], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tenfold.master")
    pool, ps = pool_of(), Dialled("ps:0", errors.unavailable("down"))
    for now, asked, text in (
        (1000.0, 1, "down"),
        (1004.9, 1, "ps:0 could not be reached by a link a moment ago."),
        (1005.0, 2, "down"),
    ):
        clock.now = now
        caplog.clear()
        assert await take(pool, ps) is None
        assert ps.asked == asked
        assert caplog.messages == [f"A step takes the scheduled path: {text}"]
    assert [lines is not None for lines in [await take(pool) for _ in range(16)]] == [True] * 16, "its set came back"


async def test_a_defect_gives_the_links_back_and_is_raised(dialled: list[Any], clock: Clock) -> None:
    pool = pool_of()
    with pytest.raises(ZeroDivisionError):
        await take(pool, Dialled("ps:0", ZeroDivisionError()))
    assert len(pool._free) == 1


async def test_a_pool_that_is_closed_ends_its_links(dialled: list[Any], clock: Clock) -> None:
    pool = pool_of()
    lent, free = await take(pool, Dialled("ps:0")), await take(pool, Dialled("ps:1"))
    assert lent is not None
    assert free is not None
    of_lent, of_free = (cast("FakeLink", next(iter(lines.links.values()))) for lines in (lent, free))
    pool.give(free)
    pool.close()
    assert (of_free.ended, of_lent.ended) == (1, 0)
    assert await take(pool) is None
    pool.give(lent)
    assert of_lent.ended == 1
    assert pool._free == []


# -- the event loop ----------------------------------------------------------------------------------------------------


async def test_a_step_asks_the_event_loop() -> None:
    pool = pool_of()

    async def answer() -> str:
        return "yes"

    async def fail() -> None:
        raise errors.aborted("no")

    assert await asyncio.to_thread(pool.ask, answer) == "yes"
    with pytest.raises(errors.AbortedError, match="no"):
        await asyncio.to_thread(pool.ask, fail)


async def test_an_answer_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "_ASK_SECONDS", 0.01)
    cancelled = asyncio.Event()

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(errors.DeadlineExceededError, match="did not answer in time"):
        await asyncio.to_thread(pool_of().ask, never)
    async with asyncio.timeout(30):
        await cancelled.wait()


async def test_what_is_told_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    pool, told, gate = pool_of(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        told.set()
        await gate.wait()
        raise errors.aborted("nobody asks")

    await asyncio.to_thread(pool.tell, work)
    async with asyncio.timeout(30):
        await told.wait()
    (task,) = asyncio.all_tasks() - {asyncio.current_task()}
    gate.set()
    with pytest.raises(errors.AbortedError):
        await task
    assert caplog.records == []


def test_without_an_event_loop_nothing_is_begun() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    pool = StepLinkPool(loop, SETTINGS, cast("Any", None))

    async def work() -> None: ...

    with pytest.raises(errors.UnavailableError, match="does not run"):
        pool.ask(work)
    pool.tell(work)  # each closes its coroutine, which would warn else
