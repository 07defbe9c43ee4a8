"""The types of a subject: programs, cases with their demands, and how long to measure.

A program is written once against TensorFlow 1.x's API. It gets its `tf` from role.py, in a `Context`, and returns a
`Measure`. sides.py says where it runs, rounds.py how it is measured.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.sides import baseline_name, baseline_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from harness.sides import Side, Topology

#: The resource container of a case's variables on the servers, so that the next case does not find them.
CONTAINER = "benchmark"


@dataclass(frozen=True)
class Measure:
    """A built program. All three run in the client process, on one thread."""

    #: One timed step.
    step: Callable[[], object]
    #: What must be equal on all sides. Runs once, before the warm-up, and decides by itself how many steps that takes.
    result: Callable[[], Mapping[str, Any]]
    #: Runs before every timed step, untimed.
    between: Callable[[], object] | None = None
    #: Untimed steps at the start of a round: while the others had their turns, memory may have been given back.
    run_in: int = 0
    #: Instead of timing single steps: runs for so many seconds, and gives what each step took in ns that ended in them.
    #: For workers that wait for each other's steps: one of them may end with a step under way.
    window: Callable[[float], list[int]] | None = None
    #: Seconds from the session's creation to the end of the first step, where the program took them.
    first_s: float = 0.0
    #: The step's floor in seconds (floor.py), where the program took it.
    floor_s: float = 0.0


@dataclass(frozen=True)
class Context:
    """The side and the process that a program runs in, as the program sees them."""

    tf: Any
    side: Side
    target: str
    #: Job → addresses, as ClusterSpec takes it.
    cluster: Mapping[str, Sequence[str]]
    #: Which of the topology's clients this is.
    index: int
    #: Where a program may write; it is cleared away after the run.
    folder: Path
    #: Sessions of the present case, which role.py closes after it.
    opened: list[Any] = field(default_factory=list)

    @contextlib.contextmanager
    def building(self, graph: Any) -> Iterator[None]:
        """Makes `graph` the default one. Its variables are in a container that is cleared when the case is over."""
        with graph.as_default(), self.tf.container(CONTAINER):
            yield

    def session(self, graph: Any) -> Any:
        """A session on this client's target, closed when the case is over."""
        self.opened.append(self.tf.Session(self.target, graph=graph, config=session_config(self.tf, self.side)))
        return self.opened[-1]

    def monitored(self, hooks: Sequence[Any], **settings: Any) -> Any:
        """A MonitoredTrainingSession on the default graph and this client's target; client 0 is the chief."""
        config, chief = session_config(self.tf, self.side), self.index == 0
        session = self.tf.train.MonitoredTrainingSession
        self.opened.append(session(self.target, is_chief=chief, config=config, hooks=hooks, **settings))
        return self.opened[-1]

    def close_sessions(self) -> None:
        while self.opened:
            with contextlib.suppress(self.tf.errors.OpError):  # another client may have cleared the container already
                self.opened.pop().close()
        if not self.side.direct:
            self.tf.Session.reset(self.target, [CONTAINER])


@dataclass(frozen=True)
class Case:
    """One row of the table. `build` is the program."""

    name: str
    topology: Topology
    build: Callable[[Context], Measure]
    #: By side of Tenfold: how many times as fast as the fastest TensorFlow side that counts it must be.
    demands: Mapping[str, float] = field(default_factory=dict)
    stretch: float | None = None
    #: By side of Tenfold: at most so many microseconds a step.
    limits_us: Mapping[str, float] = field(default_factory=dict)
    #: Side names of TensorFlow that the demand is held against; none means all those of the subject.
    against: tuple[str, ...] = ()
    #: By another side than TensorFlow's: how many times as fast those sides of Tenfold with a demand must be.
    peers: Mapping[str, float] = field(default_factory=dict)
    #: Sides that take part; none means all of the subject.
    sides: tuple[str, ...] = ()
    #: "latency": p50 of the steps. "throughput": all clients' steps in a window, one global step after another.
    metric: str = "latency"
    #: What a step moves or does, and its unit: (64e6, "B"), (1000, "op"), (1, "step").
    work: float = 1
    unit: str = "step"
    #: Tolerance of the comparison of results; 0 is bitwise.
    rtol: float = 1e-6
    warm_up_s: float = 0.3
    #: Timed seconds of a round at least, unless it is a look only: steps of many milliseconds, and memory that is given
    #: back and taken again while a program runs in, need more than a short window.
    least_s: float = 0.0
    #: Processes that keep a core busy each while a second row of the same program is measured; 0 for no such row.
    neighbours: int = 0
    #: Minor page faults that a step may take on Tenfold, all processes together, and whether its memory is held against
    #: TensorFlow's.
    faults: float | None = None
    memory: bool = False
    #: Another case of the subject: on Tenfold this one takes at most `flat_by` times as long.
    flat_with: str = ""
    flat_by: float = 1.1
    note: str = ""

    def takes(self, side: Side) -> bool:
        """Whether the side takes part, or is the baseline of one that does."""
        named = {*self.sides, *map(baseline_name, self.sides)} if side.runtime == "baseline" else set(self.sides)
        return not named or side.name in named


@dataclass(frozen=True)
class Subject:
    """One of the benchmarks; `module` is the name of the script, and what bench.py calls it."""

    number: str
    module: str
    title: str
    #: What rounds.py measures: every case on every side.
    sides: tuple[Side, ...] = ()
    cases: tuple[Case, ...] = ()
    #: Whether every case gets processes of its own, so that memory and first steps are its own, too.
    fresh: bool = False
    #: For what is no program with steps, a whole process say, or for cases that need more around them: measures by
    #: itself and gives row after row (rows.row_of).
    rows: Callable[[Effort, Wish], Iterator[dict[str, Any]]] | None = None


@dataclass(frozen=True)
class Effort:
    """How long to measure. Full: what a report needs. Quick: a look."""

    rounds: int = 7
    #: Of timed steps, per side and round.
    seconds: float = 1.0
    #: Of timed steps in a round, however long they take.
    least_steps: int = 3
    warm_up_scale: float = 3.0
    #: Whether a case may ask for longer rounds.
    thorough: bool = True


@dataclass(frozen=True)
class Wish:
    """What a run may be confined to, and the interpreters that there are, by runtime."""

    pythons: Mapping[str, str]
    #: Cases whose name contains this.
    only: str = ""
    #: Names of sides; none means all.
    sides: tuple[str, ...] = ()

    def takes(self, side: Side) -> bool:
        """Whether this side can be measured and was selected."""
        return side.runtime in self.pythons and (not self.sides or side.name in self.sides)

    def taken(self, sides: Sequence[Side]) -> list[Side]:
        """Those of `sides` that are measured, and after them the same sides of Tenfold as the baseline runs them."""
        taken = [side for side in sides if self.takes(side)]
        if "baseline" in self.pythons:
            taken += [baseline_of(side) for side in taken if side.runtime == "tenfold"]
        return taken


QUICK = Effort(rounds=5, seconds=0.12, least_steps=1, warm_up_scale=0.6, thorough=False)


def session_config(tf: Any, side: Side) -> Any:
    """The side's ConfigProto, of servers and sessions alike."""
    config = tf.ConfigProto(allow_soft_placement=False, operation_timeout_in_ms=int(1000 * side.step_seconds))
    if side.single_thread:
        config.intra_op_parallelism_threads = 1
        config.inter_op_parallelism_threads = 1
    if not side.grappler:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
    if side.executor:
        config.experimental.executor_type = side.executor
    return config


def not_a_program(context: object) -> Measure:
    """The `build` of a row that is not measured by a client: a whole process, a request."""
    raise NotImplementedError("this row is not measured by a client of the harness")
