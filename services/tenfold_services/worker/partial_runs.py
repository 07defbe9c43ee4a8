"""A step whose feeds and fetches come in several calls (PartialRunSetup): RunGraph with is_partial.

The step's rendezvous is where they meet: a call sends what it feeds and receives what it fetches, while the program
runs on its own from the first call on. Made by worker.py. In TensorFlow: Worker::DoPartialRunGraph in worker.cc.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold_compiler.values import dead_fetch, read_only
from tenfold_core import errors

from ..interfaces import RunGraphResult
from .arrivals import receive, settle
from .dynamic_executor import DynamicExecution
from .execution import feed_value, kept
from .graph_run import GraphRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..interfaces import Value
    from .graph_run import RunsWorker
    from .loaded_program import LoadedProgram
    from .rendezvous import Rendezvous
    from .sessions import WorkerSession


class PartialExecution(DynamicExecution):
    """Any program, node by node; feeds arrive like tensors of another task, and fetches leave like them."""

    def _read_feeds(self) -> dict[int, Value]:
        return {}

    def _fetch(self, key: str, value: Value, is_dead: bool) -> None:
        self.io.send(key, None if is_dead else read_only(value), is_dead)

    def fetched(self) -> dict[str, Value]:
        return {}


class PartialRun:
    """On the event loop's thread only. Kept by the step's rendezvous until CleanupGraph."""

    def __init__(
        self, worker: RunsWorker, session: WorkerSession, program: LoadedProgram, rendezvous: Rendezvous
    ) -> None:
        self._rendezvous = rendezvous
        self._feeds = {feed.key: feed for feed in program.compiled.transfers.feeds}
        self._fetchable: Any = program.compiled.transfers.fetch_keys
        self._limits = worker.limits
        #: Calls that wait now, and when the last one came.
        self._calls, self._last_call = 0, time.monotonic()
        #: Keys that a call has fed, and fetched; each comes once.
        self._taken: set[str] = set()
        self._ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # no call may be there to take the error, if the master gives up between two calls
        self._ended.add_done_callback(lambda ended: ended.exception())
        done = partial(settle, self._ended)
        self._run = GraphRun(worker, session, program, rendezvous, (), done, executor=PartialExecution)
        self._run.start({})

    def ended_as_idle(self, now: float) -> bool:
        """Ends it if there was no call for so long that none will come; whether that is so."""
        is_idle = not self._calls and now - self._last_call > self._limits.idle_partial_run_seconds
        if is_idle:
            self._run.cancel(errors.aborted("The partial run was not called for too long."))
        return is_idle

    async def call(self, feeds: Mapping[str, Value], fetches: Sequence[str], is_last: bool) -> RunGraphResult:
        """Feeds, then waits for the fetches, and with `is_last` for the end of the program as well.

        Raises the step's error; InvalidArgumentError for a feed of the wrong type, an unknown key or one that came
        before. Cancelling the caller ends the step.
        """
        self._check(feeds, fetches)
        self._taken.update(feeds, fetches)
        self._calls, self._last_call = self._calls + 1, time.monotonic()
        result = RunGraphResult()
        try:
            for key, value in feeds.items():
                self._rendezvous.send(key, feed_value(self._feeds[key], {key: value}))
            for key in fetches:
                value, is_dead = await receive(self._rendezvous, key)
                if is_dead:
                    raise dead_fetch(key)
                result.values[key] = kept(value)
            if is_last:
                await asyncio.shield(self._ended)
        except errors.OpError as error:
            self._run.cancel(error)
            # The first error of the step is the one that explains the others.
            raise self._rendezvous.error or error from None
        except asyncio.CancelledError:
            self._run.cancel()
            raise
        finally:
            self._calls -= 1
        return result

    def _check(self, feeds: Mapping[str, Value], fetches: Sequence[str]) -> None:
        for keys, known, verb in ((feeds, self._feeds, "fed"), (fetches, self._fetchable, "fetched")):
            for key in keys:
                if key not in known:
                    raise errors.invalid_argument(f"This graph has no tensor {key!r} that can be {verb}.")
                if key in self._taken:
                    raise errors.invalid_argument(f"The tensor {key!r} has already been {verb}.")
