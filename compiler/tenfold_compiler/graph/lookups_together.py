"""Lookups of embedding variables that a step can make at the same time become one: one exchange with each task.

A lookup is an EmbeddingSplit, a KvResourceGather for each part, an EmbeddingMerge, perhaps the EmbeddingSum of its
gradient and updates of the parts (opdefs/embedding_exchange.py). Those of tables that are spread over the same tasks in
the same way become one of each, whatever their number: 200 columns send as many tensors as one does. Called by
master/client_graph.py between place and partition; see docs/decisions/0193-one-exchange-a-step.md.

A *level* grows by one along every way out of such a node. Nodes of one level do not wait for each other, and what they
lead to is on higher ones, so that nodes of one level can be made one without closing a cycle.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tenfold_core import dtypes, opdefs
from tenfold_core.node_names import TensorName, free_name
from tenfold_core.opdefs.runtime_ops import DYNAMIC_OPS

from .node import Node, in_order, levels, make_node, new_def

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .runtime_graph import RuntimeGraph

_UPDATES = "KvResourceSparseApply"
#: Of one input; what they give can be taken from any of several that read the same.
_SAME_AGAIN = frozenset(("Cast", "Identity", "ReadVariableOp"))


@dataclass(slots=True)
class _Lookup:
    split: Node
    #: One for each part.
    gathers: list[Node]
    merge: Node
    #: That of the gradient.
    sum: Node | None = None

    @property
    def nodes(self) -> list[Node]:
        return [self.split, *self.gathers, self.merge, *([] if self.sum is None else [self.sum])]


def join_lookups(graph: RuntimeGraph) -> RuntimeGraph:
    """The graph with each set of lookups that can be one as one. A lookup in a branch or a loop stays as it is."""
    splits = [node for node in graph.nodes.values() if node.op == "EmbeddingSplit" and node.attrs["N"] == 1]
    if len(splits) < 2:
        return graph
    consumers = graph.consumers()
    in_flow = graph.behind(name for name, node in graph.nodes.items() if node.op in DYNAMIC_OPS)
    lookups = [_lookup(graph, consumers, split) for split in splits if split.name not in in_flow]
    joining = _Joining(graph, consumers, [each for each in lookups if each is not None])
    for group in joining.groups():
        joining.join(group)
    return joining.joined()


def _lookup(graph: RuntimeGraph, consumers: dict[str, list[Node]], split: Node) -> _Lookup | None:
    """The lookup that begins with `split`, None for one that is not as the client writes them."""
    parts = int(split.attrs["parts"])
    keys = [TensorName(split.name, part) for part in range(parts)]
    places = TensorName(split.name, 2 * parts)
    by_op: dict[str, list[Node]] = defaultdict(list)
    for node in consumers[split.name]:
        by_op[node.op].append(node)
    gathers = [node for key in keys for node in by_op["KvResourceGather"] if node.inputs[1] == key]
    rows = [TensorName(node.name, 0) for node in gathers]
    merges = [node for node in by_op["EmbeddingMerge"] if list(node.inputs) == [split.inputs[0], places, *rows]]
    sums = [node for node in by_op["EmbeddingSum"] if node.inputs[1] == places]
    readers = [node for node in consumers[split.name] if places in node.inputs]
    if len(gathers) != parts or len(merges) != 1 or len(sums) > 1 or len(readers) != 1 + len(sums):
        return None
    whole = all(len(consumers[node.name]) == 1 for node in gathers)
    handles = [graph.nodes[node.inputs[0].node] for node in gathers]
    plain = not any(node.attrs["is_use_default_value_tensor"] for node in gathers)
    if not whole or not plain or any(handle.op != "KvVarHandleOp" for handle in handles):
        return None
    return _Lookup(split, gathers, merges[0], sums[0] if sums else None)


class _Joining:
    """The lookups of one graph, and what becomes of its nodes."""

    def __init__(self, graph: RuntimeGraph, consumers: dict[str, list[Node]], lookups: list[_Lookup]) -> None:
        self._graph, self._consumers, self._lookups = graph, consumers, lookups
        self._made: list[Node] = []
        self._names = set(graph.nodes)
        #: Node that is gone → the one that does its work.
        self._gone: dict[str, str] = {}
        self._tensors: dict[TensorName, TensorName] = {}
        #: Tensors of lookups that are gone, what has all of them, and how many rows each has.
        self._shares: list[tuple[list[TensorName], TensorName, TensorName]] = []
        #: Nodes that gradients went through: those that nobody reads any more go, too.
        self._passed: dict[str, None] = {}
        pieces = {node.name for lookup in lookups for node in lookup.nodes}
        pieces |= {node.name for node in graph.nodes.values() if node.op.startswith(_UPDATES)}
        order = in_order(graph.nodes, graph.nodes)
        self._level = levels(order, graph.nodes, lambda source, _: source.name in pieces)

    def groups(self) -> list[list[_Lookup]]:
        """Those that can be one, in the order of the graph."""
        found: dict[Any, list[_Lookup]] = defaultdict(list)
        for lookup in self._lookups:
            found[self._kind(lookup)].append(lookup)
        return [group for group in found.values() if len(group) > 1]

    def _kind(self, lookup: _Lookup) -> Any:
        split, handles = lookup.split, [self._graph.nodes[node.inputs[0].node] for node in lookup.gathers]
        return (
            (split.attrs["Tkeys"], split.attrs["distinct"], lookup.gathers[0].attrs["dtype"]),
            *((node.op, node.device, self._level[node.name]) for node in lookup.nodes),
            *(node.attrs["is_inference"] for node in lookup.gathers),
            *(str(handle.attrs["shape"]) for handle in handles),
        )

    def join(self, group: list[_Lookup]) -> None:
        """Makes one lookup of several."""
        first, parts = group[0], len(group[0].gathers)
        attrs: dict[str, Any] = {"N": len(group), "Tkeys": first.split.attrs["Tkeys"]}
        dtype = first.gathers[0].attrs["dtype"]
        ids = [lookup.split.inputs[0] for lookup in group]
        more = {"parts": parts, "distinct": first.split.attrs["distinct"]}
        split = self._make("EmbeddingSplit", [lookup.split for lookup in group], ids, attrs | more)
        *outputs, places = (TensorName(split, number) for number in range(2 * parts + 1))
        keys, sizes, rows = outputs[:parts], outputs[parts:], []
        for part in range(parts):
            gathers = [lookup.gathers[part] for lookup in group]
            inputs = [*(node.inputs[0] for node in gathers), keys[part], sizes[part]]
            more = {"dtype": dtype, "is_inference": gathers[0].attrs["is_inference"]}
            rows.append(TensorName(self._make("KvResourceGathers", gathers, inputs, attrs | more), 0))
        merges, inputs = [lookup.merge for lookup in group], [*ids, places, *rows]
        merge = self._make("EmbeddingMerge", merges, inputs, attrs | {"parts": parts, "T": dtype})
        self._tensors |= {TensorName(node.name, 0): TensorName(merge, n) for n, node in enumerate(merges)}
        sums = [lookup.sum for lookup in group if lookup.sum is not None]
        for part in range(parts):
            self._shares.append(([TensorName(each.split.name, part) for each in group], keys[part], sizes[part]))
        if sums:
            inputs = [*(node.inputs[0] for node in sums), places, *sizes]
            total = self._make("EmbeddingSum", sums, inputs, {"N": len(group), "parts": parts, "T": dtype})
            for part, grad in enumerate(TensorName(total, part) for part in range(parts)):
                self._shares.append(([TensorName(node.name, part) for node in sums], grad, sizes[part]))
                self._join_updates(group, part, (grad, keys[part], sizes[part]))

    def _make(self, op: str, nodes: Sequence[Node], inputs: Sequence[TensorName], attrs: dict[str, Any]) -> str:
        """One node instead of several, which are gone; its name."""
        controls = dict.fromkeys(f"^{name}" for node in nodes for name in node.control_inputs)
        name = free_name(f"{nodes[0].name}/together", self._names)
        self._made.append(make_node(new_def(op, name, [*inputs, *controls], attrs, nodes[0].device)))
        self._gone |= {node.name: name for node in nodes}
        return name

    def _join_updates(self, group: Sequence[_Lookup], part: int, given: tuple[TensorName, ...]) -> None:
        """Makes one update of those of a part, if all are of one kind. `given`: gradients, keys, sizes."""
        found = [node for lookup in group if (node := self._update(lookup, part)) is not None]
        if len(found) < len(group) or len({(node.op, node.device, self._level[node.name]) for node in found}) > 1:
            return
        first = found[0]
        names = [argument.name for argument in opdefs.get(first.op).inputs]
        between = [n for n, name in enumerate(names) if name not in ("grad", "indices")]
        apart = [n for n in between if len({self._meaning(node.inputs[n]) for node in found}) > 1]
        if not apart or any(first.input_types[n] is not dtypes.resource for n in apart):
            return
        shared = [n for n in between if n not in apart]
        attrs: dict[str, Any] = {"op": first.op, "apart": apart, "N": len(found), "M": len(found) * len(apart)}
        attrs |= {"Tothers": [first.input_types[n] for n in shared]}
        attrs |= {name: first.attrs[name] for name in ("T", "Tindices")}
        inputs = [*(node.inputs[n] for node in found for n in apart), *(first.inputs[n] for n in shared), *given]
        self._make("KvResourceSparseApplies", found, inputs, attrs)

    def _update(self, lookup: _Lookup, part: int) -> Node | None:
        """What updates a part with the gradient of the lookup as it is; None for an update with options, or none."""
        assert lookup.sum is not None
        given = TensorName(lookup.sum.name, part), TensorName(lookup.split.name, part)
        readers = self._consumers[lookup.sum.name]
        for node in (each for reader in readers for each in (reader, *self._consumers[reader.name])):
            if node.op.startswith(_UPDATES):
                definition = opdefs.get(node.op)
                inputs = dict(zip((argument.name for argument in definition.inputs), node.inputs, strict=True))
                options = [name for name, attr in definition.attr_by_name.items() if attr.type == "bool"]
                if (self._gradient(inputs["grad"], lookup.sum), inputs["indices"]) == given:
                    return None if any(node.attrs[name] for name in options if name != "use_locking") else node
        return None

    def _gradient(self, tensor: TensorName, total: Node) -> TensorName:
        """The tensor behind the Identity that a gradient of several outputs goes through, when all of them are there:
        they are those of one sum."""
        node = self._graph.nodes[tensor.node]
        gates = [self._graph.nodes[name] for name in node.control_inputs]
        if node.op != "Identity" or any(set(each.sources) != {total.name} or each.op != "NoOp" for each in gates):
            return tensor
        self._passed |= dict.fromkeys((node.name, *node.control_inputs))
        return node.inputs[0]

    def _meaning(self, tensor: TensorName) -> Any:
        """Equal for tensors of which any can be taken."""
        node = self._graph.nodes[tensor.node]
        if node.op == "Const" and not node.control_inputs:
            return node.op, node.node_def.attr["value"].SerializeToString(deterministic=True)
        if node.op in _SAME_AGAIN and not node.control_inputs:
            return node.op, node.output_types, node.device, self._meaning(node.inputs[0])
        return tensor

    def joined(self) -> RuntimeGraph:
        """The graph, with what was joined."""
        gone = set(self._gone)
        for name in self._passed:
            if all(node.name in gone for node in self._consumers[name]):
                gone.add(name)
        nodes = [*(node for node in self._graph.nodes.values() if node.name not in gone), *self._made]
        #: Share → the devices where it is read.
        readers: dict[TensorName, set[str]] = {each: set() for tensors, _, _ in self._shares for each in tensors}
        for node in nodes:
            for tensor in node.inputs:
                if tensor in readers:
                    readers[tensor].add(node.device)
        #: A share and such a device → what it is there.
        taken: dict[tuple[TensorName, str], TensorName] = {}
        for tensors, together, sizes in self._shares:
            attrs = {"N": len(tensors), "T": self._graph.tensor_type(tensors[0])}
            for number, device in enumerate(sorted(set().union(*(readers[each] for each in tensors)))):
                name = free_name(f"{together.node}/rows_{together.output}_{number}", self._names)
                nodes.append(make_node(new_def("EmbeddingRows", name, [together, sizes], attrs, device)))
                taken |= {(each, device): TensorName(name, n) for n, each in enumerate(tensors)}
        return self._graph.with_nodes(self._rewired(node, taken) for node in nodes)

    def _rewired(self, node: Node, taken: Mapping[tuple[TensorName, str], TensorName]) -> Node:
        inputs = tuple(taken.get((t, node.device)) or self._tensors.get(t, t) for t in node.inputs)
        control = tuple(dict.fromkeys(self._gone.get(name, name) for name in node.control_inputs))
        return replace(node, inputs=inputs, control_inputs=control)
