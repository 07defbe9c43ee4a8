"""Who is told, asked and believed when a task starts, is seen in a new life, or ends; against a scripted network."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_core import errors
from tenfold_services.finished import ANY_LIFE, FinishedTasks
from tenfold_services.peers import Peers
from tenfold_services.rpc import own_services

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_services.peers import Life

PS, FIRST, SECOND = (f"/job:{job}/replica:0/task:{index}" for job, index in (("ps", 0), ("worker", 0), ("worker", 1)))
CLUSTER: dict[str, Any] = {"ps": {0: ""}, "worker": {0: "", 1: ""}}
#: The incarnations of the tasks, unless a test says otherwise.
PS_LIFE, FIRST_LIFE, SECOND_LIFE = 10, 20, 30
GONE = errors.UnavailableError(None, None, "nothing is there")
SLOW = errors.DeadlineExceededError(None, None, "it does not answer")


class Network:
    """What each task answers, in turn, to ExchangeFinished; the last answer is kept. Notes what each was told."""

    def __init__(self, **answers: list[Any]) -> None:
        """By job and index, "worker0": (what it knows, its life), or an error."""
        self._answers = {f"/job:{name[:-1]}/replica:0/task:{name[-1]}": each for name, each in answers.items()}
        #: (task, what it was told), in order.
        self.told: list[tuple[str, dict[str, int]]] = []

    async def exchange(
        self, task: str, address: str, me: Life, known: Mapping[str, int], seconds: float, tokens: object
    ) -> tuple[dict[str, int], Life | None]:
        assert (address, me) == (f"at {task}", (PS, PS_LIFE))
        self.told.append((task, dict(known)))
        script = self._answers.get(task, [GONE])
        answer = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(answer, Exception):
            raise answer
        knows, life = answer
        return knows, life if life is None or isinstance(life, tuple) else (task, life)

    @property
    def asked(self) -> list[str]:
        return sorted(task for task, _ in self.told)


def network(monkeypatch: pytest.MonkeyPatch, **answers: list[Any]) -> Network:
    made = Network(**answers)
    monkeypatch.setattr(own_services, "exchange_finished", made.exchange)
    return made


def of_ps(known: Mapping[str, int] | None = None) -> tuple[FinishedTasks, Peers]:
    """The parameter server's, which knows `known`."""
    finished = FinishedTasks(PS, lambda: CLUSTER)
    finished.note(known or {})
    return finished, Peers(finished, PS_LIFE, lambda task: f"at {task}", seconds=1.0)


async def test_a_task_that_starts_knows_what_another_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(monkeypatch, worker0=[({SECOND: SECOND_LIFE}, FIRST_LIFE)])
    finished, peers = of_ps()

    peers.greet([PS, FIRST, SECOND])
    await peers.settled()

    assert finished.known == {SECOND: SECOND_LIFE}
    assert net.asked == [FIRST, SECOND], "and not itself, nor one that is gone again"


async def test_who_answers_is_believed_more_than_what_is_said_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second worker is back, which the first has missed."""
    network(monkeypatch, worker0=[({SECOND: 29, FIRST: FIRST_LIFE}, FIRST_LIFE)], worker1=[({}, SECOND_LIFE)])
    finished, peers = of_ps()
    ends: list[bool] = []
    finished.on_change = lambda: ends.append(finished.may_end())

    peers.greet([FIRST, SECOND])
    await peers.settled()

    assert finished.known == {FIRST: FIRST_LIFE}
    assert not any(ends)


async def test_only_a_task_that_is_slow_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(monkeypatch, worker0=[SLOW, SLOW, ({SECOND: SECOND_LIFE}, FIRST_LIFE)], worker1=[GONE])
    finished, peers = of_ps()

    peers.greet([FIRST, SECOND])
    await peers.settled()

    assert net.asked == [FIRST, FIRST, FIRST, SECOND]
    assert SECOND in finished


async def test_a_task_that_never_answers_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(monkeypatch, worker0=[SLOW])
    _, peers = of_ps()

    peers.greet([FIRST])
    await peers.settled()
    peers.greet([FIRST])
    await peers.settled()

    assert len(net.told) == 4


async def test_a_task_at_a_new_address_is_greeted_unless_it_was_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(monkeypatch)
    finished = FinishedTasks(PS, lambda: CLUSTER)
    known: dict[str, str] = {}
    peers = Peers(finished, PS_LIFE, lambda task: known.get(task, ""), seconds=1.0)

    peers.greet([FIRST, SECOND])
    await peers.settled()
    assert not net.told, "no task has an address"

    finished.met(FIRST, FIRST_LIFE)
    known |= {task: f"at {task}" for task in (FIRST, SECOND)}
    peers.greet([FIRST, SECOND])
    await peers.settled()
    assert net.asked == [SECOND]


async def test_a_new_life_is_told_what_is_known_and_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(monkeypatch, worker0=[({SECOND: SECOND_LIFE}, 21)])
    finished, peers = of_ps()

    finished.answered(FIRST, FIRST_LIFE)
    await peers.settled()
    assert not net.told, "there is nothing to tell"

    finished.note({SECOND: 29})
    finished.answered(FIRST, FIRST_LIFE)
    await peers.settled()
    assert not net.told, "it is the same life"

    finished.answered(FIRST, 21)
    await peers.settled()
    assert net.told == [(FIRST, {SECOND: 29})]
    assert finished.known == {SECOND: SECOND_LIFE}


async def test_a_task_that_claims_many_lives_is_called_once_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(monkeypatch, worker0=[GONE])
    finished, peers = of_ps({SECOND: SECOND_LIFE})

    for incarnation in range(1, 1000):
        finished.answered(FIRST, incarnation)
    await peers.settled()
    assert net.asked == [FIRST]

    finished.answered(FIRST, 1000)
    await peers.settled()
    assert net.asked == [FIRST, FIRST]


async def test_the_end_is_told_to_those_that_have_not_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(monkeypatch, worker0=[({}, FIRST_LIFE)])
    finished, peers = of_ps({SECOND: SECOND_LIFE})

    await peers.tell([PS, FIRST, SECOND])

    assert net.told == [(FIRST, {SECOND: SECOND_LIFE, PS: PS_LIFE})]
    assert finished.known[PS] == PS_LIFE, "so who asks meanwhile hears it too"


async def test_only_a_task_that_is_slow_is_told_of_the_end_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = network(monkeypatch, worker0=[SLOW, SLOW, ({}, FIRST_LIFE)], worker1=[GONE])
    _, peers = of_ps()

    await peers.tell([FIRST, SECOND])

    assert asked.asked == [FIRST] * 3 + [SECOND]


async def test_another_task_at_that_address_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network(monkeypatch, worker0=[({SECOND: SECOND_LIFE}, ("/job:worker/replica:0/task:1", 7))])
    finished, peers = of_ps()

    await peers.ask(FIRST)

    assert not finished.known
    assert f"{FIRST} is not at at {FIRST}: that is {SECOND}" in caplog.text


async def test_a_task_that_does_not_say_who_it_is_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    network(monkeypatch, worker0=[({SECOND: ANY_LIFE}, None)])
    finished, peers = of_ps()

    await peers.ask(FIRST)

    assert SECOND in finished


async def test_what_is_under_way_ends_with_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def never(*_: Any) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    monkeypatch.setattr(own_services, "exchange_finished", never)
    finished, peers = of_ps({SECOND: SECOND_LIFE})
    finished.answered(FIRST, FIRST_LIFE)
    await begun.wait()

    await peers.close()
    finished.answered(FIRST, 21)

    assert cancelled.is_set()
    await peers.settled()


async def test_who_has_closed_says_hello_to_nobody_more(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(monkeypatch, worker0=[({}, FIRST_LIFE)])
    _, peers = of_ps()
    await peers.close()

    peers.greet([FIRST])
    await peers.settled()

    assert net.told == []


async def test_a_task_that_has_not_registered_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = network(monkeypatch)
    peers = Peers(FinishedTasks(PS, lambda: CLUSTER), PS_LIFE, lambda task: "", seconds=1.0)
    with pytest.raises(errors.UnavailableError, match=f"^{FIRST} cannot be asked: it has not registered yet.$"):
        await peers.ask(FIRST)
    assert asked.told == []


async def test_a_fault_in_saying_hello_is_logged_and_spares_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fault = ValueError("a fault")
    network(monkeypatch, worker0=[fault], worker1=[({FIRST: FIRST_LIFE}, SECOND_LIFE)])
    finished, peers = of_ps()
    caplog.set_level(logging.INFO)

    peers.greet([FIRST, SECOND])
    await peers.settled()

    assert finished.known == {FIRST: FIRST_LIFE}
    failed, told = caplog.records
    assert (failed.getMessage(), failed.levelno) == (f"{PS} could not say hello", logging.ERROR)
    assert failed.exc_info is not None
    assert failed.exc_info[1] is fault
    assert told.getMessage() == f"{PS} was told that these have finished: {FIRST}"


async def test_what_is_no_news_is_not_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    network(monkeypatch, worker0=[({}, FIRST_LIFE)])
    _, peers = of_ps()
    caplog.set_level(logging.INFO)
    await peers.ask(FIRST)
    peers.greet([SECOND])  # where nothing is
    await peers.settled()
    assert caplog.records == []


async def test_so_many_tasks_are_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [f"/job:worker/replica:0/task:{index}" for index in range(20)]
    finished = FinishedTasks(PS, lambda: {"worker": range(20)})
    peers = Peers(finished, PS_LIFE, lambda task: f"at {task}", seconds=1.0)
    at_once, asked, full, go = 0, 0, asyncio.Event(), asyncio.Event()

    async def exchange(*_: Any) -> Any:
        nonlocal at_once, asked
        at_once, asked = at_once + 1, asked + 1
        assert at_once <= 16
        if at_once == 16:
            full.set()
        await go.wait()
        at_once -= 1
        return {}, None

    monkeypatch.setattr(own_services, "exchange_finished", exchange)
    peers.greet(tasks)
    await full.wait()
    go.set()
    await peers.settled()
    assert asked == 20
