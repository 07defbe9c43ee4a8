"""What a session keeps for each run signature: the pruned graph, cut into parts that are registered with their workers.

A signature is the set of feeds, fetches and targets of a run, whatever their order and spelling. Called by
client_graph_cache.py; uses the passes prune, join_controls, join_lookups, copy_constants, with_bundles and partition.
Follows ReffedClientGraph in TensorFlow's master_session.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tenfold_compiler.graph.bundles import find_bundles, with_bundles
from tenfold_compiler.graph.controls_together import join_controls
from tenfold_compiler.graph.copy_constants import copy_constants
from tenfold_compiler.graph.lookups_together import join_lookups
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.send_recv import channel_of
from tenfold_compiler.part.frame_numbers import NUMBERS_SINCE, set_numbers
from tenfold_core import errors, graph_versions
from tenfold_core.node_names import parse_tensor_name
from tenfold_core.opdefs.runtime_ops import RECV_OPS, SEND_OPS
from tenfold_kernels import registry
from tenfold_services.master.arrangement import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from tenfold_compiler.graph.bundles import Bundle
    from tenfold_compiler.graph.device_set import DeviceSet
    from tenfold_compiler.graph.runtime_graph import RuntimeGraph
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_services.master.arrangement import Arrangement
    from tenfold_services.master.caller_graph import CallerGraph


@dataclass(frozen=True, slots=True)
class RunSignature:
    """Names in canonical spelling, sorted. Fed names may repeat: prune refuses that."""

    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    #: (from, to) of a callable's CallableOptions.tensor_connection, in its order.
    connections: tuple[tuple[str, str], ...] = ()
    #: Of a partial run, whose fetches come when they are asked for and not when the step has ended.
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class RunNames:
    """One run's names as they were given, beside the signature that they make."""

    signature: RunSignature
    #: The canonical name of each feed and fetch, in the order given.
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]


#: Names that one run may feed, fetch and ask for together.
MAX_NAMES = 16_384


def run_names(feeds: tuple[str, ...], fetches: tuple[str, ...], targets: tuple[str, ...]) -> RunNames:
    """What the names of a run mean; run_table.py remembers it.

    Raises ResourceExhaustedError for too many names, InvalidArgumentError for a malformed name.
    """
    check_counts(len(feeds), len(fetches), len(targets))
    canonical_feeds = tuple(str(parse_tensor_name(name)) for name in feeds)
    canonical_fetches = tuple(str(parse_tensor_name(name)) for name in fetches)
    signature = RunSignature(
        tuple(sorted(canonical_feeds)), tuple(sorted(set(canonical_fetches))), tuple(sorted(set(targets)))
    )
    return RunNames(signature, canonical_feeds, canonical_fetches)


def check_counts(feeds: int, fetches: int, targets: int) -> None:
    """Raises ResourceExhaustedError for too many names: asked before feeds are decoded."""
    if feeds + fetches + targets > MAX_NAMES:
        names = f"{feeds} feeds, {fetches} fetches and {targets} targets"
        raise errors.resource_exhausted(f"A step with {names}: a run has {MAX_NAMES} of them at most.")


@dataclass(slots=True)
class ClientGraph:
    """Immutable once registered, but for its counts."""

    signature: RunSignature
    #: Kept for RunOptions.output_partition_graphs; its nodes are shared with the session's graph.
    pruned: RuntimeGraph
    first_id: int
    next_id: int
    #: Other tasks first, the master's own last: their calls are on the wire before this thread starts to compute.
    parts: list[Part] = field(default_factory=list)
    #: Steps that run it now. A graph with users is never dropped.
    users: int = 0
    #: When it was last used, by the count of its RunTable.
    last_used: int = 0
    #: Runs that have begun, where the session builds a cost model.
    runs: int = 0
    #: How its parts hand each other tensors by push; None: they do not.
    pushes: Arrangement | None = None
    #: Set by caller_steps.py: what callers' threads may run, if this graph is such; and that the question was asked.
    local: CallerGraph | None = None
    was_offered: bool = False

    def partition_graphs(self, devices: DeviceSet) -> list[GraphDef]:
        """The parts again, for a run that asks to see them; they are not kept, since constants may be large."""
        return list(partition(self.pruned, incarnation=devices.incarnation, first_id=self.first_id).parts.values())

    @property
    def tasks(self) -> list[str]:
        return [part.task for part in self.parts]


class StepGraph(NamedTuple):
    """What a step runs, before it is cut."""

    graph: RuntimeGraph
    #: Tensors that may cross together, between tasks that know how.
    bundles: list[Bundle]

    @property
    def tasks_of_bundles(self) -> set[str]:
        return {task for bundle in self.bundles for task in bundle.tasks}


def step_graph(
    graph: RuntimeGraph,
    signature: RunSignature,
    devices: DeviceSet,
    placed: Callable[[RuntimeGraph], RuntimeGraph] | None = None,
) -> StepGraph:
    """What a step of this signature runs: pruned, and placed with `placed` if given. Pure: on any thread.

    Raises what prune and place raise, UnimplementedError for a node whose operation is not here.
    """
    pruned = prune(
        graph,
        signature.feeds,
        signature.fetches,
        signature.targets,
        client_device=devices.device(devices.client_device),
        connections=signature.connections,
        is_partial=signature.is_partial,
    )
    pruned.refuse_missing()
    if placed is not None:
        pruned = placed(pruned)
    pruned = join_controls(pruned)
    # the runs of a partial run feed lookups one after the other
    if signature.is_partial:
        return StepGraph(copy_constants(pruned), [])
    whole = copy_constants(join_lookups(pruned))
    return StepGraph(whole, find_bundles(whole, registry.may_view_input))


def cut_graph(
    step: StepGraph, signature: RunSignature, devices: DeviceSet, first_id: int, able: Container[str] = ()
) -> tuple[ClientGraph, dict[str, GraphDef]]:
    """The graph, cut, and what to register with each task. Its parts have no workers yet. `able`: tasks that know
    bundles. Pure: on any thread. Raises what partition raises.
    """
    pruned = with_bundles(step.graph, step.bundles, able)
    cut = partition(pruned, incarnation=devices.incarnation, first_id=first_id)
    if cut.in_loops:
        _agree_on_frames(cut.parts, devices)
    tasks = sorted(cut.parts, key=lambda task: task == devices.client_task)
    parts = [_keys_of(task, cut.parts[task], cut.in_loops) for task in tasks]
    return ClientGraph(signature, pruned, first_id, cut.next_id, parts), cut.parts


def _agree_on_frames(parts: dict[str, GraphDef], devices: DeviceSet) -> None:
    """Makes the parts of a loop over tasks say how its frames are numbered (compiler/part/frame_numbers.py).

    TensorFlow's servers number them as their own release does, whichever client built the graph: those that number them
    the old way do not fill in xla_global_id. A graph's version stays what it is, for it says what the nodes mean; only
    where none of its nodes hangs on it, workers of our earlier releases are told by it.
    """
    old = any(d.xla_global_id == 0 and d.name.partition("/device:")[0] in parts for d in devices.attributes)
    for part in parts.values():
        set_numbers(part, old)
        producer = part.versions.producer
        if producer >= graph_versions.CHANGES[-1].version:
            part.versions.producer = min(producer, NUMBERS_SINCE - 1) if old else max(producer, NUMBERS_SINCE)


def _keys_of(task: str, graph_def: GraphDef, in_loops: frozenset[str]) -> Part:
    part = Part(task)
    for node in graph_def.node:
        if node.op in RECV_OPS or node.op in SEND_OPS:
            channel = channel_of(node)
            if channel.client_terminated:
                keys = part.feed_keys if node.op in RECV_OPS else part.fetch_keys
                keys[channel.tensor_name] = channel.key
            elif node.op in SEND_OPS:
                sends = part.loop_sends if channel.key in in_loops else part.sends
                sends[channel.key] = channel.recv_device.partition("/device:")[0]
    return part
