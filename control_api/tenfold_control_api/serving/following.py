"""A served model that follows a training: it takes in increments of checkpoints as they appear, in its session.

client/tenfold/train/checkpoint_follower.py says what is ahead, follow_graph.py has the steps that read an increment and
put it in place. Reading goes on beside requests; while changes are put in place requests wait at the gate, so that each
sees one moment. Called by loading.py and service.py, which owns the loop. Decision 0196.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tenfold.train.checkpoint_follower import ahead, signature
from tenfold_control_api.problems import ApiError
from tenfold_control_api.serving.gate import Gate
from tenfold_control_api.serving.shapes import FollowingView
from tenfold_core.file_names import file_path, is_url
from tenfold_core.help_links import runtime_kind
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.session.master_interface import MasterInterface
    from tenfold.train.checkpoint_follower import Ahead, Point
    from tenfold_control_api.serving.follow_graph import FollowSteps
    from tenfold_control_api.session_record import SessionRecord
    from tenfold_control_api.session_service import SessionService

T = TypeVar("T")

#: Seconds that requests may be held back for those that run to end; twice as many after each time that was too short.
_PATIENCE_S, _MOST_PATIENCE_S = 0.2, 5.0
#: Seconds between two looks at a folder in which nothing has changed: what is wrong there may be put right.
_AGAIN_S = 1.0
#: Seconds that a whole checkpoint is older than its first increment at most, and how many times the seconds between the
#: two increments before; then it is read itself.
_LEAD_S, _LEADS = 10.0, 3.0
#: Bounds of a step that reads an increment, and of one that puts it in place.
_READ_S, _PUT_S = 600.0, 120.0
#: What a task says of a file that it cannot read: then nothing was read, and nothing was changed.
_UNREAD = frozenset(
    runtime_kind(code)
    for code in ("NOT_FOUND", "INVALID_ARGUMENT", "DATA_LOSS", "FAILED_PRECONDITION", "PERMISSION_DENIED")
)


class Follower:
    """What one session of a model has of a training."""

    def __init__(
        self,
        folder: str,
        start: Point,
        steps: FollowSteps,
        sessions: SessionService,
        record: SessionRecord,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """The session has restored `start`, a whole checkpoint of the training in `folder`."""
        self.gate = Gate()
        self.folder = folder
        #: What is served. Changes only while nobody is inside the gate.
        self.point = start
        self.rows = 0
        #: Increments that were put in place.
        self.applied = 0
        self._steps, self._sessions, self._record, self._wall = steps, sessions, record, wall_clock
        self._patience = _PATIENCE_S
        self._trouble, self._since = "", 0.0
        #: When the oldest state was saved that is there and is not served; None where the newest is.
        self._waiting: float | None = None
        self._seen: tuple[bytes, bytes] | None = None
        self._looked = 0.0
        #: Seconds between the last two increments.
        self._spacing = 0.0

    # -- acting

    async def look(self) -> Point | None:
        """Takes in what is new. A whole checkpoint that nothing but reading it leads to, if there is such a one.

        Trouble with files is kept, and shown. Raises ApiError where the session is gone, or has failed in the middle of
        a change: it must not be asked any more then.
        """
        # a training that pauses must not hide that
        self._record.require_ready(self._sessions.cluster_of(self._record))
        seen = await asyncio.to_thread(signature, self.folder)
        now = time.monotonic()
        is_served = self._waiting is None and not self._trouble
        if seen == self._seen and (is_served or now - self._looked < _AGAIN_S):
            return None
        self._seen, self._looked = seen, now
        found = await asyncio.to_thread(ahead, self.folder, self.point)
        newer = [] if found.newer is None else [found.newer]
        left = [each.saved_at for each in (*found.points, *newer)]
        for point in found.points:
            self._waiting = min(left)
            if not await self._take(point):
                return None
            del left[0]
        self._waiting = min(left, default=None)
        self._say(found.trouble)
        return found.newer if self._must_read(found) else None

    def _say(self, trouble: str) -> None:
        if trouble and not self._trouble:
            self._since = self._wall()
        self._trouble = trouble

    def _must_read(self, found: Ahead) -> bool:
        if found.newer is None:
            return False
        return found.only_newer or self._wall() - found.newer.saved_at > max(_LEAD_S, _LEADS * self._spacing)

    async def _take(self, point: Point) -> bool:
        """Whether an increment could be read and is in place now."""
        prefix = np.empty((), object)
        prefix[()] = os.fsencode(absolute(point.last))
        prefix.flags.writeable = False
        try:
            await self._run({self._steps.prefix: prefix}, [], [self._steps.read], _READ_S)
        except ApiError as error:
            if error.kind not in _UNREAD:
                raise
            self._say(error.detail)
            return False
        while True:
            async with self.gate.alone(self._patience) as is_alone:
                if is_alone:
                    await self._run({}, [], [self._steps.put], _PUT_S)
                    if self.point.last != self.point.whole:
                        self._spacing = max(0.0, point.saved_at - self.point.saved_at)
                    self.point = point
                    self.applied += 1
                    break
            pause, self._patience = self._patience, min(2 * self._patience, _MOST_PATIENCE_S)
            # those that were held back go on
            await asyncio.sleep(pause)
        self._patience = _PATIENCE_S
        await self.count()
        return True

    async def count(self) -> None:
        """Asks how many rows the tables have."""
        if self._steps.shapes:
            shapes = await self._run({}, self._steps.shapes, [], _PUT_S)
            self.rows = sum(int(shape[0]) for shape in shapes)

    async def _run(self, feeds: Any, fetches: Any, targets: Any, limit: float) -> Any:
        def step(master: MasterInterface, handle: str, left: float) -> Any:
            values, _ = master.run_step(handle, feeds, fetches, targets, config_pb2.RunOptions(), left)
            return values

        return await self._sessions.ask(self._record.id, step, limit)

    # -- looking

    def view(self) -> FollowingView:
        """What is served now, and what is wrong."""
        point = self.point
        return FollowingView(
            folder=self.folder,
            checkpoint=os.path.basename(point.whole),
            increment=None if point.last == point.whole else os.path.basename(point.last),
            global_step=point.global_step,
            saved_at=point.saved_at,
            behind_seconds=self.behind,
            rows=self.rows,
            increments=self.applied,
            trouble=self._trouble,
            trouble_since=self._since if self._trouble else None,
        )

    @property
    def behind(self) -> float:
        """Seconds since the oldest state was saved that is there and is not served yet, 0 where the newest is served;
        where nothing can be read, since that is so."""
        since = self._waiting
        if since is None and self._trouble:
            since = self._since
        return 0.0 if since is None else max(0.0, self._wall() - since)

    @property
    def in_trouble(self) -> bool:
        return bool(self._trouble)

    def parameters(self) -> dict[str, Any]:
        """What an answer says of the state that it is of."""
        return {} if self.point.global_step is None else {"global_step": self.point.global_step}


def absolute(prefix: str) -> str:
    """A prefix as a task finds it, wherever that was started."""
    path = file_path(prefix)
    return path if is_url(path) else os.path.abspath(path)
