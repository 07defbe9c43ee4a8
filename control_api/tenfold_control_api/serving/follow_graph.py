"""Nodes by which a served graph takes in increments of checkpoints: one step reads one, another puts it in place.

    prefix ─► RestoreV2, IncrRestore, KvResourceIncrRead ─► queue of one element        read: beside requests
    queue ─► copies of what the graph's own restore does with its values                put: while no request runs

What a graph restores is found from its Saver's restore operation, so that any SavedModel will do. A read that fails
leaves nothing in the queue and changes nothing. Pure; used by saved.py.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold_core.checkpoint import increments
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_util import make_ndarray, make_tensor_proto
from tenfold_protos import types_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.node_def_pb2 import NodeDef
    from tenfold_protos.saver_pb2 import SaverDef

#: Between a value that was read and what it is assigned by.
_PASSING = frozenset({"Identity", "EnsureShape", "Reshape"})
_ASSIGNING = frozenset({"Assign", "AssignVariableOp"})
_VARIABLES = frozenset({"VarHandleOp", "Variable", "VariableV2"})


@dataclass(frozen=True, slots=True)
class FollowSteps:
    """Names of what the steps of a graph that follows a training feed, run and fetch."""

    #: Fed with the prefix of an increment.
    prefix: str
    read: str
    put: str
    #: [rows, width] of each embedding variable or part of one.
    shapes: tuple[str, ...]


def add_follow_nodes(graph: GraphDef, saver: SaverDef) -> FollowSteps:
    """Adds the nodes to the graph, which is complete otherwise. Raises ValueError for a graph that has no Saver, or one
    that computes the names of what it restores."""
    if not saver.restore_op_name:
        raise ValueError("its graph restores no variables, so there is nothing that could follow a training")
    return _Builder(graph, saver.restore_op_name.partition(":")[0]).build()


class _Builder:
    def __init__(self, graph: GraphDef, restore: str) -> None:
        self._graph, self._restore = graph, restore
        self._nodes = {node.name: node for node in graph.node}
        scope = "follow_training"
        while any(name == scope or name.startswith(f"{scope}/") for name in self._nodes):
            scope += "_"
        self._scope = scope
        self._prefix = self._add("prefix", "Placeholder", dtype=types_pb2.DT_STRING).name
        #: What the queue holds: the tensors that were read, and their types.
        self._held: list[tuple[str, int]] = []

    def build(self) -> FollowSteps:
        members = self._ancestors()
        after = self._that_restore(members)
        #: Output of a reading node of the graph → its place in the queue.
        places: dict[str, int] = {}
        tables: dict[str, range] = {}
        for name in members:
            node = self._nodes[name]
            if node.op == "RestoreV2":
                for i in range(len(node.attr["dtypes"].list.type)):
                    places[f"{name}:{i}"] = self._hold(*self._value(node, i, after))
            elif node.op == "KvResourceImportV2":
                tables[name] = self._read_table(node)
        if not self._held:
            raise ValueError("its Saver restores nothing by RestoreV2 or KvResourceImportV2")
        types = [dtype for _, dtype in self._held]
        queue = self._add("queue", "FIFOQueueV2", component_types=types, capacity=1).name
        read = self._add("read", "QueueEnqueueV2", queue, *(tensor for tensor, _ in self._held), Tcomponents=types)
        taken = self._add("taken", "QueueDequeueV2", queue, component_types=types).name
        for name in members:
            if name in tables:
                self._put_table(self._nodes[name], taken, tables[name])
            elif name in after:
                self._copy(self._nodes[name], taken, places, after)
        handles = dict.fromkeys(
            self._nodes[name].input[1] for name in tables if self._nodes[name].input[1] == self._nodes[name].input[2]
        )
        shapes = [self._shape_of(i, handle) for i, handle in enumerate(handles)]
        return FollowSteps(f"{self._prefix}:0", read.name, self._copied(self._restore), tuple(shapes))

    # -- what the graph restores

    def _ancestors(self) -> list[str]:
        """The restore operation and all that it needs, what is needed first."""
        order: dict[str, None] = {}
        pending = [(self._restore, False)]
        seen = set()
        while pending:
            name, is_done = pending.pop()
            if is_done:
                order[name] = None
            elif name not in seen:
                if name not in self._nodes:
                    raise ValueError(f"its graph has no node {name!r}, which restoring it needs")
                seen.add(name)
                pending.append((name, True))
                pending += [(_name(each), False) for each in self._nodes[name].input]
        return list(order)

    def _that_restore(self, members: Iterable[str]) -> dict[str, NodeDef]:
        """Those of the nodes that have values of a checkpoint, or come after what has; without those that read them."""
        found: dict[str, NodeDef] = {}
        readers = set()
        for name in members:
            node = self._nodes[name]
            if node.op in ("RestoreV2", "KvResourceImportV2"):
                readers.add(name)
            elif any(_name(each) in readers or _name(each) in found for each in node.input):
                found[name] = node
        return found

    def _constant(self, node: NodeDef, place: int) -> Any:
        constant = self._nodes[_name(node.input[place])]
        if constant.op != "Const":
            raise ValueError(f"the names under which its node {node.name!r} looks for values are computed")
        return [each.decode() for each in make_ndarray(constant.attr["value"].tensor).reshape(-1).tolist()]

    def _variable(self, value: str, after: Mapping[str, NodeDef]) -> tuple[NodeDef, str] | None:
        """The variable that a value which was read is assigned to, and the tensor by which it is named there."""
        pending = deque([value])
        while pending:
            tensor = pending.popleft()
            for node in after.values():
                inputs = [_tensor(each) for each in node.input if not each.startswith("^")]
                if node.op in _ASSIGNING and len(inputs) > 1 and inputs[1] == tensor:
                    variable = self._nodes[_name(inputs[0])]
                    return (variable, node.input[0]) if variable.op in _VARIABLES else None
                if node.op in _PASSING and inputs[:1] == [tensor]:
                    pending.append(f"{node.name}:0")
        return None

    # -- reading

    def _value(self, node: NodeDef, i: int, after: Mapping[str, NodeDef]) -> tuple[str, int]:
        """The tensor that reads the `i`-th value of a RestoreV2 in an increment, and its type. Of a variable of two
        dimensions or more an increment may have some rows: they are put into its present value."""
        name, spec = self._constant(node, 1)[i], self._constant(node, 2)[i]
        dtype = node.attr["dtypes"].list.type[i]
        found = self._variable(f"{node.name}:{i}", after)
        own = f"read/{node.name}/{i}"
        specs = self._text(f"{own}/specs", [spec])
        variable = None if found is None else found[0]
        by_rows = variable is not None and len(variable.attr["shape"].shape.dim) >= 2 and dtype != types_pb2.DT_STRING
        if by_rows and spec:
            by_rows = increments.rows_of(spec) is not None
        if not by_rows:
            names = self._text(f"{own}/names", [name])
            made = self._add(own, "RestoreV2", self._prefix, names, specs, dtypes=[dtype])
            return f"{made.name}:0", dtype
        assert found is not None
        variable, tensor = found
        if spec and increments.whole_name(variable.name) == name:
            name = variable.name
        value = tensor
        if variable.op == "VarHandleOp":
            value = self._add(f"{own}/value", "ReadVariableOp", tensor, dtype=dtype).name
        names = self._text(f"{own}/names", [name])
        sparse = self._const(f"{own}/sparse", [True], types_pb2.DT_BOOL)
        made = self._add(own, "IncrRestore", self._prefix, names, specs, sparse, value, dtypes=[dtype])
        # no increments are made of what is served: nothing has to be remembered for them
        made.attr["_reads_only"].b = True
        return f"{made.name}:0", dtype

    def _read_table(self, node: NodeDef) -> range:
        """Reads what an increment has of the table that a KvResourceImportV2 restores; the places in the queue."""
        made = self._add(f"read/{node.name}", "KvResourceIncrRead", self._prefix, node.input[1], node.input[4])
        for name in ("Tkeys", "dtype", "partition_id", "partition_num"):
            if name in node.attr:
                made.attr[name].CopyFrom(node.attr[name])
        keys, dtype = node.attr["Tkeys"].type, node.attr["dtype"].type
        types = (keys, dtype, types_pb2.DT_INT64, types_pb2.DT_INT64, keys)
        places = [self._hold(f"{made.name}:{i}", each) for i, each in enumerate(types)]
        return range(places[0], places[-1] + 1)

    def _hold(self, tensor: str, dtype: int) -> int:
        self._held.append((tensor, dtype))
        return len(self._held) - 1

    # -- putting in place

    def _put_table(self, node: NodeDef, taken: str, places: range) -> None:
        values = [f"{taken}:{place}" for place in places]
        made = self._add(f"put/{node.name}", "KvResourceIncrApply", node.input[1], *values)
        for name in ("Tkeys", "dtype"):
            made.attr[name].CopyFrom(node.attr[name])

    def _copy(
        self,
        node: NodeDef,
        taken: str,
        places: Mapping[str, int],
        after: Mapping[str, NodeDef],
    ) -> None:
        copy = self._graph.node.add()
        copy.CopyFrom(node)
        copy.name = self._copied(node.name)
        del copy.input[:]
        for each in node.input:
            is_control, name = each.startswith("^"), _name(each)
            if is_control and self._nodes[name].op != "RestoreV2":
                if name in after or self._nodes[name].op == "KvResourceImportV2":
                    copy.input.append(f"^{self._copied(name)}")
            elif not is_control:
                place = places.get(_tensor(each))
                if place is not None:
                    copy.input.append(f"{taken}:{place}")
                elif name in after:
                    copy.input.append(self._copied(name) + each[len(name) :])
                else:
                    copy.input.append(each)

    def _copied(self, name: str) -> str:
        return f"{self._scope}/put/{name}"

    # -- nodes

    def _add(self, name: str, op: str, *inputs: str, **attributes: Any) -> NodeDef:
        node = self._graph.node.add(name=f"{self._scope}/{name}", op=op, input=inputs)
        for each, value in attributes.items():
            if isinstance(value, list):
                node.attr[each].list.type.extend(value)
            elif each == "capacity":
                node.attr[each].i = value
            else:
                node.attr[each].type = value
        return node

    def _text(self, name: str, texts: list[str]) -> str:
        return self._const(name, [text.encode() for text in texts], types_pb2.DT_STRING)

    def _const(self, name: str, values: list[Any], dtype: int) -> str:
        node = self._add(name, "Const", dtype=dtype)
        node.attr["value"].tensor.CopyFrom(make_tensor_proto(values, as_dtype(dtype)))
        return str(node.name)

    def _shape_of(self, number: int, handle: str) -> str:
        node = self._add(f"shape_{number}", "KvVariableShape", handle, Tkeys=types_pb2.DT_INT64)
        source = self._nodes[_name(handle)]
        for name in ("Tkeys", "dtype"):
            if name in source.attr:
                node.attr[name].CopyFrom(source.attr[name])
        return f"{node.name}:0"


def _name(given: str) -> str:
    """The node of an input, "^a", "a" or "a:1"."""
    return given.removeprefix("^").partition(":")[0]


def _tensor(given: str) -> str:
    """ "a:0", of "a"."""
    return given if ":" in given else f"{given}:0"
