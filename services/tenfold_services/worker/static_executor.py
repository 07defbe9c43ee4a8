"""Runs a part as generated code: regions in the order in which their tensors arrive.

A pure machine (program.Execution). A region that received a dead tensor is dead as a whole: without a Merge every node
below a dead one is dead, so its sends send dead and no kernel runs. Code with branches (compiler/write/flow_writer.py)
gets dead tensors like others, and runs. In TensorFlow: executor.cc, minus frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.values import DEAD, dead_fetch, read_only
from tenfold_compiler.write.region_schedule import AwaitedNode, Wanted
from tenfold_core.opdefs.runtime_ops import SEND_OPS
from tenfold_kernels.resources.state import Variable
from tenfold_kernels.resources.unfinished_steps import UnfinishedStep, UnfinishedSteps
from tenfold_kernels.resources.waiting import Waiting

from .execution import OBJECTS, StepIO, cancelled, check_leaves, extent, feed_value, kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.program import Program
    from tenfold_compiler.write.generated_code import GeneratedCode

    from ..interfaces import Value


class StaticExecution:
    """One step of a static program."""

    __slots__ = (
        "_branches", "_dead", "_fresh", "_generated", "_left", "_missing", "_program", "_rest", "_schedule", "_slots",
        "_unfinished", "_updates", "_values", "_waits", "_wanted", "done", "io", "pairs", "ready", "shapes", "usual",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        generated: GeneratedCode,
        io: StepIO,
        usual: frozenset[int] | None = None,
        unfinished: UnfinishedSteps | None = None,
    ) -> None:
        """`usual` is the RunPolicy's, `unfinished` the task's."""
        self.io, self.usual = io, usual
        self._program, self._generated = program, generated
        #: Values from outside the regions and across their borders, by slot.
        self._slots: list[Any] = [None] * generated.slot_count
        #: Of what came from outside; see Execution.
        self.shapes = 0
        self.pairs: list[int] = []
        #: A kernel has given what it took from elsewhere since `advance` was called: its size may be any.
        self._fresh = False
        for slot, feed in program.feed_slots:
            value = self._slots[slot] = feed_value(feed, io.feeds)
            self._note_shape(slot, value)
        #: Fetched values by number.
        self._values: list[Any] = [None] * len(program.transfers.fetch_keys)
        #: Regions that did not run, and Execution.done: there is none.
        self._left = len(program.regions)
        self.done = not self._left
        schedule = program.schedule
        assert schedule is not None
        self._schedule = schedule
        #: Per region: tensors and regions it still waits for; -1 once queued.
        self._waits = list(schedule.waits)
        #: Regions with updates that did not run, and this step among those of the task once one of them has begun.
        self._updates = set[int]() if unfinished is None else set(schedule.updates)
        self._unfinished: UnfinishedSteps | UnfinishedStep | None = unfinished
        #: Regions whose tensors are all here and that did not run. FIFO.
        self.ready = list(schedule.first)
        self._dead: set[int] = set()
        #: Code with branches looks itself at which tensors are dead.
        self._branches = program.flow is not None
        self._wanted: Sequence[Wanted] = schedule.wanted
        self._missing = len(schedule.wanted)
        #: What runs all regions that wait, as one; None once one of them ran by itself.
        self._rest = generated.rest

    def take_wanted(self) -> Sequence[Wanted]:
        wanted, self._wanted = self._wanted, ()
        return wanted

    def arrived(self, token: Any, value: Value, is_dead: bool) -> None:
        """`token` is (slot, region) as in `RegionSchedule.wanted`, or the AwaitedNode whose result it is."""
        if type(token) is AwaitedNode:
            self._settle(token, value)
            return
        slot, region = token
        self._missing -= 1
        if is_dead:
            if self._branches:
                self._slots[slot] = DEAD
            else:
                self._dead.add(region)
        else:
            self._slots[slot] = read_only(value)
            self._note_shape(slot, value)
        self._count_down(region)

    def _settle(self, start: AwaitedNode, result: Any) -> None:
        """What a node that may have to wait has given, as its kernel returns it."""
        self._fresh = True
        outputs = (result,) if len(start.outputs) == 1 else result or ()
        # one that is in a branch that was not taken: nothing reads it
        for slot, value in zip(start.outputs, outputs, strict=True) if result is not DEAD else ():
            self._slots[slot] = read_only(value)
            self._note_shape(slot, value)
        self._count_down(start.region)

    def _note_shape(self, slot: int, value: Value) -> None:
        pair = hash((slot, extent(value)))
        self.shapes ^= pair
        self.pairs.append(pair)
        if self.usual is not None and pair not in self.usual:
            self.usual = None

    def advance(self, careful: bool = False) -> None:
        schedule, queue, dead, stop = self._schedule, self.ready, self._dead, self.io.stop
        self._fresh = False
        while queue and not (careful and self._fresh):
            region = queue.pop(0)
            if self._rest is not None and schedule.waits[region]:
                if not self._missing and not dead:
                    # the regions that wait for nothing came first in the queue
                    queue.clear()
                    if self._updates:
                        self._begin_updates()
                    self._generated.call(self._rest, self._slots, self._send, self._fetch, stop)
                    self._left, self.done = 0, True
                    self._unfinished = None
                    if stop:
                        raise cancelled()
                    return
                self._rest = None
            if region in self._updates:
                self._begin_updates()
            if region in dead:
                self._send_dead(region)
                for start in schedule.starts[region] if schedule.starts else ():
                    dead.add(start.region)
                    self._count_down(start.region)
                for ask in schedule.asks[region] if schedule.asks else ():
                    # its tensor stays where it is, as TensorFlow leaves it
                    dead.add(ask.token[1])
                    self._count_down(ask.token[1])
            elif schedule.starts and schedule.starts[region]:
                self._run_and_wait(region, schedule.starts[region])
            else:
                self._run(region)
            if stop:
                self._unfinished = None
                raise cancelled()
            if schedule.asks and schedule.asks[region] and region not in dead:
                self._wanted = [*self._wanted, *schedule.asks[region]]
            if region in self._updates:
                self._updates.remove(region)
                if not self._updates:
                    self._unfinished = None
            self._left -= 1
            if not self._left:
                self.done = True
            for successor in schedule.successors[region]:
                if region in dead:
                    dead.add(successor)
                self._count_down(successor)

    def _begin_updates(self) -> None:
        if type(self._unfinished) is UnfinishedSteps:
            self._unfinished = self._unfinished.begin()

    def fetched(self) -> dict[str, Value]:
        return dict(zip(self._program.transfers.fetch_keys, self._values))  # noqa: B905 - of one length, and `strict` takes time

    def _count_down(self, region: int) -> None:
        self._waits[region] -= 1
        if not self._waits[region]:
            self.ready.append(region)

    def _run(self, region: int) -> None:
        generated = self._generated
        function = generated.functions[region]
        if function is not None:
            try:
                generated.call(function, self._slots, self._send, self._fetch, self.io.stop)
            except BaseException:
                self._unfinished = None
                raise

    def _run_and_wait(self, region: int, starts: Sequence[AwaitedNode]) -> None:
        """Runs a region and asks for what its blocking nodes wait for. When it fails, nothing waits any more."""
        slots = self._slots
        try:
            self._run(region)
            if self.io.stop:
                raise cancelled()
        except BaseException:
            for start in starts:
                result = slots[start.slot]
                if type(result) is Waiting:
                    result.cancel()
            raise
        waiting: list[Wanted] = []
        for start in starts:
            result, slots[start.slot] = slots[start.slot], None
            if type(result) is Waiting:
                waiting.append(Wanted(start, "", result, start.node))
            else:
                self._settle(start, result)
        self._wanted = [*self._wanted, *waiting]

    def _send(self, number: int, value: Value | Variable) -> None:
        # the receiver may be in this process: what was sent is not written to
        if type(value) is np.ndarray:
            value.flags.writeable = False
            if value.dtype is OBJECTS:
                check_leaves(value, self._program.transfers.send_keys[number])
        elif isinstance(value, Variable):
            value.check_initialized()
        elif value is DEAD:
            self.io.send(self._program.transfers.send_keys[number], None, True)
            return
        self.io.send(self._program.transfers.send_keys[number], value, False)

    def _fetch(self, number: int, value: Value) -> None:
        self._values[number] = kept(value)

    def _send_dead(self, region: int) -> None:
        for node in self._program.regions[region].nodes:
            if node.op not in SEND_OPS:
                continue
            if node.client_terminated:
                raise dead_fetch(self._program.transfers.keys[node.index])
            self.io.send(self._program.transfers.keys[node.index], None, True)
