"""Lines for the members of a part with branches: what runs a node, what a Merge takes, what is tested of an output.

frame_writer.py says where they stand; loop_writer.py writes some of them otherwise, for Numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.part.guards import ANY, TRUTH, Guard, Literal, case_of, source_of, truth_of
from tenfold_compiler.part.loop_tree import Loop
from tenfold_core.opdefs import runtime_ops as ops
from tenfold_kernels.registry import binder

from .registers import Names, known_as, name_of, test_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.fuse.fusion import Group
    from tenfold_compiler.part.part_graph import Edge, PartNode

    from .flow_reads import FlowReads
    from .region_writer import RegionWriter

#: Cases of a Merge that are written as one expression: Python's compiler goes down into each.
_CHOICES = 16


class FlowText:
    """Lines of Python, a call a node."""

    def __init__(self, reads: FlowReads, straight: RegionWriter) -> None:
        self.reads, self.program, self.lines = reads, reads.program, straight.lines
        self._straight = straight
        self._names = Names(reads.used)
        #: What a function does that is told to stop.
        self.stopped = "return"
        #: Nodes whose resource was bound before the first turn of their loop, and loops that have some.
        self._bound: set[int] = set()
        self._binding: set[Loop] = set()

    # -- nodes -------------------------------------------------------------------------------------------------------

    def node(self, node: PartNode) -> None:
        """Runs a node, and notes what is tested of its outputs."""
        self.call(node)
        if node.index not in self.reads.slots.starts:
            for port in range(len(node.output_types)):
                self.known((node.index, port), node)

    def call(self, node: PartNode) -> None:
        if node.index not in self._bound:
            self._straight.node(node, self._names)
            return
        given = [self.operand(self.reads.resolve(edge), node) for edge in node.inputs[1:]]
        edge = node.index, 0
        if not given:
            self.lines.write(f"{name_of(edge)} = q{node.index}(){self._stored(edge)}", node)
            return
        self.lines.write(f"q{node.index}({', '.join(given)})", node)
        if edge in self.reads.used:
            # what is pushed is given on
            self.lines.write(f"{name_of(edge)} = {given[0]}{self._stored(edge)}", node)

    def group(self, group: Group) -> None:
        self._straight.group(group, self._names)
        for edge in group.outputs:
            self.known(edge, group.members[0])

    def loop(self, group: Group) -> None:
        """Runs a loop that was compiled as a whole; notes what is tested behind it of what leaves it."""
        targets, given = ", ".join(map(name_of, group.outputs)), ", ".join(["stop", *map(name_of, group.inputs)])
        loop = group.loop
        assert loop is not None
        self.lines.write(f"{targets}, = g{group.number}({given})", loop.enters[0])
        self.look_at_stop()
        for edge in dict.fromkeys(self.reads.resolve(node.inputs[0]) for node in loop.exits):
            for known in (truth_of(edge), case_of(edge)):
                if self.reads.is_tested_behind(loop, known):
                    self.tested(known, name_of(edge), loop.enters[0])

    def node_or_else(self, node: PartNode, guard: Guard) -> None:
        """Runs a node that has something to do where it does not run, too."""
        transfers, slots = self.program.transfers, self.reads.slots
        self.lines.write(f"if {self.condition(guard)}:")
        self.lines.indent()
        self.call(node)
        self.lines.dedent()
        if node.index in slots.starts:
            dead = f"s[{slots.numbers[node.index, -1]}] = D"
        elif node.index in transfers.send_of:
            dead = f"send({transfers.send_of[node.index]}, D)"
        else:
            dead = f"dead({transfers.fetch_of[node.index]})"
        self.lines.write(f"else: {dead}", node)

    def merge(self, node: PartNode) -> None:
        reads, lines = self.reads, self.lines
        texts = [self.input(node, position) for position in range(len(node.inputs))]
        tests = [self.condition(case) for case in reads.cases(node)]
        outputs = [(port, edge) for port in (0, 1) if (edge := (node.index, port)) in reads.used]
        flag = (node.index, ANY)
        flagged = node.index in reads.guards.flagged
        if not flagged and len(texts) <= _CHOICES:
            for port, edge in outputs:
                choices = texts if port == 0 else [f"i{number}" for number in range(len(texts))]
                text = " else ".join(f"{choice} if {test}" for choice, test in zip(choices[:-1], tests, strict=False))
                text = f"{text} else {choices[-1]}" if text and len(set(choices)) > 1 else choices[-1]
                lines.write(f"{name_of(edge)} = {text}{self._stored(edge)}", node)
        else:
            if flagged:
                lines.write(f"{name_of(flag)} = 0")
            for number, (text, test) in enumerate(zip(texts, tests, strict=True)):
                values = [(edge, f"i{number}" if port else text) for port, edge in outputs]
                parts = [f"{name_of(edge)} = {value}{self._stored(edge)}" for edge, value in values]
                if flagged:
                    parts.append(f"{name_of(flag)} = 1")
                lines.write(f"if {test}: {'; '.join(parts) or '0'}", node)
            self.store(flag)
        for _, edge in outputs:
            self.known(edge, node)

    def reference(self, node: PartNode) -> None:
        """A Switch or an Enter that may read a reference."""
        if node.deref[0]:
            edge = node.index, 0
            self.lines.write(f"{name_of(edge)} = {self.input(node, 0)}{self._stored(edge)}", node)
            self.known(edge, node)
        if len(node.deref) > 1 and node.deref[1]:
            known = node.index, TRUTH if node.op in ops.SWITCH_OPS else TRUTH - 1
            self.tested(known, self.input(node, 1), node)

    def known(self, edge: Edge, node: PartNode) -> None:
        """After an output's line: what is tested of it."""
        for known in (truth_of(edge), case_of(edge)):
            self.tested(known, name_of(edge), node)

    def tested(self, known: Edge, value: str, node: PartNode) -> None:
        if known in self.reads.tested:
            text = known_as(known, value, self.reads.tested[known])
            self.lines.write(f"{name_of(known)} = {text}{self._stored(known)}", node)

    # -- values ------------------------------------------------------------------------------------------------------

    def operand(self, edge: Edge, node: PartNode) -> str:
        """What a line of the node calls an edge."""
        return self._straight.operand(edge, node, self._names)

    def input(self, node: PartNode, position: int) -> str:
        """What a line calls an input."""
        text = self.operand(self.reads.resolve(node.inputs[position]), node)
        return f"{text}.value" if node.deref[position] else text

    def condition(self, guard: Guard) -> str:
        return " and ".join(test_of(literal) for literal in sorted(guard)) or "1"

    def store(self, edge: Edge) -> None:
        """Stores a value that has its variable, where other regions read it."""
        text = self._stored(edge).removeprefix("; ")
        if text:
            self.lines.write(text)

    def _stored(self, edge: Edge) -> str:
        return self._straight.store(edge, name_of(edge))

    def clear(self, names: Sequence[str]) -> None:
        if names:
            self.lines.write(f"{' = '.join(sorted(names))} = None")

    # -- loops -------------------------------------------------------------------------------------------------------

    def look_at_stop(self) -> None:
        self.lines.write(f"if stop: {self.stopped}")

    def count_turns(self) -> None:
        """At the beginning of a function: its loops take their turns from one iterator, which costs next to nothing."""
        self.lines.write("turns = new_turns()")

    def begin_turns(self, loop: Loop) -> None:
        """Binds what each turn would look up anew, the stacks that it pushes to and pops from; begins a turn."""
        for node in loop.members:
            if isinstance(node, Loop) or binder(self.program.kernels.get(node.index)) is None:
                continue
            handle = self.reads.resolve(node.inputs[0])
            inside = handle[0] in self.program.constants or self.reads.is_made_in(loop, handle)
            if not inside and not any(node.deref) and self.reads.is_there(loop, handle[0]):
                self.lines.write(f"q{node.index} = b{node.index}({name_of(handle)})", node)
                self._bound.add(node.index)
                self._binding.add(loop)
        self.lines.write("for turn in some_of(turns):" if loop in self._binding else "for turn in turns:")

    def leave(self, goes_on: Literal) -> None:
        """Ends the loop unless it goes on."""
        edge, node = goes_on.edge, self.program.part.nodes[goes_on.edge[0]]
        name = name_of(edge) if edge in self.reads.tested else self.operand(source_of(edge), node)
        self.lines.write(f"if {'not ' if goes_on.value else ''}{name}: break", node)

    def end_turn(self, loop: Loop) -> None:
        self.look_at_stop()

    def end_turns(self, loop: Loop) -> None:
        """After the last turn there may be, if the loop did not end before."""
        over = "no_more_of(turns)" if loop in self._binding else "no_more_turns()"
        self.lines.write(f"else: {over}", loop.enters[0])
