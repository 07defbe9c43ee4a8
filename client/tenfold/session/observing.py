"""What this process's sessions compute, for who reports on the training: scalars of steps, counts, checkpoints.

Nothing is watched unless somebody reports: the process belongs to a run (TENFOLD_RUN), or tenfold.runs.by_hand has
called `watch`. Then each FetchPlan counts its steps, and now and then keeps the scalars among its results and the size
of the batch that was fed. Nothing is fetched for it, but for the global step at the end (last_step.py). Read by
tenfold.runs.program_report. Any thread.
"""

from __future__ import annotations

import os
import re
import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold_core.file_names import is_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tenfold.session.base_session import BaseSession
    from tenfold.summary.distributions import Distribution

#: The variable that names the run.
RUN = "TENFOLD_RUN"

#: Combinations of fetches that are told apart; of further ones nothing is kept.
_WATCHES = 256
#: Scalars of one step that are kept.
_SCALARS = 16
#: Histograms of one summary that are kept.
DISTRIBUTIONS = 32
#: Summaries and checkpoints that wait to be collected; the oldest goes first.
_NOTES = 1000
#: Folders of event files that are told.
_LOGDIRS = 100
#: Scalars of summaries that say how many examples a second there are, as hooks of well-known models name them.
_EXAMPLES = re.compile(r"(examples?|images?|samples?|sequences?)([/_ ]|_?per_?)sec", re.IGNORECASE)
#: Collections whose tensors are the global step, or a read of it.
_STEP_COLLECTIONS = ("global_step", "global_step_read_op_cache")


@dataclass(frozen=True, slots=True)
class Point:
    """Scalars and histograms by name at a moment (wall-clock seconds), at a global step where it is known."""

    time: float
    step: int | None
    values: dict[str, float]
    distributions: Mapping[str, Distribution] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    time: float
    path: str


@dataclass(slots=True)
class Activity:
    """What has been since the last look; `steps` counts from the start of the process."""

    steps: int
    points: list[Point]
    checkpoints: list[Checkpoint]
    #: Folders of event files that are new.
    logdirs: list[str]
    #: Steps since then of the combination of fetches that ran most often: the training's, where there is one.
    recent: int = 0
    #: Examples that were fed to those; None where the feeds do not tell.
    examples: int | None = None
    #: What a summary of the program says, where one does.
    examples_per_second: float | None = None
    #: The global step at which the newest training stops; None where it did not say so.
    stops_at: int | None = None


class Watch:
    """One combination of fetches. Counting is not exact where several threads run it at once."""

    __slots__ = (
        "_positions", "batch", "count", "feeds_wanted", "latest", "point", "scalars", "seen", "step", "told", "wanted",
    )  # fmt: skip

    def __init__(self, scalars: list[tuple[int, str]], step: int | None) -> None:
        self.scalars, self.step = scalars, step
        self._positions = [at for at, _ in scalars] + ([] if step is None else [step])
        #: When the newest step ended, and its scalars, the global step last; None before one did, or without any.
        self.latest: tuple[float, list[Any]] | None = None
        self.count = 0
        #: The count at the last look.
        self.seen = 0
        #: Whether the next step's scalars are to be kept.
        self.wanted = bool(scalars) or step is not None
        self.point: Point | None = None
        #: The moment of the newest step that was handed out.
        self.told = 0.0
        #: Whether the next step's batch is to be looked at, and what it was last.
        self.feeds_wanted = True
        self.batch: int | None = None

    def take(self, values: Sequence[Any]) -> None:
        """The results of a step. They are looked at now and then; the newest are kept as they are."""
        self.count += 1
        if self._positions:
            self.latest = time.time(), [values[at] for at in self._positions]
            if self.wanted:
                self.wanted = False
                self.point = self.newest()

    def newest(self) -> Point | None:
        """The newest step, if it had scalars."""
        if self.latest is None:
            return None
        moment, values = self.latest
        step = None if self.step is None else int(values[-1])
        return Point(moment, step, {name: float(value) for (_, name), value in zip(self.scalars, values, strict=False)})

    def take_feeds(self, feeds: Iterable[tuple[Any, Any]]) -> None:
        """Tensors and the arrays fed to them. A batch is what all placeholders agree on whose first dimension is open,
        and no other; where they do not agree, nothing is known."""
        self.feeds_wanted = False
        sizes = set()
        for tensor, array in feeds:
            dims = tensor.shape.as_list() if tensor.shape.ndims else []
            if dims and dims[0] is None and None not in dims[1:]:
                sizes.add(array.shape[0])
        self.batch = sizes.pop() if len(sizes) == 1 else None


class StepObserver:
    """All that is watched in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: dict[tuple[str, ...], Watch] = {}
        self._points: list[Point] = []
        self._checkpoints: list[Checkpoint] = []
        #: Absolute paths of folders; False once they were collected.
        self._logdirs: dict[str, bool] = {}
        #: As the program's own summaries say.
        self._examples_per_second: float | None = None
        #: What `note_step` has kept last.
        self._ended_at: Point | None = None
        #: As `note_stop` said last.
        self.stops_at: int | None = None
        #: The graph-level random seed of the newest session that has one.
        self.seed: int | None = None
        #: Those that have run a step and did not close.
        self.sessions: weakref.WeakSet[BaseSession] = weakref.WeakSet()
        #: The newest of them that has a global step. It lives until the program has ended, though nothing else has it:
        #: the names of a program are gone by then.
        self._kept: BaseSession | None = None

    def watch_of(self, graph: Any, tensors: Sequence[Any], key: tuple[str, ...]) -> Watch | None:
        """The watch of a FetchPlan, which counts by it and lets it take values; None beyond the bound. `key` names its
        tensors and operations: training and evaluation may fetch the same, and differ in what they run.

        A monitored session makes a plan for each step, so this has to be quick."""
        return self._watches.get(key) or self._new_watch(graph, tensors, key)

    def note_scalars(self, step: int | None, values: dict[str, float]) -> None:
        """Scalars that the program wrote as a summary."""
        if values:
            for name, value in values.items():
                if _EXAMPLES.search(name):
                    self._examples_per_second = float(value)
            self._keep(self._points, Point(time.time(), step, values))

    def note_distributions(self, step: int | None, found: Mapping[str, Distribution]) -> None:
        """Histograms that the program wrote as a summary."""
        if found:
            self._keep(self._points, Point(time.time(), step, {}, found))

    def note_session(self, session: BaseSession) -> None:
        """The session runs a step."""
        if session is not self._kept:
            self.sessions.add(session)
            if session.graph.seed is not None:
                self.seed = session.graph.seed
            if global_step_of(session.graph) is not None:
                self._kept = session

    def forget_session(self, session: BaseSession) -> bool:
        """The session ends. Whether it has run a step."""
        if session is self._kept:
            self._kept = None
        known = session in self.sessions
        self.sessions.discard(session)
        return known

    def note_step(self, step: int) -> None:
        """The global step where a session ends. Nothing is kept of one that was behind what the process saw last, as an
        evaluation of an older checkpoint is."""
        with self._lock:
            seen = [self._ended_at, *(watch.newest() for watch in self._watches.values()), *self._points]
        known = [each for each in seen if each is not None and each.step is not None]
        newest = max(known, key=lambda each: each.time, default=None)
        if newest is None or newest.step is None or step > newest.step:
            self._ended_at = Point(time.time(), step, {})
            self._keep(self._points, self._ended_at)

    def note_logged(self, tensors: Mapping[Any, Any], values: Mapping[Any, Any]) -> None:
        """Values by tag that a hook logs, which it has fetched from `tensors`. Floating scalars were seen as they were
        fetched: noted are the other numbers, whole ones and those whose shape the graph does not know."""
        import numpy as np  # a program that logs has loaded it

        found: dict[str, float] = {}
        for tag, value in values.items():
            tensor, number = tensors[tag], np.asarray(value)
            watched = tensor.shape.ndims == 0 and tensor.dtype.base_dtype.is_floating
            if number.ndim == 0 and number.dtype.kind in "iuf" and not watched:
                found[tag if isinstance(tag, str) else tensor.op.name] = float(number)
        self.note_scalars(None, dict(list(found.items())[:_SCALARS]))

    def note_stop(self, step: Any) -> None:
        """A training begins that stops at this global step; a program may say what is none, which says nothing."""
        try:
            at = int(step)
        except (TypeError, ValueError, OverflowError):
            return
        if 0 <= at < 1 << 63:
            self.stops_at = at

    def note_checkpoint(self, path: str) -> None:
        self._keep(self._checkpoints, Checkpoint(time.time(), path))

    def note_logdir(self, path: str) -> None:
        """The program writes event files there."""
        with self._lock:
            if len(self._logdirs) < _LOGDIRS:
                self._logdirs.setdefault(path if is_url(path) else os.path.abspath(path), True)

    def collect(self, last: bool = False) -> Activity:
        """What has been since the last call; if this is the `last`, with the newest step of each combination."""
        with self._lock:
            watches = list(self._watches.values())
            points, self._points = self._points, []
            checkpoints, self._checkpoints = self._checkpoints, []
            logdirs = [path for path, fresh in self._logdirs.items() if fresh]
            self._logdirs.update(dict.fromkeys(logdirs, False))
        busiest, recent = None, 0
        for watch in watches:
            point, watch.point = watch.point, None
            if point is not None:
                points.append(point)
                watch.wanted, watch.told = True, point.time
            if last and (newest := watch.newest()) is not None and newest.time > watch.told:
                points.append(newest)
                watch.told = newest.time
            done, watch.seen = watch.count - watch.seen, watch.count
            if done > recent:
                busiest, recent = watch, done
            watch.feeds_wanted = True
        points.sort(key=lambda point: point.time)
        batch = None if busiest is None else busiest.batch
        return Activity(
            sum(watch.count for watch in watches),
            points,
            checkpoints,
            logdirs,
            recent,
            None if batch is None else recent * batch,
            self._examples_per_second,
            self.stops_at,
        )

    def _keep(self, where: list[Any], note: Any) -> None:
        with self._lock:
            if len(where) >= _NOTES:
                del where[0]
            where.append(note)

    def _new_watch(self, graph: Any, tensors: Sequence[Any], key: tuple[str, ...]) -> Watch | None:
        with self._lock:
            found = self._watches.get(key)
            if found is None and len(self._watches) < _WATCHES:
                found = self._watches[key] = Watch(*_scalars_of(graph, tensors))
            return found


def global_step_of(graph: Any) -> Any:
    """The variable or tensor of a graph that is its global step, by its collection or its name; None without."""
    found = graph.get_collection(_STEP_COLLECTIONS[0])
    if found:
        return found[0]
    return "global_step:0" if "global_step" in graph._nodes_by_name else None


def _scalars_of(graph: Any, tensors: Sequence[Any]) -> tuple[list[tuple[int, str]], int | None]:
    """Position and name of the floating scalars among the tensors, and the position of the global step."""
    steps = {"global_step"}
    for collection in _STEP_COLLECTIONS:
        steps |= {getattr(getattr(each, "op", each), "name", "") for each in graph.get_collection(collection)}
    scalars: list[tuple[int, str]] = []
    step: int | None = None
    for at, tensor in enumerate(tensors):
        if tensor.shape.ndims != 0:
            continue
        dtype, name = tensor.dtype.base_dtype, tensor.op.name
        if dtype.is_integer and (name in steps or name.rpartition("/")[0] in steps):
            step = at
        elif dtype.is_floating and len(scalars) < _SCALARS:
            scalars.append((at, name))
    return scalars, step


#: None where nobody reports.
observer: StepObserver | None = StepObserver() if os.environ.get(RUN) else None


def watch() -> None:
    """From now on what sessions are asked to fetch for the first time is watched, by a new observer."""
    global observer
    observer = StepObserver()


def end() -> None:
    """Whoever reported has done so for the last time: nothing is watched any more."""
    global observer
    observer = None
