"""Which edges of a client graph are pushed: to whom our task has a link, and whom its peers reach."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tenfold_core import errors
from tenfold_services.exchange.plan import ExchangePlan
from tenfold_services.master.arrangement import Arrangement, Part, able_to_bundle, arrange

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN, PS, OTHER, FAR = (f"/job:{job}/replica:0/task:0" for job in ("worker", "ps", "other", "far"))


class Peer:
    """A worker with links: `connects` and `reaches` are what it answers, an error, or None for never."""

    is_linked = True

    def __init__(self, connects: Any = True, reaches: Any = (), can: tuple[str, ...] = ()) -> None:
        self.connects, self.reaches, self._can = connects, reaches, can
        self.asked: list[list[str]] = []

    async def _answer(self, answer: Any) -> Any:
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def connect(self) -> bool:
        return cast("bool", await self._answer(self.connects))

    async def arrange(self, tasks: list[str]) -> Sequence[str]:
        self.asked.append(tasks)
        return cast("Sequence[str]", await self._answer(self.reaches))

    def can(self, ability: str) -> bool:
        return ability in self._can

    def start_plan(self) -> None: ...


class Local:
    """Our own worker."""

    def __init__(self, inline: bool = True) -> None:
        self.inline = inline
        self.asked: list[tuple[str, str]] = []

    def start_run(self) -> None: ...

    def runs_inline(self, session: str, graph: str) -> bool:
        self.asked.append((session, graph))
        return self.inline


def part(task: str, worker: Any, sends: dict[str, str], loop_sends: dict[str, str] | None = None) -> Part:
    """Its handle is that of its task's job."""
    made = Part(task, sends=sends, loop_sends=loop_sends or {}, handle=f"graph of {task.split('/')[1]}")
    made.worker = worker
    return made


async def arranged(*parts: Part, local: Any = None, seconds: float = 30.0) -> Arrangement:
    found = await arrange("s", list(parts), OWN, local or Local(), seconds)
    assert found is not None
    return found


def three(ps: Peer, other: Peer) -> list[Part]:
    """Edges in all directions."""
    own = part(OWN, Local(), {"w>p": PS, "w>o": OTHER, "w>p2": PS})
    own.feed_keys, own.fetch_keys = {"x:0": "feed x"}, {"y:0": "fetch y"}
    return [part(PS, ps, {"p>w": OWN, "p>o": OTHER}), part(OTHER, other, {"o>w": OWN, "o>p": PS}), own]


async def test_all_is_pushed_where_all_reach_each_other() -> None:
    ps, other, local = Peer(reaches=[OTHER]), Peer(reaches=[PS]), Local()
    parts = three(ps, other)
    found = await arranged(*parts, local=local)

    assert found == Arrangement(
        OWN,
        cast("Any", local),
        {
            PS: ExchangePlan(
                "s", "graph of job:ps", feeds=(), fetches=(), answered=("p>w",), pushed=((OTHER, ("p>o",)),),
                expected=("o>p", "w>p", "w>p2"), brought=("w>p", "w>p2"),
            ),
            OTHER: ExchangePlan(
                "s", "graph of job:other", feeds=(), fetches=(), answered=("o>w",), pushed=((PS, ("o>p",)),),
                expected=("p>o", "w>o"), brought=("w>o",),
            ),
            OWN: ExchangePlan(
                "s", "graph of job:worker", feeds=("feed x",), fetches=("fetch y",), answered=(),
                pushed=((OTHER, ("w>o",)), (PS, ("w>p", "w>p2"))), expected=("p>w", "o>w"), brought=(),
            ),
        },
        cast("Any", {PS: ps, OTHER: other}),
        frozenset((PS, OTHER, OWN)),
    )  # fmt: skip
    assert (ps.asked, other.asked) == ([[OTHER]], [[PS]])


async def test_without_a_part_of_ours_the_others_push_to_each_other() -> None:
    ps, other = Peer(reaches=[OTHER]), Peer()
    found = await arranged(part(PS, ps, {"p>o": OTHER}), part(OTHER, other, {}))

    assert list(found.plans) == [PS, OTHER]
    assert found.plans[PS].pushed == {"p>o": OTHER}
    assert found.plans[OTHER].expected == {"p>o"}
    assert found.plans[OTHER].call_keys == ()
    assert other.asked == [], "it sends nothing"
    assert not found.own_first()


@pytest.mark.parametrize(
    ("parts", "local"),
    [
        pytest.param([part(OWN, Peer(), {})], Local(), id="one part of ours"),
        pytest.param([part(PS, SimpleNamespace(), {})], Local(), id="no peer with links"),
        pytest.param([part(PS, Peer(connects=False), {})], Local(), id="no link"),
        pytest.param([part(PS, Peer(), {})], SimpleNamespace(), id="a worker of ours that takes no plan"),
    ],
)
async def test_where_nothing_can_be_pushed_there_is_no_plan(parts: list[Part], local: Any) -> None:
    assert await arrange("s", parts, OWN, local, 30.0) is None


@pytest.mark.parametrize("connects", [False, errors.unavailable("down"), None])
async def test_a_task_without_a_link_exchanges_as_tensorflow_does(connects: Any) -> None:
    ps, other = Peer(reaches=[OTHER]), Peer(connects)
    found = await arranged(*three(ps, other), seconds=30.0 if connects is not None else 0.01)

    assert list(found.plans) == [PS, OWN]
    assert list(found.workers) == [PS]
    assert found.plans[PS].answer_keys == ("p>w",)
    assert found.plans[PS].pushed == {}
    assert found.plans[PS].expected == {"w>p", "w>p2"}
    assert found.plans[OWN].pushed == {"w>p": PS, "w>p2": PS}
    assert found.plans[OWN].expected == {"p>w"}
    assert found.forgetful == frozenset(), "each sends something that is not pushed"
    assert other.asked == []


@pytest.mark.parametrize("reaches", [[], [OWN, FAR], errors.unavailable("down"), None])
async def test_a_task_that_does_not_reach_the_other_pushes_to_us_alone(reaches: Any) -> None:
    ps, other = Peer(reaches=reaches), Peer(reaches=[PS])
    found = await arranged(*three(ps, other), seconds=30.0 if reaches is not None else 0.01)

    assert found.plans[PS].answer_keys == ("p>w",)
    assert found.plans[PS].pushed == {}
    assert found.plans[OTHER].expected == {"w>o"}
    assert found.plans[OTHER].pushed == {"o>p": PS}
    assert found.forgetful == {OTHER, OWN}


async def test_what_a_loop_sends_is_never_pushed_and_its_task_is_told_to_forget() -> None:
    found = await arranged(
        part(PS, Peer(), {"p>w": OWN}, {"again": OWN}), part(OTHER, Peer(), {"o>w": OWN}), part(OWN, Local(), {})
    )

    assert found.plans[PS].answer_keys == ("p>w",)
    assert found.plans[OWN].expected == {"p>w", "o>w"}
    assert found.forgetful == {OTHER, OWN}


async def test_a_part_of_a_task_without_links_gets_no_plan() -> None:
    found = await arranged(part(FAR, SimpleNamespace(), {"f>w": OWN}), part(PS, Peer(), {"p>f": FAR}))

    assert list(found.plans) == [PS]
    assert found.plans[PS].pushed == {}
    assert found.forgetful == frozenset()


# -- a plan that is there ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sends", "inline", "first"), [({"w>p": PS}, True, True), ({"w>p": PS}, False, False), ({}, True, False)]
)
async def test_our_part_goes_first_if_it_sends_and_is_short(sends: dict[str, str], inline: bool, first: bool) -> None:
    local = Local(inline)
    found = await arranged(part(PS, Peer(), {}), part(OWN, local, sends), local=local)

    assert found.own_first() == first
    assert local.asked == ([("s", "graph of job:worker")] if sends else [])


async def test_it_is_open_while_all_its_links_are() -> None:
    ps, other = Peer(reaches=[OTHER]), Peer(reaches=[PS])
    found = await arranged(*three(ps, other))
    assert found.is_open
    other.is_linked = False
    assert not found.is_open


# -- bundles ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peer", "able"),
    [
        (Peer(can=("bundles", "trace")), True),
        (Peer(can=("trace",)), False),
        (Peer(connects=False, can=("bundles",)), False),
        (Peer(connects=errors.UnavailableError(None, None, "gone"), can=("bundles",)), False),
        (Peer(connects=None, can=("bundles",)), False),
        (Local(), False),
    ],
)
async def test_tasks_that_say_so_over_a_link_know_bundles_and_so_does_our_own(peer: Any, able: bool) -> None:
    workers = {OWN: Local(), PS: peer, OTHER: Peer(can=("bundles",))}
    found = await able_to_bundle(workers, OWN, 0.05 if peer_waits(peer) else 30)
    assert found == {OWN, OTHER} | ({PS} if able else set())


def peer_waits(peer: Any) -> bool:
    return isinstance(peer, Peer) and peer.connects is None


async def test_only_those_are_asked_whose_tensors_cross_together() -> None:
    assert await able_to_bundle({PS: Peer(can=("bundles",))}, OWN, 30) == {OWN, PS}
    assert await able_to_bundle({}, OWN, 30) == {OWN}
