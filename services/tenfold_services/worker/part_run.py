"""The driver of a part: takes one run of one program from its start to its end, turn by turn.

A pure machine, without event loop, thread or lock. A waiter calls `turn` and does what the answer says:

    DONE     every node has run; `fetched` has the values
    WAITS    go on once `arrived` or `fail` was called, or `wake` calls
    LONG     the next stretch does not belong on this thread (run_policy.py): `advance` or `turn` on another one
    raises   the error that ends the run: the first one

The waiters are graph_run.py, functions.py and, on callers' threads, those of services: master/; docs/map.md has them.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold_compiler.part.part_graph import node_error

from .execution import StepIO
from .run_policy import CALLER, EVENT_LOOP, FUNCTION_STRETCHES, clock, held

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold_compiler.part.edges import Edges
    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.program import Program
    from tenfold_compiler.write.region_schedule import Wanted
    from tenfold_kernels.resources.waiting import Waiting

    from ..interfaces import Value
    from .execution import Execution
    from .loaded_program import LoadedProgram

DONE, WAITS, LONG = range(3)


class PartRun:
    """One run. `turn`, `advance`, `arrived` and `end` belong to one thread at a time. `fail`, and what a kernel's
    Waiting brings, may come from any thread.

    The three callbacks are the waiter's, set before the first turn that needs them and dropped at the end.
    """

    # Slots, set at the start: reading a default from the class costs several times as much.
    __slots__ = (
        "_away", "_early", "_held", "_inbox", "_longest", "_shapes", "_spent", "_timed", "_tokens", "_turns",
        "_waitings", "_was_away", "advanced", "ended", "error", "execution", "policy", "receive", "stop", "wake",
    )  # fmt: skip

    def __init__(
        self,
        program: LoadedProgram,
        feeds: Mapping[str, Value],
        send: Callable[[str, Any, bool], None],
        executor: Callable[[Program, Edges, StepIO], Execution] | None = None,
        brought: Mapping[str, tuple[Value, bool]] | None = None,
    ) -> None:
        """`send` takes what goes to other parts, as Rendezvous.send. `executor` makes the execution of a run that is
        not like others: traced, or partial. `brought` is what has come already, (value, is_dead) by key. Raises
        InvalidArgumentError for a feed that is missing or of a wrong type.
        """
        #: Not empty once the run is over or has to end; programs look at it now and then.
        self.stop: list[Any] = []
        io = StepIO(feeds, send, self.stop)
        self.execution: Execution | None = (
            program.start(io) if executor is None else executor(program.compiled, program.node_edges, io)
        )
        #: Its program's, and no other's.
        self.policy = program.policy
        #: The first one.
        self.error: BaseException | None = None
        self.ended = False
        #: Called with the key of a tensor that is wanted and has not come. None: it comes unasked.
        self.receive: Callable[[str], None] | None = None
        #: Called after each stretch but the last: what it has sent may go. In `turn`, on its thread.
        self.advanced: Callable[[], None] | None = None
        #: Called when a kernel's result has come, on any thread.
        self.wake: Callable[[], None] | None = None
        #: Come and not yet handed to the execution: (token, value, is_dead). FIFO.
        self._inbox: deque[tuple[Any, Any, bool]] = deque()
        #: Come before it was wanted: (value, is_dead) by key. This and the next two are made when they are needed.
        self._early: dict[str, tuple[Value, bool]] | None = dict(brought) if brought else None
        #: Wanted and not there: rendezvous key → the execution's token.
        self._tokens: dict[str, Any] | None = None
        #: Results of blocking kernels that have not come.
        self._waitings: dict[Waiting, PartNode] | None = None
        #: Those that have brought what a run that fails gives back; None too once the run has come to its end.
        self._held: list[Waiting] | None = None
        #: Nanoseconds computed, if it is timed: all, in so many turns, and in the longest one.
        self._timed = False
        self._spent = self._turns = self._longest = 0
        #: Execution.shapes at each stretch on the event loop; None before the first.
        self._shapes: list[int] | None = None
        #: `advance` is under way or queued elsewhere; it was, and `advanced` was not called since.
        self._away = self._was_away = False

    def turn(self, place: int) -> int:
        """Takes the run as far as it goes at `place` (run_policy.py): DONE, WAITS or LONG. Raises its first error."""
        execution, policy, inbox = self.execution, self.policy, self._inbox
        stretches, spent_before = 0, self._spent
        self._turns += 1
        assert execution is not None
        if self._was_away and self.error is None and not execution.done:
            self._was_away = False
            if self.advanced is not None:
                self.advanced()
        while True:
            wanted = execution.take_wanted()
            if wanted:
                self._take(execution, wanted)
            while inbox:
                execution.arrived(*inbox.popleft())
            if self.error is not None:
                raise self.error
            if not execution.ready:
                if not execution.done:
                    return WAITS
                break
            if place == EVENT_LOOP:
                shapes, seen, spent = execution.shapes, self._shapes, self._spent
                if seen is None:
                    self._timed = policy.times_next()
                    self._shapes = [shapes]
                elif seen[-1] != shapes:
                    seen.append(shapes)
                if not policy.is_short(shapes, held(spent, self._turns, spent - spent_before), execution.usual):
                    return LONG
                if self._timed:
                    begin = clock()
                    execution.advance(careful=True)
                    self._spent += clock() - begin
                    self._longest = max(self._longest, self._spent - spent_before)
                else:
                    execution.advance(careful=True)
            elif place == CALLER or stretches < FUNCTION_STRETCHES:
                # a caller's thread computes all of its run
                execution.advance()
            else:
                return LONG
            stretches += 1
            if execution.done:
                if self.error is not None:
                    raise self.error
                break
            if self.advanced is not None:
                self.advanced()
        if self._timed or (place == EVENT_LOOP and self._shapes is None):
            # a program that only hands on what it was given was never ready
            took = held(self._spent, self._turns, self._longest)
            if execution.usual is not None:
                policy.note(took)
            else:
                policy.note(took, self._shapes or (execution.shapes,), execution.pairs)
        self._held = None
        return DONE

    def leave(self) -> None:
        """From now until `came_back` the execution belongs to `advance`, on another thread."""
        self._away = True

    def advance(self) -> None:
        """The next stretch, on a thread that may be held for long. Raises its error: it is for `came_back`."""
        execution = self.execution
        assert execution is not None
        begin = clock()
        execution.advance()
        took = clock() - begin
        self._spent += took
        self._longest = max(self._longest, took)
        self._timed = self._was_away = True

    def came_back(self, error: BaseException | None) -> None:
        """`advance` is over, or was dropped before it began."""
        self._away = False
        if self.ended:
            self._drop()
        elif error is not None:
            self.fail(error)

    @property
    def can_go_on(self) -> bool:
        """Whether another turn would get further."""
        execution = self.execution
        return execution is not None and bool(self._inbox or self.error is not None or execution.ready)

    def arrived(self, key: str, value: Value, is_dead: bool) -> None:
        """A tensor has come, wanted already or not. Runs nothing."""
        if self.ended:
            return
        token = self._tokens.pop(key, None) if self._tokens else None
        if token is not None:
            self._inbox.append((token, value, is_dead))
        elif self._early is None:
            self._early = {key: (value, is_dead)}
        else:
            self._early[key] = value, is_dead

    def waitings(self) -> dict[Waiting, PartNode]:
        """Results of kernels that have not come, as far as this is known now. Any thread."""
        return dict(self._waitings or {})

    def missing(self) -> list[str]:
        """Rendezvous keys of tensors that are wanted and have not come. Any thread."""
        return list(self._tokens or {})

    def holds(self, waiting: int) -> bool:
        """Whether the result with this id() was given to it, and is given back if it fails. Any thread."""
        return any(id(each) == waiting for each in list(self._held or ()))

    def fail(self, error: BaseException) -> None:
        """The run has to end. The first error is kept, and raised by the next turn."""
        if self.error is None:
            self.error = error

    def fetched(self) -> dict[str, Value]:
        """The fetched values by rendezvous key, once DONE. Raises InvalidArgumentError for a dead one."""
        assert self.execution is not None
        return self.execution.fetched()

    def end(self) -> None:
        """The run is over, by whatever: nothing it waited for is taken any more, and what it holds is freed."""
        if self.ended:
            return
        self.ended = True
        self.stop.append(True)
        if self.wake is not None:
            self.receive = self.advanced = self.wake = None
        if self._waitings:
            for waiting in list(self._waitings):
                waiting.cancel()
        if not self._away:
            self._drop()

    def _drop(self) -> None:
        execution, self.execution = self.execution, None
        assert execution is not None
        self._early = None
        self._inbox.clear()
        held, self._held = self._held, None
        for waiting in held or ():
            waiting.cancel()
        if execution.done:
            return
        for wanted in execution.take_wanted():
            if wanted.waiting is not None:
                wanted.waiting.cancel()

    def _take(self, execution: Execution, wanted: Sequence[Wanted]) -> None:
        for one in wanted:
            key = one.key
            if one.waiting is not None:
                if self._waitings is None:
                    self._waitings, self._held = {}, []
                assert one.node is not None
                self._waitings[one.waiting] = one.node
                one.waiting.listen(partial(self._settled, one))
            elif self._early and key in self._early:
                execution.arrived(one.token, *self._early.pop(key))
            else:
                if self._tokens is None:
                    self._tokens = {}
                self._tokens[key] = one.token
                if self.receive is not None:
                    self.receive(key)

    def _settled(self, wanted: Wanted, outputs: Any, error: BaseException | None) -> None:
        """A Waiting's listener; any thread, maybe inside of `listen`."""
        assert wanted.waiting is not None
        assert wanted.node is not None
        if self._waitings:
            self._waitings.pop(wanted.waiting, None)
        held = self._held
        if wanted.waiting.give_back is not None and held is not None:
            # before the run is looked at: if it has ended meanwhile, one of the two gives it back
            held.append(wanted.waiting)
        if error is not None:
            self.fail(node_error(wanted.node, error))
        elif not self.ended:
            self._inbox.append((wanted.token, outputs, False))
        elif wanted.waiting.give_back is not None:
            wanted.waiting.cancel()
        wake = self.wake
        if wake is not None:
            wake()
