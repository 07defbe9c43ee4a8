"""Requests that come again against a model: the work of a number is done once as long as the number is remembered."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from support.machines import short_and_long
from tenfold_core import errors
from tenfold_services.master.request_ids import RecentRequests

_NUMBERS, _ANSWERS, _BYTES = 4, 2, 40
keys = st.integers(1, 6)


@dataclass
class Work:
    """What a number stands for, from its first request on."""

    key: int
    first: asyncio.Task[bytes]
    end: asyncio.Future[bytes]
    again: list[asyncio.Task[bytes]] = field(default_factory=list)
    outcome: bytes | errors.OpError | None = None
    is_over: bool = False


def by(key: int) -> str:
    """The principal whose number it is."""
    return "even" if key % 2 == 0 else "odd"


class RecentRequestsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.recent: RecentRequests[bytes] = RecentRequests(_NUMBERS, _ANSWERS, _BYTES, len)
        #: The newest work of each number.
        self.works: dict[int, Work] = {}
        self.texts = iter(range(10**9))

    def teardown(self) -> None:
        for work in self.works.values():
            work.first.cancel()
            for task in work.again:
                task.cancel()
        self._settle()
        self.loop.close()

    def _settle(self) -> None:
        """Lets the loop go on until nothing can go on any more."""
        for _ in range(8):
            self.loop.run_until_complete(asyncio.sleep(0))

    @property
    def pending(self) -> list[Work]:
        return [work for work in self.works.values() if not work.is_over]

    @rule(key=keys)
    def request(self, key: int) -> None:
        known, begun = self.recent.knows(key, by(key)), []
        end = self.loop.create_future()

        async def work() -> bytes:
            begun.append(key)
            found: bytes = await end
            return found

        task = self.loop.create_task(self.recent.run(key, work, by(key)))
        self._settle()
        if not known:
            assert begun == [key]
            self.works[key] = Work(key, task, end)
            return
        assert not begun
        old = self.works[key]
        if not old.is_over:
            assert not task.done()
            old.again.append(task)
        else:
            self._check_again(old, task)

    def _check_again(self, work: Work, task: asyncio.Task[bytes]) -> None:
        """A request that came again gets the outcome, or is told that it is not there any more."""
        assert task.done()
        error = None if task.cancelled() else task.exception()
        if isinstance(work.outcome, bytes):
            if error is None:
                assert task.result() == work.outcome
            else:
                assert isinstance(error, errors.AbortedError)
        elif work.outcome is not None:
            assert isinstance(error, type(work.outcome))
            assert str(work.outcome.message) in str(error)
        else:
            assert isinstance(error, errors.AbortedError)

    def _over(self, work: Work) -> None:
        self._settle()
        work.is_over = True
        assert work.first.done()
        if not work.first.cancelled():
            work.first.exception()
        for task in work.again:
            self._check_again(work, task)

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), size=st.sampled_from((1, 9, 11)))
    def answer(self, data: st.DataObject, size: int) -> None:
        work = data.draw(st.sampled_from(self.pending))
        work.outcome = f"{next(self.texts)}".rjust(size, "x")[-size:].encode()
        work.end.set_result(work.outcome)
        self._over(work)
        assert work.first.result() == work.outcome

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        work = data.draw(st.sampled_from(self.pending))
        work.outcome = errors.invalid_argument(f"failure {next(self.texts)}")
        work.end.set_exception(work.outcome)
        self._over(work)

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        work = data.draw(st.sampled_from(self.pending))
        work.first.cancel()
        self._over(work)

    @rule(key=keys, size=st.sampled_from((1, 9, 11)))
    def served_at_once(self, key: int, size: int) -> None:
        if self.recent.knows(key, by(key)):
            return
        done = self.loop.create_future()
        answer = f"{next(self.texts)}".rjust(size, "x")[-size:].encode()
        self.recent.note(key, answer, by=by(key))
        task = self.loop.create_task(asyncio.sleep(0, answer))
        self._settle()
        self.works[key] = Work(key, task, done, outcome=answer, is_over=True)

    @invariant()
    def it_is_bounded(self) -> None:
        """Of works that are over no more are known than may be."""
        over = [work for work in self.works.values() if work.is_over and self.recent.knows(work.key, by(work.key))]
        assert len(over) <= _NUMBERS
        groups = self.recent._groups.values()
        assert sum(len(group.answered) for group in groups) == self.recent._answers <= _ANSWERS
        assert sum(group.bytes for group in groups) == self.recent._bytes <= _BYTES
        assert sum(len(group.entries) for group in groups) == self.recent._requests
        assert all(group.entries for group in groups)

    @invariant()
    def what_runs_is_known(self) -> None:
        assert all(self.recent.knows(work.key, by(work.key)) for work in self.pending)


TestRecentRequests, TestRecentRequestsLong = short_and_long(RecentRequestsMachine)
