"""For each method that a task serves: who calls it, how one sees how often it was done, and what each fate leads to.

One table, `STORIES`; tests/chaos/test_lost_calls.py plays every story with every fate (fates.py) on a proxied cluster,
and fails for a method of protos/ that has none. A caller is Tenfold's own where it calls the method at all: a client
calls the worker's master, which calls the ps. What only others ask for is called by hand.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
from google.protobuf.message_factory import GetMessageClass

import tenfold as tf
import tenfold_protos
from support.faults.fates import NEVER_ARRIVES, Fate
from support.faults.proxied_cluster import HURRIED_SECONDS, only_ps
from tenfold.session.grpc_errors import from_rpc_error
from tenfold.session.grpc_master import GrpcMaster
from tenfold_core import errors
from tenfold_core.request_id import new_request_id
from tenfold_protos import master_pb2
from tenfold_protos.config_pb2 import CallableOptions, ConfigProto, RunOptions
from tenfold_protos.graph_pb2 import GraphDef

if TYPE_CHECKING:
    from support.faults.proxied_cluster import ProxiedCluster

#: Fates in which the caller waits until it gives up.
LATE = frozenset({Fate.REQUEST_SWALLOWED, Fate.REPLY_LATE})
#: Fates in which the request arrives twice.
TWICE = frozenset({Fate.REPEATED, Fate.SENT_AGAIN})
_PACKAGES = {"MasterService": "tensorflow", "WorkerService": "tensorflow", "Health": "grpc.health.v1"}
_numbers = itertools.count()

#: How a call may end beside with its answer.
Errors = tuple[type[errors.OpError], ...]
RIGHT: Errors = ()


def methods() -> dict[str, Any]:
    """Every method of every service in protos/, by its path."""
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(tenfold_protos.__path__):
        if module.name.endswith("_pb2"):
            descriptor = importlib.import_module(f"tenfold_protos.{module.name}").DESCRIPTOR
            for service in descriptor.services_by_name.values():
                prefix = f"/{_PACKAGES.get(service.name, 'tenfold')}.{service.name}/"
                found |= {prefix + method.name: method for method in service.methods}
    return found


class Scene:
    """What a story plays with: a graph over both tasks, a client at the worker's proxy, and a look at the ps.

    `bump` adds one to a variable of the ps and is fetched at the worker. It waits for the gate, a queue, so that a
    repeated request comes while the first one runs.
    """

    def __init__(self, cluster: ProxiedCluster, story: Story, fate: Fate) -> None:
        self.cluster, self.fate = cluster, fate
        hurried = fate in LATE
        #: What the client gives its calls, and its steps.
        self.seconds = HURRIED_SECONDS if hurried and (story.job == "worker" or story.by_hand) else 20.0
        self.step_seconds = HURRIED_SECONDS if hurried else None
        number = next(_numbers)
        self.container = f"scene-{number}"
        self.graph = tf.Graph()
        with self.graph.as_default():
            with tf.device("/job:ps/task:0"):
                count = tf.Variable(0, name=f"count{number}")
                gate = tf.FIFOQueue(100, tf.int32, shared_name=f"gate{number}")
                with tf.control_dependencies([gate.dequeue()]):
                    added = tf.identity(tf.assign_add(count, 1))
                let_in = gate.enqueue_many([[1, 1]])
                plain = tf.identity(tf.assign_add(count, 1))
                self.fed = tf.placeholder(tf.int32, [], name="fed")
                added_fed = tf.identity(tf.assign_add(count, self.fed))
                with tf.container(self.container):
                    kept = tf.Variable(1, name=f"kept{number}")
                self._count, self._let_in, self._is_kept = count, let_in, tf.is_variable_initialized(kept)
                first = [count.initializer, kept.initializer]
            with tf.device("/job:worker/task:0"):
                self.bump, self.plain = (added + 0).name, (plain + 0).name
                self.fed_bump = (added_fed + 0).name
                self.x = tf.placeholder(tf.int32, [], name="x")
                self.y = self.x + 1
        self.graph_def: GraphDef = self.graph.as_graph_def()
        self._ps = tf.Session(cluster.servers["ps"].target, graph=self.graph, config=only_ps())
        self._ps.run(first)
        self.master = GrpcMaster(cluster.target)
        self.handle = ""
        self.callable = 0

    # -- looking ---------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """How often `bump` was done."""
        return int(self._ps.run(self._count))

    def is_kept(self) -> bool:
        """Whether the variable in the scene's container is there."""
        return bool(self._ps.run(self._is_kept))

    def sessions(self) -> list[str]:
        return [each.handle for each in self.cluster.servers["worker"].master.open_sessions]

    def session(self) -> Any:
        """The client's session, as its master has it."""
        return self.cluster.servers["worker"].master._sessions[self.handle]

    # -- acting ----------------------------------------------------------------------------------------------------

    def let_in(self) -> None:
        """Lets two steps through the gate."""
        self._ps.run(self._let_in)

    def create(self) -> None:
        self.handle, _ = self.master.create_session(self.graph_def, ConfigProto(), self.seconds)

    def run(self, fetch: str = "") -> int:
        options = RunOptions(timeout_in_ms=int((self.step_seconds or 0) * 1000))
        values, _ = self.master.run_step(self.handle, {}, [fetch or self.bump], [], options, self.step_seconds)
        return int(values[0])

    def set_up_partial(self) -> None:
        self.create()
        feeds, fetches = [self.fed.name], [self.fed_bump]
        self.partial = self.master.partial_run_setup(self.handle, feeds, fetches, [], self.seconds)

    def run_partial(self) -> int:
        feeds = {self.fed.name: np.asarray(1, np.int32)}
        return int(self.master.partial_run(self.handle, self.partial, feeds, [self.fed_bump], self.seconds)[0])

    def run_before(self) -> None:
        """Steps before, so that the next one finds its graphs registered."""
        self.create()
        self.let_in()
        for _ in range(2):
            self.master.run_step(self.handle, {}, [self.bump], [], RunOptions(), None)

    def ask(self, job: str, method: str, **fields: Any) -> Any:
        """A call by hand, as another client would make it."""
        path, descriptor = next((path, found) for path, found in methods().items() if found.name == method)
        request = GetMessageClass(descriptor.input_type)(**fields)
        address = self.cluster.calls[job].address
        with grpc.insecure_channel(address) as channel:
            call = channel.unary_unary(
                path,
                request_serializer=type(request).SerializeToString,
                response_deserializer=GetMessageClass(descriptor.output_type).FromString,
            )
            try:
                return call(request, timeout=self.seconds)
            except grpc.RpcError as error:
                raise from_rpc_error(error, method, f"grpc://{address}", None, self.seconds) from None

    def make_callable(self) -> None:
        request = master_pb2.MakeCallableRequest(
            session_handle=self.handle, options=CallableOptions(fetch=[self.bump]), request_id=new_request_id()
        )
        self.callable = self.master._call("MakeCallable", request, master_pb2.MakeCallableResponse, self.seconds).handle

    def run_callable(self) -> None:
        request = master_pb2.RunCallableRequest(
            session_handle=self.handle, handle=self.callable, request_id=new_request_id()
        )
        self.master._call("RunCallable", request, master_pb2.RunCallableResponse, self.seconds)

    def release_callable(self) -> None:
        request = master_pb2.ReleaseCallableRequest(session_handle=self.handle, handle=self.callable)
        self.master._call("ReleaseCallable", request, master_pb2.ReleaseCallableResponse, self.seconds)

    def extend(self) -> None:
        more = GraphDef(versions=self.graph_def.versions)
        more.node.add(name="more", op="NoOp")
        self.master.extend_session(self.handle, more, 0, self.seconds)

    def begin_anew(self) -> None:
        """What a client does whose call has failed: it leaves the session to its master, and comes again."""
        self.master.close()
        self.master, self.handle = GrpcMaster(self.cluster.target), ""

    # -- the end ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the client, and with it its session, if there is one."""
        if self.handle in self.sessions():
            worker = self.cluster.servers["worker"]
            worker.call(lambda: worker.master.close_session(self.handle), 20)
        self.master.close()
        self._ps.close()


Act = Callable[[Scene], Any]


@dataclass(frozen=True)
class Story:
    """One method. Where nothing else is said the caller gets an error when the connection or the stream ends, another
    one when it has waited long enough, and the answer of the first request for one that comes twice."""

    #: Whose port: the worker's or the ps's.
    job: str
    #: Makes the call, directly or by what it asks of the worker's master.
    act: Act
    #: Before it.
    prepare: Act = lambda scene: None
    #: How often it was done, as a number that grows.
    applied: Callable[[Scene], int] | None = None
    #: Where that is not the story's name.
    method: str = ""
    #: Called by hand.
    by_hand: bool = False
    #: It waits at the gate, which is opened once both of two requests have arrived.
    waits: bool = False
    #: The task's answer is this error.
    answer: Errors = RIGHT
    #: What the caller gets when the connection or the stream ends; when nothing comes; when its request comes twice
    #: and it hears the second answer.
    lost: Errors = (errors.UnavailableError,)
    late: Errors = (errors.DeadlineExceededError,)
    again: Errors = RIGHT
    #: How often it may be done where the request never arrives, and where it comes twice; and fates that may leave a
    #: session of no client at the master.
    never: int = 0
    twice: int = 1
    orphans: frozenset[Fate] = frozenset()
    #: What may be left at the tasks until they forget it by themselves, by fate.
    left: dict[Fate, set[str]] = field(default_factory=dict)
    #: The reason for what differs.
    why: str = ""


def _by_hand(job: str, method: str, answer: Errors = RIGHT, **fields: Any) -> Story:
    return Story(job, lambda scene: scene.ask(job, method, **fields), by_hand=True, answer=answer, again=answer)


def _refused(method: str) -> Story:
    return _by_hand("ps", method, (errors.UnimplementedError,))


_ANSWERED = frozenset({Fate.REPLY_LOST, Fate.REPLY_RESET, Fate.REPLY_LATE, *TWICE})
_STEPS = {"ps: steps"}

STORIES: dict[str, Story] = {
    # -- MasterService: a client calls
    "CreateSession": Story(
        "worker",
        Scene.create,
        applied=lambda scene: len(scene.sessions()),
        twice=2,
        orphans=_ANSWERED,
        why="the request has no number; a session whose handle nobody has is closed when the master is full",
    ),
    "ExtendSession": Story(
        "worker",
        Scene.extend,
        Scene.create,
        lambda scene: int(scene.session().graph.version),
        again=(errors.AbortedError,),
        why="the second request brings the version of before the first",
    ),
    "PartialRunSetup": Story(
        "worker",
        lambda scene: scene.master.partial_run_setup(scene.handle, [scene.x.name], [scene.y.name], [], scene.seconds),
        Scene.create,
        lambda scene: len(scene.session()._partial_runs._steps),
    ),
    "RunStep": Story("worker", Scene.run, Scene.create, Scene.count, waits=True),
    "RunStep of a partial run": Story("worker", Scene.run_partial, Scene.set_up_partial, Scene.count, method="RunStep"),
    "CloseSession": Story(
        "worker",
        lambda scene: scene.master.close_session(scene.handle, scene.seconds),
        Scene.create,
        lambda scene: int(scene.handle not in scene.sessions()),
        again=(errors.AbortedError,),
        why="the second request names a session that is not there any more",
    ),
    "ListDevices": Story("worker", lambda scene: scene.master.list_devices(scene.handle, scene.seconds), Scene.create),
    "Reset": Story(
        "worker",
        lambda scene: scene.master.reset([scene.container], scene.seconds),
        Scene.create,
        lambda scene: int(not scene.is_kept()),
    ),
    "MakeCallable": Story(
        "worker", Scene.make_callable, Scene.create, lambda scene: len(scene.session()._callables._callables)
    ),
    "RunCallable": Story(
        "worker", Scene.run_callable, lambda scene: (scene.create(), scene.make_callable()), Scene.count, waits=True
    ),
    "ReleaseCallable": Story(
        "worker",
        Scene.release_callable,
        lambda scene: (scene.create(), scene.make_callable()),
        lambda scene: 1 - len(scene.session()._callables._callables),
    ),
    # -- WorkerService: a master calls
    "GetStatus": Story(
        "ps", Scene.create, lost=RIGHT, late=RIGHT, why="a master that looks for its tasks asks until they answer"
    ),
    "CreateWorkerSession": Story(
        "ps",
        Scene.create,
        lost=RIGHT,
        again=(errors.AlreadyExistsError,),
        why="the master begins the session anew where the connection broke, and not where the task says no",
    ),
    "DeleteWorkerSession": Story(
        "ps",
        lambda scene: scene.master.close_session(scene.handle, scene.seconds),
        Scene.run_before,
        lost=RIGHT,
        late=RIGHT,
        why="closing ends in any case; what the ps did not hear it is told again until it answers",
    ),
    "RegisterGraph": Story(
        "ps",
        Scene.run,
        Scene.create,
        Scene.count,
        why="registered twice, a graph is there twice until its session ends; the step runs once",
    ),
    "DeregisterGraph": Story(
        "ps",
        Scene.release_callable,
        lambda scene: (scene.create(), scene.make_callable()),
        lost=RIGHT,
        late=RIGHT,
        why="nobody waits for it, and the graph goes with its session at the latest",
    ),
    "RunGraph": Story(
        "ps",
        Scene.run,
        Scene.run_before,
        Scene.count,
        waits=True,
        again=(errors.AbortedError,),
        why="the part runs once, and the second request is told so",
    ),
    "RecvTensor": Story(
        "ps",
        Scene.run,
        Scene.run_before,
        Scene.count,
        waits=True,
        again=(errors.AbortedError,),
        never=1,
        why="a tensor is taken once, and the second request is told so; its producer runs in any case",
    ),
    "CleanupGraph": Story(
        "ps",
        Scene.run,
        Scene.run_before,
        Scene.count,
        lost=RIGHT,
        late=RIGHT,
        left=dict.fromkeys(NEVER_ARRIVES, _STEPS),
        why="nobody waits for it; what the ps did not hear it forgets by itself after ten minutes",
    ),
    "CleanupAll": Story(
        "ps",
        lambda scene: scene.master.reset([scene.container], scene.seconds),
        Scene.create,
        lost=RIGHT,
        late=RIGHT,
        why="a reset goes on where a task does not answer, as TensorFlow's, and says so in the log",
    ),
    # -- WorkerService: only TensorFlow calls
    "MarkRecvFinished": _by_hand("ps", "MarkRecvFinished"),
    "Logging": _by_hand("ps", "Logging"),
    "Tracing": _refused("Tracing"),
    "RecvBuf": _refused("RecvBuf"),
    "CompleteGroup": _refused("CompleteGroup"),
    "CompleteInstance": _refused("CompleteInstance"),
    "GetStepSequence": _refused("GetStepSequence"),
    # -- Tenfold's own services
    "ExchangeFinished": _by_hand("ps", "ExchangeFinished"),
    "OpenLink": _by_hand("ps", "OpenLink", (errors.FailedPreconditionError,), version=1),
    "GetPlacement": Story("worker", lambda scene: scene.master.placement(scene.handle, scene.seconds), Scene.create),
    "Examine": _by_hand("ps", "Examine", seconds=1.0),
    "Check": _by_hand("ps", "Check"),
    "Watch": _refused("Watch"),
}


def outcome_of(story: Story, fate: Fate) -> Errors:
    """How the client's call ends: with one of these errors, or, where there are none, with its answer."""
    if fate is Fate.REPEATED:
        return story.answer
    if fate is Fate.SENT_AGAIN:
        return story.again
    return story.late if fate in LATE else story.lost


def done_at_most(story: Story, fate: Fate) -> int:
    """How often the method may be done."""
    if fate in NEVER_ARRIVES and outcome_of(story, fate):
        return story.never
    return story.twice if fate in TWICE else 1
