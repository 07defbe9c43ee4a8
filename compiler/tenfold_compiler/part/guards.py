"""When a node of a part with branches runs: its guard, a conjunction of what predicates must have been.

    s = Switch(x, p)   a = f(s:0)   b = g(s:1)   m = Merge(a, b)        a: {¬p}    b: {p}    m: {}

A node runs when all its inputs are alive: its guard is the union of theirs. A Switch adds a literal, a Merge of all
cases takes it away, a tensor from another task may come dead unless the master knows better (graph/partition.py).
Guards belong to a frame. Used by structured_flow.py; deadness as in services/worker/propagator.py and TensorFlow's
executor.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tenfold_core.opdefs.runtime_ops import ALIVE_ATTR, MERGE_OPS, RECV_OPS, SWITCH_N_OPS, SWITCH_OPS, TRIGGER_OPS
from tenfold_core.reached import reached

from .loop_tree import Loop, LoopTree, Member, Unstructured
from .part_graph import Edge, PartGraph, PartNode, is_variable, sources_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

#: Ports of what generated code knows of a node besides its outputs: "is the tensor that came alive", "has a Merge had a
#: live input". Port p's truth is TRUTH - 2p, and as a number of a case that is one less.
ALIVE, ANY, TRUTH = -2, -3, -4


class Literal(NamedTuple):
    """One condition: something known of a node's output has this value."""

    #: (node, ALIVE), (node, ANY), or what `truth_of` and `case_of` say.
    edge: Edge
    value: int
    #: How many values there are; 0 where the others have no name.
    values: int

    @property
    def other(self) -> Literal:
        """That it has the other one of two values."""
        return self._replace(value=1 - self.value)


Guard: TypeAlias = frozenset[Literal]
ALWAYS: Guard = frozenset()


def truth_of(edge: Edge) -> Edge:
    """Names the output as a bool."""
    return edge[0], TRUTH - 2 * edge[1]


def case_of(edge: Edge) -> Edge:
    """Names the output as the number of a case."""
    return edge[0], TRUTH - 2 * edge[1] - 1


def source_of(edge: Edge) -> Edge:
    """The output that a literal's edge speaks of."""
    return (edge[0], (TRUTH - edge[1]) // 2) if edge[1] <= TRUTH else (edge[0], 0)


class Guards:
    """The guards of a part. Raises Unstructured for deadness that has no simple form."""

    def __init__(self, part: PartGraph, tree: LoopTree, origin: Mapping[Edge, Edge]) -> None:
        """`origin` leads to the producer of an edge, past nodes that hand on."""
        self._part, self._tree, self._origin = part, tree, origin
        self._blocks = any(node.blocking for node in part.nodes)
        #: By node, in the frame that it runs in; of an Enter in the frame around its loop.
        self.of: list[Guard] = [ALWAYS] * len(part.nodes)
        #: By loop, in the frame around it.
        self.of_loop: dict[Loop, Guard] = {}
        #: The condition under which a loop goes on, as seen in its frame.
        self.goes_on: dict[Loop, Literal] = {}
        #: Merges whose guard has a literal of their own, and when their inputs are alive.
        self.flagged: dict[int, list[Guard]] = {}
        #: What Switches look at → how many values it has for them.
        self._values: dict[Edge, int] = {}
        #: The same guard is the same object.
        self._known: dict[Guard, Guard] = {ALWAYS: ALWAYS}
        self._frame(tree.members)

    def of_edge(self, source: int, port: int) -> Guard:
        """When the output `port` of a node is alive, for who reads it."""
        if source in self._tree.entered:
            return ALWAYS
        node, guard = self._part.nodes[source], self.of_control(source)
        if node.op in SWITCH_OPS or node.op in SWITCH_N_OPS:
            edge, values = self.predicate(node), len(node.output_types)
            if self._values.setdefault(edge, values) != values:
                # case 1 of 2 and case 2 of 3 are one number
                text = f"'{node.name}' looks at a number of which another one has more or fewer cases"
                raise Unstructured(text, [node])
            return self._with(guard, Literal(edge, port, values))
        return guard

    def of_control(self, source: int) -> Guard:
        """When a node runs, for who waits for it."""
        if source in self._tree.entered:
            return ALWAYS
        loop = self._tree.frame_of[source]
        if loop is not None and self._part.nodes[source] in loop.exits:
            return self.of_loop[loop]
        return self.of[source]

    def of_member(self, member: Member) -> Guard:
        """In the frame that the member stands in."""
        return self.of_loop[member] if isinstance(member, Loop) else self.of[member.index]

    def predicate(self, switch: PartNode) -> Edge:
        """What a Switch looks at. A reference is read when the Switch runs."""
        edge = (switch.index, 0) if switch.deref[1] else self._origin.get(switch.inputs[1], switch.inputs[1])
        return truth_of(edge) if switch.op in SWITCH_OPS else case_of(edge)

    def _frame(self, members: Sequence[Member]) -> None:
        for member in members:
            if isinstance(member, Loop):
                self._loop(member)
            else:
                self.of[member.index] = self._node(member)

    def _loop(self, loop: Loop) -> None:
        for enter in loop.enters:
            self.of[enter.index] = self._of_inputs(enter)
        # a loop in a loop gets some values in the last turn of the outer one too, and does not run for that
        self.of_loop[loop] = self._kept(frozenset().union(*(self.of[enter.index] for enter in loop.enters)))
        self._frame(loop.members)
        self._read_turns(loop)

    def _read_turns(self, loop: Loop) -> None:
        """Checks that all that goes into the next turn does so under one condition, and what leaves under its other."""
        nexts = {self.of[variable.inputs[1][0]] for variable in loop.variables}
        if len(nexts) != 1:
            raise Unstructured(f"the variables of '{loop.name}' go on under different conditions", loop.enters)
        (guard,) = nexts
        if len(guard) != 1:
            raise Unstructured(f"'{loop.name}' goes on under {len(guard)} conditions", loop.enters)
        (literal,) = guard
        if literal.values != 2 or self._tree.frame_of[literal.edge[0]] is not loop:
            raise Unstructured(f"the condition of '{loop.name}' does not change", loop.enters)
        for node in loop.exits:
            if self.of[node.index] != {literal.other}:
                raise Unstructured(f"'{node.name}' does not leave '{loop.name}' where it ends", loop.enters)
        self.goes_on[loop] = literal
        alone = frozenset().union(*(self.of[enter.index] for enter in self._enters_behind(loop, literal.edge[0])))
        if any(missing.edge[1] not in (ALIVE, ANY) for missing in self.of_loop[loop] - alone):
            raise Unstructured(f"'{loop.name}' would run while some of its inputs are dead", loop.enters)

    def _enters_behind(self, loop: Loop, index: int) -> list[PartNode]:
        """The Enters of a loop that a node of it depends on within one turn."""
        nodes, entered = self._part.nodes, self._tree.entered
        found = reached([index], lambda at: () if entered.get(at) is loop else sources_of(nodes, nodes[at]))
        return [nodes[at] for at in found if entered.get(at) is loop]

    def _node(self, node: PartNode) -> Guard:
        if node.op in TRIGGER_OPS:
            return ALWAYS
        if node.op in MERGE_OPS:
            return self._merge(node)
        guard = self._of_inputs(node)
        if node.op in RECV_OPS and not node.client_terminated and ALIVE_ATTR not in node.node_def.attr:
            guard = self._with(guard, Literal((node.index, ALIVE), 1, 0))
        return guard

    def _of_inputs(self, node: PartNode) -> Guard:
        guard = ALWAYS
        for source, port in node.inputs:
            guard = self._both(guard, self.of_edge(source, port))
        for source in node.controls:
            guard = self._both(guard, self.of_control(source))
        return self._without_implied(guard) if self.flagged else guard

    def _without_implied(self, guard: Guard) -> Guard:
        """Without the literals of Merges that the others make sure of: in a turn that goes on, both branches of a
        condition from outside the loop are alive, though in the last turn one may not be.
        """
        for literal in guard:
            cases = self.flagged.get(literal.edge[0]) if literal.edge[1] == ANY else None
            if cases:
                rest = guard - {literal}
                left = {case - rest for case in cases if not _exclude(case, rest)}
                if left and _any_of(left) == ALWAYS:
                    return self._without_implied(self._kept(rest))
        return guard

    def _merge(self, node: PartNode) -> Guard:
        """When some input is alive; controls do not make a Merge dead."""
        if is_variable(self._part.nodes, node):
            return ALWAYS
        sources = {source for source, _ in node.inputs}
        for source in sources:
            # A Merge takes what came over the wire, though the _Recv waited for another of its inputs, which is dead:
            # so does TensorFlow's cut read a reference.
            if self._part.nodes[source].op in RECV_OPS and not sources.isdisjoint(self._part.nodes[source].controls):
                late = [node, self._part.nodes[source]]
                raise Unstructured(f"Merge '{node.name}' takes what is received after another of its inputs", late)
        every = [self.of_edge(source, port) for source, port in node.inputs]
        cases = [case for case in every if not _exclude(case, case)] or every
        if self._blocks and any(
            not _exclude(a, b) for number, a in enumerate(cases) for b in cases[:number] if a != b or not a
        ):
            raise Unstructured(f"Merge '{node.name}' takes what comes first, and some kernel may wait", [node])
        together = _any_of(set(cases))
        if together is not None:
            return self._kept(together)
        self.flagged[node.index] = cases
        common = frozenset.intersection(*cases)
        return self._with(common, Literal((node.index, ANY), 1, 0))

    def _with(self, guard: Guard, literal: Literal) -> Guard:
        return guard if literal in guard else self._kept(guard | {literal})

    def _both(self, a: Guard, b: Guard) -> Guard:
        if a is b or not b:
            return a
        return self._kept(a | b) if a else b

    def _kept(self, guard: Guard) -> Guard:
        return self._known.setdefault(guard, guard)


def _exclude(a: Guard, b: Guard) -> bool:
    """Whether no step can have both."""
    values: dict[Edge, int] = {}
    return any(values.setdefault(literal.edge, literal.value) != literal.value for literal in (*a, *b))


def _any_of(cases: Set[Guard]) -> Guard | None:
    """The guard that says "one of these", or None where it takes more than a conjunction."""
    while len(cases) > 1:
        fewer = _with_two_joined(cases)
        if fewer is None:
            return None
        cases = fewer
    return next(iter(cases))


def _with_two_joined(cases: Set[Guard]) -> Set[Guard] | None:
    """The cases without one that another one holds, or with all values of a literal as one; None for no such."""
    for case in cases:
        if any(other < case for other in cases):
            return cases - {case}
        for literal in case:
            rest = case - {literal}
            siblings = {rest | {literal._replace(value=value)} for value in range(literal.values)}
            if siblings and siblings <= cases:
                return (cases - siblings) | {rest}
    return None
