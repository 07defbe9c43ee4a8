"""Splits a placed graph into one part per task and joins the parts with _Send and _Recv.

Called by master/client_graph.py after prune. One pair for each (tensor, receiving device), however many nodes there
take it; a control edge crosses as an empty float. Inside a loop a _Recv waits for the Merge of the loop that its device
follows (control_loops.py), so that it runs in each iteration. A _Recv of a graph with branches says whether its tensor
may come dead. Follows TensorFlow's graph_partition.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tenfold_core import dtypes
from tenfold_core.device import task_of
from tenfold_core.node_names import TensorName
from tenfold_core.opdefs.runtime_ops import ALIVE_ATTR, BRANCH_OPS, DYNAMIC_OPS, ENTER_OPS, RECV_OPS
from tenfold_protos import graph_pb2

from .control_loops import ControlLoops, colocate_control_flow
from .node import new_def, no_floats
from .send_recv import Channel, recv_node, send_node

if TYPE_CHECKING:
    from .control_loops import LoopFrame
    from .node import Node
    from .runtime_graph import RuntimeGraph

#: Full device name → its incarnation, unsigned.
Incarnation: TypeAlias = Callable[[str], int]

#: The index that stands for "has run" where a control edge crosses.
_CONTROL = -1


class Partitions(NamedTuple):
    """The parts of one client graph."""

    #: Task → its part, in the order in which tasks first appear in the graph.
    parts: dict[str, graph_pb2.GraphDef]
    #: The first number that no new node's name has taken.
    next_id: int
    #: Rendezvous keys, as outside of loops, of what is sent in each iteration of a loop.
    in_loops: frozenset[str] = frozenset()


def partition(graph: RuntimeGraph, *, incarnation: Incarnation, first_id: int = 0) -> Partitions:
    """Cuts the graph by task; every node of a part has its full device.

    New nodes are named `<node>_S<number>` from `first_id` on. A session never uses a number twice, because a TensorFlow
    worker keeps stateful kernels by session and name. The same graph and `first_id` give the same parts. Raises
    InvalidArgumentError naming a loop over devices without a LoopCond, or a node whose inputs are in different loops,
    and KeyError if `incarnation` does not know a device.
    """
    if any(node.op in BRANCH_OPS or node.op in ENTER_OPS for node in graph.nodes.values()):
        graph = colocate_control_flow(graph)
    return _Partitioner(graph, incarnation, first_id).run()


class _Partitioner:
    """The state of one call: the parts so far, and which tensor already crosses to which device."""

    def __init__(self, graph: RuntimeGraph, incarnation: Incarnation, first_id: int) -> None:
        self._graph = graph
        self._incarnation = incarnation
        self._next_id = first_id
        self._next_edge = 0
        self._parts: dict[str, graph_pb2.GraphDef] = {}
        #: (source node, output or _CONTROL, receiving device, what a reference is read after) → the node there that has
        #: the value.
        self._arrived: dict[tuple[str, int, str, tuple[str, ...]], str] = {}
        self._task: dict[str, str] = {}
        #: None for a graph without loops.
        self._loops: ControlLoops | None = None
        self._in_loops: set[str] = set()

    def run(self) -> Partitions:
        if any(node.op in ENTER_OPS for node in self._graph.nodes.values()):
            self._loops = ControlLoops(self._graph, self._fresh)
            self._graph = self._loops.graph
        for device in dict.fromkeys(node.device for node in self._graph.nodes.values()):
            task = self._task[device] = task_of(device)
            if task not in self._parts:
                self._parts[task] = graph_pb2.GraphDef(versions=self._graph.versions)
        for node in self._graph.nodes.values():
            self._add(node)
        if self._graph.library:
            for part in self._parts.values():
                part.library.CopyFrom(self._graph.library.reachable(part.node))
        return Partitions(self._parts, self._next_id, frozenset(self._in_loops))

    def _add(self, node: Node) -> None:
        here = self._task[node.device]
        inputs: list[str] = []
        reads: list[int] = []
        for position, tensor in enumerate(node.inputs):
            source = self._graph.nodes[tensor.node]
            if self._task[source.device] == here:
                inputs.append(tensor.node if tensor.output == 0 else str(tensor))
            elif source.output_types[tensor.output].is_ref_dtype:
                reads.append(position)
                inputs.append("")
            else:
                inputs.append(self._carry(source, tensor.output, node.device, self._crossed(source, node)))
        for name in node.control_inputs:
            source = self._graph.nodes[name]
            local = self._task[source.device] == here
            after = name if local else self._carry(source, _CONTROL, node.device, self._crossed(source, node))
            inputs.append(f"^{after}")
        if reads:
            others = self._not_references(node)
            arrived = [inputs[position].partition(":")[0].lstrip("^") for position, _ in others]
            for position in reads:
                inputs[position] = self._read(node, position, [source for _, source in others], arrived)
        inputs += self._loop_controls(node, here)
        node_def = self._parts[here].node.add()
        # All at once: attribute by attribute takes twice as long.
        node_def.CopyFrom(node.node_def)
        node_def.ClearField("experimental_debug_info")
        node_def.name, node_def.op, node_def.device = node.name, node.op, node.device
        if node_def.input != inputs:
            del node_def.input[:]
            node_def.input.extend(inputs)
        # Colocation has done its work; a peer would take the names in it for nodes of this part.
        if "_class" in node_def.attr:
            del node_def.attr["_class"]

    def _loop_controls(self, node: Node, here: str) -> list[str]:
        """The Merge of the control loop that `node` follows, where another device of its own task feeds it in a loop.

        A worker of several devices cuts its part once more; the _Recv that it makes there needs the Merge.
        """
        if self._loops is None:
            return []
        found: dict[str, None] = {}
        for name in node.sources:
            source = self._graph.nodes[name]
            if source.device != node.device and self._task[source.device] == here:
                frame = self._loops.crossed_frame(source, node)
                if frame is not None:
                    found[f"^{self._loops.merges[frame, node.device]}"] = None
        return list(found)

    def _not_references(self, node: Node) -> list[tuple[int, Node]]:
        """(position, source) of the inputs of `node` that are no references, control inputs after the others."""
        nodes = self._graph.nodes
        data = [(position, tensor) for position, tensor in enumerate(node.inputs)]
        found = [(p, nodes[t.node]) for p, t in data if not nodes[t.node].output_types[t.output].is_ref_dtype]
        return found + [(p, nodes[name]) for p, name in enumerate(node.control_inputs, len(data))]

    def _read(self, consumer: Node, position: int, others: list[Node], arrived: list[str]) -> str:
        """The _Recv of a reference: `consumer` reads the value, and so no earlier than its `others` have run.

        The _Send waits for them where the reference is, so that the value can be pushed as any other; those of other
        tasks tell it by a control edge. In a loop the _Recv waits for what has `arrived`, as TensorFlow does it.
        """
        tensor = consumer.inputs[position]
        source = self._graph.nodes[tensor.node]
        frame = self._crossed(source, consumer)
        if frame is not None:
            return self._carry(source, tensor.output, consumer.device, frame, received_after=tuple(arrived))
        task = self._task[source.device]
        after: list[str] = []
        for other in others:
            if self._task[other.device] == task:
                after.append(other.name)
            elif other.name in self._informed:
                after.append(self._carry(other, _CONTROL, source.device, None))
        # the order does not matter, and the same _Recv serves all that wait for the same
        return self._carry(source, tensor.output, consumer.device, None, sent_after=tuple(sorted(set(after))))

    @cached_property
    def _informed(self) -> set[str]:
        """Nodes that may run after something that a reader has to see: a change that the node waits for, or one that it
        could know of, because a variable or a queue was read.
        """
        nodes = self._graph.nodes.values()
        return self._graph.behind(each.name for each in nodes if each.op_def.is_stateful and each.op not in RECV_OPS)

    @cached_property
    def _in_flow(self) -> set[str]:
        """Nodes that may not run in a step: those of branches and loops, and all behind them."""
        return self._graph.behind(name for name, node in self._graph.nodes.items() if node.op in DYNAMIC_OPS)

    def _crossed(self, source: Node, consumer: Node) -> LoopFrame | None:
        return None if self._loops is None else self._loops.crossed_frame(source, consumer)

    def _carry(
        self,
        source: Node,
        index: int,
        device: str,
        frame: LoopFrame | None,
        sent_after: tuple[str, ...] = (),
        received_after: tuple[str, ...] = (),
    ) -> str:
        """The node on `device` that has this output (or, for _CONTROL, that runs after `source`).

        `frame` is the loop that the edge belongs to. The last two are for reads: nodes of the part of `source` that the
        _Send waits for, and of the other part that the _Recv waits for.
        """
        key = (source.name, index, device, sent_after or received_after)
        if key in self._arrived:
            return self._arrived[key]
        channel = Channel(
            f"edge_{self._next_edge}_{source.name}", source.device, self._incarnation(source.device), device
        )
        self._next_edge += 1
        there, here = self._parts[self._task[source.device]], self._parts[self._task[device]]
        if index == _CONTROL:
            signal = no_floats(self._fresh(f"{source.name}/ctrl"), source.device, [f"^{source.name}"])
            there.node.append(signal)
            tensor, dtype = TensorName(signal.name, 0), dtypes.float32
        else:
            tensor, dtype = TensorName(source.name, index), source.output_types[index]
        there.node.append(send_node(self._fresh(source.name), tensor, dtype, channel, sent_after).node_def)
        received = recv_node(self._fresh(source.name), dtype, channel).node_def
        received.input.extend(f"^{name}" for name in dict.fromkeys(received_after))
        if self._in_flow and self._in_flow.isdisjoint((source.name, *sent_after)):
            received.attr[ALIVE_ATTR].b = True
        if frame is not None and self._loops is not None:
            received.input.append(f"^{self._loops.merges[frame, device]}")
            self._in_loops.add(channel.key)
        here.node.append(received)
        name = received.name
        if index == _CONTROL:
            # A control edge must not start at the _Recv itself: a dead signal would go unnoticed there.
            after = new_def("Identity", self._fresh(source.name), [name], {"T": dtypes.float32}, device)
            here.node.append(after)
            name = after.name
        self._arrived[key] = name
        return name

    def _fresh(self, prefix: str) -> str:
        """A name that the graph does not have."""
        while True:
            name = f"{prefix}_S{self._next_id}"
            self._next_id += 1
            if name not in self._graph.nodes:
                return name
