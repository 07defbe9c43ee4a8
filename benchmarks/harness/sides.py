"""Where a program runs: the sides (a runtime and its settings) and the topologies (which processes a side has).

Data only, as in program.py; processes.py starts the processes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Side:
    """One way to run a program; all but the name and the runtime differs from its defaults.

    `runtime` is "tenfold", "tensorflow", "tensorflow1" (1.15), "baseline": Tenfold as an older checkout has it, or
    "peers": torch, which has no servers.
    """

    name: str
    runtime: str
    #: Set in every process of the side.
    env: Mapping[str, str] = field(default_factory=dict)
    #: One thread per pool, for servers and sessions.
    single_thread: bool = False
    #: TensorFlow's graph rewriter.
    grappler: bool = True
    #: The session is a direct one, `Session()`, not one on the client's own server.
    direct: bool = False
    #: TensorFlow's executor of a direct session; "" is the default one.
    executor: str = ""
    #: The runtime of the clients, where it is another one than the servers'.
    client: str = ""
    #: By torch.compile.
    compiled: bool = False
    #: The kind of a recommender's tables: "by id", "static", or "fused"; "" where no program asks.
    tables: str = ""
    #: Seconds that a session gives each of its steps; 0 for no deadline.
    step_seconds: float = 120.0


TENFOLD = Side("tenfold", "tenfold")
TENFOLD_TCP = Side("tenfold tcp", "tenfold", {"TENFOLD_LINK": "tcp", "TENFOLD_SHARED_MEMORY": "off"})
TENFOLD_GRPC = Side("tenfold grpc", "tenfold", {"TENFOLD_LINK": "off", "TENFOLD_SHARED_MEMORY": "off"})
TENFOLD_UNFUSED = Side("tenfold unfused", "tenfold", {"TENFOLD_FUSION": "off"})
#: From the first step on what others have in their steady state: fused functions, and no stand-in of a loop.
TENFOLD_COMPILED = Side("tenfold compiled", "tenfold", {"TENFOLD_FUSION": "eager", "TENFOLD_COMPILE": "blocking"})
#: The value of a variable that names a new, empty folder in each process.
FRESH = "a fresh folder"
TENFOLD_COLD = Side("tenfold cold", "tenfold", {"NUMBA_CACHE_DIR": FRESH, "TENFOLD_CACHE_DIR": FRESH})
TENSORFLOW = Side("tensorflow", "tensorflow")
TENSORFLOW_TUNED = Side("tensorflow tuned", "tensorflow", single_thread=True, grappler=False)
TENSORFLOW_DIRECT = Side("tensorflow direct", "tensorflow", direct=True)
TENSORFLOW_115 = Side("tensorflow 1.15", "tensorflow1")
TENSORFLOW_115_DIRECT = Side("tensorflow 1.15 direct", "tensorflow1", direct=True)
TENSORFLOW_DIRECT_TUNED = Side(
    "tensorflow direct tuned",
    "tensorflow",
    single_thread=True,
    grappler=False,
    direct=True,
    executor="SINGLE_THREADED_EXECUTOR",
)

TORCH = Side("torch", "peers", direct=True)
TORCH_COMPILED = Side("torch compiled", "peers", direct=True, compiled=True)


def baseline_name(name: str) -> str:
    """The name of that side when the older checkout runs it."""
    return f"baseline{name.removeprefix('tenfold')}"


def baseline_of(side: Side) -> Side:
    """The same side of Tenfold, run by the older checkout."""
    return replace(side, name=baseline_name(side.name), runtime="baseline")


@dataclass(frozen=True)
class Topology:
    """Processes of a side. Tasks are "job:index".

    A client is either a task's name, and then hosts that task's server and runs its steps through it (between-graph
    replication), or "@job:index", and then is a process without a server that opens its session on that task.
    """

    servers: tuple[str, ...]
    clients: tuple[str, ...]
    #: One core per process, in this order, starting over at the end. False leaves every process all cores.
    pinned: bool = True

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.servers + tuple(name for name in self.clients if not name.startswith("@"))

    def cores(self, process: str, available: Sequence[int]) -> list[int]:
        """The cores of one process: the last client has the last core, so that it never shares one with ps:0."""
        if not self.pinned:
            return list(available)
        order = list(reversed(self.servers + self.clients))
        return [available[-1 - order.index(process) % len(available)]]

    def __str__(self) -> str:
        return f"{' '.join(_runs(self.servers)) or '-'} / clients {' '.join(self.clients)}"


def _runs(tasks: Sequence[str]) -> list[str]:
    """The tasks, three and more of one job in a row as "worker:1…7"."""
    found: list[str] = []
    for job, those in itertools.groupby(tasks, lambda task: task.partition(":")[0]):
        names = list(those)
        found += names if len(names) < 3 else [f"{job}:{names[0].partition(':')[2]}…{names[-1].partition(':')[2]}"]
    return found


ALONE = Topology(servers=(), clients=("worker:0",))
REMOTE = Topology(servers=("worker:0",), clients=("@worker:0",))
PS_WORKER = Topology(servers=("ps:0",), clients=("worker:0",))
TWO_PS_WORKER = Topology(servers=("ps:0", "ps:1"), clients=("worker:0",))


def side_as_json(side: Side) -> dict[str, Any]:
    return {**side.__dict__, "env": dict(side.env)}


def side_from_json(values: Mapping[str, Any]) -> Side:
    return Side(**values)
