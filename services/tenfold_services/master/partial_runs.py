"""Partial runs of a session: one step that takes its feeds and gives its fetches in several RunSteps.

Used by master_session.py. The feeds and fetches are all in the master's own part, which its own worker runs with
is_partial; the parts of other tasks run from the first call to their end. Rules and error texts follow DoPartialRun
and CheckFetches in TensorFlow's master_session.cc.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_core.node_names import parse_tensor_name
from tenfold_core.reached import reached
from tenfold_services.interfaces import ExecOptions, RunRequest
from tenfold_services.master.step_state import from_task, is_consequence, late

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tenfold_compiler.graph.runtime_graph import RuntimeGraph
    from tenfold_services.interfaces import RunGraphResult, Value
    from tenfold_services.master.arrangement import Part
    from tenfold_services.master.env import SessionEnv
    from tenfold_services.master.limits import MasterLimits
    from tenfold_services.master.peer_use import PeerUse
    from tenfold_services.master.session_graph import SessionGraph
    from tenfold_services.owned_tasks import OwnedTasks

    from .client_graph import ClientGraph, RunNames


class PartialStep:
    """One partial run, from its set-up on. On the event loop's thread only; calls may overlap."""

    def __init__(
        self, graph: ClientGraph, names: RunNames, step_id: int, env: SessionEnv, whole: SessionGraph, tasks: OwnedTasks
    ) -> None:
        """`whole` is the session's graph."""
        self.graph, self.step_id, self._names = graph, step_id, names
        self._session_handle, self._own_task, self._whole, self._tasks = env.handle, env.master.task, whole, tasks
        #: Canonical names that no call has fed, or fetched, yet.
        self._unfed, self._unfetched = set(names.feeds), set(names.fetches)
        #: The parts of other tasks, once the first call has started them.
        self._others: dict[str, asyncio.Task[RunGraphResult]] | None = None
        #: Calls of our own part that wait now.
        self._waiting: set[asyncio.Task[RunGraphResult]] = set()
        #: Calls of the client that wait now.
        self._calls = 0
        #: Bytes of what was fed; they count towards `peer` until the step is over. PartialRuns keeps both.
        self.held_bytes = 0
        self.peer: PeerUse | None = None
        #: Why the step failed; set once.
        self._error: errors.OpError | None = None

    @property
    def is_over(self) -> bool:
        """Everything was fed and fetched, and no call waits, or the step failed."""
        return self._error is not None or not (self._unfed or self._unfetched or self._calls)

    async def run(self, feeds: Mapping[str, Value], fetches: Sequence[str], seconds: float | None) -> list[Value]:
        """One call; the values in the order of `fetches`.

        Raises InvalidArgumentError for what was not set up, came before or cannot be computed yet, which leaves the
        step as it was; else the step's error, which ends it.
        """
        fed = {str(parse_tensor_name(name)): value for name, value in feeds.items()}
        fetched = [str(parse_tensor_name(name)) for name in fetches]
        if self._error is not None:
            raise self._error
        self._check(feeds, fetches)
        whole, unfed = self._whole.graph, self._unfed - fed.keys()
        await self._whole.aside(lambda: _check_computable(whole, fetched, unfed))
        if self._error is not None:
            raise self._error
        self._check(feeds, fetches)  # another call may have come meanwhile
        self._unfed -= fed.keys()
        self._unfetched -= set(fetched)
        self._calls += 1
        try:
            async with asyncio.timeout(seconds):
                values = await self._call(fed, fetched, not (self._unfed or self._unfetched))
        except (TimeoutError, errors.OpError) as error:
            failure = error if isinstance(error, errors.OpError) else late(seconds or 0, [self._own_task])
            raise self.interrupt(failure) from None
        except asyncio.CancelledError:
            if self._error is not None:
                raise self._error from None
            self.interrupt(errors.cancelled("The client gave up the step."))
            raise
        finally:
            self._calls -= 1
        return [values[name] for name in fetched]

    def _check(self, feeds: Mapping[str, Value], fetches: Sequence[str]) -> None:
        _check(feeds, self._names.feeds, self._unfed, "feed", "fed")
        _check(fetches, self._names.fetches, self._unfetched, "fetch", "fetched")

    def interrupt(self, error: errors.OpError) -> errors.OpError:
        """Ends the step with `error`, unless it has failed before; why it has failed. Never blocks."""
        if self._error is None:
            self._error = error
        for call in (*self._waiting, *(self._others or {}).values()):
            call.cancel()
        return self._error

    def hold(self, count: int) -> None:
        """It keeps so many bytes more, or if negative fewer."""
        self.held_bytes += count
        if self.peer is not None:
            self.peer.partial_run_bytes += count

    async def _call(self, feeds: Mapping[str, Value], fetches: Sequence[str], is_last: bool) -> dict[str, Value]:
        parts = {part.task: part for part in self.graph.parts}
        part = parts.pop(self._own_task, None)
        if self._others is None:
            self._others = {task: self._spawn(other, {}, [], ExecOptions()) for task, other in parts.items()}
        if part is None:
            raise errors.internal(f"The partial run has no part on {self._own_task}.")
        keys = {name: part.fetch_keys[name] for name in fetches}
        own = self._spawn(
            part,
            {part.feed_keys[name]: value for name, value in feeds.items() if name in part.feed_keys},
            list(keys.values()),
            ExecOptions(is_partial=True, is_last_partial_run=is_last),
        )
        self._waiting.add(own)
        own.add_done_callback(self._waiting.discard)
        await _until(own, self._others, all_of_them=is_last)
        result = own.result()
        return {name: result.values[key] for name, key in keys.items()}

    def _spawn(
        self, part: Part, feeds: Mapping[str, Value], fetches: Sequence[str], options: ExecOptions
    ) -> asyncio.Task[RunGraphResult]:
        request = RunRequest(self._session_handle, part.handle, self.step_id, feeds, fetches, options)

        async def call() -> RunGraphResult:
            try:
                return await part.worker.run_graph(request)
            except errors.OpError as error:
                raise from_task(error, part.task) from None

        return self._tasks.spawn(call(), f"partial_run:{part.task};{self.step_id:x}")


async def _until(
    own: asyncio.Task[RunGraphResult], others: Mapping[str, asyncio.Task[RunGraphResult]], all_of_them: bool
) -> None:
    """Waits for our own part's call, and for `all_of_them` to end; raises the error that explains most."""
    pending = {own, *others.values()}
    first: errors.OpError | None = None
    while own in pending or (all_of_them and pending):
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for call in done:
            if call.cancelled():
                raise errors.cancelled("The partial run was cancelled.")
            error = call.exception()
            if error is None:
                continue
            if not isinstance(error, errors.OpError):
                raise error
            if first is None or (is_consequence(first) and not is_consequence(error)):
                first = error
        if first is not None:
            raise first


def _check(
    given: Mapping[str, Value] | Sequence[str], known: Sequence[str], left: set[str], kind: str, done: str
) -> None:
    for name in given:
        canonical = str(parse_tensor_name(name))
        if canonical not in known:
            raise errors.invalid_argument(f"The {kind} {name} was not specified in partial_run_setup.")
        if canonical not in left:
            raise errors.invalid_argument(f"The {kind} {name} has already been {done}.")


def _check_computable(graph: RuntimeGraph, fetches: Sequence[str], unfed: set[str]) -> None:
    """Raises InvalidArgumentError if a fetch needs a tensor that was set up as a feed and not fed yet."""
    if not unfed:
        return

    def sources(name: str) -> Iterable[str]:
        node = graph.nodes.get(name)
        return () if node is None else node.sources

    needed = reached((parse_tensor_name(name).node for name in fetches), sources)
    inputs = (tensor for name in needed if name in graph.nodes for tensor in graph.nodes[name].inputs)
    late = next((tensor for tensor in inputs if str(tensor) in unfed), None)
    if late is not None:
        raise errors.invalid_argument(f"Fetch {late} can't be computed from the feeds that have been fed so far.")


class PartialRuns:
    """The partial runs of a session by handle, bounded in their number and in what they hold."""

    def __init__(self, limits: MasterLimits, forget: Callable[[PartialStep], object]) -> None:
        """`forget` is told of each step that is over: its tasks are to clean up."""
        self._limits = limits
        self._forget = forget
        self._steps: dict[str, PartialStep] = {}
        self._next = 0

    def add(self, step: PartialStep, peer: PeerUse | None = None) -> str:
        """The run's handle. What it will hold counts towards `peer`, unless that is None. Raises ResourceExhaustedError
        at the limit."""
        if len(self._steps) >= self._limits.partial_runs:
            text = f"This session has {len(self._steps)} partial runs that are not over"
            raise self._limits.reached("partial_runs", text)
        step.peer = peer
        handle = str(self._next)
        self._next += 1
        self._steps[handle] = step
        step.graph.users += 1
        return handle

    async def run(
        self, handle: str, feeds: Mapping[str, Value], fetches: Sequence[str], seconds: float | None
    ) -> list[Value]:
        """One call of a run. Raises InvalidArgumentError for an unknown handle, ResourceExhaustedError where its peer's
        runs would hold too much, which leaves the run as it was; else as PartialStep.run."""
        step = self._steps.get(handle)
        if step is None:
            raise errors.invalid_argument("Must run PartialRunSetup before performing partial runs")
        count = self._hold(step, feeds)
        try:
            return await step.run(feeds, fetches, seconds)
        except BaseException:
            if not step.is_over:  # the run is as it was
                step.hold(-count)
            raise
        finally:
            if step.is_over and self._steps.pop(handle, None) is not None:
                self._end(step)

    def _hold(self, step: PartialStep, feeds: Mapping[str, Value]) -> int:
        """Counts what the step will hold: so many bytes. Raises ResourceExhaustedError."""
        if step.peer is None or step.is_over:
            return 0
        count, held = sum(map(value_bytes, feeds.values())), step.peer.partial_run_bytes
        if held + count > self._limits.partial_run_bytes_per_peer:
            raise self._limits.reached(
                "partial_run_bytes_per_peer",
                f"The partial runs of {step.peer.name} hold {held} bytes of feeds, and this call feeds {count} more",
            )
        step.hold(count)
        return count

    def _end(self, step: PartialStep) -> None:
        step.graph.users -= 1
        step.hold(-step.held_bytes)
        self._forget(step)

    def close(self, error: errors.OpError) -> None:
        """Ends every run with `error`."""
        while self._steps:
            step = self._steps.pop(next(iter(self._steps)))
            step.interrupt(error)
            self._end(step)


def value_bytes(value: Any) -> int:
    """Bytes that `value`, a tensor, keeps in use, those of its strings included; 0 for what is no array."""
    if not isinstance(value, np.ndarray):
        return 0
    total = value.nbytes
    if value.dtype == object:
        total += sum(len(item) for item in value.flat if isinstance(item, bytes))
    return total
