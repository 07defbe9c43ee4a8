"""Copies from the host run beside the kernels and are never too early, in whatever order streams run their work."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest

from tenfold_kernels.cuda._feeds import FeedBlocks

#: Steps of a program, each of which is fed.
STEPS = 8


@dataclass(eq=False)
class Event:
    done: bool = False


@dataclass(eq=False)
class FakeStream:
    """Work that waits until somebody runs it."""

    name: str
    work: deque[Any] = field(default_factory=deque)

    def record(self) -> Event:
        event = Event()
        self.work.append(event)
        return event

    def wait_event(self, event: Event) -> None:
        self.work.append(("wait", event))

    def put(self, act: Any) -> None:
        self.work.append(act)

    def run_one(self) -> bool:
        """Whether something could run."""
        if not self.work:
            return False
        first = self.work[0]
        if isinstance(first, tuple) and not first[1].done:
            return False
        self.work.popleft()
        if isinstance(first, Event):
            first.done = True
        elif callable(first):
            first()
        return True


class Memory:
    """A block of the pool, a list of one number, which goes back there with the last reference."""

    def __init__(self, pool: list[list[int]]) -> None:
        self.cell, self._pool = pool.pop() if pool else [-1], pool

    def __del__(self) -> None:
        self._pool.append(self.cell)


class Machine:
    """A GPU with two streams and a pool."""

    def __init__(self, most_bytes: int = 1000) -> None:
        self.kernels, self.copies = FakeStream("kernels"), FakeStream("copies")
        self.pool: list[list[int]] = []
        self.made = 0
        self.feeds = FeedBlocks(self.kernels, self.copies, self.allocate, most_bytes)
        self.read: list[tuple[int, int]] = []

    def allocate(self, nbytes: int) -> Memory:
        self.made += not self.pool
        return Memory(self.pool)

    def step(self, number: int, nbytes: int = 10) -> None:
        """A feed, a kernel that reads it, and the feed is gone."""
        block = self.feeds.take(nbytes)
        cell = block.cell
        self.copies.put(lambda: cell.__setitem__(0, number))
        self.feeds.copied()
        self.kernels.put(lambda: self.read.append((number, cell[0])))
        self.feeds.give_back(nbytes, block)

    def run(self, seed: int) -> None:
        """Runs all that waits, in an order that the streams and the events allow."""
        order = random.Random(seed)
        streams = [self.kernels, self.copies]
        while any(stream.work for stream in streams):
            order.shuffle(streams)
            assert any(stream.run_one() for stream in streams), "the streams wait for each other"


@pytest.mark.parametrize("most_bytes", [1000, 10, 0])
def test_each_kernel_reads_what_its_step_was_fed(most_bytes: int) -> None:
    for seed in range(20):
        machine = Machine(most_bytes)
        for number in range(STEPS):
            machine.step(number, 10 + number % 2 * seed)
        machine.run(seed)

        assert machine.read == [(number, number) for number in range(STEPS)]


def test_a_copy_that_did_not_wait_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled = 0
    for seed in range(20):
        machine = Machine()
        monkeypatch.setattr(machine.copies, "wait_event", lambda event: None)
        for number in range(STEPS):
            machine.step(number)
        machine.run(seed)
        spoiled += machine.read != [(number, number) for number in range(STEPS)]

    assert spoiled > 0


def test_a_copy_runs_while_the_step_before_it_does() -> None:
    machine = Machine()
    for number in range(2):
        machine.step(number)
    machine.run(0)
    machine.step(2)
    machine.step(3)

    # the kernels stand still
    while machine.copies.run_one():
        pass

    assert not machine.copies.work, "the copy of step 3 waits for a kernel of step 2"
    assert machine.made == 2


def test_blocks_of_few_sizes_and_bytes_are_kept() -> None:
    machine = Machine(most_bytes=25)
    taken = [machine.feeds.take(nbytes) for nbytes in (10, 10, 10, 10)]
    for block in taken:
        machine.feeds.give_back(10, block)

    assert [size for size, _, _ in machine.feeds._free] == [10, 10]
    machine.feeds.give_back(20, machine.allocate(20))
    assert [size for size, _, _ in machine.feeds._free] == [20]
    assert machine.feeds.clear()
    assert not machine.feeds.clear()
