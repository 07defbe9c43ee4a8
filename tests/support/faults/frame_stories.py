"""For each frame of a link: which step makes it, and what comes of it when it is lost, repeated or the last one.

One table, `STORIES`; tests/chaos/test_lost_frames.py plays each with every fate (frame_proxy.py) on three tasks, and
fails for a call of links or a kind of frame that has none. A link is a stream: a frame can only be lost by a peer that
is at fault, or with all that comes after it, when the connection ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tenfold as tf
from support.faults.frame_proxy import FrameFate
from support.faults.proxied_cluster import only_ps
from support.moments import PATIENCE
from tenfold.session.direct_master import DirectMaster
from tenfold.session.link_master import LinkMaster
from tenfold_core import errors
from tenfold_protos.config_pb2 import ConfigProto, RunOptions

if TYPE_CHECKING:
    from support.faults.proxied_cluster import ProxiedCluster
    from tenfold_protos.graph_pb2 import GraphDef

SWALLOWED, REPEATED = FrameFate.SWALLOWED, FrameFate.REPEATED
CUT_BEFORE, CUT_AFTER = FrameFate.CUT_BEFORE, FrameFate.CUT_AFTER

#: How a call may end; None is its answer.
Ends = tuple[type[errors.OpError] | None, ...]
RIGHT: Ends = (None,)
LOST: Ends = (errors.UnavailableError,)
LATE: Ends = (errors.DeadlineExceededError,)

#: Elements of each tensor: large enough for a buffer of its own, in shared memory where there is some.
SIZE = 16_384

_numbers = itertools.count()


class FrameScene:
    """A graph over three tasks, a client at the worker's proxies, and a look at the ps.

    Each of the steps adds one to a variable of the ps: `short` is one part there, `ring` goes from the worker over the
    ps and the other ps and back, `loop` runs a loop over two tasks, `gated` waits at a queue.
    """

    def __init__(self, cluster: ProxiedCluster, *, here: bool = False) -> None:
        """`here`: the client is in the worker's process, as a trainer is; its steps run on its own thread."""
        self.cluster, self._here = cluster, here
        #: The last step ran on the thread that asked for it.
        self.was_here = False
        number = next(_numbers)
        graph = tf.Graph()
        with graph.as_default():
            with tf.device("/job:ps/task:0"):
                count = tf.Variable([0] * SIZE, name=f"count{number}")
                gate = tf.FIFOQueue(100, tf.int32, shared_name=f"gate{number}")
                let_in = gate.enqueue_many([[1, 1]])
                short = tf.identity(tf.assign_add(count, [1] * SIZE))
                with tf.control_dependencies([gate.dequeue()]):
                    gated = tf.identity(tf.assign_add(count, [1] * SIZE))
                broken = 1 // tf.placeholder_with_default(tf.constant(0), [])
            with tf.device("/job:worker/task:0"):
                start = tf.placeholder_with_default(tf.constant([1] * SIZE), [SIZE]) * 1
            with tf.device("/job:ps/task:0"):
                ring = tf.identity(tf.assign_add(count, start))
            with tf.device("/job:ps/task:1"):
                ring = ring * 1
            with tf.device("/job:worker/task:0"):

                def turn(i: Any) -> Any:
                    with tf.device("/job:ps/task:0"):
                        return i + 1

                turns = tf.while_loop(lambda i: i < 3, turn, [tf.constant(0)])
            with tf.device("/job:ps/task:0"):
                loop = tf.identity(tf.assign_add(count, tf.fill([SIZE], turns - 2)))
            with tf.device("/job:worker/task:0"):
                self.fetches = {
                    "short": (short + 0).name,
                    "ring": (ring + 0).name,
                    "loop": (loop + 0).name,
                    "gated": (gated + 0).name,
                    "broken": (broken + 0).name,
                }
        self.graph_def: GraphDef = graph.as_graph_def()
        self._ps = tf.Session(cluster.servers["ps"].target, graph=graph, config=only_ps())
        self._ps.run(count.initializer)
        self._count, self._let_in = count, let_in
        self.master: Any = DirectMaster(cluster.servers["worker"]) if here else LinkMaster(cluster.target)
        self.handle = ""

    def count(self) -> int:
        return int(self._ps.run(self._count)[0])

    def let_in(self) -> None:
        self._ps.run(self._let_in)

    def create(self, seconds: float | None = None) -> None:
        """A session whose steps have so many seconds."""
        config = ConfigProto(operation_timeout_in_ms=int((seconds or 0) * 1000))
        self.handle, _ = self.master.create_session(self.graph_def, config, PATIENCE)
        self.seconds = seconds

    def run(self, step: str, patience: float | None = None) -> int:
        """What the step gives."""
        if self._here:
            prepared = self.master.prepared_step(self.handle, (), (self.fetches[step],), (), self.seconds)
            found = None if prepared is None else prepared.run([])
            self.was_here = found is not None
            if found is not None:
                return int(found[0].flat[0])
        values, _ = self.master.run_step(
            self.handle, {}, [self.fetches[step]], [], RunOptions(), patience or self.seconds
        )
        return int(values[0].flat[0])

    def close(self) -> None:
        worker = self.cluster.servers["worker"]
        if any(each.handle == self.handle for each in worker.master.open_sessions):
            worker.call(lambda: worker.master.close_session(self.handle), PATIENCE)
        self.master.close()
        self._ps.close()


Act = Callable[[FrameScene], Any]


@dataclass(frozen=True)
class FrameStory:
    """A frame that passes the proxy before the task `at`, in a step or in what comes before it."""

    at: str
    act: Act
    #: Steps that are run before.
    before: tuple[str, ...] = ()
    #: The frame comes while a session is made.
    opens: bool = False
    #: The step waits at the gate, which is opened once the frame has met its fate; not where it is swallowed.
    waits: bool = False
    #: How it ends with each fate.
    swallowed: Ends = LATE
    repeated: Ends = RIGHT
    cut: Ends = LOST
    #: … where the frame still arrives.
    cut_after: Ends = (None, errors.UnavailableError)
    #: The frame comes while the graph of a step is registered: of a new session, once the links are there.
    anew: bool = False
    #: Why not as most.
    why: str = ""
    left: set[str] = field(default_factory=set)

    def ends(self, fate: FrameFate) -> Ends:
        by_fate = {SWALLOWED: self.swallowed, REPEATED: self.repeated, CUT_BEFORE: self.cut, CUT_AFTER: self.cut_after}
        return by_fate[fate]


def _step(name: str) -> Act:
    return lambda scene: scene.run(name)


def _impatient(scene: FrameScene) -> int:
    """A client that gives up a step whose session would wait for ever."""
    return scene.run("gated", 0.1)


def _close(scene: FrameScene) -> None:
    scene.run("short")
    scene.master.close_session(scene.handle, PATIENCE)
    scene.master.close()


_ENDS_THE_LINK: Ends = (None, errors.UnavailableError)
_NOT_TWICE = "a number that comes twice ends the link; the answer to the first may have left before"

#: Those that a step makes, too, that runs on its caller's thread.
ON_CALLERS_THREAD = ("REQUEST RUN_GRAPH", "REPLY RUN_GRAPH", "NOTIFY PUSH")

STORIES: dict[str, FrameStory] = {
    # -- a client's step
    "REQUEST RUN_STEP": FrameStory("worker", _step("short"), ("short",), repeated=_ENDS_THE_LINK, why=_NOT_TWICE),
    "REPLY RUN_STEP": FrameStory("worker", _step("short"), ("short",)),
    "ERROR RUN_STEP": FrameStory(
        "worker",
        _step("broken"),
        ("short",),
        repeated=(errors.InvalidArgumentError,),
        cut_after=(errors.InvalidArgumentError, errors.UnavailableError),
        why="the step fails, and says so",
    ),
    "CANCEL RUN_STEP": FrameStory(
        "worker",
        _impatient,
        ("short",),
        repeated=LATE,
        cut=LATE,
        cut_after=LATE,
        why="the client has given up already, and only tells",
    ),
    # -- a part at another task
    "REQUEST RUN_GRAPH": FrameStory("ps", _step("short"), ("short",), repeated=_ENDS_THE_LINK, why=_NOT_TWICE),
    "REPLY RUN_GRAPH": FrameStory("ps", _step("short"), ("short",)),
    "CANCEL RUN_GRAPH": FrameStory(
        "ps",
        lambda scene: scene.run("gated", PATIENCE),
        ("short",),
        repeated=LATE,
        cut=LATE,
        cut_after=LATE,
        left={"ps: steps"},
        why="the step is late; the ps forgets what it did not hear by itself",
    ),
    # -- tensors on their way
    "NOTIFY PUSH": FrameStory(
        "other",
        _step("ring"),
        ("ring",),
        repeated=(None, errors.InternalError),
        left={"other: steps"},
        why="it is one of a step that is over, or that has come already",
    ),
    "REQUEST RECV_TENSOR": FrameStory("ps", _step("loop"), ("loop",), repeated=_ENDS_THE_LINK, why=_NOT_TWICE),
    "REPLY RECV_TENSOR": FrameStory("ps", _step("loop"), ("loop",)),
    "NOTIFY CLEANUP_GRAPH": FrameStory(
        "ps",
        _step("loop"),
        ("loop",),
        swallowed=RIGHT,
        cut=RIGHT,
        why="nobody waits for it",
        left={"ps: steps"},
    ),
    # -- before the first step
    "REQUEST ARRANGE": FrameStory(
        "ps",
        _step("ring"),
        ("ring",),
        anew=True,
        swallowed=RIGHT,
        repeated=_ENDS_THE_LINK,
        cut=_ENDS_THE_LINK,
        why="what is not pushed is pulled, once a link that broke has been noticed",
    ),
    "REPLY ARRANGE": FrameStory(
        "ps",
        _step("ring"),
        ("ring",),
        anew=True,
        swallowed=RIGHT,
        cut=_ENDS_THE_LINK,
        why="what is not pushed is pulled, once a link that broke has been noticed",
    ),
    "REQUEST PRODUCER": FrameStory(
        "ps",
        _step("ring"),
        swallowed=RIGHT,
        repeated=_ENDS_THE_LINK,
        cut=_ENDS_THE_LINK,
        why="what is not pushed is pulled, once a link that broke has been noticed",
    ),
    "REPLY PRODUCER": FrameStory(
        "ps",
        _step("ring"),
        swallowed=RIGHT,
        cut=_ENDS_THE_LINK,
        why="what is not pushed is pulled, once a link that broke has been noticed",
    ),
    # -- a link opens and closes
    "HELLO": FrameStory(
        "worker", _step("short"), opens=True, swallowed=RIGHT, cut=RIGHT, why="without a link gRPC serves"
    ),
    "WELCOME": FrameStory(
        "worker", _step("short"), opens=True, swallowed=RIGHT, cut=RIGHT, why="without a link gRPC serves"
    ),
    "GOODBYE": FrameStory("worker", _close, swallowed=RIGHT, cut=RIGHT, why="it is over for either end"),
    # -- signs of life, and memory that goes back
    "PING": FrameStory(
        "worker", _step("gated"), ("short",), waits=True, swallowed=LOST, why="no answer means that the peer is gone"
    ),
    "PONG": FrameStory(
        "worker", _step("gated"), ("short",), waits=True, swallowed=LOST, why="no answer means that the peer is gone"
    ),
    "RELEASE": FrameStory(
        "worker",
        lambda scene: [scene.run("short") for _ in range(3)][-1],
        ("short",),
        swallowed=RIGHT,
        repeated=_ENDS_THE_LINK,
        cut=_ENDS_THE_LINK,
        why="memory that does not go back goes with the link; what goes back twice ends it",
    ),
}
