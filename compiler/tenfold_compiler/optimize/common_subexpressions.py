"""Computes the same op of the same inputs once.

Two nodes merge when both are pure and agree in op, attributes and inputs (the two of a commutative op in any order),
and when the later one waited for all that the earlier one waits for: then the readers of the later one lose nothing,
neither an order nor a dead branch. Where an input may be a view of a variable, the controls must be the same, because
an assignment may lie between. Follows optimizer_cse.cc.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

from tenfold_compiler.part.node_facts import Constants, is_pure, views_of_references
from tenfold_core import opdefs
from tenfold_core.opdefs.runtime_ops import ORDER_OPS

from .edits import read_past, retire

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tenfold_compiler.part.part_graph import Edge, PartGraph, PartNode


#: What keeps the time linear in the nodes: how often all are gone through, how many nodes that are alike but for what
#: they waited for are compared with another one, and through NoOps that wait for how many nodes one sees.
_ROUNDS, _ALIKE, _SEEN_THROUGH = 16, 16, 64
_NOTHING: frozenset[int] = frozenset()


def merge_common_subexpressions(part: PartGraph, constants: Constants) -> int:
    """Returns how many nodes it merged into others."""
    return sum(itertools.takewhile(bool, (_merge_once(part, constants) for _ in range(_ROUNDS))))


def _merge_once(part: PartGraph, constants: Constants) -> int:
    volatile = views_of_references(part, constants)
    waits = _waits(part)
    kinds = _Kinds()
    first: dict[Hashable, list[PartNode]] = {}
    edges: dict[Edge, Edge] = {}
    gone: list[tuple[PartNode, PartNode]] = []
    for node in part.nodes:
        key = _key(node, edges, constants, kinds)
        if key is None:
            continue
        others = first.setdefault(key, [])
        # a constant of a loop stands in its frame, another one does not
        strict = any(source in volatile for source, _ in node.inputs) or (part.is_dynamic and not node.inputs)
        for other in others:
            mine, its = waits[node.index], waits[other.index]
            if its == mine if strict else its <= mine:
                edges.update(((node.index, port), (other.index, port)) for port in range(len(node.output_types)))
                gone.append((node, other))
                break
        else:
            if len(others) < _ALIKE:
                others.append(node)
    read_past(part, edges)
    for node, other in gone:
        constants.pop(node.index, None)
        retire(node, other.index)
    return len(gone)


def _waits(part: PartGraph) -> list[frozenset[int]]:
    """Per node: the nodes that its control edges wait for, NoOps that wait for few seen through."""
    waits: list[frozenset[int]] = []
    seen_through: dict[int, frozenset[int]] = {}
    for node in part.nodes:
        found: set[int] | frozenset[int] = _NOTHING
        if node.controls:
            found = set()
            for control in node.controls:
                found |= seen_through.get(control) or {control}
        waits.append(frozenset(found))
        if node.op in ORDER_OPS and len(found) <= _SEEN_THROUGH:
            seen_through[node.index] = waits[-1]
    return waits


def _key(node: PartNode, edges: dict[Edge, Edge], constants: Constants, kinds: _Kinds) -> Hashable | None:
    """What two nodes must share to be the same, or None for a node that never merges."""
    if node.index in constants:
        values = constants[node.index]
        if any(value.dtype.hasobject or value.nbytes > 4096 for value in values):
            return None
        return ("constant", *((value.dtype.str, value.shape, value.tobytes()) for value in values))
    if not node.inputs or any(node.deref) or not is_pure(node):
        return None
    inputs = [edges.get(source, source) for source in node.inputs]
    if len(inputs) == 2 and _is_commutative(node.op):  # of three, another order is another sum
        inputs.sort()
    return kinds.of(node), node.node_def.device, tuple(inputs)


@functools.lru_cache(4096)
def _is_commutative(op: str) -> bool:
    return opdefs.has(op) and opdefs.get(op).is_commutative


class _Kinds:
    """Numbers for what nodes share but for their inputs and device: op, attributes and types."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        #: By op and the identity of its attributes, which the nodes of a kind share (core/resolver.py), with them.
        self._known: dict[tuple[str, int], tuple[Any, int]] = {}

    def of(self, node: PartNode) -> int:
        key = node.op, id(node.attrs)
        found = self._known.get(key)
        if found is None:
            # the same bytes each time: of attributes, only functions hold a map, and no op that computes has one
            texts = {name: value.SerializeToString() for name, value in node.node_def.attr.items()}
            attrs = tuple(sorted(each for each in texts.items() if not each[0].startswith("_")))
            kind = node.op, node.input_types, attrs
            found = self._known[key] = node.attrs, self._numbers.setdefault(kind, len(self._numbers))
        return found[1]
