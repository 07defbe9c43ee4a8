"""GraphDefs from the wire to a step: imported by a client, placed and cut for two tasks, compiled for each, and run.

The pieces are a GraphDef and a RunStepRequest. The run is a session of the role run:untrusted at a real server, with
tight limits: a graph of anybody may fail there, but not with an error of Python's, hang, or go on when it is over.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

import tenfold as tf
from fuzz import pieces
from fuzz.harness import Fault, refusals
from fuzz.messages import mutated as message_mutated
from fuzz.messages import parsed
from fuzz.small_graphs import small_graphs
from support.fake_cluster import fake_device
from support.programs import compile_program
from support.verify_graph import verify, verify_parts
from tenfold.server_gradients import gradient_of_op
from tenfold_compiler.graph.copy_constants import copy_constants
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.lower import lower
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role
from tenfold_kernels import registry
from tenfold_kernels.resources import messages
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos.config_pb2 import ConfigProto, RunOptions
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_protos.master_pb2 import RunStepRequest
from tenfold_services.limits import Limits
from tenfold_services.master import untrusted
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_TASKS = ("/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0")
_DEVICES = DeviceSet([fake_device(task) for task in _TASKS], f"{_TASKS[1]}/device:CPU:0")
_LIMITS = Limits(
    tensor_bytes=4 << 20, nodes_per_graph=5000, long_kernel_seconds=0.5, long_kernels=8, long_kernels_per_session=4
)
#: A step may take so long; a graph may wait for what never comes.
_STEP_MILLISECONDS = 200
#: More threads than a server with these limits can have.
_MOST_THREADS = 40
_LOOP = asyncio.new_event_loop()


class _Kept(logging.Handler):
    """What is logged as an error: what a step hides behind an InternalError, and what nobody waits for."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


_LOG = _Kept()


def one_input(data: bytes) -> None:
    graph_bytes, step_bytes, *_ = [*pieces.split(data), b"", b""]
    try:
        graph, step = GraphDef.FromString(graph_bytes), RunStepRequest.FromString(step_bytes)
    except DecodeError:
        return
    _import(graph)
    with refusals():
        untrusted.check_graph(graph, frozenset())
        _for_two_tasks(graph, step)
    with refusals():
        _LOOP.run_until_complete(_run(graph, step))
    records, _LOG.records = _LOG.records, []
    for record in records:
        raise Fault(record.getMessage()) from (record.exc_info[1] if record.exc_info else None)
    if threading.active_count() > _MOST_THREADS:
        raise Fault(f"{threading.active_count()} threads")


def _import(graph: GraphDef) -> None:
    with tf.Graph().as_default(), refusals(ValueError, TypeError):
        tf.import_graph_def(graph, name="")


def _for_two_tasks(graph_def: GraphDef, step: RunStepRequest) -> None:
    graph = lower(verify(RuntimeGraph.from_graph_def(graph_def), after="build"), gradients=gradient_of_op)
    graph = place(graph, _DEVICES, devices_with_kernel=registry.devices_with_kernel, soft=True)
    verify(graph, after="place")
    feeds = [feed.name for feed in step.feed]
    client = _DEVICES.device(_DEVICES.client_device)
    graph = prune(graph, feeds, list(step.fetch), list(step.target), client_device=client)
    verify(graph, after="prune")
    parts = partition(copy_constants(graph), incarnation=_DEVICES.incarnation).parts
    verify_parts(parts)
    for task, part in parts.items():
        with refusals():
            compile_program(part, task, ResourceManager(), _LIMITS)


def _server() -> TaskServer:
    os.environ["TENFOLD_FUSION"] = "off"  # what is hot is compiled for seconds
    logging.getLogger().addHandler(_LOG)
    logging.getLogger("tenfold").propagate = True
    for name in ("tenfold", "tenfold_services", "asyncio"):
        logging.getLogger(name).setLevel(logging.ERROR)
    server = TaskServer({"localhost": [""]}, "localhost", 0, bind=None, limits=_LIMITS, gradients=gradient_of_op)
    _LOOP.run_until_complete(server.start())
    return server


async def _run(graph: GraphDef, step: RunStepRequest) -> None:
    master = _SERVER.master
    config = ConfigProto(operation_timeout_in_ms=1000, allow_soft_placement=True)
    handle, _ = await master.create_session(graph, config, caller=Caller(Role.RUN_UNTRUSTED, ""))
    try:
        feeds = {feed.name: messages.decode(feed.tensor, "a feed") for feed in step.feed}
        options = RunOptions(timeout_in_ms=_STEP_MILLISECONDS)
        for _ in range(2):
            values, _ = await master.run_step(handle, feeds, list(step.fetch), list(step.target), options)
            for value in values:
                with refusals():
                    messages.encode(value)
    finally:
        await master.close_session(handle)


_SERVER = _server()


def mutated(data: bytes, chance: random.Random) -> bytes:
    graph_bytes, step_bytes, *_ = [*pieces.split(data), b"", b""]
    graph, step = parsed(GraphDef, graph_bytes), parsed(RunStepRequest, step_bytes)
    message_mutated(step if chance.random() < 0.15 else graph, chance)
    return pieces.join([graph.SerializePartialToString(), step.SerializePartialToString()])


def seeds() -> Iterator[bytes]:
    for graph, step in small_graphs():
        yield pieces.join([graph.SerializeToString(), step.SerializeToString()])
