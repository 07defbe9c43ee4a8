"""Writes regions with branches and loops: nodes of one guard in one `if`, a loop as a `while`.

    v1 = k1(v0)
    b1 = not not v1                    what Switches look at, as bool
    if b1:
     v4 = k4(v0, c3)
    if not b1:
     v5 = k5(v0)
    v6 = v4 if b1 else v5              a Merge
    v9 = v6                            a loop's variable
    while 1:
     v10 = k10(v9, c8)
     if not v10: break
     v11 = k11(v9, v4)                 what comes from outside has its name everywhere
     v9 = v11
     if stop: return

Each output has a variable of its own, which is cleared after its last use. Switch, Enter, Exit and NextIteration are
names for what they hand on. Built on region_writer.py by codegen.py; what is read here is in control_flow.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_services.graph.runtime_ops import (
    BRANCH_OPS,
    ENTER_OPS,
    EXIT_OPS,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SEND_OPS,
    SWITCH_OPS,
    TRIGGER_OPS,
)

from .flow_lines import Names, known_as, name_of, test_of
from .flow_order import MemberOrder
from .fuse import Group
from .guards import ALWAYS, ANY, TRUTH, source_of, truth_of
from .loop_tree import Loop, is_back_edge
from .region_writer import STOP_EVERY, RegionWriter, Registers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .control_flow import ControlFlow
    from .fuse import Fusion
    from .guards import Edge, Guard, Literal
    from .part import PartGraph, PartNode
    from .regions import Region

#: Handed on or told by others; nothing to write unless a reference is read.
_NAMES_ONLY = BRANCH_OPS | ENTER_OPS | EXIT_OPS | NEXT_ITERATION_OPS | TRIGGER_OPS


#: Cases of a Merge that are written as one expression: Python's compiler goes down into each.
_CHOICES = 16


class FlowWriter(RegionWriter):
    """Writes the text of all regions of a part with control flow. One instance a part."""

    def __init__(
        self,
        part: PartGraph,
        flow: ControlFlow,
        region_of: list[int],
        kernels: Mapping[int, Any],
        constants: Mapping[int, Any],
        sends: Mapping[int, int],
        fetches: Mapping[int, int],
        starts: Mapping[int, int],
        fusion: Fusion | None = None,
    ) -> None:
        self.flow, self.guards = flow, flow.guards
        #: What lines test, with the number of its values; and the outputs that nodes read, which need a variable.
        self._tested: dict[Edge, int] = {}
        self._used: set[Edge] = set()
        self._order = MemberOrder(part, flow, fusion, self._guard, self._has_else)
        self._group_of = self._order.group_of
        #: The guard of the block that is open, and what to clear when it ends.
        self._open: Guard = ALWAYS
        self._late: list[str] = []
        self._block = self._blocks = 0
        #: Lines when the open block began.
        self._began = 0
        super().__init__(part, region_of, kernels, constants, sends, fetches, starts)

    # -- what is read where ------------------------------------------------------------------------------------------

    def _find_crossings(self) -> None:
        self.origin = self.flow.origin
        for literal in self._literals():
            self._tested[literal.edge] = literal.values
        for node in self.part.nodes:
            self._used.update(map(self._resolve, node.inputs))
        self._names = Names(self._used)
        for member in self.flow.tree.members:
            nodes = list(member.nodes()) if isinstance(member, Loop) else [member]
            here = self.starts.get(nodes[0].index, self.region_of[nodes[0].index])
            for edge in self._reads(member):
                source = self.part.nodes[edge[0]]
                if self.comes_from_outside(source):
                    self._slot(source_of(edge))
                elif edge[0] not in self.constants and self.region_of[edge[0]] != here:
                    self._slot(edge)
                    self.crossing.add(edge)
        for node in self.part.nodes:
            if node.index in self.starts:
                self.awaited_slots(node)
            elif self.comes_from_outside(node):
                self._slot((node.index, 0))

    def _literals(self) -> Iterator[Literal]:
        """All that some line tests."""
        for member in self._all_members(self.flow.tree.members):
            yield from self._guard(member)
            if isinstance(member, Loop):
                goes_on = self.flow.turns[member].goes_on
                if self.part.nodes[goes_on.edge[0]].op in BRANCH_OPS:
                    yield goes_on
            if not isinstance(member, Loop) and member.op in MERGE_OPS and not self._is_variable(member):
                for case in self._cases(member):
                    yield from case

    def _all_members(self, members: Iterable[Any]) -> Iterator[Any]:
        for member in members:
            yield member
            if isinstance(member, Loop):
                yield from self._all_members(member.members)

    def _guard(self, member: Any) -> Guard:
        """What has to be tested where the member stands: in a loop's body, the loop goes on."""
        if isinstance(member, Group):
            member = member.members[0]
        guard = self.flow.guard_of(member)
        loop = member.parent if isinstance(member, Loop) else self.flow.tree.frame_of[member.index]
        if not isinstance(member, Loop) and member.index in self.guards.flagged:
            guard = frozenset(literal for literal in guard if literal.edge != (member.index, ANY))
        if loop is None or not guard:
            return guard
        literal = self.flow.turns[loop].goes_on
        return guard - {literal, literal._replace(value=1 - literal.value)}

    def _cases(self, merge: PartNode) -> list[Guard]:
        """Per input of a Merge: what has to be tested where it stands to know that it is alive."""
        own = self.guards.of[merge.index]
        return [self.guards.of_edge(source, port) - own for source, port in merge.inputs]

    def _is_variable(self, node: PartNode) -> bool:
        return any(is_back_edge(self.part, node, source) for source, _ in node.inputs)

    def _reads(self, member: Any) -> set[Edge]:
        """Outputs, and what is tested of them, that are read by the member or by what is in it."""
        if isinstance(member, Loop):
            found = {edge for inner in member.members for edge in self._reads(inner)}
            found.update(literal.edge for literal in self._guard(member))
            return found.union(self._resolve(enter.inputs[0]) for enter in member.enters)
        if isinstance(member, Group):
            return {*member.inputs, *(literal.edge for literal in self._guard(member))}
        found = {self._resolve(edge) for edge in member.inputs}
        found.update(literal.edge for literal in self._guard(member))
        if member.op in MERGE_OPS and not self._is_variable(member):
            found.update(literal.edge for case in self._cases(member) for literal in case)
        return found

    # -- one function ------------------------------------------------------------------------------------------------

    def region(self, region: Region, schedule: Sequence[Any] | None, name: str | None = None) -> str | None:
        """Writes one function; its name, or None when the region has nothing to do."""
        members = self._members(region)
        if not any(isinstance(member, (Loop, Group)) or not self.is_silent(member) for member in members):
            # what is only tested elsewhere has its line there
            return None
        name = name or f"r{region.index}"
        self.defs.append(len(self.lines))
        self.lines.append(f"def {name}(s, send, fetch, stop):")
        if self.tick:
            self.write("tick()")
            self.tick = False
            self._rest_ticks = bool(region.after or region.recvs)
        self._load(region, members)
        self._sequence(members, None, set())
        return name

    def _members(self, region: Region) -> list[Any]:
        tree = self.flow.tree
        members: dict[Any, None] = {}
        for node in region.nodes:
            if tree.frame_of[node.index] is None:
                members[tree.entered.get(node.index, self._group_of.get(node.index, node))] = None
        return list(members)

    def is_silent(self, node: PartNode) -> bool:
        if node.op in _NAMES_ONLY:
            return not any(node.deref)
        return self._is_variable(node) if node.op in MERGE_OPS else super().is_silent(node)

    def _load(self, region: Region, members: Iterable[Any]) -> None:
        """Gives names to what comes from outside of the function."""
        here = {node.index for node in region.nodes} - {node.index for node in region.starts}
        edges = {edge for member in members for edge in self._reads(member)}
        # a test may look at one that got no value before it looks at the one that says so
        unset = [edge for edge in sorted(edges) if edge[1] < 0 and edge[0] in here and self.guards.of[edge[0]]]
        if unset and self.guards.flagged:
            self.write(f"{' = '.join(map(name_of, unset))} = 0")
        for edge in sorted(edges):
            index = edge[0]
            node = self.part.nodes[index]
            if index in here and not self.comes_from_outside(node) and index not in self.constants:
                continue
            if index in self.constants or self.comes_from_outside(node):
                if edge[1] >= 0 and index in self.constants:
                    continue
                value = self._held(source_of(edge))
                if edge[1] < 0:
                    value = known_as(edge, value, self._counts(edge))
                self.write(f"{name_of(edge)} = {value}", node)
            else:
                self.write(f"{name_of(edge)} = s[{self.slots[edge]}]", node)

    def _held(self, edge: Edge) -> str:
        return f"c{edge[0]}_{edge[1]}" if edge[0] in self.constants else f"s[{self.slots[edge]}]"

    def _counts(self, edge: Edge) -> int:
        """How many cases a number tells apart."""
        return self._tested[edge]

    def _operand(self, edge: Edge, node: PartNode, registers: Any) -> str:
        if type(registers) is Registers:
            # inside a group's own function
            return super()._operand(edge, node, registers)
        return f"c{edge[0]}_{edge[1]}" if edge[0] in self.constants else name_of(edge)

    # -- sequences and blocks ----------------------------------------------------------------------------------------

    def _sequence(
        self, members: Sequence[Any], loop: Loop | None, kept: set[Edge], made: Iterable[Edge] = ()
    ) -> set[Edge]:
        """Writes members of one frame, blocks of one guard together. Clears what they make, and what was `made` before,
        after its last use, but for `kept`. Returns what they make.
        """
        if self._group_of:
            grouped = (m if isinstance(m, (Loop, Group)) else self._group_of.get(m.index, m) for m in members)
            members = list(dict.fromkeys(grouped))
        order = self._order.grouped(members, loop)
        last: dict[Edge, int] = {}
        for position, member in enumerate(order):
            for edge in self._reads(member):
                last[edge] = position
        #: In which block each output got its value.
        made_in: dict[Edge, int] = dict.fromkeys(made, -1)
        written = 0
        for position, member in enumerate(order):
            conditional = not isinstance(member, (Loop, Group)) and self._has_else(member)
            silent = not isinstance(member, (Loop, Group)) and self.is_silent(member)
            if not silent:
                written += 1
                if written % STOP_EVERY == 0:
                    self._enter(ALWAYS)
                    self.write("if stop: return")
                self._enter(ALWAYS if conditional else self._guard(member))
                self._write_member(member, conditional)
                for edge in self._makes(member):
                    made_in[edge] = self._block
            freed = [
                edge
                for edge in self._reads(member)
                if last[edge] == position and edge in made_in and edge not in kept and edge[1] >= 0
            ]
            now = [name_of(edge) for edge in freed if not self._open or made_in[edge] == self._block]
            if now:
                self.write(f"{' = '.join(sorted(now))} = None")
            self._late += [name_of(edge) for edge in freed if name_of(edge) not in now]
        self._enter(ALWAYS)
        return set(made_in)

    def _enter(self, guard: Guard) -> None:
        """Ends the open block unless it is that of the guard, and begins one."""
        if guard == self._open:
            return
        if self._open:
            self.pad = self.pad[:-1]
            self._open = ALWAYS
            if len(self.lines) == self._began:
                # its nodes had nothing to write
                self.lines.pop()
            if self._late:
                self.write(f"{' = '.join(sorted(self._late))} = None")
                self._late = []
        self._blocks += 1
        self._block = self._blocks
        if guard:
            self.write(f"if {self._condition(guard)}:")
            self.pad += " "
            self._open = guard
            self._began = len(self.lines)

    def _condition(self, guard: Guard) -> str:
        return " and ".join(test_of(literal) for literal in sorted(guard)) or "1"

    # -- members -----------------------------------------------------------------------------------------------------

    def _has_else(self, node: PartNode) -> bool:
        """Whether there is something to do for the node where it does not run."""
        return bool(self._guard(node)) and (node.op in SEND_OPS or node.index in self.starts)

    def _makes(self, member: Any) -> list[Edge]:
        """The outputs that the member gives a variable, for those that follow it."""
        if isinstance(member, Loop):
            return [self._resolve(node.inputs[0]) for node in member.exits]
        if isinstance(member, Group):
            return member.outputs
        return [(member.index, port) for port in range(len(member.output_types))]

    def _write_member(self, member: Any, conditional: bool) -> None:
        if isinstance(member, Loop):
            self._while(member)
        elif isinstance(member, Group):
            self._group(member, self._names)
            for edge in member.outputs:
                self._note_known(edge, member.members[0])
        elif conditional:
            self.write(f"if {self._condition(self._guard(member))}:")
            self.pad += " "
            self._node(member, self._names)
            self.pad = self.pad[:-1]
            if member.index in self.starts:
                dead = f"s[{self.slots[member.index, -1]}] = D"
            elif member.index in self.sends:
                dead = f"send({self.sends[member.index]}, D)"
            else:
                dead = f"dead({self.fetches[member.index]})"
            self.write(f"else: {dead}", member)
        elif member.op in MERGE_OPS:
            self._merge(member)
        elif member.op in _NAMES_ONLY:
            self._read_reference(member)
        else:
            self._node(member, self._names)
            if member.index not in self.starts:
                for port in range(len(member.output_types)):
                    self._note_known((member.index, port), member)

    def _note_known(self, edge: Edge, node: PartNode) -> None:
        """After an output's line: what is tested of it."""
        truth = truth_of(edge)
        for known in (truth, (truth[0], truth[1] - 1)):
            if known in self._tested:
                value = known_as(known, name_of(edge), self._counts(known))
                self.write(f"{name_of(known)} = {value}{self._store(known)}", node)

    def _store(self, edge: Edge) -> str:
        return f"; s[{self.slots[edge]}] = {name_of(edge)}" if edge in self.crossing and self._stores else ""

    def _merge(self, node: PartNode) -> None:
        texts = [self._input(node, position) for position in range(len(node.inputs))]
        tests = [self._condition(case) for case in self._cases(node)]
        outputs = [(port, edge) for port in (0, 1) if (edge := (node.index, port)) in self._used]
        flag = (node.index, ANY)
        flagged = node.index in self.guards.flagged
        if not flagged and len(texts) <= _CHOICES:
            for port, edge in outputs:
                choices = texts if port == 0 else [f"i{number}" for number in range(len(texts))]
                text = " else ".join(f"{choice} if {test}" for choice, test in zip(choices[:-1], tests, strict=False))
                text = f"{text} else {choices[-1]}" if text and len(set(choices)) > 1 else choices[-1]
                self.write(f"{name_of(edge)} = {text}{self._store(edge)}", node)
        else:
            if flagged:
                self.write(f"{name_of(flag)} = 0")
            for number, (text, test) in enumerate(zip(texts, tests, strict=True)):
                values = [(edge, f"i{number}" if port else text) for port, edge in outputs]
                parts = [f"{name_of(edge)} = {value}{self._store(edge)}" for edge, value in values]
                if flagged:
                    parts.append(f"{name_of(flag)} = 1")
                self.write(f"if {test}: {'; '.join(parts) or '0'}", node)
            if flag in self.crossing and self._stores:
                self.write(f"s[{self.slots[flag]}] = {name_of(flag)}")
        for _, edge in outputs:
            self._note_known(edge, node)

    def _read_reference(self, node: PartNode) -> None:
        """A Switch or an Enter that reads a reference."""
        if node.deref[0]:
            edge = node.index, 0
            self.write(f"{name_of(edge)} = {self._input(node, 0)}{self._store(edge)}", node)
            self._note_known(edge, node)
        if len(node.deref) > 1 and node.deref[1]:
            known = node.index, TRUTH if node.op in SWITCH_OPS else TRUTH - 1
            if known in self._tested:
                value = known_as(known, self._input(node, 1), self._counts(known))
                self.write(f"{name_of(known)} = {value}{self._store(known)}", node)

    # -- loops -------------------------------------------------------------------------------------------------------

    def _while(self, loop: Loop) -> None:
        turns = self.flow.turns[loop]
        for enter in loop.enters:
            if enter.deref[0]:
                self._read_reference(enter)
        variables = [(node.index, 0) for node in loop.variables]
        for node in loop.variables:
            self.write(f"{name_of((node.index, 0))} = {self._input(node, 0)}", node)
        outer = self._open, self._late, self._block, self._began
        self._open, self._late = ALWAYS, []
        self.write("while 1:")
        self.pad += " "
        for node in loop.variables:
            self._note_known((node.index, 0), node)
        left = {self._resolve(node.inputs[0]) for node in loop.exits}
        left.update(edge for member in turns.tail for edge in self._reads(member))
        nexts = {self._resolve(node.inputs[1]) for node in loop.variables}
        in_body = {edge for member in turns.body for edge in self._reads(member)}
        made = self._sequence(turns.head, loop, left | nexts | in_body | {source_of(turns.goes_on.edge)})
        self._break(turns.goes_on)
        # a turn that goes on gives the variables other values
        kept = (left - set(variables)) | nexts
        made = self._sequence(turns.body, loop, kept, {*made, *variables})
        moved = [node for node in loop.variables if self._resolve(node.inputs[1]) != (node.index, 0)]
        if moved:
            targets, texts = [name_of((node.index, 0)) for node in moved], [self._input(node, 1) for node in moved]
            self.write(f"{', '.join(targets)} = {', '.join(texts)}", moved[0])
            over = sorted(name_of(edge) for edge in nexts & made - left - set(variables))
            if over:
                self.write(f"{' = '.join(over)} = None")
        self.write("if stop: return")
        self.pad = self.pad[:-1]
        self._sequence(turns.tail, loop, left)
        self._open, self._late, self._block, self._began = outer
        for edge in {self._resolve(node.inputs[0]) for node in loop.exits}:
            if edge in self.crossing and self._stores:
                self.write(f"s[{self.slots[edge]}] = {name_of(edge)}")

    def _input(self, node: PartNode, position: int) -> str:
        text = self._operand(self._resolve(node.inputs[position]), node, None)
        return f"{text}.value" if node.deref[position] else text

    def _break(self, goes_on: Literal) -> None:
        edge = goes_on.edge
        if edge in self._tested:
            name = name_of(edge)
        else:
            source = source_of(edge)
            name = f"c{source[0]}_{source[1]}" if source[0] in self.constants else name_of(source)
        self.write(f"if {'not ' if goes_on.value else ''}{name}: break", self.part.nodes[edge[0]])
