"""What the tasks of a cluster tell each other about which have finished: at the start, at the end, on sight.

1 A task that starts says hello to all others, and asks what they know: one that was killed knows again what its former
incarnation knew. 2 One that sees a new incarnation of another, when a session is made, tells it what it knows, in case
the hello was lost. 3 One that stops in order tells all others. Owned by server.py; the knowledge is finished.py's, the
call rpc/own_services.py's. What no running task knows is lost: then a finished task is waited for as a killed one is.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS, Credentials
from tenfold_core.access.task_tokens import credentials_for

from .owned_tasks import OwnedTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from .finished import FinishedTasks
    from .interfaces import TaskName

_log = logging.getLogger(__name__)

#: Tasks that are asked at the same time.
_AT_ONCE = 16
#: So often a task is asked or told that does not answer in time; one that is not there at all says hello when it comes.
ATTEMPTS = 4


class Peers:
    """The exchanges of one task's `incarnation`. Belongs to one event loop; `close` ends it."""

    def __init__(
        self,
        finished: FinishedTasks,
        incarnation: int,
        address: Callable[[TaskName], str],
        seconds: float,
        credentials: Credentials = NO_CREDENTIALS,
    ) -> None:
        """`address` says where a task is, "" for one that is not known yet; one exchange takes `seconds` at most, and
        shows `credentials`."""
        self._finished, self._me, self._credentials = finished, (finished.task, incarnation), credentials
        self._address, self._seconds = address, seconds
        #: What says hello or tells on sight, until it is over.
        self._under_way = OwnedTasks(finished.task)
        #: Tasks that are told on sight now: one call to each, whatever incarnations it claims.
        self._telling: set[TaskName] = set()
        #: Tasks that were sought, and where.
        self._sought: dict[TaskName, str] = {}
        self._closed = False
        finished.on_new_life = self._tell_on_sight

    def greet(self, tasks: Collection[TaskName]) -> None:
        """Says hello to those of `tasks` that were not heard and are at an address that was not tried. Never blocks."""
        if self._closed:
            return  # the cluster may change while this task stops
        fresh = {
            task: address
            for task in tasks
            if task != self._me[0]
            and not self._finished.heard(task)
            and (address := self._address(task))
            and self._sought.get(task) != address
        }
        if fresh:
            self._sought.update(fresh)
            self._under_way.spawn(self._greet(list(fresh)), f"hello:{self._me[0]}")

    async def ask(self, task: TaskName) -> None:
        """Tells a task what this one knows, and takes over what that one does. Bounded; raises OpError."""
        self._note(await self._exchange(task))

    async def tell(self, tasks: Collection[TaskName]) -> None:
        """This task has finished: tells the others, but for those that have, too. Bounded; raises nothing.

        One that cannot be told learns it from others, or asks this one as long as that serves.
        """
        self._finished.finish(self._me[1])
        await asyncio.gather(*(self._tell(task) for task in tasks if task not in self._finished))

    async def _tell(self, task: TaskName) -> None:
        """Tells one task; again where nobody answers in time: on a bad network a packet of the dial may be lost."""
        for _ in range(ATTEMPTS):
            try:
                await self.ask(task)
            except errors.DeadlineExceededError:
                continue
            except errors.OpError:
                pass
            return

    async def settled(self) -> None:
        """Returns once nothing is under way: what those know that can be asked is known here."""
        await self._under_way.settled()

    async def close(self) -> None:
        """Ends what is under way. Idempotent."""
        self._closed = True
        self._finished.on_new_life = lambda task: None
        await self._under_way.cancel_all(self._seconds)

    async def _greet(self, tasks: list[TaskName]) -> None:
        turns = asyncio.Semaphore(_AT_ONCE)

        async def in_turn(task: TaskName) -> dict[TaskName, int]:
            async with turns:
                return await self._exchange(task)

        for _ in range(ATTEMPTS):
            if not tasks:
                return
            answers = await asyncio.gather(*map(in_turn, tasks), return_exceptions=True)
            # Only now that all have told their incarnation: one that is back must not be taken for finished because
            # another says so.
            for answer in answers:
                if isinstance(answer, dict):
                    self._note(answer)
                elif not isinstance(answer, errors.OpError):
                    _log.error("%s could not say hello", self._me[0], exc_info=answer)
            tasks = [
                task
                for task, answer in zip(tasks, answers, strict=True)
                if isinstance(answer, errors.DeadlineExceededError)
            ]

    def _note(self, finished: Mapping[TaskName, int]) -> None:
        news = self._finished.note(finished)
        if news:
            _log.info("%s was told that these have finished: %s", self._me[0], ", ".join(sorted(news)))

    def _tell_on_sight(self, task: TaskName) -> None:
        if self._finished.known and task not in self._telling:
            self._telling.add(task)
            telling = self._under_way.spawn(self.ask(task), f"tell:{task}")
            telling.add_done_callback(lambda _: self._telling.discard(task))

    async def _exchange(self, task: TaskName) -> dict[TaskName, int]:
        """What another task knows, which is told what this one does. Bounded; raises OpError."""
        from .rpc.own_services import exchange_finished  # grpc is loaded where it is needed

        address = self._address(task)
        if not address:
            raise errors.unavailable(f"{task} cannot be asked: it has not registered yet.")
        known, seconds = self._finished.known, self._seconds
        shown = credentials_for(self._credentials, task)
        answer, callee = await exchange_finished(task, address, self._me, known, seconds, shown)
        if callee is None:
            return answer
        if callee[0] != task:
            _log.warning("%s is not at %s: that is %s", task, address, callee[0])
            return {}
        self._finished.met(*callee)
        return answer
