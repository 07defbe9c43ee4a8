"""Writes regions with branches and loops: nodes of one guard in one `if`, a loop as a `while`.

    v1 = k1(v0)
    b1 = not not v1                    what Switches look at, as bool
    if b1:
     v4 = k4(v0, c3)
    if not b1:
     v5 = k5(v0)
    v6 = v4 if b1 else v5              a Merge
    v9 = v6                            a loop's variable
    turns = new_turns()                how many may follow, in all loops of the function
    for turn in turns:
     v10 = k10(v9, c8)
     if not v10: break
     v11 = k11(v9, v4)                 what comes from outside has its name everywhere
     v9 = v11
     if stop: return
    else: no_more_turns()

     q12(v11)                          a stack's push, bound before the first turn: q12 = b12(v3)

Each output has a variable of its own, which is cleared after its last use. Switch, Enter, Exit and NextIteration are
names for what they hand on. A loop that was compiled as a whole (loop_writer.py) is one line, `v9, = g0(stop, v0, v4)`.
Built on flow_reads.py and region_writer.py by codegen.py; what is read here is in control_flow.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_compiler.fuse import Group
from tenfold_compiler.part.guards import ALWAYS, ANY, TRUTH, source_of, truth_of
from tenfold_compiler.part.loop_tree import Loop
from tenfold_core.opdefs import runtime_ops as ops
from tenfold_kernels.registry import binder

from .flow_lines import known_as, name_of, test_of
from .flow_reads import FlowReader
from .region_writer import STOP_EVERY, Registers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold_compiler.fuse.fusion import Fusion
    from tenfold_compiler.part.guards import Edge, Guard, Literal
    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.part.regions import Region
    from tenfold_compiler.part.structured_flow import ControlFlow
    from tenfold_compiler.program import Program

#: Handed on or told by others; nothing to write unless a reference is read.
_NAMES_ONLY = ops.BRANCH_OPS | ops.ENTER_OPS | ops.EXIT_OPS | ops.NEXT_ITERATION_OPS | ops.TRIGGER_OPS

#: Cases of a Merge that are written as one expression: Python's compiler goes down into each.
_CHOICES = 16


class FlowWriter(FlowReader):
    """Writes the text of all regions of a part with control flow. One instance a part."""

    def __init__(self, program: Program, flow: ControlFlow, fusion: Fusion | None = None) -> None:
        #: The guard of the block that is open, and what to clear when it ends.
        self._open: Guard = ALWAYS
        self._late: list[str] = []
        self._block = self._blocks = 0
        #: Lines when the open block began.
        self._began = 0
        #: What a function does that is told to stop.
        self._stopped = "return"
        #: Nodes of the loop that is written whose resource was bound before its first turn, and loops that have some.
        self._bound: set[int] = set()
        self._binding: set[Loop] = set()
        super().__init__(program, flow, fusion)

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
        if any(isinstance(member, Loop) and self._order.group_of_loop.get(member) is None for member in members):
            self._count_turns()
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
        return self._is_variable(node) if node.op in ops.MERGE_OPS else super().is_silent(node)

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
                if edge[1] < 0:
                    value = known_as(edge, self._held(source_of(edge)), self._tested[edge])
                else:
                    value = self._held(edge)
                self.write(f"{name_of(edge)} = {value}", node)
            else:
                self.write(f"{name_of(edge)} = s[{self.slots[edge]}]", node)

    def _held(self, edge: Edge) -> str:
        return f"c{edge[0]}_{edge[1]}" if edge[0] in self.constants else f"s[{self.slots[edge]}]"

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
                    self._look_at_stop()
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
            self._clear(now)
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
            self._clear(self._late)
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
        elif member.op in ops.MERGE_OPS:
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
                value = known_as(known, name_of(edge), self._tested[known])
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
            known = node.index, TRUTH if node.op in ops.SWITCH_OPS else TRUTH - 1
            if known in self._tested:
                value = known_as(known, self._input(node, 1), self._tested[known])
                self.write(f"{name_of(known)} = {value}{self._store(known)}", node)

    # -- loops -------------------------------------------------------------------------------------------------------

    def _while(self, loop: Loop) -> None:
        outer = self._open, self._late, self._block, self._began
        left = self._left(loop)
        group = self._order.group_of_loop.get(loop)
        if group is None:
            self._first_values(loop)
            self._turns(loop, left)
        else:
            texts = [name_of(edge) for edge in (*group.outputs, *group.inputs)]
            targets, given = texts[: len(group.outputs)], texts[len(group.outputs) :]
            self.write(f"{', '.join(targets)}, = g{group.number}({', '.join(['stop', *given])})", loop.enters[0])
            self._look_at_stop()
        self._open, self._late = ALWAYS, []
        self._sequence(self.flow.turns[loop].tail, loop, left)
        self._open, self._late, self._block, self._began = outer
        for edge in {self._resolve(node.inputs[0]) for node in loop.exits}:
            if edge in self.crossing and self._stores:
                self.write(f"s[{self.slots[edge]}] = {name_of(edge)}")

    def unfused(self, group: Group) -> None:
        """Of a compiled loop: its turns as they are written elsewhere."""
        if group.loop is None:
            super().unfused(group)
            return
        arguments = ", ".join(["stop", *map(name_of, group.inputs)])
        self.defs.append(len(self.lines))
        self.lines.append(f"def f{group.number}({arguments}):")
        self._stores, self._stopped = False, f"return {'None, ' * len(group.outputs)}"
        self._count_turns()
        self._first_values(group.loop)
        self._turns(group.loop, self._left(group.loop))
        self._stores, self._stopped = True, "return"
        self.write(f"return {', '.join(map(name_of, group.outputs))},")

    def _first_values(self, loop: Loop) -> None:
        for enter in loop.enters:
            if enter.deref[0]:
                self._read_reference(enter)
        for node in loop.variables:
            self.write(f"{name_of((node.index, 0))} = {self._input(node, 0)}", node)

    def _turns(self, loop: Loop, left: set[Edge]) -> None:
        turns = self.flow.turns[loop]
        variables = [(node.index, 0) for node in loop.variables]
        self._open, self._late = ALWAYS, []
        self._bind(loop)
        self._begin_turn(loop)
        self.pad += " "
        for node in loop.variables:
            self._note_known((node.index, 0), node)
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
            self._clear([name_of(edge) for edge in nexts & made - left - set(variables)])
        self._end_turn(loop)
        self.pad = self.pad[:-1]
        self._end_loop(loop)

    def _count_turns(self) -> None:
        """At the beginning of a function: its loops take their turns from one iterator, which costs next to nothing."""
        self.write("turns = new_turns()")

    def _begin_turn(self, loop: Loop) -> None:
        self.write("for turn in some_of(turns):" if loop in self._binding else "for turn in turns:")

    def _end_loop(self, loop: Loop) -> None:
        """After the last turn there may be, if the loop did not break before."""
        self.write(f"else: {'no_more_of(turns)' if loop in self._binding else 'no_more_turns()'}", loop.enters[0])

    def _bind(self, loop: Loop) -> None:
        """Before the first turn: what each turn would look up anew, the stacks that it pushes to and pops from."""
        for node in loop.members:
            if isinstance(node, Loop) or binder(self.kernels.get(node.index)) is None:
                continue
            handle = self._resolve(node.inputs[0])
            inside = handle[0] in self.constants or self._is_made_in(loop, handle)
            if not inside and not any(node.deref) and self._is_there(loop, handle[0]):
                self.write(f"q{node.index} = b{node.index}({name_of(handle)})", node)
                self._bound.add(node.index)
                self._binding.add(loop)

    def _node(self, node: PartNode, registers: Registers) -> None:
        if node.index not in self._bound:
            super()._node(node, registers)
            return
        given = [self._operand(self._resolve(edge), node, registers) for edge in node.inputs[1:]]
        edge = node.index, 0
        if not given:
            self.write(f"{name_of(edge)} = q{node.index}(){self._store(edge)}", node)
            return
        self.write(f"q{node.index}({', '.join(given)})", node)
        if edge in self._used:
            # what is pushed is given on
            self.write(f"{name_of(edge)} = {given[0]}{self._store(edge)}", node)

    def _clear(self, names: Sequence[str]) -> None:
        """Lets go of values."""
        if names:
            self.write(f"{' = '.join(sorted(names))} = None")

    def _look_at_stop(self) -> None:
        self.write(f"if stop: {self._stopped}")

    def _end_turn(self, loop: Loop) -> None:
        self._look_at_stop()

    def _input(self, node: PartNode, position: int) -> str:
        text = self._operand(self._resolve(node.inputs[position]), node, None)
        return f"{text}.value" if node.deref[position] else text

    def _break(self, goes_on: Literal) -> None:
        edge, node = goes_on.edge, self.part.nodes[goes_on.edge[0]]
        name = name_of(edge) if edge in self._tested else self._operand(source_of(edge), node, None)
        self.write(f"if {'not ' if goes_on.value else ''}{name}: break", node)
